"""The takes of a project on disk: `takes/<line>/<take>.wav` with a `.json` beside it.

The audio is written before the record, and both appear whole, so a take exists if its record does
and matches its audio. A record with an empty `.freed` beside it instead of audio is a take that was
freed; it can be rendered again from the record. So can a take whose audio is missing, or doesn't
fit its checksum, which is compared when it is played or exported. Any other file in the folder is
no take.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import wave
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Annotated

from pydantic import Field, TypeAdapter

from studio.audio.clip import Clip
from studio.audio.encode import encode
from studio.audio.formats import AudioFormat
from studio.backends.base import canonical_name
from studio.dialog.directions import find_directions
from studio.dialog.model import ParamValue
from studio.errors import FileDamaged, FormatNewer, NotFound, StorageFailed
from studio.hearing.word_check import WordCheck
from studio.hearing.word_times import PackedWords
from studio.project.document import Document
from studio.quality.checks import QualityIssue, TakeMetrics
from studio.storage.disk import (
    Disk,
    DiskUsage,
    check_is_file,
    measure_checksum,
    read_file,
    storage_errors,
)
from studio.storage.records import RecordFormat, check_sum, mend, restore_rows

log = logging.getLogger(__name__)

TAKE_FORMAT = RecordFormat("The record of a take", further=frozenset({"source"}))
_WAV_HEADER_BYTES = 44


_Short = Annotated[str, Field(max_length=1_000)]


@dataclass(frozen=True, slots=True)
class TakePatch:
    """Which samples of a take are new, and whose the others are.

    Attributes:
        take_id: The take that all samples outside of the patch come from, bit for bit.
        start: The first new sample.
        end: The one after the last new one.
        resumes: Which sample of that take follows.
    """

    take_id: str
    start: int
    end: int
    resumes: int


class TakeSource(StrEnum):
    """Where a take comes from that no engine spoke."""

    RECORDING = "recording"
    """A person said it."""

    ACTED = "acted"
    """A person said it, and an engine changed the voice."""


@dataclass(frozen=True, slots=True)
class Take:
    """One result of a line: generated, or recorded.

    Attributes:
        key: Digest of the text, voice, backend, language and parameters.
        backend: What generated it, or changed its voice; "" of a recording as it is.
        voice: The voice's name, for people.
        samples: Length at the studio's rate.
        created_at: ISO 8601 in UTC.
        cut: Whether its speech was cut off; such a take is never chosen automatically.
        doubts: Its quality issues, found without other takes.
        figures: Measurements that are compared with other takes of its voice; None if unmeasured.
        audio_crc32: CRC-32 of its WAV; None in records of studios that wrote none.
        pauses: First sample and the one after the last of each pause inside it; None in records of
            studios that wrote none.
        at_s: When each step of its render was reached, in seconds since that began; empty in
            records of studios that wrote none.
        words: For each word its first offset in the text and the one after its last, its first
            millisecond and the one after its last; None until they are timed.
        phonemes: What is said, as `pack_phonemes` writes it; None until it is timed.
        recognised: What a recogniser understood; None if none has listened to it.
        source: None of what an engine spoke. A recording has seed 0, and can't be made again.
        number: Its place among all takes that its line ever had, from 1; None in records of studios
            that wrote none, see `TakeStore.get_number`.
    """

    take_id: str
    line_id: str
    key: _Short
    seed: int
    backend: _Short
    text: str
    voice: _Short
    samples: Annotated[int, Field(ge=0)]
    created_at: _Short
    language: _Short | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    cut: bool = False
    doubts: tuple[QualityIssue, ...] = ()
    figures: TakeMetrics | None = None
    audio_crc32: int | None = None
    pauses: tuple[tuple[int, int], ...] | None = None
    at_s: Mapping[str, float] = field(default_factory=dict)
    words: PackedWords | None = None
    phonemes: str | None = None
    recognised: WordCheck | None = None
    patch: TakePatch | None = None
    source: TakeSource | None = None
    number: Annotated[int, Field(ge=1)] | None = None

    @property
    def issues(self) -> tuple[QualityIssue, ...]:
        return self.doubts + (self.recognised.issues if self.recognised else ())


_TAKE_ADAPTER: TypeAdapter[Take] = TypeAdapter(Take)

VoiceKey = tuple[object, ...]
"""The key of takes that should sound alike."""


def build_voice_key(take: Take) -> VoiceKey:
    """The voice of a take, with its language and settings, and how its line says it is spoken."""
    return (
        canonical_name(take.backend),
        take.voice,
        take.language,
        tuple(sorted(take.params.items())),
        *(one.words.casefold() for one in find_directions(take.text) if one.is_followed),
    )


def generate_take_id() -> str:
    """A take's id: 16 hex digits, never made from outside text."""
    return secrets.token_hex(8)


