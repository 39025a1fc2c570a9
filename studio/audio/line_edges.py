"""The silence at a line's ends, of which each voice leaves another length, cut to the same.

A sound is told from silence by how loud the line itself is, and what is cut depends on its samples
only, however they come in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from studio.audio.clip import STUDIO_RATE_HZ, Samples, silent
from studio.errors import OutOfMemory, SpeechFailed

_FRAME = STUDIO_RATE_HZ // 100
_KEPT_BEFORE, _KEPT_BEHIND = 2, 3  # frames
_RISE: Samples = np.linspace(0, 1, STUDIO_RATE_HZ // 200, dtype=np.float32)
# Below the loudest frame. A soft fricative at an edge lies 30 to 40 dB below, the trained voices'
# silence 55 and more.
_SILENT_BELOW_DB = 42.0
_SILENT_DB = -70.0  # however quiet the line is
# At its beginning nobody knows how loud it is: its first vowel comes soon after such a frame.
_SURELY_SOUND_DB = -45.0
_FRAMES_TO_VOWEL = 15

_Levels = npt.NDArray[np.float64]


def trim_edges(
    chunks: Iterator[Samples], *, begins: bool = True, ends: bool = True
) -> Iterator[Samples]:
    """Cut the silence before a line's first sound to 20 ms, and that behind its last to 30 ms.

    A line without any sound stays as it is, and so does the end of one that fails.

    Args:
        chunks: float32 [samples] each, at the studio's rate or about it; closed when this iterator
            is closed.
        begins: Whether the silence before is cut.
        ends: Whether that behind is cut.

    Yields:
        float32 [samples], never empty. What may turn out to be the end is held back.
    """
    line = _Line(begins=begins, ends=ends)
    try:
        for chunk in chunks:
            if len(sound := line.push(chunk)):
                yield sound
        if len(rest := line.finish()):
            yield rest
    except OutOfMemory:
        raise  # it is said again from its beginning
    except SpeechFailed:
        if len(line.held):
            yield line.held
        raise
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


class _Line:
    """A line as it comes in.

    Attributes:
        held: What isn't passed on yet.
    """

    def __init__(self, *, begins: bool, ends: bool) -> None:
        self.held = silent(0)
        self._at = 0  # of what is held, in frames
        self._levels_db = np.zeros(0)
        self._is_begun = not begins
        self._ends = ends

    def push(self, chunk: Samples) -> Samples:
        """What can be passed on now."""
        self.held = np.concatenate([self.held, chunk])
        part = self.held[(len(self._levels_db) - self._at) * _FRAME :]
        self._levels_db = np.append(self._levels_db, _measure_db(part))
        self._begin(_find_first(self._levels_db))
        if not self._is_begun:
            return self.held[:0]
        until = _find_last(self._levels_db) if self._ends else len(self._levels_db)
        passed = max(0, until - self._at)
        self._at += passed
        sound, self.held = np.split(self.held, [passed * _FRAME])
        return sound

    def finish(self) -> Samples:
        """The rest of it."""
        part = self.held[(len(self._levels_db) - self._at) * _FRAME :]
        padded = np.pad(part, (0, -len(part) % _FRAME))
        self._levels_db = np.append(self._levels_db, _measure_db(padded))
        self._begin(_find_first(self._levels_db, is_whole=True))
        last = _find_last(self._levels_db)
        end = (last + _KEPT_BEHIND - self._at) * _FRAME
        if self._ends and last and end < len(self.held):
            self.held = self.held[:end]
            self.held[-len(_RISE) :] *= _RISE[::-1]
        return self.held

    def _begin(self, first: int | None) -> None:
        if self._is_begun or first is None:
            return
        self._is_begun = True
        self._at = max(0, first - _KEPT_BEFORE)
        self.held = self.held[self._at * _FRAME :]
        if self._at:
            self.held[: len(_RISE)] *= _RISE


def _measure_db(samples: Samples) -> _Levels:
    """Level of each whole frame, dB of full scale."""
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    power = np.square(frames, dtype=np.float64).mean(axis=1)
    levels_db: _Levels = 10 * np.log10(np.maximum(power, 1e-12))
    return levels_db


def _find_first(levels_db: _Levels, *, is_whole: bool = False) -> int | None:
    """The first frame with a sound; None while that isn't known, or if there is none."""
    surely = np.flatnonzero(levels_db >= _SURELY_SOUND_DB)
    known = len(levels_db) if not len(surely) else int(surely[0]) + _FRAMES_TO_VOWEL + 1
    if not is_whole and (not len(surely) or known > len(levels_db)):
        return None
    levels_db = levels_db[:known]
    loudest_db = float(levels_db.max(initial=_SILENT_DB))
    sounds = np.flatnonzero(levels_db > max(loudest_db - _SILENT_BELOW_DB, _SILENT_DB))
    return int(sounds[0]) if len(sounds) else None


def _find_last(levels_db: _Levels) -> int:
    """The frame behind the last with a sound, by how loud the line was until then; 0 for none."""
    loudest_db = np.maximum.accumulate(levels_db)
    sounds = np.flatnonzero(levels_db > np.maximum(loudest_db - _SILENT_BELOW_DB, _SILENT_DB))
    return int(sounds[-1]) + 1 if len(sounds) else 0
