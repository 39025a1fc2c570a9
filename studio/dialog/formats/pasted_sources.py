"""Turns what web pages and other programs put on the clipboard into rows that the readers know.

A Markdown table becomes a table of tabs, the source of a web page or of SSML the text that it
shows, a script in columns one with colons. Each keeps the numbers of its rows as far as it can.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from itertools import pairwise, takewhile

import regex

from studio.dialog.directions import word_set, write_direction
from studio.dialog.formats.building import ImportNotices
from studio.dialog.formats.captions import Cue
from studio.dialog.formats.encoding import check_row_count
from studio.dialog.formats.row_kinds import PREFACE_NOTICE, is_farewell, is_preface
from studio.dialog.formats.tables import Role, check_cell_count, delimiter_of, role_of
from studio.dialog.markup import check_marks, strip_markup
from studio.dialog.model import check_line_count
from studio.dialog.reading_limits import PATTERN_S, check_reading
from studio.dialog.script import parse_header
from studio.errors import NameRejected, ScriptError


@dataclass(frozen=True, slots=True)
class PastedTable:
    """A Markdown table as one of tabs, and the heading above it."""

    text: str
    title: str | None


_RULE = regex.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)+\|?\s*")
_CELLS = regex.compile(r"(?<!\\)\|")
_HOW = frozenset({"note", "notes"})


def find_markdown_table(text: str, remarks: ImportNotices) -> PastedTable | None:
    """The table that a text is, apart from headings and a model's remarks; None for other text.

    Raises:
        ScriptError: It has too many cells, or marks of Markdown.
    """
    if "--" not in text or "|" not in text:  # as in most texts, which are long
        return None
    rows = text.splitlines()
    rule = next((idx for idx, row in enumerate(rows) if _RULE.fullmatch(row)), 0)
    if rule == 0 or "|" not in rows[rule - 1]:
        return None
    check_marks(rows)
    below = takewhile(lambda idx: "|" in rows[idx], range(rule + 1, len(rows)))
    inside = {rule - 1, rule, *below}
    check_cell_count(sum(rows[idx].count("|") - rows[idx].count("\\|") - 1 for idx in inside))
    title, left = None, []
    for idx, row in enumerate(map(str.strip, rows)):
        if not row or idx in inside:
            continue
        plain = strip_markup(row.lstrip("# "))
        if _is_said(plain):
            return None
        if title is None and (row.startswith("#") or row.strip("*") != row):
            title = plain
        elif row.startswith("#") or row.strip("*") != row or is_preface(row) or is_farewell(row):
            left.append((idx + 1, row))
        else:
            return None
    for number, row in left:
        remarks.set_aside(PREFACE_NOTICE, number, row)
    return PastedTable(_write_tabs(rows, rule, inside, remarks), title)


def _is_said(row: str) -> bool:
    """Whether somebody speaks in a row beside the table, which is no script then."""
    try:
        header = parse_header(row)
    except (ScriptError, NameRejected):
        return True
    return header is not None and bool(header.text) and not is_preface(row)


def _write_tabs(rows: list[str], rule: int, inside: set[int], remarks: ImportNotices) -> str:
    written = io.StringIO()
    table = csv.writer(written, delimiter="\t", lineterminator="\n")
    for idx, row in enumerate(rows):
        if idx == rule or idx not in inside:
            written.write("\n")
            continue
        remarks.add_links(row, idx + 1)
        cells = [cell.strip().replace("\\|", "|") for cell in _CELLS.split(row.strip().strip("|"))]
        plain = [strip_markup(regex.sub(r"<br\s*/?>", " ", cell)) for cell in cells]
        if idx == rule - 1:
            plain = ["direction" if cell.casefold() in _HOW else cell for cell in plain]
        table.writerow(plain)
    return written.getvalue()


_COMMENT = r"<!--(?>(?s:.*?)-->)"
_SOURCE = regex.compile(
    rf"\s*+(?:<\?xml[^<>]*+>\s*+|{_COMMENT}\s*+)*+<(?:!doctype|html|head|body|p|div|h[1-6]|ul|ol|table|article"
    r"|section|speak|voice|span|dialog(?:ue)?|script|play|scene|conversation|transcript|line"
    r"|tw-storydata)\b[^<>]*>",
    regex.IGNORECASE,
)
_SPOKEN_BY = ("speaker", "character", "who")
_SAID_SO = ("emotion", "tone", "delivery")
_NO_TEXT = word_set("script style head nav footer aside button form")
_BREAKS = word_set("p div br li tr h1 h2 h3 h4 h5 h6 voice article section line scene")
_LINED = word_set("tw-passagedata dialog dialogue play scene conversation transcript")
"""What rows may stand in."""


_READ_TAGS = (*_BREAKS, *_NO_TEXT, *_LINED, "voice", "mstts:express-as", "tw-storydata", "break")
_ATTRIBUTES = (
    rf"(?![^<>]*\s(?:{'|'.join(_SPOKEN_BY)})\s*=)(?:\s(?:[^<>\"']|\"[^<>\"]*\"|'[^<>']*')*+)?+"
)
_OF_LOOKS = regex.compile(
    rf"</?(?!(?:{'|'.join(_READ_TAGS)})[\s/>])[a-z][^\s/<>]*+{_ATTRIBUTES}>", regex.IGNORECASE
)
_BLOCK = rf"<(?:p|div|br|li|tr|article|section){_ATTRIBUTES}"
_BEGINS_BLOCK = regex.compile(rf"{_BLOCK}>", regex.IGNORECASE)
_IS_BLOCK = regex.compile(rf"{_BLOCK}/?+(?<=/)>", regex.IGNORECASE)
_ENDS_BLOCK = regex.compile(rf"</(?:{'|'.join(_BREAKS)})\s*>", regex.IGNORECASE)
_IS_LINED = regex.compile(rf"<(?:{'|'.join(_LINED)})[\s/>]", regex.IGNORECASE)
_BREAK = "\x1e"
"""A break in place of a tag; `splitlines` knows it, and it is no line break of the source."""

_SHOWN_ROW = regex.compile(r"[\n\x1e]\s*+(?=\S)")
_MOST_TAGS = 1_000_000
_MOST_READ_TAGS = 100_000
"""Of those that aren't cut: a page may have five a line."""