def list_plain_fields(take: Take) -> dict[str, object]:
    """A take's plain values, without issues and measurements."""
    return {name: getattr(take, name) for name in _PLAIN_FIELDS}


def encode_take(take: Take) -> bytes:
    """A take's record as the content of its file."""
    none = {name for name in ("source", "number") if getattr(take, name) is None}
    return TAKE_FORMAT.encode(_TAKE_ADAPTER.dump_python(take, mode="json", exclude=none))


def read_take_record(path: Path) -> Take:
    """Read a take from its record; one without audio is valid."""
    return _read_record(path.parent, path.stem)


def _read_record(folder: Path, take_id: str, *, has_audio: bool = True) -> Take:
    """As `read_take_record`; of 50,000 takes, a path for each would take a fourth of the time.

    Args:
        folder: That of the line.
        take_id: By which its files are named.
        has_audio: Whether there may be a WAV.
    """
    line_id, record = folder.name, f"{folder}{os.sep}{take_id}.json"
    try:
        check_is_file(record)
        with open(record, "rb") as file:  # noqa: PTH123
            data = mend(restore_rows(file.read()))
        if TAKE_FORMAT.is_current(data):
            check_sum(data)
            take = _TAKE_ADAPTER.validate_json(data)
        else:
            take = _TAKE_ADAPTER.validate_python(TAKE_FORMAT.decode(data))
    except (OSError, ValueError) as error:
        raise FileDamaged("The record of its take is damaged.") from error
    if take.take_id != take_id or take.line_id != line_id:
        raise FileDamaged("The record of its take is that of another one.")
    audio = f"{folder}{os.sep}{take_id}.wav"
    if has_audio and not _holds_samples(audio, take.samples):
        raise FileDamaged("The audio of its take isn't as long as it was.")
    return take


def _holds_samples(path: str, samples: int) -> bool:
    """Whether a WAV has that many samples, judged by its size, or by a longer header.

    A missing one counts as whole, as it may have been freed.
    """
    try:
        size_bytes = os.stat(path).st_size  # noqa: PTH116 - as in `_read_record`
        if size_bytes == _WAV_HEADER_BYTES + 2 * samples:
            return True
        check_is_file(path)
        with wave.open(path, "rb") as audio:
            shortest = audio.getnframes() * audio.getsampwidth()
            return audio.getnframes() == samples and size_bytes >= shortest
    except FileNotFoundError:
        return True
    except (OSError, EOFError, wave.Error):
        return False


_OTHER_FIELDS = (
    *("doubts", "figures", "audio_crc32", "pauses", "at_s"),
    *("words", "phonemes", "recognised", "patch", "number"),
)

_PLAIN_FIELDS = tuple(name for name in Take.__dataclass_fields__ if name not in _OTHER_FIELDS)


_LINE_FOLDER_PATTERN = re.compile(r"[0-9a-f]{12}")
_TAKE_FILE_PATTERN = re.compile(r"[0-9a-f]{16}\.(?:json|wav)|\.[0-9a-f]{16}\.part")
FREED_SUFFIX = ".freed"
_MARKED = f"marked{FREED_SUFFIX}"


