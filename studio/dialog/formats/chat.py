"""Reads chats, transcripts and lists of utterances that people paste from other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import regex

from studio.dialog.formats.building import DialogBuilder, ImportNotices
from studio.dialog.formats.row_kinds import CUE_NOTICE, is_cue
from studio.dialog.model import ParsedScript, UnspokenKind, name_key

_DATE = r"\d{1,4}[./年-]\s?\d{1,2}[./月-]\s?\d{1,4}[.日]?"
_HALF = r"(?:上午|下午|午前|午後|오전|오후)"
_CLOCK = (
    r"\d{1,2}(?:[:.]|\s?h\s?)\d{2}(?:[:.]\d{2}(?:[.,]\d{1,3})?)?"
    r"(?:\s?(?:[ap]\.?\s?m\b\.?|[πμ]\.\s?μ\.))?"
)
_TIME = rf"(?:{_HALF}\s?)?{_CLOCK}"
_BOTH = rf"(?:{_DATE}[.,]?\s+{_TIME}|{_TIME}[.,]?\s+{_DATE})"
_STAMP = rf"(?:{_BOTH}|{_TIME})"
_NO_NAME = r":：<>\[\]|\"“”\t"
_NAME = rf"(?P<name>[\p{{L}}\p{{N}}+~@][^{_NO_NAME}]{{0,59}}?)"
_WORD_NAME = rf"(?P<name>\p{{L}}[^{_NO_NAME}.?!,;]{{0,59}}?)"
_TEXT = r"(?P<text>\S.*)"

_STAMPED = regex.compile(rf"[\[(]?{_STAMP}[\])]?(?:\s|$)", regex.IGNORECASE)
_COPIED = regex.compile(rf"\[{_BOTH}\]\s", regex.IGNORECASE)
"""Begins nothing but a message: one of them is a chat already."""

_MESSAGES = tuple(
    regex.compile(form, regex.IGNORECASE)
    for form in (
        rf"[\[(]?{_STAMP}[\])]?\s*(?:[-–—]\s*)?{_NAME}[:：](?:\s+(?P<text>.*))?",
        rf"(?:[\[(]?{_STAMP}[\])]?\s*)?<{_NAME}>\s+{_TEXT}",
        rf"{_NAME},?\s*[\[(]{_STAMP}[\])]\s*[:：]?\s*(?P<text>.*)",
        rf"{_NAME}(?:\s{{2,}}|\t\s*|\s+[—–]\s+(?:\p{{L}}+\s+){{0,2}}){_STAMP}(?P<text>)",
    )
)
"""Forms with a time in each message: a row without one continues the message above."""

_ROWS = tuple(
    regex.compile(form, regex.IGNORECASE)
    for form in (
        rf"(?:[-*•‣·>]|\d{{1,4}}[.)])\s+{_NAME}[:：]\s+{_TEXT}",
        rf"{_WORD_NAME}\s+[-–—]\s+{_TEXT}",
        rf"{_WORD_NAME}:(?!//){_TEXT}",
        rf"(?!(?:speaker|character|name|role)\t){_WORD_NAME}\t\s*{_TEXT}",  # else a table
    )
)
"""Forms without a time: every row has to match, or the text isn't a list."""

_LONGEST_NAME_WORDS = 5
_FEW_ROWS = 3
"""In a longer list at least one name has to occur twice, or it is no dialog."""

