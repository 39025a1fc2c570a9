"""How words sound, as eSpeak NG reads them, and how far apart two of them are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import ModuleType

import regex

from studio.backends.espeak.phonemizer import Phonemizer
from studio.errors import ModelUnavailable, SpeechFailed

ReadSounds = Callable[[Collection[str], str], Mapping[str, str]]
"""Gives words or phrases of a language, by BCP-47 code, their phonemes; without those it can't."""


class EspeakSounds:
    """Phonemes of words by eSpeak NG, in a process of its own; any number of threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the two below
        self._phonemizer: Phonemizer | None = None
        self._known: dict[tuple[str, str], str] = {}

    def __call__(self, words: Collection[str], language: str) -> Mapping[str, str]:
        """The phonemes of each word, without stress; empty where eSpeak NG can't read them."""
        with self._lock:
            fresh = [word for word in words if (language, word) not in self._known]
            if len(self._known) > _MAX_KNOWN:
                self._known.clear()
                fresh = list(words)
            if fresh:
                self._read(fresh, language)
            return {word: self._known[language, word] for word in words}

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._phonemizer is not None:
                self._phonemizer.close()
                self._phonemizer = None

    def _read(self, words: Sequence[str], language: str) -> None:
        try:
            self._phonemizer = self._phonemizer or Phonemizer(workers=1)
            read = self._phonemizer.read(words, language)
        except (SpeechFailed, ModelUnavailable):
            read = [[] for _ in words]
        for word, clauses in zip(words, read, strict=True):
            ipa = "".join(clause.ipa for clause in clauses)
            self._known[language, word] = _UNSAID.sub("", ipa)


_MAX_KNOWN = 20_000
_UNSAID = regex.compile(r"[\s\p{M}ˈˌːˑ^_|ʲʰ-]+")


_VOWELS = frozenset("aeiouyæøœɐɑɒɔəɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏᵻ")
_ALIKE = frozenset(
    frozenset(pair)
    for pair in (
        *("pb", "td", "kɡ", "kg", "fv", "sz", "ʃʒ", "θð", "td", "mn", "nŋ", "ɹr", "ɹɾ", "lɫ"),
        *("tɾ", "dɾ", "θf", "ðv", "ðd", "sθ", "wv", "ʔt", "ɡg", "jɪ", "wʊ", "sʃ", "zʒ", "ɹɚ"),
    )
)
_ALIKE_COST, _VOWEL_COST, _WEAK_COST = 0.4, 0.5, 0.3


@cache
def _exchange_cost(one: str, other: str) -> float:
    """How far apart two phonemes are, in [0, 1]."""
    if one == other:
        return 0.0
    if one in _VOWELS and other in _VOWELS:
        return _WEAK_COST if {"ə", "ɐ", "ᵻ", "ɪ"} & {one, other} else _VOWEL_COST
    return _ALIKE_COST if frozenset((one, other)) in _ALIKE else 1.0


@cache
def _levenshtein() -> ModuleType:
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - 45 modules that a start can spare

    return Levenshtein


def find_opcodes(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Where both begin and end in turn, alike and different, by the fewest words to be changed."""
    for edit in _levenshtein().opcodes(one, other):
        yield edit.src_start, edit.src_end, edit.dest_start, edit.dest_end


@lru_cache(maxsize=65_536)
def distance_of_sounds(one: str, other: str) -> float:
    """How far apart two words are by their phonemes, in [0, 1]; alike ones are nearer."""
    row = [float(at) for at in range(len(other) + 1)]
    for sound in one:
        before = row[0]
        row[0] = left = before + 1.0
        for at, counterpart in enumerate(other, start=1):
            above = row[at]
            edited = (above if above < left else left) + 1.0  # `min` takes half as long again
            left = before + _exchange_cost(sound, counterpart)
            if edited < left:
                left = edited
            row[at] = left
            before = above
    return row[-1] / max(len(one), len(other), 1)


def distance_of_letters(one: str, other: str) -> float:
    """How far apart two words are, of letters and digits only, in [0, 1]."""
    apart: float = _levenshtein().normalized_distance(one, other) if one and other else 1.0
    return apart


NO_LETTER = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
