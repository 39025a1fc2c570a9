"""Finds the speakers of printed plays: `ALGERNON. Did you hear …`, or the name above the words."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import regex

from studio.dialog.attributes import Attributes
from studio.dialog.directions import (
    begins_direction,
    is_direction,
    tells_action,
    write_direction,
)
from studio.dialog.markup import Row, strip_markup
from studio.dialog.model import UnspokenKind, name_key
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.lexer import Shown, Source, has_colon_name
from studio.dialog.reading.row_kinds import (
    PlacedRow,
    begins_cast_list,
    inside_of,
    is_cue,
    is_heading,
    is_titled,
)
from studio.dialog.reading.script_rows import RowReader
from studio.dialog.script import Header
from studio.storage.text_cache import text_cache

_WORD = r"(?:\p{Lu}[\p{L}’'-]*|de|of|the|and|von|to)"
_ABBREVIATED = r"(?:(?:Mrs?|Dr|St|Ms|Rev|Hon|MRS?|DR|ST|REV|HON)\.\s)?"
_NAME = rf"(?P<name>{_ABBREVIATED}(?:\p{{Lu}}[\p{{L}}’'-]*)(?:\s{_WORD}){{0,3}}(?:\s\d)?)"
_HOW = r"(?:\s*,?\s*(?P<how>[\[(][^\[\]()]{1,200}[\])]))?"
# French plays have `NAME. — words`, and `NAME, à part. — words`.
_ENDS = rf"(?:{_HOW}\.(?:_|\s?[—–]|--)?|,\s(?P<aside>\p{{Ll}}[^.:—–]{{1,60}})\.(?:\s?[—–]|$))"
_CUE = regex.compile(rf"_?{_NAME}{_ENDS}(?:\s*(?P<text>(?<=[\s—–-])\S.*)|$)")
_BEHIND_NAME = re.compile(r"[^.,\[(:]*[.,\[(]")
"""One of these comes behind the name in `_CUE`, and no name has a colon."""
_SHOUTED = regex.compile(rf"_?{_NAME}{_HOW}(?:\s+(?P<text>\S.*)|$)")
# Printed plays of our days have `NAME words`, with no mark between them.
_BARE = regex.compile(
    r"(?P<name>\p{Lu}[\p{Lu}’'-]+(?:\s(?:\p{Lu}[\p{Lu}’'-]+|\d)){0,2})"
    r"(?:\s+(?P<text>(?:[\[(][^\[\]()]{1,100}[\])]\s+)?[^\s.,:;!?(\[].*))"
)
_ABOVE = regex.compile(rf"(?P<name>(?!The\s)\p{{Lu}}[\p{{L}}’'-]+(?:\s{_WORD}){{0,2}}(?:\s\d)?)")
_DIRECTION = regex.compile(r"_?\[[^\[\]]*\]_?\.?|_[^_]+_\.?|\(_[^()]*_\)")
_STAGE = regex.compile(r"\s*(?:Enter|Exit|Exeunt|Re-?enter|Flourish|Alarum|Curtain)\b.{0,200}")
_COMES = regex.compile(r"\b(?:Enter|Exit|Exeunt)\b")
_BRACKETS = regex.compile(
    r"_?\[(?P<inside>[^\[\]]*)\]_?\.?|_?\((?P<inside>[^()]*)\)_?(?:\.(?=\s))?"
)
_CALLS = regex.compile(r"[?!¿¡]")
NARRATORS = frozenset(
    name_key(one)
    for one in (
        "Narrator", "Erzähler", "Erzählerin", "Sprecher", "Sprecherin", "Narrateur", "Narratrice",
        "Narrador", "Narradora", "Narratore", "Рассказчик", "Ведущий", "Chorus", "Chor",
        "Stage Manager",
    )
)  # fmt: skip
"""The keys of who tells what others do."""
_NO_NAMES = frozenset(
    name_key(one) for one in ("I", "Act", "Scene", "Act I", "Oh", "Yes", "No", "Well", "Exit",
    "Exeunt", "Enter", "INT", "EXT", "EST", "Ah", "Good", "Thank you", "Nothing", "Nonsense",
    "Never", "Why", "What")
)  # fmt: skip
_PARTS = regex.compile(
    r"(?:act|actus|scene|scoena|acte|akt|atto|acto|escena|scena|chapter|part|time|place|curtain|scène|szene|personnages|personen|(?:the\s)?(?:prologue|epilogue|end))\b",
    regex.IGNORECASE,
)
_FEWEST_CUES = 2
_LEAST_SHARE = 0.3
_MOST_HOW_WORDS = 3
_MOST_CUE_CHARS = 400
_LEAST_BARE, _LEAST_ABOVE = 0.4, 0.6
"""Of paragraphs that begin with a name without a mark: prose has none, a poem a few."""
_MOST_JOINED_CHARS = 2_000
_PAIRS = (("[", "]"), ("(", ")"))


@dataclass(frozen=True, slots=True)
class _Play:
    """A printed play's names, by their keys.

    Attributes:
        names: Of all who speak.
        bare: Those in capitals, with nothing but a space before the words.
        above: Those on a row of their own, without a mark.
        is_spaced: Whether an empty row parts a name from the words below it.
    """

    names: frozenset[str]
    bare: frozenset[str] = frozenset()
    above: frozenset[str] = frozenset()
    is_spaced: bool = False

    def cue_of(self, row: str) -> tuple[str, str] | None:
        """The speaker of a row and the words behind the name; None for other rows."""
        found = _find_cue(row, begins=True)  # a name that is known may begin any row
        if found is None or name_key(found["name"]) not in self.names:
            if unmarked := self._unmarked_cue(row):
                return unmarked
            found = _SHOUTED.fullmatch(row) if "(" in row or "[" in row else None
            if found is None or not found["how"] or name_key(found["name"]) not in self.names:
                return None
        aside = found.groupdict().get("aside")
        how = f"[{found['how'][1:-1]}]" if found["how"] else aside and f"[{aside}]"
        text = " ".join(filter(None, (how, found["text"])))
        return " ".join(found["name"].split()), text

    def _unmarked_cue(self, row: str) -> tuple[str, str] | None:
        for form, names in ((_ABOVE, self.above), (_BARE, self.bare)):
            found = form.fullmatch(row) if names else None
            if found is not None and name_key(found["name"]) in names:
                return found["name"], found.groupdict().get("text") or ""
        return None

    def is_heading(self, row: str) -> bool:
        """Whether a row is in capitals, such as a scene's place."""
        words = row.strip(" .")
        return words.isupper() and len(words) > 1 and name_key(words) not in self.names

    def is_direction(self, row: str) -> bool:
        """Whether a row is nothing but a stage direction."""
        if _DIRECTION.fullmatch(row) or _STAGE.fullmatch(row):
            return True
        # `(DORA WIPES THE COUNTER.)`, where directions are in capitals
        is_bracketed = row.startswith("(") and row.endswith(")")
        return is_bracketed and row.isupper() and len(row.split()) > _MOST_HOW_WORDS

    def tells_of(self, row: str) -> bool:
        """Whether a row, such as “Anna lights the lamp.”, tells what one of them does."""
        name, _, rest = row.partition(" ")
        is_known = name_key(name) in self.names and not name.isupper()
        return is_known and rest[:1].islower() and tells_action(row) and not _CALLS.search(row)

    def may_be_title(self, row: str) -> bool:
        """Whether a row names nobody who is there, and nobody who comes or goes."""
        is_present = all(name_key(name.strip()) in self.names for name in row.split(","))
        return not (is_present or _COMES.search(row))

    def write(self, text: str, *, is_first: bool) -> str:
        """A speech with its directions as a line has them."""
        begins_at = len(text) - len(text.lstrip())

        def direction(found: regex.Match[str]) -> str:
            leads = is_first and found.start() <= begins_at
            return _write_brackets(found[0], found["inside"], leads=leads)

        return strip_markup(_BRACKETS.sub(direction, text))


