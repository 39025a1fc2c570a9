"""Reads two formats of other programs: subtitles of Advanced SubStation Alpha, and Yarn dialogs."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from studio.dialog.formats.building import FIRST_SPEAKER, DialogBuilder, ImportNotices
from studio.dialog.formats.captions import Cue, read_cue_list
from studio.dialog.formats.encoding import check_row_count
from studio.dialog.model import ParsedScript, UnspokenKind, check_line_length, with_place
from studio.dialog.reading_limits import PATTERN_S
from studio.dialog.script import parse_header
from studio.errors import NameRejected, ScriptError

_ASS = regex.compile(r"\s*(?:;[^\n]*\n\s*)*\[Script Info\]", regex.IGNORECASE)
_CLOCK = regex.compile(r"(\d{1,2}):(\d{2}):(\d{2})[.:](\d{1,3})")
_OVERRIDES = regex.compile(r"\{[^{}]*\}")
_DRAWING = regex.compile(r"\{(?:(?!\\p[1-9])[^{}])*+\\p[1-9][^{}]*+\}")
_USUAL_FIELDS = (
    "layer",
    "start",
    "end",
    "style",
    "name",
    "marginl",
    "marginr",
    "marginv",
    "effect",
)
_DRAWN = "What the subtitles only draw is left out."
_TITLED = regex.compile(r"(?m)^Title:[ \t]*(?P<title>(?!Default Aegisub|<)\S.*)$")
_NO_EVENTS = "The subtitles hold no lines that begin with “Dialogue:”."


def is_ass(text: str) -> bool:
    """Whether text is a file of Advanced SubStation Alpha."""
    return _ASS.match(text, timeout=PATTERN_S) is not None


def read_ass(text: str, remarks: ImportNotices, *, min_gap_s: float) -> ParsedScript:
    """Read `.ass` or `.ssa`: names from the field Name, gaps as silences.

    Raises:
        ScriptError: No event has text, or one has invalid text, or there are too many rows.
    """
    check_row_count(text.count(r"\N") + text.count(r"\n"))
    cues = sorted(_events(text, remarks), key=lambda cue: (cue.start_ms or 0, cue.line_number))
    if not cues:
        raise ScriptError(_NO_EVENTS)
    return read_cue_list(cues, remarks, is_vtt=False, min_gap_s=min_gap_s)


def find_ass_title(text: str) -> str | None:
    """What a file of subtitles calls itself; None if it doesn't say."""
    found = _TITLED.search(text, timeout=PATTERN_S)
    return found["title"].rstrip(" \t") if found else None


def _events(text: str, remarks: ImportNotices) -> Iterator[Cue]:
    fields: tuple[str, ...] = _USUAL_FIELDS
    is_event = False
    for number, row in enumerate(text.splitlines(), start=1):
        key, _, value = row.partition(":")
        if row.startswith("["):
            is_event = row.strip().casefold() == "[events]"
        elif is_event and key.strip() == "Format":
            fields = tuple(name.strip().casefold() for name in value.split(",")[:-1])
        elif is_event and key.strip() == "Comment":
            words = value.split(",", len(fields))[len(fields) :]
            for row in _shown_rows("".join(words)):
                remarks.keep(number, row)
        elif is_event and key.strip() == "Dialogue":
            yield from _cue(value, fields, number, remarks)


def _cue(value: str, fields: tuple[str, ...], number: int, remarks: ImportNotices) -> Iterator[Cue]:
    cells = value.split(",", len(fields))
    words = cells[-1] if len(cells) > len(fields) else ""
    event = dict(zip(fields, (cell.strip() for cell in cells), strict=False))
    if _DRAWING.search(words):
        remarks.add(_DRAWN, number)
        return
    name = event.get("name") or event.get("actor")
    shown = _shown_rows(words)
    if shown and name:
        shown[0] = f"<v {name}>{shown[0]}"
    timing = f"{event.get('start')} --> {event.get('end')}"
    start_ms, end_ms = _milliseconds(event.get("start")), _milliseconds(event.get("end"))
    lines = tuple((number, row) for row in shown)
    yield Cue(number, timing, start_ms, end_ms if start_ms is not None else None, lines)


