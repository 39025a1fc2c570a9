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
    "minus": '<path d="M5 12h14"/>',
    "up": '<path d="M6 15l6-6 6 6"/>',
    "down": '<path d="M6 9l6 6 6-6"/>',
    "undo": '<path d="M8 5L4 9l4 4M4 9h10a6 6 0 0 1 0 12h-3"/>',
    "redo": '<path d="M16 5l4 4-4 4M20 9H10a6 6 0 0 0 0 12h3"/>',
    "again": '<path d="M19.5 12a7.5 7.5 0 1 1-2.4-5.5M19.5 3.5v4h-4"/>',
    "lock": '<rect x="5.5" y="10.5" width="13" height="9.5" rx="2"/>'
    '<path d="M8.5 10.5V7.5a3.5 3.5 0 0 1 7 0v3"/>',
    "copy": '<rect x="8.5" y="8.5" width="11" height="11" rx="2"/>'
    '<path d="M15.5 8.5v-2a2 2 0 0 0-2-2h-7a2 2 0 0 0-2 2v7a2 2 0 0 0 2 2h2"/>',
    "find": '<circle cx="10.5" cy="10.5" r="6"/><path d="M15 15l5 5"/>',
    "loop": '<path d="M17 3l3.5 3.5L17 10M20 6.5H8a4.5 4.5 0 0 0-4.5 4.5M7 21l-3.5-3.5L7 14'
    'M4 17.5h12a4.5 4.5 0 0 0 4.5-4.5"/>',
    "grip": '<path d="M9 6h.01M15 6h.01M9 12h.01M15 12h.01M9 18h.01M15 18h.01"/>',
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