class TakeStore:
    """All takes of a project; safe from any thread.

    Attributes:
        changes: Rises with each take that is added, restored or freed.
        problems: The takes that are left out, by their lines, and why.
    """

    def __init__(self, root: Path, disk: Disk) -> None:
        self._root = root
        self._disk = disk
        # Guards all tables.
        self._lock = Lock()
        self._takes: dict[str, Take] = {}
        self._of_line: dict[str, list[Take]] = {}
        self._of_voice: dict[VoiceKey, dict[str, Take]] = {}
        # By take, and the last one of each line: no number is used twice.
        self._numbers: dict[str, int] = {}
        self._last_numbers: dict[str, int] = {}
        self._freed: set[str] = set()
        self._damaged: set[str] = set()
        # Those without audio that nothing says were freed; and whether anything would say so.
        self._missing: list[Take] = []
        self._has_marks = (root / _MARKED).exists()
        self.problems: list[tuple[str, str]] = []
        self._torn: list[Path] = []
        self.changes = 0
        self._find_all()
        self._number_all()

    def find(self, take_id: str) -> Take:
        """A take by its id.

        Raises:
            NotFound: There is none.
        """
        take = self._takes.get(take_id)
        if take is None:
            raise NotFound("This take isn't there any more.")
        return take

    def get(self, take_id: str | None) -> Take | None:
        """A take by its id, None if there is none."""
        return self._takes.get(take_id or "")

    def get_number(self, take: Take) -> int:
        """Which of its line's takes it is, from 1; the others keep theirs when one is deleted."""
        return self._numbers[take.take_id]

    def list_for_line(self, line_id: str) -> tuple[Take, ...]:
        """A line's takes, the oldest first, including deleted ones."""
        takes = self._of_line.get(line_id)  # which is replaced, never changed
        return tuple(takes) if takes else ()

    def list_for_voice(self, voice: VoiceKey) -> tuple[Take, ...]:
        """The measured takes of a voice, except those that were cut off."""
        with self._lock:
            return tuple(self._of_voice.get(voice, {}).values())

    def count_for_voice(self, voice: VoiceKey) -> int:
        """The number of takes of `list_for_voice`."""
        return len(self._of_voice.get(voice, ()))

    def __iter__(self) -> Iterator[Take]:
        with self._lock:
            return iter(tuple(self._takes.values()))

    def is_freed(self, take: Take) -> bool:
        """Whether a take has no audio to play: it was freed, or is damaged."""
        return take.take_id in self._freed or take.take_id in self._damaged

    def is_damaged(self, take: Take) -> bool:
        """Whether a take's audio was found to be damaged."""
        return take.take_id in self._damaged

    def check_audio(self, take: Take) -> None:
        """Compare a take's audio with its checksum; if it doesn't fit, the take counts as damaged.

        Raises:
            FileDamaged: It doesn't fit, or can't be read.
        """
        if take.take_id in self._freed:
            return
        path = self.get_audio_path(take)
        try:
            fits = path.is_file() and take.audio_crc32 in (None, measure_checksum(path))
        except OSError:
            fits = False
        if not fits and take.take_id not in self._freed:  # it may have been freed meanwhile
            with self._lock:
                self._damaged.add(take.take_id)
            raise FileDamaged(self.describe_damage(take))

    def describe_damage(self, take: Take) -> str:
        """What to say of a take whose audio is damaged or missing."""
        what = "has changed on the disk"
        if not self.get_audio_path(take).exists():
            what = "isn't there any more"
        verb = "Render" if take.source is None else "Record"
        return (
            f"The audio of this line's take {what}. {verb} the line again, or choose another take."
        )

    def find_lost(self, document: Document) -> list[Take]:
        """Tell takes whose audio is missing from those that were freed; the former are damaged.

        Only what isn't used is freed. Projects of earlier studios, and imported ones, have no
        marks: what lacks its audio when they are opened first counts as freed.
        """
        unused = UnusedTakes(document)
        lost: list[Take] = []
        missing, self._missing = self._missing, []
        for take in missing:
            if unused.has(take.line_id, take.take_id) or not self._has_marks:
                self._mark_freed(take)
            else:
                lost.append(take)
        if self._takes:
            self._begin_marks()
        with self._lock:
            self._damaged.update(take.take_id for take in lost)
            self._freed.difference_update(take.take_id for take in lost)
        return lost

    def get_audio_path(self, take: Take) -> Path:
        """A take's WAV: mono, 16 bit, at the studio's rate; missing if it was freed."""
        return self.build_path(take.line_id, take.take_id)

    def build_path(self, line_id: str, take_id: str) -> Path:
        """The path of a take's WAV, which needn't exist yet."""
        return self._root / line_id / f"{take_id}.wav"

    def find_same(self, take: Take, audio: Path | Clip, others: Sequence[Take]) -> Take | None:
        """Which of other takes sounds the same to the bit as a new one, of the same key."""
        alike = [one for one in others if (one.key, one.samples) == (take.key, take.samples)]
        checksum = _measure_checksum(audio) if alike else None
        for one in alike:
            if checksum == one.audio_crc32 and not (one.cut or self.is_freed(one)):
                return one
        return None

    def add(self, take: Take, audio: Path | Clip) -> None:
        """Add a take with the checksum of its audio, or restore one; damaged audio is kept.

        Args:
            take: The take.
            audio: Its audio: a finished WAV on the same disk, which is moved, or a clip.

        Raises:
            StorageFailed: It can't be written; the take isn't added or restored, and a WAV is where
                it was.
        """
        take = replace(take, number=self._reserve_number(take))
        target = self.get_audio_path(take)
        self._disk.make_folder(target.parent)
        self._begin_marks()
        if take.take_id in self._damaged and target.exists():
            self._disk.move(target, target.with_suffix(".damaged.wav"))
        data = encode(audio, AudioFormat.WAV) if isinstance(audio, Clip) else None
        take = replace(take, audio_crc32=_measure_checksum(audio if data is None else data))
        try:
            if isinstance(audio, Path):
                self._disk.move(audio, target)
            elif data is not None:
                self._disk.write_whole(target, data)
            self._disk.write_whole(target.with_suffix(".json"), encode_take(take))
        except StorageFailed:
            self._take_back(target, audio)
            raise
        with suppress(StorageFailed):  # it says nothing beside audio
            self._disk.remove(target.with_suffix(FREED_SUFFIX))
        self._put(take)

    def discard(self, take: Take) -> None:
        """Forget a take that was just added and never chosen, and delete its files."""
        with self._lock:
            self.changes += 1
            self._takes.pop(take.take_id, None)
            others = self._of_line.get(take.line_id, ())
            self._of_line[take.line_id] = [one for one in others if one.take_id != take.take_id]
            self._of_voice.get(build_voice_key(take), {}).pop(take.take_id, None)
        audio = self.get_audio_path(take)
        self._disk.remove(audio.with_suffix(".json"))  # first: audio alone is found as torn
        self._disk.remove(audio)
        self._disk.remove(audio.with_suffix(FREED_SUFFIX))

    def set_words(self, take_id: str, words: PackedWords, phonemes: str) -> Take | None:
        """Keep the times of a take's words and phonemes with it; None if it is gone."""
        return self._amend(take_id, lambda take: replace(take, words=words, phonemes=phonemes))

    def update(self, take: Take) -> None:
        """Write a take's record anew, of which only the findings have changed."""
        found, measured, recognised = take.doubts, take.figures, take.recognised
        self._amend(
            take.take_id,
            lambda one: replace(one, doubts=found, figures=measured, recognised=recognised),
        )

    def _amend(self, take_id: str, change: Callable[[Take], Take]) -> Take | None:
        """Change a take's record; None if it isn't there any more. Writes without the lock."""
        while (take := self._takes.get(take_id)) is not None:
            changed = change(take)
            record = self.get_audio_path(take).with_suffix(".json")
            self._disk.write_whole(record, encode_take(changed))
            with self._lock:
                if self._takes.get(take_id) is take:
                    self._replace(changed)
                    return changed
            # It was changed meanwhile, and what was written then has been written over.
        return None

    def _replace(self, take: Take) -> None:
        self._takes[take.take_id] = take
        own = self._of_line[take.line_id]
        self._of_line[take.line_id] = [take if one.take_id == take.take_id else one for one in own]
        alike = self._of_voice.get(build_voice_key(take), {})
        if take.take_id in alike:
            alike[take.take_id] = take

    def _reserve_number(self, take: Take) -> int:
        with self._lock:
            if take.take_id not in self._numbers:
                self._last_numbers[take.line_id] = self._last_numbers.get(take.line_id, 0) + 1
                self._numbers[take.take_id] = self._last_numbers[take.line_id]
            return self._numbers[take.take_id]

    def _number_all(self) -> None:
        """Takes of earlier studios have the numbers that others leave, in their order."""
        for line_id, takes in self._of_line.items():
            used = {take.number for take in takes}
            free = (number for number in count(1) if number not in used)
            own = {take.take_id: take.number or next(free) for take in takes}
            self._numbers |= own
            self._last_numbers[line_id] = max(own.values())

    def _take_back(self, target: Path, audio: Path | Clip) -> None:
        """Leave no audio without a record, and lose none that was generated."""
        if isinstance(audio, Path) and target.exists() and not audio.exists():
            # The rename itself needs no room.
            with suppress(OSError):
                target.replace(audio)
        self._disk.remove(target)

    def free(self, take: Take) -> int:
        """Delete a take's audio and keep its record; needs no disk space.

        Returns:
            The freed bytes, 0 if it was freed already.

        Raises:
            StorageFailed: It can't be removed.
        """
        self._mark_freed(take)
        freed = self._remove(self.get_audio_path(take))
        with self._lock:
            self._freed.add(take.take_id)
            self.changes += 1
            self._damaged.discard(take.take_id)
        return freed

    def _mark_freed(self, take: Take) -> None:
        """Let who opens the project later know that the audio isn't missing."""
        with suppress(OSError):  # on a full disk it is found as missing if it is used again
            self.get_audio_path(take).with_suffix(FREED_SUFFIX).touch()

    def _begin_marks(self) -> None:
        """Note that from now on each freed take has a mark."""
        if not self._has_marks:
            self._has_marks = True
            with suppress(OSError):
                (self._root / _MARKED).touch()

    def remove_torn(self) -> list[int]:
        """Delete the damaged files found when the store was opened; returns the bytes of each."""
        freed = []
        while self._torn:
            freed.append(self._remove(self._torn[-1]))
            self._torn.pop()
        return freed

    def _remove(self, path: Path) -> int:
        size = path.stat().st_size if path.exists() else 0
        self._disk.remove(path)
        return size

    def _put(self, take: Take) -> None:
        with self._lock:
            self._index(take)
            others = self._of_line.get(take.line_id, [])
            self._of_line[take.line_id] = [
                *(one for one in others if one.take_id != take.take_id),
                take,
            ]
            self._freed.discard(take.take_id)
            self._damaged.discard(take.take_id)

    def _index(self, take: Take) -> None:
        self.changes += 1
        self._takes[take.take_id] = take
        if take.figures is not None and not take.cut:
            self._of_voice.setdefault(build_voice_key(take), {})[take.take_id] = take

    def _find_all(self) -> None:
        found: list[tuple[Take, bool]] = []
        marked: set[str] = set()
        for folder in iter_line_folders(self._root):
            # Names, not paths: a project may have 50,000 takes.
            there = {one.name for one in os.scandir(folder)}
            marked.update(name for name in there if name.endswith(FREED_SUFFIX))
            names = set(filter(_TAKE_FILE_PATTERN.fullmatch, there))
            for record in [name for name in names if name.endswith(".json")]:
                take_id = record.removesuffix(".json")
                audio = f"{take_id}.wav"
                try:
                    take = _read_record(folder, take_id, has_audio=audio in names)
                    found.append((take, audio in names))
                except (FileDamaged, FormatNewer) as error:
                    log.warning("%s/%s: %s", folder, record, error)
                    self.problems.append((folder.name, str(error)))
                names -= {record, audio}
            self._torn += map(folder.joinpath, names)
        for take, is_there in sorted(found, key=lambda one: (one[0].created_at, one[0].take_id)):
            self._index(take)
            self._of_line.setdefault(take.line_id, []).append(take)
            if is_there:
                self._freed.discard(take.take_id)
                continue
            self._freed.add(take.take_id)
            if f"{take.take_id}{FREED_SUFFIX}" not in marked:
                self._missing.append(take)


