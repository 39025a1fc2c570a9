"""A project as one file, `.tableread.zip`: writes, unpacks within bounds, and validates it."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from studio.audio.file_tags import read_cover
from studio.dialog.model import clean_name, name_key
from studio.dialog.pronunciation import Pronunciation, check_pronunciations
from studio.errors import BadInput, StorageFailed, StudioError
from studio.project import folder as layout
from studio.project.characters import Character, check_character
from studio.project.comments import Comment, check_kept_comment
from studio.project.delta import TAKE_FIELDS, apply_delta, parse_changed_entries, read_delta
from studio.project.document import (
    LINE_ADAPTER,
    Document,
    check_audio_name,
    check_line,
    check_take_ids,
    clean_project_name,
)
from studio.project.draft import check_bounds
from studio.project.edits import check_settings
from studio.project.folder import COVER_FILE, JOURNAL_FILE, SNAPSHOT_FILE
from studio.project.history import EntryKind, read_entries
from studio.project.session import ProjectSession
from studio.project.snapshot import (
    MAX_SNAPSHOT_BYTES,
    ProjectSnapshot,
    decode_snapshot,
)
from studio.storage.disk import Disk, open_atomic, storage_errors
from studio.storage.json_bounds import count_values, has_too_many_values
from studio.storage.records import MAX_TIME_S
from studio.storage.zip_members import (
    ZipWriter,
    build_zip_info,
    count_members,
    open_zip,
    read_member,
)
from studio.voices.voice_pack import VOICE_PACK_SUFFIX as PACK

PROJECT_SUFFIX = ".tableread.zip"
MAX_FILES = 100_000
MAX_BYTES = 100_000_000_000
"""Limit of all files together; the disk must have room for them, too."""

_MIN_FILE_BYTES = 4_096
"""What even an empty file takes of a disk."""

_AT_ONCE_BYTES = 1 << 20
"""Of a member; most are smaller, and are read and written by one call each."""

_MAX_COMPRESSION_RATIO = 200
"""Limit against zip bombs: JSON and silence compress well, but nothing of a project more."""
_SMALL_BYTES = 10_000_000

_MAX_RECORD_BYTES = 4_000_000
"""Limit of a take's record; that of the longest line has half of it."""

_RECORD_BYTES = 8_000
_SPARE_RECORD_BYTES = 40_000_000
"""How large the records of takes are, each and besides: all of them stay in memory."""

_RECORD_VALUES = 150
_SPARE_VALUES = 2_000_000
"""How many values they hold, each and besides: of 400,000 words, which take 86 MB."""

_MAX_ID_CHARS = 100
_TOO_LARGE = "This project file is too large. Export it without deleted takes."
_DAMAGED = "This project file is damaged. Export it again."
_FIRST_NAME_END = 30 + len(layout.SNAPSHOT_FILE)
"""Where the name of the first member ends, which is the snapshot."""
_MAX_NAME_BYTES = 255
"""What file systems take."""

_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:[. ]|$)", re.IGNORECASE)
"""Windows writes to a device instead of such a file; no studio names one so."""

_MEMBER_NAMES = re.compile(
    rf"{re.escape(layout.SNAPSHOT_FILE)}|{re.escape(layout.JOURNAL_FILE)}"
    rf"|{layout.TAKES_FOLDER}/[0-9a-f]{{12}}/[0-9a-f]{{16}}\.(?:wav|json)"
    rf"|{layout.COVER_FILE}"
    rf"|{layout.VOICES_FOLDER}/[0-9a-f]{{12}}{re.escape(PACK)}"
)


