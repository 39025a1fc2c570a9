"""Weights from a local folder, the hub's cache, or the hub itself."""
