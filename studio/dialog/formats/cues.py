"""Subtitle files cut into cues: what is shown, and when.

Read by hand rather than by a library, since what is broken has to be kept and named with its line:
webvtt-py 0.6.0 drops a cue whose timing it can't read, pysubs2 1.8.1 adds the timing to the words
of the cue before, and neither knows line numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import regex

NumberedLine = tuple[int, str]

_TIME = regex.compile(
    r"(?:(?P<hours>\d{1,4})\s?:\s?)?(?P<minutes>[0-5]?\d)\s?:\s?(?P<seconds>[0-5]?\d)"
    r"(?:\s?[.,;:]\s?(?P<fraction>\d{1,9}))?"
)
_ARROW = regex.compile(r"\s*(?:[-–—]{1,3}\s?>|→)\s*")
_LIKE_A_TIME = regex.compile(r"[-+]?\d{1,9}\s?:[\d\s:.,;]{0,40}")
_SURELY_A_TIME = regex.compile(r"\d{1,4}\s?:\s?\d{1,3}\s?[:.,;][\d\s:.,;]{1,40}")
_BEGINS_TIMED = regex.compile(
    r"\s*(?:\d{1,9}\s*\n\s*)?(?:\d{1,4}:)?\d{1,2}:\d{2}[.,]\d{1,3}\s*-->\s*\d{1,4}:\d"
)
_INDEX = regex.compile(r"\s*\d{1,9}\s*")
_COMMENT = regex.compile(r"(?:NOTE|STYLE|REGION|WEBVTT)(?:\s|$)")
_MAX_TIMING_CHARS = 400


@dataclass(frozen=True, slots=True)
class Cue:
    """Text shown from `start_ms` to `end_ms`; both None where the timing is broken or missing.

    `line_number` is that of the timing; `timing` is as written, "" where there is none.
    """

    line_number: int
    timing: str
    start_ms: int | None
    end_ms: int | None
    lines: tuple[NumberedLine, ...]


def read_cues(text: str, *, is_vtt: bool) -> list[Cue]:
    """Cut a subtitle file into cues; every text of it is in one of them.

    Args:
        text: The whole file, SRT or WebVTT.
        is_vtt: Leave out the blocks that only WebVTT has: its header, notes, styles, regions.
    """
    cues: list[Cue] = []
    for block in _blocks(text):
        if is_vtt and _COMMENT.match(block[0][1]):
            continue
        found = list(_cues(block, is_vtt=is_vtt))
        if cues and not cues[-1].lines and found and not found[0].timing:
            last = cues.pop()  # an empty line stands between the timing and its text
            found[0] = Cue(
                last.line_number, last.timing, last.start_ms, last.end_ms, found[0].lines
            )
        cues += found
    return cues


def begins_timed(text: str) -> bool:
    """Whether text begins with a cue, as no other kind of file does."""
    return _BEGINS_TIMED.match(text) is not None


def is_timed(text: str) -> bool:
    """Whether any line may be meant as a timing, even a broken one."""
    return "-->" in text


def _blocks(text: str) -> Iterator[list[NumberedLine]]:
    """Runs of lines between empty ones."""
    block: list[NumberedLine] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            block.append((number, line.strip()))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _cues(block: list[NumberedLine], *, is_vtt: bool) -> Iterator[Cue]:
    starts = [idx for idx in range(len(block)) if _is_timing(block, idx)]
    yield from _untimed(block[: starts[0]] if starts else block, is_vtt and bool(starts))
    for start, end in pairwise([*starts, len(block)]):
        number, line = block[start]
        payload = block[start + 1 : end]
        if end < len(block) and payload and _INDEX.fullmatch(payload[-1][1]):
            payload.pop()  # the number of the next cue, which no empty line sets apart
        yield Cue(number, line, *_times(line), tuple(payload))


def _untimed(lines: list[NumberedLine], has_identifier: bool) -> Iterator[Cue]:
    """Text that no timing stands above; a cue's number or identifier is none."""
    if has_identifier or (lines and _INDEX.fullmatch(lines[-1][1])):
        lines = lines[:-1]
    if lines and _INDEX.fullmatch(lines[0][1]):
        lines = lines[1:]
    if lines:
        yield Cue(lines[0][0], "", None, None, tuple(lines))


def _is_timing(block: list[NumberedLine], idx: int) -> bool:
    line = block[idx][1]
    is_behind_index = idx == 1 and _INDEX.fullmatch(block[0][1]) is not None
    return _timing(line) is not None or (is_behind_index and "-->" in line)


def _timing(line: str) -> str | None:
    """The line when it is meant as a timing, even a broken one."""
    line = line.strip()
    if len(line) > _MAX_TIMING_CHARS or not (":" in line or "->" in line):
        return None
    arrow = _ARROW.search(line)
    if arrow is None:
        parts = line.split()
        both = len(parts) == 2 and all(map(_SURELY_A_TIME.fullmatch, parts))
        return line if both else None
    before, behind = line[: arrow.start()], line[arrow.end() :]
    like_a_time = _LIKE_A_TIME if arrow[0].strip() == "-->" else _SURELY_A_TIME
    begins = like_a_time.fullmatch(before) and (not behind or behind[0] in "-+0123456789")
    ends = not before and like_a_time.match(behind)
    return line if begins or ends else None


def _times(line: str) -> tuple[int | None, int | None]:
    arrow = _ARROW.search(line)
    if arrow is None:
        return None, None
    start = _TIME.fullmatch(line[: arrow.start()])
    end = _TIME.match(line, arrow.end())
    if start is None or end is None:
        return None, None
    start_ms, end_ms = _milliseconds(start), _milliseconds(end)
    return (start_ms, end_ms) if start_ms <= end_ms else (None, None)


def _milliseconds(time: regex.Match[str]) -> int:
    seconds = (int(time["hours"] or 0) * 60 + int(time["minutes"])) * 60 + int(time["seconds"])
    return 1000 * seconds + int((time["fraction"] or "0")[:3].ljust(3, "0"))
