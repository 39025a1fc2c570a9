r"""Rows that all have one shape, with a name and words in it; each shape is a row of a table.

Captions (`>>NAME text`), consoles (`Mira> …`), engines of games (`\\n<Mira>…`, `Mira "…"`), wikis
(`'''Mira''': …`), forums (`[b]Mira:[/b] …`), diagrams (`Mira->>Tom: …`), lists in programs
(`("Mira", "…"),`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

import regex

from studio.dialog.directions import write_direction
from studio.dialog.markup import Row
from studio.dialog.model import name_key
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source

_NAME = r"(?P<name>\p{Lu}[\p{L}\p{N}.'’-]*(?:\s[\p{L}\p{N}.'’-]+){0,3})"
_CAPITALS = r"(?P<name>\p{Lu}[\p{Lu}\d.'’-]+(?:\s[\p{Lu}\d][\p{Lu}\d.'’-]+){0,3})"
_PLAIN = r"[\p{L}\p{N}][\p{L}\p{N} ]{0,40}?"
_ACTOR = rf"(?P<name>{_PLAIN})"
_WORDS = r"(?P<text>\S.*)"
_UNITS = "line|row|cue|dialogue|shot|zeile|ligne|línea|riga|linha"
_WHO = r"[\"']?(?:speaker|character|name|who|role|actor)[\"']?"
_SAYS = r"[\"']?(?:text|line|says|said|dialogue|content|message|words)[\"']?"
_SET = r"(?:(?:\w+\s+)?\w+\s*=\s*\[\s*)?"
_BRACKETS = r"(?:\w+\s+)?\w+\s*=\s*[\[({]+|[\[\](){};,]+"


def _quoted(group: str) -> str:
    return rf"(?:\"(?P<{group}>[^\"]+)\"|'(?P<{group}>(?:[^']|\b'\b)+)')"


@dataclass(frozen=True, slots=True)
class Shape:
    """How all rows of a text are written.

    Attributes:
        of: What has such rows, for a notice.
        signs: One of them stands in each text of the shape.
        said: Matches a row with the groups `name` and `text`; `how` it is said and its `id`, if it
            tells; and `signs`, which are the same in all rows.
        other: Matches the rows between them, which stay as they are.
        left: Matches rows that belong to the notation, and become notes.
        certainty: See `Form`.
    """

    of: str
    signs: tuple[str, ...]
    said: str
    other: str = r"(?!)"
    left: str = r"(?!)"
    certainty: float = 2.3


_SHAPES = (
    Shape(
        "captions with a name behind “>>”", (">>",),
        rf">>\s?{_CAPITALS}:?\s+{_WORDS}", ".*", certainty=2.6,
    ),
    Shape(
        "rows that begin with a name in parentheses", ("(",),
        rf"\((?P<name>\p{{Lu}}[^()]{{0,30}})\)\s+{_WORDS}", certainty=2.0,
    ),
    Shape("names before a wide space", ("\u3000",), rf"(?P<name>[^\s。、]{{1,10}})\u3000+{_WORDS}"),
    Shape(
        "names in capitals before words", tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        r"(?P<name>\p{Lu}{2,}(?:\s\p{Lu}{2,}){0,2})\s+(?P<text>\p{Lu}(?:[\p{Ll}'’]|\s).*)",
        certainty=1.3,
    ),
    Shape(
        "abbreviated names", (". ",),
        rf"(?P<name>\p{{Lu}}\p{{L}}{{1,6}})\.\s+{_WORDS}", certainty=1.6,
    ),
    Shape(
        "names with a stop and a dash", (". —", ". –"),
        rf"{_NAME}(?<=\w)\.\s[–—]\s+{_WORDS}", certainty=1.7,
    ),
    Shape(
        "rows that end with a name in parentheses", (")",),
        rf"(?P<text>\S.*?[.!?…。！？])\s?\({_NAME}\)", certainty=1.7,
    ),
    Shape(
        "TeX", ("\\",), rf"\\\w+\{{{_NAME}\}}:?\s*{_WORDS}",
        left=r"\\(?:begin|end|documentclass|usepackage|title|author|section\*?|maketitle)\b.*",
        certainty=2.7,
    ),
    Shape(
        "names in italics, or in bold without a colon", ("*", "_"),
        rf"(?:(?P<mark>[*_]){_NAME}(?::(?P=mark)|(?P=mark)\s?:)"
        rf"|(?P<mark>__|\*\*){_NAME}(?P=mark))\s+(?![*_(\[]){_WORDS}",
    ),
    Shape(
        "names with their manner in brackets", ("]:",),
        rf"{_NAME}\s?\[(?P<how>[^\[\]]{{1,40}})\]:\s+{_WORDS}", rf"{_NAME}:\s.*",
    ),
    Shape(
        "names between signs", (),
        rf"(?P<signs>[^\p{{L}}\p{{N}}\s\"“„«'‘#@<\[*_–—-]{{1,2}})\s?{_NAME}\s?[^\p{{L}}\p{{N}}\s\"”'’]{{1,2}}"
        rf":?\s+{_WORDS}", certainty=1.2,
    ),
    Shape(
        "names before a sign", (),
        rf"{_NAME}\s?(?P<signs>[^\p{{L}}\p{{N}}\s.,:!?…\"“”„«‘’'()\[\]–—-]{{1,3}})\s+{_WORDS}",
        certainty=1.2,
    ),
    Shape(
        "a checklist", ("- [", "* ["),
        rf"[-*+]\s\[[ xX]\]\s+(?:\*\*)?{_NAME}:(?:\*\*)?\s+{_WORDS}", ".*", certainty=2.7,
    ),
    Shape("rows between bars", ("|",), rf"\|\s*{_NAME}\s*\|\s*(?P<text>[^|]+?)\s*\|"),
    Shape("rows that begin with “@” and a name", ("@",), rf"@(?P<name>\p{{L}}\w*)[:,]?\s+{_WORDS}"),
    Shape(
        "names before quotations", ('"', "“"),
        rf"(?:{_NAME}|(?P<name>\p{{Ll}}\w{{0,15}}))\s+[\"“](?P<text>[^\"“”]+)[\"”]",
        r"(?:#|//).*", certainty=2.25,
    ),
    Shape(
        "a forum's script", ("[b]", "[B]"),
        rf"(?i:\[b\])\s*{_NAME}\s*(?::\s*(?i:\[/b\])|(?i:\[/b\])\s*:)\s*{_WORDS}",
        ".*", certainty=2.7,
    ),
    Shape(
        "a wiki's script", ("'''",),
        rf"[:*]*\s*'''{_NAME}(?::'''|'''\s*:)\s*{_WORDS}", ".*", certainty=2.7,
    ),
    Shape(
        "a game's messages", ("\\n<", "\\N<"), rf"\\[nN]<{_NAME}>\s*{_WORDS}",
        ".*", certainty=2.7,
    ),
    Shape(
        "a sequence diagram", ("->", "-)"),
        rf"{_ACTOR}\s?-{{1,2}}(?:>>?|x|\))[+-]?\s?{_PLAIN}:\s*{_WORDS}",
        left=r"[a-z]+(?:Diagram)?\b.*|Note\b.*|@\w+", certainty=3.5,
    ),
    Shape(
        "numbered lines",
        ("ine ", "INE ", "ow ", "ue ", "ot ", "eile ", "nea ", "iga ", "nha ", "[", "#", ": "),
        rf"(?:(?i:{_UNITS})\s?#?\d{{1,5}}\s?[-–—:.)]|\[\d{{1,5}}\]|#\d{{1,5}}|\d{{1,5}}:"
        rf"|(?P<id>[A-Z]{{1,6}}[_-]?\d{{2,6}}))\s*{_NAME}:\s+{_WORDS}",
        certainty=3.5,
    ),
    Shape(
        "names with a stop and a dash", (".-", ".–", ".—"),
        rf"{_NAME}(?<=\w)\.\s?[-–—]{{1,2}}\s*{_WORDS}",
        ".*", certainty=1.0,
    ),
    Shape(
        "a list in a program", ("(", "["),
        rf"{_SET}[\w.]*[(\[]\s*{_quoted('name')}\s*,\s*{_quoted('text')}\s*,?\s*[)\]]\s*[,;]?",
        left=_BRACKETS, certainty=2.8,
    ),
    Shape(
        "a list in a program", ("{", "("),
        rf"{_SET}[\w.]*[{{(]\s*{_WHO}\s*[:=]\s*{_quoted('name')}\s*,"
        rf"\s*{_SAYS}\s*[:=]\s*{_quoted('text')}\s*,?\s*[}})]\s*[,;]?",
        left=_BRACKETS, certainty=2.8,
    ),
)  # fmt: skip
_FEWEST = 2
_FEW = 3
"""In a longer text at least one name comes twice."""


def _explain(shape: Shape, source: Source) -> Explanation | None:
    said, other, left = map(regex.compile, (shape.said, shape.other, shape.left))
    rows = source.shown.written
    first = next((row for _, row in rows if row), "")
    if not any(one.fullmatch(first) for one in (said, other, left)):
        return None
    found = {idx: one for idx, (_, row) in enumerate(rows) if row and (one := said.fullmatch(row))}
    names = Counter(name_key(one["name"]) for one in found.values())
    signs = {one.groupdict().get("signs") for one in found.values()}
    if (
        len(signs) > 1
        or len(names) < _FEWEST
        or (len(found) > _FEW and max(names.values()) < _FEWEST)
    ):
        return None
    written: list[Row] = []
    for idx, (number, row) in enumerate(rows):
        if one := found.get(idx):
            how = one.groupdict().get("how")
            manner = f"{write_direction(how, is_first=True)} " if how else ""
            own = f" | id:{given}" if (given := one.groupdict().get("id")) else ""
            row = f"[{one['name'].strip()}{own}] {manner}{one['text']}"
        elif row and left.fullmatch(row):
            row = f"#> {row}"
        elif row and not other.fullmatch(row):
            return None
        written.append((number, row))
    return explain_rows(source, written, len(found))


FORMS = tuple(
    Form(shape.of, shape.certainty, partial(_explain, shape), shape.signs) for shape in _SHAPES
)
