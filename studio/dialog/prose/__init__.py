"""Prose with dialogue: what is quoted in it, and who says it."""
