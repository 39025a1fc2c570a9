"""HTTP routes beside the page."""
