"""The takes of a project on disk: `takes/<line>/<take>.wav` with a `.json` beside it.

The audio is written before the record, and both appear whole, so a take exists if its record does
and matches its audio. A record without audio is a take that was freed; it can be rendered again
from the record. Any other file in the folder is no take.
"""

from __future__ import annotations

import re
import secrets
import wave
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from pydantic import TypeAdapter, ValidationError

from studio.audio.clip import Clip
from studio.audio.encode import AudioFormat, encode
from studio.backends.base import canonical_name
from studio.dialog.model import ParamValue
from studio.errors import NotFound, StorageFailed
from studio.project.document import Document
from studio.quality.checks import QualityIssue, TakeMetrics
from studio.storage.disk import Disk, DiskUsage

_WAV_HEADER_BYTES = 44


@dataclass(frozen=True, slots=True)
class Take:
    """One generated result of a line.

    Attributes:
        key: Digest of the text, voice, backend, language and parameters.
        voice: The voice's name, for people.
        samples: Length at the studio's rate.
        created_at: ISO 8601 in UTC.
        cut: Whether its speech was cut off; such a take is never chosen automatically.
        doubts: Its quality issues, found without other takes.
        figures: Measurements that are compared with other takes of its voice; None if unmeasured.
    """

    take_id: str
    line_id: str
    key: str
    seed: int
    backend: str
    text: str
    voice: str
    samples: int
    created_at: str
    language: str | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    cut: bool = False
    doubts: tuple[QualityIssue, ...] = ()
    figures: TakeMetrics | None = None


_TAKE_ADAPTER: TypeAdapter[Take] = TypeAdapter(Take)

VoiceKey = tuple[object, ...]
"""The key of takes that should sound alike."""


def build_voice_key(take: Take) -> VoiceKey:
    """The voice of a take, with its language and settings."""
    return (
        canonical_name(take.backend),
        take.voice,
        take.language,
        tuple(sorted(take.params.items())),
    )


def generate_take_id() -> str:
    """A take's id: 16 hex digits, never made from outside text."""
    return secrets.token_hex(8)


def list_plain_fields(take: Take) -> dict[str, object]:
    """A take's plain values, without issues and measurements."""
    return {name: getattr(take, name) for name in _PLAIN_FIELDS}


def encode_take(take: Take) -> bytes:
    """A take's record as the content of its file."""
    return _TAKE_ADAPTER.dump_json(take, indent=2) + b"\n"


def read_take_record(path: Path) -> Take | None:
    """Read a take from its record; None if the record or the audio is damaged, or they don't match.

    A record without audio is valid.
    """
    try:
        take = _TAKE_ADAPTER.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    if take.take_id != path.stem or take.line_id != path.parent.name:
        return None
    audio = path.with_suffix(".wav")
    return take if not audio.exists() or _holds_samples(audio, take.samples) else None


def _holds_samples(path: Path, samples: int) -> bool:
    """Whether a WAV has that many samples, judged by its size, or by a longer header."""
    try:
        if path.stat().st_size == _WAV_HEADER_BYTES + 2 * samples:
            return True
        with wave.open(str(path), "rb") as audio:
            shortest = audio.getnframes() * audio.getsampwidth()
            return audio.getnframes() == samples and path.stat().st_size >= shortest
    except (OSError, EOFError, wave.Error):
        return False


_PLAIN_FIELDS = tuple(
    name for name in Take.__dataclass_fields__ if name not in ("doubts", "figures")
)


_LINE_FOLDER_PATTERN = re.compile(r"[0-9a-f]{12}")
_TAKE_FILE_PATTERN = re.compile(r"[0-9a-f]{16}\.(?:json|wav)|\.[0-9a-f]{16}\.part")


