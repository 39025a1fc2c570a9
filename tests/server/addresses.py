"""Every address the page asks, from the routes themselves, so that none is forgotten."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fastapi.routing import APIRoute

from studio.server.route_table import page_parts
from studio.setup.models_install import NothingToSetUp

PAGE_ADDRESSES = tuple(
    (method, route.path)
    for part in page_parts(NothingToSetUp())
    for route in part.routes
    if isinstance(route, APIRoute)
    for method in sorted(route.methods)
)
"""Method and path, with the names of its parts in braces."""


REVIEW_ADDRESSES = (
    ("GET", "/studio/review/{token}"),
    ("GET", "/studio/review/{token}/project"),
    ("GET", "/studio/review/{token}/events"),
    ("GET", "/studio/review/{token}/takes/{line_id}/{take_id}.wav"),
    ("POST", "/studio/review/{token}/comments"),
)
"""What a review link opens, and nothing else."""


def filled(path: str, values: Mapping[str, str]) -> str:
    """A path with something in the place of each name; "0" where nothing is given."""
    return re.sub(r"\{([^}:]+)[^}]*\}", lambda name: values.get(name[1], "0"), path)