@text_cache  # a long speech may have the same one ten thousand times
def _write_brackets(written: str, inside: str, *, leads: bool) -> str:
    inside = strip_markup(inside).replace("_", "").strip()
    is_square = "[" in written
    if (
        is_square
        or tells_action(inside)
        or is_direction(inside)
        or (leads and begins_direction(inside))
    ):
        return write_direction(inside, is_first=leads)
    return written


def _find_play(rows: list[Row]) -> _Play | None:
    """The names of a printed play; None for text of another kind."""
    return _find_marked(rows) or _find_unmarked(rows)


def _find_unmarked(rows: list[Row]) -> _Play | None:
    """A play whose names no mark parts from the words: `ANNA How long?`, or `Anna` above them."""
    begins = [
        (row, idx + 1 < len(rows) and bool(rows[idx + 1][1]))
        for idx, (_, row) in enumerate(rows)
        if row and (idx == 0 or not rows[idx - 1][1])
    ]
    bare = Counter(key for row, _ in begins if (key := _key_of(_BARE.fullmatch(row))))
    above = Counter(
        key
        for row, goes_on in begins
        if goes_on and not row.isupper() and (key := _key_of(_ABOVE.fullmatch(row)))
    )
    alone = Counter(key for one in pairwise(begins) if (key := _key_alone(*one)))
    counts = max(bare, above, alone, key=lambda one: one.total())
    again = {name: count for name, count in counts.items() if count > 1}
    least = _LEAST_ABOVE if counts is above else _LEAST_BARE if counts is bare else _LEAST_SHARE
    if len(again) < _FEWEST_CUES or counts.total() < least * len(begins):
        return None
    names = frozenset(counts)
    colons = sum(has_colon_name(row) for _, row in rows if row)
    if colons >= counts.total():
        return None
    if counts is bare:
        return _Play(names, bare=names)
    return _Play(names, above=names, is_spaced=counts is alone)


