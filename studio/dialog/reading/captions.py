"""Reads subtitles, SRT and WebVTT, into a dialog."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import regex

from studio.dialog.attributes import Attributes, check_language
from studio.dialog.directions import is_direction
from studio.dialog.model import (
    MAX_PAUSE_S,
    ParsedScript,
    UnspokenKind,
    name_key,
)
from studio.dialog.reading.building import (
    FIRST_SPEAKER,
    MIN_PAUSE_S,
    NO_NAME,
    DialogBuilder,
    ImportNotices,
)
from studio.dialog.reading.row_kinds import CUE_NOTICE
from studio.dialog.reading.row_marks import cut_marks
from studio.dialog.script import Header, parse_header
from studio.dialog.tags import SOUND_TAGS, leading_pauses, sound_name
from studio.errors import NameRejected, ScriptError

# The parser is our own, because broken cues have to be kept and reported with their line:
# webvtt-py 0.6.0 drops a cue with an invalid timing, pysubs2 1.8.1 appends the timing to the text
# of the cue before, and neither has line numbers.

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
_NOTE = regex.compile(r"NOTE(?:\s+|$)")
_VTT_TITLE = regex.compile(r"\s*WEBVTT[ \t]+[-–—][ \t]+(?P<title>\S.*)")
_MAX_TIMING_CHARS = 400


@dataclass(frozen=True, slots=True)
class Cue:
    """Text shown from `start_ms` to `end_ms`; both None if the timing is invalid or missing.

    `line_number` is that of the timing; `timing` is as written, "" if there is none.
    """

    line_number: int
    timing: str
    start_ms: int | None
    end_ms: int | None
    lines: tuple[NumberedLine, ...]


def read_cues(text: str, *, is_vtt: bool) -> list[Cue]:
    """Split a subtitle file into cues; no text of it is lost.

    Args:
        text: The whole file, SRT or WebVTT.
        is_vtt: Whether to skip the blocks that only WebVTT has: header, notes, styles, regions.
    """
    cues: list[Cue] = []
    for block in _iter_blocks(text):
        if is_vtt and _COMMENT.match(block[0][1]):
            continue
        found = list(_iter_cues(block, is_vtt=is_vtt))
        if cues and not cues[-1].lines and found and not found[0].timing:
            # An empty line is between the timing and its text.
            found[0] = replace(cues.pop(), lines=found[0].lines)
        cues += found
    return cues


def begins_timed(text: str) -> bool:
    """Whether text starts with a cue, as only subtitles do."""
    return _BEGINS_TIMED.match(text) is not None


def find_vtt_title(text: str) -> str | None:
    """What stands behind a dash in the first row; None if nothing does."""
    found = _VTT_TITLE.match(text)
    return found["title"] if found else None


def is_timed(text: str) -> bool:
    """Whether any line looks like a timing, even an invalid one."""
    return "-->" in text


def _iter_blocks(text: str) -> Iterator[list[NumberedLine]]:
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


def _iter_cues(block: list[NumberedLine], *, is_vtt: bool) -> Iterator[Cue]:
    starts = [idx for idx in range(len(block)) if _is_timing(block, idx)]
    yield from _iter_untimed(block[: starts[0]] if starts else block, is_vtt and bool(starts))
    for start, end in pairwise([*starts, len(block)]):
        number, line = block[start]
        payload = block[start + 1 : end]
        if end < len(block) and payload and _INDEX.fullmatch(payload[-1][1]):
            payload.pop()  # the number of the next cue, without an empty line before it
        yield Cue(number, line, *_parse_times(line), tuple(payload))


def _iter_untimed(lines: list[NumberedLine], has_identifier: bool) -> Iterator[Cue]:
    """Text without a timing, apart from a cue's number or identifier."""
    if has_identifier or (lines and _INDEX.fullmatch(lines[-1][1])):
        lines = lines[:-1]
    if lines and _INDEX.fullmatch(lines[0][1]):
        lines = lines[1:]
    if lines:
        yield Cue(lines[0][0], "", None, None, tuple(lines))


