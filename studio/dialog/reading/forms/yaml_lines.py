"""Lists of YAML and TOML, and rows of keys, with a speaker and a text in each item."""

from __future__ import annotations

from itertools import pairwise

import regex

from studio.dialog.directions import write_direction
from studio.dialog.reading.form import Explanation, Form, read_source
from studio.dialog.reading.headings import Role, role_of
from studio.dialog.reading.lexer import Source
from studio.dialog.reading_limits import Cost

_SAID = (Role.SPEAKER, Role.TEXT, Role.DIRECTION)
_KEY = regex.compile(
    r"\s*(?P<item>-\s+)?(?P<key>[A-Za-z_ ]{2,30}?)"
    r"(?::(?:\s+(?P<value>\S.*))?|\s=\s(?P<value>\S.*))\s*"
)
_LIST = regex.compile(r"[A-Za-z_ ]{2,30}:\s*|\[\[[\w.-]{1,40}\]\]")
"""What holds the items: `lines:`, and `[[lines]]` of TOML above each."""
_FEWEST = 2


def _explain(source: Source) -> Explanation | None:
    rows = source.text.splitlines()
    found = [_KEY.fullmatch(row) for row in rows]
    starts = [idx for idx, one in enumerate(found) if one and one["item"]] or _find_turns(found)
    others = [row for row, one in zip(rows, found, strict=True) if one is None]
    if len(starts) < _FEWEST or any(
        row.strip() not in ("", "---") and not _LIST.fullmatch(row) for row in others
    ):
        return None
    source.budget.spend(Cost.LINES, len(starts))
    if not (written := _write(rows, found, starts)):
        return None
    return Explanation(lambda remarks: read_source(source.of(written), remarks))


def _find_turns(found: list[regex.Match[str] | None]) -> list[int]:
    """Where turns begin that are no items: by their speaker, all keys being known."""
    roles = [role_of(one["key"]) if one else None for one in found]
    if any(one and role is None for one, role in zip(found, roles, strict=True)):
        return []
    return [idx for idx, role in enumerate(roles) if role is Role.SPEAKER]


def _write(rows: list[str], found: list[regex.Match[str] | None], starts: list[int]) -> str | None:
    """The items as `[speaker] text`, in the same rows; None if one lacks either."""
    written = [row if idx < starts[0] else "" for idx, row in enumerate(rows)]
    is_listed = any(map(_LIST.fullmatch, rows[: starts[0]]))
    for start, end in pairwise([*starts, len(rows)]):
        values = {
            idx: _unquote(one["value"] or "") for idx in range(start, end) if (one := found[idx])
        }
        keys = {role_of(one["key"]): idx for idx in values if (one := found[idx])}
        if is_listed and len(values) == 1 and None in keys:  # `- Mira: words`, which else is a chat
            (idx, said), name = *values.items(), str(found[keys[None]]["key"])  # type: ignore[index]
            written[idx] = f"[{name}] {said}"
            continue
        if Role.TEXT not in keys or Role.SPEAKER not in keys:
            return None
        given = {role: values[idx] for role, idx in keys.items()}
        how = given.get(Role.DIRECTION)
        said = f"{write_direction(how, is_first=True)} " if how else ""
        written[keys[Role.TEXT]] = f"[{given[Role.SPEAKER]}] {said}{given[Role.TEXT]}"
        for idx, value in values.items():
            if value and (one := found[idx]) and role_of(one["key"]) not in _SAID:
                written[idx] = f"// {rows[idx].strip(' -')}"
    return "\n".join("" if _LIST.fullmatch(row) else row for row in written)


def _unquote(value: str) -> str:
    value = value.rstrip()
    is_quoted = len(value) > 2 and value[0] in "\"'" and value[-1] == value[0]
    return value[1:-1] if is_quoted else value


FORMS = (Form("a list of keys", 4.05, _explain, (": ", ":\t", " = ")),)