def write_archive(session: ProjectSession, path: Path, *, deleted: bool = True) -> None:
    """Write a project as one file, with the voices of its cast; the file is whole or absent.

    The project can be edited meanwhile; the file has its state at the start.

    Args:
        session: The project.
        path: The file.
        deleted: Whether to include the audio of deleted takes, for undo.
    """
    frozen = session.freeze()
    with open_atomic(path) as file, ZipWriter(file) as packed:
        packed.writestr(layout.SNAPSHOT_FILE, frozen.snapshot, zipfile.ZIP_DEFLATED)
        with _open_member(packed, layout.JOURNAL_FILE, zipfile.ZIP_DEFLATED) as member:
            for block in frozen.read_journal():
                member.write(block)
        for part in frozen.iter_files(deleted=deleted):
            name = part.relative_to(frozen.root).as_posix()
            kind = zipfile.ZIP_STORED if part.suffix == ".wav" else zipfile.ZIP_DEFLATED
            if _is_member_name(name) and part.is_file():  # a pipe would be waited for
                with suppress(FileNotFoundError):  # freed meanwhile
                    packed.write(part, name, kind)
        for speaker_id, pack in session.export_voices():
            with _open_member(packed, f"{layout.VOICES_FOLDER}/{speaker_id}{PACK}") as member:
                shutil.copyfileobj(pack, member)


def open_archive(file: BinaryIO) -> zipfile.ZipFile | None:
    """A project's file, opened; None of another file.

    Args:
        file: Seekable; it stays open when the archive is closed.

    Raises:
        BadInput: It has too many members, or is damaged.
    """
    if count_members(file) > MAX_FILES:
        raise BadInput(_TOO_LARGE)
    try:
        archive = open_zip(file)
    except zipfile.BadZipFile as error:
        file.seek(0)
        if file.read(_FIRST_NAME_END).endswith(layout.SNAPSHOT_FILE.encode()):  # it is cut off
            raise BadInput(_DAMAGED) from error
        return None
    return archive if layout.SNAPSHOT_FILE in archive.NameToInfo else None


def count_voices(archive: zipfile.ZipFile) -> int:
    """How many voices a project's file has, each of which may have several recordings."""
    return sum(name.startswith(f"{layout.VOICES_FOLDER}/") for name in archive.NameToInfo)


def unpack(
    archive: zipfile.ZipFile, target: Path, disk: Disk, *, max_bytes: int | None = None
) -> None:
    """Unpack a project's file into an empty folder.

    Only names that a project has are allowed, so nothing is written elsewhere; sizes are checked
    before and during the unpacking.

    Args:
        archive: As `open_archive` opens it.
        target: The folder.
        disk: Writes the files.
        max_bytes: Limit of the unpacked size; None for that of the studio's owner.

    Raises:
        BadInput: It isn't a project's file, is damaged, or too large.
    """
    try:
        members = list(_check_members(archive, MAX_BYTES if max_bytes is None else max_bytes))
        disk.check_free_space(target, _needed_bytes(members))
        for parent in {member.filename.rpartition("/")[0] for member in members}:
            disk.make_folder(target / parent)
        records = [member.file_size for member in members if _is_record(member)]
        if sum(records) > _SPARE_RECORD_BYTES + _RECORD_BYTES * len(records):
            raise BadInput(_TOO_LARGE)
        left_values = _SPARE_VALUES + _RECORD_VALUES * len(records)
        for member in members:
            left_values -= _unpack_member(archive, member, target, disk)
            if left_values < 0:
                raise BadInput(_TOO_LARGE)
    except (zipfile.BadZipFile, ValueError) as error:
        raise BadInput(_DAMAGED) from error
    except RuntimeError as error:
        raise BadInput("This project file is locked with a password.") from error


def _is_record(member: zipfile.ZipInfo) -> bool:
    return member.filename.endswith(".json") and member.filename.startswith(layout.TAKES_FOLDER)


def _unpack_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, disk: Disk
) -> int:
    """Unpack a file; returns how many values it holds if it is a take's record."""
    blocks = read_member(archive, member, _AT_ONCE_BYTES)
    if "/" not in member.filename:  # the lines, which survive a power failure from now on
        disk.write_whole(target / member.filename, blocks)
        return 0
    path = f"{target}{os.sep}{member.filename}"
    try:
        # Not by a `Path`, which takes a tenth of the time, as there may be 100,000.
        with open(path, "xb") as into:  # noqa: PTH123
            if not _is_record(member):
                into.writelines(blocks)
                return 0
            data = b"".join(blocks)
            into.write(data)
            return count_values(data)
    except OSError:
        with storage_errors(Path(path)):
            raise


