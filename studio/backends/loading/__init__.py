"""Weights from a folder, the cache of the hub, or the hub itself."""
