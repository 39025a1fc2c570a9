"""How a line of a script begins: `Name: text`, `[Name] text`, `[Name | lang:de] text`."""

from __future__ import annotations

from dataclasses import dataclass

import regex

from studio.dialog.attributes import Attributes, parse_attributes, write_attributes
from studio.dialog.names import MAX_NAME_CHARS, clean_name
from studio.dialog.tags import SOUND_TAGS, sound_name
from studio.errors import NameRejected

MAX_COLON_NAME_WORDS = 5

# A colon further along than this never ends a name, white space and marks included.
_SEARCHED_CHARS = 4 * MAX_NAME_CHARS

_BRACKETS = regex.compile(r"\[(?P<inside>[^\[\]]*)\](?::(?=\s|$)|：)?\s*(?P<text>.*)", regex.DOTALL)
_KEYWORD = regex.compile(r"\s*(?:pause\b|audio\s*:)", regex.IGNORECASE)
_BOLD = regex.compile(r"\*\*(?P<name>[^*:：]{1,240})(?:[:：]\*\*|\*\*\s?[:：])(?=\s|$)")
_COLON_ENDS_NAME = regex.compile(r"：|:(?=[\s\p{Cf}]|$)")
_NAME_BEGINS = regex.compile(r"[\p{L}\p{N}\p{So}]")
_SENTENCE_MARKS = regex.compile(r"[.?!,;…。？！、，；؟،؛।\"“”„«»\[\]|]")
_ABBREVIATED = regex.compile(
    r"(?:Dr|Mr|Mrs|Ms|Mx|Prof|St|Sr|Sra|Jr|Fr|Hr|Lt|Col|Gen|Capt|Cpt|Sgt|Maj|Rev|Hon|Insp|Mme|Mlle"
    r"|No|Nr|(?:\p{L}\.)*\p{L})\."
)


@dataclass(frozen=True, slots=True)
class Header:
    """Who speaks, how, and the text that follows on the same line."""

    speaker: str
    attributes: Attributes
    text: str


def parse_header(line: str) -> Header | None:
    """Read the beginning of a line without leading white space.

    Returns:
        None when the line begins with no speaker: it is text.

    Raises:
        ScriptError: Attributes can't be read.
        NameRejected: What stands in brackets can't be a name.
    """
    return _bracket_header(line) if line.startswith("[") else _colon_header(line)


def write_header(speaker: str, attributes: Attributes) -> str:
    """Write the plainest header that `parse_header` reads back to the same speaker.

    Raises:
        NameRejected: No script can hold the name.
    """
    name = clean_name(speaker)
    parts = write_attributes(attributes)
    if parts:
        return f"[{' | '.join([name, *parts])}]"
    for plain in (f"{name}:", f"[{name}]"):
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
    if not parts and (not name.strip() or sound_name(name) in SOUND_TAGS or _is_keyword(name)):
        return None
    return Header(clean_name(name), parse_attributes(parts), match["text"])


def _is_keyword(inside: str) -> bool:
    """Whether brackets hold a pause or audio, which stand for no name."""
    return _KEYWORD.match(inside) is not None


def _colon_header(line: str) -> Header | None:
    if bold := _BOLD.match(line):
        line = f"{bold['name']}: {line[bold.end() :]}"
    start = line[: _SEARCHED_CHARS + 1]
    colon = regex.search("[:：]", start)
    if colon is None or not _COLON_ENDS_NAME.match(line, colon.start()):
        return None
    name = _plain_name(start[: colon.start()])
    return Header(name, Attributes(), line[colon.end() :].strip()) if name else None


def _plain_name(written: str) -> str | None:
    """The name before a colon; None when it reads like the middle of a sentence."""
    try:
        name = clean_name(written)
    except NameRejected:
        return None
    words = name.split()
    unabbreviated = " ".join(word for word in words if not _ABBREVIATED.fullmatch(word))
    looks_like_prose = (
        len(words) > MAX_COLON_NAME_WORDS
        or not _NAME_BEGINS.match(name)
        or _SENTENCE_MARKS.search(unabbreviated)
    )
    return None if looks_like_prose else name
