"""Makes the environment the studio runs in. Standard library only, beside `studio.errors`."""
