"""Reads chats, transcripts and lists of utterances that people paste from other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import regex

from studio.dialog.model import UnspokenKind, name_key
from studio.dialog.reading.building import DialogBuilder, ImportNotices
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.lexer import Source
from studio.dialog.reading.row_kinds import (
    ABOUT_NOTICE,
    CUE_NOTICE,
    TITLE_NOTICE,
    is_cue,
    is_titled,
)
from studio.dialog.reading.tables import is_headless

_DATE = (
    r"(?:\d{1,4}[./年-]\s?\d{1,2}[./月-]\s?\d{1,4}[.日]?"
    r"|\d{1,2}\.?\s\p{L}{3,9}\.?,?\s\d{4}|\p{L}{3,9}\.?\s\d{1,2},?\s\d{4})"
)
_DAY = regex.compile(_DATE)
_HALF = r"(?:上午|下午|午前|午後|오전|오후)"
_CLOCK = (
    r"\d{1,2}(?:[:.]|\s?h\s?)\d{2}(?:[:.]\d{2}(?:[.,]\d{1,3})?|[.,]\d{1,3})?"
    r"(?:\s?(?:[ap]\.?\s?m\b\.?|[πμ]\.\s?μ\.))?"
)
_TIME = rf"(?:{_HALF}\s?)?{_CLOCK}"
_AT = r"(?:(?:à|at|um|às|alle)\s+)?"
_BOTH = rf"(?:{_DATE}[.,]?\s+{_AT}{_TIME}|{_TIME}[.,]?\s+{_DATE})"
_STAMP = rf"(?:{_BOTH}|{_TIME})"
_RANGE = rf"{_STAMP}(?:\s*(?:[-–—]{{1,2}}>?|→)\s*{_STAMP})?"
_NO_NAME = r":：<>\[\]|\"“”\t"
_NAME = rf"(?P<name>[\p{{L}}\p{{N}}+~@][^{_NO_NAME}]{{0,59}}?)"
_WORD_NAME = rf"(?P<name>\p{{L}}[^{_NO_NAME}.?!,;]{{0,59}}?)"
_TEXT = r"(?P<text>\S.*)"

_STAMPED = regex.compile(rf"[\[(]?{_STAMP}[\])]?(?:\s|$)", regex.IGNORECASE)
_COPIED = regex.compile(rf"\[{_BOTH}\]\s", regex.IGNORECASE)
"""Begins nothing but a message: one of them is a chat already."""

_IN_ANY_CASE = tuple(
    regex.compile(form, regex.IGNORECASE)
    for form in (
        rf"[\[(]?{_STAMP}[\])]?\s*(?:[-–—]\s*)?{_NAME}[:：](?:\s+(?P<text>.*))?",
        rf"(?:[\[(]?{_STAMP}[\])]?\s*)?<{_NAME}>\s+(?:[\[(]{_RANGE}[\])]\s*(?P<text>.*)|{_TEXT})",
        rf"{_NAME},?\s*[\[(]{_RANGE}[\])]\s*[:：]?\s*(?P<text>.*)",
        rf"{_NAME}(?:\s{{2,}}|\t\s*|\s+[—–]\s+(?:\p{{L}}+\s+){{0,2}}){_STAMP}(?P<text>)",
    )
)

# With one space only, as in `Mira 21:15`, capitals tell a name from prose.
_DATED = regex.compile(
    rf"(?P<name>(?:\p{{Lu}}[\p{{L}}.'’-]*\s){{1,3}}){_CLOCK}(?P<text>)(?:\s?[AP]M)?"
)
# As Teams copies it; a row of lyrics has no half of the day.
_TEAMS = regex.compile(
    rf"\[(?:{_BOTH}|\d{{1,2}}[:.]\d{{2}}\s?[AP]M)\]\s+"
    r"(?P<name>\p{Lu}[\p{L}.'’-]*(?:\s[\p{L}.'’()-]+){0,4})(?P<text>)"
)
# As Discord's history has it, and Word's transcript: with the words below.
_HEADED = regex.compile(
    rf"(?:\[{_BOTH}\]\s+(?P<name>[^\s\[\]:#]+(?:\s[^\s\[\]:#]+)?)(?:\#\d{{4}})?"
    rf"|\d{{2}}:\d{{2}}:\d{{2}}\s+(?P<name>\p{{Lu}}[\p{{L}}.'’-]*(?:\s[\p{{L}}\d.'’()-]+){{0,3}}))(?P<text>)"
)
_MESSAGES = (*_IN_ANY_CASE, _DATED, _TEAMS, _HEADED)
"""Forms with a time in each message: a row without one continues the message above."""

_ROWS = tuple(
    regex.compile(form, regex.IGNORECASE)
    for form in (
        rf"(?:[-*•‣·>]|\d{{1,4}}[.)])\s+{_NAME}(?:[:：]|\s[–—])\s+{_TEXT}",
        rf"{_WORD_NAME}\s+[-–—]\s+{_TEXT}",
        rf"{_WORD_NAME}(?::(?!//|:|(?<=\d:)\d)|\s?::\s+){_TEXT}",
        rf"{_WORD_NAME}\s+(?:[-=]>|[→|=])\s+(?!{_CLOCK}){_TEXT}",
        rf"(?!(?:speaker|character|name|role)\t){_WORD_NAME}\t\s*{_TEXT}",  # else a table
    )
)
"""Forms without a time: every row has to match, or the text isn't a list."""

