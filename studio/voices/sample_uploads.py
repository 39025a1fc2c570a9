"""Uploaded recordings that wait to become samples: decoded once, cut, then used or dropped."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import soundfile

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.decode import DEFAULT_LIMITS, AudioInfo
from studio.audio.encode import write_wav
from studio.audio.guarded_decode import decode_guarded
from studio.errors import AudioRejected, BadInput, NotFound
from studio.storage.disk import storage_errors

MAX_UPLOADS = 20
"""Recordings kept at once; the oldest makes room for the next."""

MAX_UPLOAD_NAME_CHARS = 200

_ORPHANED_AFTER_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class SampleUpload:
    """A decoded recording; `name` is what the person's file was called."""

    upload_id: str
    name: str
    info: AudioInfo
    duration_s: float


class SampleUploads:
    """Recordings in a folder of their own; safe from many threads.

    Other processes may use the same folder: what is older than a day there is what one of them
    left behind.
    """

    def __init__(self, root: Path) -> None:
        """Use a folder; it is made with the first recording."""
        self._root = root
        # Guards the table; files are named by ids that never come again.
        self._lock = threading.Lock()
        self._kept: dict[str, SampleUpload] = {}

    @contextmanager
    def arriving(self, *, max_bytes: int = DEFAULT_LIMITS.max_bytes) -> Iterator[UploadWriter]:
        """A file to write a body into as it comes; it is gone when the block ends.

        Raises:
            StorageFailed: The folder can't be written.
        """
        path = self._root / f"{secrets.token_hex(8)}.part"
        with storage_errors(path):
            self._root.mkdir(parents=True, exist_ok=True)
            self._sweep()
            try:
                with path.open("xb") as file:
                    yield UploadWriter(path, file, max_bytes)
            finally:
                path.unlink(missing_ok=True)

    def take_in(self, path: Path, name: str) -> SampleUpload:
        """Decode a recording and keep it; the file itself is needed no more.

        Args:
            path: In any format `decode` takes.
            name: What messages call it.

        Raises:
            AudioRejected: It can't be decoded, or is larger or longer than is taken.
            StorageFailed: The folder can't be written.
        """
        name = name[:MAX_UPLOAD_NAME_CHARS] or "recording"
        info, clip = decode_guarded(path, display_name=name)
        upload = SampleUpload(secrets.token_hex(8), name, info, clip.duration_s)
        self._root.mkdir(parents=True, exist_ok=True)
        write_wav(self._path(upload.upload_id), clip)
        with self._lock:
            self._kept[upload.upload_id] = upload
            old = list(self._kept)[:-MAX_UPLOADS]
        for upload_id in old:
            self.drop(upload_id)
        return upload

    def get(self, upload_id: str) -> SampleUpload:
        """A kept recording.

        Raises:
            NotFound: It was taken, dropped, or made room for newer ones.
        """
        with self._lock:
            upload = self._kept.get(upload_id)
        if upload is None:
            raise NotFound("This recording isn't here any more. Choose it again.")
        return upload

    def part(self, upload_id: str, start_s: float = 0.0, end_s: float | None = None) -> Clip:
        """A recording from `start_s` up to `end_s`, which for None is its end.

        Raises:
            NotFound: As for `get`.
            BadInput: Nothing lies between the two.
        """
        upload = self.get(upload_id)
        end_s = upload.duration_s if end_s is None else min(end_s, upload.duration_s)
        first, after = round(max(0.0, start_s) * STUDIO_RATE_HZ), round(end_s * STUDIO_RATE_HZ)
        if after <= first:
            raise BadInput("The chosen part is empty. Move its end behind its start.")
        try:
            samples, _ = soundfile.read(
                self._path(upload_id), start=first, stop=after, dtype="float32"
            )
        except (OSError, RuntimeError) as error:
            raise NotFound("This recording isn't here any more. Choose it again.") from error
        return Clip(samples)

    def drop(self, upload_id: str) -> None:
        """Delete a recording; one that isn't there is no matter."""
        with self._lock:
            known = self._kept.pop(upload_id, None)
        if known is not None:
            self._path(upload_id).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Delete what a process that is gone left behind."""
        with self._lock:
            known = {f"{upload_id}.wav" for upload_id in self._kept}
        for path in self._root.iterdir():
            with suppress(FileNotFoundError):
                if (
                    path.name not in known
                    and time.time() - path.stat().st_mtime > _ORPHANED_AFTER_S
                ):
                    path.unlink()

    def _path(self, upload_id: str) -> Path:
        return self._root / f"{upload_id}.wav"


@dataclass(slots=True)
class UploadWriter:
    """A body on its way to disk, within a limit."""

    path: Path
    file: BinaryIO
    max_bytes: int
    size_bytes: int = 0

    def write(self, chunk: bytes) -> None:
        """Add a piece.

        Raises:
            AudioRejected: The whole is larger than is taken.
        """
        self.size_bytes += len(chunk)
        if self.size_bytes > self.max_bytes:
            raise AudioRejected(
                f"The file has more than {self.max_bytes / 1e6:g} MB, the most that is taken. Cut"
                " out the part that is needed, or save it as flac or mp3."
            )
        self.file.write(chunk)

    def finish(self) -> Path:
        """Where the whole body lies now."""
        self.file.flush()
        return self.path
