"""A project as one file, with its takes and its history: `.tableread.zip`."""

from __future__ import annotations

import lzma
import re
import shutil
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from studio.audio.atomic_file import replacing, storage_errors
from studio.errors import BadInput, StudioError
from studio.project import folder as places
from studio.project.checks import file_name
from studio.project.disk import Disk
from studio.project.session import Session
from studio.speakers.pack import SUFFIX as PACK

SUFFIX = ".tableread.zip"
MAX_FILES = 200_000
MAX_BYTES = 100_000_000_000
"""Of all files, which the disk has to have room for besides."""

_MAX_RATIO = 200
"""JSON and silence shrink well; nothing of a project shrinks more than this."""
_SMALL_BYTES = 10_000_000
_DAMAGED = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, NotImplementedError,
    EOFError, ValueError,
)  # fmt: skip

_PARTS = re.compile(
    rf"{re.escape(places.SNAPSHOT)}|{re.escape(places.JOURNAL)}"
    rf"|{places.TAKES}/[0-9a-f]{{12}}/[0-9a-f]{{16}}\.(?:wav|json)"
    rf"|{places.VOICES}/[0-9a-f]{{12}}{re.escape(PACK)}"
)


def write_archive(session: Session, path: Path, *, deleted: bool = True) -> None:
    """Write a project as one file, with the voices of its cast; whole or not there.

    Nobody waits for it: the file is of the moment at which this began.

    Args:
        session: The project.
        path: The file.
        deleted: Also deleted takes, so that undo finds them with their audio.

    Raises:
        StorageFailed: It can't be written.
    """
    moment = session.moment()
    with replacing(path) as file, zipfile.ZipFile(file, "w", strict_timestamps=False) as packed:
        packed.writestr(places.SNAPSHOT, moment.snapshot, zipfile.ZIP_DEFLATED)
        with _member(packed, places.JOURNAL, zipfile.ZIP_DEFLATED) as member:
            for block in moment.journal():
                member.write(block)
        for part in moment.files(deleted=deleted):
            name = part.relative_to(moment.root).as_posix()
            kind = zipfile.ZIP_STORED if part.suffix == ".wav" else zipfile.ZIP_DEFLATED
            if _is_part(name):
                with suppress(FileNotFoundError):  # freed meanwhile
                    packed.write(part, name, kind)
        for speaker_id, pack in session.voice_packs():
            with _member(packed, f"{places.VOICES}/{speaker_id}{PACK}") as member:
                shutil.copyfileobj(pack, member)


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


def unpack(file: BinaryIO, target: Path, disk: Disk, *, max_bytes: int | None = None) -> None:
    """Bring a project's file into an empty folder.

    Every name is held to those a project has, so nothing is written elsewhere; sizes are bounded
    before and while they are unpacked.

    Args:
        file: Seekable.
        target: The folder.
        disk: Writes.
        max_bytes: What all may take unpacked; None for what a studio's owner may.

    Raises:
        BadInput: It is no such file, damaged, or too large.
        StorageFailed: There is no room.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = list(_checked(archive, MAX_BYTES if max_bytes is None else max_bytes))
            disk.check_room(target, sum(member.file_size for member in members))
            for member in members:
                part = target / member.filename
                disk.make_folder(part.parent)
                with storage_errors(part), archive.open(member) as source, part.open("xb") as into:
                    shutil.copyfileobj(source, into, 1 << 20)
    except _DAMAGED as error:
        raise BadInput("This project file is damaged. Export it again.") from error
    except RuntimeError as error:
        raise BadInput("This project file is locked with a password.") from error


def _member(packed: zipfile.ZipFile, name: str, kind: int = zipfile.ZIP_STORED) -> IO[bytes]:
    info = zipfile.ZipInfo(name, time.localtime()[:6])
    info.compress_type = kind
    return packed.open(info, "w", force_zip64=True)


def _checked(archive: zipfile.ZipFile, max_bytes: int) -> Iterator[zipfile.ZipInfo]:
    members = archive.infolist()
    if len(members) > MAX_FILES or sum(member.file_size for member in members) > max_bytes:
        raise BadInput("This project file is too large. Export it without deleted takes.")
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