def show_source(text: str) -> str | None:
    """What the source of a web page, of SSML or of a model's tags shows; None for other text.

    Raises:
        ScriptError: It has too many tags, or shows too many rows.
    """
    if not _SOURCE.match(text, timeout=PATTERN_S) or "</" not in text:
        return None
    # As models write it, `<script>` around all holds a dialog; HTML's holds no tags.
    source = regex.sub(r"^\s*<script>", "<dialogue>", text, flags=regex.IGNORECASE)
    _check_tags(source, _MOST_TAGS)
    source = _cut_plain_tags(source)
    _check_tags(source, _MOST_READ_TAGS)
    shown = _Shown()
    shown.read(source)
    joined = "".join(shown.parts)
    check_row_count(_SHOWN_ROW.subn("", joined)[1])
    rows = (" ".join(row.split()) for row in joined.splitlines())
    return regex.sub(r"\n{3,}", "\n\n", "\n".join(rows)).strip("\n")


def _check_tags(source: str, most: int) -> None:
    if (tags := source.count("<")) > most:
        raise ScriptError(
            f"The page's source holds {tags:,} tags, which are more than can be read at once. "
            "Divide it into parts, or copy the text that the page shows."
        )


def _cut_plain_tags(source: str) -> str:
    """A source without the tags that only say how it looks, and with breaks in place of blocks.

    Parsing a tag takes forty times as long, and Word writes twenty of them a line.
    """
    source = _ENDS_BLOCK.sub(2 * _BREAK, _OF_LOOKS.sub("", source))
    if _IS_LINED.search(source):
        return source
    return _BEGINS_BLOCK.sub(_BREAK, _IS_BLOCK.sub(3 * _BREAK, source))


def _direction(how: str | None) -> str:
    return f"{write_direction(how, is_first=True)} " if how else ""


# Each opening sign is followed to the next one at most, or a text of nothing else takes hours: a
# tag goes on over "<" between quotes only, and so at most three of them over the same text.
_TOKEN = regex.compile(
    rf"""{_COMMENT} | <[!?][^<>]*+>
    | <(?P<raw>script|style)\b[^<>]*+(?<!/)>(?:[^<]++|<(?!/?(?P=raw)))*+</(?P=raw)[^<>]*+>
    | <(?P<end>/?)(?P<tag>[a-z][^\s/<>"']*+)
      (?P<given>(?:[^<>"']++|"[^"]*+"|'[^']*+')*+(?=>)|[^<>]*+)>
    | (?P<text><?[^<]*+)""",
    regex.IGNORECASE | regex.VERBOSE,
)
_ATTRIBUTE = regex.compile(
    r"""(?P<key>[^\s=/"'][^\s=/]*+)"""
    r"""(?:\s*+=\s*+(?:"(?P<value>[^"]*+)"|'(?P<value>[^']*+)'|(?!["'])(?P<value>\S++)))?"""
)


