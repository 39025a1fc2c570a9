"""Which language the multilingual model takes a text for, by its own names of languages."""

from __future__ import annotations

from studio.backends.draft.package import language_of_text

_OTHER_NAMES = {"cmn": "zh", "nb": "no", "nn": "no", "iw": "he"}
_UKRAINIAN = frozenset("іїєґІЇЄҐ")


def language_name(code: str) -> str:
    """The model's name of a language, whatever its region: "zh" of "cmn" or "zh-TW"."""
    code = code.partition("-")[0].lower()
    return _OTHER_NAMES.get(code, code)


def guessed_language(text: str) -> str:
    """The language that a text's script suggests; it may be none that the model speaks."""
    if any(char in _UKRAINIAN for char in text):
        return "uk"  # by its script alone it would pass for Russian
    return language_name(language_of_text(text))
