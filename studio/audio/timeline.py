"""A timeline: takes and silences laid end to end or with gaps, exact to the sample."""

from __future__ import annotations

import asyncio
import math
import wave
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from studio.audio.clip import BLOCK_SAMPLES, STUDIO_RATE_HZ, Clip, Samples, from_pcm16
from studio.audio.encode import change_tempo
from studio.errors import StorageFailed

MAX_PACE = 1.3
"""How many times as fast a take is at most, where it wouldn't end in time otherwise."""

_UNHEARD_SAMPLES = STUDIO_RATE_HZ // 100
"""So much later nobody hears that a line begins."""

_KNEE = np.float32(0.8)
"""From which level on a louder sound is bent."""

_MAX_WHOLE_S = 7_200.0
"""Limit of what is read as a whole: 700 MB."""


@dataclass(frozen=True, slots=True)
class TakePart:
    """A finished segment: mono 16-bit WAV at the studio's rate, as `write_wav` makes it.

    Attributes:
        gain_db: Added where it is laid out; the file stays as it is.
        pan: From -1, left, to 1, right.
    `gap_s` is the silence before it, unless it is the first one laid. `start_s` is the second of
    the scene in which it begins, whatever its gap; None where it follows what is before it.
    """

    segment_idx: int
    path: Path
    gain_db: float = 0.0
    gap_s: float = 0.0
    pan: float = 0.0
    start_s: float | None = None


@dataclass(frozen=True, slots=True)
class SilencePart:
    """Digital silence, rounded to the nearest sample as `Clip.silence` does; a gap as a take."""

    segment_idx: int
    duration_s: float
    gap_s: float = 0.0


@dataclass(frozen=True, slots=True)
class FailedPart:
    """A segment without audio, and why."""

    segment_idx: int
    message: str


TimelinePart = TakePart | SilencePart | FailedPart


