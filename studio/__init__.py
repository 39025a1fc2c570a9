"""Tableread: a local studio for multi-speaker dialog.

Imports point one way:
`app > ui | api | cli > service > project | engine > backends > speakers > audio > dialog > errors`.
"""

__version__ = "0.1.0"
