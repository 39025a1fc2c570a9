"""Documents of other programs as text that the readers of scripts know."""
