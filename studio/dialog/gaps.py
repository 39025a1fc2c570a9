"""When the lines of a dialog begin: the gap before each, and the starts that some have."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from studio.dialog.model import (
    Audio,
    Dialog,
    Line,
    ParamValue,
    Silence,
    Speech,
    Unspoken,
    UnspokenKind,
    name_key,
)
from studio.errors import ScriptError

GAP = "gap_s"
"""The parameter of a line that sets the gap before it, in seconds, exactly."""

MAX_GAP_S = 30.0

START = "start_s"
"""The parameter of a line that says when it begins, in seconds from the start of the scene: not
before that, and later only where the one before lasts too long. There is no gap before it."""

MAX_START_S = 360_000.0

NATURAL_GAP_S = 0.35
"""The usual gap of new projects. A take has 0.05 s of silence at its edges besides, so that replies
are about 0.4 s apart: longer than a breath within a line, which takes 0.35 s."""

SECTION_GAPS = 3
"""So many times as long is the gap at the beginning of a section."""

_LEAST_SHARE, _SPREAD = 0.7, 0.6
_HALF_BITS = 16
_LARGEST_HALF = 0xFFFF


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps between the lines of a dialog, in seconds.

    Attributes:
        usual_s: Between two lines; the spread makes it 0.7 to 1.3 times as long.
        speakers: Before the lines of single speakers instead, by `name_key`.
    """

    usual_s: float = 0.0
    speakers: Mapping[str, float] = field(default_factory=dict)

    def find(self, lines: Iterable[Line]) -> Iterator[float]:
        """The gap before each line, rounded to milliseconds.

        There is none before the first line that sounds, nor beside a pause of its own, which is as
        long as it says. What isn't spoken has none; a heading makes the next one longer.

        Args:
            lines: In the order of playback.
        """
        follows_sound = begins_section = False
        for line in lines:
            gap_s = 0.0
            if isinstance(line, Unspoken):
                begins_section |= line.kind is UnspokenKind.HEADING
            elif isinstance(line, Silence):
                follows_sound = False
            else:
                if follows_sound:
                    gap_s = self._before(line, begins_section=begins_section)
                follows_sound, begins_section = True, False
            yield gap_s

    def _before(self, line: Speech | Audio, *, begins_section: bool) -> float:
        own_s = line.gap_s if isinstance(line, Audio) else read_gap(line.params)
        if own_s is not None:
            return own_s
        usual_s, text = self.usual_s, ""
        if isinstance(line, Speech):
            usual_s, text = self.speakers.get(name_key(line.speaker), usual_s), line.text
        return spread_gap(usual_s * (SECTION_GAPS if begins_section else 1), text)


def add_gaps(dialog: Dialog, gaps_s: Iterable[float]) -> Dialog:
    """A dialog with its gaps as silences; `gaps_s` has the gap before each line, or is empty."""
    gaps = {idx: Silence(gap_s) for idx, gap_s in enumerate(gaps_s) if gap_s}
    lines: list[Line] = []
    for idx, line in enumerate(dialog):
        lines += [gaps[idx], line] if idx in gaps else [line]
    return Dialog(tuple(lines))


def spread_gap(usual_s: float, text: str) -> float:
    """A gap of about the usual length, always the same before the same text; whole milliseconds.

    The sum of two even numbers, as of two dice, so that most gaps are near the middle. Before a
    recording, which has no text, it is as long as usual. The page counts alike (`gaps.js`).
    """
    if not usual_s:
        return 0.0
    mark = zlib.crc32(text.encode("utf-8", "replace"))
    dice = ((mark >> _HALF_BITS) + (mark & _LARGEST_HALF)) / (2 * _LARGEST_HALF)
    evenness = dice if text else 0.5
    return int(usual_s * 1000 * (_LEAST_SHARE + _SPREAD * evenness) + 0.5) / 1000


def read_gap(params: Mapping[str, ParamValue]) -> float | None:
    """The gap that a line sets for itself; None if it sets none that can be used."""
    value = params.get(GAP)
    return float(value) if _is_within(value, MAX_GAP_S) else None


def read_start(line: Line) -> float | None:
    """When a line begins, in seconds of the scene; None if it doesn't say, or can't be used."""
    value = line.params.get(START) if isinstance(line, Speech) else None
    return float(value) if _is_within(value, MAX_START_S) else None


def check_gap(value: ParamValue) -> float:
    """Check the length of a gap.

    Raises:
        ScriptError: It isn't a number from 0 to `MAX_GAP_S`.
    """
    if not _is_within(value, MAX_GAP_S):
        shown = str(value)[:40]
        raise ScriptError(
            f"The gap {shown} can't be used: it lasts 0 to {MAX_GAP_S:g} seconds. "
            "Put a pause between the lines for a longer one."
        )
    return float(value)


def check_start(value: ParamValue) -> float:
    """Check when a line begins.

    Raises:
        ScriptError: It isn't a number from 0 to `MAX_START_S`.
    """
    if not _is_within(value, MAX_START_S):
        raise ScriptError(
            f"A line can't begin at {str(value)[:40]}: write the seconds from the start of the "
            f"scene, 0 to {MAX_START_S:g}."
        )
    return float(value)


def _is_within(value: ParamValue | None, most: float) -> TypeGuard[float]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value <= most