class _Shown:
    """The text of a page, with its headings, its pauses, and the names of SSML's voices.

    `html.parser` looks for the end of a tag through all of the text, once for each tag without one.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._hidden = 0
        self._is_lined = False

    def read(self, source: str) -> None:
        commented, ends, rest = source.rpartition("-->")
        # A comment without an end would be looked for through the rest, again and again.
        source = commented + ends + rest.replace("<!--", "&lt;!--")
        for token in _TOKEN.finditer(source):
            check_reading()
            self._show(unescape(token["text"] or ""))
            tag = (token["tag"] or "").lower()
            if tag and not token["end"]:
                self._begin(tag, token["given"].removesuffix("/"))
                self.parts.append(token[0] if tag == "break" else "")
            if tag and (token["end"] or token["given"].endswith("/")):
                self._end(tag)

    def _begin(self, tag: str, written: str) -> None:
        found = _ATTRIBUTE.finditer(written)
        given = {one["key"].lower(): unescape(one["value"] or "") for one in found}
        if tag in _NO_TEXT:
            self._hidden += 1
        if tag in _BREAKS:
            self.parts.append("\n")
        if regex.fullmatch(r"h[1-6]", tag):
            self.parts.append("# " if tag == "h1" else "## ")
        if tag == "voice":
            self.parts.append(f"{given.get('name', '')}: ".removeprefix(": "))
        elif name := next((given[key] for key in _SPOKEN_BY if given.get(key)), None):
            how = next((given[key] for key in _SAID_SO if given.get(key)), None)
            self.parts.append(f"\n{name}: {_direction(how)}")
        elif tag == "mstts:express-as":
            self.parts.append(_direction(given.get("style")))
        elif tag == "tw-passagedata":
            self.parts.append(f"\n\n:: {given.get('name', '')}\n")
        elif tag == "tw-storydata" and given.get("name"):
            self.parts.append(f":: StoryTitle\n{given['name']}\n")
        self._is_lined = tag in _LINED or (self._is_lined and tag not in _BREAKS)

    def _end(self, tag: str) -> None:
        if tag in _NO_TEXT:
            self._hidden = max(0, self._hidden - 1)
        if tag in _BREAKS:
            self.parts.append("\n\n")

    def _show(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data if self._is_lined else data.replace("\n", " "))
        else:
            self.parts.append(data.count(_BREAK) * _BREAK)


_COLUMNS = regex.compile(r"(?P<name>\p{Lu}[\p{Lu}\d .'’/-]{0,30}?)(?:[ \t]{4,}|\t+)(?P<text>\S.*)")
_GOES_ON = regex.compile(r"(?:[ \t]{8,}|\t+)\S.*")
_SCENE = regex.compile(r"SCENE\s+\d+\.?", regex.IGNORECASE)
_EFFECTS = regex.compile(r"(?:F/?X|SFX|SOUND|MUSIC|GRAMS|ATMOS)")
_FEWEST = 3


def write_columns(text: str) -> str | None:
    """A radio script with names in one column and words in the next, as `NAME: words`."""
    if "    " not in text and "\t" not in text:  # as in most texts
        return None
    if delimiter_of(text) is not None:
        return None
    rows = text.splitlines()
    found = [_COLUMNS.fullmatch(row) for row in rows]
    named = sum(one is not None for one in found)
    other = sum(
        bool(row.strip()) and one is None and not _GOES_ON.fullmatch(row)
        for row, one in zip(rows, found, strict=True)
    )
    if named < _FEWEST or other > named // _FEWEST:
        return None
    return "\n".join(
        row if one is None else _write_column(one["name"].strip(), " ".join(one["text"].split()))
        for row, one in zip(rows, found, strict=True)
    )


def _write_column(name: str, text: str) -> str:
    if _SCENE.fullmatch(name):
        return f"## {name} {text}"
    return f"[SFX: {text}]" if _EFFECTS.fullmatch(name) else f"{name}: {text}"


_SAID = (Role.SPEAKER, Role.TEXT, Role.DIRECTION)
_YAML_KEY = regex.compile(r"\s*(?P<item>-\s+)?(?P<key>[A-Za-z_ ]{2,30}):(?:\s+(?P<value>\S.*))?\s*")


def write_yaml_lines(text: str) -> str | None:
    """A list of YAML items with a speaker and a text each as `[speaker] text`, with the same rows.

    None for other text.
    """
    rows = text.splitlines()
    if not any(row.lstrip().startswith("- ") for row in rows):  # as in most texts
        return None
    found = [_YAML_KEY.fullmatch(row) for row in rows]
    starts = [idx for idx, one in enumerate(found) if one and one["item"]]
    if len(starts) < _FEWEST - 1 or not all(map(_is_yaml, rows, found)):
        return None
    check_line_count(len(starts))
    written = [row if idx < starts[0] else "" for idx, row in enumerate(rows)]
    for start, end in pairwise([*starts, len(rows)]):
        keys = {role_of(one["key"]): idx for idx in range(start, end) if (one := found[idx])}
        if Role.TEXT not in keys or Role.SPEAKER not in keys:
            return None
        values = {
            role: _unquote(one["value"] or "") for role, idx in keys.items() if (one := found[idx])
        }
        how = _direction(values.get(Role.DIRECTION))
        written[keys[Role.TEXT]] = f"[{values[Role.SPEAKER]}] {how}{values[Role.TEXT]}"
        for idx in range(start, end):
            if (one := found[idx]) and role_of(one["key"]) not in _SAID and one["value"]:
                written[idx] = f"// {rows[idx].strip(' -')}"
    return "\n".join("" if _YAML_LIST.fullmatch(row) else row for row in written)


def _unquote(value: str) -> str:
    value = value.rstrip()
    is_quoted = len(value) > 2 and value[0] in "\"'" and value[-1] == value[0]
    return value[1:-1] if is_quoted else value


def _is_yaml(row: str, found: regex.Match[str] | None) -> bool:
    return found is not None or not row.strip() or row.strip() == "---"


_YAML_LIST = regex.compile(r"[A-Za-z_ ]{2,30}:\s*")
_TIMED_ROW = regex.compile(
    r"\[(?P<start>[\d:.,]{5,12})\s*(?:-->|-|–)\s*(?P<end>[\d:.,]{5,12})\]\s*(?P<text>.*)"
)
_LYRIC = regex.compile(r"\[(?P<start>\d{1,3}:\d{2}[.:]\d{2,3})\]\s*(?P<text>.*)")
_SBV = regex.compile(r"(?P<start>\d+:\d{2}:\d{2}\.\d{3}),(?P<end>\d+:\d{2}:\d{2}\.\d{3})")
_LYRIC_TAG = regex.compile(r"\[[a-z]{2,6}:[^\]]*\]")
_TAGS = "What a file of lyrics says about the song isn't spoken; it stands between the lines:"


def read_timed_rows(text: str, remarks: ImportNotices) -> list[Cue] | None:
    """Cues of a transcript with times in its rows: Whisper's, LRC, or YouTube's `.sbv`."""
    written = text.splitlines()
    visible = (row for row in map(str.strip, written) if row and not _LYRIC_TAG.fullmatch(row))
    first = next(visible, "")
    form = next((one for one in (_SBV, _TIMED_ROW, _LYRIC) if one.fullmatch(first)), None)
    if form is None:  # as of most texts
        return None
    rows = [(number, row.strip()) for number, row in enumerate(written, start=1)]
    filled = [(number, row) for number, row in rows if row and not _LYRIC_TAG.fullmatch(row)]
    if form is _SBV:
        return list(_captions(filled))
    found = [form.fullmatch(row) for _, row in filled]
    if not all(found):
        return None
    starts = [_milliseconds(one["start"]) for one in found if one]
    for number, row in rows:
        if _LYRIC_TAG.fullmatch(row):
            remarks.set_aside(_TAGS, number, row)
    cues = []
    for idx, ((number, row), one) in enumerate(zip(filled, found, strict=True)):
        assert one is not None
        given = one.groupdict().get("end")
        end = _milliseconds(given) if given else starts[min(idx + 1, len(starts) - 1)]
        if one["text"]:
            cues.append(Cue(number, row, starts[idx], end, ((number, one["text"]),)))
    return cues


def _captions(rows: list[tuple[int, str]]) -> Iterator[Cue]:
    timing: tuple[int, regex.Match[str]] | None = None
    lines: list[tuple[int, str]] = []
    for number, row in [*rows, (0, "")]:
        at = _SBV.fullmatch(row)
        if (at or not row) and timing is not None and lines:
            start, end = _milliseconds(timing[1]["start"]), _milliseconds(timing[1]["end"])
            yield Cue(timing[0], timing[1][0], start, end, tuple(lines))
        if at:
            timing, lines = (number, at), []
        elif row:
            lines.append((number, row))


def _milliseconds(written: str) -> int:
    """Of `1:02:03.5` or `02:03,50`."""
    parts = written.replace(",", ".").split(":")
    if len(parts) == 1 or "." not in parts[-1]:
        parts[-1] += ".0"
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + float(part)
    return round(seconds * 1000)
