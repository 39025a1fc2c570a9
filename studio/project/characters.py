"""A character's settings in one project: its engine voices, and what its lines inherit."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from studio.dialog.attributes import check_params
from studio.dialog.directions import directed_mood
from studio.dialog.gaps import MAX_GAP_S
from studio.dialog.model import Dialog, Line, ParamValue, Speech, name_key
from studio.dialog.planning import MOOD
from studio.errors import BadInput
from studio.voices.cast import Cast

PAN = "pan"
"""The field of a character of which files state the newest version of their format."""

MAX_ENGINE_VOICES = 50
_MAX_ID_CHARS = 200
_SURROGATE = re.compile("[\ud800-\udfff]")  # which no file can hold


@dataclass(frozen=True, slots=True)
class Character:
    """What belongs to a name in one project, besides the library's voice that is cast for it.

    Attributes:
        voices: Ids of engines' own voices, by the engine's name; on another one the character has
            its automatic voice.
        params: For lines without their own: the engine's parameters, `mood` and `instruct`.
        level_db: Added to the level of its lines where they are laid out, without a new take.
        gap_s: About so long is the gap before its lines; None for the project's.
        pan: Where its lines are between left, -1, and right, 1, in a scene; no take has it.
    """

    voices: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    level_db: Annotated[float, Field(ge=-30, le=12, allow_inf_nan=False)] = 0.0
    gap_s: Annotated[float, Field(ge=0, le=MAX_GAP_S, allow_inf_nan=False)] | None = None
    pan: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = 0.0


PLAIN = Character()
"""A character without settings, as which one isn't kept."""

CHARACTERS_ADAPTER: TypeAdapter[dict[str, Character]] = TypeAdapter(dict[str, Character])

OptionalCharacters = dict[str, Character | None]
CHANGED_CHARACTERS_ADAPTER: TypeAdapter[OptionalCharacters] = TypeAdapter(OptionalCharacters)


def inherit_params(
    own: Mapping[str, ParamValue], text: str, character: Character, moods: Collection[str]
) -> Mapping[str, ParamValue]:
    """A line's parameters with those of its character where it has none of its own.

    A stage direction of the line goes before the character's mood.

    Args:
        own: Of the line.
        text: Of the line.
        character: Who speaks it.
        moods: Of which the character's voice has samples.
    """
    inherited = character.params
    if MOOD in inherited and directed_mood(text, moods):
        inherited = {name: one for name, one in inherited.items() if name != MOOD}
    return {**inherited, **own} if inherited else own


def gaps_before(characters: Mapping[str, Character]) -> dict[str, float]:
    """The gaps before the lines of those characters that have one, by the name's key."""
    return {name: one.gap_s for name, one in characters.items() if one.gap_s is not None}


def inherit_in_dialog(dialog: Dialog, characters: Mapping[str, Character], cast: Cast) -> Dialog:
    """A dialog that is no project, with what its lines have of their characters.

    Args:
        dialog: The lines.
        characters: By the name's key.
        cast: Has the moods of their voices.
    """
    if not characters:
        return dialog
    moods_of = cache(cast.list_moods)

    def inherit(line: Line) -> Line:
        if not isinstance(line, Speech) or name_key(line.speaker) not in characters:
            return line
        character = characters[name_key(line.speaker)]
        moods = moods_of(line.speaker)
        return replace(line, params=inherit_params(line.params, line.text, character, moods))

    return Dialog(tuple(map(inherit, dialog)))


def encode_character(character: Character) -> dict[str, Any]:
    """A character as a record, without defaults."""
    return {name: value for name, value in asdict(character).items() if value != _DEFAULTS[name]}


_DEFAULTS = asdict(PLAIN)


def change_character(character: Character, fields: Mapping[str, Any]) -> Character:
    """Change settings of a character; None sets one back.

    Raises:
        BadInput: There is no such setting, or its value is invalid.
    """
    checked: dict[str, Any] = {}
    for name, value in fields.items():
        check = _FIELD_PARSERS.get(name)
        if check is None:
            raise BadInput(f"A character has no setting “{name[:40]}”.")
        checked[name] = _DEFAULTS[name] if value is None else check(value)
    return replace(character, **checked)


def check_character(character: Character) -> None:
    """Check that a character from a file has only values that an edit could have set.

    Raises:
        BadInput: It has others.
    """
    if change_character(PLAIN, asdict(character)) != character:
        raise BadInput("A character's settings aren't as they are kept.")


def _parse_voices(value: Any) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    is_usable = isinstance(value, Mapping) and len(value) <= MAX_ENGINE_VOICES
    if not is_usable or not all(
        isinstance(one, str) and 0 < len(one) <= _MAX_ID_CHARS and not _SURROGATE.search(one)
        for pair in pairs
        for one in pair
    ):
        raise BadInput("A character's voices are ids of voices, by the engine's name.")
    return dict(value)


def _parse_params(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput("A character's parameters are a table of settings.")
    for name, one in value.items():
        if not isinstance(one, float | int | str | bool):
            raise BadInput(f"The value of “{str(name)[:40]}” can't be used.")
    return check_params(dict(value))


def _make_number_parser(what: str, low: float, high: float) -> Callable[[Any], float]:
    def parse(value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high:
            raise BadInput(f"{what} is a number from {low:g} to {high:g}.")
        return float(value)

    return parse


_FIELD_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "voices": _parse_voices,
    "params": _parse_params,
    "level_db": _make_number_parser("A character's level, in dB,", -30, 12),
    "gap_s": _make_number_parser("The gap before a character's lines, in seconds,", 0, MAX_GAP_S),
    PAN: _make_number_parser("A character's pan", -1, 1),
}
