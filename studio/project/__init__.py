"""Projects: a dialog with its takes and its history, a folder each, edited by many at once."""
