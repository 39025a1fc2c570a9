"""The HTTP server: middleware, the page's routes, and the speech API for other programs."""
