"""The page's HTML, kept as files in `assets/page/html/`: read, put together, never executed."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from studio.storage.installation import ASSETS

_FOLDER = ASSETS / "page" / "html"
_SPRITE = "icons.svg"


def render_template(name: str, **values: object) -> str:
    """Fill a file of the page.

    Args:
        name: The file's name, such as "header.html"; it may include others.
        values: Whatever the file takes; HTML in them is escaped.
    """
    return _environment().get_template(name).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined
    )
    environment.globals["icon"] = icon
    return environment


def icon(name: str) -> Markup:
    """Refer to an icon of the sprite; the control around it carries the name for readers."""
    assert name in _icon_names(), f"no icon is called {name}"
    return Markup('<svg class="icon" aria-hidden="true"><use href="#icon-{}"></use></svg>').format(
        name
    )


@cache
def _icon_names() -> frozenset[str]:
    sprite = (_FOLDER / _SPRITE).read_text(encoding="utf-8")
    return frozenset(re.findall(r'<symbol id="icon-(\w+)"', sprite))
