"""Turns a text from elsewhere into rows once, with what every form asks of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain

import regex

from studio.dialog.directions import word_set
from studio.dialog.markup import (
    Row,
    has_blocks,
    has_bold_names,
    mark_headings,
    read_markdown,
    spend_blocks,
    spend_marks,
)
from studio.dialog.model import name_key
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.hidden_rows import divide_comments, write_hidden_rows
from studio.dialog.reading.printed_pages import cut_gutenberg, cut_page_breaks
from studio.dialog.reading.row_kinds import (
    BROKEN,
    bold_name,
    header_of,
    is_cue,
    join_brackets,
    mark_bold_names,
    number_rows,
)
from studio.dialog.reading.row_marks import cut_marks
from studio.dialog.reading.row_times import cut_cue_numbers, cut_row_times, cut_times
from studio.dialog.reading.tables import delimiter_of
from studio.dialog.reading_limits import Budget, Cost
from studio.dialog.script import Header, parse_header
from studio.errors import NameRejected, ScriptError

_NAME = r"([\p{L}\p{N}][\p{L}\p{N} ._-]{0,40})"
_CLOSED = regex.compile(rf"\[/{_NAME}\]|</{_NAME}>")
_NO_SPEAKERS = word_set(
    "b i u v c s p em strong speak prosody break voice emphasis ruby rt font lang span div"
    " emphasis say-as sub phoneme mark"
)


class Names:
    """Who speaks in a row, asked of each row once, however many forms ask.

    `manners` are speakers with how their words are said, and the header without it. `of` gives the
    key of the name that begins a row; `BROKEN` for an invalid header, None for none.
    """

    def __init__(self, manners: Mapping[str, Header] | None = None) -> None:
        self.header_of = cache(partial(_header_with_manner, manners) if manners else header_of)
        self.of = cache(self._name_of)

    def read(self, row: str) -> Header | None:
        """The header of a row; None also for one that is invalid."""
        with suppress(ScriptError):
            return self.header_of(row)
        return None

    def _name_of(self, row: str) -> str | None:
        try:
            header = self.header_of(row)
        except ScriptError:
            return BROKEN
        return None if header is None else name_key(header.speaker)

    def speaks(self, row: str) -> bool:
        """Whether words stand behind a name, or it is one whose header is invalid."""
        try:
            header = self.header_of(row)
        except ScriptError:
            return True
        return header is not None and bool(header.text)

    def or_cue(self, row: str) -> str | None:
        """The key of who says a row, or of its cue; None for other rows."""
        return self.of(row) or (row.partition(":")[0] if is_cue(row) else None)

    def count(self, rows: Iterable[Row]) -> Counter[str]:
        """How often each name begins a row, or is all of it in bold."""
        bold = {row: bold_name(row) for _, row in rows if row.startswith("**")}
        keys = (
            name_key(name) if (name := bold.get(row)) else self.of(row) for _, row in rows if row
        )
        return Counter(key for key in keys if key is not None)


def _header_with_manner(manners: Mapping[str, Header], row: str) -> Header | None:
    header = header_of(row)
    plain = None if header is None or row.startswith("[") else manners.get(header.speaker)
    if header is None or plain is None:
        return header
    return Header(plain.speaker, header.attributes, f"{plain.text} {header.text}".strip())


def has_colon_name(row: str) -> bool:
    """Whether a row begins with a name and a colon, or a name in brackets, even an invalid one."""
    try:
        return parse_header(row) is not None
    except (ScriptError, NameRejected):
        return True


def colon_header_of(row: str) -> Header | None:
    """The header of a row with a colon or brackets; None also for one that is invalid."""
    with suppress(ScriptError, NameRejected):
        return parse_header(row)
    return None


class Source:
    """A text that no form has claimed yet.

    Attributes:
        text: As it was given, decoded.
        budget: What reading it may cost.
        suffix: The format that a file's name promises; None if it promises none.
        names: Tells who speaks in a row.
        notices: What was taken out of `rows`, once they are asked for.
    """

    def __init__(
        self,
        text: str,
        suffix: str | None,
        *,
        narrator: str | None,
        fit: bool = False,
        columns: Sequence[str] = (),
    ) -> None:
        self.text = text
        self.budget = Budget()
        self.suffix = suffix
        self.narrator = narrator
        self.fit = fit
        self.columns = columns
        self.names = Names()
        self.notices = ImportNotices()

    def take(self, remarks: ImportNotices) -> ImportNotices:
        """The notices of an import, with those of what was taken out of the rows."""
        return remarks.absorb(self.notices)

    def of(self, text: str) -> Source:
        """Another text that was inside of this one, such as that which a page shows."""
        held = Source(text, None, narrator=self.narrator, fit=self.fit, columns=self.columns)
        held.budget = self.budget.deeper()
        return held

    @cached_property
    def filled(self) -> list[Row]:
        """The rows of the text as it is that hold more than white space."""
        rows = enumerate(map(str.strip, self.text.splitlines()), start=1)
        return [(number, row) for number, row in rows if row]

    @cached_property
    def delimiter(self) -> str | None:
        """That of a table with headings; None for other text."""
        return delimiter_of(self.text)

    @cached_property
    def closed_turns(self) -> frozenset[str]:
        """The names in tags that end turns, such as `</Person1>`."""
        found = _CLOSED.findall(self.text) if "/" in self.text else ()
        return frozenset(filter(None, chain.from_iterable(found))) - _NO_SPEAKERS

    @cached_property
    def unprinted(self) -> str:
        """The text without the times of a transcript, and what printed pages add to it."""
        text = cut_times(self.text, self.notices)
        return text if self.delimiter else cut_page_breaks(text, self.notices)

    @cached_property
    def rows(self) -> list[Row]:
        """Rows without white space around them, times, numbers of cues, and a book's notices.

        Raises:
            ScriptError: There are too many rows or marks.
        """
        rows = cut_gutenberg(number_rows(self.unprinted), self.notices)
        self.budget.spend(Cost.FILLED_ROWS, sum(row != "" for _, row in rows))
        spend_marks((row for _, row in rows), self.budget)
        rows = cut_row_times(cut_marks(rows, self.notices), self.notices)
        rows = cut_cue_numbers(rows, self.names.or_cue, self.notices)
        return mark_headings(write_hidden_rows(rows))

    @cached_property
    def shown(self) -> Shown:
        """The rows as Markdown shows them, where the text is Markdown."""
        return show(self.rows, self.budget)

    @cached_property
    def counted(self) -> Counter[str]:
        """How often each name begins one of the rows that are shown."""
        return self.names.count(self.shown.rows)


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows as they are read: of Markdown, what it shows.

    Attributes:
        rows: After.
        written: Before.
        is_marked: Whether they are Markdown.
        has_bold_names: Whether names stand in bold before a colon, as models write them.
    """

    rows: list[Row]
    written: list[Row]
    is_marked: bool
    has_bold_names: bool

    @property
    def filled(self) -> int:
        """How many rows aren't empty."""
        return sum(row != "" for _, row in self.rows)


def show(rows: list[Row], budget: Budget) -> Shown:
    """Rows as Markdown shows them, where they are Markdown.

    Raises:
        ScriptError: They hold too many blocks.
    """
    written = mark_bold_names(rows)
    is_marked = has_blocks(written)
    if is_marked:
        spend_blocks(written, budget)
    shown = divide_comments(read_markdown(written) if is_marked else written)
    return Shown(join_brackets(shown), written, is_marked, has_bold_names(written))
