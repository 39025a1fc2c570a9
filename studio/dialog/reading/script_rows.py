"""Reads rows as a script has them, and sets aside what nobody says.

The script's own grammar is in `studio.dialog.script`. This finds what else stands in a script that
people or models wrote: titles, headings, cues, stage directions, a model's preface. All but the
title stand between the lines; a notice names them.
"""

from __future__ import annotations

from itertools import dropwhile, takewhile

from studio.dialog.attributes import Attributes
from studio.dialog.directions import (
    DIRECTION,
    begins_direction,
    find_directions,
    is_direction,
    tells_action,
    write_direction,
)
from studio.dialog.markup import Row, strip_markup
from studio.dialog.model import UnspokenKind, name_key, with_place
from studio.dialog.reading.answers import find_answer
from studio.dialog.reading.building import FIRST_SPEAKER, NO_NAME, NOT_SPOKEN, ImportNotices
from studio.dialog.reading.form import Read
from studio.dialog.reading.lexer import Names, Shown, Source
from studio.dialog.reading.row_kinds import (
    ABOUT_NOTICE,
    CUE_NOTICE,
    PREFACE_NOTICE,
    TITLE_NOTICE,
    PlacedRow,
    acted_words,
    begins_cast_list,
    begins_transcript,
    bold_name,
    find_manners,
    find_ruled,
    find_surnames,
    inside_of,
    is_author,
    is_cue,
    is_heading,
    is_numeral,
    is_ornament,
    is_remark,
    is_sound,
    is_timed,
    is_titled,
    key_and_value,
    kind_of_aside,
    may_be_title,
    place_rows,
    plain_bold,
    plain_title,
    role_behind,
)
from studio.dialog.script import Header, ScriptReader, parse_header
from studio.dialog.tags import leading_pauses, write_pause

_ROLE = "What a speaker is, behind the name, isn't spoken; it stands between the lines:"
_MAYBE_NAME = (
    "Capitals on a row of their own are read as text here. Where they are a name, put a colon "
    "behind it:"
)
_MOST_NAME_WORDS = 3
_MOST_LEAD_ROWS = 4


