"""Kokoro's phonemes from eSpeak NG's: it writes each diphthong and affricate as one letter.

Source: what the model's own reader does with words that it takes from eSpeak NG, Misaki 0.9
(`misaki/espeak.py`); the letters are those of the model's `tokens.txt`.
"""

from __future__ import annotations

import re

TIE = "^"
"""Joins the letters of one phoneme in what `adapt` takes."""

_EVERYWHERE = {
    "a^ɪ": "I", "a^ʊ": "W", "d^z": "ʣ", "d^ʒ": "ʤ", "e^ɪ": "A", "o^ʊ": "O", "ə^ʊ": "Q",
    "t^s": "ʦ", "t^ʃ": "ʧ", "ɔ^ɪ": "Y",
}  # fmt: skip
_ENGLISH = {
    "ʔn\u0329": "tᵊn", "ʔ": "t", "ə^l": "ᵊl", "ʲo": "jo", "ʲə": "jə", "ʲ": "", "ɚ": "əɹ", "r": "ɹ",
    "x": "k", "ç": "k", "ɐ": "ə", "ɬ": "l", "\u0303": "", "e": "A",
}  # fmt: skip
_AMERICAN = {"ɜːɹ": "ɜɹ", "ɜː": "ɜɹ", "ɪə": "iə", "ː": ""}
_BRITISH = {"e^ə": "ɛː", "i^ə": "ɪə", "iə": "ɪə"}
_SYLLABIC = re.compile("(\\S)\u0329")


def adapt(ipa: str, language: str) -> str:
    """Write eSpeak NG's IPA in Kokoro's letters.

    Args:
        ipa: With `TIE` between the letters of one phoneme.
        language: A BCP-47 code; English is written with letters of its own.
    """
    tables = [_EVERYWHERE]
    if language.startswith("en"):
        tables = [_BRITISH, _EVERYWHERE, _ENGLISH] if language == "en-GB" else [
            _EVERYWHERE, _ENGLISH, _AMERICAN,
        ]  # fmt: skip
    for table in tables:
        for old, new in table.items():
            ipa = ipa.replace(old, new)
    return _SYLLABIC.sub(r"ᵊ\1", ipa).replace(TIE, "")
