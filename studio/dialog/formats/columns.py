"""What the columns of a table hold, told by their headings."""

from __future__ import annotations

from enum import StrEnum

import regex


class Role(StrEnum):
    """What a column is to a dialog; the value is the heading written for it."""

    SPEAKER = "speaker"
    TEXT = "text"
    LANGUAGE = "language"
    SEED = "seed"
    PAUSE = "pause"
    PAUSE_BEFORE = "pause before"
    AUDIO = "audio"
    IGNORED = ""


PARAM_PREFIX = "param:"
"""Stands before a parameter whose name would be taken for another heading."""

# The earlier of two headings for one role wins.
_HEADINGS = {
    Role.SPEAKER: "speaker speakername speakerid character charactername char name role actor "
    "voice who person sprecher figur rolle personnage personaje personaggio 角色 说话人 話者",
    Role.TEXT: "text dialogue dialog line lines sentence utterance speech words says content "
    "transcript caption subtitle script quote satz dialogtext texte texto testo 台词 文本 セリフ",
    Role.LANGUAGE: "language lang locale languagecode sprache langue idioma lingua 语言 言語",
    Role.SEED: "seed",
    Role.PAUSE: "pause pauseafter silence silenceafter gap wait delay duration",
    Role.PAUSE_BEFORE: "pausebefore silencebefore",
    Role.AUDIO: "audio audiofile audiopath path file filename",
    Role.IGNORED: "id no nr index number linenumber lineno row type start end starttime endtime "
    "time timecode",
}
_ROLES = {
    heading: (role, rank)
    for role, headings in _HEADINGS.items()
    for rank, heading in enumerate(headings.split())
}
_NOT_IN_WORDS = regex.compile(r"[^\p{L}\p{N}]+")
_UNIT = regex.compile(r"(?<=pause|after|before|silence|gap|delay|duration)(ms|s|sec|seconds?)$")


def role_of(heading: str) -> Role | None:
    """What a heading means, however it is spaced or cased; None for an unknown one."""
    found = _ROLES.get(_words(heading)[0])
    return found[0] if found else None


def is_in_milliseconds(heading: str) -> bool:
    """Whether the heading of a pause says so, as `pause (ms)` does."""
    return _words(heading)[1] == "ms"


def assign(headings: list[str]) -> dict[Role, int]:
    """The column of each role; where two fit one role, that of the better heading."""
    best: dict[Role, tuple[int, int]] = {}
    for column, heading in enumerate(headings):
        if found := _ROLES.get(_words(heading)[0]):
            role, rank = found
            best[role] = min(best.get(role, (rank, column)), (rank, column))
    best.pop(Role.IGNORED, None)
    return {role: column for role, (_, column) in best.items()}


def _words(heading: str) -> tuple[str, str]:
    """A heading in its plainest form, and the unit at its end."""
    plain = _NOT_IN_WORDS.sub("", heading.casefold())
    unit = _UNIT.search(plain)
    return (plain[: unit.start()], unit[1]) if unit else (plain, "")
