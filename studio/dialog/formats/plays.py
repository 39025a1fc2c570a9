"""Finds the speakers of printed plays: `ALGERNON. Did you hear …`, or the name above the words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import regex

from studio.dialog.directions import begins_direction, is_direction, write_direction
from studio.dialog.markup import Row, strip_markup
from studio.dialog.model import name_key
from studio.dialog.script import parse_header
from studio.errors import NameRejected, ScriptError

_WORD = r"(?:\p{Lu}[\p{L}’'-]*|de|of|the|and|von|to)"
_ABBREVIATED = r"(?:(?:Mrs?|Dr|St|Ms|Rev|Hon|MRS?|DR|ST|REV|HON)\.\s)?"
_NAME = rf"(?P<name>{_ABBREVIATED}(?:\p{{Lu}}[\p{{L}}’'-]*)(?:\s{_WORD}){{0,3}}(?:\s\d)?)"
_HOW = r"(?:\s*,?\s*(?P<how>[\[(][^\[\]()]{1,200}[\])]))?"
# French plays have `NAME. — words`, and `NAME, à part. — words`.
_ENDS = rf"(?:{_HOW}\.(?:_|\s?[—–]|--)?|,\s(?P<aside>\p{{Ll}}[^.:—–]{{1,60}})\.\s?[—–])"
_CUE = regex.compile(rf"_?{_NAME}{_ENDS}(?:\s*(?P<text>(?<=[\s—–-])\S.*)|$)")
_BEHIND_NAME = frozenset(".,[(")
"""One of these comes behind the name in `_CUE`, and no name has a colon."""
_SHOUTED = regex.compile(rf"_?{_NAME}{_HOW}(?:\s+(?P<text>\S.*)|$)")
_DIRECTION = regex.compile(r"_?\[[^\[\]]*\]_?\.?|_[^_]+_\.?|\(_[^()]*_\)")
_STAGE = regex.compile(r"\s*(?:Enter|Exit|Exeunt|Re-?enter|Flourish|Alarum|Curtain)\b.{0,200}")
_BRACKETS = regex.compile(r"_?\[(?P<inside>[^\[\]]*)\]_?\.?|_?\((?P<inside>[^()]*)\)_?")
_NO_NAMES = frozenset(
    name_key(one) for one in ("I", "Act", "Scene", "Act I", "Oh", "Yes", "No", "Well", "Exit",
    "Exeunt", "Enter", "Ah", "Good", "Thank you", "Nothing", "Nonsense", "Never", "Why", "What")
)  # fmt: skip
_PARTS = regex.compile(
    r"(?:act|actus|scene|scoena|acte|akt|chapter|part|time|place|curtain|scène|szene|personnages|personen|(?:the\s)?(?:prologue|epilogue|end))\b",
    regex.IGNORECASE,
)
_FEWEST_CUES = 2
_LEAST_SHARE = 0.3
_MOST_JOINED_CHARS = 2_000
_PAIRS = (("[", "]"), ("(", ")"))


@dataclass(frozen=True, slots=True)
class Play:
    """A printed play's names, by their keys."""

    names: frozenset[str]

    def cue_of(self, row: str) -> tuple[str, str] | None:
        """The speaker of a row and the words behind the name; None for other rows."""
        found = _CUE.fullmatch(row)
        name = _name_of(row, begins=True)  # a name that is known may begin any row
        if name is None or name_key(name) not in self.names:
            found = _SHOUTED.fullmatch(row)
            if found is None or not found["how"] or name_key(found["name"]) not in self.names:
                return None
        assert found is not None
        aside = found.groupdict().get("aside")
        how = f"[{found['how'][1:-1]}]" if found["how"] else aside and f"[{aside}]"
        text = " ".join(filter(None, (how, found["text"])))
        return " ".join(found["name"].split()), text

    def is_heading(self, row: str) -> bool:
        """Whether a row is in capitals, such as a scene's place."""
        words = row.strip(" .")
        return words.isupper() and len(words) > 1 and name_key(words) not in self.names

    def is_direction(self, row: str) -> bool:
        """Whether a row is nothing but a stage direction."""
        return _DIRECTION.fullmatch(row) is not None or _STAGE.fullmatch(row) is not None

    def write(self, text: str, *, is_first: bool) -> str:
        """A speech with its directions as a line has them."""

        def direction(found: regex.Match[str]) -> str:
            inside = strip_markup(found["inside"]).replace("_", "").strip()
            leads = is_first and not text[: found.start()].strip()
            is_square = "[" in found[0]
            is_action = inside[:1].isupper() and inside.endswith(".")
            if (
                is_square
                or is_action
                or is_direction(inside)
                or (leads and begins_direction(inside))
            ):
                return write_direction(inside, is_first=leads)
            return found[0]

        return strip_markup(_BRACKETS.sub(direction, text))


def find_play(rows: list[Row]) -> Play | None:
    """The names of a printed play; None for text of another kind."""
    cues, paragraphs = Counter[str](), 0
    shouted: set[str] = set()
    begins = True
    for _, row in rows:
        if row:
            paragraphs += begins
            name = _name_of(row, begins=begins)
            if name is not None:
                cues[name_key(name)] += 1
                if name.isupper() or f"{name}.  " in row:
                    shouted.add(name_key(name))
        begins = not row
    if 2 * sum(cues[name] for name in shouted) > cues.total():
        # The names are in capitals; what else begins so stands in the list of the cast.
        cues = Counter({name: count for name, count in cues.items() if name in shouted})
    # Where nearly every paragraph begins so, a name that occurs once is one as well.
    takes_all = 2 * cues.total() > paragraphs and max(cues.values(), default=0) > 1
    names = frozenset(
        name for name, count in cues.items() if count > 1 or name in shouted or takes_all
    )
    total = sum(cues[name] for name in names)
    may_be_play = total >= _FEWEST_CUES and total >= _LEAST_SHARE * paragraphs
    if not may_be_play or (len(names) == 1 and total == _FEWEST_CUES):
        return None
    colons = sum(_is_said(row) for _, row in rows if row)
    return Play(names) if total > colons else None


def join_open_brackets(rows: list[Row]) -> list[Row]:
    """Join rows between which a direction in brackets is broken."""
    joined: list[Row] = []
    for number, row in rows:
        last = joined[-1][1] if joined else ""
        is_open = bool(row) and any(last.rfind(left) > last.rfind(right) for left, right in _PAIRS)
        if is_open and len(last) < _MOST_JOINED_CHARS:
            joined[-1] = (joined[-1][0], f"{last} {row}")
        else:
            joined.append((number, row))
    return joined


def _is_said(row: str) -> bool:
    try:
        return parse_header(row) is not None
    except (ScriptError, NameRejected):
        return True


def _name_of(row: str, *, begins: bool) -> str | None:
    before, colon, _ = row.partition(":")
    if colon and _BEHIND_NAME.isdisjoint(before):  # as in a script, whose rows are many
        return None
    found = _CUE.fullmatch(row)
    if found is None or name_key(found["name"]) in _NO_NAMES or _PARTS.match(found["name"]):
        return None
    if _STAGE.match(row):
        return None
    # In the middle of a paragraph only capitals are a name; `Yes. I …` may begin any.
    return found["name"] if begins or found["name"].isupper() else None