class RowReader:
    """Reads the rows of a text into a `ScriptReader`; how a row is read is its form's."""

    is_script = False
    """Whether names with colons speak."""

    def __init__(self, source: Source, shown: Shown, remarks: ImportNotices) -> None:
        self.script = ScriptReader()
        self.title: str | None = None
        self.unspoken = 0
        self.shown = shown
        self.rows = shown.rows
        self.remarks = remarks
        self.narrator = source.narrator
        self.is_marked = shown.is_marked
        self.names_in = _names_with_manners(source.names, shown.rows)
        is_shown = shown.rows is source.shown.rows and self.names_in is source.names
        self.names = source.counted if is_shown else self.names_in.count(shown.rows)
        # Whose words come next, whether a narrator spoke since, and whether they said any.
        self.speaker: Header | None = None
        self.has_words = False
        self._is_interrupted = False

    def read(self) -> Read:
        """Read all rows.

        Raises:
            ScriptError: There are no lines, or one is invalid; names the line.
        """
        for number, text in self.rows:
            if role := role_behind(text):
                self.remarks.set_aside(_ROLE, number, role)
        rows = list(place_rows(self.rows))
        is_script = self.is_script and bool(self.names)
        answer = find_answer(
            rows, self.names_in, find_ruled(self.shown.written),
            is_answer=self.shown.has_bold_names, is_script=is_script,
        )  # fmt: skip
        for row in rows:
            with with_place(row.number):
                if row.text and row.number in answer:
                    words = acted_words(row.text) or row.text
                    self.remarks.set_aside(PREFACE_NOTICE, row.number, words)
                elif not row.text or is_ornament(row.text):
                    self.end_paragraph(row)
                elif row.text.startswith("\\"):
                    self.begin_narrator(row.number)
                    self.say(row.text, row.number)
                elif row.text.startswith(("#", "//")):
                    self._comment(row.text, row.number)
                else:
                    self.read_row(row)
        self.end()
        for number, text in self.shown.written:
            # Those that are kept as they are have links of their own.
            if self.is_marked or not text.startswith(("#", "//", "\\")):
                self.remarks.add_links(text, number)
        return Read(self.script.finish(), self.title, self.unspoken)

    def read_row(self, row: PlacedRow) -> None:
        """Read a row that is no note and not literal."""
        raise NotImplementedError

    def end_paragraph(self, row: PlacedRow) -> None:
        """Read an empty row, or an ornament."""
        self.script.read("", row.number)

    def end(self) -> None:
        """Read what no further row decides."""

    def begin(self, header: Header, number: int) -> None:
        """Begin the line of a speaker."""
        self.speaker, self._is_interrupted = header, False
        self.has_words = bool(header.text)
        if (text := strip_markup(header.text)) != header.text:
            header = Header(header.speaker, header.attributes, text)
        self.script.begin(header, number)

    def begin_narrator(self, number: int) -> None:
        """Give what follows to the narrator, if nobody has spoken so far."""
        if self.speaker is not None:
            return
        name = self.narrator or FIRST_SPEAKER
        self.remarks.add(NO_NAME.format(name), number)
        self.begin(Header(name, Attributes(), ""), number)

    def say(self, text: str, number: int) -> None:
        """Text of the present speaker, or a row that the script's grammar knows."""
        sounds = is_sound(text)
        if self._is_interrupted and self.speaker is not None and not sounds:
            self.script.begin(Header(self.speaker.speaker, self.speaker.attributes, ""), number)
            self._is_interrupted = False
        self.has_words = True
        if text.startswith(DIRECTION):  # nothing else that the grammar knows begins so
            text = "\\" + text
        is_whole = sounds or text.startswith("\\")
        self.script.read(text if is_whole else "\\" + strip_markup(text), number)

    def narrate(self, text: str, number: int, kind: UnspokenKind) -> None:
        """What only a narrator reads."""
        text = strip_markup(text)
        if self.narrator is None:
            self.unspoken += 1
            self.remarks.add(NOT_SPOKEN, number, text)
            self.script.add_unspoken(kind, text, number)
            self.script.read("", number)
            return
        self.script.begin(Header(self.narrator, Attributes(), text), number)
        self._is_interrupted = True

    def _comment(self, text: str, number: int) -> None:
        words = " ".join(text.split()).lstrip("#/ ").rstrip("# ")
        is_first = self.speaker is None and self.title is None and text.startswith("# ")
        if not words:
            if text.startswith(("# ", "## ", "#> ")):  # as a script has a note of signs
                self.script.read(text, number)
            return
        takes_title = is_first and may_be_title(words)
        heading = strip_markup(plain_bold(words))
        if takes_title:
            self.title = plain_title(heading)
        if self.is_marked and takes_title:
            self.remarks.add(TITLE_NOTICE, number, plain_title(heading))
            self.script.add_unspoken(UnspokenKind.HEADING, heading, number)
        elif self.is_marked and text.startswith("#") and not text.startswith("#>"):
            self.narrate(words, number, UnspokenKind.HEADING)
        else:
            self.script.read(text, number)

    def add_cue(self, cue: str, number: int) -> None:
        """A cue for a sound or music; the speech around it goes on."""
        cue = strip_markup(inside_of(cue) or cue)
        self.remarks.add(CUE_NOTICE, number, cue)
        self.script.add_unspoken(UnspokenKind.ACTION, cue, number)

    def take_title(self, text: str, number: int) -> None:
        """Name the dialog."""
        self.title = plain_title(strip_markup(plain_bold(text)))
        self.remarks.add(TITLE_NOTICE, number, self.title)