def _open_member(packed: zipfile.ZipFile, name: str, kind: int = zipfile.ZIP_STORED) -> IO[bytes]:
    info = build_zip_info(name)
    info.compress_type = kind
    return packed.open(info, "w", force_zip64=True)


def _needed_bytes(members: Iterable[zipfile.ZipInfo]) -> int:
    return sum(max(member.file_size, _MIN_FILE_BYTES) for member in members)


def _check_members(archive: zipfile.ZipFile, max_bytes: int) -> Iterator[zipfile.ZipInfo]:
    members = archive.infolist()
    if len(members) > MAX_FILES or _needed_bytes(members) > max_bytes:
        raise BadInput(_TOO_LARGE)
    names = [member.filename for member in members]
    if len(set(names)) != len(names) or layout.SNAPSHOT_FILE not in names:
        raise BadInput("This is no project file. Export one with “Export project”.")
    for member in members:
        if member.is_dir():
            continue
        packed = max(member.compress_size, _SMALL_BYTES // _MAX_COMPRESSION_RATIO)
        is_long = _is_record(member) and member.file_size > _MAX_RECORD_BYTES
        if is_long or member.file_size > packed * _MAX_COMPRESSION_RATIO:
            raise BadInput(f"“{member.filename[:80]}” in this project file is too large.")
        if not _is_member_name(member.filename):
            raise BadInput(f"“{member.filename[:80]}” is nothing that belongs to a project.")
        yield member


def _is_member_name(name: str) -> bool:
    if _MEMBER_NAMES.fullmatch(name):
        return True
    path = PurePosixPath(name)
    if len(path.parts) != 2 or path.parts[0] != layout.AUDIO_FOLDER or _DEVICE.match(path.name):
        return False
    if len(path.name.encode(errors="replace")) > _MAX_NAME_BYTES:
        return False
    try:
        return (
            check_audio_name(path.name) == path.name
            and f"{layout.AUDIO_FOLDER}/{path.name}" == name
        )
    except StudioError:
        return False


_Offset = Annotated[int, Field(ge=0)]
_LineId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
_FieldName = Literal[
    "name",
    "cast",
    "first_names",
    "settings",
    "locked_takes",
    "deleted_takes",
    "accepted_takes",
    "pronunciations",
    "starred_takes",
    "comments",
    "characters",
]
_LineSide = dict[str, Any] | None
_OrderChange = tuple[_Offset, list[_LineId], list[_LineId], _LineId | None]
_LegacyOrderChange = tuple[_Offset, list[_LineId], list[_LineId]]


class _DeltaRecord(BaseModel):
    lines: dict[_LineId, tuple[_LineSide, _LineSide]] = {}
    order: _OrderChange | _LegacyOrderChange | None = None
    fields: dict[_FieldName, tuple[Any, Any]] = {}


class _EntryRecord(BaseModel):
    """The schema of a journal's entry, as `History` writes it."""

    model_config = ConfigDict(extra="forbid")

    rev: _Offset
    at: Annotated[float, Field(ge=0, le=MAX_TIME_S)]
    client: str
    group: str | None = None
    edit_id: str | None = None
    kind: EntryKind
    joined: bool = False
    next: _Offset | None = None
    below: _Offset | None
    gone: tuple[_Offset, ...] = ()
    delta: _DeltaRecord


_DOCUMENT_ADAPTER: TypeAdapter[Document] = TypeAdapter(Document)


def validate_import(root: Path) -> None:
    """Check that a folder's snapshot and history are as a studio writes them.

    Raises:
        BadInput: They aren't, so that the project couldn't be opened, shown or undone.
    """
    if (root / SNAPSHOT_FILE).stat().st_size > MAX_SNAPSHOT_BYTES:
        raise BadInput("This project file is too large.")
    try:
        data = (root / SNAPSHOT_FILE).read_bytes()
        if has_too_many_values(data):
            raise BadInput("This project file is too large.")
        snapshot = decode_snapshot(data)
        _check_document(snapshot.document)
        if (root / COVER_FILE).is_file():
            _ = read_cover(root / COVER_FILE)
        if (root / JOURNAL_FILE).is_file():
            _check_history(root / JOURNAL_FILE, snapshot)
    except StorageFailed as error:
        raise BadInput(str(error)) from error
    except (ValueError, LookupError, TypeError, AssertionError) as error:
        raise BadInput(_DAMAGED) from error


def _check_history(path: Path, snapshot: ProjectSnapshot) -> None:
    """Check that a snapshot fits its journal, and that the chain of undo steps ends."""
    starts: set[int | None] = {None}
    end, document = 0, snapshot.document
    for placed in read_entries(path):
        entry = _EntryRecord.model_validate(placed.entry)
        if not {entry.next, entry.below, *entry.gone} <= starts:
            raise ValueError("an entry leads to none before it")
        _check_values(entry.delta)
        if placed.start >= snapshot.journal_bytes:
            document = apply_delta(document, read_delta(placed.entry["delta"]))
        starts.add(placed.start)
        end = placed.end
    size = path.stat().st_size
    if end < size:
        raise ValueError("a line of it isn't whole")
    if snapshot.journal_bytes < size and snapshot.journal_bytes not in starts:
        raise ValueError("the lines go on within an entry")
    # If the journal is too short, they are dropped when the project is opened.
    if snapshot.journal_bytes <= size and not {snapshot.marks.undo, snapshot.marks.redo} <= starts:
        raise ValueError("undo leads to no entry")
    _check_document(document)


def _check_document(document: Document) -> None:
    if sorted(document.order) != sorted(document.lines):
        raise ValueError("what is heard aren't the lines")
    _check_pronunciations(document.pronunciations)
    _check_characters(document.characters)
    _check_fields(document)
    check_bounds(Document(), document)
    for line in document:
        check_line(line)
    _check_comments(document.comments)


def _check_values(delta: _DeltaRecord) -> None:
    for line_id, sides in delta.lines.items():
        for side in filter(None, sides):
            check_line(LINE_ADAPTER.validate_python({**side, "line_id": line_id}))
    for values in zip(*delta.fields.values(), strict=True):
        fields = dict(zip(delta.fields, values, strict=True))
        _check_pronunciations(
            parse_changed_entries("pronunciations", fields.pop("pronunciations", {}))
        )
        _check_comments(parse_changed_entries("comments", fields.pop("comments", {})))
        _check_characters(parse_changed_entries("characters", fields.pop("characters", {})))
        checked = _DOCUMENT_ADAPTER.validate_python(fields)
        _check_fields(checked)


def _check_fields(document: Document) -> None:
    """Check what a document has besides lines, pronunciations, comments and characters."""
    _check_names(document.name, document.cast, document.first_names)
    check_settings(document.settings)
    for name in TAKE_FIELDS:
        check_take_ids(getattr(document, name))


def _check_names(
    project: str, cast: Mapping[str, str | None], first_names: Mapping[str, str | None]
) -> None:
    """Check that names are such as an edit leaves; a project without edits has none."""
    if project and clean_project_name(project) != project:
        raise ValueError("the project's name isn't as it is kept")
    for name in (*cast, *first_names, *filter(None, first_names.values())):
        if clean_name(name) != name:
            raise ValueError("a speaker's name isn't as it is kept")
    if any(len(voice or "") > _MAX_ID_CHARS for voice in cast.values()):
        raise ValueError("a voice's id is too long")


def _check_comments(comments: Mapping[str, Comment]) -> None:
    for one in comments.values():
        check_kept_comment(one)


def _check_characters(characters: Mapping[str, Character]) -> None:
    for name, character in characters.items():
        if name_key(clean_name(name)) != name:
            raise ValueError("a character's name isn't as it is kept")
        try:
            check_character(character)
        except StudioError as error:
            raise ValueError(str(error)) from error


def _check_pronunciations(entries: Mapping[str, Pronunciation]) -> None:
    try:
        checked = check_pronunciations(entries.values())
    except BadInput as error:
        raise ValueError(str(error)) from error
    if {one.written: one for one in checked} != entries:
        raise ValueError("a pronunciation isn't as it is kept")
