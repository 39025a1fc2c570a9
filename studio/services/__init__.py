"""The use cases that page, HTTP API and command line share."""