def _is_timing(block: list[NumberedLine], idx: int) -> bool:
    line = block[idx][1]
    is_behind_index = idx == 1 and _INDEX.fullmatch(block[0][1]) is not None
    return _find_timing(line) is not None or (is_behind_index and "-->" in line)


def _find_timing(line: str) -> str | None:
    """The match of a line that looks like a timing, even an invalid one."""
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


def _parse_times(line: str) -> tuple[int | None, int | None]:
    arrow = _ARROW.search(line)
    if arrow is None:
        return None, None
    start = _TIME.fullmatch(line[: arrow.start()])
    end = _TIME.match(line, arrow.end())
    if start is None or end is None:
        return None, None
    start_ms, end_ms = _to_milliseconds(start), _to_milliseconds(end)
    return (start_ms, end_ms) if start_ms <= end_ms else (None, None)


def _to_milliseconds(time: regex.Match[str]) -> int:
    seconds = (int(time["hours"] or 0) * 60 + int(time["minutes"])) * 60 + int(time["seconds"])
    return 1000 * seconds + int((time["fraction"] or "0")[:3].ljust(3, "0"))


_TAG = re.compile(r"<(?P<inside>/?(?:[biuscv]|ruby|rt|font|lang)\b[^<>\n]*|\d[\d:.]{4,20})>")
_CHANGES = ("v", "/v", "lang")
"""What tags begin with that change who speaks, or the language."""

_VOICE = regex.compile(r"v(?:\.[^\s]*)?[ \t]+(?P<name>.*)")
_LANGUAGE = regex.compile(r"lang(?:\.[^\s]*)?[ \t]+(?P<code>[^\s]+)")
_OVERRIDE = regex.compile(r"\{\\[^{}]{0,100}\}")
_TURN = regex.compile(r"(?:[-‐–](?:\s+|(?=[\p{Lu}\p{Lo}\"“¿¡]))|>{2,3}\s*)(?=\S)")
_COUNTED = "Speaker {}"
_NOBODYS_SOUNDS = frozenset(("applause", "cheer", "clap", "music"))
_SOUND_TAG = regex.compile(r"[\[(](?P<inside>[^\[\]()|]{1,100})[\])]|[♪♫\s]+|[♪♫][^♪♫]{0,200}[♪♫]?")


@dataclass(slots=True)
class CueUtterance:
    """One speaker's words in a cue; `speaker` is None if there is no name.

    `parts` joined are the words, with the file's line breaks.
    """

    line_number: int
    speaker: str | None = None
    attributes: Attributes = field(default_factory=Attributes)
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts).strip()

    @property
    def is_only_a_sound(self) -> bool:
        """Whether it only describes a sound, such as `[door creaks]`."""
        match = _SOUND_TAG.fullmatch(self.text)
        if match is None or self.speaker is not None:
            return False
        return match["inside"] is None or not _is_spoken_tag(self.text, match["inside"])


