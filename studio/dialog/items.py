"""Dialog items in JSON: a list, or JSON lines with one item each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal

import regex
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from studio.dialog.attributes import check_audio_path, check_language, check_params, check_seed
from studio.dialog.gaps import GAP, check_gap
from studio.dialog.model import (
    MAX_LINES,
    MAX_SCRIPT_BYTES,
    Audio,
    Dialog,
    Line,
    ParamValue,
    ParsedScript,
    Silence,
    Speech,
    Unspoken,
    UnspokenKind,
    clean_name,
    paragraph,
    spelling_notices,
    with_place,
)
from studio.dialog.tags import check_pause, cut_pauses
from studio.errors import ScriptError

# With the first key whole: a speaker may be called `{"`.
_FIRST_KEY = r"\{\s*\"(?:[^\"\\\n]|\\.){0,200}+\"\s*:"
JSON_BEGINS = regex.compile(
    rf"\s*(?:{_FIRST_KEY}|\[\s*(?:{_FIRST_KEY}|\]\s*$|\[\s*\"[^\"]*+\"\s*,\s*\"))"
)
"""Finds text that is to be read as JSON: objects, or pairs of a name and words."""

_HOW = 'such as {"type": "speech", "speaker_id": "Anna", "text": "Good evening."}'


class _SpeechItem(BaseModel):
    """Any other key is a parameter of the backend; null stands for its default."""

    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, ParamValue | None] = Field(init=False)

    type: Literal["speech"]
    speaker_id: str
    text: str
    language: str | None = None
    seed: int | None = None
    params: dict[str, ParamValue | None] = Field(default_factory=dict)

    def line(self, number: int) -> Line:
        text = paragraph(self.text)
        cut_pauses(text)
        return Speech(
            clean_name(self.speaker_id),
            text,
            None if self.language is None else check_language(self.language),
            None if self.seed is None else check_seed(self.seed),
            check_params({**self.params, **self.__pydantic_extra__}),
            number,
        )


class _SilenceItem(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["silence"]
    duration: float

    def line(self, number: int) -> Line:
        return Silence(check_pause(self.duration, written=f"of {self.duration:g} s"), number)


class _AudioItem(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["audio"]
    path: str
    gap_s: float | None = None

    def line(self, number: int) -> Line:
        gap_s = None if self.gap_s is None else check_gap(self.gap_s)
        return Audio(check_audio_path(self.path), number, gap_s)


class _UnspokenItem(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["heading", "note", "action"]
    text: str

    def line(self, number: int) -> Line:
        return Unspoken(paragraph(self.text), UnspokenKind(self.type), number)


_AnyItem = _SpeechItem | _SilenceItem | _AudioItem | _UnspokenItem
_Item = Annotated[_AnyItem, Field(discriminator="type")]
_ITEM: TypeAdapter[_AnyItem] = TypeAdapter(_Item)


def parse_items(text: str) -> ParsedScript:
    """Read a JSON list of items, or JSON lines; a list starts with `[`.

    Lines are numbered by item in a list, by line in JSON lines.

    Raises:
        ScriptError: It isn't such a list, or an item is invalid; names the item or line.
    """
    if len(text) > MAX_SCRIPT_BYTES:
        raise ScriptError(
            f"The items are larger than {MAX_SCRIPT_BYTES // 1_000_000} MB. Divide them into parts."
        )
    text = text.removeprefix("\ufeff")
    is_list = text.lstrip().startswith("[")
    unit = "Item" if is_list else "Line"
    items = _list_items(text) if is_list else _line_items(text)
    lines = tuple(_read_item(item, number, unit) for number, item in islice(items, MAX_LINES + 1))
    if not lines:
        raise ScriptError(f"The file holds no items. Write at least one, {_HOW}.")
    if len(lines) > MAX_LINES:
        raise ScriptError(f"A dialog has at most {MAX_LINES:,} items. Divide it into parts.")
    return ParsedScript(Dialog(lines), spelling_notices(lines))


def write_items(dialog: Dialog) -> str:
    """Write a dialog as a JSON list with one item a line."""
    return "[\n" + ",\n".join(_write_item(line) for line in dialog) + "\n]\n"


def write_json_lines(dialog: Dialog) -> str:
    """Write a dialog as JSON lines."""
    return "".join(f"{_write_item(line)}\n" for line in dialog)


def _list_items(text: str) -> Iterator[tuple[int, object]]:
    items = _parse_json(text)
    assert isinstance(items, list), "text that begins with [ is a list"
    return iter(enumerate(items, start=1))


def _line_items(text: str) -> Iterator[tuple[int, object]]:
    # Not splitlines(): JSON strings may contain Unicode's line breaks unescaped.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            with with_place(number):
                yield number, _parse_json(line)


def _parse_json(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise ScriptError(
            f"This is no valid JSON: {error.msg} ({place}column {error.colno})."
        ) from error
    except RecursionError as error:
        raise ScriptError("This JSON is nested too deeply to be dialog items.") from error
    except ValueError as error:
        raise ScriptError("This JSON holds a number that is too long.") from error


def _refuse_constant(name: str) -> float:
    raise ScriptError(f"This JSON holds {name}, which is not a number that can be used.")


def _read_item(item: object, number: int, unit: str) -> Line:
    with with_place(number, unit=unit):
        try:
            return _ITEM.validate_python(item).line(number)
        except ValidationError as error:
            raise ScriptError(_explain(error)) from error


def _explain(error: ValidationError) -> str:
    """The first fault of an item, as a sentence."""
    first = error.errors(include_url=False, include_context=False)[0]
    key = "".join(f" “{part}”" for part in first["loc"][1:2])
    match first["type"]:
        case "union_tag_invalid" | "union_tag_not_found":
            return (
                'An item has a "type" of "speech", "silence", "audio", "heading", "note" or '
                f'"action", {_HOW}.'
            )
        case "model_attributes_type" | "model_type" | "dict_type":
            return f"An item is a JSON object, {_HOW}."
        case "missing":
            return f"The item lacks{key}."
        case "extra_forbidden":
            return f"The item has an unknown{key}. Take it out."
        case _:
            reason = first["msg"].removeprefix("Input ")
            return f"The item's{key} can't be used: it {reason}."


def _write_item(line: Line) -> str:
    return json.dumps(_item(line), ensure_ascii=False, allow_nan=False)


def _item(line: Line) -> dict[str, object]:
    match line:
        case Silence():
            return {"type": "silence", "duration": line.duration_s}
        case Audio():
            gap = {} if line.gap_s is None else {GAP: line.gap_s}
            return {"type": "audio", "path": line.path, **gap}
        case Unspoken():
            return {"type": line.kind.value, "text": line.text}
        case Speech():
            item = {"type": "speech", "speaker_id": line.speaker, "text": line.text}
            settings = {"language": line.language, "seed": line.seed, **line.params}
            return item | {key: value for key, value in settings.items() if value is not None}
