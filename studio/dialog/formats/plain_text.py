"""Reads text that is no other program's file: scripts, plays, prose, a language model's answer.

The script's own grammar is in `studio.dialog.script`. This finds what else stands in such a text,
and names in a notice whatever isn't spoken: a model's preface, titles, headings, cues, stage
directions. All but the preface and the title stand between the lines. What the studio itself writes
as a script has none of that and is read as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import regex

from studio.dialog.attributes import Attributes
from studio.dialog.directions import (
    CUE_WORDS,
    begins_direction,
    is_direction,
    word_set,
    write_direction,
)
from studio.dialog.formats.building import (
    FIRST_SPEAKER,
    NO_NAME,
    NOT_SPOKEN,
    ImportNotices,
)
from studio.dialog.formats.plays import Play, find_play, join_open_brackets
from studio.dialog.formats.turns import split_turns
from studio.dialog.markup import Row, has_blocks, read_markdown, strip_markup
from studio.dialog.model import ParsedScript, UnspokenKind, name_key, with_place
from studio.dialog.script import Header, ScriptReader, parse_header
from studio.dialog.tags import SOUND_TAGS, leading_pauses, sound_name, write_pause
from studio.errors import NameRejected, ScriptError

_INVISIBLE = regex.compile(r"\A[\p{Cc}\p{Cf}\s]+")
_GUTENBERG = regex.compile(
    r"\*\*\* ?(?P<which>START|END) OF TH(?:E|IS) PROJECT GUTENBERG .*", regex.I
)
_PICTURE = "[Illustration"
_HEADING = regex.compile(
    r"""
      (?:act|scene|chapter|prologue|epilogue|episode|part|segment|section|interlude)\b
      (?:[\s.:—–-]+(?:\d+|[ivxlc]+|one|two|three|four|five|six|seven|eight|nine|ten|the\s\w+))?
      (?:[.:—–-].{0,80})?
    | (?:the\s)?(?:first|second|third|fourth|fifth|last)\s(?:act|scene|part)\.?
    | (?:int|ext|i/e|int\.?/ext)[.\s].{1,100}
    | (?:[\p{Lu}\s]+\s)?(?:CUT|FADE|DISSOLVE)\s(?:TO|IN|OUT|UP)(?:\sBLACK)?[.:]?
    | (?:the\s)?end(?:\sof\s(?:act|scene|episode|part)\b.{0,40})?\.?
    | curtain\.? | dramatis\spersonae\.?
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_CUE = regex.compile(rf"{CUE_WORDS}\s*[:：–—-].*", regex.IGNORECASE)
_CUE_BEGINS = regex.compile(rf"{CUE_WORDS}\b", regex.IGNORECASE)
_BRACKETED = regex.compile(r"\[(?P<inside>[^\[\]|]*)\]\.?|[(（](?P<inside>[^()（）]*)[)）]\.?")
_ORNAMENT = regex.compile(r"[\s*_~—–=-]+")
_KEYED = regex.compile(r"(?P<key>[\p{L} ]{3,30})[:：]\s*(?P<value>.*)")
_BOLD = regex.compile(r"\*\*(?P<name>[^*]{1,100})\*\*")
_CALLED = regex.compile(
    r"(?P<name>\p{Lu}[\p{Lu}\d .'’-]{0,40}?)\s*\((?P<how>[^()]{1,100})\)\.?\s*(?P<text>.*)"
)
_ABOUT = word_set(
    "format voices hosts guests audience duration setting characters cast title author genre tone"
    " style topic length runtime date visuals synopsis logline summary theme"
)
_PREFACE = regex.compile(
    r"""
      (?: (?:sure|certainly|of\scourse|absolutely|great|okay|ok|yes|no\sproblem|happy\sto\shelp
          |got\sit|alright|all\sright)\b .{0,20}? [!.,—–-] \s* )?
      (?: here(?:['’]s|\sis|\sare)\b | below\s(?:is|you) | the\sfollowing\b
        | this\sis\s(?:a|the|your)\b | i(?:['’]ve|\shave)\s(?:written|created|made|prepared)
        | as\srequested\b
        | (?:please\s)?(?:tts|read|speak|say|convert|narrate)\b.{0,40}\b(?:following|conversation
          |dialog(?:ue)?|script|text) )
      .{0,400}
    | (?:sure|certainly|of\scourse|absolutely)\b .{0,120} [!:]
    """,
    regex.VERBOSE | regex.IGNORECASE | regex.DOTALL,
)
_ABOUT_SCRIPT = regex.compile(
    r"\b(?:dialog(?:ue)?|script|conversation|scene|podcast|episode|transcript|play|version|skit"
    r"|stor(?:y|ies)|chapter|draft|exchange|monologue|text|tts)\b|[:：]$",
    regex.IGNORECASE,
)
_FAREWELL = regex.compile(
    r"(?:let\sme\sknow|would\syou\slike\s(?:me|another|a)|feel\sfree\sto|i\shope\s(?:this|that|you)"
    r"|if\syou(?:['’]d|\swould|\swant|\sneed)\b.*\b(?:i\scan|let\sme)|want\sme\sto|hope\sthis)",
    regex.IGNORECASE | regex.VERBOSE,
)
_MOST_TITLE_WORDS = 10
_FEW_NAMED = 10
"""In prose at most one paragraph in so many begins with what looks like a name, none twice."""
_MOST_JOINED_ROWS = 20

