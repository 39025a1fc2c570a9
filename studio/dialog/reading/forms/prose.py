"""Prose, with hardly a name before words: for one narrator, or its quotations for who says them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from studio.dialog.attributes import UNSURE, Attributes
from studio.dialog.markup import strip_markup
from studio.dialog.model import MAX_LINES, MAX_NAME_CHARS, is_speakable, name_key
from studio.dialog.prose.pieces import FIRST_PERSON, PieceKind, Pieces, ProsePiece
from studio.dialog.prose.speakers import split_prose
from studio.dialog.prose.words import find_words
from studio.dialog.reading.building import FIRST_SPEAKER, ImportNotices
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.lexer import Shown, Source
from studio.dialog.reading.row_kinds import BROKEN, PlacedRow, is_ornament, is_sound, plain_bold
from studio.dialog.reading.script_rows import RowReader
from studio.dialog.script import Header

_FEW_NAMED = 10
"""In prose at most one paragraph in so many begins with what looks like a name."""
_SELDOM = 100
"""In prose of less than twice as many paragraphs none does so twice."""
_MARKS = frozenset("“\"«„»「『‘'")
_GOES_ON = frozenset(",;—–-")
"""Besides a letter: at the end of a row, its sentence goes on in the next."""
_SHORT_ROW = 40
"""At most as long is a heading, which ends with a letter, too."""
_LEAST_CONFIDENCE = 0.6
"""Below it the narrator reads a quotation, as a wrong voice is worse than none."""
_GUESSED_CONFIDENCE = 0.88
_LEAST_GIVEN = 4
_MOSTLY_SAID = 0.4
"""Of a text with fewer, in which it is clear of all who says them."""
_LEAST_KNOWN = 0.5
_LEAST_NAMED = 0.35
"""Of the quotations; a narrator and one voice now and then tell less than the narrator alone."""
_LEAST_SAID = 0.1
"""Of the text; an article quotes less."""

_SPLIT = (
    "This was read as prose with dialogue: {} quotations, {} people, {} quotations whose speaker "
    "is unsure. To have one narrator read all of it, add one."
)
_GUESSED = "Who speaks is guessed here, by turns and by who was named last:"
_UNSURE = "Nothing says who speaks here; it goes to “{}”. Change it where that is wrong:"


class _ProseReader(RowReader):
    """Reads prose; `pieces` are the parts of each row, none where one narrator reads all."""

    def __init__(self, source: Source, shown: Shown, remarks: ImportNotices) -> None:
        super().__init__(source, shown, remarks)
        self.quoted = 0
        self._pieces: dict[int, list[tuple[ProsePiece, str]]] = {}
        self._last: ProsePiece | None = None
        if self.narrator is None:
            self._split()

    def read(self) -> Read:
        return replace(super().read(), quoted=self.quoted)

    def read_row(self, row: PlacedRow) -> None:
        pieces = self._pieces.get(row.number)
        if pieces is None:
            self.begin_narrator(row.number)
            self.say("\\" + _plain(row.text), row.number)
            return
        for piece, text in pieces:
            if piece is not self._last and (self._last is None or is_speakable(piece.text)):
                self._begin_piece(piece, row.number)
            if text.strip():
                self.script.read("\\" + text, row.number)

    def begin_narrator(self, number: int) -> None:
        if self._last is not None and self._last.kind is PieceKind.QUOTATION:
            self._last = None
            self.begin(Header(FIRST_SPEAKER, Attributes(), ""), number)
        super().begin_narrator(number)

    def _begin_piece(self, piece: ProsePiece, number: int) -> None:
        self._last = piece
        name, attributes = FIRST_SPEAKER, Attributes()
        if piece.kind is PieceKind.QUOTATION:
            quote = " ".join(piece.text.split()).strip("“”\"«»„「」『』‘’'")
            name = _speaker_of(piece) or FIRST_SPEAKER
            if _speaker_of(piece) is None:
                self.remarks.add(_UNSURE.format(FIRST_SPEAKER), number, quote)
                attributes = Attributes(params={UNSURE: True})
            elif piece.confidence < _GUESSED_CONFIDENCE:
                self.remarks.add(_GUESSED, number, quote)
        self.begin(Header(name, attributes, ""), number)

    def _split(self) -> None:
        rows = [
            (
                number,
                "" if is_ornament(text) or text.startswith(("\\", "#", "//")) else _plain(text),
            )
            for number, text in self.rows
        ]
        whole = "\n".join(text for _, text in rows)
        if sum(map(whole.count, _MARKS)) > 2 * MAX_LINES:
            return  # which would become too many lines
        split = split_prose(whole)
        if not _is_dialogue(split):
            return
        given = [_speaker_of(piece) for piece in split.quotations]
        people = {name_key(name) for name in given if name} - {name_key(FIRST_SPEAKER)}
        unsure = given.count(None)
        self.quoted = len(given) - unsure
        self.remarks.add(_SPLIT.format(len(given), len(people), unsure), 1)
        self._pieces = _cut_into_rows(split, rows)


def _cut_into_rows(
    split: Pieces, rows: Iterable[tuple[int, str]]
) -> dict[int, list[tuple[ProsePiece, str]]]:
    """The pieces in each row by its number, with what of them stands there."""
    found = defaultdict(list)
    pieces = iter(split.pieces)
    piece, start = next(pieces), 0
    for number, row in rows:
        end = start + len(row)
        while piece.start < end:
            if text := split.source[max(start, piece.start) : min(end, piece.end)]:
                found[number].append((piece, text))
            if piece.end > end or (following := next(pieces, None)) is None:
                break
            piece = following
        start = end + 1
    return found


def _plain(row: str) -> str:
    return strip_markup(plain_bold(row))


def _speaker_of(piece: ProsePiece) -> str | None:
    """The name of a quotation's speaker; None where it isn't sure enough."""
    if piece.speaker is None or piece.confidence < _LEAST_CONFIDENCE:
        return None
    if piece.speaker == FIRST_PERSON:
        return FIRST_SPEAKER
    return (piece.speaker[0].upper() + piece.speaker[1:])[:MAX_NAME_CHARS]


def _is_dialogue(split: Pieces) -> bool:
    """Whether so much is said, by people of whom so many are known, that voices are worth it."""
    quotations = split.quotations
    known = list(filter(None, map(_speaker_of, quotations)))
    said = sum(piece.end - piece.start for piece in quotations)
    # “His wife” may be another character than “Mrs. Bennet”; names are whose they are.
    named = sum(
        _speaker_of(one) not in (None, FIRST_SPEAKER) and not str(one.speaker)[0].islower()
        for one in quotations
    )
    given = sum(one != FIRST_SPEAKER for one in known)
    is_all_given = len(quotations) == given >= 2 and said >= _MOSTLY_SAID * len(split.source)
    is_known = given >= _LEAST_GIVEN or is_all_given
    is_known = is_known and (
        len(known) > _LEAST_KNOWN * len(quotations) or named > _LEAST_NAMED * len(quotations)
    )
    # Pieces and paragraphs become lines, of which a dialog hasn't any number.
    is_short = len(split.pieces) + split.source.count("\n") < MAX_LINES
    return is_known and is_short and said >= _LEAST_SAID * len(split.source)


def _explain(source: Source) -> Explanation | None:
    shown = source.shown
    names = _count_names(source)
    if shown.has_bold_names or (not names and any(is_sound(row) for _, row in shown.rows)):
        return None
    if names and not _has_few_names(source, names):
        return None
    return Explanation(
        lambda remarks: _ProseReader(source, shown, source.take(remarks)).read(),
        shown.filled - names.total(),
        shown.filled,
    )


def _count_names(source: Source) -> Counter[str]:
    """How often each name begins a row, without what only looks like one in a book.

    That is who says the quotation behind the colon or below it (`宝玉笑道：“…”`), and words of a
    sentence that the row above begins.
    """
    if not source.counted:
        return source.counted
    rows = [row for _, row in source.shown.rows]
    words, none = None, Counter[str]()
    for idx, row in enumerate(rows):
        if (header := source.names.read(row)) is None:
            continue
        above, below = rows[idx - 1] if idx else "", "".join(rows[idx + 1 : idx + 3])
        is_quoting = (header.text or below)[:1] in _MARKS
        words = words or (find_words(source.text) if is_quoting else None)
        is_inside = above[-1:].isalpha() or above[-1:] in _GOES_ON
        is_inside = is_inside and len(above) > _SHORT_ROW and source.names.of(above) is None
        if is_inside or (words and is_quoting and words.says(header.speaker)):
            none[name_key(header.speaker)] += 1
    return source.counted - none


def _has_few_names(source: Source, names: Counter[str]) -> bool:
    """Whether only some paragraphs begin with what looks like a name."""
    rows = source.shown.rows
    first = next((row for _, row in rows if row), "")
    paragraphs = sum(
        bool(row) and (idx == 0 or not rows[idx - 1][1]) for idx, (_, row) in enumerate(rows)
    )
    is_repeated = max(names.values()) > max(1, paragraphs // _SELDOM)
    if BROKEN in names or source.names.of(first) in names or is_repeated:
        return False
    is_sentence = first.rstrip("”’\"'")[-1:] in (".", "!", "?")
    return (2 if is_sentence else _FEW_NAMED) * names.total() < paragraphs


FORMS = (Form("prose", 0.5, _explain),)
