"""Projects: a dialog with its takes and history in a folder, edited by several pages at once."""