PREFACE_NOTICE = "What a language model says about the script isn't spoken; it is left out:"
TITLE_NOTICE = "The title isn't spoken; a new project is named for it:"
CUE_NOTICE = "Cues for sounds and music aren't spoken; they stand between the lines:"
ABOUT_NOTICE = "What is said about the script above it isn't spoken; it stands above the lines:"
GUTENBERG_NOTICE = (
    "What Project Gutenberg says about the book, and its marks of pictures, aren't spoken; they "
    "are left out."
)


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
        ScriptError: It has no lines, or one is invalid; names the line.
    """
    rows = _cut_gutenberg(list(_number(text)), remarks)
    is_marked = has_blocks(rows)
    if is_marked:
        rows = read_markdown(rows)
    rows = _join_brackets(split_turns(rows))
    play = find_play(rows)
    if play is not None:
        rows = join_open_brackets(rows)
    reader = _PlainTextReader(rows, remarks, narrator, play=play, is_marked=is_marked)
    reader.read_all()
    return PlainText(reader.script.finish(), reader.title, reader.unspoken)


def _number(text: str) -> Iterator[Row]:
    for number, raw in enumerate(text.splitlines(), start=1):
        yield number, _INVISIBLE.sub("", raw).rstrip()


def _cut_gutenberg(rows: list[Row], remarks: ImportNotices) -> list[Row]:
    """The book without the notices and marks of pictures that Project Gutenberg adds to it."""
    marks = [
        (idx, found["which"])
        for idx, (_, row) in enumerate(rows)
        if (found := _GUTENBERG.match(row))
    ]
    pictures = (idx for idx, (_, row) in enumerate(rows) if row.startswith(_PICTURE))
    first = min((idx for idx, _ in marks), default=next(pictures, None))
    if first is None:
        return rows
    remarks.add(GUTENBERG_NOTICE, rows[first][0])
    start = next((idx + 1 for idx, which in marks if which.upper() == "START"), 0)
    end = next((idx for idx, which in marks if which.upper() == "END" and idx >= start), len(rows))
    book: list[Row] = []
    is_picture = False
    for number, row in rows[start:end]:
        is_picture = is_picture or row.startswith(_PICTURE)
        book.append((number, "" if is_picture else row))
        is_picture = is_picture and not row.endswith("]")
    return book


def _join_brackets(rows: list[Row]) -> list[Row]:
    """Join a direction in brackets that is broken into several rows."""
    joined: list[Row] = []
    idx = 0
    while idx < len(rows):
        number, row = rows[idx]
        parts = [row]
        close = {"[": "]", "(": ")"}.get(row.removeprefix("_")[:1])
        if close and close not in row:
            for _, further in rows[idx + 1 : idx + _MOST_JOINED_ROWS]:
                if not further:
                    break
                parts.append(further)
                if close in further:
                    break
        whole = " ".join(parts)
        if len(parts) > 1 and whole.rstrip("_.").endswith(close or " "):
            joined.append((number, whole))
            idx += len(parts)
        else:
            joined.append(rows[idx])
            idx += 1
    return joined


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
        self._names = Counter(_names_of(rows))
        self._is_prose = play is None and _is_prose(rows, self._names)
        self._speaker: Header | None = None
        self._is_interrupted = False
        self._has_words = False
        self._is_action = play is not None
        self._cue: tuple[Header, int] | None = None

    def read_all(self) -> None:
        ends = max((idx for idx, (_, row) in enumerate(self._rows) if row), default=0)
        blanks = (idx for idx, (_, row) in enumerate(self._rows[:ends]) if not row)
        last = max(blanks, default=-1)
        begins = True
        for idx, (number, row) in enumerate(self._rows):
            with with_place(number):
                if not row or _ORNAMENT.fullmatch(row):
                    self._is_action = self._is_action or self._cue is not None
                    self._drop_cue()
                    self.script.read("", number)
                elif idx > last >= 0 and _FAREWELL.match(row) and _header_of(row) is None:
                    self._remarks.add(PREFACE_NOTICE, number, row)
                else:
                    is_last = idx + 1 == len(self._rows) or not self._rows[idx + 1][1]
                    self._read(row, number, begins=begins, ends=is_last)
            begins = not row
        self._drop_cue()

    def _read(self, row: str, number: int, *, begins: bool, ends: bool) -> None:
        if row.startswith("\\"):
            self._say(row, number)
        elif row.startswith(("#", "//")):
            self._comment(row, number)
        elif self._is_prose:
            self._read_prose(row, number, begins=begins)
        elif self._play is not None:
            self._read_play(self._play, row, number, begins=begins)
        elif not self._set_aside(row, number, begins=begins, ends=ends):
            self._read_script(row, number, begins=begins, ends=ends)

    def _read_prose(self, row: str, number: int, *, begins: bool) -> None:
        if self._speaker is None and _is_preface(row):
            self._remarks.add(PREFACE_NOTICE, number, row)
            return
        if self._speaker is None:
            self._begin_narrator(number)
        self._say("\\" + strip_markup(_BOLD.sub(r"\g<name>", row)), number)

    def _read_script(self, row: str, number: int, *, begins: bool, ends: bool) -> None:
        header = _header_of(row)
        if header is not None:
            for duration_s in leading_pauses(row)[0]:
                self.script.read(write_pause(duration_s), number)
            self._begin(header, number)
            return
        inside = _inside(row)
        if inside is not None and self._speaker is not None and not _is_sound(row):
            if inside[:1].isupper() and inside.endswith(".") and not is_direction(inside):
                self._narrate(inside, number, UnspokenKind.ACTION)
                return
            row = self._write_direction(inside) or row
        elif self._speaker is None and not _is_sound(row):
            self._begin_narrator(number)
        self._say(row, number)

    def _begin(self, header: Header, number: int) -> None:
        self._speaker, self._is_interrupted, self._is_action = header, False, False
        self._has_words = bool(header.text)
        text = strip_markup(header.text)
        self.script.begin(Header(header.speaker, header.attributes, text), number)

    def _begin_narrator(self, number: int) -> None:
        name = self._narrator or FIRST_SPEAKER
        self._remarks.add(NO_NAME.format(name), number)
        self._begin(Header(name, Attributes(), ""), number)

    def _say(self, row: str, number: int) -> None:
        """Text of the present speaker, or a row that the script's grammar knows."""
        if self._is_interrupted and self._speaker is not None and not _is_sound(row):
            self.script.begin(Header(self._speaker.speaker, self._speaker.attributes, ""), number)
            self._is_interrupted = False
        self._has_words = True
        literal = row.startswith("\\") or _is_sound(row)
        self.script.read(row if literal else "\\" + strip_markup(row), number)

    def _write_direction(self, inside: str) -> str | None:
        """Brackets on a row of their own inside a speech are a direction, whatever they say."""
        if not self._has_words and not (is_direction(inside) or begins_direction(inside)):
            return (
                None if "?" in inside or "!" in inside else write_direction(inside, is_first=True)
            )
        return write_direction(inside, is_first=not self._has_words)

    def _narrate(self, text: str, number: int, kind: UnspokenKind) -> None:
        """What only a narrator reads."""
        self.unspoken += 1
        text = strip_markup(text)
        if self._narrator is None:
            self._remarks.add(NOT_SPOKEN, number, text)
            self.script.add_unspoken(kind, text, number)
            self.script.read("", number)
            return
        self.script.begin(Header(self._narrator, Attributes(), text), number)
        self._is_interrupted = True

    def _add_cue(self, cue: str, number: int) -> None:
        """A cue for a sound or music; the speech around it goes on."""
        self._remarks.add(CUE_NOTICE, number, cue)
        self.script.add_unspoken(UnspokenKind.ACTION, strip_markup(cue), number)

    def _comment(self, row: str, number: int) -> None:
        text = row.lstrip("#/ ").rstrip("# ")
        if not text:
            return
        is_title = self._speaker is None and self.title is None and row.startswith("# ")
        if is_title and not (_HEADING.fullmatch(text) or text.endswith(".")):
            self.title = strip_markup(text)
        if self._is_marked and row.startswith("#"):
            self._narrate(text, number, UnspokenKind.HEADING)
        else:
            self.script.read(row, number)

    def _take_title(self, text: str, number: int) -> None:
        self.title = text
        self._remarks.add(TITLE_NOTICE, number, text)

    def _set_aside(self, row: str, number: int, *, begins: bool, ends: bool) -> bool:
        """Take a row out of the dialog that nobody says; whether it was one."""
        if self._speaker is None and self._set_aside_lead(row, number, begins=begins, ends=ends):
            return True
        if bold := _BOLD.fullmatch(row):
            return self._read_bold(bold["name"].strip(), number)
        if _CUE.fullmatch(row):
            self._add_cue(row, number)
            return True
        if begins and _HEADING.fullmatch(row) and _header_of(row) is None:
            self._narrate(row, number, UnspokenKind.HEADING)
            return True
        return self._set_aside_brackets(row, number, begins=begins, ends=ends)

    def _set_aside_lead(self, row: str, number: int, *, begins: bool, ends: bool) -> bool:
        """What stands above the first speaker: a preface, a title, remarks about the script."""
        header = _header_of(row)
        if begins and _is_preface(row) and (header is None or not header.text):
            self._remarks.add(PREFACE_NOTICE, number, row)
            return True
        keyed = _KEYED.fullmatch(row)
        key = keyed["key"].strip().casefold() if keyed else ""
        if keyed and key == "title" and header is None:
            self._take_title(keyed["value"], number)
            return True
        if keyed and (header is None or self._is_marked) and key.split(" ")[-1] in _ABOUT:
            self._remarks.add(ABOUT_NOTICE, number, row)
            self.script.add_unspoken(UnspokenKind.NOTE, strip_markup(row), number)
            return True
        is_line = begins and ends and header is None and not _inside(row) and not _is_sound(row)
        is_named = _is_titled(row)
        if (
            is_line
            and is_named
            and self.title is None
            and not (_CUE.match(row) or _HEADING.fullmatch(row))
        ):
            self._take_title(strip_markup(_BOLD.sub(r"\g<name>", row)), number)
            return True
        return False

    def _read_bold(self, name: str, number: int) -> bool:
        """Bold text alone on a row: a name above her words, or a heading."""
        header = parse_header(f"{name}:")
        if header is not None and self._names[name_key(header.speaker)] > 1:
            self._begin(header, number)
        else:
            self._narrate(name, number, UnspokenKind.HEADING)
        return True

    def _set_aside_brackets(self, row: str, number: int, *, begins: bool, ends: bool) -> bool:
        inside = _inside(row)
        if inside is None or _is_sound(row) or not inside.strip():
            return False
        if _is_cue(inside):
            self._add_cue(inside, number)
            return True
        if row.startswith("[") and self._is_name(inside):
            return False
        known = is_direction(inside) and self._speaker is not None
        if (begins and ends and not known) or (row.startswith("[") and not known):
            if not row.startswith("[") and not begins_direction(inside) and _is_said(inside):
                return False
            self._narrate(inside, number, UnspokenKind.ACTION)
            return True
        return False

    def _is_name(self, inside: str) -> bool:
        """Whether `[…]` alone on a row is a speaker whose words follow."""
        key = name_key(" ".join(inside.split()))
        words = inside.split()
        is_titled = len(words) <= 3 and all(
            word[0].isupper() or word[0].isdigit() for word in words
        )
        return self._names[key] > 1 or (is_titled and inside.strip()[-1:] not in ".!?")

    def _read_play(self, play: Play, row: str, number: int, *, begins: bool) -> None:
        if _CUE.fullmatch(row) or _is_cue(_inside(row)):
            self._add_cue(_inside(row) or row, number)
        elif said := play.cue_of(row):
            self._drop_cue()
            self._cue = (Header(said[0], Attributes(), ""), number)
            if said[1]:
                self._say_in_play(said[1], number)
        elif self._speaker is None and self.title is None and begins and _is_titled(row):
            self._take_title(strip_markup(row), number)
        elif play.is_heading(row) or _HEADING.fullmatch(strip_markup(row)):
            self._narrate(row, number, UnspokenKind.HEADING)
            self._is_action = True
        elif (self._is_action and self._cue is None) or play.is_direction(row):
            self._narrate(row.strip("[]"), number, UnspokenKind.ACTION)
        else:
            self._say_in_play(row, number)

    def _say_in_play(self, row: str, number: int) -> None:
        assert self._play is not None
        if self._cue is not None:
            self._begin(*self._cue)
            self._cue = None
        self._say("\\" + self._play.write(row, is_first=not self._has_words), number)

    def _drop_cue(self) -> None:
        """A name that nobody's words follow, as in the list of a play's cast."""
        if self._cue is not None:
            header, number = self._cue
            self._cue = None
            self._narrate(header.speaker, number, UnspokenKind.NOTE)


