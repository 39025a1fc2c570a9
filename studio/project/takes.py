"""The takes of a project on disk: `takes/<line>/<take>.wav` with a `.json` beside it.

The audio is there before the record is, and both appear whole, so a take exists when its record
does and fits its audio. A record alone is a take that is gone: its audio was freed, and can be made
again as the record says. Whatever else lies there is not a take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from studio.audio.clip import Clip
from studio.audio.encode import AudioFormat, encode
from studio.errors import NotFound, StorageFailed
from studio.project.disk import Disk
from studio.project.take import Take, VoiceKey, read_take_record, voice_key, written_take

_LINE_FOLDER = re.compile(r"[0-9a-f]{12}")
_TAKE_FILE = re.compile(r"[0-9a-f]{16}\.(?:json|wav)|\.[0-9a-f]{16}\.part")


class TakeShelf:
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
            self._disk.write_whole(target.with_suffix(".json"), written_take(take))
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
                self._of_voice.setdefault(voice_key(take), {})[take.take_id] = take

    def _find_all(self) -> None:
        found: list[tuple[Take, bool]] = []
        for folder in line_folders(self._root):
            files = {path for path in folder.iterdir() if _TAKE_FILE.fullmatch(path.name)}
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


def line_folders(root: Path) -> Iterator[Path]:
    """The folders of takes, one for each line that ever had one."""
    for folder in root.iterdir() if root.is_dir() else ():
        if _LINE_FOLDER.fullmatch(folder.name) and folder.is_dir():
            yield folder
