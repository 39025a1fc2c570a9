"""Mastering of a scene to a loudness target: gains, a true-peak limiter, a mixdown on disk."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import soxr

from studio.audio.clip import (
    BLOCK_SAMPLES,
    Samples,
    from_pcm16,
    peek_channels,
    silent,
    to_pcm16,
)
from studio.audio.encode import ACX_MP3, STUDIO_MP3, Mp3Settings
from studio.audio.loudness import Loudness, LoudnessMeter, measure_loudness
from studio.audio.timeline import Timeline, TimelineEntry, pan_samples
from studio.errors import BadInput

_REACH_SAMPLES = 480
"""How far around a peak the gain is lower: 20 ms on each side at the studio's rate."""

_OVERSAMPLING = 8
_RINGING_SAMPLES = 256  # of the resampler, at the ends of what it is given
_CONTEXT_SAMPLES = _REACH_SAMPLES + _RINGING_SAMPLES
_STEP_SAMPLES = 32_768
_MARGIN_DB = 0.1  # for what lies between the oversampled values, and for rounding to 16 bits
_SAFE_SHARE = 0.5  # of the ceiling; between samples a peak is at most 6 dB higher, save in tests

_Array = npt.NDArray[np.float64]


def limit_peaks(blocks: Iterable[Samples], ceiling_db: float) -> Iterator[Samples]:
    """Lower the gain around true peaks above a ceiling.

    Far from them every sample comes out as it went in. FFmpeg's `alimiter` looks at samples only,
    and between two resamplers it would change all of them; here the resampler only looks. Two
    channels get one gain, so that nothing moves to a side.

    Args:
        blocks: float32 [samples] or [samples, 2] at any level, each of any length.
        ceiling_db: The highest true peak, dBTP.

    Yields:
        As many samples as came, each in its place; blocks of other lengths. Memory holds some.
    """
    ceiling = 10 ** ((ceiling_db - _MARGIN_DB) / 20)
    for window in _iter_windows(blocks):
        yield _limit_window(window, ceiling)


def _iter_windows(blocks: Iterable[Samples]) -> Iterator[Samples]:
    """Iterate over steps of the audio, each with its context; beyond the ends is silence."""
    channels, blocks = peek_channels(blocks)
    edge = silent(_CONTEXT_SAMPLES, channels)
    whole = _STEP_SAMPLES + 2 * _CONTEXT_SAMPLES
    held = edge
    for block in blocks:
        held = np.concatenate((held, block))
        while len(held) >= whole:
            yield held[:whole]
            held = held[_STEP_SAMPLES:]
    held = np.concatenate((held, edge))
    while len(held) > 2 * _CONTEXT_SAMPLES:
        yield held[:whole]
        held = held[_STEP_SAMPLES:]


def _limit_window(window: Samples, ceiling: float) -> Samples:
    middle = slice(_CONTEXT_SAMPLES, len(window) - _CONTEXT_SAMPLES)
    if np.abs(window).max() < ceiling * _SAFE_SHARE:
        return window[middle]
    channels = window.reshape(len(window), -1).T  # [channels, samples]
    peaks = np.max([_measure_true_peaks(np.ascontiguousarray(one)) for one in channels], axis=0)
    allowed = np.minimum(1.0, ceiling / np.maximum(peaks, 1e-9))
    if allowed.min() >= 1:
        return window[middle]
    # Means of minima that reach as far are nowhere above what is allowed.
    near = _REACH_SAMPLES // 4
    gain = _running_mean(_running_mean(_running_minimum(allowed, 2 * near), near), near)
    held: Samples = (channels * gain).T.astype(np.float32).reshape(window.shape)
    return held[middle]


def _measure_true_peaks(samples: Samples) -> _Array:
    """The highest level around each sample, between them too."""
    dense = np.abs(soxr.resample(samples, 1, _OVERSAMPLING, "VHQ").astype(np.float64))
    dense.resize(len(samples) * _OVERSAMPLING, refcheck=False)
    # From each sample to the next; by strides, as numpy takes four times as long for rows of four.
    after = reduce(np.maximum, (dense[start::_OVERSAMPLING] for start in range(_OVERSAMPLING)))
    before = np.concatenate((after[:1], after[:-1]))
    peaks: _Array = np.maximum(np.abs(samples), np.maximum(before, after))
    return peaks


def _running_minimum(values: _Array, reach: int) -> _Array:
    """Running minimum over each value and `reach` neighbours on both sides."""
    lowest = np.pad(values, reach, constant_values=1.0)
    width, wanted = 1, 2 * reach + 1
    while width < wanted:
        step = min(width, wanted - width)
        lowest = np.minimum(lowest[:-step], lowest[step:])
        width += step
    return lowest


def _running_mean(values: _Array, reach: int) -> _Array:
    """Running mean over each value and `reach` neighbours on both sides."""
    padded = np.pad(values, (reach + 1, reach), constant_values=1.0)
    sums = np.cumsum(padded)
    width = 2 * reach + 1
    mean: _Array = (sums[width:] - sums[:-width]) / width
    return mean