def _key_alone(first: tuple[str, bool], below: tuple[str, bool]) -> str | None:
    """The key of a name in capitals, alone, above a paragraph that isn't."""
    row, goes_on = first
    words = below[0]
    is_name = row.isupper() and not goes_on and (words.startswith("(") or not words.isupper())
    return _key_of(_ABOVE.fullmatch(row)) if is_name else None


def _key_of(found: regex.Match[str] | None) -> str | None:
    """The key of what may be a name; None for a heading and the like."""
    if found is None or _PARTS.match(found["name"]) or name_key(found["name"]) in _NO_NAMES:
        return None
    return name_key(found["name"])


def _find_marked(rows: list[Row]) -> _Play | None:
    cues, paragraphs = Counter[str](), 0
    shouted: set[str] = set()
    begins = True
    for _, row in rows:
        if row:
            paragraphs += begins
            found = _find_cue(row, begins=begins)
            if found is not None:
                name = found["name"]
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
    colons = sum(has_colon_name(row) for _, row in rows if row)
    return _Play(names, is_spaced=_is_spaced(rows, names)) if total > colons else None


def _is_spaced(rows: list[Row], names: frozenset[str]) -> bool:
    """Whether an empty row follows most names, and then their words."""
    play = _Play(names)
    texts = [row for _, row in rows]
    spaced = 0
    for row, empty, below in zip(texts, texts[1:], [*texts[2:], ""], strict=False):
        cue = play.cue_of(row) if row and not empty else None
        is_alone = cue is not None and not cue[1].rpartition("]")[2]
        spaced += is_alone and not (below and play.cue_of(below))
    if spaced < _FEWEST_CUES:  # as in most, whose rows needn't be asked again
        return False
    return 2 * spaced > sum(play.cue_of(row) is not None for row in texts if row)


def _join_open_brackets(rows: list[Row]) -> list[Row]:
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


def _find_cue(row: str, *, begins: bool) -> regex.Match[str] | None:
    # As most rows of a script, or of what somebody says.
    is_small = row[1:2].islower() and row[0] != "_"
    if (is_small and not begins) or "." not in row:
        return None
    if not _BEHIND_NAME.match(row, 0, _MOST_CUE_CHARS):
        return None
    found = _CUE.fullmatch(row)
    if found is not None and found["aside"] and not (found["text"] or found["name"].isupper()):
        return None  # somebody is addressed: `Anna, on my word.`
    if found is None or name_key(found["name"]) in _NO_NAMES or _PARTS.match(found["name"]):
        return None
    if _STAGE.match(row):
        return None
    # In the middle of a paragraph only capitals are a name; `Yes. I …` may begin any.
    return found if begins or found["name"].isupper() else None


