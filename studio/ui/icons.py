"""The page's icons, drawn here: one sprite in the header, used by reference everywhere."""

from __future__ import annotations

_PATHS = {
    "play": '<path d="M7 4.5v15l12-7.5z" fill="currentColor"/>',
    "pause": '<path d="M6 5h4.2v14H6zM13.8 5H18v14h-4.2z" fill="currentColor"/>',
    "close": '<path d="M6 6l12 12M18 6L6 18"/>',
    "contrast": '<circle cx="12" cy="12" r="8"/>'
    '<path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor"/>',
    "keyboard": '<rect x="3" y="6.5" width="18" height="11" rx="2"/>'
    '<path d="M6.5 10h.01M10 10h.01M14 10h.01M17.5 10h.01M8 14h8"/>',
    "download": '<path d="M12 4v11m0 0l-4.5-4.5M12 15l4.5-4.5M5 19.5h14"/>',
    "volume": '<path d="M4 9.5v5h3.5L12 18.5v-13L7.5 9.5z" fill="currentColor"/>'
    '<path d="M15.5 9a4.2 4.2 0 0 1 0 6M18 6.5a8 8 0 0 1 0 11"/>',
    "pencil": '<path d="M5 19l1-4L16 5l3 3L9 18z"/>',
    "bin": '<path d="M5 7h14M9.5 7V4.5h5V7M7 7l.8 12.5h8.4L17 7"/>',
    "plus": '<path d="M12 5v14M5 12h14"/>',
}


def _symbol(name: str, path: str) -> str:
    return f'<symbol id="icon-{name}" viewBox="0 0 24 24">{path}</symbol>'


ICONS = (
    '<svg class="visually-hidden" aria-hidden="true">'
    + "".join(_symbol(name, path) for name, path in _PATHS.items())
    + "</svg>"
)
"""The sprite; it must stand in the page once."""


def icon(name: str) -> str:
    """Refer to an icon of the sprite; the control around it carries the name for readers."""
    assert name in _PATHS, f"no icon is called {name}"
    return f'<svg class="icon" aria-hidden="true"><use href="#icon-{name}"></use></svg>'
