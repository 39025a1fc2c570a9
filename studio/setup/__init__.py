"""Creates the environment that the studio runs in. Standard library and `studio.errors` only."""