def _header_of(row: str) -> Header | None:
    """A row's header, also behind pauses or without a colon, as in `IVO (angrily) Get out!`."""
    try:
        rest = leading_pauses(row)[1]
        header = parse_header(rest) if rest else None
    except NameRejected:
        return None
    if header is None and (called := _CALLED.fullmatch(row)):
        how = called["how"]
        if is_direction(how) or begins_direction(how):
            text = f"({how}) {called['text']}".strip()
            return Header(called["name"].strip(), Attributes(), text)
    return header


def _inside(row: str) -> str | None:
    """What stands in the brackets that are a whole row."""
    found = _BRACKETED.fullmatch(row)
    return str(found["inside"]) if found else None


def _is_sound(row: str) -> bool:
    """Whether a row in brackets is a pause, audio, or a sound that a voice makes."""
    if not row.startswith(("[", "(", "<")):
        return False
    inside = sound_name(_inside(row) or "")
    if inside in SOUND_TAGS and row.startswith("["):
        return True
    return (
        regex.match(r"[\[(<]\s*(?:pause|break|audio\s*:|direction\s*:)", row, regex.I) is not None
    )


def _is_cue(inside: str | None) -> bool:
    """Whether words in brackets are a cue for sounds or music."""
    return inside is not None and _CUE_BEGINS.match(inside.strip()) is not None


