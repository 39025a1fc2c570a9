"""A project's folder: what lies where, how it is opened and saved, and how it is copied.

project.json     a recent snapshot of the document, with its position in the journal
edits.jsonl      the journal: every change ever made
pending.json     lines that a render still has to make; absent if there are none
place.json       the last position
judge.json       how good the checks are on its takes; absent until that was judged
takes/           audio and record of every take
audio/           recordings that audio lines play
cover            the image that sound files carry; absent if none was chosen
cover.json       its checksum
voices/          voices of an imported project, until they are in the library
.making/         segments in progress; deleted at a restart
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Annotated, Any, BinaryIO

from filelock import FileLock, Timeout
from pydantic import ConfigDict, Field, TypeAdapter

from studio.audio.decode import DEFAULT_LIMITS
from studio.audio.file_tags import SOFTWARE
from studio.audio.guarded_decode import decode_guarded
from studio.errors import (
    AudioRejected,
    Conflict,
    FileDamaged,
    FormatNewer,
    NotFound,
    StorageFailed,
)
from studio.project.document import Document, LineKind, check_audio_name, count_numbered
from studio.project.history import (
    EVEN_LINES,
    Author,
    EntryKind,
    History,
    Journal,
    Marks,
    is_intact,
)
from studio.project.journal_repair import (
    UNFIT_ERRORS,
    Recovery,
    build_journal,
    recover_document,
)
from studio.project.ops import LineId
from studio.project.snapshot import (
    SNAPSHOT_FORMAT,
    HistoryRecord,
    ProjectSnapshot,
    decode_snapshot,
    encode_snapshot,
    read_snapshot,
)
from studio.project.takes import FREED_SUFFIX, UnusedTakes
from studio.storage.disk import (
    UNFINISHED,
    Disk,
    hash_file,
    open_file,
    read_file,
    read_json,
    storage_errors,
)
from studio.storage.json_bounds import BoundedModel
from studio.storage.records import LOST_ERRORS, RecordFormat, set_aside

PENDING_FORMAT = RecordFormat("The list of lines to render")
POSITION_FORMAT = RecordFormat("The last position")
SNAPSHOT_FILE = "project.json"
JOURNAL_FILE = "edits.jsonl"
PENDING_FILE = "pending.json"
TAKES_FOLDER = "takes"
AUDIO_FOLDER = "audio"
VOICES_FOLDER = "voices"
COVER_FILE = "cover"
SEGMENTS_FOLDER = ".making"
LOCK_FILE = ".lock"


@dataclass(frozen=True, slots=True)
class OpenedHistory:
    """A project's history.

    Attributes:
        edit_ids: The ids of edits that took effect, the latest last.
        is_saved: Whether the snapshot on disk is complete, and of the current version.
    """

    history: History
    journal: Journal
    edit_ids: tuple[str, ...] = ()
    is_saved: bool = True


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """A project in a list.

    Attributes:
        edited_at_s: In seconds since 1970.
        lines: Its rows, pauses and headings included.
        numbered: Its lines as the page numbers them: those that sound.
        problem: Why it can't be read whole, or at all; None if nothing is known to be wrong.
        voices: The ids of the library's voices that its cast names.
    """

    project_id: str
    name: str
    edited_at_s: float
    lines: int
    audio_s: float
    numbered: int
    problem: str | None = None
    voices: tuple[str, ...] = ()


class ProjectFolder:
    """One folder, held by one process at a time."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Lock a project's folder.

        Raises:
            NotFound: There is no such project.
            Conflict: Another studio has it open.
        """
        self.root = root
        self._check_presence()
        self.disk = disk
        # The system releases the lock when the process ends in any way. It isn't bound to a thread,
        # as one thread opens a project and another one closes it.
        self._file_lock = FileLock(root / LOCK_FILE, timeout=0, thread_local=False)
        with storage_errors(root / LOCK_FILE):
            try:
                self._file_lock.acquire()
            except Timeout as error:  # which is an OSError, too
                message = "This project is open in another studio. Close it there first."
                raise Conflict(message) from error
        try:
            self._check_presence()  # it may have been removed until the lock was held
        except NotFound:
            self.close()
            with suppress(OSError):
                (root / LOCK_FILE).unlink(missing_ok=True)
                root.rmdir()  # the lock may have made it anew
            raise
        self._mark_lock()
        self.notices: list[str] = []

    def _check_presence(self) -> None:
        if not _has_files(self.root):
            raise NotFound("This project isn't there any more.")

    @staticmethod
    def create(root: Path, document: Document, at_s: float, disk: Disk) -> None:
        """Create a new project's folder.

        Raises:
            StorageFailed: It can't be written; the project isn't created.
        """
        try:
            disk.make_folder(root)
            journal = Journal(root / JOURNAL_FILE, disk)
            try:
                # In the journal, too, which must be complete without the snapshot.
                history = History(journal, Document(), Marks())
                history.record(document, Author(SOFTWARE + EVEN_LINES), at_s, EntryKind.MADE)
                journal.sync()
            finally:
                journal.close()
            snapshot = ProjectSnapshot(document, history.marks, journal.size_bytes)
            disk.write_whole(root / SNAPSHOT_FILE, encode_snapshot(snapshot))
        except StorageFailed:
            disk.remove(root)
            raise

    def open_history(self) -> OpenedHistory:
        """Read the document and its history from disk; what is damaged is mended, with a notice.

        Raises:
            StorageFailed: Neither snapshot nor journal can be read.
            FormatNewer: A newer studio wrote one of them.
        """
        snapshot, is_saved = self._read_snapshot()
        is_intact_journal = self._has_intact_journal(snapshot)
        if not is_intact_journal:
            snapshot, is_saved = self._repair_journal(snapshot), False
        for pattern in (SEGMENTS_FOLDER, UNFINISHED, f"{AUDIO_FOLDER}/{UNFINISHED}"):
            for leftover in self.root.glob(pattern):
                self.disk.remove(leftover)
        try:
            journal, history, edit_ids = self._replay(snapshot)
        except UNFIT_ERRORS:  # the lines are whole, but don't fit each other
            is_intact_journal = False
            snapshot, is_saved = self._repair_journal(snapshot), False
            journal, history, edit_ids = self._replay(snapshot)
        self.set_aside_damaged(_POSITION_FILE, POSITION_FORMAT, "The last position is lost.")
        self._compare_position(history.marks.rev, is_said=not is_intact_journal)
        if not is_saved:
            self.save_snapshot(
                ProjectSnapshot(history.document, history.marks, journal.size_bytes, edit_ids)
            )
        return OpenedHistory(history, journal, edit_ids, is_saved)

    def _replay(self, snapshot: ProjectSnapshot) -> tuple[Journal, History, tuple[str, ...]]:
        """Apply the entries after a snapshot; returns also the ids of all known edits."""
        journal = Journal(self.root / JOURNAL_FILE, self.disk)
        try:
            history = History(journal, snapshot.document, snapshot.marks)
            edit_ids = list(snapshot.edit_ids)
            for placed in journal.replay(snapshot.journal_bytes):
                history.replay(placed.entry, placed.start)
                edit_ids += [placed.entry["edit_id"]] if "edit_id" in placed.entry else []
        except BaseException:
            journal.close()
            raise
        if journal.is_cut:
            self.notices.append(
                f"The end of {JOURNAL_FILE} was cut off; a change that wasn't saved yet is lost."
            )
        return journal, history, tuple(edit_ids)

    def _compare_position(self, rev: int, *, is_said: bool) -> None:
        """Tell by the last position that whole lines lack at the journal's end.

        It alone knows that there were more: such an end is like that of any other journal.

        Args:
            rev: The latest revision that is there.
            is_said: Whether a notice has said already that changes are lost.
        """
        record = _read_position(self.root)
        known = record.get("rev")
        lost = known - rev if isinstance(known, int) else 0
        if lost <= 0:
            return
        if not is_said:
            changes = "change" if lost == 1 else f"{lost} changes"
            self.notices.append(
                f"{JOURNAL_FILE} lacks the latest {changes}: it was cut off, or is an older copy."
            )
        POSITION_FORMAT.write(self.disk, self.root / _POSITION_FILE, {**record, "rev": rev})

    def _has_intact_journal(self, snapshot: ProjectSnapshot) -> bool:
        path = self.root / JOURNAL_FILE
        with storage_errors(path):
            if not path.exists():
                return not snapshot.journal_bytes
            try:
                return is_intact(path, snapshot.journal_bytes, snapshot.marks.rev)
            except PermissionError as error:
                raise _build_access_error(path, error) from error
            except OSError as error:
                if error.errno not in LOST_ERRORS or not snapshot.document.lines:
                    raise
                set_aside(self.disk, path)  # the lines are in the snapshot
                return False

    def _repair_journal(self, snapshot: ProjectSnapshot) -> ProjectSnapshot:
        """Replace a damaged journal, of which a copy is kept; returns a snapshot at its end."""
        path = self.root / JOURNAL_FILE
        with storage_errors(path):
            old_bytes = path.stat().st_size if path.exists() else 0
            kept = set_aside(self.disk, path) if old_bytes else None
            found, said = self._recover(snapshot, old_bytes)
        if found.is_alone:
            snapshot = self._drop_snapshot()
        data, marks = build_journal(found, snapshot.marks)
        edit_ids = (*snapshot.edit_ids, *found.edit_ids)
        latest = ProjectSnapshot(found.document, marks, len(data), edit_ids)
        # Should the process end before the last step, this points beyond either journal.
        self.save_snapshot(replace(latest, journal_bytes=len(data) + old_bytes))
        self.disk.write_whole(path, data)
        self.save_snapshot(latest)
        self.notices.append(said + (f" A copy is kept in “{kept.name}”." if kept else ""))
        return latest

    def _recover(self, snapshot: ProjectSnapshot, journal_bytes: int) -> tuple[Recovery, str]:
        """What is left of a damaged journal, and what to say of that."""
        document, marks = snapshot.document, snapshot.marks
        path, is_shorter = self.root / JOURNAL_FILE, journal_bytes < snapshot.journal_bytes
        found = Recovery(document, document=document, last_at_s=marks.at_s)
        if journal_bytes:
            read = recover_document(path, document, snapshot.journal_bytes, marks.rev)
            is_other = read.is_alone and not (read.document.lines.keys() & document.lines.keys())
            if not is_shorter or is_other:
                return read, _describe_recovery(read)
        return found, f"{JOURNAL_FILE} is shorter than it was; undo goes less far back."

    def _drop_snapshot(self) -> ProjectSnapshot:
        """An empty one instead of one that is of another history, which is kept."""
        path = self.root / SNAPSHOT_FILE
        with storage_errors(path):
            kept = set_aside(self.disk, path)
        self.notices.append(
            f"{SNAPSHOT_FILE} doesn't fit the history; it was made again from that. A copy of it "
            f"is kept in “{kept.name}”."
        )
        return ProjectSnapshot()

    def save_snapshot(self, snapshot: ProjectSnapshot) -> None:
        """Write a snapshot; the journal has to be synced before."""
        path = self.root / SNAPSHOT_FILE
        SNAPSHOT_FORMAT.keep_original(self.disk, path)
        self.disk.write_whole(path, encode_snapshot(snapshot))

    def read_pending(self) -> Mapping[str, int | None]:
        """The lines that a render still has to make, in order, with a new seed if one is wanted."""
        self.set_aside_damaged(PENDING_FILE, PENDING_FORMAT, "Press Render to go on.")
        try:
            pending = PENDING_FORMAT.decode(read_file(self.root / PENDING_FILE))["lines"]
            return _PENDING_ADAPTER.validate_python(pending)
        except (OSError, ValueError, LookupError, FormatNewer):
            return {}

    def write_pending(self, pending: Mapping[str, int | None]) -> None:
        """Save the lines that a render still has to make."""
        path = self.root / PENDING_FILE
        if not pending:
            PENDING_FORMAT.keep_original(self.disk, path)
            self.disk.remove(path)
            return
        # Not synced, as the user is waiting; after a power failure the render isn't resumed.
        PENDING_FORMAT.write(self.disk, path, {"lines": dict(pending)}, synced=False)

    def set_aside_damaged(self, name: str, kind: RecordFormat, remedy: str) -> None:
        """Rename a small file that is damaged, with a notice; a missing one is none.

        Args:
            name: The file.
            kind: Its format.
            remedy: The end of the notice.
        """
        path = self.root / name
        try:
            kind.decode(read_file(path))
        except FormatNewer as error:
            self.notices.append(f"{name} is left out. {error}")
        except FileNotFoundError:
            pass
        except PermissionError as error:
            self.notices.append(f"{name} can't be read: {error.strerror}. {remedy}")
        except (OSError, ValueError):
            with storage_errors(path):
                kept = set_aside(self.disk, path)
            self.disk.remove(path)
            self.notices.append(f"{name} was damaged; it is kept as “{kept.name}”. {remedy}")

    def close(self) -> None:
        """Release the folder's lock."""
        self._mark_lock()
        self._file_lock.release()

    def _mark_lock(self) -> None:
        """Let other processes see by the lock's time that a studio may have changed the files."""
        with suppress(OSError):
            os.utime(self.root / LOCK_FILE)

    def _read_snapshot(self) -> tuple[ProjectSnapshot, bool]:
        """Read the snapshot, an empty one without a usable one; and whether the file may stay."""
        path = self.root / SNAPSHOT_FILE
        journal = self.root / JOURNAL_FILE
        journal_bytes = journal.stat().st_size if journal.exists() else 0
        try:
            data = read_file(path)
            snapshot = decode_snapshot(data)
        except FileNotFoundError:
            return ProjectSnapshot(), False
        except FormatNewer:
            raise
        except PermissionError as error:
            raise _build_access_error(path, error) from error
        except _UNREADABLE_ERRORS as error:
            if not journal_bytes:
                raise FileDamaged(
                    f"This project can't be read: its {SNAPSHOT_FILE} is damaged and it has "
                    f"no history. Bring its folder ({self.root.name}) back from a copy."
                ) from error
            with storage_errors(path):
                kept = set_aside(self.disk, path)
            self.notices.append(
                f"{SNAPSHOT_FILE} was damaged; it was made again from the history. A copy of it is "
                f"kept in “{kept.name}”."
            )
            return ProjectSnapshot(), False
        return snapshot, SNAPSHOT_FORMAT.is_current(data)


