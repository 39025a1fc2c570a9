"""The source of a web page, of SSML, or of tags that a model made up, as the text that it shows."""

from __future__ import annotations

from html import unescape

import regex

from studio.dialog.directions import word_set, write_direction
from studio.dialog.reading.form import Explanation, Form, read_source
from studio.dialog.reading.lexer import Source
from studio.dialog.reading_limits import PATTERN_S, Budget, Cost, check_reading

_COMMENT = r"<!--(?>(?s:.*?)-->)"
_SOURCE = regex.compile(
    rf"\s*+(?:<\?xml[^<>]*+>\s*+|{_COMMENT}\s*+)*+<(?:!doctype|html|head|body|p|div|h[1-6]|ul|ol|dl|table|article|turn"
    r"|section|speak|voice|span|dialog(?:ue)?|script|play|scene|conversation|transcript|line"
    r"|tw-storydata|(?:b|strong|em|i)(?=>[^<>]{1,60}</(?:b|strong|em|i)>[^<>]*<br))\b[^<>]*>",
    regex.IGNORECASE,
)
_SPOKEN_BY = ("speaker", "character", "who")
_SAID_SO = ("emotion", "tone", "delivery")
_NO_TEXT = word_set("script style head nav footer aside button form")
_BREAKS = word_set("p div br li tr dt dd h1 h2 h3 h4 h5 h6 voice article section line scene")
_LINED = word_set("tw-passagedata dialog dialogue play scene conversation transcript")
"""What rows may stand in."""


_CELLS = word_set("td th")
_READ_TAGS = (*_BREAKS, *_CELLS, *_NO_TEXT, *_LINED, "voice", "break")
_READ_TAGS += ("mstts:express-as", "tw-storydata")
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
_ONE_IN_CELL = regex.compile(
    r"(<t[dh]\b[^<>]*+>)\s*+<(p|div)\b[^<>]*+>"
    r"((?:[^<]++|<(?!/?(?:p|div|br|t[dhr])\b))*+)</\2>\s*+(?=</t[dh])",
    regex.IGNORECASE,
)
"""A paragraph that is all of a cell breaks no row."""

_BREAK = "\x1e"
"""A break in place of a tag; `splitlines` knows it, and it is no line break of the source."""

_CELL = "\x1f"
"""What stands before each cell of a table."""

_DEFINED = "\x1d"
"""What stands before the words below a term; in a dialog the term is who says them."""

_BEFORE = dict.fromkeys(_CELLS, _CELL) | {"dd": _DEFINED}
_NAME_IN_CLASS = regex.compile(
    r"<(?:(?P<tag>span|div|p|b|strong|cite)\b[^<>]*\bclass\s*=\s*[\"']?[^\"'<>]*"
    r"\b(?:speaker|character|author|username)\b[^<>]*+|(?P<tag>speaker|character|who))>(?P<name>[^<>]{1,60})</(?P=tag)>",
    regex.IGNORECASE,
)
"""The name of who speaks, as a style sheet tells."""

_ENDS_TERM = f": \n\t{_BREAK}"
_SHOWN_ROW = regex.compile(r"[\n\x1e]\s*+(?=\S)")


def _show(text: str, budget: Budget) -> str | None:
    """What the source of a web page, of SSML or of a model's tags shows; None for other text.

    Raises:
        ScriptError: It has too many tags, or shows too many rows.
    """
    if not _SOURCE.match(text, timeout=PATTERN_S) or "</" not in text:
        return None
    # As models write it, `<script>` around all holds a dialog; HTML's holds no tags.
    source = regex.sub(r"^\s*<script>", "<dialogue>", text, flags=regex.IGNORECASE)
    budget.spend(Cost.TAGS, source.count("<"))
    source = _cut_plain_tags(_NAME_IN_CLASS.sub(rf"<br>\g<name>{_DEFINED}", source))
    budget.spend(Cost.READ_TAGS, source.count("<"))
    shown = _Shown()
    shown.read(source)
    first, *others = "".join(shown.parts).split(_DEFINED)
    joined = ": ".join([first.rstrip(_ENDS_TERM), *(one.strip(_ENDS_TERM) for one in others)])
    budget.spend(Cost.ROWS, _SHOWN_ROW.subn("", joined)[1])
    rows = ("\t".join(map(_tidy, row.split(_CELL))).strip() for row in joined.splitlines())
    return regex.sub(r"\n{3,}", "\n\n", "\n".join(rows)).strip("\n")


def _cut_plain_tags(source: str) -> str:
    """A source without the tags that only say how it looks, and with breaks in place of blocks.

    Parsing a tag takes forty times as long, and Word writes twenty of them a line.
    """
    source = _ONE_IN_CELL.sub(r"\1\3", source)
    source = _ENDS_BLOCK.sub(2 * _BREAK, _OF_LOOKS.sub("", source))
    if _IS_LINED.search(source):
        return source
    return _BEGINS_BLOCK.sub(_BREAK, _IS_BLOCK.sub(3 * _BREAK, source))


def _tidy(cell: str) -> str:
    return " ".join(cell.split())


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
        self.parts.append(_BEFORE.get(tag, ""))
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


def _explain(source: Source) -> Explanation | None:
    if not (shown := _show(source.text, Budget())):
        return None
    return Explanation(lambda remarks: read_source(source.of(shown), remarks))


FORMS = (Form("the source of a page", 4.3, _explain, ("</",)),)
