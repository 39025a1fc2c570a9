"""Reads and writes scripts: `Name: text`, `[Name] text`, `[Name | lang:de] text`."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

import regex

from studio.dialog.attributes import (
    ABOUT,
    Attributes,
    parse_attributes,
    read_audio_path,
    write_attributes,
    write_audio_path,
)
from studio.dialog.directions import (
    CUE_WORDS,
    begins_direction,
    is_direction,
    word_set,
    write_direction,
)
from studio.dialog.markup import strip_markup
from studio.dialog.model import (
    MAX_LINE_CHARS,
    MAX_NAME_CHARS,
    MAX_SCRIPT_BYTES,
    Audio,
    Dialog,
    Line,
    ParsedScript,
    Silence,
    Speech,
    Unspoken,
    UnspokenKind,
    check_line_count,
    clean_name,
    paragraph,
    spelling_notices,
    with_place,
)
from studio.dialog.reading_limits import check_reading
from studio.dialog.tags import (
    SOUND_TAGS,
    cut_pauses,
    leading_pauses,
    may_have_tags,
    sound_name,
    write_pause,
)
from studio.errors import NameRejected, ScriptError

MAX_COLON_NAME_WORDS = 5
_FIRST_ROWS, _FIRST_CHARS = 100, 1_000_000  # no row is as long

# A colon after more characters than this never ends a name.
_SEARCHED_CHARS = 4 * MAX_NAME_CHARS

_BRACKETS = regex.compile(r"\[(?P<inside>[^\[\]]*)\](?::(?=\s|$)|：)?\s*(?P<text>.*)", regex.DOTALL)
_KEYWORD = regex.compile(rf"\s*(?:pause\b|audio\s*:|direction\s*:|{CUE_WORDS}\b)", regex.IGNORECASE)
_BOLD = regex.compile(r"\*\*(?P<name>[^*:：]{1,240})(?:[:：]\*\*|\*\*\s?[:：])(?=\s|$)")
_COLON_ENDS_NAME = regex.compile(r"：|:(?=[\s\p{Cf}]|$)")
_NAME_BEGINS = regex.compile(r"[\p{L}\p{N}\p{So}]")
_SENTENCE_MARKS = regex.compile(r"[.?!,;…。？！、，；؟،؛।\"“”„«»\[\]|]")
_AGED = regex.compile(
    r"(?P<name>\p{Lu}[\p{Lu} .'’-]*)(?:,\s*(?P<about>\d{1,2}s?)"
    r"|\s\((?P<about>\p{Lu}+,\s*\d{1,2}s?|\d{1,2}s)\))"
)
"""A name in capitals with an age: "MARY, 70s", "TAM (CHILD, 8)"; "GUARD (2)" is another guard."""
_ABBREVIATED = regex.compile(
    r"(?:(?i:Dr|Mr|Mrs|Ms|Mx|Prof|St|Sr|Sra|Jr|Fr|Hr|Lt|Col|Gen|Capt|Cpt|Sgt|Maj|Rev|Hon|Insp|Mme"
    r"|Mlle)|No|Nr|NO|NR|(?:\p{L}\.)*\p{L})\."
)


# What stands before a colon and is nobody: headings, cues, and a title page's keys.
_NOBODY = regex.compile(
    rf"""
      {CUE_WORDS}
    | (?:act|scene|chapter|episode|part|segment|section)\s+
      (?:\d+|[ivxlc]+|one|two|three|four|five|six|seven|eight|nine|ten)
    | (?:int|ext|i/e)\b.* | (?:[\w\s]+\s)?(?:cut|fade|dissolve)\s+(?:to|in|out|up)(?:\s+black)?
    | title | scene | at\s+rise | setting | characters | dramatis\s+personae | duration | genre
    | (?:(?:director|production|editor|author)['’]?s?\s)?notes? | todo | fixme | location
    | anmerkung | schauplatz | remarque | примечание | место\sдействия | 備考 | 場所 | 地点
    | logline | synopsis | (?:[eé]pisodio|épisode|episódio|folge)\s\d+ | 人物 | 登場人物
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
# Before a colon such a name may be taken for a numbered cue, for a name and a direction, for whose
# the script is, or for action.
_MISTAKEN = regex.compile(
    r"^\d{1,4}[.):]?\s|[(（][^\p{Lu}()（）][^()（）]*[)）]$|^[©△▲]|^(?i:copyright\s(?:©|\d{4}\b))"
)
# In brackets it is the time of a chapter or a line.
_CLOCK = regex.compile(r"\d+(?::\d{2}){1,2}(?:[.,]\d{1,3})?")
_NO_ATTRIBUTES = Attributes()
_NAME_AND_HOW = regex.compile(
    r"(?P<name>[^()（）]*[^()（）\s])\s*[(（](?P<how>[^()（）]{1,80})[)）]\s*"
)
_WHERE = regex.compile(
    r"v\.?\s?o\.?|o\.?\s?[sc]\.?|off(?:[- ]?(?:screen|camera|stage))?|cont(?:['’]?d|inued)\.?"
    r"|(?:(?:on|over|into|through|via)\s(?:the\s)?)?(?:phone|radio|intercom|filtered?)",
    regex.IGNORECASE,
)

_HOW_IN_HAN = word_set(
    "笑 微笑 大笑 苦笑 冷笑 笑着 哭 大哭 哭着 怒 愤怒 生气 惊 惊讶 小声 低声 轻声 大声 喊 叹气 沉默"
    " 画外音 内心 独白 笑って 泣いて 怒って 驚いて 小声で 大声で 心の声 ため息"
)


@dataclass(frozen=True, slots=True)
class Header:
    """The speaker and attributes of a line, and the text on the rest of it."""

    speaker: str
    attributes: Attributes
    text: str


def parse_header(line: str) -> Header | None:
    """Read the header of a line without leading white space.

    Returns:
        None if the line doesn't start with a speaker and is text.
    """
    return _bracket_header(line) if line.startswith("[") else _colon_header(line)


def write_header(speaker: str, attributes: Attributes) -> str:
    """Write the simplest header that `parse_header` reads back to the same speaker.

    Raises:
        NameRejected: The name is invalid.
    """
    name = clean_name(speaker)
    parts = write_attributes(attributes)
    if parts:
        return f"[{' | '.join([name, *parts])}]"
    return _write_plain_header(name)


@lru_cache(maxsize=1_000)  # as for `_plain_name`
def _write_plain_header(name: str) -> str:
    if _CLOCK.fullmatch(name) or name.startswith("/"):  # `[/Ben]` ends a turn
        return f"[{name} |]"
    forms = (f"[{name}]",) if _MISTAKEN.search(name) else (f"{name}:", f"[{name}]")
    for plain in forms:
        if _reads_as(plain, name):
            return plain
    return f"[{name} |]"


def _reads_as(written: str, name: str) -> bool:
    header = parse_header(written)
    return header is not None and header.speaker == name


def _bracket_header(line: str) -> Header | None:
    match = _BRACKETS.match(line)
    if match is None:
        return None
    name, *parts = match["inside"].split("|")
    if not parts and (not name.strip() or _is_no_name(name)):
        return None
    return Header(clean_name(name), parse_attributes(parts), match["text"])


def _is_no_name(inside: str) -> bool:
    """Whether brackets contain a pause, audio, a cue, a sound or a manner, not a name."""
    if _KEYWORD.match(inside) or sound_name(inside) in SOUND_TAGS:
        return True
    return inside.islower() and is_direction(inside)


def is_said_so(extension: str) -> bool:
    """Whether what stands in parentheses behind a name isn't where the voice comes from."""
    return _WHERE.fullmatch(extension.strip()) is None


def split_extension(name: str) -> tuple[str, str]:
    """A name without what a play or a screenplay adds to it in parentheses, and the direction.

    `IVO (V.O.)` is IVO, and `Ivo (whispering)` is Ivo, who says “(whispering)”.
    """
    how = ""
    while (found := _NAME_AND_HOW.fullmatch(name)) is not None:
        where, comma, rest = found["how"].partition(",")
        if comma and rest.strip() and _WHERE.fullmatch(where.strip()):
            how = f"{write_direction(rest, is_first=True)} {how}".strip()
        elif found["how"].strip() in _HOW_IN_HAN:
            how = f"{write_direction(found['how'], is_first=True)} {how}".strip()
        elif is_direction(found["how"]) or begins_direction(found["how"]):
            how = f"({found['how'].strip()}) {how}".strip()
        elif not _WHERE.fullmatch(found["how"].strip()):
            break
        name = found["name"]
    return name, how


def _colon_header(line: str) -> Header | None:
    if line.startswith("**") and (bold := _BOLD.match(line)):
        line = f"{bold['name']}: {line[bold.end() :]}"
    # Without patterns, as every line of a script comes here.
    colon = line.find(":", 0, _SEARCHED_CHARS + 1)
    if not line.isascii():
        wide = line.find("：", 0, _SEARCHED_CHARS + 1)
        colon = max(colon, wide) if min(colon, wide) < 0 else min(colon, wide)
    if colon < 0:
        return None
    if not (line.startswith(": ", colon) or _COLON_ENDS_NAME.match(line, colon)):
        return None
    written, how = line[:colon], ""
    if ")" in written or "）" in written:
        written, how = split_extension(written)
    attributes = _NO_ATTRIBUTES
    if written[:1].isupper() and (aged := _AGED.fullmatch(written)) is not None:
        written, attributes = aged["name"], Attributes(params={ABOUT: aged["about"]})
    name = _plain_name(written)
    text = line[colon + 1 :].strip()
    text = f"{how} {text}".strip() if how else text
    return Header(name, attributes, text) if name else None


@lru_cache(maxsize=1_000)  # most lines of a script have a name that was read before
def _plain_name(written: str) -> str | None:
    """The name before a colon; None if it looks like part of a sentence."""
    try:
        name = clean_name(written)
    except NameRejected:
        return None
    if _NOBODY.fullmatch(name):
        return None
    words = name.split()
    unabbreviated = " ".join(
        word
        for word in words
        if not (word.endswith(".") and _ABBREVIATED.fullmatch(word.lstrip("(")))
    )
    looks_like_prose = (
        len(words) > MAX_COLON_NAME_WORDS
        or not _NAME_BEGINS.match(name)
        or _SENTENCE_MARKS.search(unabbreviated)
    )
    return None if looks_like_prose else name


# The syntax:
#
#     ## A heading, which begins a section.
#     # A note; so is a line that starts with two slashes.
#     #> Action: what is seen or done. None of the three is spoken.
#     Anna: What she says,
#     continued on the next line.
#
#     After a blank line, a pause or audio, the same speaker starts a new line.
#     [pause:1.5s]
#     [Dr: Ames | lang:de | seed:42 | speed:1.2] Eine Zeile mit Eigenschaften.
#     [audio: bell.wav]
#     [Ben] More.
#     \# After a backslash, the line is literal text.
#
# A header applies until the next one. In brackets any name can be written: `[Laugh |]` is a speaker
# called Laugh, where `[laugh]` is a sound. A colon ends a name only before white space and after at
# most five words without sentence marks, so `10:30 we leave` and `http://…` are text.

_LEADING_INVISIBLE = regex.compile(r"\A[\p{Cc}\p{Cf}\s]+")
_AUDIO = regex.compile(r"\[\s*audio\s*:(?P<path>[^|]*)\]", regex.IGNORECASE)
_AUDIO_BEGINS = regex.compile(r"\[\s*audio\s*:[^|\]]*(?:\]|$)", regex.IGNORECASE)

_UNSPOKEN = regex.compile(r"(?P<sign>#>|#+|//)\s*(?P<text>.*)", regex.DOTALL)
_UNSPOKEN_SIGNS = {UnspokenKind.HEADING: "##", UnspokenKind.NOTE: "#", UnspokenKind.ACTION: "#>"}
_UNSPOKEN_KINDS = {"#>": UnspokenKind.ACTION, "#": UnspokenKind.NOTE, "//": UnspokenKind.NOTE}
"""Two or more `#` are a heading."""


def parse_script(text: str) -> ParsedScript:
    """Read a script.

    Every kind of line break counts, also for line numbers.

    Raises:
        ScriptError: It isn't a dialog, or a line is invalid; names the line.
    """
    if len(text) > MAX_SCRIPT_BYTES:
        raise ScriptError(
            f"The script is larger than {MAX_SCRIPT_BYTES // 1_000_000} MB. Divide it into parts."
        )
    reader = ScriptReader()
    for number, line in enumerate(text.splitlines(), start=1):
        with with_place(number):
            reader.read(line, number)
    return reader.finish()


def write_script(dialog: Dialog) -> str:
    """Write a dialog as a script that `parse_script` reads back to the same dialog."""
    return "".join(f"{_write_line(line)}\n" for line in dialog)


def read_own_script(text: str) -> ParsedScript | None:
    """Read what `write_script` wrote, as it is, or rows of `Name: words`; None for other text."""
    if _is_plain(text):
        return parse_script(text)
    whole = text.rstrip("\n") + "\n"
    rows = whole[: whole.rfind("\n", 0, _FIRST_CHARS) + 1].splitlines(keepends=True)
    begun = "".join(rows[:_FIRST_ROWS])
    with suppress(ScriptError, NameRejected):
        # Most text from elsewhere has other rows at its beginning.
        if write_script(parse_script(begun).dialog) == begun:
            parsed = parse_script(text)
            return parsed if write_script(parsed.dialog) == whole else None
    return None


# Whatever another form than `Name: words` has: brackets, markup, columns, further line breaks.
_SIGNS = re.compile(
    r"[*_`~\[\](){}<>|\\「『（【：\x00-\x09\x0b-\x1f\x7f-\xa0\u200b-\u200f\u2028\u2029\u2060\ufeff]"
)
_PLAIN_NAME = regex.compile(r"\p{L}[\p{L}\p{N} '’.-]*")
_REMARKS = word_set("count time length instruction instructions copyright")
"""A word of what a model says about a script, such as “Word count: 80”."""


def _is_plain(text: str) -> bool:
    """Whether all rows are `Name: words` without a sign that any other form of text has."""
    if _SIGNS.search(text):
        return False
    names = set()
    for row in text.split("\n"):
        if row:
            name, _, words = row.partition(": ")
            if not words or words.isspace():
                return False
            names.add(name)
    return all(map(_is_plain_name, names))


def _is_plain_name(name: str) -> bool:
    is_name = _PLAIN_NAME.fullmatch(name) is not None and _plain_name(name) is not None
    return is_name and _REMARKS.isdisjoint(name.casefold().split())


def number_rows(dialog: Dialog) -> Dialog:
    """A dialog whose lines have the numbers of their rows in `write_script`'s text."""
    lines, number = [], 1
    for line in dialog:
        lines.append(replace(line, line_number=number))
        number += _write_line(line).count("\n") + 1
    return Dialog(tuple(lines))


def _write_line(line: Line) -> str:
    match line:
        case Silence():
            return write_pause(line.duration_s)
        case Audio():
            return f"[audio: {write_audio_path(line.path)}]"
        case Unspoken():
            return f"{_UNSPOKEN_SIGNS[line.kind]} {paragraph(line.text)}"
        case Speech():
            attributes = Attributes(line.language, line.seed, line.params)
            return _write_speech(write_header(line.speaker, attributes), paragraph(line.text))


def _write_speech(header: str, text: str) -> str:
    """Write a line; text in which a reader would see markup stands on a row of its own."""
    is_marked = strip_markup(text) != text or "<!--" in text
    if (is_marked or not text) and header.startswith("[") and "|" not in header:
        header = f"{header[:-1]} |]"  # alone on its row it may be taken for a stage direction
    if is_marked:
        return f"{header}\n\\{text}"
    return f"{header} {text}".rstrip()


@dataclass(slots=True)
class _LineDraft:
    """A line of speech that the next lines of the script may continue."""

    header: Header
    line_number: int
    parts: list[str] = field(default_factory=list)
    chars: int = 0

    def add(self, text: str) -> None:
        part = paragraph(text)
        if may_have_tags(part):
            cut_pauses(part)  # so that an invalid pause is reported with its own line
        self.parts.append(part)
        self.chars += len(part)
        if self.chars > MAX_LINE_CHARS:
            paragraph("".join(self.parts))

    def finished(self) -> Speech:
        text = self.parts[0] if len(self.parts) == 1 else self._join()
        attributes = self.header.attributes
        return Speech(
            self.header.speaker,
            text,
            attributes.language,
            attributes.seed,
            attributes.params,
            self.line_number,
        )

    def _join(self) -> str:
        with with_place(self.line_number):
            text = paragraph(" ".join(self.parts))
            cut_pauses(text)  # a pause may be split by a line break
        return text


class ScriptReader:
    """Reads a script row by row."""

    def __init__(self) -> None:
        self._entries: list[_LineDraft | Line] = []
        self._draft: _LineDraft | None = None
        self._draft_at = 0
        self._paragraph_ended = False
        self._stray_line: int | None = None

    def read(self, raw: str, number: int) -> None:
        """Read a row of a script."""
        # Patterns are searched only where they may match, as a script may have 20,000 lines.
        is_shown = raw[:1].isalnum() or raw[:1] == "\\"
        line = (raw if is_shown else _LEADING_INVISIBLE.sub("", raw)).rstrip()
        if not line:
            self._paragraph_ended = True
        elif line.startswith("\\"):
            self._continue(line[1:].strip(), number)
        elif line.startswith(("#", "//")) and (unspoken := _UNSPOKEN.fullmatch(line)):
            kind = _UNSPOKEN_KINDS.get(unspoken["sign"], UnspokenKind.HEADING)
            self.add_unspoken(kind, unspoken["text"], number)
        else:
            self._read_structure(line, number)

    def _read_structure(self, line: str, number: int) -> None:
        pauses, rest = leading_pauses(line) if line.startswith(("[", "(", "<")) else ([], line)
        entry = _read_entry(rest) if rest else None
        if rest and entry is None:
            self._continue(line, number)
            return
        for duration_s in pauses:
            self._append(Silence(duration_s, number))
        if isinstance(entry, str):
            self._append(Audio(entry, number))
        elif entry is not None:
            self.begin(entry, number)

    def begin(self, header: Header, number: int) -> None:
        """Begin the line of a speaker, with the text that the header has."""
        check_reading()
        self._draft = _LineDraft(header, number)
        self._draft_at = len(self._entries)
        self._append(self._draft)
        self._paragraph_ended = False
        if header.text:
            self._draft.add(header.text)

    def _continue(self, text: str, number: int) -> None:
        draft = self._draft
        if draft is None:
            self._stray_line = self._stray_line or number
            return
        if self._paragraph_ended and (draft.parts or self._draft_at < len(self._entries) - 1):
            if not draft.parts:  # `[Anna]`, then a pause: her text goes after it
                del self._entries[self._draft_at]
            self.begin(Header(draft.header.speaker, draft.header.attributes, ""), number)
        self._paragraph_ended = False
        assert self._draft is not None
        self._draft.add(text)

    def add_unspoken(self, kind: UnspokenKind, text: str, number: int) -> None:
        """Add a text that isn't spoken; a line of speech goes on after a note or an action."""
        ended = self._paragraph_ended or kind is UnspokenKind.HEADING
        if text := paragraph(text):
            self._append(Unspoken(text, kind, number))
            self._paragraph_ended = ended

    def _append(self, entry: _LineDraft | Line) -> None:
        check_line_count(len(self._entries) + 1)
        self._entries.append(entry)
        self._paragraph_ended = True

    def finish(self) -> ParsedScript:
        """Build the dialog.

        Raises:
            ScriptError: It has no lines, or text before the first speaker.
        """
        self._refuse_stray_text()
        if all(isinstance(entry, Unspoken) for entry in self._entries):
            raise ScriptError(
                "The script holds no lines. Write at least one, such as “Anna: Good evening.”"
            )
        lines = tuple(
            entry.finished() if isinstance(entry, _LineDraft) else entry for entry in self._entries
        )
        return ParsedScript(Dialog(lines), spelling_notices(lines))

    def _refuse_stray_text(self) -> None:
        if self._stray_line is None:
            return
        if self._draft is None:
            raise ScriptError(
                "This is not a dialog: no line begins with a speaker's name. Write lines such as "
                "“Anna: Good evening.” (with a space behind the colon) or “[Anna] Good evening.”"
            )
        raise ScriptError(
            "This text comes before the first speaker. Put a name before it, "
            "such as “Narrator: …”.",
            line=self._stray_line,
        )


def _read_entry(line: str) -> Header | str | None:
    """A header, the path of an audio line, or None for text."""
    if not line.startswith("["):
        return parse_header(line)
    if audio := _AUDIO.fullmatch(line):
        return read_audio_path(audio["path"].strip())
    if _AUDIO_BEGINS.match(line):
        raise ScriptError("Audio stands on a line of its own: [audio: path/to.wav].")
    return parse_header(line)