class CueReader:
    """Reads the text of a file's cues; decides which words before a colon are speakers."""

    def __init__(self, cues: Iterable[Cue]) -> None:
        """Search all cues for names.

        If at least half of the cues start with a name, every name counts. Else `Listen:` may start
        a sentence, and only names in capitals or with two occurrences count.
        """
        cues = [cue for cue in cues if cue.lines]
        found = list(map(_first_name, cues))
        # Two dashes are two persons, whom a file without names doesn't call anything.
        self.counts_turns = not any(found) and any(_count_dashes(cue) > 1 for cue in cues)
        names = Counter(name_key(name) for name in found if name)
        self._trusts_all = 2 * names.total() >= len(found)
        shouted = {name_key(name) for name in found if name and name.isupper()}
        self._names = shouted.union(name for name, count in names.items() if count > 1)

    def read(self, cue: Cue) -> list[CueUtterance]:
        """Split a cue by speaker; empty for a cue without text."""
        utterances: list[CueUtterance] = []
        for utterance in self._split_voices(cue):
            if utterance.speaker is not None:
                utterances.append(utterance)
            else:
                utterances += self._split_turns(utterance)
        return utterances

    def _split_voices(self, cue: Cue) -> list[CueUtterance]:
        """Split at voice tags; each part still consists of numbered lines."""
        current = CueUtterance(cue.line_number)
        utterances = [current]
        for number, line in cue.lines:
            pieces = _TAG.split(_OVERRIDE.sub("", line))  # each second one is inside a tag
            begin = 0
            for at in range(1, len(pieces), 2):
                if not pieces[at].startswith(_CHANGES):  # as most, which only say how it looks
                    continue
                self._add(current, "".join(pieces[begin:at:2]), number)
                begin = at + 1
                if changed := self._find_change(current, pieces[at], number):
                    current = changed
                    utterances.append(current)
            self._add(current, "".join(pieces[begin::2]), number)
            self._add(current, "\n", number)
        return utterances

    def _find_change(self, current: CueUtterance, tag: str, number: int) -> CueUtterance | None:
        """Start a new utterance if a tag starts or ends a voice."""
        if voice := _VOICE.fullmatch(tag):
            return CueUtterance(number, html.unescape(voice["name"]))
        if tag.startswith("/v"):
            return CueUtterance(number)
        language = _LANGUAGE.fullmatch(tag)
        if language and current.attributes.language is None:
            current.attributes = Attributes(language=language["code"])
        return None

    def _add(self, current: CueUtterance, text: str, number: int) -> None:
        if not current.parts and text.strip():
            current.line_number = number
        if current.parts or text.strip():
            current.parts.append(html.unescape(text))

    def _split_turns(self, unnamed: CueUtterance) -> list[CueUtterance]:
        """Split text outside of voice tags where a line starts with a name or a dash."""
        utterances: list[CueUtterance] = []
        lines = "".join(unnamed.parts).splitlines()
        first, turns = unnamed.line_number, 0
        for number, line in enumerate(lines, start=first):
            turn = _TURN.match(line)
            line = line[turn.end() :] if turn else line
            turns += turn is not None
            header = self._find_header(line)
            if header:
                new = CueUtterance(number, header.speaker, header.attributes, [header.text])
                utterances.append(new)
            elif line.strip() and (turn or not utterances):
                one = _COUNTED.format(turns) if turns else FIRST_SPEAKER
                who = one if self.counts_turns else None
                utterances.append(CueUtterance(number, who, unnamed.attributes, [line.strip()]))
            elif line.strip():
                utterances[-1].parts.append(f"\n{line.strip()}")
        return utterances

    def _find_header(self, line: str) -> Header | None:
        header = _find_header(line)
        if header is None:
            return None
        is_known = self._trusts_all or name_key(header.speaker) in self._names
        return header if is_known else None


def _count_dashes(cue: Cue) -> int:
    return sum(_TURN.match(_bare(line)) is not None for _, line in cue.lines)


def _first_name(cue: Cue) -> str | None:
    """The possible name at the start of a cue's text."""
    _, line = cue.lines[0]
    voice = _TAG.match(line)
    if voice and (named := _VOICE.fullmatch(voice["inside"])):
        return str(named["name"])
    line = _TAG.sub("", _OVERRIDE.sub("", line))
    turn = _TURN.match(line)
    header = _find_header(line[turn.end() :] if turn else line)
    return header.speaker if header else None


def _find_header(line: str) -> Header | None:
    """A header as in scripts; brackets without text after them describe a sound."""
    line = line.strip()
    try:
        header = parse_header(line)
    except (ScriptError, NameRejected):
        return None
    if header is not None and line.startswith("[") and "," in header.speaker:
        name, _, how = header.speaker.partition(",")  # `[Mira, whispering] …`
        if is_direction(how):
            header = Header(name.strip(), header.attributes, f"({how.strip()}) {header.text}")
    is_sound = header and not header.text and line.startswith("[") and "|" not in line
    return None if is_sound else header