def _is_titled(row: str) -> bool:
    """Whether a row could be a title: a few words that end without a mark."""
    is_short = len(row.split()) <= _MOST_TITLE_WORDS and row[-1] not in ".!?…:,;]"
    return is_short and not (_CUE.match(row) or _HEADING.fullmatch(row))


def _is_said(inside: str) -> bool:
    return not begins_direction(inside) and write_direction(inside, is_first=True).startswith("[")


def _is_preface(row: str) -> bool:
    return _PREFACE.fullmatch(row) is not None and _ABOUT_SCRIPT.search(row) is not None


def _names_of(rows: list[Row]) -> Iterator[str]:
    for _, row in rows:
        if bold := _BOLD.fullmatch(row):
            yield name_key(bold["name"].strip())
            continue
        try:
            header = _header_of(row)
        except ScriptError:
            continue
        if header is not None:
            yield name_key(header.speaker)


def _is_prose(rows: list[Row], names: Counter[str]) -> bool:
    """Whether text has no speakers, or only what looks like a few."""
    if not names:
        return not any(_is_sound(row) for _, row in rows)
    paragraphs = sum(
        bool(row) and (idx == 0 or not rows[idx - 1][1]) for idx, (_, row) in enumerate(rows)
    )
    first = next((row for _, row in rows if row), "")
    if _header_of(first) is not None or max(names.values()) > 1:
        return False
    is_sentence = first.rstrip("”’\"'")[-1:] in (".", "!", "?") and not _is_preface(first)
    return (2 if is_sentence else _FEW_NAMED) * names.total() < paragraphs