def _shown_rows(words: str) -> list[str]:
    shown = _OVERRIDES.sub("", words).replace(r"\h", " ").replace(r"\n", r"\N")
    return [row for row in map(str.strip, shown.split(r"\N")) if row]


def _milliseconds(written: str | None) -> int | None:
    found = _CLOCK.fullmatch(written or "")
    if found is None:
        return None
    hours, minutes, seconds = map(int, found.groups()[:3])
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + int(found[4].ljust(3, "0"))


_YARN = regex.compile(
    r"\s*(?:(?:title|tags|colorID|position|tracking|group|when|style)[ \t]*:[^\n]*\n)+"
    r"---[ \t]*(?:\n|$)"
)
_TITLE = regex.compile(r"title\s*:\s*(?P<name>\S.*)")
_HEADER = regex.compile(r"[\w-]+\s*:.*")
# Each ends where the next one begins, and white space is one space, so that time stays linear.
_COMMAND = regex.compile(r"<<(?:(?!<<|>>).)*+>>")
_HASHTAGS = regex.compile(r"(?:\s#[\w:.-]+){1,50}$")
_JUMP = regex.compile(r"\[\[(?:(?P<label>[^\[\]|]*)\|)?[^\[\]|]*\]\]")
_INSERTED = regex.compile(r",?\s*\{\$?[^{}]*\}")
_MARKUP = regex.compile(r"\[/?[a-z_]+(?:[ =][^\[\]]*)?/?\]|\[/\]")
_COMMENT = regex.compile(r"(?:^|\s+)//\s*(?P<words>.*)$")
_BRANCHES = (
    "Commands, choices and jumps of Yarn can't be followed; the nodes are read one after another, "
    "and these stand between the lines:"
)
_NOTHING = "The Yarn file holds no lines such as “Anna: Good evening.”"


def is_yarn(text: str) -> bool:
    """Whether text is a Yarn Spinner dialog: headers of a node, then `---`."""
    return _YARN.match(text, timeout=PATTERN_S) is not None


def read_yarn(text: str, remarks: ImportNotices) -> ParsedScript:
    """Read the lines of all nodes in the order of the file.

    Raises:
        ScriptError: It has no lines, or one is invalid.
    """
    builder = DialogBuilder(remarks)
    in_body = False
    for number, raw in enumerate(text.splitlines(), start=1):
        with with_place(number):
            check_line_length(len(raw))
        row = " ".join(raw.split())
        if row in ("---", "==="):
            in_body = row == "---"
        elif in_body and row:
            _add_row(row, number, builder)
        elif title := _TITLE.fullmatch(row):
            builder.unspoken(title["name"].replace("_", " "), UnspokenKind.HEADING, number)
        elif row and not _HEADER.fullmatch(row):
            remarks.set_aside(_BRANCHES, number, row)
    return builder.finish(nothing_found=_NOTHING)


def _add_row(row: str, number: int, builder: DialogBuilder) -> None:
    if comment := _COMMENT.search(row):
        builder.unspoken(comment["words"], UnspokenKind.NOTE, number)
    plain = _MARKUP.sub("", _HASHTAGS.sub("", _COMMENT.sub("", row))).strip()
    spoken = _INSERTED.sub("", _JUMP.sub("", _COMMAND.sub("", plain))).strip()
    is_choice = spoken.startswith("->")
    if is_choice or spoken != plain:
        builder.remarks.set_aside(_BRANCHES, number, row)
    if is_choice or not spoken:
        return
    try:
        header = parse_header(spoken)
    except (ScriptError, NameRejected):
        header = None
    if header is None:
        builder.speech(FIRST_SPEAKER, spoken, number)  # a game's narration
    else:
        builder.speech(header.speaker, header.text, number, header.attributes)
