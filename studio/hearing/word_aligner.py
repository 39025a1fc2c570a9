"""Aligns takes in a process of its own, at the lowest priority, one after another.

The arithmetic would hold the engine's threads up; and a fault in it ends a child, and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import wave
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from studio.audio.clip import Clip, Pcm16, write_wav
from studio.backends.espeak.espeak_voices import find_package
from studio.errors import ModelUnavailable, SpeechFailed, StorageFailed
from studio.hearing.draft_reading import DraftReader
from studio.hearing.word_times import Alignment, PhonemeTime, WordTime, align_samples
from studio.storage.guarded_child import build_child_environment

IDLE_S = 60.0
"""Then the process ends, and gives its 70 MB back."""

_LEAST_PATIENCE_S = 60.0
_PATIENCE_S_PER_BYTE = 1 / 48_000  # as long as the take lasts, of which it uses a fiftieth
_NICE = 19

_ON_WINDOWS = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
    subprocess, "IDLE_PRIORITY_CLASS", 0
)

_FAILED = (
    "The words of this take can't be timed: the process that does it stopped. Its sound is as it "
    "was."
)


class WordAligner:
    """Aligns takes; from any thread, one at a time. Its process starts with the first take.

    Attributes:
        is_closed: Whether it aligns nothing any more.
    """

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._lock = threading.Lock()  # guards all below, and is held while a take is aligned
        self._process: subprocess.Popen[bytes] | None = None
        self._timer: threading.Timer | None = None
        self.is_closed = False

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None if it can."""
        try:
            find_package()
        except ModelUnavailable as error:
            return str(error)
        return None

    def align(self, clip: Clip, text: str, language: str | None = None) -> Alignment:
        """Align a clip, as `studio.hearing.word_times.align`."""
        with tempfile.TemporaryDirectory(prefix="tableread-align-") as folder:
            path = Path(folder) / "clip.wav"
            write_wav(path, clip)
            return self.align_file(path, text, language)

    def align_words(
        self, clip: Clip, text: str, language: str | None = None
    ) -> tuple[WordTime, ...]:
        """The words only, as `align`."""
        return self.align(clip, text, language).words

    def align_file(self, path: Path, text: str, language: str | None = None) -> Alignment:
        """Align a take that lies on disk as the studio writes it: a WAV of 16 bits, mono.

        Raises:
            SpeechFailed, ModelUnavailable: As `align`.
            StorageFailed: It can't be read.
        """
        order: dict[str, Any] = {"path": str(path.absolute()), "text": text, "language": language}
        with self._lock:
            answer = self._ask(order, path)
        if "unreadable" in answer:
            raise StorageFailed(f"“{path.name}” can't be read: {answer['unreadable']}.")
        if "unavailable" in answer:
            raise ModelUnavailable(answer["unavailable"])
        if "failed" in answer:
            raise SpeechFailed(answer["failed"])
        return Alignment(
            tuple(WordTime(**one) for one in answer["words"]),
            tuple(PhonemeTime(**one) for one in answer["phonemes"]),
        )

    def close(self) -> None:
        """End the process now, whatever it is doing."""
        self.is_closed = True
        process = self._process
        if process is not None:
            process.kill()  # which ends a wait for its answer, and so frees the lock
        with self._lock:
            self._stop()

    def _ask(self, order: dict[str, Any], path: Path) -> dict[str, Any]:
        if self._timer is not None:
            self._timer.cancel()
        if self.is_closed:
            raise SpeechFailed("The studio is closing.")
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = _start_process()
        size = path.stat().st_size if path.exists() else 0
        try:
            with _killed_after(self._process, _LEAST_PATIENCE_S + size * _PATIENCE_S_PER_BYTE):
                answer = _exchange(self._process, order)
        except (OSError, ValueError):
            self._stop()
            raise SpeechFailed(_FAILED) from None
        self._timer = threading.Timer(self._idle_s, self._end_if_idle, (self._process,))
        self._timer.daemon = True
        self._timer.start()
        return answer

    def _end_if_idle(self, process: subprocess.Popen[bytes]) -> None:
        if self._lock.acquire(blocking=False):  # else it isn't idle
            try:
                if self._process is process and self._timer is threading.current_thread():
                    self._stop()
            finally:
                self._lock.release()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(OSError):  # what it never took is still in the buffer
                stream.close()


def _start_process() -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "studio.hearing.word_aligner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
            env=build_child_environment(),
            creationflags=_ON_WINDOWS,
        )
    except OSError as error:
        raise ModelUnavailable(
            f"No process that times words can be started ({error.strerror}). Close other programs "
            "and try again."
        ) from error


@contextmanager
def _killed_after(process: subprocess.Popen[bytes], timeout_s: float) -> Iterator[None]:
    # Pipes have no time-out on every system, but a read ends when the process does.
    watchdog = threading.Timer(timeout_s, process.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def _exchange(process: subprocess.Popen[bytes], order: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order).encode() + b"\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def _run_child(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Answer orders until there are no more."""
    with suppress(OSError, AttributeError):
        os.nice(_NICE)  # there is none on Windows
    reader: DraftReader | None = None
    try:
        for line in orders:
            try:
                reader = reader or DraftReader()  # in a process of this one's own
                answer = _answer(json.loads(line), reader)
            except ModelUnavailable as error:
                answer = {"unavailable": str(error)}
            except SpeechFailed as error:
                answer = {"failed": str(error)}
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
    finally:
        if reader is not None:
            reader.close()


def _answer(order: dict[str, Any], reader: DraftReader) -> dict[str, Any]:
    try:
        # Mapped, so that a take of hours takes no memory.
        samples, rate_hz = _map_samples(Path(order["path"]))
    except (OSError, ValueError, EOFError, wave.Error) as error:
        return {"unreadable": str(getattr(error, "strerror", None) or error)}
    reading = reader.read(order["text"], order["language"])
    return asdict(align_samples(samples, rate_hz, order["text"], reading))


def _map_samples(path: Path) -> tuple[Pcm16, int]:
    """The samples of a WAV, mapped from the file, and their rate.

    Raises:
        OSError, EOFError, ValueError: It isn't there, or is no WAV of 16 bits and one channel.
    """
    with path.open("rb") as file, wave.open(file) as audio:
        n_samples, rate_hz = audio.getnframes(), audio.getframerate()
        if audio.getsampwidth() != 2 or audio.getnchannels() != 1:
            raise ValueError("it isn't mono with 16 bits")
        start = file.tell()  # of the samples, which wave hasn't read
    if not n_samples:
        return np.zeros(0, dtype=np.int16), rate_hz
    return np.memmap(path, np.dtype("<i2"), "r", start, (n_samples,)), rate_hz


if __name__ == "__main__":
    _run_child(sys.stdin.buffer, sys.stdout.buffer)
