"""Fountain's signs of what nobody says, in a script whose names stand before the words.

Whole rows of `[[a note]]` and `/* what is cut */` become notes, `> CENTRED <` and `> CUT TO:`
action. Inside a row they are words: a speech may say them. `=== Part two ===` is a heading.
Rows that command a game's engine, such as `@back Park`, are action, and so is `[Exit Mira]`.
`<!-- a comment -->` of HTML and Markdown is a note anywhere but in a row behind a backslash.
"""

from __future__ import annotations

import regex

from studio.dialog.markup import Row

_SIGNS = ("[[", "/*", "<!--", ">", "==", "--", "**", "~~", "@", "[")
_CLOSES = {"[[": "]]", "/*": "*/", "<!--": "-->"}
_COMMENT, _COMMENT_END = "<!--", "-->"
_RULED = regex.compile(r"[=*~-]{2,}\s+(?P<text>[\p{Lu}\p{N}][^=*~]{0,80}?)\s+[=*~-]{2,}")
_COMMAND = regex.compile(
    r"@(?:back|char|bgm|sfx|voice|movie|show|hide|camera|spawn|fx|wait|stop|end|goto|gosub|choice"
    r"|set|if|else|endif|title|style|printer|trans|animate)\b.*"
)
_COMES_AND_GOES = regex.compile(
    r"\[(?P<what>(?:exit|exits|exeunt|enter|enters|re-enter)\b[^\[\]|]*)\]", regex.IGNORECASE
)
_CENTRED = regex.compile(r">\s*+(?P<text>[^<>]++)<|>\s*+(?P<text>\p{Lu}[\p{Lu}\s]*\bTO:)")


def write_hidden_rows(rows: list[Row]) -> list[Row]:
    """Rows with those signs as a script's own: `// note` and `#> action`, with the same numbers.

    What isn't closed at the end of a row stays as it is; a note has no empty row inside.
    """
    if not any(row.startswith(_SIGNS) for _, row in rows):  # as in most texts
        return rows
    written: list[Row] = []
    opened: list[Row] = []
    close = ""
    for number, row in rows:
        is_sign = row.startswith(_SIGNS)
        if is_sign and not close:
            close = next((_CLOSES[sign] for sign in _CLOSES if row.startswith(sign)), "")
        if not close:
            written.append((number, _write_ruled(row) if is_sign else row))
            continue
        opened.append((number, row))
        is_closed = close in row[2 if len(opened) == 1 else 0 :]
        if is_closed or (close == "]]" and not row):
            written += map(_as_note, opened) if row.endswith(close) else opened
            opened, close = [], ""
    return written + opened


def divide_comments(rows: list[Row]) -> list[Row]:
    """Rows without the comments of HTML that are closed in them, which follow as notes."""
    if not any(_COMMENT in row for _, row in rows):
        return rows
    return [part for row in rows for part in _divide_comments(row)]


def _divide_comments(row: Row) -> list[Row]:
    number, text = row
    shown, comments, at = [], [], 0
    if text.startswith("\\"):  # all of it is said
        return [row]
    while (start := text.find(_COMMENT, at)) >= 0:
        end = text.find(_COMMENT_END, start + len(_COMMENT))
        if end < 0:
            break
        shown.append(text[at:start].rstrip())
        comments.append(_as_note((number, text[start : end + len(_COMMENT_END)])))
        at = end + len(_COMMENT_END)
    rest = "".join([*shown, text[at:]]).strip()
    return [(number, rest), *comments] if rest else comments or [row]


def _write_ruled(row: str) -> str:
    if centred := _CENTRED.fullmatch(row):
        return f"#> {centred['text'].rstrip()}"
    if _COMMAND.fullmatch(row):
        return f"#> {row}"
    if comes_and_goes := _COMES_AND_GOES.fullmatch(row):
        return f"#> {comes_and_goes['what']}"
    ruled = _RULED.fullmatch(row)
    return f"## {ruled['text']}" if ruled else row


def _as_note(row: Row) -> Row:
    words = row[1].removeprefix(_COMMENT).removesuffix(_COMMENT_END).strip("[]/* ")
    return row[0], f"// {words}" if words else ""