_LONGEST_NAME_WORDS = 5
_FEW_ROWS = 3
"""In a longer list at least one name has to occur twice, or it is no dialog."""

_BLANK = regex.compile(r"^[\s\p{Cf}]+")
_SENT_TO = regex.compile(r"from\s+(?P<name>\S.*?)\s+to\s+\S.*", regex.IGNORECASE)
_CALLED_SO = regex.compile(r"(?P<name>\p{Lu}[\p{Lu} .'’-]*?)\s*\((?P<how>[^()]{1,60})\)")
"""A name in capitals with how it is said, as in a play."""

_BEFORE_NAME = regex.compile(r"^(?:[~@]\s*|\+(?=\D))")
_CHATS_OWN = regex.compile(
    r"""
      \N{LEFT-TO-RIGHT MARK}.* | <[^<>]{3,60}> | null
    | (?:this\smessage\swas|you)\sdeleted(?:\sthis\smessage)?\.?
    | (?:diese\snachricht\swurde|du\shast\sdiese\snachricht)\sgelöscht\.?
    | se\seliminó\seste\smensaje\.? | eliminaste\seste\smensaje\.?
    | ce\smessage\sa\sété\ssupprimé\.? | vous\savez\ssupprimé\sce\smessage\.?
    | mensagem\sapagada\.? | (?:essa|esta)\smensagem\sfoi\sapagada\.?
    | questo\smessaggio\sè\sstato\seliminato\.? | dit\sbericht\sis\sverwijderd\.?
    | このメッセージは削除されました。?
    | \[\s?(?:photo|video|sticker|file|gif|audio\sfile|voice\smessage)\b[^\[\]]*\]
    | (?::[\w+-]{2,40}:\s*\d*\s*)+ | \d+\srepl(?:y|ies)
    | ---\slog\s(?:opened|closed).* | .{1,60}\s(?:started|stopped)\stranscription
    | .{0,100}\b(?:end-to-end\sencrypted|\(file\sattached\))\b?.*
    | (?:image|video|audio|sticker|gif|document|contact\scard)\somitted
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
"""What a messenger writes in place of words; WhatsApp marks it by an invisible character."""

_EDITED = regex.compile(
    r"\s*\N{LEFT-TO-RIGHT MARK}?(?:<[^<>]*\b(?:edit|bearbeit|modifi|edita)[^<>]*>"
    r"|\((?:edited|bearbeitet|modifié|editado)\))$",
    regex.IGNORECASE,
)
"""What a messenger writes behind words that were changed."""

_EDITED_ENDS = (">", ")")

_SIGNED = regex.compile(r"(?:transcribed|generated|created|recorded)\s(?:by|with)\s\S+", regex.I)
"""What a service writes below a transcript."""

_READ_AS_CHAT = (
    "This was read as a chat or a list of who says what; times are left out. Write “Name: text” "
    "where that is wrong."
)


_CHAT_TELLS = "What the chat itself tells isn't spoken; it stands between the lines:"
_MOST_ROWS_ABOVE = 30
_MOST_ROWS_WITH_NEXT = 60


@dataclass(frozen=True, slots=True)
class _Said:
    speaker: str
    text: str
    line_number: int


_Row = tuple[int, str]


@dataclass(slots=True)
class _Chat:
    """Who says what, what stands above the first message, and what nobody says."""

    said: list[_Said]
    above: list[_Row] = field(default_factory=list)
    left: list[_Row] = field(default_factory=list)


def _explain(source: Source) -> Explanation | None:
    if source.suffix not in (None, "txt") or source.closed_turns or source.delimiter:
        return None
    if "|" in source.text and is_headless(source.text):
        return None
    if (chat := find_chat(source.text)) is None:
        return None
    return Explanation(lambda remarks: _read(chat, remarks))


def _read(chat: _Chat, remarks: ImportNotices) -> Read:
    remarks.add(_READ_AS_CHAT, chat.said[0].line_number)
    builder = DialogBuilder(remarks)
    title = None
    if chat.above and _is_title(chat.above[0][1]):
        number, title = chat.above.pop(0)
        remarks.add(TITLE_NOTICE, number, title)
    for number, row in chat.above:
        remarks.set_aside(ABOUT_NOTICE, number, row)
    for number, row in chat.left:
        remarks.set_aside(_CHAT_TELLS, number, row)
    for one in chat.said:
        if is_cue(cue := f"{one.speaker}: {one.text}"):
            remarks.add(CUE_NOTICE, one.line_number, cue)
            builder.unspoken(cue, UnspokenKind.ACTION, one.line_number)
        else:
            builder.speech(one.speaker, one.text, one.line_number)
    return Read(builder.finish(nothing_found=""), title, chat=True)


def _is_title(row: str) -> bool:
    """Whether a row above a chat is its title, and no day."""
    return is_titled(row) and row[0].isalnum() and not any(map(str.isdigit, row))


def find_chat(text: str) -> _Chat | None:
    """The messages of a chat; None for a script and anything else that isn't one."""
    rows = list(_rows(text)) if _may_be_chat(text) else []
    if len(rows) < 2 and not (rows and _COPIED.match(rows[0][1])):
        return _find_below(text)
    for form in _MESSAGES:
        if chat := _messages(rows, form):
            return chat
    said = _list(rows)
    return _Chat(said) if said else None


def _find_below(text: str) -> _Chat | None:
    """A transcript with its title, day and persons above the first message."""
    first = list(islice(_rows(text), _MOST_ROWS_WITH_NEXT))
    for form in _MESSAGES:
        found = [idx for idx, (number, row) in enumerate(first) if _line(number, row, form)]
        if len(found) < 2 or not 0 < found[0] <= _MOST_ROWS_ABOVE:
            continue
        rows = list(_rows(text))
        left = [one for one in rows[: found[0]] if _STAMPED.match(one[1])]
        above = [one for one in rows[: found[0]] if one not in left]
        chat = _messages(rows[found[0] :], form)
        if chat is not None and not any(_is_said(row, chat.said) for _, row in above):
            chat.above, chat.left = above, left + chat.left
            return chat
    return None


def _is_said(row: str, said: list[_Said]) -> bool:
    """Whether somebody of a chat speaks in a row without a time, as in a script."""
    name, colon, words = row.partition(":")
    speakers = {name_key(one.speaker) for one in said}
    return bool(colon and words) and name_key(name.strip("* ")) in speakers


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


def _messages(rows: list[_Row], form: regex.Pattern[str]) -> _Chat | None:
    """Read messages; what the chat itself tells is no message."""
    said: list[_Said] = []
    left: list[_Row] = []
    further: dict[int, list[str]] = {}
    for number, row in rows:
        if line := _line(number, row, form):
            said.append(line)
        elif _STAMPED.match(row):
            left.append((number, row))
        elif not said:
            return None
        elif _CHATS_OWN.fullmatch(row) or (row is rows[-1][1] and _SIGNED.match(row)):
            left.append((number, row))
        else:
            further.setdefault(len(said) - 1, []).append(row)
    for idx, rows_below in further.items():
        said[idx] = replace(said[idx], text=" ".join((said[idx].text, *rows_below)).strip())
    own = {idx for idx, one in enumerate(said) if _CHATS_OWN.fullmatch(one.text)}
    left += [(said[idx].line_number, f"{said[idx].speaker}: {said[idx].text}") for idx in own]
    full = [one for idx, one in enumerate(said) if one.text and idx not in own]
    is_chat = (full and len(said) > 1) or (full and _COPIED.match(rows[0][1]))
    plain = [
        replace(one, text=_EDITED.sub("", one.text)) if one.text.endswith(_EDITED_ENDS) else one
        for one in full
    ]
    return _Chat(plain, left=sorted(left)) if is_chat else None


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
    speaker, text = _BEFORE_NAME.sub("", found["name"]).strip(), (found["text"] or "").strip()
    if sent := _SENT_TO.fullmatch(speaker):
        speaker = sent["name"]
    if (called := _CALLED_SO.fullmatch(speaker)) and text:
        speaker, text = called["name"], f"({called['how']}) {text}"
    if not speaker or len(speaker.split()) > _LONGEST_NAME_WORDS or _DAY.fullmatch(speaker):
        return None
    return _Said(speaker, text, number)


FORMS = (Form("a chat", 3.4, _explain),)
