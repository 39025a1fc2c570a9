"""What Fountain hides from the reader: the boneyard `/* … */`, and notes `[[ … ]]`.

Notes carry what Fountain has no words for: `[[pause:1.5s]]`, `[[audio: bell.wav]]` and, behind
what someone says, `[[voice | lang:de | seed:7]]`. All others are comments.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from studio.dialog.formats.remarks import Remarks

NOTE = regex.compile(
    r"""\[\[\s* (?:
        (?P<kind>pause) (?P<inside>\s*[:=\d][^\[\]]*|\s*)
      | (?P<kind>audio) \s*:(?P<inside>[^\[\]]*)
      | (?P<kind>voice) \s*\|(?P<inside>[^\[\]]*)
    ) \]\]""",
    regex.VERBOSE,
)

# A line that holds nothing but hidden text is no empty line; a NUL marks it.
_HIDDEN = "\0"


def visible_lines(text: str, remarks: Remarks) -> Iterator[tuple[int, str]]:
    """Number the lines and take out what is hidden, but the notes that are `NOTE`.

    Args:
        text: The whole file.
        remarks: Told of a boneyard without an end; it is read as text.
    """
    joined = "\n".join(text.splitlines())
    shown = _without_notes(_without_boneyard(joined, remarks))
    for number, line in enumerate(shown.split("\n"), start=1):
        visible = line.replace(_HIDDEN, "")
        if visible.strip() or visible == line:
            yield number, visible


def _without_boneyard(text: str, remarks: Remarks) -> str:
    pieces = []
    end = 0
    while (start := text.find("/*", end)) >= 0:
        close = text.find("*/", start + 2)
        if close < 0:
            message = "This comment has no end; it is read as text. Close it with */."
            remarks.add(message, text.count("\n", 0, start) + 1)
            break
        pieces += [text[end:start], _hidden(text[start:close])]
        end = close + 2
    return "".join(pieces) + text[end:]


def _without_notes(text: str) -> str:
    """A note goes on to its `]]` but not across an empty line; each place is searched once."""
    pieces = []
    end, close, gap = 0, 0, 0
    start = text.find("[[")
    while start >= 0 and close >= 0:
        close = text.find("]]", start) if close <= start else close
        gap = text.find("\n\n", start) if 0 <= gap <= start else gap
        if close < 0 or 0 <= gap < close:
            start = text.find("[[", start + 2)
            continue
        note = text[start : close + 2]
        pieces += [text[end:start], note if NOTE.fullmatch(note) else _hidden(note)]
        end = close + 2
        start = text.find("[[", end)
    return "".join(pieces) + text[end:]


def _hidden(comment: str) -> str:
    return "\n".join([_HIDDEN] * (comment.count("\n") + 1))
