"""A conversation with a language model, as its template writes it: `<|im_start|>user …`."""

from __future__ import annotations

from itertools import islice

import regex

from studio.dialog.markup import spend_marks, strip_markup
from studio.dialog.model import MAX_LINES
from studio.dialog.reading.form import Explanation, Form, read_source
from studio.dialog.reading.lexer import Source
from studio.dialog.reading_limits import PATTERN_S, Budget, Cost

_ROLE = r"(?P<role>system|user|human|assistant|model|instruction|response)"
_TURN = regex.compile(
    rf"""
      <\|im_start\|>\s*{_ROLE}\b | <\|start_header_id\|>{_ROLE}<\|end_header_id\|>
    | ^(?P<role>You|ChatGPT|Claude|Gemini|Copilot|Grok)[ ]said:$
    | <\|{_ROLE}\|> | <start_of_turn>{_ROLE}\b | ^\#{{2,3}}[ ]{_ROLE}: | (?P<role>\[/?INST\])
    """,
    regex.VERBOSE | regex.IGNORECASE | regex.MULTILINE,
)
_SIGNS = regex.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|begin_of_text|endoftext|end_of_text)\|>|<end_of_turn>|</?s>|<bos>"
)
_ROLES = {"[inst]": "User", "[/inst]": "Assistant", "chatgpt": "ChatGPT"}
_FEWEST = 2


def _explain(source: Source) -> Explanation | None:
    text = source.text
    found = list(islice(_TURN.finditer(text, timeout=PATTERN_S), MAX_LINES + 1))
    if len(found) < _FEWEST or _SIGNS.sub("", text[: found[0].start()]).strip():
        return None
    source.budget.spend(Cost.LINES, len(found))
    spend_marks(text.splitlines(), Budget())
    return Explanation(lambda remarks: read_source(source.of(_write(text, found)), remarks))


def _write(text: str, turns: list[regex.Match[str]]) -> str:
    """A script with the same rows, in which what the system is told is a note."""
    written = text[: turns[0].start()].count("\n") * "\n"
    ends = [turn.start() for turn in turns[1:]] + [len(text)]
    for turn, end in zip(turns, ends, strict=True):
        role = turn["role"].casefold()
        rows = _SIGNS.sub("", text[turn.end() : end]).split("\n")
        sign = "// " if role == "system" else "\\"
        said = [f"{sign}{strip_markup(row.strip())}" if row.strip() else "" for row in rows]
        if role != "system":
            name = _ROLES.get(role, role.capitalize())
            said[0] = f"[{name}] {said[0].removeprefix(sign)}".strip()
        written += "\n".join(said) + ("" if rows[-1] == "" else "\n")
    return written


FORMS = (
    Form(
        "a conversation with a model", 4.6, _explain, ("<|", "[INST]", "<start_of", "## ", " said:")
    ),
)
