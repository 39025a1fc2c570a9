"""Fountain's marks inside a line: emphasis, and backslashes that make a sign literal."""

from __future__ import annotations

import regex

_SIGNS = r"\*_[]/()~!>@.#=^"
_ESCAPED = regex.compile(rf"\\([{regex.escape(_SIGNS)}])")
# A NUL stands for an escape while emphasis is taken out; no text file holds one.
_HELD = regex.compile(r"\x00([\u0100-\u017f])")
_STARS = regex.compile(r"(?<star>\*{1,3})(?=\S)(?<inside>[^*]+)(?<=\S)(?P=star)")
_UNDERLINE = regex.compile(r"(?<!\w)_(?=\S)(?<inside>[^_]+)(?<=\S)_(?!\w)")
_DEEPEST = 3
_MARKS = regex.compile(r"[\\*_]|\[(?=\[)|(?<=\[)\[")
_NAME_MARKS = regex.compile(r"[\\*_^(]")


def plain(marked: str) -> str:
    """Take emphasis out and make escaped signs literal."""
    held = _ESCAPED.sub(lambda match: f"\0{chr(ord(match[1]) + 0x100)}", marked)
    for _ in range(_DEEPEST):
        held = _STARS.sub(lambda match: match["inside"], held)
    held = _UNDERLINE.sub(lambda match: match["inside"], held)
    return _HELD.sub(lambda match: chr(ord(match[1]) - 0x100), held)


def marked(text: str) -> str:
    """Write text so that `plain` gives it back and no sign in it is a mark."""
    escaped = _MARKS.sub(_backslashed, text)
    return f"\\{escaped}" if escaped.startswith(("(", "~")) else escaped


def marked_name(name: str) -> str:
    """Write a name so that `plain` gives it back and nothing in it ends it."""
    return _NAME_MARKS.sub(_backslashed, name)


def _backslashed(match: regex.Match[str]) -> str:
    return f"\\{match[0]}"
