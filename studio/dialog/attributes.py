"""A line's attributes besides its text: language, seed and parameters of the backend."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import regex

from studio.dialog.gaps import GAP, START, check_gap, check_start
from studio.dialog.model import ParamValue
from studio.errors import ScriptError

MAX_SEED = 2**63 - 1
MAX_PARAMS = 40
MAX_PARAM_CHARS = 2_000

ABOUT = "about"
"""Parameter with what a script says of a line's speaker, such as an age, which casts a voice."""

UNSURE = "unsure"
"""Parameter of a line of which nothing says who speaks; giving it to a speaker takes it away."""

_MOST_KEY_CHARS = 40
_KEY = regex.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ITEM_KEYS = frozenset(("type", "speaker_id", "text", "language", "seed", "params"))
_RESERVED = _ITEM_KEYS.union(("speaker", "lang", "audio", "duration", "path"))
_LANGUAGE = regex.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,6}")
_INTEGER = regex.compile(r"[+-]?\d{1,20}", regex.ASCII)
_DECIMAL = regex.compile(r"[+-]?(\d{1,40}\.?\d{0,40}|\.\d{1,40})(e[+-]?\d{1,5})?", regex.ASCII)
_BARE_WORD = regex.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SURROGATE = regex.compile(r"\p{Cs}")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Attributes:
    """A line's language, seed and parameters; all valid."""

    language: str | None = None
    seed: int | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)


def parse_attributes(parts: list[str]) -> Attributes:
    """Read `lang:de`, `seed:42`, `speed:1.2` and the like.

    Args:
        parts: One `name:value` each; blank ones are skipped.

    Raises:
        ScriptError: One isn't of that form, is given twice or has an invalid value.
    """
    found: dict[str, ParamValue] = {}
    for part in filter(str.strip, parts):
        key, value = _key_and_value(part)
        if key in found:
            raise ScriptError(f"“{key}” is given twice. Keep one of them.")
        found[key] = value
    language, seed = found.pop("language", None), found.pop("seed", None)
    return Attributes(
        language=None if language is None else check_language(str(language)),
        seed=None if seed is None else check_seed(seed),
        params=check_params(found),
    )


def write_attributes(attributes: Attributes) -> list[str]:
    """Write attributes as `parse_attributes` reads them; no part holds `[ ] |`."""
    parts = [] if attributes.language is None else [f"lang:{attributes.language}"]
    if attributes.seed is not None:
        parts.append(f"seed:{attributes.seed}")
    return parts + [f"{key}:{_write_value(value)}" for key, value in attributes.params.items()]


def check_language(code: str) -> str:
    """Check that a language has the form of a BCP-47 code; `de_AT` becomes `de-AT`.

    Raises:
        ScriptError: It hasn't.
    """
    code = code.strip().replace("_", "-")
    if not _LANGUAGE.fullmatch(code):
        raise ScriptError(f"“{code[:40]}” is no language code. Write one such as en, de or pt-BR.")
    return code