class TakeStore:
    """All takes of a project; safe from any thread.

    Attributes:
        changes: Rises with each take that is added, restored or freed.
    """

    def __init__(self, root: Path, disk: Disk) -> None:
        """Read the takes of a folder, which needn't exist yet."""
        self._root = root
        self._disk = disk
        # Guards all tables.
        self._lock = Lock()
        self._takes: dict[str, Take] = {}
        self._of_line: dict[str, list[Take]] = {}
        self._of_voice: dict[VoiceKey, dict[str, Take]] = {}
        self._freed: set[str] = set()
        self._torn: list[Path] = []
        self.changes = 0
        self._find_all()

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

    def list_for_line(self, line_id: str) -> tuple[Take, ...]:
        """A line's takes, the oldest first, including deleted ones."""
        with self._lock:
            return tuple(self._of_line.get(line_id, ()))

    def list_for_voice(self, voice: VoiceKey) -> tuple[Take, ...]:
        """The measured takes of a voice, except those that were cut off."""
        with self._lock:
            return tuple(self._of_voice.get(voice, {}).values())

    def count_for_voice(self, voice: VoiceKey) -> int:
        """The number of takes of `list_for_voice`."""
        return len(self._of_voice.get(voice, ()))

    def __iter__(self) -> Iterator[Take]:
        """Iterate over all takes."""
        with self._lock:
            return iter(tuple(self._takes.values()))

    def is_freed(self, take: Take) -> bool:
        """Whether a take's audio was freed."""
        return take.take_id in self._freed

    def get_audio_path(self, take: Take) -> Path:
        """A take's WAV: mono, 16 bit, at the studio's rate; missing if it was freed."""
        return self.build_path(take.line_id, take.take_id)

    def build_path(self, line_id: str, take_id: str) -> Path:
        """The path of a take's WAV, which needn't exist yet."""
        return self._root / line_id / f"{take_id}.wav"

    def add(self, take: Take, audio: Path | Clip) -> None:
        """Add a take, or restore a freed one.

        Args:
            take: The take.
            audio: Its audio: a finished WAV on the same disk, which is moved, or a clip.

        Raises:
            StorageFailed: It can't be written; the take isn't added or restored, and a WAV is where
                it was.
        """
        target = self.get_audio_path(take)
        self._disk.make_folder(target.parent)
        try:
            if isinstance(audio, Clip):
                self._disk.write_whole(target, encode(audio, AudioFormat.WAV))
            else:
                self._disk.move(audio, target)
            self._disk.write_whole(target.with_suffix(".json"), encode_take(take))
        except StorageFailed:
            self._take_back(target, audio)
            raise
        self._put(take)

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
        freed = self._remove(self.get_audio_path(take))
        with self._lock:
            self._freed.add(take.take_id)
            self.changes += 1
        return freed

    def remove_torn(self) -> list[int]:
        """Delete the damaged files found when the store was opened; returns the bytes of each.

        Raises:
            StorageFailed: It can't be removed.
        """
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
            self.changes += 1
            self._takes[take.take_id] = take
            others = self._of_line.get(take.line_id, [])
            self._of_line[take.line_id] = [
                *(one for one in others if one.take_id != take.take_id),
                take,
            ]
            self._freed.discard(take.take_id)
            if take.figures is not None and not take.cut:
                self._of_voice.setdefault(build_voice_key(take), {})[take.take_id] = take

    def _find_all(self) -> None:
        found: list[tuple[Take, bool]] = []
        for folder in iter_line_folders(self._root):
            files = {path for path in folder.iterdir() if _TAKE_FILE_PATTERN.fullmatch(path.name)}
            for record in [path for path in files if path.suffix == ".json"]:
                take, audio = read_take_record(record), record.with_suffix(".wav")
                if take is None:
                    continue
                found.append((take, audio in files))
                files -= {record, audio}
            self._torn += files
        for take, is_there in sorted(found, key=lambda one: (one[0].created_at, one[0].take_id)):
            self._put(take)
            if not is_there:
                self._freed.add(take.take_id)


def iter_line_folders(root: Path) -> Iterator[Path]:
    """The folders of takes, one for each line that ever had one."""
    for folder in root.iterdir() if root.is_dir() else ():
        if _LINE_FOLDER_PATTERN.fullmatch(folder.name) and folder.is_dir():
            yield folder


# Unused files of a project: the audio of deleted takes and of takes of deleted lines, recordings
# that no line plays, and files damaged by a crash. After they are freed, undo of a deletion
# restores a take's record without its audio, from which it can be rendered again.


def is_unused_take(document: Document, line_id: str, take_id: str) -> bool:
    """Whether a take could be played only after an undo; a locked one counts as used."""
    if take_id in document.locked_takes:
        return False
    return line_id not in document.lines or take_id in document.deleted_takes


def find_unused_takes(takes: Path, document: Document) -> list[Path]:
    """Find the unused takes of a project by the names of its files.

    The project needn't be open, as only the folder is read.
    """
    found: list[Path] = []
    with suppress(FileNotFoundError):  # the project is being removed
        for folder in iter_line_folders(takes):
            names = {path.name for path in folder.iterdir()}
            for path in map(folder.joinpath, names):
                is_torn = path.suffix == ".part" or f"{path.stem}.json" not in names
                if path.suffix in (".part", ".wav") and (
                    is_torn or is_unused_take(document, folder.name, path.stem)
                ):
                    found.append(path)
    return found


def free_unused_takes(shelf: TakeStore, document: Document) -> DiskUsage:
    """Delete the audio of an open project's unused takes; their deletion has to be saved before.

    Files are deleted one by one, so that after a crash each take is whole or freed.

    Raises:
        StorageFailed: A file can't be deleted; those before it are.
    """
    freed = DiskUsage()
    for take in shelf:
        if is_unused_take(document, take.line_id, take.take_id) and not shelf.is_freed(take):
            freed += DiskUsage(1, shelf.free(take))
    torn = shelf.remove_torn()
    return freed + DiskUsage(len(torn), sum(torn))
