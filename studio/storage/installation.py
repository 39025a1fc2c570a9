"""Where the studio's own files are: in a clone of the repository, or in an installed package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]

IS_PACKAGED = (_PACKAGE / "assets").is_dir()
"""Whether this is the wheel, which holds `assets` inside `studio`; a clone has them beside it."""

ASSETS = (_PACKAGE if IS_PACKAGED else _PACKAGE.parent) / "assets"
"""Folder of `page` (scripts, styles, HTML) and `dialogs` (samples)."""


def default_workspace() -> Path:
    """The workspace of somebody who names none.

    Returns:
        `workspace` in the clone; `Tableread` in the user's home where the studio is a package,
        since whoever renews a package's environment removes all that lies in it.
    """
    return Path.home() / "Tableread" if IS_PACKAGED else _PACKAGE.parent / "workspace"
