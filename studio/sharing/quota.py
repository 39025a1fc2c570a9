"""The limits of a shared studio's visitors: of each, of one address, and of all together."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cachetools import LRUCache

from studio.dialog.planning import SilenceSegment, SpeechSegment
from studio.engine.job import Job
from studio.errors import LimitReached, NoRoom
from studio.storage.disk import measure_folder
from studio.storage.workspace import SPARE, DiskQuota

_CHARS_A_SECOND = 14.0
"""Speech in most languages; estimates a job's audio, whose length isn't known beforehand."""

_SEGMENTS_A_LINE = 4
"""Bounds a job's segments, pauses included, because each takes memory even if never spoken."""


@dataclass(frozen=True, slots=True)
class VisitLimits:
    """The limits of one visitor; each refills evenly over its period.

    Visitors who drop their cookie start again, so what they cost is limited for their address and
    for all visitors together as well: lines, audio, uploads and disk space.

    Attributes:
        lines_an_hour: Segments spoken.
        audio_s_an_hour: Seconds of audio: silences, and speech as estimated from the text.
        uploads_an_hour: Recordings sent.
        requests_a_minute: Requests of any kind.
        visitors: Sessions at once, of all visitors.
        workspace_bytes: Disk space of one workspace.
        address_visitors: Sessions at once, of one address.
        address_share: How many times a visitor's limits one address has.
        total_share: How many times a visitor's limits all visitors have together.
    """

    lines_an_hour: int = 3_000
    audio_s_an_hour: int = 7_200
    uploads_an_hour: int = 120
    requests_a_minute: int = 900
    visitors: int = 500
    workspace_bytes: int = 2_000_000_000
    address_visitors: int = 100
    address_share: int = 4
    total_share: int = 20