class _PlayReader(RowReader):
    """Reads a play's rows; between a heading and the first name stands what happens."""

    def __init__(self, source: Source, shown: Shown, remarks: ImportNotices, play: _Play) -> None:
        super().__init__(source, shown, remarks)
        self._play = play
        self._is_action = True
        self._is_cast_list = False
        # A name without words so far.
        self._cue: tuple[Header, int] | None = None
        # Whether a direction beside a name is all so far, and the words come below an empty row.
        self._is_open = False

    def begin(self, header: Header, number: int) -> None:
        super().begin(header, number)
        self._is_action = False

    def end_paragraph(self, row: PlacedRow) -> None:
        self._is_cast_list = self._is_cast_list and not row.text
        if self._is_open:
            self._is_open = False
            return
        if not self._play.is_spaced:
            self._is_action = self._is_action or self._cue is not None
            self.end()
        super().end_paragraph(row)

    def read_row(self, row: PlacedRow) -> None:
        text, number = row.text, row.number
        inside = inside_of(text)
        is_headed = is_heading(strip_markup(inside or text))
        is_headed = is_headed or (inside is None and self._play.is_heading(text))
        self._is_cast_list = begins_cast_list(text) or (self._is_cast_list and not is_headed)
        if is_cue(text):
            self.add_cue(text, number)
        elif self._is_cast_list and not begins_cast_list(text):
            self.narrate(text, number, UnspokenKind.NOTE)
        elif said := self._play.cue_of(text):
            self.end()
            self._cue = (Header(said[0], Attributes(), ""), number)
            if said[1]:
                self._say_in_play(said[1], number)
                self._is_open = self._play.is_spaced and inside_of(said[1]) is not None
        elif self._cue is not None and inside:  # below a name: how its words are said
            self._say_in_play(text, number)
            self._is_open = self._play.is_spaced
        elif self._may_be_title(row):
            self.take_title(text, number)
        elif is_headed or self._is_cast_list:
            self.narrate(text, number, UnspokenKind.HEADING)
            self._is_action = True
        elif self._play.is_direction(text) or self._is_played(row):
            self.narrate(strip_markup(text).strip("[]()"), number, UnspokenKind.ACTION)
        else:
            self._say_in_play(text, number)

    def _is_played(self, row: PlacedRow) -> bool:
        """Whether a row tells what happens: above the first name, or a paragraph without one."""
        is_action = row.ends and self._play.tells_of(row.text) and not self._is_narrator()
        is_apart = row.begins and (bool(self._play.bare) or is_action)
        return self._cue is None and (self._is_action or is_apart)

    def _is_narrator(self) -> bool:
        return self.speaker is not None and name_key(self.speaker.speaker) in NARRATORS

    def _may_be_title(self, row: PlacedRow) -> bool:
        is_first = self.speaker is None and self.title is None and row.begins
        is_free = is_titled(row.text) and inside_of(row.text) is None
        return is_first and is_free and self._play.may_be_title(row.text)

    def _say_in_play(self, text: str, number: int) -> None:
        if self._cue is not None:
            self.begin(*self._cue)
            self._cue = None
        self.say("\\" + self._play.write(text, is_first=not self.has_words), number)

    def end(self) -> None:
        """A name that nobody's words follow, as in the list of a play's cast."""
        if self._cue is not None:
            header, number = self._cue
            self._cue = None
            self.narrate(header.speaker, number, UnspokenKind.NOTE)


def _explain(source: Source) -> Explanation | None:
    shown = source.shown
    play = _find_play(shown.rows)
    if play is None:
        return None
    cues = sum(bool(row) and play.cue_of(row) is not None for _, row in shown.rows)
    joined = replace(shown, rows=_join_open_brackets(shown.rows))
    return Explanation(
        lambda remarks: _PlayReader(source, joined, source.take(remarks), play).read(),
        cues,
        shown.filled,
    )


FORMS = (Form("a play", 1.5, _explain),)
