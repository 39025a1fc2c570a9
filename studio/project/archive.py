"""A project as one file, with its takes and its history: `.tableread.zip`."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from studio.audio.atomic_file import replacing, storage_errors
from studio.errors import BadInput, StudioError
from studio.project import folder as places
from studio.project.checks import file_name
from studio.project.disk import Disk
from studio.project.session import Session

SUFFIX = ".tableread.zip"
MAX_FILES = 200_000
MAX_BYTES = 20_000_000_000
_MAX_RATIO = 200
"""JSON and silence shrink well; nothing of a project shrinks more than this."""
_SMALL_BYTES = 10_000_000

_PARTS = re.compile(
    rf"{re.escape(places.SNAPSHOT)}|{re.escape(places.JOURNAL)}"
    rf"|{places.TAKES}/[0-9a-f]{{12}}/[0-9a-f]{{16}}\.(?:wav|json)"
)


def write_archive(session: Session, path: Path) -> None:
    """Write a project as one file; whole or not there.

    Raises:
        StorageFailed: It can't be written.
    """
    with session.lock:
        session.tidy(now=True)
        root = session.folder.root
        # The lock is held until the last file is in, so that they all are of one moment.
        with replacing(path) as file, zipfile.ZipFile(file, "w", strict_timestamps=False) as packed:
            for part in _parts_of(root):
                kind = zipfile.ZIP_STORED if part.suffix == ".wav" else zipfile.ZIP_DEFLATED
                packed.write(part, part.relative_to(root).as_posix(), kind)


def is_archive(file: BinaryIO) -> bool:
    """Whether a file is a project's, by its content."""
    if not zipfile.is_zipfile(file):
        return False
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            return places.SNAPSHOT in archive.namelist()
    except zipfile.BadZipFile:
        return False


def unpack(file: BinaryIO, target: Path, disk: Disk) -> None:
    """Bring a project's file into an empty folder.

    Every name is held to those a project has, so nothing is written elsewhere; sizes are bounded
    before and while they are unpacked.

    Raises:
        BadInput: It is no such file, damaged, or too large.
        StorageFailed: There is no room.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = list(_checked(archive))
            for member in members:
                part = target / member.filename
                disk.make_folder(part.parent)
                with storage_errors(part), archive.open(member) as source, part.open("xb") as into:
                    shutil.copyfileobj(source, into, 1 << 20)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        raise BadInput("This project file is damaged. Export it again.") from error
    except RuntimeError as error:
        raise BadInput("This project file is locked with a password.") from error


def _parts_of(root: Path) -> Iterator[Path]:
    for part in sorted(root.rglob("*")):
        if part.is_file() and _is_part(part.relative_to(root).as_posix()):
            yield part


def _checked(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    members = archive.infolist()
    if len(members) > MAX_FILES or sum(member.file_size for member in members) > MAX_BYTES:
        raise BadInput("This project file is too large.")
    names = [member.filename for member in members]
    if len(set(names)) != len(names) or places.SNAPSHOT not in names:
        raise BadInput("This is no project file. Export one with “Export project”.")
    for member in members:
        if member.is_dir():
            continue
        packed = max(member.compress_size, _SMALL_BYTES // _MAX_RATIO)
        if member.file_size > packed * _MAX_RATIO:
            raise BadInput(f"“{member.filename[:80]}” in this project file is too large.")
        if not _is_part(member.filename):
            raise BadInput(f"“{member.filename[:80]}” is nothing that belongs to a project.")
        yield member


def _is_part(name: str) -> bool:
    if _PARTS.fullmatch(name):
        return True
    path = PurePosixPath(name)
    if len(path.parts) != 2 or path.parts[0] != places.AUDIO:
        return False
    try:
        return file_name(path.name) == path.name and f"{places.AUDIO}/{path.name}" == name
    except StudioError:
        return False
