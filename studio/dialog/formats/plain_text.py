"""Reads text that is no other program's file: scripts, plays, prose, a language model's answer.

The script's own grammar is in `studio.dialog.script`. This finds what else stands in such a text,
and names in a notice whatever isn't spoken: a model's preface, titles, headings, cues, stage
directions. All but the preface and the title stand between the lines. What the studio itself writes
as a script has none of that and is read as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
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
from studio.dialog.formats.building import FIRST_SPEAKER, NO_NAME, NOT_SPOKEN, ImportNotices
from studio.dialog.formats.encoding import MAX_FILLED_ROWS, check_row_count
from studio.dialog.formats.hidden_rows import divide_comments, write_hidden_rows
from studio.dialog.formats.plays import NARRATORS, Play, find_play, join_open_brackets
from studio.dialog.formats.row_kinds import (
    ABOUT_NOTICE,
    CUE_NOTICE,
    PREFACE_NOTICE,
    TITLE_NOTICE,
    PlacedRow,
    acted_words,
    announces,
    begins_cast_list,
    begins_transcript,
    bold_name,
    cut_gutenberg,
    find_manners,
    find_ruled,
    find_surnames,
    header_of,
    inside_of,
    is_aside,
    is_author,
    is_count,
    is_cue,
    is_farewell,
    is_heading,
    is_instruction,
    is_numeral,
    is_ornament,
    is_placed,
    is_preface,
    is_prose,
    is_remark,
    is_sound,
    is_timed,
    is_titled,
    join_brackets,
    key_and_value,
    mark_bold_names,
    may_be_title,
    name_headings,
    names_of,
    number_rows,
    place_rows,
    plain_bold,
    plain_title,
    role_behind,
)
from studio.dialog.formats.time_rows import cut_row_times
from studio.dialog.formats.turns import (
    cut_cue_numbers,
    read_interview,
    read_names_behind,
    read_names_in_parentheses,
    read_quoted_names,
    read_testimony,
    split_turns,
)
from studio.dialog.markup import (
    Row,
    check_blocks,
    check_marks,
    has_blocks,
    has_bold_names,
    mark_headings,
    read_markdown,
    strip_markup,
)
from studio.dialog.model import ParsedScript, UnspokenKind, name_key, with_place
from studio.dialog.script import Header, ScriptReader, parse_header
from studio.dialog.tags import leading_pauses, write_pause
from studio.errors import ScriptError

ROLE_NOTICE = "What a speaker is, behind the name, isn't spoken; it stands between the lines:"
CUE_NUMBERS_NOTICE = "The numbers before names and cues aren't spoken; they are left out."
MAYBE_NAME_NOTICE = (
    "Capitals on a row of their own are read as text here. Where they are a name, put a colon "
    "behind it:"
)
_MOST_NAME_WORDS = 3
_MOST_ANSWER_ROWS = 24
_MOST_LEAD_ROWS = 4


@dataclass(frozen=True, slots=True)
class PlainText:
    """What was read: the dialog, its title if it has one, and how much a narrator could read."""

    parsed: ParsedScript
    title: str | None
    unspoken: int


def read_plain_text(text: str, remarks: ImportNotices, *, narrator: str | None) -> PlainText:
    """Read a script, a play, or prose, which goes to the narrator.

    Args:
        text: The whole text.
        remarks: Gets notices of what is left out.
        narrator: Speaks action, headings and stage directions; None leaves them out.

    Raises:
        ScriptError: It has no lines, too many rows or marks, or one is invalid; names the line.
    """
    rows = cut_gutenberg(number_rows(text), remarks)
    check_row_count(sum(row != "" for _, row in rows), MAX_FILLED_ROWS)
    check_marks(row for _, row in rows)
    rows = cut_row_times(rows, remarks)
    counted, rows = rows, cut_cue_numbers(rows)
    if rows is not counted:
        first = next(new for new, old in zip(rows, counted, strict=True) if new is not old)
        remarks.add(CUE_NUMBERS_NOTICE, first[0])
    rows = mark_bold_names(mark_headings(read_interview(write_hidden_rows(rows), remarks)))
    is_marked, is_named = has_blocks(rows), has_bold_names(rows)
    written = rows
    if is_marked:
        check_blocks(rows)
        rows = read_markdown(rows)
    rows = name_headings(divide_comments(rows))
    rows = read_names_behind(read_quoted_names(read_testimony(rows)))
    rows = read_names_in_parentheses(rows)
    rows = join_brackets(split_turns(rows))
    play = find_play(rows)
    if play is not None:
        rows = join_open_brackets(rows)
    for number, row in rows:
        if role := role_behind(row):
            remarks.set_aside(ROLE_NOTICE, number, role)
    reader = _PlainTextReader(rows, remarks, narrator, play=play, is_marked=is_marked)
    reader.is_prose = play is None and not is_named and is_prose(rows, reader.names)
    reader.read_all(is_answer=is_named, ruled=find_ruled(written))
    for number, row in written:
        if is_marked or not row.startswith(("#", "//", "\\")):  # those are kept as they are
            remarks.add_links(row, number)
    return PlainText(reader.script.finish(), reader.title, reader.unspoken)


class _PlainTextReader:
    """Reads rows into a `ScriptReader`, and sets aside what isn't spoken."""

    def __init__(
        self,
        rows: list[Row],
        remarks: ImportNotices,
        narrator: str | None,
        *,
        play: Play | None,
        is_marked: bool,
    ) -> None:
        self.script = ScriptReader()
        self.title: str | None = None
        self.unspoken = 0
        self._rows = rows
        self._remarks = remarks
        self._narrator = narrator
        self._play = play
        self._is_marked = is_marked
        # Each row is asked about when names are counted, and when it is read.
        self._header_of = cache(header_of)
        manners = find_surnames(rows) | find_manners(set(self._list_speakers()))
        if manners:
            self._header_of = cache(partial(_header_with_manner, manners))
        self.names = Counter(names_of(rows, self._header_of))
        self.is_prose = False
        # Where a heading such as “Transcript” says that the dialog begins; 0 without one.
        self._begins_at = next((number for number, row in rows if begins_transcript(row)), 0)
        self._lead = self._find_lead()
        self._is_cast_list = False
        self._persons: set[str] = set()
        # Whose words come next, whether a narrator spoke since, and whether they said any.
        self._speaker: Header | None = None
        self._is_interrupted = False
        self._has_words = False
        # In a play: between a heading and the first name, and a name without words so far.
        self._is_action = play is not None
        self._cue: tuple[Header, int] | None = None
        # Whether a direction beside a name is all so far, and the words come below an empty row.
        self._is_open = False

    def _list_speakers(self) -> Iterator[str]:
        for _, row in self._rows:
            try:
                header = self._header_of(row)
            except ScriptError:
                continue
            # In brackets stands a name as it is, as the studio writes one that may be mistaken.
            is_exact = row.startswith("[") and header is not None and header.speaker.endswith(")")
            if header is not None and not is_exact:
                yield header.speaker

    def read_all(self, *, is_answer: bool, ruled: Collection[int]) -> None:
        """Read all rows; what tells a model's answer is as `_find_answer` has it."""
        rows = list(place_rows(self._rows))
        answer = set(self._find_answer(rows, ruled, is_answer=is_answer))
        for row in rows:
            with with_place(row.number):
                if row.text and row.number in answer:
                    words = acted_words(row.text) or row.text
                    self._remarks.set_aside(PREFACE_NOTICE, row.number, words)
                elif not row.text or is_ornament(row.text):
                    is_ended = row.text or (self._persons and not self._is_marked)
                    self._is_cast_list = self._is_cast_list and not is_ended
                    self._end_paragraph(row.number)
                else:
                    self._read(row)
        self._drop_cue()

    def _find_answer(
        self, rows: list[PlacedRow], ruled: Collection[int], *, is_answer: bool
    ) -> Iterator[int]:
        """The numbers of the rows that a language model says before a script, and behind it.

        “Here is a script:” and “I hope you like it” may be a script's own words. They are taken for
        the model's where another sign of its answer stands: names in bold, a rule between them and
        the script, a preface that announces the names below it, or both a preface and a farewell.
        """
        prefaces = list(self._list_prefaces(rows))
        farewell = self._list_farewell(rows)
        if self._play is None and not self.is_prose and self.names:
            is_answer |= bool(prefaces and farewell) or any(announces(row.text) for row in prefaces)
            is_answer |= any(is_count(row.text) for row in farewell)
        if is_answer or any(row.number in ruled for row in prefaces):
            yield from (row.number for row in prefaces)
        if is_answer or any(row.number in ruled for row in farewell[:1]):
            yield from (row.number for row in farewell)

    def _list_prefaces(self, rows: list[PlacedRow]) -> Iterator[PlacedRow]:
        """What a language model may say above the first line, without marks."""
        for row in rows[:_MOST_ANSWER_ROWS]:
            text = acted_words(row.text) or row.text
            if text and self._is_said(text):
                return
            if (row.begins or row.ends or text != row.text) and is_preface(text):
                yield row._replace(text=text)
            elif self.is_prose and text and not is_ornament(text):
                return

    def _is_said(self, row: str) -> bool:
        try:
            header = self._header_of(row)
        except ScriptError:
            return True
        return header is not None and bool(header.text) and not is_instruction(row)

    def _list_farewell(self, rows: list[PlacedRow]) -> list[PlacedRow]:
        """The rows from which on a language model may offer what else it can do."""
        found = last = len(rows)
        for idx in range(last - 1, max(0, last - _MOST_ANSWER_ROWS) - 1, -1):
            row = rows[idx]
            text = acted_words(row.text) or plain_bold(row.text)
            if row.begins and text and is_farewell(text):
                found = idx
            elif text and (_may_be_said(text) or is_cue(text)):
                break
        return [row for row in rows[found:] if row.text and not is_ornament(row.text)]

    def _end_paragraph(self, number: int) -> None:
        if self._is_open:
            self._is_open = False
            return
        if self._play is None or not self._play.is_spaced:
            self._is_action = self._is_action or self._cue is not None
            self._drop_cue()
        self.script.read("", number)

    def _read(self, row: PlacedRow) -> None:
        if row.text.startswith("\\"):
            if self._speaker is None:
                self._begin_narrator(row.number)
            self._say(row.text, row.number)
        elif row.text.startswith(("#", "//")):
            self._comment(row.text, row.number)
        elif self.is_prose:
            self._read_prose(row.text, row.number)
        elif row.number < self._begins_at:
            self._add_about(row.text, row.number)
        elif self._play is not None:
            self._read_play(self._play, row)
        elif self._announces(row):
            self._say("\\" + strip_markup(row.text), row.number)
        elif not self._set_aside(row):
            if row.begins and len(self.names) == 1 and _may_be_name(row.text):
                self._remarks.add(MAYBE_NAME_NOTICE, row.number, row.text)
            self._read_script(row.text, row.number, self._header_of(row.text))

    def _read_prose(self, text: str, number: int) -> None:
        if self._speaker is None:
            self._begin_narrator(number)
        self._say("\\" + strip_markup(plain_bold(text)), number)

    def _announces(self, row: PlacedRow) -> bool:
        """Whether a row of Markdown ends with a colon before a list, as in “They check:”."""
        header = self._header_of(row.text) if self._is_marked and row.text.endswith(":") else None
        is_alone = header is not None and not header.text and row.begins and row.ends
        if header is None or not is_alone or self._speaker is None:
            return False
        return self.names[name_key(header.speaker)] == 1

    def _read_script(self, text: str, number: int, header: Header | None) -> None:
        inside = inside_of(text)
        if header is not None:
            for duration_s in leading_pauses(text)[0]:
                self.script.read(write_pause(duration_s), number)
            self._begin(header, number)
        elif is_sound(text):
            self._say(text, number)
        elif self._speaker is None:
            self._begin_narrator(number)
            self._say(text, number)
        elif inside and tells_action(inside) and not is_direction(inside):
            self._narrate(inside, number, UnspokenKind.ACTION)
        else:
            self._say((inside and self._write_direction(inside)) or text, number)

    def _write_direction(self, inside: str) -> str | None:
        """Brackets on a row of their own inside a speech are a direction, whatever they say."""
        known = self._has_words or is_direction(inside) or begins_direction(inside)
        is_asked = "?" in inside or "!" in inside
        return (
            write_direction(inside, is_first=not self._has_words) if known or not is_asked else None
        )

    def _begin(self, header: Header, number: int) -> None:
        self._speaker, self._is_interrupted, self._is_action = header, False, False
        self._has_words = bool(header.text)
        if (text := strip_markup(header.text)) != header.text:
            header = Header(header.speaker, header.attributes, text)
        self.script.begin(header, number)

    def _begin_narrator(self, number: int) -> None:
        name = self._narrator or FIRST_SPEAKER
        self._remarks.add(NO_NAME.format(name), number)
        self._begin(Header(name, Attributes(), ""), number)

    def _say(self, text: str, number: int) -> None:
        """Text of the present speaker, or a row that the script's grammar knows."""
        sounds = is_sound(text)
        if self._is_interrupted and self._speaker is not None and not sounds:
            self.script.begin(Header(self._speaker.speaker, self._speaker.attributes, ""), number)
            self._is_interrupted = False
        self._has_words = True
        if text.startswith(DIRECTION):  # nothing else that the grammar knows begins so
            text = "\\" + text
        is_whole = sounds or text.startswith("\\")
        self.script.read(text if is_whole else "\\" + strip_markup(text), number)

    def _narrate(self, text: str, number: int, kind: UnspokenKind) -> None:
        """What only a narrator reads."""
        text = strip_markup(text)
        if self._narrator is None:
            self.unspoken += 1
            self._remarks.add(NOT_SPOKEN, number, text)
            self.script.add_unspoken(kind, text, number)
            self.script.read("", number)
            return
        self.script.begin(Header(self._narrator, Attributes(), text), number)
        self._is_interrupted = True

    def _comment(self, text: str, number: int) -> None:
        words = " ".join(text.split()).lstrip("#/ ").rstrip("# ")
        is_first = self._speaker is None and self.title is None and text.startswith("# ")
        if not words:
            if text.startswith(("# ", "## ", "#> ")):  # as a script has a note of signs
                self.script.read(text, number)
            return
        takes_title = is_first and may_be_title(words)
        heading = strip_markup(plain_bold(words))
        if takes_title:
            self.title = plain_title(heading)
        if self._is_marked and takes_title:
            self._remarks.add(TITLE_NOTICE, number, plain_title(heading))
            self.script.add_unspoken(UnspokenKind.HEADING, heading, number)
        elif self._is_marked and text.startswith("#") and not text.startswith("#>"):
            self._narrate(words, number, UnspokenKind.HEADING)
        else:
            self.script.read(text, number)

    def _add_cue(self, cue: str, number: int) -> None:
        """A cue for a sound or music; the speech around it goes on."""
        cue = strip_markup(inside_of(cue) or cue)
        self._remarks.add(CUE_NOTICE, number, cue)
        self.script.add_unspoken(UnspokenKind.ACTION, cue, number)

    def _take_title(self, text: str, number: int) -> None:
        self.title = plain_title(strip_markup(plain_bold(text)))
        self._remarks.add(TITLE_NOTICE, number, self.title)

    def _set_aside(self, row: PlacedRow) -> bool:
        """Take a row out of the dialog that nobody says; whether it was one."""
        acted = acted_words(row.text)
        lead = row if acted is None else row._replace(text=acted, above=row.text)
        if self._speaker is None and self._set_aside_lead(lead):
            return True
        if acted is not None:
            self._act(acted, row)
        elif bold := bold_name(row.text):
            self._read_bold(bold, row.number)
        elif is_cue(row.text):
            self._add_cue(row.text, row.number)
        elif self._is_headed(row) and (row.begins or self._is_between(row)):
            # Markdown's reader puts a colon behind a bold row that words follow.
            is_cut = self._is_marked and not row.text.endswith("TO:")
            text = row.text.removesuffix(":") if is_cut else row.text
            self._narrate(text, row.number, UnspokenKind.HEADING)
        elif self._speaker is not None and is_aside(row.text):
            kind = UnspokenKind.ACTION if is_placed(row.text) else UnspokenKind.NOTE
            self._narrate(row.text, row.number, kind)
        elif row.text.startswith(("△", "▲")):  # action in Chinese screenplays
            self._narrate(row.text[1:].strip(), row.number, UnspokenKind.ACTION)
        elif is_remark(row.text):
            self._narrate(row.text.strip("| "), row.number, UnspokenKind.NOTE)
        else:
            return self._set_aside_brackets(row)
        return True

    def _is_headed(self, row: PlacedRow) -> bool:
        if row.ends and is_numeral(row.text):
            return True
        return is_heading(row.text) and self._header_of(row.text) is None

    def _act(self, acted: str, row: PlacedRow) -> None:
        """A row all in italics: how the speaker goes on, or what happens."""
        is_alone = row.begins and row.ends and not is_direction(acted)
        if is_heading(acted):
            self._narrate(acted, row.number, UnspokenKind.HEADING)
        elif self._speaker is None or is_alone:
            self._narrate(acted, row.number, UnspokenKind.ACTION)
        else:
            self._say(write_direction(acted, is_first=not self._has_words), row.number)

    def _set_aside_lead(self, row: PlacedRow) -> bool:
        """What stands above the first speaker: a title, remarks about the script."""
        text, number, header = row.text, row.number, self._header_of(row.text)
        about = key_and_value(text) if header is None or self._is_marked else None
        if begins_cast_list(text) and not self._is_cast_list:
            self._is_cast_list, self._persons = True, set()
            self._add_about(text, number)
        elif self._lists_person(row):
            self._add_about(text, number)
        elif about and about[0] == "title" and self.title is None:
            self._take_title(about[1], number)
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
            self._narrate(text, number, UnspokenKind.HEADING)
        elif self._may_lead(row):
            self._take_title(text, number)
        elif self.title is not None and number in self._lead:
            self._add_about(text, number)
        else:
            return False
        return True

    def _add_about(self, text: str, number: int) -> None:
        self._remarks.set_aside(ABOUT_NOTICE, number, strip_markup(plain_bold(text)))

    def _lists_person(self, row: PlacedRow) -> bool:
        """Whether a row is one of a list of the cast, where each person stands once."""
        header = self._header_of(row.text)
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

    def _find_lead(self) -> frozenset[int]:
        """The numbers of a first paragraph's rows that are a title and what stands below it."""
        rows = list(dropwhile(lambda row: not row[1], self._rows))
        lead = list(takewhile(lambda row: row[1], rows))
        below = next((row for _, row in rows[len(lead) :] if row), "")
        try:
            is_lead = 1 < len(lead) <= _MOST_LEAD_ROWS and self._header_of(below) is not None
            is_lead = is_lead and all(
                is_titled(row) and self._header_of(row) is None for _, row in lead
            )
        except ScriptError:
            return frozenset()
        return frozenset(number for number, _ in lead) if is_lead else frozenset()

    def _is_between(self, row: PlacedRow) -> bool:
        """Whether a heading stands right between lines, without the empty rows of a script."""
        if not (self._ends_speech(row.text) and self._ends_speech(row.below)):
            return False
        is_shown = row.text.isupper() or not row.text[0].islower()
        return is_shown and (row.text.isupper() or self._ends_speech(row.above))

    def _ends_speech(self, row: str) -> bool:
        """Whether a row belongs to no speech above it."""
        try:
            is_said = self._header_of(row) is not None
        except ScriptError:
            return True
        return not row or is_said or is_heading(inside_of(row) or row) or is_cue(row)

    def _read_bold(self, name: str, number: int) -> None:
        """Bold text alone on a row: a name above her words, or a heading."""
        header = parse_header(f"{name}:")
        if header is not None and self.names[name_key(header.speaker)] > 1:
            self._begin(header, number)
        else:
            self._narrate(name, number, UnspokenKind.HEADING)

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
        if is_direction(inside) and self._speaker is not None:
            return False  # how the speaker goes on
        is_headed = is_heading(inside) and ((row.begins and row.ends) or self._is_between(row))
        if is_square and not is_headed and self._is_name(inside) and not self._is_mute(row):
            return False
        is_alone = row.begins and row.ends and (is_square or _is_stage(inside))
        if is_square or is_alone or is_headed:
            kind = UnspokenKind.HEADING if is_headed else UnspokenKind.ACTION
            self._narrate(inside, row.number, kind)
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

    def _read_play(self, play: Play, row: PlacedRow) -> None:
        text, number = row.text, row.number
        inside = inside_of(text)
        is_headed = is_heading(strip_markup(inside or text))
        is_headed = is_headed or (inside is None and play.is_heading(text))
        self._is_cast_list = begins_cast_list(text) or (self._is_cast_list and not is_headed)
        if is_cue(text):
            self._add_cue(text, number)
        elif self._is_cast_list and not begins_cast_list(text):
            self._narrate(text, number, UnspokenKind.NOTE)
        elif said := play.cue_of(text):
            self._drop_cue()
            self._cue = (Header(said[0], Attributes(), ""), number)
            if said[1]:
                self._say_in_play(play, said[1], number)
                self._is_open = play.is_spaced and inside_of(said[1]) is not None
        elif self._cue is not None and inside:  # below a name: how its words are said
            self._say_in_play(play, text, number)
            self._is_open = play.is_spaced
        elif self._may_be_title(play, row):
            self._take_title(text, number)
        elif is_headed or self._is_cast_list:
            self._narrate(text, number, UnspokenKind.HEADING)
            self._is_action = True
        elif play.is_direction(text) or self._is_played(play, row):
            self._narrate(strip_markup(text).strip("[]()"), number, UnspokenKind.ACTION)
        else:
            self._say_in_play(play, text, number)

    def _is_played(self, play: Play, row: PlacedRow) -> bool:
        """Whether a row tells what happens: above the first name, or a paragraph without one."""
        is_action = row.ends and play.tells_of(row.text) and not self._is_narrator()
        is_apart = row.begins and (bool(play.bare) or is_action)
        return self._cue is None and (self._is_action or is_apart)

    def _is_narrator(self) -> bool:
        return self._speaker is not None and name_key(self._speaker.speaker) in NARRATORS

    def _may_be_title(self, play: Play, row: PlacedRow) -> bool:
        is_first = self._speaker is None and self.title is None and row.begins
        is_free = is_titled(row.text) and inside_of(row.text) is None
        return is_first and is_free and play.may_be_title(row.text)

    def _say_in_play(self, play: Play, text: str, number: int) -> None:
        if self._cue is not None:
            self._begin(*self._cue)
            self._cue = None
        self._say("\\" + play.write(text, is_first=not self._has_words), number)

    def _drop_cue(self) -> None:
        """A name that nobody's words follow, as in the list of a play's cast."""
        if self._cue is not None:
            header, number = self._cue
            self._cue = None
            self._narrate(header.speaker, number, UnspokenKind.NOTE)


def _may_be_name(row: str) -> bool:
    """Whether a row is a few capitals, as a name above words is."""
    is_short = len(row) > 1 and len(row.split()) <= _MOST_NAME_WORDS
    return row.isupper() and is_short and row[-1].isalnum()


def _may_be_said(row: str) -> bool:
    try:
        return header_of(row) is not None
    except ScriptError:
        return True


def _header_with_manner(manners: Mapping[str, Header], row: str) -> Header | None:
    header = header_of(row)
    if row.startswith("["):
        return header
    plain = manners.get(header.speaker) if header is not None else None
    if header is None or plain is None:
        return header
    return Header(plain.speaker, header.attributes, f"{plain.text} {header.text}".strip())


def _is_stage(inside: str) -> bool:
    """Whether parentheses alone in a paragraph are for the stage, not said."""
    if begins_direction(inside) or (inside.isupper() and " " in inside):
        return True
    return all(one.is_spoken is False for one in find_directions(f"({inside})"))
