"""The cover of a project: an image that lies in its folder and goes into its sound files.

It is no part of the document: it belongs to what is exported, and undo doesn't touch it.
"""

from __future__ import annotations

from pathlib import Path

from studio.audio.file_tags import Cover, read_cover
from studio.errors import BadInput
from studio.project.folder import COVER_FILE, ProjectFolder


def read_project_cover(root: Path) -> Cover | None:
    """The cover in a project's folder; None if there is none, or it can't be read any more."""
    path = root / COVER_FILE
    if not path.is_file():
        return None
    try:
        return read_cover(path)
    except BadInput:
        return None


def save_project_cover(folder: ProjectFolder, cover: Cover | None) -> None:
    """Keep an image as the cover, or none.

    Raises:
        BadInput: It is no JPEG or PNG image, or too large.
        StorageFailed: It can't be written; the earlier one stays.
    """
    path = folder.root / COVER_FILE
    if cover is None:
        folder.disk.remove(path)
        return
    _ = cover.image
    folder.disk.write_whole(path, cover.data)
