"""Mouth shapes of phonemes, as Rhubarb Lip Sync draws them: A to H, and X at rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from studio.hearing.word_times import PhonemeTime

REST = "X"

_OPEN_TEETH = "B"  # clenched teeth: most consonants, and the vowel of "bee"
_SHAPES = {
    "A": "pbmɓ",  # closed lips
    "C": "eɛæəɘɐʌ",  # open
    "D": "aɑɶ",  # wide open
    "E": "ɔɒɜɝɚɞ",  # slightly rounded
    "F": "uʊwoyøœʏɥʍɵʉɸβ",  # puckered
    "G": "fvʋɱ",  # the upper teeth on the lower lip
    "H": "lɫɭʎɬɮɺ",  # the tongue behind the upper teeth
}
_SHAPE_OF = {letter: shape for shape, letters in _SHAPES.items() for letter in letters}
_LEAST_REST_S = 0.1  # a mouth keeps its shape through a shorter gap


@dataclass(frozen=True, slots=True)
class VisemeTime:
    """When a mouth shape is held: "A" to "H" or "X"; times are seconds of the take."""

    viseme: str
    start_s: float
    end_s: float


def shapes_of(ipa: str) -> list[str]:
    """The mouth shapes of a phoneme, in order: a diphthong has two.

    The table follows the description of the shapes in Rhubarb Lip Sync's readme (1.13).
    """
    letters = [char for char in ipa if char.isalpha() and char not in "ːˈˌʰʲʷˠˤ"]
    shapes = [_SHAPE_OF.get(letter, _OPEN_TEETH) for letter in letters]
    return [shape for at, shape in enumerate(shapes) if at == 0 or shape != shapes[at - 1]]


def list_visemes(phonemes: Iterable[PhonemeTime], duration_s: float) -> list[VisemeTime]:
    """The mouth shapes of a take from its beginning to its end, without gaps."""
    found: list[VisemeTime] = []
    for one in _iter_shapes(phonemes, duration_s):
        if one.end_s <= one.start_s:
            continue
        if found and found[-1].viseme == one.viseme:
            found[-1] = VisemeTime(one.viseme, found[-1].start_s, one.end_s)
        else:
            found.append(one)
    return found


def _iter_shapes(phonemes: Iterable[PhonemeTime], duration_s: float) -> Iterator[VisemeTime]:
    shape, at_s = REST, 0.0
    for phoneme in phonemes:
        shapes = shapes_of(phoneme.ipa)
        if not shapes:
            continue
        is_short = round(phoneme.start_s - at_s, 6) < _LEAST_REST_S
        yield VisemeTime(shape if is_short else REST, at_s, phoneme.start_s)
        step_s = (phoneme.end_s - phoneme.start_s) / len(shapes)
        for number, shape in enumerate(shapes):
            start_s = phoneme.start_s + number * step_s
            yield VisemeTime(shape, round(start_s, 3), round(start_s + step_s, 3))
        at_s = phoneme.end_s
    yield VisemeTime(REST, at_s, duration_s)