GAP_IDX = -1
"""In the place of the `segment_idx` of a gap, which is no segment's."""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A segment's position: samples `start_sample` to `end_sample`; silent if `source` is None.

    Times in seconds are at the studio's rate. `pace` says how many times as fast as in its file.
    """

    segment_idx: int
    start_sample: int
    n_samples: int
    source: Path | None = None
    gain_db: float = 0.0
    pan: float = 0.0
    pace: float = 1.0

    @property
    def end_sample(self) -> int:
        """The first sample after it."""
        return self.start_sample + self.n_samples

    @property
    def start_s(self) -> float:
        """Where it starts on the timeline, in seconds."""
        return self.start_sample / STUDIO_RATE_HZ

    @property
    def duration_s(self) -> float:
        """Its length in seconds."""
        return self.n_samples / STUDIO_RATE_HZ


@dataclass(frozen=True, slots=True)
class Timeline:
    """Entries without overlaps, silent between them, and the segments that are left out.

    Made by `lay_out`. Nothing but the entries is in memory: the audio is read when it is asked for.
    `late_s` has by how much a segment ends after the start of the next, by its index.
    """

    entries: tuple[TimelineEntry, ...]
    skipped: tuple[FailedPart, ...] = ()
    late_s: Mapping[int, float] = field(default_factory=dict)

    @property
    def n_channels(self) -> int:
        """2, left and right, where any entry is panned, else 1."""
        return 2 if any(entry.pan for entry in self.entries) else 1

    def to_mono(self) -> Timeline:
        """The same without panning, as what holds single voices has them."""
        return replace(self, entries=tuple(replace(entry, pan=0.0) for entry in self.entries))

    @property
    def n_samples(self) -> int:
        """Length in samples of each channel: of the entries and the gaps between them."""
        return self.entries[-1].end_sample if self.entries else 0

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.n_samples / STUDIO_RATE_HZ

    def blocks(self) -> Iterator[Samples]:
        """Read the whole timeline, at most `BLOCK_SAMPLES` at a time.

        Yields:
            float32 at the studio's rate, [samples] or, with two channels, [samples, 2]; joined they
                have `n_samples`.
        """
        is_stereo = self.n_channels == 2
        for span in self.spans():
            for block in self.read(span):
                yield pan_samples(block, span.pan) if is_stereo else block

    def spans(self) -> Iterator[TimelineEntry]:
        """The entries, and silent ones with the `segment_idx` `GAP_IDX` for the gaps."""
        at_sample = 0
        for entry in self.entries:
            if entry.start_sample > at_sample:
                yield TimelineEntry(GAP_IDX, at_sample, entry.start_sample - at_sample)
            yield entry
            at_sample = entry.end_sample

    @property
    def silence_s(self) -> float:
        """Length of all that is silent, in seconds."""
        return sum(span.duration_s for span in self.spans() if span.source is None)

    def read(self, entry: TimelineEntry) -> Iterator[Samples]:
        """Read one of its spans in blocks: float32 [samples], mono however it is panned."""
        return _read_silence(entry) if entry.source is None else _read_take(entry)


def lay_out(parts: Iterable[TimelinePart]) -> Timeline:
    """Lay parts in the order given, each after its gap or at its start.

    What doesn't end before the next start is spoken up to `MAX_PACE` times as fast, and what ends
    later even so moves what follows. A failed part and a take whose file can't be used take no
    time; both stand in `skipped`.
    """
    entries: list[TimelineEntry] = []
    skipped: list[FailedPart] = []
    late_s: dict[int, float] = {}
    run = 0  # where in `entries` the last part with a start is
    at_sample = 0
    for part in parts:
        start_s = part.start_s if isinstance(part, TakePart) else None
        if start_s is not None:
            start_sample = round(start_s * STUDIO_RATE_HZ)
            if entries[run:] and entries[-1].end_sample > start_sample + _UNHEARD_SAMPLES:
                entries[run:] = _hasten(entries[run:], start_sample)
            end_sample = entries[-1].end_sample if entries else 0
            if end_sample > start_sample + _UNHEARD_SAMPLES:
                late_s[entries[-1].segment_idx] = (end_sample - start_sample) / STUDIO_RATE_HZ
            run, at_sample = len(entries), max(end_sample, start_sample)
        entry = _place_part(part, at_sample, is_first=not entries)
        if isinstance(entry, FailedPart):
            skipped.append(entry)
        else:
            entries.append(entry)
            at_sample = entry.end_sample
    return Timeline(tuple(entries), tuple(skipped), late_s)


def _hasten(run: list[TimelineEntry], end_sample: int) -> list[TimelineEntry]:
    """Entries that follow each other, as much faster as they must be to end in time, or can be."""
    start, length = run[0].start_sample, run[-1].end_sample - run[0].start_sample
    pace = min(MAX_PACE, length / max(1, end_sample - start))
    places = [
        tuple(start + round((at - start) / pace) for at in (one.start_sample, one.end_sample))
        for one in run
    ]
    return [
        replace(one, start_sample=begin, n_samples=end - begin, pace=pace if one.source else 1.0)
        for one, (begin, end) in zip(run, places, strict=True)
    ]


def lay_out_part(part: TimelinePart) -> Timeline:
    """A timeline of one take or silence.

    Raises:
        StorageFailed: The take's file is missing or broken.
    """
    timeline = lay_out([part])
    if timeline.skipped:
        raise StorageFailed(timeline.skipped[0].message)
    return timeline


def read_take(path: Path) -> Clip:
    """All of a take, which may have come with a project from anywhere; no decoder reads it.

    Raises:
        StorageFailed: Its file is missing or broken, no WAV as `write_wav` makes it, or longer than
            two hours.
    """
    timeline = lay_out_part(TakePart(0, path))
    if timeline.duration_s > _MAX_WHOLE_S:
        raise StorageFailed(f"The take {path} is longer than two hours. Divide its line.")
    blocks = timeline.blocks()
    return Clip(np.concatenate([Clip.silence(0).samples, *blocks]))


def pan_samples(samples: Samples, pan: float) -> Samples:
    """Pan mono samples at equal power, -3 dB on both sides in the middle: [samples, 2].

    Source: the Web Audio API's equal-power panning of a StereoPannerNode with mono input, which
    plays the same on the page.
    """
    angle = (pan + 1) * math.pi / 4
    return np.outer(samples, np.array([math.cos(angle), math.sin(angle)], dtype=np.float32))


async def stream_timeline(timeline: Timeline) -> AsyncIterator[Samples]:
    """Read a timeline a few seconds at a time, so that long ones take little memory."""
    blocks = timeline.blocks()
    while (block := await asyncio.to_thread(next, blocks, None)) is not None:
        yield block


def _place_part(
    part: TimelinePart, at_sample: int, *, is_first: bool
) -> TimelineEntry | FailedPart:
    has_start = isinstance(part, TakePart) and part.start_s is not None
    if not isinstance(part, FailedPart) and not is_first and not has_start:
        at_sample += round(part.gap_s * STUDIO_RATE_HZ)
    match part:
        case FailedPart():
            return part
        case SilencePart():
            n_samples = max(0, round(part.duration_s * STUDIO_RATE_HZ))
            return TimelineEntry(part.segment_idx, at_sample, n_samples)
        case TakePart():
            try:
                with _open_take(part.path) as take:
                    n_samples = take.getnframes()
            except StorageFailed as error:
                return FailedPart(part.segment_idx, str(error))
            return TimelineEntry(
                part.segment_idx, at_sample, n_samples, part.path, part.gain_db, part.pan
            )


@contextmanager
def _open_take(path: Path) -> Iterator[wave.Wave_read]:
    try:
        with wave.open(str(path), "rb") as take:
            form = (take.getnchannels(), take.getsampwidth(), take.getframerate())
            if form != (1, 2, STUDIO_RATE_HZ):
                raise wave.Error(f"it is not mono 16-bit WAV at {STUDIO_RATE_HZ:,} Hz")
            yield take
    except (OSError, EOFError, wave.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error) or "it is cut off"
        raise StorageFailed(f"The take {path} can't be read: {reason}. Render it again.") from error


def _read_silence(entry: TimelineEntry) -> Iterator[Samples]:
    for start in range(0, entry.n_samples, BLOCK_SAMPLES):
        yield np.zeros(min(BLOCK_SAMPLES, entry.n_samples - start), dtype=np.float32)


def _read_take(entry: TimelineEntry) -> Iterator[Samples]:
    if entry.pace == 1:
        yield from _read_file(entry, entry.n_samples)
        return
    assert entry.source is not None
    with _open_take(entry.source) as take:
        n_samples = take.getnframes()
    left = entry.n_samples
    for block in change_tempo(_read_file(entry, n_samples), entry.pace):
        yield block[:left]
        left -= len(block[:left])
    yield np.zeros(left, dtype=np.float32)  # the filter gives a few samples more or less


def _read_file(entry: TimelineEntry, left: int) -> Iterator[Samples]:
    assert entry.source is not None
    gain = np.float32(10 ** (entry.gain_db / 20))
    with _open_take(entry.source) as take:
        if take.getnframes() != left:
            raise _build_changed_error(entry.source)
        while left:
            block = np.frombuffer(take.readframes(min(left, BLOCK_SAMPLES)), dtype="<i2")
            if not len(block):
                raise _build_changed_error(entry.source)
            left -= len(block)
            samples = from_pcm16(block)
            yield samples if entry.gain_db == 0 else _amplify(samples, gain)


def _amplify(samples: Samples, gain: np.float32) -> Samples:
    """Change a level; what would be beyond full scale is bent below it, rather than cut."""
    louder = samples * gain
    if gain <= 1:
        return louder
    beyond = np.abs(louder) > _KNEE
    bent = _KNEE + (1 - _KNEE) * np.tanh((np.abs(louder[beyond]) - _KNEE) / (1 - _KNEE))
    louder[beyond] = np.copysign(bent, louder[beyond])
    return louder


def _build_changed_error(path: Path) -> StorageFailed:
    return StorageFailed(f"The take {path} has changed or is cut off. Render the line again.")