_HEAD_BYTES = 256
_UNREADABLE_ERRORS = (OSError, ValueError, LookupError, TypeError)
_PENDING_ADAPTER: TypeAdapter[dict[LineId, int | None]] = TypeAdapter(dict[LineId, int | None])


def _build_access_error(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"“{path.name}” of this project can't be read: {error.strerror}. Give the studio the right "
        f"to read its folder ({path.parent.name})."
    )


def _describe_recovery(found: Recovery) -> str:
    if not found.lost:
        return f"{JOURNAL_FILE} was damaged; no change is lost, and undo goes less far back."
    at = datetime.fromtimestamp(found.last_at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    changes = "1 change is" if found.lost == 1 else f"{found.lost} changes are"
    behind = len(found.entries)
    return (
        f"{JOURNAL_FILE} was damaged: {changes} lost, made after {at} UTC; {behind} later ones are "
        "kept, and undo goes less far back."
    )


def check_version(root: Path) -> None:
    """Check that this studio knows the format of a project, before anything of it is touched."""
    with suppress(OSError, ValueError), open_file(root / SNAPSHOT_FILE) as file:
        if not SNAPSHOT_FORMAT.is_current(file.read(_HEAD_BYTES)):
            file.seek(0)
            SNAPSHOT_FORMAT.decode(file.read())


def read_summary(root: Path) -> ProjectSummary:
    """The summary of a project that isn't open.

    Raises:
        OSError, ValueError, LookupError, TypeError, FormatNewer: Its snapshot can't be read.
    """
    record = SNAPSHOT_FORMAT.decode(read_file(root / SNAPSHOT_FILE))
    edited_at_s = HistoryRecord.model_validate(record["history"]).at_s
    audio_s, lines = float(record["audio_s"]), record["lines"]
    numbered = _count_numbered(lines)
    name, voices = str(record["name"]), tuple(filter(None, record.get("cast", {}).values()))
    return ProjectSummary(
        root.name, name, edited_at_s, len(lines), audio_s, numbered, voices=voices
    )


def _count_numbered(lines: Iterable[Mapping[str, Any]]) -> int:
    """How many lines of a record sound."""
    return sum(line.get("kind") != LineKind.SILENCE for line in lines)


def recover_summary(root: Path, refused: str | None = None) -> ProjectSummary | None:
    """The summary of a project whose snapshot can't be read, as far as its history goes.

    Args:
        root: Its folder.
        refused: Why the system doesn't let the snapshot be read; None if that is damaged.

    Returns:
        None if the folder isn't a project's, or is being removed.
    """
    try:
        check_version(root)
    except FormatNewer as error:
        return _summarize_newer(root, str(error))
    if not _has_files(root):
        return None
    problem = f"{SNAPSHOT_FILE} is damaged. Open the project to mend it from its history."
    if refused is not None:
        problem = f"{SNAPSHOT_FILE} can't be read: {refused}."
    found = Recovery(Document())
    try:
        found = recover_document(root / JOURNAL_FILE, Document(), 0, 0)
    except FormatNewer as newer:
        problem = str(newer)
    except _UNREADABLE_ERRORS:
        if refused is None:
            problem = f"{SNAPSHOT_FILE} is damaged, and {JOURNAL_FILE} can't be read."
    document = found.document
    name = document.name or f"Damaged project {root.name}"
    lines, numbered = len(document.order), count_numbered(document)
    return ProjectSummary(root.name, name, found.latest_at_s, lines, 0.0, numbered, problem)


def _has_files(root: Path) -> bool:
    """Whether a folder has what makes it a project's, as far as the system tells."""
    try:
        return any((root / name).is_file() for name in (SNAPSHOT_FILE, JOURNAL_FILE))
    except OSError:  # it may not be looked into
        return True


def _summarize_newer(root: Path, problem: str) -> ProjectSummary:
    """What is known of a project of a newer version: as much as is where it is today."""
    record: Any = {}
    with suppress(OSError, ValueError):
        record = read_json(read_file(root / SNAPSHOT_FILE))
    name, lines = record.get("name"), record.get("lines")
    edited_at_s = 0.0
    with suppress(OSError):
        edited_at_s = (root / SNAPSHOT_FILE).stat().st_mtime
    return ProjectSummary(
        root.name,
        name if isinstance(name, str) else f"Project {root.name}",
        edited_at_s,
        len(lines) if isinstance(lines, list) else 0,
        0.0,
        len(lines) if isinstance(lines, list) else 0,
        problem,
    )


def read_saved_document(root: Path) -> Document:
    """The last saved document of a project that isn't open."""
    return read_snapshot(root / SNAPSHOT_FILE).document


# A consistent view of a project's files while it is being edited: the snapshot is in memory, the
# journal only grows, and takes and recordings never change. So nobody waits while they are packed.

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FrozenFolder:
    """A consistent view of a project's files.

    Attributes:
        snapshot: The content of the snapshot's file.
        journal_bytes: The journal's length at that time.
        document: The same, or a little later than the snapshot.
    """

    root: Path
    snapshot: bytes
    journal_bytes: int
    document: Document

    def read_journal(self) -> Iterator[bytes]:
        """The journal up to that length, block by block."""
        left = self.journal_bytes
        with (self.root / JOURNAL_FILE).open("rb") as file:
            while left and (block := file.read(min(left, _BLOCK_BYTES))):
                left -= len(block)
                yield block

    def iter_files(self, *, deleted: bool = True) -> Iterator[Path]:
        """The files of takes and recordings, and the cover.

        Args:
            deleted: Whether to include the audio of deleted takes, which undo could restore;
                without it they are as if freed.
        """
        unused = UnusedTakes(self.document)
        for path in sorted((self.root / TAKES_FOLDER).rglob("*")):
            is_kept = deleted or not unused.has(path.parent.name, path.stem)
            if path.suffix in (".json", FREED_SUFFIX) or (path.suffix == ".wav" and is_kept):
                yield path
        for path in sorted((self.root / AUDIO_FOLDER).glob("[!.]*")):
            yield path
        if (self.root / COVER_FILE).is_file():
            yield self.root / COVER_FILE


# The last position in a project, so that another device can go on there. It isn't part of the
# document: no edit, no step of undo, and not in copies and exports. A workspace is one person's, so
# a project has one position for all devices.

_POSITION_FILE = "place.json"


class LastPosition(BoundedModel):
    """A position in a project.

    Attributes:
        line_id: The line that had the focus.
        heard: The line at the play-head.
        by: The browser that sent it.
        number: Rises with each saved position.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    line_id: LineId | None = None
    heard: LineId | None = None
    by: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    number: Annotated[int, Field(ge=0)] = 0


def read_last_position(root: Path) -> LastPosition | None:
    """Read the last position from a project's folder; None if there is none."""
    record = _read_position(root)
    try:
        known = {name: one for name, one in record.items() if name in LastPosition.model_fields}
        return LastPosition.model_validate(known)
    except ValueError:
        return None  # the page then starts at the top, and the project opens anyway


def _read_position(root: Path) -> dict[str, Any]:
    """The record of the last position; empty if there is none that can be read."""
    with suppress(OSError, ValueError, FormatNewer):
        return POSITION_FORMAT.decode(read_file(root / _POSITION_FILE))
    return {}


def save_last_position(root: Path, place: LastPosition, disk: Disk, rev: int) -> LastPosition:
    """Save a position under the next number; its lines needn't exist any more.

    Args:
        root: The project's folder.
        place: The position.
        disk: Writes it.
        rev: The project's latest revision.

    Raises:
        StorageFailed: It can't be written; the earlier one stays.
    """
    previous = read_last_position(root)
    number = previous.number + 1 if previous else 1
    kept = place.model_copy(update={"number": number})
    POSITION_FORMAT.write(disk, root / _POSITION_FILE, {**kept.model_dump(), "rev": rev})
    return kept


_HASH_CHARS = 8
_HASHED_NAME = re.compile(r"-([0-9a-f]{8})(?:\.[^.]*)?$")
_MAX_STEM_BYTES = 150


def import_audio(folder: ProjectFolder, name: str, file: BinaryIO) -> str:
    """Store a recording; the same content is stored once.

    If there is another recording of that name, the new one gets another name, so that no take
    changes its recording.

    Raises:
        BadInput: The name is invalid.
        AudioRejected: It can't be decoded or is too large; nothing is stored.
    """
    path = PurePath(check_audio_name(name))
    arriving = folder.root / AUDIO_FOLDER / f".{secrets.token_hex(8)}.part"
    folder.disk.make_folder(arriving.parent)
    try:
        folder.disk.write_whole(arriving, _read_blocks(file, name))
        stem, suffix = _truncate_name(path.stem), _truncate_name(path.suffix, 10)
        kept = f"{stem}-{hash_file(arriving)[:_HASH_CHARS]}{suffix}"
        target = arriving.with_name(kept)
        if not target.exists():
            decode_guarded(arriving, display_name=name)
            folder.disk.move(arriving, target)
    finally:
        folder.disk.remove(arriving)
    return kept


def check_recording(path: Path) -> None:
    """Check that a recording has the content of which `import_audio` made a part of its name.

    Raises:
        AudioRejected: It has changed since it was added.
    """
    found = _HASHED_NAME.search(path.name)
    if not found or not path.exists():
        return
    if not path.is_file() or hash_file(path)[:_HASH_CHARS] != found[1]:
        raise AudioRejected(
            f"The recording “{path.name}” has changed on the disk since it was added. Add it again."
        )


def _read_blocks(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The content, block by block, up to the limit of a recording."""
    left = DEFAULT_LIMITS.max_bytes
    while block := file.read(_BLOCK_BYTES):
        left -= len(block)
        if left < 0:
            most_mb = DEFAULT_LIMITS.max_bytes // 1_000_000
            raise AudioRejected(f"“{name}” is larger than {most_mb} MB. Cut it first.")
        yield block


def _truncate_name(text: str, most_bytes: int = _MAX_STEM_BYTES) -> str:
    """Shorten a name to the 255 bytes that most file systems allow."""
    return text.encode()[:most_bytes].decode(errors="ignore")


UNUSED_AFTER_S = 3600.0
"""Age at which a recording counts as unused: it is uploaded before the line that plays it."""


def find_unused_audio(audio: Path, document: Document) -> list[Path]:
    """Find recordings that no line plays, except recent ones, whose line may not be added yet."""
    return select_unused_audio(find_unplayed_audio(audio, document))


def find_unplayed_audio(audio: Path, document: Document) -> list[Path]:
    """Find recordings that no line plays, recent ones too."""
    played = {line.path for line in document}
    with suppress(FileNotFoundError):  # there are none, or the project is being removed
        return [path for path in audio.iterdir() if path.name not in played]
    return []


def select_unused_audio(unplayed: Iterable[Path]) -> list[Path]:
    """Those of some unplayed recordings that are old enough to count as unused."""
    unused: list[Path] = []
    for path in unplayed:
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime >= UNUSED_AFTER_S:
                unused.append(path)
    return unused