def check_seed(seed: ParamValue) -> int:
    """Check that a seed is within 0..`MAX_SEED`.

    Raises:
        ScriptError: It isn't such a whole number.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        shown = str(seed)[:40]
        raise ScriptError(f"The seed {shown} can't be used: write a whole number from 0 up.")
    return seed


def check_params(params: Mapping[str, ParamValue | None]) -> dict[str, ParamValue]:
    """Check a line's parameters, wherever it comes from: script, items, edit or import.

    Returns:
        Those that have a value.

    Raises:
        ScriptError: There are more than `MAX_PARAMS`, or as `check_param`.
    """
    if len(params) > MAX_PARAMS:
        count = len(params)
        raise ScriptError(f"A line has at most {MAX_PARAMS} settings; this one has {count:,}.")
    return {key: check_param(key, value) for key, value in params.items() if value is not None}


def check_param(key: str, value: ParamValue) -> ParamValue:
    """Check that every format can write a parameter.

    Raises:
        ScriptError: Its name is reserved or malformed, or its value can't be written.
    """
    if len(key) > _MOST_KEY_CHARS or not _may_be_key(key):
        raise ScriptError(
            f"“{key[:40]}” can't be a setting's name here. "
            "Give a line lang, seed or a setting of the voice, such as speed:1.2."
        )
    if isinstance(value, str) and len(value) > MAX_PARAM_CHARS:
        raise ScriptError(f"The value of “{key}” is longer than {MAX_PARAM_CHARS:,} characters.")
    if isinstance(value, str) and _SURROGATE.search(value):
        raise ScriptError(f"The value of “{key}” holds characters that no text file can.")
    too_large = isinstance(value, int) and abs(value) > MAX_SEED
    if too_large or (isinstance(value, float) and not math.isfinite(value)):
        raise ScriptError(f"The value of “{key}” is not a number that can be used.")
    checks = {GAP: check_gap, START: check_start}
    return checks[key](value) if key in checks else value


@lru_cache(maxsize=1_000)  # all lines have the same few
def _may_be_key(key: str) -> bool:
    return key not in _RESERVED and _KEY.fullmatch(key) is not None


def _key_and_value(part: str) -> tuple[str, ParamValue]:
    key, colon, written = part.partition(":")
    key, written = key.strip(), written.strip()
    if not colon or not written:
        raise ScriptError(
            f"“{part.strip()[:40]}” can't be read. Behind the name write pairs such as "
            "[Anna | lang:de | seed:42 | speed:1.2]."
        )
    if key in ("lang", "language"):
        return "language", written
    return key, _read_value(written)


def _read_value(written: str) -> ParamValue:
    if written.startswith('"'):
        return _read_quoted(written)
    if _INTEGER.fullmatch(written):
        return int(written)
    if _DECIMAL.fullmatch(written.lower()):
        return float(written)
    return _BOOLEANS.get(written, written)


def _read_quoted(written: str) -> str:
    try:
        value = json.loads(written)
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise ScriptError(f"The value {written[:40]} lacks its closing quotation mark.")
    return value


def _write_value(value: ParamValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return repr(value)
    if _BARE_WORD.fullmatch(value) and value not in _BOOLEANS:
        return value
    return quote(value)


def quote(text: str) -> str:
    r"""Write text as a JSON string of visible ASCII without `[ ] |`, which headers are made of."""
    written = json.dumps(text)
    return written.replace("[", r"\u005b").replace("]", r"\u005d").replace("|", r"\u007c")


MAX_PATH_CHARS = 1_000
_UNUSABLE = regex.compile(r"[\x00\p{Cs}]")


def check_audio_path(path: str) -> str:
    """Check that a file can have a path; it isn't resolved here.

    Raises:
        ScriptError: It is blank, too long, or holds characters no path can have.
    """
    if len(path) > MAX_PATH_CHARS:
        raise ScriptError(f"The path of audio is longer than {MAX_PATH_CHARS:,} characters.")
    if not path.strip() or _UNUSABLE.search(path):
        raise ScriptError("Audio needs the path of a file, such as [audio: bell.wav].")
    return path


def read_audio_path(written: str) -> str:
    """Read a path as written in a script, with or without quotation marks.

    Raises:
        ScriptError: As `check_audio_path`, or the closing quotation mark is missing.
    """
    if not written.startswith('"'):
        return check_audio_path(written)
    try:
        path = json.loads(written)
    except ValueError as error:
        raise ScriptError(f"The path {written[:80]} lacks its closing quotation mark.") from error
    return check_audio_path(path)


def write_audio_path(path: str) -> str:
    """Write a path as `read_audio_path` reads it, with quotation marks if it needs them."""
    plain = path.isprintable() and path == path.strip() and not set('[]|"').intersection(path)
    return path if plain else quote(path)
