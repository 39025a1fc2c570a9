"""The takes of a project on disk: `takes/<line>/<take>.wav` with a `.json` beside it.

The audio is there before the record is, and both appear whole, so a take exists when its record
does and fits its audio. Whatever else lies there is not a take.
"""

from __future__ import annotations

import re
import secrets
import wave
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock

from pydantic import TypeAdapter, ValidationError

from studio.audio.clip import Clip
from studio.audio.encode import AudioFormat, encode
from studio.dialog.model import ParamValue
from studio.errors import NotFound
from studio.project.disk import Disk

_LINE_FOLDER = re.compile(r"[0-9a-f]{12}")
_TAKE_FILE = re.compile(r"[0-9a-f]{16}")
_WAV_HEADER_BYTES = 44


@dataclass(frozen=True, slots=True)
class Take:
    """One generated result of a line.

    Attributes:
        key: Of the text, voice, backend, language and parameters it was made of.
        voice: Who spoke, in words.
        samples: Length at the studio's rate.
        created_at: ISO 8601 in UTC.
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


_TAKE: TypeAdapter[Take] = TypeAdapter(Take)


def new_take_id() -> str:
    """A take's id: 16 hex digits, never made from outside text."""
    return secrets.token_hex(8)


class TakeShelf:
    """All takes of a project; safe from several threads."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Find the takes in a folder, which need not be there yet."""
        self._root = root
        self._disk = disk
        # Guards both tables.
        self._lock = Lock()
        self._takes: dict[str, Take] = {}
        self._of_line: dict[str, list[Take]] = {}
        for take in sorted(_found(root), key=lambda one: (one.created_at, one.take_id)):
            self._put(take)

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
        """A take by its id, None when there is none."""
        return self._takes.get(take_id or "")

    def of_line(self, line_id: str) -> tuple[Take, ...]:
        """A line's takes, the oldest first; deleted ones too."""
        with self._lock:
            return tuple(self._of_line.get(line_id, ()))

    def __iter__(self) -> Iterator[Take]:
        """Iterate over all takes."""
        with self._lock:
            return iter(tuple(self._takes.values()))

    def audio(self, take: Take) -> Path:
        """A take's WAV: mono, 16 bit, at the studio's rate."""
        return self.place(take.line_id, take.take_id)

    def place(self, line_id: str, take_id: str) -> Path:
        """Where a take's WAV is, or will be when it is finished."""
        return self._root / line_id / f"{take_id}.wav"

    def keep(self, take: Take, audio: Path | Clip) -> None:
        """Add a take.

        Args:
            take: What it is.
            audio: Its audio: a finished WAV on the same disk, which is moved, or a clip.

        Raises:
            StorageFailed: It can't be written; there is no such take then.
        """
        target = self.audio(take)
        self._disk.make_folder(target.parent)
        if isinstance(audio, Clip):
            self._disk.write_whole(target, encode(audio, AudioFormat.WAV))
        else:
            self._disk.move(audio, target)
        record = _TAKE.dump_json(take, indent=2) + b"\n"
        self._disk.write_whole(target.with_suffix(".json"), record)
        self._put(take)

    def _put(self, take: Take) -> None:
        with self._lock:
            self._takes[take.take_id] = take
            self._of_line.setdefault(take.line_id, []).append(take)


def take_record(take: Take) -> dict[str, object]:
    """A take as a table of plain values."""
    return asdict(take)


def read_take_record(path: Path) -> Take | None:
    """A take by its record; None when the record or the audio isn't whole, or they don't fit."""
    try:
        take = _TAKE.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    named = take.take_id == path.stem and take.line_id == path.parent.name
    return take if named and _is_whole(path.with_suffix(".wav"), take.samples) else None


def _found(root: Path) -> Iterable[Take]:
    for folder in root.iterdir() if root.is_dir() else ():
        if not _LINE_FOLDER.fullmatch(folder.name) or not folder.is_dir():
            continue
        for path in folder.glob("*.json"):
            take = read_take_record(path) if _TAKE_FILE.fullmatch(path.stem) else None
            if take is not None:
                yield take


def _is_whole(path: Path, samples: int) -> bool:
    """Whether a WAV holds that many samples. By its size, or where a header is longer, by it."""
    try:
        if path.stat().st_size == _WAV_HEADER_BYTES + 2 * samples:
            return True
        with wave.open(str(path), "rb") as audio:
            shortest = audio.getnframes() * audio.getsampwidth()
            return audio.getnframes() == samples and path.stat().st_size >= shortest
    except (OSError, EOFError, wave.Error):
        return False
