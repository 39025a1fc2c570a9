"""The language a line is spoken in where the line doesn't say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from studio.dialog.limits import Limits

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


def told_language(text: str, told: Iterable[str], limits: Limits) -> str | None:
    """The language of text that names none itself.

    Args:
        text: What is spoken.
        told: What is known of its language, the nearest first: the voice's, the project's.
        limits: What the backend can take.

    Returns:
        The first that the backend has, as its own code; None where it would choose that one
        itself, and where there is nothing to choose from.
    """
    known = limits.languages
    if known is None or len(known) == 1:
        return None
    matches = (matching_language(code, known) for code in told)
    found = next(filter(None, matches), None)
    return None if found is None or _is_guessed(found, text, limits) else found


def is_read_as_english(text: str, told: Iterable[str], limits: Limits) -> bool:
    """Whether text is taken for English since nobody says its language."""
    known = limits.languages
    if limits.guess is None or known is None or len(known) == 1:
        return False
    if any(matching_language(code, known) for code in told):
        return False
    return limits.guess(text).casefold().split("-")[0] == "en"


def _is_guessed(language: str, text: str, limits: Limits) -> bool:
    if limits.guess is None:
        return False
    guess, code = limits.guess(text).casefold(), language.casefold()
    return code in {guess, _OTHER_NAMES.get(guess)} or guess.startswith(f"{code}-")
