"""The limits of one visitor of a shared studio, enforced by token buckets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from studio.dialog.planning import SilenceSegment, SpeechSegment
from studio.engine.job import Job
from studio.errors import LimitReached

_CHARS_A_SECOND = 14.0
"""Speech in most languages; estimates a job's audio, whose length isn't known beforehand."""

_SEGMENTS_A_LINE = 4
"""Bounds a job's segments, pauses included, because each takes memory even if never spoken."""


@dataclass(frozen=True, slots=True)
class VisitLimits:
    """The limits of one visitor; each refills evenly over its period.

    Attributes:
        lines_an_hour: Segments spoken.
        audio_s_an_hour: Seconds of audio: silences, and speech as estimated from the text.
        uploads_an_hour: Recordings sent.
        requests_a_minute: Requests of any kind.
        visitors: Sessions at once, of all visitors.
        workspace_bytes: Disk space of one workspace.
    """

    lines_an_hour: int = 3_000
    audio_s_an_hour: int = 7_200
    uploads_an_hour: int = 120
    requests_a_minute: int = 900
    visitors: int = 500
    workspace_bytes: int = 2_000_000_000


class TokenBucket:
    """A token bucket, which refills evenly up to its size. Safe from any thread."""

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
        """Take an amount, or nothing if the bucket has less.

        Returns:
            0 if it was taken, else the seconds until the bucket has that much; it never has more
            than its size.
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
        """Put back what was taken and not used."""
        with self._lock:
            self._held = min(self._size, self._held + amount)


class RateLimits:
    """One visitor's token buckets."""

    def __init__(self, limits: VisitLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with full buckets."""

        def bucket(size: int, period_s: float) -> TokenBucket:
            return TokenBucket(size, size / period_s, clock=clock)

        self._limits = limits
        self._lines = bucket(limits.lines_an_hour, 3600.0)
        self._audio = bucket(limits.audio_s_an_hour, 3600.0)
        self._uploads = bucket(limits.uploads_an_hour, 3600.0)
        self._requests = bucket(limits.requests_a_minute, 60.0)

    def spend_job(self, job: Job) -> None:
        """Charge a job's lines and its estimated audio.

        Raises:
            LimitReached: The visitor has less than that left; nothing is charged.
        """
        lines, audio_s = _size_of(job)
        self._check_size(len(job.spec.plan.segments), lines, audio_s)
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
        """Charge one upload.

        Raises:
            LimitReached: None is left for now.
        """
        _spend(self._uploads, 1, "uploads")

    def spend_request(self) -> None:
        """Charge one request.

        Raises:
            LimitReached: None is left for now.
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
    """The number of lines that a job speaks, and the estimated seconds of its audio."""
    segments = job.spec.plan.segments
    chars = [len(one.text) for one in segments if isinstance(one, SpeechSegment)]
    silence_s = sum(one.duration_s for one in segments if isinstance(one, SilenceSegment))
    return len(chars), sum(chars) / _CHARS_A_SECOND + silence_s
