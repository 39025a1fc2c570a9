"""Tableread: a local studio for multi-speaker dialog.

Imports point one way: `app > server > ui | cli > sharing > services > project > engine > backends >
voices > quality > audio > dialog > storage > setup > errors`. Settings are read by `app` only.
"""

__version__ = "0.1.0"
