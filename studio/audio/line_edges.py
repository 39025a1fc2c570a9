"""The silence at a line's ends, of which each voice leaves another length, cut to the same.

A sound is told from silence by the loudness of the line itself, and what is cut depends on its
samples only, however they come in chunks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from studio.audio.clip import FLOOR_DB, STUDIO_RATE_HZ, Samples, silent
from studio.errors import SpeechFailed

_FRAME = STUDIO_RATE_HZ // 100
_KEPT_BEFORE, _KEPT_BEHIND = 2, 3  # frames of 10 ms
_FADE_SAMPLES = STUDIO_RATE_HZ // 200
# Below the loudest frame. A soft fricative at an edge lies 30 to 40 dB below, the trained voices'
# silence 55 and more.
_SILENT_BELOW_DB = 45.0
_SILENT_DB = -70.0  # whatever the line's loudness
# How loud a line is, isn't known at its beginning: its first vowel comes soon after such a frame.
_SURELY_SOUND_DB = -45.0
_FRAMES_TO_VOWEL = 15


def trim_edges(
    chunks: Iterator[Samples], *, begins: bool = True, ends: bool = True
) -> Iterator[Samples]:
    """Cut the silence before the first sound of a line to 20 ms, and behind its last to 30 ms.

    A line without any sound stays as it is, and so does one that fails.

    Args:
        chunks: float32 [samples] each, at the studio's rate; closed when this iterator is closed.
        begins: Whether the silence before is cut.
        ends: Whether that behind is cut.

    Yields:
        float32 [samples], never empty. What may turn out to be the end is held back.
    """
    line = _Line(begins=begins, ends=ends)
    try:
        for chunk in chunks:
            yield from line.push(chunk)
        yield from line.finish()
    except SpeechFailed:
        yield from line.held.take(line.held.until)
        raise
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


class _Held:
    """Samples that aren't passed on yet: from `begins` on to `until`, counted from the first."""

    def __init__(self) -> None:
        self._chunks: deque[Samples] = deque()
        self.begins = self.until = 0

    def add(self, chunk: Samples) -> None:
        self._chunks.append(chunk)
        self.until += len(chunk)

    def take(self, until: int) -> Iterator[Samples]:
        """Yield all up to a sample, as views."""
        while self._chunks and self.begins < until:
            chunk = self._chunks.popleft()
            taken = chunk[: until - self.begins]
            if len(taken) < len(chunk):
                self._chunks.appendleft(chunk[len(taken) :])
            self.begins += len(taken)
            if len(taken):
                yield taken


class _Line:
    """A line as it comes in, frame by frame."""

    def __init__(self, *, begins: bool, ends: bool) -> None:
        self.held = _Held()
        self._ends = ends
        self._part = silent(0)  # of a frame
        self._frames = 0
        self._loudest_db = FLOOR_DB
        # Of the frames until it is known where the line begins; None from then on.
        self._levels_db: list[float] | None = [] if begins else None
        self._known_at: int | None = None
        self._sounds_until = 0  # the frame behind the last that isn't silence

    def push(self, chunk: Samples) -> Iterator[Samples]:
        self.held.add(chunk)
        samples = np.concatenate([self._part, chunk])
        whole = len(samples) // _FRAME * _FRAME
        self._part = samples[whole:]
        yield from self._push_levels(_measure_levels_db(samples[:whole].reshape(-1, _FRAME)))
        if self._levels_db is None:
            yield from self.held.take(self._sounds_until * _FRAME)

    def finish(self) -> Iterator[Samples]:
        yield from self._push_levels(_measure_levels_db(self._part.reshape(1, -1)))
        if self._levels_db is not None:
            yield from self._begin(self._levels_db)
        end = (self._sounds_until + _KEPT_BEHIND) * _FRAME
        if not self._ends or not self._sounds_until or end >= self.held.until:
            yield from self.held.take(self.held.until)
            return
        yield from self.held.take(end - _FADE_SAMPLES)
        yield np.concatenate(list(self.held.take(end))) * _RISE[::-1]

    @property
    def _silent_db(self) -> float:
        return max(self._loudest_db - _SILENT_BELOW_DB, _SILENT_DB)

    def _push_levels(self, levels_db: list[float]) -> Iterator[Samples]:
        for level_db in levels_db:
            self._frames += 1
            self._loudest_db = max(self._loudest_db, level_db)
            if self._levels_db is None:
                if level_db > self._silent_db or not self._ends:
                    self._sounds_until = self._frames
                continue
            self._levels_db.append(level_db)
            if self._known_at is None and level_db >= _SURELY_SOUND_DB:
                self._known_at = self._frames + _FRAMES_TO_VOWEL
            if self._frames == self._known_at:
                yield from self._begin(self._levels_db)

    def _begin(self, levels_db: list[float]) -> Iterator[Samples]:
        """Drop what lies before the line's first sound, as soon as that is known."""
        self._levels_db = None
        sounding = np.flatnonzero(np.array(levels_db) > self._silent_db)
        if not len(sounding):
            return
        self._sounds_until = int(sounding[-1]) + 1 if self._ends else self._frames
        first = (int(sounding[0]) - _KEPT_BEFORE) * _FRAME
        if first > 0:
            for _ in self.held.take(first):
                pass
            yield np.concatenate(list(self.held.take(first + _FADE_SAMPLES))) * _RISE


def _measure_levels_db(frames: Samples) -> list[float]:
    """Mean power of each of [frames, samples], dB of full scale."""
    if not frames.size:
        return []
    power = np.square(frames, dtype=np.float64).mean(axis=1)
    levels_db: list[float] = (10 * np.log10(np.maximum(power, 1e-12))).tolist()
    return levels_db


_RISE: Samples = np.linspace(0, 1, _FADE_SAMPLES + 2, dtype=np.float32)[1:-1]