def _measure_checksum(audio: Path | Clip | bytes) -> int:
    if isinstance(audio, Path):
        with storage_errors(audio):
            return measure_checksum(audio)
    return zlib.crc32(encode(audio, AudioFormat.WAV) if isinstance(audio, Clip) else audio)


def describe_same(engine: str) -> str:
    """What to say where a new take would sound as one that the line has."""
    return (
        f"{engine} says this line the same way every time. Change the speed, the words or the "
        "voice."
    )


def iter_line_folders(root: Path) -> Iterator[Path]:
    """The folders of takes, one for each line that ever had one."""
    for folder in root.iterdir() if root.is_dir() else ():
        if _LINE_FOLDER_PATTERN.fullmatch(folder.name) and folder.is_dir():
            yield folder


# Unused files of a project: the audio of deleted takes and of takes of deleted lines, recordings
# that no line plays, and files damaged by a crash. After they are freed, undo of a deletion
# restores a take's record without its audio, from which it can be rendered again; unless it was
# recorded, so that recorded takes count as recordings where it is asked whether to free them.


class UnusedTakes:
    """The takes of a document that could be played only after an undo; locked ones are used."""

    def __init__(self, document: Document) -> None:
        self._lines = document.lines
        self._locked = frozenset(document.locked_takes)
        self._deleted = frozenset(document.deleted_takes)

    def has(self, line_id: str, take_id: str) -> bool:
        """Whether a take is among them."""
        is_used = line_id in self._lines and take_id not in self._deleted
        return not is_used and take_id not in self._locked


