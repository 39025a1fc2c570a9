"""LitBank's quotations: each book's excerpt as printed, who says what, how persons are called.

LitBank (Bamman and others, CC BY 4.0) has 100 excerpts of about 2,000 words. Its annotations count
words; here they are put into the printed text, whose paragraphs they don't keep.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from studio.dialog.prose.pieces import PieceKind
from studio.dialog.prose.speakers import split_prose

SHARES = (10, 20, 40, 60, 80, 100)
_TITLES = frozenset(
    "mr mrs miss sir lady lord of dr captain aunt uncle old master".split()  # noqa: SIM905
)
_MARKS = re.compile(r"\W+")


@dataclass(frozen=True)
class Said:
    """A quotation of the annotation: where it stands in the text, and who says it."""

    start: int
    end: int
    person: str


@dataclass(frozen=True)
class Book:
    name: str
    text: str
    quotations: tuple[Said, ...]
    mentions: dict[str, frozenset[str]]
    """How each person is called outside of quotations, in small letters, and by name anywhere."""


def read_books(folder: Path) -> list[Book]:
    """The books with quotations, by name."""
    files = sorted((folder / "quotations" / "tsv").glob("*_brat.ann"))
    return [_read_book(folder, file) for file in files]


def _read_book(folder: Path, file: Path) -> Book:
    name = file.name.removesuffix("_brat.ann")
    words = [row.split(" ") for row in file.with_suffix(".txt").read_text("utf-8").splitlines()]
    (original,) = (folder / "original").glob(f"{name.partition('_')[0]}_*")
    text, places = _place(words, original.read_text("utf-8", "replace"))
    spans, persons = {}, {}
    for row in file.read_text("utf-8").splitlines():
        kind, one, *rest = row.split("\t")
        if kind == "QUOTE":
            first, last = (int(rest[0]), int(rest[1])), (int(rest[2]), int(rest[3]))
            spans[one] = places[first][0], places[last][1]
        else:
            persons[one] = rest[0]
    said = tuple(Said(*spans[one], persons.get(one, "")) for one in spans)
    mentions = _mentions(folder / "coref" / "tsv" / file.name, places, said)
    return Book(name, text, said, mentions)


def _mentions(file: Path, places, said) -> dict[str, frozenset[str]]:
    called, person_of = {}, {}
    for row in file.read_text("utf-8").splitlines():
        kind, one, *rest = row.split("\t")
        if kind == "MENTION":
            at = places[int(rest[0]), int(rest[1])][0]
            is_quoted = any(span.start <= at < span.end for span in said)
            if rest[6] == "PROP" or not is_quoted:
                called[one] = rest[4], rest[6]
        elif kind == "COREF":
            person_of[one] = rest[0]
    mentions = defaultdict(set)
    for one, (words, sort) in called.items():
        if one in person_of:
            mentions[person_of[one]].add(plain(words))
            if sort == "PROP":  # “Bennet” is a mention of Mr. Bennet
                parts = plain(words).split()
                runs = {
                    " ".join(parts[i:j])
                    for i in range(len(parts))
                    for j in range(i + 1, len(parts) + 1)
                }
                mentions[person_of[one]] |= {run for run in runs if run not in _TITLES}
            else:  # “a man” of “a man in the crowd”, but not of “a man's wife”
                parts = plain(words).split()
                heads = (" ".join(parts[:end]) for end in range(1, len(parts)) if parts[end] != "s")
                mentions[person_of[one]] |= {head for head in heads if head not in _TITLES}
    for person, one in mentions.items():
        one.add(plain(person.rpartition("-")[0]))
    return {person: frozenset(one) for person, one in mentions.items()}


def plain(name: str) -> str:
    words = _MARKS.sub(" ", name.casefold().replace("_", " ")).split()
    return " ".join(word for word in words if word not in ("the", "a", "an"))


def _place(words: list[list[str]], original: str):
    """The excerpt in the original, and the characters of each word in it, by sentence and word."""
    compact, at = [], []
    for idx, char in enumerate(original):
        if not char.isspace():
            compact.append(char)
            at.append(idx)
    compact = "".join(compact)
    flat = "".join("".join(row) for row in words)
    begin = next(
        found
        for skip in range(0, 400, 7)
        if (found := compact.find(flat[skip : skip + 60])) >= 0 and (found := found - skip) > -1
    )
    places, here = {}, begin
    for row_idx, row in enumerate(words):
        for idx, word in enumerate(row):
            found = compact.find(word, here, here + len(word) + 400)
            if found >= 0 and (found - here < 3 or len(word) > 5):
                here = found
            end = here + len(word) - 1
            places[row_idx, idx] = at[here], at[min(end, len(at) - 1)] + 1
            here = end + 1
    start, end = at[begin], places[max(places)][1]
    return original[start:end], {one: (a - start, b - start) for one, (a, b) in places.items()}


@dataclass
class Measured:
    """What was found of the quotations, and right of the speakers, the surest first."""

    annotated: int = 0
    found: int = 0
    false: int = 0
    rights: list[tuple[float, bool]] = field(default_factory=list)

    def curve(self) -> dict[int, float]:
        """The share that is right of the surest per cent of the quotations annotated.

        Those of one confidence that a share cuts count by their mean.
        """
        ranked = sorted(self.rights, key=lambda one: -one[0])
        shown = {}
        for share in SHARES:
            count = round(self.annotated * share / 100)
            least = ranked[: max(1, count)][-1][0]
            above = [right for sure, right in ranked if sure > least]
            tied = [right for sure, right in ranked if sure == least]
            taken = min(count, len(ranked)) - len(above)
            shown[share] = (sum(above) + taken * sum(tied) / len(tied)) / count
        return shown


def measure(books: list[Book], note=None) -> Measured:
    result = Measured()
    for book in books:
        pieces = [one for one in split_prose(book.text).pieces if one.kind is PieceKind.QUOTATION]
        result.annotated += len(book.quotations)
        used = set()
        for said in book.quotations:
            best = max(pieces, key=lambda one: _overlap(one, said), default=None)
            if best is None or _overlap(best, said) < 0.5:
                if note:
                    note(book, said, None, False)
                continue
            used.add(best.start)
            result.found += 1
            is_right = best.speaker is not None and _names(
                best.speaker, book.mentions.get(said.person, frozenset())
            )
            result.rights.append((best.confidence if best.speaker else 0.0, is_right))
            if note:
                note(book, said, best, is_right)
        extra = [
            one
            for one in pieces
            if one.start not in used and not any(_overlap(one, said) for said in book.quotations)
        ]
        result.false += len(extra)
        if note:
            for one in extra:
                note(book, None, one, False)
    return result


def _names(speaker: str, mentions: frozenset[str]) -> bool:
    title, _, rest = plain(speaker).partition(" ")
    return plain(speaker) in mentions or (title in _TITLES and " " in rest and rest in mentions)


def _overlap(piece, said) -> float:
    both = min(piece.end, said.end) - max(piece.start, said.start)
    return max(0, both) / (max(piece.end, said.end) - min(piece.start, said.start))
