"""Takes a script out of what a language model's programs write.

Out of its thoughts, of a block of code, and of the signs of turns in a conversation with it.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

import regex

from studio.dialog.formats.building import ImportNotices
from studio.dialog.formats.row_kinds import PREFACE_NOTICE, header_of
from studio.dialog.markup import check_marks, strip_markup
from studio.dialog.model import MAX_LINES, check_line_count, name_key
from studio.dialog.reading_limits import PATTERN_S
from studio.errors import ScriptError

_THOUGHT = regex.compile(
    r"\A\s*<(?P<tag>think|thinking|thought)>.*?</(?P=tag)>", regex.DOTALL | regex.IGNORECASE
)
_FENCE = regex.compile(r"\s*(?P<mark>`{3,}|~{3,})[^`]*")
_DATA = ("[", "{")


_ROLE = r"(?P<role>system|user|human|assistant|model|instruction|response)"
_TURN = regex.compile(
    rf"""
      <\|im_start\|>\s*{_ROLE}\b | <\|start_header_id\|>{_ROLE}<\|end_header_id\|>
    | <\|{_ROLE}\|> | <start_of_turn>{_ROLE}\b | ^\#{{2,3}}[ ]{_ROLE}: | (?P<role>\[/?INST\])
    """,
    regex.VERBOSE | regex.IGNORECASE | regex.MULTILINE,
)
_SIGNS = regex.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|begin_of_text|endoftext|end_of_text)\|>|<end_of_turn>|</?s>|<bos>"
)
_ROLES = {"[inst]": "User", "[/inst]": "Assistant"}
_FEWEST_TURNS = 2


def write_turns(text: str) -> str | None:
    """A conversation with a language model, `<|im_start|>user …`, as a script; None for other text.

    What the system is told is a note.
    """
    if not ("<|" in text or "[INST]" in text or "<start_of" in text or "## " in text):
        return None
    found = list(islice(_TURN.finditer(text, timeout=PATTERN_S), MAX_LINES + 1))
    before = text[: found[0].start()] if found else ""
    if len(found) < _FEWEST_TURNS or _SIGNS.sub("", before).strip():
        return None
    check_line_count(len(found))
    check_marks(text.splitlines())
    ends = [turn.start() for turn in found[1:]] + [len(text)]
    written = before.count("\n") * "\n"
    for turn, end in zip(found, ends, strict=True):
        role = turn["role"].casefold()
        rows = _SIGNS.sub("", text[turn.end() : end]).split("\n")
        sign = "// " if role == "system" else "\\"
        said = [f"{sign}{strip_markup(row.strip())}" if row.strip() else "" for row in rows]
        if role != "system":
            name = _ROLES.get(role, role.capitalize())
            said[0] = f"[{name}] {said[0].removeprefix(sign)}".strip()
        written += "\n".join(said) + ("" if rows[-1] == "" else "\n")
    return written


def take_script(text: str, remarks: ImportNotices) -> str:
    """A script without a model's thoughts before it, and what it says around a block of code.

    Rows keep their numbers; those that are set aside are notes.
    """
    if thought := _THOUGHT.match(text, timeout=PATTERN_S):
        rows = text.splitlines()
        for idx in range(len(thought[0].splitlines())):
            _leave(rows, idx, remarks)
        text = "\n".join(rows)
    return _open_fence(text, remarks)


def _open_fence(text: str, remarks: ImportNotices) -> str:
    if "```" not in text and "~~~" not in text:  # as in most texts
        return text
    rows = text.splitlines()
    marks = [idx for idx, row in enumerate(rows) if _FENCE.fullmatch(row)]
    if len(marks) != 2:
        return text
    check_marks(rows)
    start, end = marks
    inside = rows[start + 1 : end]
    around = [*range(start), *range(end + 1, len(rows))]
    is_data = "".join(inside).lstrip().startswith(_DATA)
    outside = _names_in([rows[idx] for idx in around])
    if not any(map(str.strip, inside)) or (outside and _is_script(outside, inside, is_data)):
        return text
    for idx in around:
        # A heading outside may be the title.
        if is_data or not rows[idx].lstrip().startswith("#"):
            _leave(rows, idx, remarks)
    rows[start] = rows[end] = ""
    return "\n".join(rows)


def _is_script(outside: Counter[str], inside: list[str], is_data: bool) -> bool:
    """Whether those named outside of a block speak there, and not only in it."""
    said = _names_in(inside)
    if not (said or is_data):
        return True
    return any(count > 1 or name in said for name, count in outside.items())


def _names_in(rows: list[str]) -> Counter[str]:
    return Counter(name for row in rows if (name := _name_of(row)))


def _name_of(row: str) -> str | None:
    try:
        header = header_of(strip_markup(row.strip()))
    except ScriptError:
        return None
    return name_key(header.speaker) if header is not None and header.text else None


def _leave(rows: list[str], idx: int, remarks: ImportNotices) -> None:
    if row := rows[idx].strip():
        remarks.set_aside(PREFACE_NOTICE, idx + 1, row)
    rows[idx] = ""