def find_unused_takes(takes: Path, document: Document) -> list[Path]:
    """Find the unused takes of a project by the names of its files.

    The project needn't be open, as only the folder is read.
    """
    found: list[Path] = []
    unused = UnusedTakes(document)
    with suppress(FileNotFoundError):  # the project is being removed
        for folder in iter_line_folders(takes):
            names = {path.name for path in folder.iterdir()}
            for path in map(folder.joinpath, names):
                is_torn = path.suffix == ".part" or f"{path.stem}.json" not in names
                if path.suffix in (".part", ".wav") and (
                    is_torn or unused.has(folder.name, path.stem)
                ):
                    found.append(path)
    return found


def is_recorded(audio: Path) -> bool:
    """Whether a take's record says that it was recorded, as no rendering brings it back."""
    try:
        record = TAKE_FORMAT.decode(mend(read_file(audio.with_suffix(".json"))))
        return record.get("source") is not None
    except (OSError, ValueError, FormatNewer):
        return False


def free_unused_takes(shelf: TakeStore, document: Document) -> tuple[DiskUsage, DiskUsage]:
    """Delete the audio of an open project's unused takes; their deletion has to be saved before.

    Files are deleted one by one, so that after a crash each take is whole or freed.

    Returns:
        What generated takes took, with torn files, and what recorded ones took.

    Raises:
        StorageFailed: A file can't be deleted; those before it are.
    """
    generated = recorded = DiskUsage()
    unused = UnusedTakes(document)
    for take in shelf:
        is_there = shelf.is_damaged(take) or not shelf.is_freed(take)
        if is_there and unused.has(take.line_id, take.take_id):
            size_bytes = shelf.free(take)
            freed = DiskUsage(1, size_bytes) if size_bytes else DiskUsage()  # it was missing
            if take.source is None:
                generated += freed
            else:
                recorded += freed
    torn = shelf.remove_torn()
    return generated + DiskUsage(len(torn), sum(torn)), recorded