class _ScriptRowReader(RowReader):
    """Reads a script whose names stand before the words."""

    is_script = True

    def __init__(self, source: Source, shown: Shown, remarks: ImportNotices) -> None:
        super().__init__(source, shown, remarks)
        # Where a heading such as “Transcript” says that the dialog begins; 0 without one.
        self._begins_at = next((number for number, row in shown.rows if begins_transcript(row)), 0)
        self._lead = self._find_lead()
        self._is_cast_list = False
        self._persons: set[str] = set()

    def end_paragraph(self, row: PlacedRow) -> None:
        is_ended = row.text or (self._persons and not self.is_marked)
        self._is_cast_list = self._is_cast_list and not is_ended
        super().end_paragraph(row)

    def read_row(self, row: PlacedRow) -> None:
        if row.number < self._begins_at:
            self._add_about(row.text, row.number)
        elif self._announces(row):
            self.say("\\" + strip_markup(row.text), row.number)
        elif not self._set_aside(row):
            if row.begins and len(self.names) == 1 and _may_be_name(row.text):
                self.remarks.add(_MAYBE_NAME, row.number, row.text)
            self._read_script(row.text, row.number, self.names_in.header_of(row.text))

    def _announces(self, row: PlacedRow) -> bool:
        """Whether a row of Markdown ends with a colon before a list, as in “They check:”."""
        is_alone = self.is_marked and row.text.endswith(":") and row.begins and row.ends
        if not is_alone or self.speaker is None:
            return False
        header = self.names_in.header_of(row.text)
        return header is not None and not header.text and self.names[name_key(header.speaker)] == 1

    def _read_script(self, text: str, number: int, header: Header | None) -> None:
        inside = inside_of(text)
        if header is not None:
            for duration_s in leading_pauses(text)[0]:
                self.script.read(write_pause(duration_s), number)
            self.begin(header, number)
        elif is_sound(text):
            self.say(text, number)
        elif self.speaker is None:
            self.begin_narrator(number)
            self.say(text, number)
        elif inside and tells_action(inside) and not is_direction(inside):
            self.narrate(inside, number, UnspokenKind.ACTION)
        else:
            self.say((inside and self._write_direction(inside)) or text, number)

    def _write_direction(self, inside: str) -> str | None:
        """Brackets on a row of their own inside a speech are a direction, whatever they say."""
        known = self.has_words or is_direction(inside) or begins_direction(inside)
        is_asked = "?" in inside or "!" in inside
        return (
            write_direction(inside, is_first=not self.has_words) if known or not is_asked else None
        )

    def _set_aside(self, row: PlacedRow) -> bool:
        """Take a row out of the dialog that nobody says; whether it was one."""
        acted = acted_words(row.text)
        lead = row if acted is None else row._replace(text=acted, above=row.text)
        if self.speaker is None and self._set_aside_lead(lead):
            return True
        if acted is not None:
            self._act(acted, row)
        elif bold := bold_name(row.text):
            self._read_bold(bold, row.number)
        elif is_cue(row.text):
            self.add_cue(row.text, row.number)
        elif self._is_headed(row) and (row.begins or self._is_between(row)):
            # Markdown's reader puts a colon behind a bold row that words follow.
            is_cut = self.is_marked and not row.text.endswith("TO:")
            text = row.text.removesuffix(":") if is_cut else row.text
            self.narrate(text, row.number, UnspokenKind.HEADING)
        elif self.speaker is not None and (kind := kind_of_aside(row.text)):
            self.narrate(row.text, row.number, kind)
        elif row.text.startswith(("△", "▲")):  # action in Chinese screenplays
            self.narrate(row.text[1:].strip(), row.number, UnspokenKind.ACTION)
        elif is_remark(row.text):
            self.narrate(row.text.strip("| "), row.number, UnspokenKind.NOTE)
        else:
            return self._set_aside_brackets(row)
        return True

    def _is_headed(self, row: PlacedRow) -> bool:
        if row.ends and is_numeral(row.text):
            return True
        return is_heading(row.text) and self.names_in.header_of(row.text) is None

    def _act(self, acted: str, row: PlacedRow) -> None:
        """A row all in italics: how the speaker goes on, or what happens."""
        is_alone = row.begins and row.ends and not is_direction(acted)
        if is_heading(acted):
            self.narrate(acted, row.number, UnspokenKind.HEADING)
        elif self.speaker is None or is_alone:
            self.narrate(acted, row.number, UnspokenKind.ACTION)
        else:
            self.say(write_direction(acted, is_first=not self.has_words), row.number)

    def _set_aside_lead(self, row: PlacedRow) -> bool:
        """What stands above the first speaker: a title, remarks about the script."""
        text, number, header = row.text, row.number, self.names_in.header_of(row.text)
        about = key_and_value(text) if header is None or self.is_marked else None
        if begins_cast_list(text) and not self._is_cast_list:
            self._is_cast_list, self._persons = True, set()
            self._add_about(text, number)
        elif self._lists_person(row):
            self._add_about(text, number)
        elif about and about[0] == "title" and self.title is None:
            self.take_title(about[1], number)
        elif about:
            self._add_about(text, number)
        else:
            return header is None and self._read_title_row(row)
        return True

    def _read_title_row(self, row: PlacedRow) -> bool:
        """Take the title, and what stands below it in its paragraph; whether a row was one."""
        text, number = row.text, row.number
        if is_author(text) or (is_timed(text) and is_titled(text)):
            self._add_about(text, number)
        elif not row.begins and is_heading(text):
            self.narrate(text, number, UnspokenKind.HEADING)
        elif self._may_lead(row):
            self.take_title(text, number)
        elif self.title is not None and number in self._lead:
            self._add_about(text, number)
        else:
            return False
        return True

    def _add_about(self, text: str, number: int) -> None:
        self.remarks.set_aside(ABOUT_NOTICE, number, strip_markup(plain_bold(text)))

    def _lists_person(self, row: PlacedRow) -> bool:
        """Whether a row is one of a list of the cast, where each person stands once."""
        header = self.names_in.header_of(row.text)
        if not self._is_cast_list or inside_of(row.text) or key_and_value(row.text):
            self._is_cast_list = False
        elif header is None:
            self._is_cast_list = not is_heading(row.text)
        else:
            # Below persons without a colon, who has one speaks.
            name = name_key(header.speaker)
            self._is_cast_list = name not in self._persons and "" not in self._persons
            self._persons.add(name)
            return self._is_cast_list
        self._persons.add("")
        return self._is_cast_list

    def _may_lead(self, row: PlacedRow) -> bool:
        """Whether a row above the first speaker is the title."""
        is_free = self.title is None and is_titled(row.text) and not is_timed(row.text)
        is_free = is_free and not inside_of(row.text)
        is_first = row.text.isupper() or row.number in self._lead
        return is_free and row.begins and (row.ends or is_first)

    def _is_between(self, row: PlacedRow) -> bool:
        """Whether a heading stands right between lines, without the empty rows of a script."""
        if not (self._ends_speech(row.text) and self._ends_speech(row.below)):
            return False
        is_shown = row.text.isupper() or not row.text[0].islower()
        return is_shown and (row.text.isupper() or self._ends_speech(row.above))

    def _read_bold(self, name: str, number: int) -> None:
        """Bold text alone on a row: a name above her words, or a heading."""
        header = parse_header(f"{name}:")
        if header is not None and self.names[name_key(header.speaker)] > 1:
            self.begin(header, number)
        else:
            self.narrate(name, number, UnspokenKind.HEADING)

    def _set_aside_brackets(self, row: PlacedRow) -> bool:
        """Brackets that are a whole row and no speaker's name, outside of a speech."""
        inside = inside_of(row.text)
        is_square = row.text.startswith("[")
        if not inside or not inside.strip():
            return False
        if not is_square and not (row.begins and row.ends) and not is_heading(inside):
            return False  # how the speaker goes on, or a sound
        if is_sound(row.text):
            return False
        if is_direction(inside) and self.speaker is not None:
            return False  # how the speaker goes on
        is_headed = is_heading(inside) and ((row.begins and row.ends) or self._is_between(row))
        if is_square and not is_headed and self._is_name(inside) and not self._is_mute(row):
            return False
        is_alone = row.begins and row.ends and (is_square or _is_stage(inside))
        if is_square or is_alone or is_headed:
            kind = UnspokenKind.HEADING if is_headed else UnspokenKind.ACTION
            self.narrate(inside, row.number, kind)
        return is_square or is_alone or is_headed

    def _is_mute(self, row: PlacedRow) -> bool:
        """Whether another speaker's row is right below brackets that occur once: `[LATER]`."""
        is_once = self.names[name_key(inside_of(row.text) or "")] == 1
        return not row.ends and is_once and self._ends_speech(row.below)

    def _is_name(self, inside: str) -> bool:
        """Whether `[…]` alone on a row is a speaker whose words follow."""
        words = inside.split()
        is_titled = all(word[0].isupper() or word[0].isdigit() for word in words)
        is_short = len(words) <= _MOST_NAME_WORDS and inside.strip()[-1:] not in ".!?"
        return self.names[name_key(" ".join(words))] > 1 or (is_titled and is_short)

    def _find_lead(self) -> frozenset[int]:
        """The numbers of a first paragraph's rows that are a title and what stands below it."""
        rows = list(dropwhile(lambda row: not row[1], self.rows))
        lead = list(takewhile(lambda row: row[1], rows))
        below = next((row for _, row in rows[len(lead) :] if row), "")
        is_lead = 1 < len(lead) <= _MOST_LEAD_ROWS and bool(self.names_in.of(below))
        is_lead = is_lead and all(
            is_titled(row) and self.names_in.of(row) is None for _, row in lead
        )
        return frozenset(number for number, _ in lead) if is_lead else frozenset()

    def _ends_speech(self, row: str) -> bool:
        """Whether a row belongs to no speech above it."""
        is_said = self.names_in.of(row) is not None
        return not row or is_said or is_heading(inside_of(row) or row) or is_cue(row)


