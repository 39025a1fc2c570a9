"""The language a line is spoken in where the line doesn't say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from studio.dialog.limits import SpeechLimits

_OTHER_NAMES = {"zh": "cmn", "cmn": "zh"}


@lru_cache(maxsize=1_000)  # asked for each line of a dialog
def matching_language(code: str, known: frozenset[str]) -> str | None:
    """The backend's own code: the same, else a wider one, else one of the same language."""
    by_key = {language.casefold(): language for language in sorted(known)}
    subtags = code.casefold().split("-")
    for length in range(len(subtags), 0, -1):
        if match := by_key.get("-".join(subtags[:length])):
            return match
    same = {subtags[0], _OTHER_NAMES.get(subtags[0])}
    return next((by_key[key] for key in by_key if key.split("-")[0] in same), None)


def resolve_language(text: str, known_codes: Iterable[str], limits: SpeechLimits) -> str | None:
    """The language of text that names none itself.

    Args:
        text: What is spoken.
        known_codes: What is known of its language, the nearest first: the voice's, the project's.
        limits: What the backend can take.

    Returns:
        The first that the backend has, as its own code; None where it would choose that one
        itself, and where there is nothing to choose from.
    """
    known = limits.languages
    if known is None or len(known) == 1:
        return None
    matches = (matching_language(code, known) for code in known_codes)
    found = next(filter(None, matches), None)
    return None if found is None or _is_guessed(found, text, limits) else found


def is_read_as_english(text: str, known_codes: Iterable[str], limits: SpeechLimits) -> bool:
    """Whether text is taken for English since nobody says its language."""
    known = limits.languages
    if limits.guess is None or known is None or len(known) == 1:
        return False
    if any(matching_language(code, known) for code in known_codes):
        return False
    return limits.guess(text).casefold().split("-")[0] == "en"


def _is_guessed(language: str, text: str, limits: SpeechLimits) -> bool:
    if limits.guess is None:
        return False
    guess, code = limits.guess(text).casefold(), language.casefold()
    return code in {guess, _OTHER_NAMES.get(guess)} or guess.startswith(f"{code}-")


_CODES = {
    "ar": "arabic العربية",
    "da": "danish dansk",
    "de": "german deutsch",
    "el": "greek ελληνικά",
    "en": "english englisch anglais inglés",
    "es": "spanish español castellano spanisch",
    "fi": "finnish suomi",
    "fr": "french français französisch",
    "he": "hebrew עברית",
    "hi": "hindi हिन्दी",
    "it": "italian italiano italienisch",
    "ja": "japanese 日本語",
    "ko": "korean 한국어",
    "nl": "dutch nederlands",
    "no": "norwegian norsk",
    "pl": "polish polski",
    "pt": "portuguese português",
    "ru": "russian русский",
    "sv": "swedish svenska",
    "sw": "swahili kiswahili",
    "tr": "turkish türkçe",
    "uk": "ukrainian українська",
    "zh": "chinese mandarin 中文",
}
_BY_NAME = {name: code for code, names in _CODES.items() for name in names.split()}


def code_of(written: str) -> str:
    """The BCP-47 code of a language's name; anything else comes back as it is."""
    return _BY_NAME.get(written.strip().casefold(), written)
