"""`--character`: what the lines of a speaker have where they say nothing themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from studio.backends.base import Backend
from studio.dialog.attributes import parse_attributes
from studio.dialog.model import ParamValue, Speech, clean_name, name_key
from studio.dialog.planning import INSTRUCT, MOOD, VOICE
from studio.errors import BadInput, SettingError, StudioError
from studio.project.characters import PLAIN, Character, change_character


def parse_character(text: str) -> tuple[str, Character]:
    """Read `NAME | speed:1.1 | level:-3`, with attributes as a script's line has them.

    Returns:
        The name's key, and the settings.

    Raises:
        SettingError: There is no name, or an attribute can't be used.
    """
    name, *parts = text.split("|")
    try:
        found = parse_attributes(parts)
        if not parts or found.language or found.seed is not None:
            raise BadInput("write --character 'NAME | speed:1.1 | level:-3'.")
        params = dict(found.params)
        level_db = params.pop("level", 0.0)
        fields = {"params": params, "level_db": level_db, "pan": params.pop("pan", 0.0)}
        return name_key(clean_name(name.strip())), change_character(PLAIN, fields)
    except StudioError as error:
        raise SettingError(f"--character {text} can't be used: {error}") from error


def check_characters(characters: Iterable[Character], backend: Backend) -> None:
    """Check the parameters of characters."""
    for one in characters:
        params = {
            key: value for key, value in one.params.items() if key not in (MOOD, INSTRUCT, VOICE)
        }
        backend.capabilities.check_params(backend.title, params)


def list_voices(characters: Mapping[str, Character]) -> dict[str, str]:
    """The names of the voices that characters have, by theirs."""
    return {key: str(one.params[VOICE]) for key, one in characters.items() if VOICE in one.params}


def merge_params(
    line: Speech, params: Mapping[str, ParamValue], characters: Mapping[str, Character]
) -> dict[str, ParamValue]:
    """A line's own parameters, and those for all lines that its character doesn't set."""
    character = characters.get(name_key(line.speaker), PLAIN)
    others = {name: one for name, one in params.items() if name not in character.params}
    return {**others, **line.params}
