"""Scripts in columns: names in one and words in the next, as for radio."""

from __future__ import annotations

import regex

from studio.dialog.reading.form import Explanation, Form, read_source
from studio.dialog.reading.lexer import Source

_COLUMNS = regex.compile(
    r"(?:\d{1,4}[.)]?\s+)?(?P<name>\p{Lu}[\p{Lu}\d .'’/-]{0,30}?)(?:[ \t]{4,}|\t+)(?P<text>\S.*)"
)
_GOES_ON = regex.compile(r"(?:[ \t]{8,}|\t+)\S.*")
_SCENE = regex.compile(r"SCENE\s+\d+\.?", regex.IGNORECASE)
_EFFECTS = regex.compile(r"(?:F/?X|SFX|SOUND|MUSIC|GRAMS|ATMOS)")
_FEWEST = 3


def _explain(source: Source) -> Explanation | None:
    if source.delimiter is not None:
        return None
    rows = source.text.splitlines()
    found = [_COLUMNS.fullmatch(row) for row in rows]
    named = sum(one is not None for one in found)
    other = sum(
        bool(row.strip()) and one is None and not _GOES_ON.fullmatch(row)
        for row, one in zip(rows, found, strict=True)
    )
    if named < _FEWEST or other > named // _FEWEST:
        return None
    written = "\n".join(
        row if one is None else _write(one["name"].strip(), " ".join(one["text"].split()))
        for row, one in zip(rows, found, strict=True)
    )
    return Explanation(lambda remarks: read_source(source.of(written), remarks))


def _write(name: str, text: str) -> str:
    if _SCENE.fullmatch(name):
        return f"## {name} {text}"
    return f"[SFX: {text}]" if _EFFECTS.fullmatch(name) else f"{name}: {text}"


_HANGING = regex.compile(r"[ \t]+\S.*")
_ABOVE = regex.compile(r"(?P<name>\p{L}[\p{L}\d.'’-]*(?:\s[\p{L}\d.'’-]+){0,3}):?")


def _explain_hanging(source: Source) -> Explanation | None:
    """Names in rows of their own, and all words indented below them."""
    rows = [row for row in source.text.splitlines() if row.strip()]
    names = [found["name"] for row in rows if (found := _ABOVE.fullmatch(row))]
    hanging = sum(_HANGING.fullmatch(row) is not None for row in rows)
    is_all = names and len(names) + hanging == len(rows) and _ABOVE.fullmatch(rows[0])
    if not is_all or len(names) < 2 or len(names) > hanging or len(set(names)) < 2:
        return None
    if len(names) > _FEWEST and len(set(names)) == len(names):
        return None
    written = "\n".join(
        f"[{found['name']}]" if (found := _ABOVE.fullmatch(row)) else row.strip() for row in rows
    )
    return Explanation(lambda remarks: read_source(source.of(written), remarks))


FORMS = (
    Form("a script in columns", 4.1, _explain, ("    ", "\t")),
    Form("words indented below names", 4.0, _explain_hanging, ("\n ", "\n\t")),
)
