"""The cover of a project: an image that lies in its folder and goes into its sound files.

It is no part of the document: it belongs to what is exported, and undo doesn't touch it. A record
beside it has its checksum; the first studios wrote none, and copies of a project have none until
they are opened.
"""

from __future__ import annotations

import logging
import zlib
from contextlib import suppress
from pathlib import Path

from studio.audio.file_tags import Cover, read_cover
from studio.errors import BadInput, FormatNewer, StorageFailed
from studio.project.folder import COVER_FILE, ProjectFolder
from studio.storage.disk import read_file, storage_errors
from studio.storage.records import RecordFormat, mend, set_aside

log = logging.getLogger(__name__)

COVER_RECORD = "cover.json"
COVER_FORMAT = RecordFormat("The record of the cover")


def read_project_cover(root: Path) -> Cover | None:
    """The cover in a project's folder; None if there is none, or it can't be read any more."""
    path = root / COVER_FILE
    if not path.is_file():
        return None
    try:
        cover = read_cover(path)
    except BadInput:
        return None
    checksum = _read_checksum(root)
    if checksum is not None and checksum != zlib.crc32(cover.data):
        log.warning("%s has changed since it was chosen, so there is no cover", path)
        return None
    return cover


def save_project_cover(folder: ProjectFolder, cover: Cover | None) -> None:
    """Keep an image as the cover, or none.

    Raises:
        StorageFailed: It can't be written; the earlier one stays.
    """
    path = folder.root / COVER_FILE
    if cover is not None:
        _ = cover.image
    # First, as an image without a record is whole, and a record belongs to its image.
    folder.disk.remove(folder.root / COVER_RECORD)
    if cover is None:
        folder.disk.remove(path)
        return
    folder.disk.write_whole(path, cover.data)
    _write_record(folder, cover)


def check_project_cover(folder: ProjectFolder) -> None:
    """Rename a cover that has changed since it was chosen, with a notice."""
    path, checksum = folder.root / COVER_FILE, _read_checksum(folder.root)
    if not path.is_file():
        if checksum is not None:
            folder.notices.append(f"The {COVER_FILE} isn't there any more. Choose the image again.")
            _remove_record(folder)
        return
    cover = read_project_cover(folder.root)
    if cover is not None:
        if checksum is None:
            _write_record(folder, cover)
        return
    try:
        with storage_errors(path):
            kept = set_aside(folder.disk, path)
        folder.disk.remove(path)
        _remove_record(folder)
        remedy = f"it is kept as “{kept.name}”. Choose the image again."
    except StorageFailed:
        remedy = "choose the image again."
    folder.notices.append(f"The {COVER_FILE} was damaged; {remedy}")


def _read_checksum(root: Path) -> int | None:
    """The checksum of the image; None if there is no record, or it can't be read."""
    with suppress(OSError, ValueError, FormatNewer):
        checksum = COVER_FORMAT.decode(mend(read_file(root / COVER_RECORD))).get("crc32")
        return checksum if isinstance(checksum, int) else None
    return None


def _write_record(folder: ProjectFolder, cover: Cover) -> None:
    with suppress(StorageFailed):  # an image without one counts, too
        record = {"crc32": zlib.crc32(cover.data)}
        COVER_FORMAT.write(folder.disk, folder.root / COVER_RECORD, record)


def _remove_record(folder: ProjectFolder) -> None:
    with suppress(StorageFailed):
        folder.disk.remove(folder.root / COVER_RECORD)
