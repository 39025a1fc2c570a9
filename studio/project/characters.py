"""A character's settings in one project: its engine voices, and what its lines inherit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from studio.dialog.attributes import check_params
from studio.dialog.model import MAX_PAUSE_S, ParamValue
from studio.errors import BadInput

MAX_ENGINE_VOICES = 50
_MAX_ID_CHARS = 200


@dataclass(frozen=True, slots=True)
class Character:
    """What belongs to a name in one project, besides the library's voice that is cast for it.

    Attributes:
        voices: Ids of engines' own voices, by the engine's name; on another one the character has
            its automatic voice.
        params: For lines without their own: the engine's parameters, `mood` and `instruct`.
        level_db: Added to the level of its lines where they are laid out, without a new take.
        pan: From -1, left, to 1, right; 0 leaves its lines mono.
        gap_s: The pause after its lines; None for the project's.
    """

    voices: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    level_db: Annotated[float, Field(ge=-30, le=12, allow_inf_nan=False)] = 0.0
    pan: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = 0.0
    gap_s: Annotated[float, Field(ge=0, le=MAX_PAUSE_S, allow_inf_nan=False)] | None = None


PLAIN = Character()
"""A character without settings, as which one isn't kept."""

CHARACTERS_ADAPTER: TypeAdapter[dict[str, Character]] = TypeAdapter(dict[str, Character])

OptionalCharacters = dict[str, Character | None]
CHANGED_CHARACTERS_ADAPTER: TypeAdapter[OptionalCharacters] = TypeAdapter(OptionalCharacters)


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
        isinstance(one, str) and 0 < len(one) <= _MAX_ID_CHARS for pair in pairs for one in pair
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
    "pan": _make_number_parser("A character's place between left and right", -1, 1),
    "gap_s": _make_number_parser("The pause after a character's lines, in seconds,", 0, MAX_PAUSE_S),
}
