"""Text in another language than the one it is read in, where nobody names its language."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from studio.backends.base import Backend
from studio.backends.espeak.espeak_voices import language_of_text
from studio.dialog.model import (
    LANGUAGE_CODES,
    Notice,
    SpeechLimits,
    find_reading_language,
    matching_language,
    name_key,
    name_language,
    normalize_spoken_text,
)
from studio.dialog.planning import LanguagesOf
from studio.project.document import LineKind
from studio.project.session import ProjectSession

_MOST_CHARS = 2_000
"""Of a speaker's text; a fortieth leaves no doubt."""

_SURE = 0.8
"""Of 2,400 pieces of 60 to 300 characters in four languages, one was taken for another then."""

_MOST_SPEAKERS = 50
"""Whose text is judged apart from that of all."""

_OTHER_CODES = {"cmn": "zh"}


@dataclass(frozen=True, slots=True)
class MisreadText:
    """What is read in another language than its own.

    Attributes:
        language: Its own, by its words or else by its letters; the backend's code of it if any.
        read_as: The one it is read in.
        is_known: Whether the backend has its own.
        speakers: Whose text it is; empty for the whole dialog's.
    """

    language: str
    read_as: str
    is_known: bool
    speakers: tuple[str, ...] = ()

    def describe(self, title: str) -> Notice:
        """A sentence for who renders a script; `title` is the backend's."""
        own, other = name_language(self.language), name_language(self.read_as)
        whose = " and ".join(self.speakers)
        begin = f"The {f'text of {whose}' if whose else 'script'} seems to be {own}"
        begin = f"{begin} and is read as {other}"
        if self.is_known:
            return Notice(f"{begin}, as nothing says so. Name the language: {self.language}.")
        return Notice(f"{begin}, as {title} has no {own}. Choose another voice engine.")


def find_misread_text(
    lines: Iterable[tuple[str, str, str | None]], languages_of: LanguagesOf, backend: Backend
) -> MisreadText | None:
    """Find text that a backend reads in another language than its own.

    A line may be too short to tell: all lines of a speaker are judged together, and those of all
    speakers unless one of them surely speaks the language that is read.

    Args:
        lines: The speaker, text and language of each; one that names its language isn't judged.
        languages_of: The languages that are named for a speaker's lines.
        backend: Reads them.
    """
    limits = backend.capabilities.limits()
    if limits.languages is None:
        return None
    texts, names = defaultdict[str, str](str), dict[str, str]()
    for speaker, text, language in lines:
        key = name_key(speaker)
        if language is None and len(texts[key]) < _MOST_CHARS:
            texts[key] = f"{texts[key]}{text} "[:_MOST_CHARS]
            names.setdefault(key, speaker)
    unnamed = {
        names[key]: text
        for key, text in texts.items()
        if text.strip() and find_reading_language(text, languages_of(names[key]), limits)
    }
    most = sorted(unnamed, key=lambda name: -len(unnamed[name]))[:_MOST_SPEAKERS]
    judged = {name: _judge(unnamed[name], limits) for name in most}
    is_mixed = any(find_text_language(unnamed[name]) for name in most if judged[name] is None)
    if not is_mixed:
        return _judge("".join(unnamed.values()), limits)
    first = next(filter(None, judged.values()), None)
    alike = tuple(name for name, one in judged.items() if one == first)
    return None if first is None else replace(first, speakers=alike)


def find_misread_lines(session: ProjectSession) -> MisreadText | None:
    """The same of a project's lines."""
    lines = (
        (line.speaker, normalize_spoken_text(line.text), line.language)
        for line in session.document
        if line.kind is LineKind.SPEECH and line.speaker is not None
    )
    return find_misread_text(lines, cache(session.cast.list_languages), session.backend)


def _judge(text: str, limits: SpeechLimits) -> MisreadText | None:
    text = text[:_MOST_CHARS]
    own, read_as = find_text_language(text), find_reading_language(text, (), limits)
    if own is None or read_as is None or matching_language(own, frozenset({read_as})):
        return None
    match = matching_language(own, limits.languages or frozenset())
    return MisreadText(match or own, read_as, match is not None)


@lru_cache(maxsize=_MOST_SPEAKERS + 1)
def find_text_language(text: str) -> str | None:
    """The language of a text by its words, or else by its letters; None if neither tells."""
    code, sure = _load_identifier().classify(text.encode("utf-8", "replace"))
    if sure >= _SURE and code in LANGUAGE_CODES:
        return str(code)
    by_letters = language_of_text(text)
    return None if by_letters.startswith("en") else _OTHER_CODES.get(by_letters, by_letters)


@cache
def _load_identifier() -> Any:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