def _is_spoken_tag(text: str, inside: str) -> bool:
    if sound_name(inside) in SOUND_TAGS - _NOBODYS_SOUNDS:
        return text.startswith("[")
    try:
        return bool(leading_pauses(text)[0])
    except ScriptError:
        return True


_UNREADABLE = (
    "This timing can't be read. The text is kept, without a pause before it. "
    "Write 00:01:02,500 --> 00:01:04,000."
)
_MISSING = "This text has no timing above it. It is kept, without a pause before it."
_UNSORTED = "The cues from here on aren't in the order of time; they are read in it."
_OVERLAP = (
    "This cue begins before the one above it ends. Lines are spoken one after another, "
    "in the order of the file."
)
_LATE = "The first cue comes at {:.0f} s; the time before it is left out."
_ROLLING = "These captions roll: each row is shown again with the next one. It is spoken once."
_FEWEST_ROLLING = 3
_ROLLING_GAP_MS = 50
_NOTHING = (
    "The subtitles hold no text. A cue is a timing, such as 00:00:01,000 --> 00:00:03,000, "
    "with “Anna: Good evening.” on the line below."
)


def read_captions(text: str, remarks: ImportNotices, *, is_vtt: bool, fit: bool) -> ParsedScript:
    """Read SRT or WebVTT.

    Args:
        text: The whole file.
        remarks: Gets notices of what is invalid or left out.
        is_vtt: Whether it is WebVTT.
        fit: Whether each cue says when it begins, instead of the pauses between them.
    """
    for block in _iter_blocks(text) if is_vtt else ():
        if _NOTE.match(block[0][1]):  # a comment, which isn't shown
            words = " ".join(line for _, line in block)
            remarks.keep(block[0][0], _NOTE.sub("", words, count=1))
    cues = read_cues(text, is_vtt=is_vtt)
    return read_cue_list(cues, remarks, fit=fit)


def read_cue_list(cues: list[Cue], remarks: ImportNotices, *, fit: bool) -> ParsedScript:
    """Read the cues of subtitles in any format, as `read_captions`."""
    lines = [tuple(cut_marks(list(cue.lines), remarks)) for cue in cues]
    cues = [replace(cue, lines=shown) for cue, shown in zip(cues, lines, strict=True)]
    cues = _unroll(_sort(cues, remarks), remarks)
    reader = CueReader(cues)
    if reader.counts_turns:
        remarks.add(NO_NAME.format(FIRST_SPEAKER), cues[0].line_number)
    scene = _Scene(DialogBuilder(remarks), fit=fit)
    for cue in cues:
        scene.add(cue, reader.read(cue))
    return scene.builder.finish(nothing_found=_NOTHING)


def _sort(cues: list[Cue], remarks: ImportNotices) -> list[Cue]:
    """Cues in the order of time; those without one stay below the one before."""
    starts: list[int] = []
    early: list[int] = []
    for cue in cues:
        last = starts[-1] if starts else 0
        starts.append(last if cue.start_ms is None else cue.start_ms)
        early += [cue.line_number] if starts[-1] < last else []
    if not early:
        return cues
    remarks.add(_UNSORTED, early[0])
    order = sorted(range(len(cues)), key=starts.__getitem__)
    return [cues[idx] for idx in order]


