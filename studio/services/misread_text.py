"""Text in another language than the one it is read in, where nobody names its language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from studio.backends.base import Backend
from studio.backends.espeak.espeak_voices import language_of_text
from studio.dialog.model import (
    LANGUAGE_CODES,
    SpeechLimits,
    find_reading_language,
    matching_language,
    name_language,
    normalize_spoken_text,
)
from studio.dialog.planning import LanguagesOf
from studio.project.document import LineKind
from studio.project.session import ProjectSession

_MOST_CHARS = 2_000
_MOST_SPEAKERS = 50
_SURE = 0.8
"""Of 2,400 pieces of 60 to 300 characters in four languages, one was taken for another then."""


@dataclass(frozen=True, slots=True)
class MisreadText:
    """What is read as another language than its own, which the backend may have under this code.

    `speakers` are those whose text it is; empty for the whole dialog's.
    """

    language: str
    read_as: str
    is_known: bool
    speakers: tuple[str, ...] = ()

    def describe(self, title: str) -> str:
        """A sentence for who renders a script; `title` is the backend's."""
        whose = f"text of {' and '.join(self.speakers)}" if self.speakers else "script"
        own, other = name_language(self.language), name_language(self.read_as)
        remedy = f"as nothing says so. Name the language: {self.language}."
        if not self.is_known:
            remedy = f"as {title} has no {own}. Choose another voice engine."
        return f"The {whose} seems to be {own} and is read as {other}, {remedy}"


def find_misread_text(
    lines: Iterable[tuple[str, str, str | None]], languages_of: LanguagesOf, backend: Backend
) -> MisreadText | None:
    """Find text that a backend reads as another language than its own.

    A line may be too short to tell: all lines of a speaker are judged together, and those of all
    speakers unless one of them surely speaks the language that is read.

    Args:
        lines: The speaker, text and language of each; one that names its language isn't judged.
        languages_of: The languages that are named for a speaker's lines.
        backend: Reads them.
    """
    limits = backend.capabilities.limits()
    texts: dict[str, str] = {}
    for speaker, text, language in lines:
        if language is None and len(said := texts.get(speaker, "")) < _MOST_CHARS:
            texts[speaker] = f"{said}{text} "[:_MOST_CHARS]
    texts = {
        speaker: text
        for speaker, text in sorted(texts.items(), key=lambda one: -len(one[1]))[:_MOST_SPEAKERS]
        if text.strip() and find_reading_language(text, languages_of(speaker), limits)
    }
    judged = {speaker: _judge(text, limits) for speaker, text in texts.items()}
    if not any(find_text_language(texts[one]) for one in texts if judged[one] is None):
        return _judge("".join(texts.values())[:_MOST_CHARS], limits)
    first = next(filter(None, judged.values()), None)
    return first and replace(first, speakers=tuple(one for one in judged if judged[one] == first))


def find_misread_lines(session: ProjectSession) -> MisreadText | None:
    """The same of a project's lines."""
    lines = (
        (line.speaker, normalize_spoken_text(line.text), line.language)
        for line in session.document
        if line.kind is LineKind.SPEECH and line.speaker is not None
    )
    return find_misread_text(lines, session.cast.list_languages, session.backend)


def _judge(text: str, limits: SpeechLimits) -> MisreadText | None:
    own, read_as = find_text_language(text), find_reading_language(text, (), limits)
    if own is None or read_as is None or matching_language(own, frozenset({read_as})):
        return None
    match = matching_language(own, limits.languages or frozenset())
    return MisreadText(match or own, read_as, match is not None)


@lru_cache(maxsize=_MOST_SPEAKERS + 1)
def find_text_language(text: str) -> str | None:
    """The language of a text by its words, or else by its letters; None if neither tells."""
    code, sure = _load_identifier().classify(text.encode("utf-8", "replace"))
    by_letters = language_of_text(text).replace("cmn", "zh")
    if sure >= _SURE and code in LANGUAGE_CODES:
        return str(code)
    return None if by_letters.startswith("en") else by_letters


@cache
def _load_identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 - few texts need it

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