MIN_LUFS, MAX_LUFS = -30.0, -9.0

NO_TARGET = "rendered"

MAX_VOICE_GAIN_DB = 12.0
"""The largest gain for one voice; more would raise its background noise too much."""

_CEILING_DB = -1.0
_MAX_PASSES = 3
_TOLERANCE_DB = 0.1
_MAX_MAKE_UP_DB = 3.0
"""The most gain that makes up for the limiter; more would flatten the voices."""

BlockObserver = Callable[[Iterable[Samples]], Iterator[Samples]]
"""Passes blocks on and reports progress; each pass over the scene goes through it."""


class LevelScale(StrEnum):
    """The unit of a level."""

    LUFS = "lufs"
    RMS = "rms"


@dataclass(frozen=True, slots=True)
class LoudnessTarget:
    """A loudness level that a scene is brought to.

    Attributes:
        name: As people know it.
        level_db: LUFS, or dB of full scale, by `scale`.
        ceiling_db: The highest true peak, dBTP.
        scale: What `level_db` is.
        mp3: How those who ask for this level want an MP3.
    """

    name: str
    level_db: float
    ceiling_db: float = _CEILING_DB
    scale: LevelScale = LevelScale.LUFS
    mp3: Mp3Settings = STUDIO_MP3

    def level_of(self, loudness: Loudness) -> float:
        """The audio's level on this target's scale; -inf where it can't be measured."""
        if self.scale is LevelScale.RMS and loudness.lufs is not None:
            return loudness.rms_db
        return -math.inf if loudness.lufs is None else loudness.lufs


LOUDNESS_TARGETS: Mapping[str, LoudnessTarget] = {
    target.name: target
    for target in (
        LoudnessTarget("podcast", -16.0),
        # Half a decibel below what is allowed, which an MP3 may add.
        LoudnessTarget("audiobook", -20.0, -3.5, LevelScale.RMS, ACX_MP3),
        LoudnessTarget("broadcast", -23.0),
    )
}


@dataclass(frozen=True, slots=True)
class Mastering:
    """How a scene's level is to be changed; by default it stays as it was rendered.

    Attributes:
        target: None for no level of its own.
        even_voices: Bring all speakers to one loudness first.
    """

    target: LoudnessTarget | None = None
    even_voices: bool = False

    @property
    def is_none(self) -> bool:
        return self.target is None and not self.even_voices


@dataclass(frozen=True, slots=True)
class Master:
    """The processing of a scene: a gain per segment, then a limiter.

    Attributes:
        gain_db: For the whole scene.
        voices_db: Added for single segments, by `segment_idx`.
        ceiling_db: Of the limiter; None where no peak needs one.
    """

    gain_db: float = 0.0
    voices_db: Mapping[int, float] = field(default_factory=dict)
    ceiling_db: float | None = None

    def blocks(self, timeline: Timeline) -> Iterator[Samples]:
        """The scene, as `Timeline.blocks`: as many samples and channels, each in its place."""
        scaled = self._scaled(timeline)
        return scaled if self.ceiling_db is None else limit_peaks(scaled, self.ceiling_db)

    def _scaled(self, timeline: Timeline) -> Iterator[Samples]:
        is_stereo = timeline.n_channels == 2
        for span in timeline.spans():
            gain_db = self.gain_db + self.voices_db.get(span.segment_idx, 0.0)
            gain = np.float32(10 ** (gain_db / 20))
            for block in timeline.read(span):
                scaled = block if gain == 1 else block * gain
                yield pan_samples(scaled, span.pan) if is_stereo else scaled


NO_MASTERING = Master()


def parse_target(text: str) -> LoudnessTarget | None:
    """The target that a name or a number of LUFS means; None for `NO_TARGET`.

    Raises:
        BadInput: It is neither.
    """
    name = text.strip().lower()
    if name == NO_TARGET:
        return None
    if name in LOUDNESS_TARGETS:
        return LOUDNESS_TARGETS[name]
    try:
        lufs = float(name.replace("−", "-"))
    except ValueError:
        lufs = math.nan
    if not MIN_LUFS <= lufs <= MAX_LUFS:
        raise BadInput(
            f"“{text[:40]}” is no loudness. Choose {', '.join(LOUDNESS_TARGETS)}, {NO_TARGET}, or "
            f"a number of LUFS from {MIN_LUFS:.0f} to {MAX_LUFS:.0f}."
        )
    return LoudnessTarget(f"{lufs:g} LUFS", lufs)


