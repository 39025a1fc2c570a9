"""Files on disk: whole or absent, counted, and bounded by a quota."""