_BLANK = regex.compile(r"^[\s\p{Cf}]+")
_BEFORE_NAME = regex.compile(r"^[~@]\s*")
_CHATS_OWN = regex.compile(
    r"""
      \N{LEFT-TO-RIGHT MARK}.* | <[^<>]{3,60}> | null
    | (?:this\smessage\swas|you)\sdeleted(?:\sthis\smessage)?\.?
    | .{0,100}\b(?:end-to-end\sencrypted|\(file\sattached\))\b?.*
    | (?:image|video|audio|sticker|gif|document|contact\scard)\somitted
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
"""What a messenger writes in place of words; WhatsApp marks it by an invisible character."""

_SIGNED = regex.compile(r"(?:transcribed|generated|created|recorded)\s(?:by|with)\s\S+", regex.I)
"""What a service writes below a transcript."""

_READ_AS_CHAT = (
    "This was read as a chat or a list of who says what; times, and what the chat itself tells, are"
    " left out. Write “Name: text” where that is wrong."
)


@dataclass(frozen=True, slots=True)
class _Said:
    speaker: str
    text: str
    line_number: int


_Row = tuple[int, str]


def read_chat(text: str, remarks: ImportNotices) -> ParsedScript | None:
    """Read a chat; None for a script and anything else that isn't a chat.

    Raises:
        ScriptError: A message has an invalid pause, or is too long for a line.
    """
    said = _said(text)
    if said is None:
        return None
    remarks.add(_READ_AS_CHAT, said[0].line_number)
    builder = DialogBuilder(remarks)
    for one in said:
        if is_cue(cue := f"{one.speaker}: {one.text}"):
            remarks.add(CUE_NOTICE, one.line_number, cue)
            builder.unspoken(cue, UnspokenKind.ACTION, one.line_number)
        else:
            builder.speech(one.speaker, one.text, one.line_number)
    return builder.finish(nothing_found="")


def is_chat(text: str) -> bool:
    """Whether `read_chat` would read it."""
    return _said(text) is not None


def _said(text: str) -> list[_Said] | None:
    rows = list(_rows(text)) if _may_be_chat(text) else []
    if len(rows) < 2 and not (rows and _COPIED.match(rows[0][1])):
        return None
    for form in _MESSAGES:
        if said := _messages(rows, form):
            return said
    return _list(rows)


def _rows(text: str) -> Iterator[_Row]:
    for number, row in enumerate(text.splitlines(), 1):
        if visible := _BLANK.sub("", row).rstrip():
            yield number, visible


def _may_be_chat(text: str) -> bool:
    """Whether the first row is that of a chat, so that a long script isn't searched for one."""
    _, first = next(_rows(text), (0, ""))
    if _STAMPED.match(first):
        return True
    return any(form.fullmatch(first) for form in (*_MESSAGES, *_ROWS))


def _messages(rows: list[_Row], form: regex.Pattern[str]) -> list[_Said] | None:
    """Read messages; system messages of the chat are left out."""
    said: list[_Said] = []
    for number, row in rows:
        if line := _line(number, row, form):
            said.append(line)
        elif not _STAMPED.match(row):
            if not said:
                return None
            if not (row is rows[-1][1] and _SIGNED.match(row)):
                said[-1] = replace(said[-1], text=f"{said[-1].text} {row}".strip())
    full = [one for one in said if one.text and not _CHATS_OWN.fullmatch(one.text)]
    is_chat = (full and len(said) > 1) or (full and _COPIED.match(rows[0][1]))
    return full if is_chat else None


def _list(rows: list[_Row]) -> list[_Said] | None:
    form = next((one for one in _ROWS if one.fullmatch(rows[0][1])), None)
    if form is None:
        return None
    said = list(_all_or_none(rows, form))
    few = len(said) <= _FEW_ROWS or len({name_key(one.speaker) for one in said}) < len(said)
    return said if len(said) == len(rows) and few else None


def _all_or_none(rows: Iterable[_Row], form: regex.Pattern[str]) -> Iterator[_Said]:
    for number, row in rows:
        line = _line(number, row, form)
        if line is None:
            return
        yield line


def _line(number: int, row: str, form: regex.Pattern[str]) -> _Said | None:
    found = form.fullmatch(row)
    if found is None:
        return None
    speaker = _BEFORE_NAME.sub("", found["name"]).strip()
    if not speaker or len(speaker.split()) > _LONGEST_NAME_WORDS:
        return None
    return _Said(speaker, (found["text"] or "").strip(), number)
