"""The takes of a project on disk: `takes/<line>/<take>.wav` with a `.json` beside it.

The audio is there before the record is, and both appear whole, so a take exists when its record
does and fits its audio. A record alone is a take whose audio was freed; it can be made again as
the record says. Whatever else lies there is not a take.
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
from studio.backends.aliases import canonical_name
from studio.dialog.model import ParamValue
from studio.errors import NotFound, StorageFailed
from studio.project.document import Document
from studio.quality.checks import QualityIssue, TakeMetrics
from studio.storage.disk import Disk, DiskUsage, measure_files

_WAV_HEADER_BYTES = 44


@dataclass(frozen=True, slots=True)
class Take:
    """One generated result of a line.

    Attributes:
        key: Of the text, voice, backend, language and parameters it was made of.
        voice: Who spoke, in words.
        samples: Length at the studio's rate.
        created_at: ISO 8601 in UTC.
        cut: Whether the voice was stopped before the end of the line; never chosen by itself.
        doubts: What may not be right about it by itself.
        figures: What is compared with others of its voice; None where nobody measured it.
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
"""What takes have in common that are to sound alike."""


def build_voice_key(take: Take) -> VoiceKey:
    """The voice of a take, with the language and settings it spoke with."""
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
    """A take as a table of plain values, without what it was measured by."""
    return {name: getattr(take, name) for name in _PLAIN_FIELDS}


def encode_take(take: Take) -> bytes:
    """A take's record as its file holds it."""
    return _TAKE_ADAPTER.dump_json(take, indent=2) + b"\n"


def read_take_record(path: Path) -> Take | None:
    """A take by its record; None when the record or its audio isn't whole, or they don't fit.

    Audio that isn't there at all fits any record.
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
    """Whether a WAV holds that many samples. By its size, or where a header is longer, by it."""
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


# The takes of a project on disk: `takes/<line>/<take>.wav` with a `.json` beside it.
#
# The audio is there before the record is, and both appear whole, so a take exists when its record
# does and fits its audio. A record alone is a take that is gone: its audio was freed, and can be
# made again as the record says. Whatever else lies there is not a take.

_LINE_FOLDER_PATTERN = re.compile(r"[0-9a-f]{12}")
_TAKE_FILE_PATTERN = re.compile(r"[0-9a-f]{16}\.(?:json|wav)|\.[0-9a-f]{16}\.part")


class TakeStore:
    """All takes of a project; safe from several threads."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Find the takes in a folder, which need not be there yet."""
        self._root = root
        self._disk = disk
        # Guards all tables.
        self._lock = Lock()
        self._takes: dict[str, Take] = {}
        self._of_line: dict[str, list[Take]] = {}
        self._of_voice: dict[VoiceKey, dict[str, Take]] = {}
        self._gone: set[str] = set()
        self._torn: list[Path] = []
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
        """A take by its id, None when there is none."""
        return self._takes.get(take_id or "")

    def of_line(self, line_id: str) -> tuple[Take, ...]:
        """A line's takes, the oldest first; deleted ones too."""
        with self._lock:
            return tuple(self._of_line.get(line_id, ()))

    def of_voice(self, voice: VoiceKey) -> tuple[Take, ...]:
        """Takes of a voice that were measured, the cut ones excepted."""
        with self._lock:
            return tuple(self._of_voice.get(voice, {}).values())

    def n_of_voice(self, voice: VoiceKey) -> int:
        """How many `of_voice` gives."""
        return len(self._of_voice.get(voice, ()))

    def __iter__(self) -> Iterator[Take]:
        """Iterate over all takes."""
        with self._lock:
            return iter(tuple(self._takes.values()))

    def is_gone(self, take: Take) -> bool:
        """Whether a take's audio was freed."""
        return take.take_id in self._gone

    def audio(self, take: Take) -> Path:
        """A take's WAV: mono, 16 bit, at the studio's rate; not there when it is gone."""
        return self.place(take.line_id, take.take_id)

    def place(self, line_id: str, take_id: str) -> Path:
        """Where a take's WAV is, or will be when it is finished."""
        return self._root / line_id / f"{take_id}.wav"

    def keep(self, take: Take, audio: Path | Clip) -> None:
        """Add a take, or bring one that is gone back.

        Args:
            take: What it is.
            audio: Its audio: a finished WAV on the same disk, which is moved, or a clip.

        Raises:
            StorageFailed: It can't be written; there is no such take then, or it is gone still.
        """
        target = self.audio(take)
        self._disk.make_folder(target.parent)
        if isinstance(audio, Clip):
            self._disk.write_whole(target, encode(audio, AudioFormat.WAV))
        else:
            self._disk.move(audio, target)
        try:
            self._disk.write_whole(target.with_suffix(".json"), encode_take(take))
        except StorageFailed:
            self._disk.remove(target)
            raise
        self._put(take)

    def free(self, take: Take) -> int:
        """Remove a take's audio and keep its record; needs no room on the disk.

        Returns:
            Bytes that were freed, 0 when it was gone already.

        Raises:
            StorageFailed: It can't be removed.
        """
        freed = self._remove(self.audio(take))
        with self._lock:
            self._gone.add(take.take_id)
        return freed

    def free_torn(self) -> list[int]:
        """Remove what was found torn when the shelf was opened; the bytes of each file.

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
            self._takes[take.take_id] = take
            others = self._of_line.get(take.line_id, [])
            self._of_line[take.line_id] = [
                *(one for one in others if one.take_id != take.take_id),
                take,
            ]
            self._gone.discard(take.take_id)
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
                self._gone.add(take.take_id)


def iter_line_folders(root: Path) -> Iterator[Path]:
    """The folders of takes, one for each line that ever had one."""
    for folder in root.iterdir() if root.is_dir() else ():
        if _LINE_FOLDER_PATTERN.fullmatch(folder.name) and folder.is_dir():
            yield folder


# What a project holds on the disk that nobody hears, and how it is freed.
#
# That is the audio of deleted takes, of takes whose line was deleted, recordings that no line
# plays, and files torn by the end of a process. Undo of a deletion then finds a take's record
# without its audio: what it was made of.


def is_unused_take(document: Document, line_id: str, take_id: str) -> bool:
    """Whether a take can be heard only after an undo; a locked one counts as heard."""
    if take_id in document.locked_takes:
        return False
    return line_id not in document.lines or take_id in document.deleted_takes


def measure_unused_takes(takes: Path, document: Document) -> DiskUsage:
    """What the folder of a project's takes holds in vain, told by the names of its files.

    Also of a project that isn't open: nothing but the folder is read.
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
    return measure_files(found)


def free_unused_takes(shelf: TakeStore, document: Document) -> DiskUsage:
    """Free what an open project's takes hold in vain; what deleted them has to be on the disk.

    Every file goes by itself, so however it ends, each take is whole or gone.

    Raises:
        StorageFailed: A file can't be removed; those before it are.
    """
    freed = DiskUsage()
    for take in shelf:
        if is_unused_take(document, take.line_id, take.take_id) and not shelf.is_gone(take):
            freed += DiskUsage(1, shelf.free(take))
    torn = shelf.free_torn()
    return freed + DiskUsage(len(torn), sum(torn))