def read_script_rows(source: Source, shown: Shown, remarks: ImportNotices) -> Read:
    """Read a script whose names stand before the words.

    Args:
        source: Of the rows.
        shown: The rows as its form has written them.
        remarks: Gets notices of what isn't spoken.

    Raises:
        ScriptError: There are no lines, or one is invalid; names the line.
    """
    return _ScriptRowReader(source, shown, source.take(remarks)).read()


def _names_with_manners(names: Names, rows: list[Row]) -> Names:
    """Names without surnames alone, and without how words are said beside them."""
    # In brackets stands a name as it is, as the studio writes one that may be mistaken.
    speakers = {
        header.speaker
        for _, row in rows
        if (header := names.read(row))
        and not (row.startswith("[") and header.speaker.endswith(")"))
    }
    manners = find_surnames(rows) | find_manners(speakers)
    return Names(manners) if manners else names


def _may_be_name(row: str) -> bool:
    """Whether a row is a few capitals, as a name above words is."""
    is_short = len(row) > 1 and len(row.split()) <= _MOST_NAME_WORDS
    return row.isupper() and is_short and row[-1].isalnum()


def _is_stage(inside: str) -> bool:
    """Whether parentheses alone in a paragraph are for the stage, not said."""
    if begins_direction(inside) or (inside.isupper() and " " in inside):
        return True
    return all(one.is_spoken is False for one in find_directions(f"({inside})"))