def plan_master(
    timeline: Timeline, speakers: Mapping[int, str], wish: Mastering, watch: BlockObserver = iter
) -> Master:
    """Find the gains for a mastering; reads the scene one to five times, in blocks.

    Args:
        timeline: The scene.
        speakers: Who speaks, by `segment_idx`; a segment that isn't there is no voice.
        wish: What is wished.
        watch: Goes along with each pass.

    Raises:
        BadInput: The scene is too quiet or too short to have a loudness.
    """
    if wish.is_none:
        return NO_MASTERING
    evened = Master(
        voices_db=_compute_voice_gains(timeline, speakers, watch) if wish.even_voices else {}
    )
    found = measure_loudness(watch(evened.blocks(timeline)))
    ceiling_db = wish.target.ceiling_db if wish.target else _CEILING_DB
    missing_db = wish.target.level_db - wish.target.level_of(found) if wish.target else 0.0
    if math.isinf(missing_db):
        raise BadInput(
            "The scene is too quiet or too short to have a loudness: nothing in it lasts 0.4 s and"
            " can be heard. Save it at the original level, or generate more of it first."
        )
    if found.true_peak_db + missing_db <= ceiling_db - _TOLERANCE_DB:
        return Master(missing_db, evened.voices_db)
    return _compensate_limiter(
        timeline, Master(missing_db, evened.voices_db, ceiling_db), wish.target, watch
    )


def _compensate_limiter(
    timeline: Timeline, master: Master, target: LoudnessTarget | None, watch: BlockObserver
) -> Master:
    """Raise the gain by what the limiter took, and lower it by what a peak is still too high."""
    assert master.ceiling_db is not None
    wished_db = ceiling_db = master.ceiling_db
    most_db = master.gain_db + _MAX_MAKE_UP_DB
    for _ in range(_MAX_PASSES):
        found = measure_loudness(watch(master.blocks(timeline)))
        over_db = max(0.0, found.true_peak_db - wished_db)
        missing_db = target.level_db - target.level_of(found) if target else 0.0
        gain_db = min(most_db, master.gain_db + missing_db)
        if abs(gain_db - master.gain_db) < _TOLERANCE_DB and over_db < _TOLERANCE_DB / 4:
            break
        ceiling_db -= over_db
        master = Master(gain_db, master.voices_db, ceiling_db)
    return master


def _compute_voice_gains(
    timeline: Timeline, speakers: Mapping[int, str], watch: BlockObserver
) -> dict[int, float]:
    """Gains that bring each speaker's lines, together, to the loudness of all of them."""
    everybody = LoudnessMeter(true_peak=False)
    measured: dict[str, float] = {}

    def one_by_one() -> Iterator[Samples]:
        for speaker in dict.fromkeys(speakers.values()):
            meter = LoudnessMeter(true_peak=False)
            for block in _read_speaker(timeline, speakers, speaker):
                meter.push(block)
                everybody.push(block)
                yield block
            if (lufs := meter.finish().lufs) is not None:
                measured[speaker] = lufs

    for _ in watch(one_by_one()):
        pass
    common = everybody.finish().lufs
    if common is None:
        return {}
    moved = {
        one: max(-MAX_VOICE_GAIN_DB, min(MAX_VOICE_GAIN_DB, common - lufs))
        for one, lufs in measured.items()
    }
    # A level that somebody gave a character stands out of the others' after that, too.
    levels_db = {entry.segment_idx: entry.gain_db for entry in timeline.entries}
    return {
        idx: moved[one] + levels_db.get(idx, 0.0) for idx, one in speakers.items() if one in moved
    }


def _read_speaker(
    timeline: Timeline, speakers: Mapping[int, str], speaker: str
) -> Iterator[Samples]:
    for entry in timeline.entries:
        if speakers.get(entry.segment_idx) == speaker:
            yield from timeline.read(entry)


_SAMPLE_BYTES = 2


class Mixdown:
    """The scene's 16-bit samples, mono; any part of them is read without what stands before it."""

    def __init__(self, file: IO[bytes], n_samples: int) -> None:
        self._file = file
        self.n_samples = n_samples

    def blocks(self) -> Iterator[Samples]:
        """The whole scene: float32 [samples]."""
        for piece in self.pieces(0, self.n_samples):
            yield from_pcm16(np.frombuffer(piece, dtype="<i2"))

    def part(self, entry: TimelineEntry) -> Iterator[bytes]:
        """One entry's samples, as s16le."""
        return self.pieces(entry.start_sample, entry.n_samples)

    def pieces(self, start_sample: int, n_samples: int) -> Iterator[bytes]:
        """A number of samples from a first one on, as s16le in pieces of at most a block."""
        left = n_samples
        while left:
            self._file.seek((start_sample + n_samples - left) * _SAMPLE_BYTES)
            piece = self._file.read(min(left, BLOCK_SAMPLES) * _SAMPLE_BYTES)
            assert piece, "a mixdown is as long as its timeline"
            left -= len(piece) // _SAMPLE_BYTES
            yield piece


@contextmanager
def open_mixdown(
    timeline: Timeline, master: Master, folder: Path, watch: BlockObserver
) -> Iterator[Mixdown]:
    """Write a mastered scene into a temporary file in a folder, in mono."""
    with tempfile.TemporaryFile(dir=folder) as file:
        for block in watch(master.blocks(timeline.to_mono())):
            file.write(to_pcm16(block).tobytes())
        yield Mixdown(file, timeline.n_samples)