class TokenBucket:
    """A token bucket, which refills evenly up to its size. Safe from any thread."""

    def __init__(
        self, size: float, per_s: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
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
    """The token buckets of one visitor, one address, or all visitors.

    Attributes:
        wider: Limits that are charged as well, of the visitor's address and of all visitors.
    """

    def __init__(
        self,
        limits: VisitLimits,
        *,
        share: int = 1,
        whose: str = "one visitor",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with full buckets of `share` times the limits; messages name `whose` they are."""

        def bucket(size: int, period_s: float) -> TokenBucket:
            return TokenBucket(size * share, size * share / period_s, clock=clock)

        self.wider: tuple[RateLimits, ...] = ()
        self._limits = limits
        self._whose = whose
        self._buckets = {
            "lines": bucket(limits.lines_an_hour, 3600.0),
            "seconds of audio": bucket(limits.audio_s_an_hour, 3600.0),
            "uploads": bucket(limits.uploads_an_hour, 3600.0),
            "requests": bucket(limits.requests_a_minute, 60.0),
        }

    def spend_job(self, job: Job) -> None:
        """Charge a job's lines and its estimated audio."""
        lines, audio_s = _size_of(job)
        self._check_size(len(job.spec.plan.segments), lines, audio_s)
        self._spend({"lines": lines, "seconds of audio": audio_s}, (self, *self.wider))

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

    def spend_upload(self, count: int = 1) -> None:
        """Charge uploads."""
        self._spend({"uploads": count}, (self, *self.wider))

    def spend_request(self) -> None:
        """Charge one request, to the visitor alone."""
        self._spend({"requests": 1}, (self,))

    @staticmethod
    def _spend(amounts: Mapping[str, float], payers: Iterable[RateLimits]) -> None:
        """Charge all amounts to all payers, or none to any."""
        taken: list[tuple[TokenBucket, float]] = []
        for payer in payers:
            for what, amount in amounts.items():
                bucket = payer._buckets[what]
                wait_s = bucket.take(amount)
                if wait_s:
                    for charged, back in taken:
                        charged.give_back(back)
                    raise LimitReached(
                        f"That is more {what} than {payer._whose} may have for now. Try again in "
                        f"{max(1, round(wait_s / 60))} min, or use a studio of your own.",
                        retry_after_s=wait_s,
                    )
                taken.append((bucket, amount))


_MOST_NETWORKS = 10_000


class SharedLimits:
    """The limits of each address, and of all visitors together. Safe from any thread.

    Attributes:
        total: Those of all visitors.
    """

    def __init__(self, limits: VisitLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self.total = RateLimits(
            limits, share=limits.total_share, whose="all visitors together", clock=clock
        )
        # Guards the tables.
        self._lock = threading.Lock()
        self._of_networks: LRUCache[str, RateLimits] = LRUCache(_MOST_NETWORKS)
        self._newcomers: LRUCache[str | None, RateLimits] = LRUCache(_MOST_NETWORKS)

    def of_network(self, network: str | None) -> tuple[RateLimits, ...]:
        """What a visitor of an address is charged with besides the visitor's own limits.

        A tunnel or proxy that names no address brings everybody, so that only all are limited.
        """
        if network is None:
            return (self.total,)
        with self._lock:
            if network not in self._of_networks:
                self._of_networks[network] = RateLimits(
                    self._limits,
                    share=self._limits.address_share,
                    whose="the visitors of one address",
                    clock=self._clock,
                )
            return (self._of_networks[network], self.total)

    def of_newcomers(self, network: str | None) -> RateLimits:
        """What all new visitors of an address share until their cookies come back."""
        wider = self.of_network(network)
        with self._lock:
            if network not in self._newcomers:
                self._newcomers[network] = RateLimits(self._limits, clock=self._clock)
            found = self._newcomers[network]
            found.wider = wider
        return found


class VisitorsDisk:
    """What the workspaces of all visitors hold, and those of each address. Safe from any thread."""

    def __init__(self, limits: VisitLimits) -> None:
        self._of_address_bytes = limits.workspace_bytes * limits.address_share
        self._total_bytes = limits.workspace_bytes * limits.total_share
        # Guards the table, of each workspace's address and size, and the sums of it.
        self._lock = threading.Lock()
        self._held: dict[Path, tuple[str | None, int]] = {}
        self._sums: Counter[str | None] = Counter()

    def note(self, workspace: Path, network: str | None, held_bytes: int) -> None:
        """Remember a workspace's size, and the address of its last request."""
        with self._lock:
            self._forget(workspace)
            self._held[workspace] = (network, held_bytes)
            self._sums[network] += held_bytes

    def add_known(self, workspaces: Iterable[Path]) -> None:
        """Measure workspaces that nobody has used yet since the studio started."""
        for workspace in workspaces:
            if workspace not in self._held:
                size_bytes = measure_folder(workspace).size_bytes
                if workspace not in self._held:
                    self.note(workspace, None, size_bytes)

    def forget(self, workspace: Path) -> None:
        """Forget a workspace that was removed."""
        with self._lock:
            self._forget(workspace)

    def _forget(self, workspace: Path) -> None:
        network, size_bytes = self._held.pop(workspace, (None, 0))
        self._sums[network] -= size_bytes
        if not self._sums[network]:
            del self._sums[network]

    def left_bytes(self, network: str | None, *, spare: float = 0.0) -> int:
        """What visitors of an address may still write; may be negative.

        Args:
            network: None if it isn't known.
            spare: A share of the limits that may be used beyond them.
        """
        with self._lock:
            left = self._total_bytes * (1 + spare) - self._sums.total()
            if network is not None:
                of_address = self._of_address_bytes * (1 + spare) - self._sums[network]
                left = min(left, of_address)
        return int(left)


class VisitorQuota(DiskQuota):
    """The disk quota of one visitor, within those of the address and of all visitors."""

    def __init__(
        self,
        workspace: Path,
        size_bytes: int,
        disk: VisitorsDisk,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(workspace, size_bytes, clock=clock)
        self.network: str | None = None
        self._disk = disk

    @property
    def left_bytes(self) -> int | None:
        """The bytes left now, measured."""
        own_bytes = super().left_bytes
        assert own_bytes is not None  # it has a limit
        return max(0, min(own_bytes, self._disk.left_bytes(self.network)))

    def reserve(self, more_bytes: int, *, as_edit: bool = False) -> None:
        """Count bytes that are about to be written, as `DiskQuota` does.

        Raises:
            NoRoom: The visitor, the address or all visitors have no room for them.
        """
        self._note()
        left_bytes = self._disk.left_bytes(self.network, spare=SPARE * as_edit)
        if more_bytes > left_bytes:
            raise NoRoom(
                "The visitors of this studio have used all the space that they may have together. "
                "Delete what you don't need and free its space, or use a studio of your own."
            )
        super().reserve(more_bytes, as_edit=as_edit)
        self._note()

    def _note(self) -> None:
        self._disk.note(self._workspace, self.network, self._held())


def _size_of(job: Job) -> tuple[int, float]:
    """The number of lines that a job speaks, and the estimated seconds of its audio."""
    segments = job.spec.plan.segments
    chars = [len(one.text) for one in segments if isinstance(one, SpeechSegment)]
    silence_s = sum(one.duration_s for one in segments if isinstance(one, SilenceSegment))
    return len(chars), sum(chars) / _CHARS_A_SECOND + silence_s
