"""Reads chats, transcripts and lists of utterances that people paste from other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import regex

from studio.dialog.formats.building import DialogBuilder, ImportNotices
from studio.dialog.model import ParsedScript, name_key

_TIME = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2}(?:[.,]\d{1,3})?)?(?:\s?[ap]\.?m\b\.?)?"
_STAMP = rf"(?:\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}}[.,]?\s+)?{_TIME}"
_NO_NAME = r":：<>\[\]|\"“”\t"
_NAME = rf"(?P<name>[\p{{L}}\p{{N}}+~@][^{_NO_NAME}]{{0,59}}?)"
_WORD_NAME = rf"(?P<name>\p{{L}}[^{_NO_NAME}.?!,;]{{0,59}}?)"
_TEXT = r"(?P<text>\S.*)"

_STAMPED = regex.compile(rf"[\[(]?{_STAMP}[\])]?(?:\s|$)", regex.IGNORECASE)

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
        builder.speech(one.speaker, one.text, one.line_number)
    return builder.finish(nothing_found="")


def is_chat(text: str) -> bool:
    """Whether `read_chat` would read it."""
    return _said(text) is not None


def _said(text: str) -> list[_Said] | None:
    numbered = enumerate(text.splitlines(), 1)
    whole = ((number, _BLANK.sub("", row).rstrip()) for number, row in numbered)
    rows = [(number, row) for number, row in whole if row]
    if len(rows) < 2:
        return None
    for form in _MESSAGES:
        if said := _messages(rows, form):
            return said
    return _list(rows)


def _messages(rows: Iterable[_Row], form: regex.Pattern[str]) -> list[_Said] | None:
    """Read messages; system messages of the chat are left out."""
    said: list[_Said] = []
    for number, row in rows:
        if line := _line(number, row, form):
            said.append(line)
        elif not _STAMPED.match(row):
            if not said:
                return None
            said[-1] = replace(said[-1], text=f"{said[-1].text} {row}".strip())
    full = [one for one in said if one.text]
    return full if len(full) > 1 else None


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
