"""A line in the pieces that a small voice speaks at a time, each as the model's family reads it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from studio.backends.espeak.phonemizer import Clause, Phonemizer
from studio.backends.sherpa import kokoro_phonemes, mandarin
from studio.dialog.planning import cut_sentences

LONGEST_PIECE = 400
"""Phonemes in a piece. Kokoro has styles for 509, Kitten for 399 with the two that it adds; each
ends the process, or cuts, where there are more."""


_LEAST_CLAUSE = 25  # phonemes; fewer, spoken by themselves, are hurried
_MOST_GROWTH = 2  # a voice computes three times as fast as it speaks on one slow core
_BEHIND_MARK = re.compile(r"(?<=[,;:!?]) ")
_NUMBER = re.compile(r"\s+\d+\s*\Z")


@dataclass(frozen=True, slots=True)
class Piece:
    """What is spoken in one go: `text` as it is, or its `phonemes`.

    Attributes:
        text: A sentence or a part of one.
        phonemes: Those that the model has; empty where it reads text.
        goes_on: Whether the next piece goes on with the sentence, behind a mark.
    """

    text: str
    phonemes: str = ""
    goes_on: bool = False


Splitter = Callable[[str, str], list[Piece]]
"""Pieces of a text in a language; none where there is nothing to speak."""


def make_splitter(
    family: str,
    tokens: Path | None,
    phonemizer: Phonemizer | None,
    lexicon: Path | None = None,
) -> Splitter:
    """How a family of models reads text.

    Args:
        family: As the catalogue names it.
        tokens: The table of phonemes of a model that takes no others.
        phonemizer: None where the model reads text itself.
        lexicon: Of Chinese words in a model's phonemes, where it came with one.
    """
    if phonemizer is None:
        return split_text
    symbols = read_symbols(tokens) if tokens is not None else None
    spoken = partial(_split_phonemes, phonemizer, symbols, family)
    return partial(_split_kokoro, spoken, lexicon) if family == "kokoro" else spoken


def split_text(text: str, language: str) -> list[Piece]:
    """Sentences, for a model that reads text itself."""
    return [Piece(sentence) for sentence in _sentences(text, language)]


def read_symbols(tokens: Path) -> frozenset[str]:
    """The phonemes that a model has: what stands before the number in each line of a file."""
    lines = tokens.read_text("utf-8").split("\n")
    return frozenset(_NUMBER.sub("", line) or " " for line in lines if line)


def cut_at_clauses(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Cut pieces behind marks, for somebody who waits for the first sound and then listens on.

    The first is one clause. The others are at most twice as long as all before them, where their
    clauses allow it: each is computed while those sound. None is cut to fewer than 25 phonemes.
    """
    heard = 0
    for piece in pieces:
        phonemes, start = piece.phonemes, 0
        marks = [found.start() for found in _BEHIND_MARK.finditer(phonemes)]
        for mark, following in pairwise([*marks, len(phonemes)]):
            is_long = min(mark - start, len(phonemes) - mark - 1) >= _LEAST_CLAUSE
            if is_long and following - start > _MOST_GROWTH * (heard + start):
                yield Piece(piece.text, phonemes[start:mark], goes_on=True)
                start = mark + 1
        yield replace(piece, phonemes=phonemes[start:])
        heard += len(phonemes)


def _split_kokoro(spoken: Splitter, lexicon: Path | None, text: str, language: str) -> list[Piece]:
    if language != "zh":
        return spoken(text, language)

    def read_other(words: str) -> str:
        return " ".join(piece.phonemes for piece in spoken(words, "en-US"))

    sentences = _sentences(text, language)
    read = (mandarin.read(sentence, lexicon, read_other) for sentence in sentences)
    return [
        Piece(sentence, phonemes)
        for sentence, found in zip(sentences, read, strict=True)
        for phonemes in _pack([found])
    ]


def _split_phonemes(
    phonemizer: Phonemizer, symbols: frozenset[str] | None, family: str, text: str, language: str
) -> list[Piece]:
    sentences = _sentences(text, language)
    tie = kokoro_phonemes.TIE if family == "kokoro" else ""
    read = phonemizer.read(sentences, language, tie=tie)
    return [
        Piece(sentence, phonemes)
        for sentence, clauses in zip(sentences, read, strict=True)
        for phonemes in _pack([_spell(one, family, language, symbols) for one in clauses])
    ]


def _spell(clause: Clause, family: str, language: str, symbols: frozenset[str] | None) -> str:
    """A clause in the letters that a model has."""
    ipa = clause.ipa
    if family == "kokoro":
        ipa = kokoro_phonemes.adapt(ipa, language)
    elif family == "vits":
        ipa = unicodedata.normalize("NFD", ipa)  # as Piper was trained
    return "".join(char for char in ipa + clause.mark if symbols is None or char in symbols)


def _pack(clauses: Sequence[str]) -> Iterator[str]:
    """Join a sentence's clauses as far as they fit, and part what doesn't fit between words."""
    packed = ""
    for word in " ".join(filter(None, clauses)).split(" "):
        if packed and len(packed) + 1 + len(word) > LONGEST_PIECE:
            yield packed
            packed = ""
        packed = f"{packed} {word[:LONGEST_PIECE]}".strip()
    if packed:
        yield packed


def _sentences(text: str, language: str) -> list[str]:
    found = (part.strip() for part in cut_sentences(text, language.partition("-")[0]))
    return [part for part in found if any(map(str.isalnum, part))]
