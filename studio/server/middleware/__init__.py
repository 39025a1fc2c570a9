"""ASGI layers in front of every route."""
