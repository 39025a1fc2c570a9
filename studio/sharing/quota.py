"""How much one visitor of a shared studio may have."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from studio.dialog.planning import SilenceSegment, SpeechSegment
from studio.engine.job import Job
from studio.errors import LimitReached

_CHARS_A_SECOND = 14.0
"""Of speech in most languages; what a job will take is not known before it is spoken."""

_SEGMENTS_A_LINE = 4
"""Lines and the pauses between them; each segment takes memory, also one that is never spoken."""


@dataclass(frozen=True, slots=True)
class VisitLimits:
    """What one visitor may have; each refills evenly over its time.

    Attributes:
        lines_an_hour: Segments spoken.
        audio_s_an_hour: Seconds of audio: silences, and speech as estimated from the text.
        uploads_an_hour: Recordings sent.
        requests_a_minute: Requests of any kind.
        visitors: Workspaces there may be at once.
        workspace_bytes: What one workspace may take of the disk.
    """

    lines_an_hour: int = 3_000
    audio_s_an_hour: int = 7_200
    uploads_an_hour: int = 120
    requests_a_minute: int = 900
    visitors: int = 500
    workspace_bytes: int = 2_000_000_000


class TokenBucket:
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
            0 when it was taken, else the seconds until it will be there; what is above the
            bucket's size will never be.
        """
        with self._lock:
            now_s = self._clock()
            self._held = min(self._size, self._held + (now_s - self._at_s) * self._per_s)
            self._at_s = now_s
            if amount <= self._held:
                self._held -= amount
                return 0.0
            return (amount - self._held) / self._per_s

    def give_back(self, amount: float) -> None:
        """Put back what was taken and isn't used."""
        with self._lock:
            self._held = min(self._size, self._held + amount)


class RateLimits:
    """One visitor's buckets."""

    def __init__(self, limits: VisitLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with all of it."""
        hour_s = 3600.0
        self._limits = limits
        self._lines = TokenBucket(limits.lines_an_hour, limits.lines_an_hour / hour_s, clock=clock)
        self._audio = TokenBucket(
            limits.audio_s_an_hour, limits.audio_s_an_hour / hour_s, clock=clock
        )
        self._uploads = TokenBucket(
            limits.uploads_an_hour, limits.uploads_an_hour / hour_s, clock=clock
        )
        self._requests = TokenBucket(
            limits.requests_a_minute, limits.requests_a_minute / 60.0, clock=clock
        )

    def spend_job(self, job: Job) -> None:
        """Take what a job will use.

        Raises:
            LimitReached: It isn't there now; nothing of the job runs.
        """
        lines, audio_s = _size_of(job)
        self._check_size(len(job.order.plan.segments), lines, audio_s)
        _spend(self._lines, lines, "lines")
        try:
            _spend(self._audio, audio_s, "seconds of audio")
        except LimitReached:
            self._lines.give_back(lines)
            raise

    def _check_size(self, segments: int, lines: int, audio_s: float) -> None:
        most_lines, most_s = self._limits.lines_an_hour, self._limits.audio_s_an_hour
        if lines > most_lines or segments > most_lines * _SEGMENTS_A_LINE:
            too_much = f"{most_lines:,} lines"
        elif audio_s > most_s:
            too_much = f"{round(most_s / 60):,} min of audio"
        else:
            return
        raise LimitReached(
            f"A visitor's dialog may have {too_much} at most here; render it in parts, or on a "
            "studio of your own.",
            retry_after_s=3600,
        )

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


def _spend(bucket: TokenBucket, amount: float, what: str) -> None:
    wait_s = bucket.take(amount)
    if wait_s:
        raise LimitReached(
            f"That is more {what} than one visitor may have for now. Try again in "
            f"{max(1, round(wait_s / 60))} min, or use a studio of your own.",
            retry_after_s=wait_s,
        )


def _size_of(job: Job) -> tuple[int, float]:
    """The lines a job speaks, and the seconds of audio it will be."""
    segments = job.order.plan.segments
    chars = [len(one.text) for one in segments if isinstance(one, SpeechSegment)]
    silence_s = sum(one.duration_s for one in segments if isinstance(one, SilenceSegment))
    return len(chars), sum(chars) / _CHARS_A_SECOND + silence_s
