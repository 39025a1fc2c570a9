"""How much one visitor of a shared studio may have."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from studio.dialog.planning import SpeechSegment
from studio.engine.engine import Engine
from studio.engine.job import Job
from studio.errors import LimitReached

_CHARS_A_SECOND = 14.0
"""Of speech in most languages; what a job will take is not known before it is spoken."""


@dataclass(frozen=True, slots=True)
class VisitLimits:
    """What one visitor may have; each refills evenly over its time.

    Attributes:
        lines_an_hour: Segments spoken.
        audio_s_an_hour: Seconds of speech, estimated from the text.
        uploads_an_hour: Recordings sent.
        requests_a_minute: Requests of any kind.
        visitors: Workspaces there may be at once.
    """

    lines_an_hour: int = 3_000
    audio_s_an_hour: int = 7_200
    uploads_an_hour: int = 120
    requests_a_minute: int = 900
    visitors: int = 500


class Bucket:
    """Fills evenly up to its size; what is taken must be in it. Safe from many threads."""

    def __init__(
        self, size: float, per_s: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start full."""
        self._size = size
        self._per_s = per_s
        self._clock = clock
        # Guards the two fields below.
        self._lock = threading.Lock()
        self._held = size
        self._at_s = clock()

    def take(self, amount: float) -> float:
        """Take an amount, or nothing where it isn't there.

        Returns:
            0 when it was taken, else the seconds until it will be there; an amount above the
            bucket's size is taken as its size.
        """
        wanted = min(amount, self._size)
        with self._lock:
            now_s = self._clock()
            self._held = min(self._size, self._held + (now_s - self._at_s) * self._per_s)
            self._at_s = now_s
            if wanted <= self._held:
                self._held -= wanted
                return 0.0
            return (wanted - self._held) / self._per_s


class Allowance:
    """One visitor's buckets."""

    def __init__(self, limits: VisitLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with all of it."""
        hour_s = 3600.0
        self._max_lines = limits.lines_an_hour
        self._lines = Bucket(limits.lines_an_hour, limits.lines_an_hour / hour_s, clock=clock)
        self._audio = Bucket(limits.audio_s_an_hour, limits.audio_s_an_hour / hour_s, clock=clock)
        self._uploads = Bucket(limits.uploads_an_hour, limits.uploads_an_hour / hour_s, clock=clock)
        self._requests = Bucket(
            limits.requests_a_minute, limits.requests_a_minute / 60.0, clock=clock
        )

    def spend_job(self, job: Job) -> None:
        """Take what a job will use.

        Raises:
            LimitReached: It isn't there now; nothing of the job runs.
        """
        texts = [
            segment.text
            for segment in job.order.plan.segments
            if isinstance(segment, SpeechSegment)
        ]
        if len(texts) > self._max_lines:
            raise LimitReached(
                f"A visitor's dialog may have {self._max_lines:,} lines at most here; render it in "
                "parts, or on a studio of your own.",
                retry_after_s=3600,
            )
        _spend(self._lines, len(texts), "lines")
        _spend(self._audio, sum(map(len, texts)) / _CHARS_A_SECOND, "seconds of speech")

    def spend_upload(self) -> None:
        """Take one upload.

        Raises:
            LimitReached: There is none left now.
        """
        _spend(self._uploads, 1, "uploads")

    def spend_request(self) -> None:
        """Take one request.

        Raises:
            LimitReached: There is none left now.
        """
        _spend(self._requests, 1, "requests")


class VisitorsEngine(Engine):
    """The shared engine as one visitor has it: what is spoken counts, and models stay as they are.

    It has all of the shared engine's parts and starts none of its own.
    """

    def __init__(self, shared: Engine, allowance: Allowance) -> None:
        """Put a visitor before an engine."""
        self.__dict__.update(shared.__dict__)
        self._shared = shared
        self._allowance = allowance

    def submit(self, job: Job, *, listen: bool) -> None:
        """Let a job begin, if the visitor has that much left.

        Raises:
            LimitReached: Not now.
        """
        self._allowance.spend_job(job)
        self._shared.submit(job, listen=listen)

    def retire(self, name: str) -> None:
        """Leave the model to the others; the idle check unloads it."""


def _spend(bucket: Bucket, amount: float, what: str) -> None:
    wait_s = bucket.take(amount)
    if wait_s:
        raise LimitReached(
            f"That is more {what} than one visitor may have for now. Try again in "
            f"{max(1, round(wait_s / 60))} min, or use a studio of your own.",
            retry_after_s=wait_s,
        )