def _unroll(cues: list[Cue], remarks: ImportNotices) -> list[Cue]:
    """Cues without the rows that rolling captions show again in the next cue."""
    if not cues:
        return cues
    shown = [list(filter(None, (_bare(line) for _, line in cue.lines))) for cue in cues]
    follows = [False, *(_follows(before, after) for before, after in pairwise(cues))]
    repeated = [
        _overlap(before, after) if is_next else 0
        for (before, after), is_next in zip(pairwise([[], *shown]), follows, strict=True)
    ]
    rolling = sum(map(bool, repeated))
    # Some rows are new in a cue that rolls; who says “No.” three times shows nothing else.
    is_partly_new = any(0 < count < len(rows) for count, rows in zip(repeated, shown, strict=True))
    if not is_partly_new or rolling < _FEWEST_ROLLING or 3 * rolling < len(cues):
        return cues
    unrolled: list[Cue] = []
    for cue, count in zip(cues, repeated, strict=True):
        lines = tuple(one for one in cue.lines if _bare(one[1]))[count:]
        if lines:
            unrolled.append(replace(cue, lines=lines))
        elif unrolled and cue.end_ms is not None and unrolled[-1].end_ms is not None:
            unrolled[-1] = replace(unrolled[-1], end_ms=max(cue.end_ms, unrolled[-1].end_ms))
    remarks.add(_ROLLING, next(cue.line_number for cue, n in zip(cues, repeated, strict=True) if n))
    return unrolled


def _follows(before: Cue, after: Cue) -> bool:
    """Whether a cue begins where the one before ends."""
    if before.end_ms is None or after.start_ms is None:
        return False
    return abs(after.start_ms - before.end_ms) <= _ROLLING_GAP_MS


def _bare(line: str) -> str:
    return " ".join(_TAG.sub("", _OVERRIDE.sub("", line)).split())


def _overlap(before: list[str], after: list[str]) -> int:
    """How many rows at the start of a cue stood at the end of the one before."""
    sizes = range(min(len(before), len(after)), 0, -1)
    return next((size for size in sizes if before[-size:] == after[:size]), 0)


class _Scene:
    """Turns cues into lines, in the order of the file."""

    def __init__(self, builder: DialogBuilder, *, fit: bool) -> None:
        self.builder = builder
        self._fit = fit
        self._end_ms: int | None = 0
        self._is_first = True

    def add(self, cue: Cue, utterances: list[CueUtterance]) -> None:
        if not utterances:
            return
        self._remark_on_timing(cue)
        self._pause_before(cue)
        for utterance in utterances:
            if utterance.is_only_a_sound:
                sound = utterance.text.strip("[]()")
                self.builder.remarks.add(CUE_NOTICE, utterance.line_number, sound)
                self.builder.unspoken(sound, UnspokenKind.ACTION, utterance.line_number)
            else:
                self._speak(utterance)
        self._is_first = False

    def _remark_on_timing(self, cue: Cue) -> None:
        if not cue.timing:
            self.builder.remarks.add(_MISSING, cue.line_number)
        elif cue.start_ms is None:
            self.builder.remarks.add(_UNREADABLE, cue.line_number)

    def _pause_before(self, cue: Cue) -> None:
        """Add the gap before a cue as silence, if both timings are valid; or say when it begins."""
        end_ms, self._end_ms = self._end_ms, cue.end_ms
        if self._fit and cue.start_ms is not None:
            self.builder.begin_at(cue.start_ms / 1000)
        if cue.start_ms is None or cue.end_ms is None or end_ms is None:
            return
        gap_ms = cue.start_ms - end_ms
        if gap_ms < 0:
            self.builder.remarks.add(_OVERLAP, cue.line_number)
            self._end_ms = max(end_ms, cue.end_ms)
        elif self._fit:
            return
        elif self._is_first and gap_ms > 1000 * MAX_PAUSE_S:
            self.builder.remarks.add(_LATE.format(gap_ms / 1000), cue.line_number)
        elif gap_ms >= 1000 * MIN_PAUSE_S:
            self.builder.silence(gap_ms / 1000, cue.line_number)

    def _speak(self, utterance: CueUtterance) -> None:
        number, attributes = utterance.line_number, utterance.attributes
        if attributes.language is not None:
            written, attributes = attributes.language, replace(attributes, language=None)
            with self.builder.remarks.leaving_out(number):
                attributes = replace(attributes, language=check_language(written))
        self.builder.speech(utterance.speaker, utterance.text, number, attributes)
