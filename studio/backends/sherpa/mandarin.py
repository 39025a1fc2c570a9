"""Chinese in Kokoro's letters, by pinyin: eSpeak NG's reading loses every second syllable.

Source: what the model was trained with, Misaki 0.9.4 (`misaki/zh.py`, `transcription.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from studio.errors import SpeechFailed

_HAN = re.compile("([\u3400-\u9fff]+)")
_MARKS = str.maketrans(dict(zip("、，。．！：；？《》「」（）", ",,..!:;?“”“”()", strict=True)))
_DIGITS = str.maketrans("0123456789", "零一二三四五六七八九")
_INITIALS = {
    "b": "p", "c": "ʦʰ", "ch": "ꭧʰ", "d": "t", "g": "k", "h": "x", "j": "ʨ", "k": "kʰ", "p": "pʰ",
    "q": "ʨʰ", "r": "ɻ", "sh": "ʂ", "t": "tʰ", "x": "ɕ", "z": "ʦ", "zh": "ꭧ",
}  # fmt: skip
_TONES = {"1": "→", "2": "↗", "3": "↓", "4": "↘", "5": ""}
# The digit is the tone's place.
_FINALS = {
    "a": "a0", "ai": "ai0", "an": "a0n", "ang": "a0ŋ", "ao": "au0", "e": "ɤ0", "ei": "ei0",
    "en": "ə0n", "eng": "ə0ŋ", "er": "ɚ0", "i": "i0", "ia": "ja0", "ian": "jɛ0n", "iang": "ja0ŋ",
    "iao": "jau0", "ie": "je0", "in": "i0n", "ing": "i0ŋ", "io": "jɔ0", "iong": "jʊ0ŋ",
    "iou": "jou0", "o": "wo0", "ong": "ʊ0ŋ", "ou": "ou0", "u": "u0", "ua": "wa0", "uai": "wai0",
    "uan": "wa0n", "uang": "wa0ŋ", "uei": "wei0", "uen": "wə0n", "ueng": "wə0ŋ", "uo": "wo0",
    "ê": "ɛ0", "ü": "y0", "üan": "ɥɛ0n", "üe": "ɥe0", "ün": "y0n",
}  # fmt: skip
_BUZZED = frozenset({"zh", "ch", "sh", "r", "z", "c", "s"})
_LONGEST_WORD = 10


def lacks() -> str | None:
    """What reading Chinese lacks here, with the remedy; None where it lacks nothing."""
    if find_spec("pypinyin") is not None:
        return None
    return "Kokoro reads Chinese with the package pypinyin. Install it with: pip install pypinyin"


def read(sentence: str, lexicon: Path | None, read_other: Callable[[str], str]) -> str:
    """A sentence in Kokoro's letters and marks.

    Args:
        sentence: Any text.
        lexicon: That a model came with; what it reads stays as it was.
        read_other: Reads what isn't written in Chinese letters.

    Raises:
        SpeechFailed: The package that reads it is missing.
    """
    spoken = ""
    for number, run in enumerate(_HAN.split(sentence.translate(_DIGITS).translate(_MARKS))):
        if number % 2:
            spoken += _look_up(run, _load(lexicon)) if lexicon else _read_pinyin(run)
        else:
            words = read_other(run) if any(map(str.isalpha, run)) else run
            spoken += f" {words} " if words is not run else words
    return re.sub(r" *([,.!:;?])\s*", r"\1 ", spoken).strip()


def _read_pinyin(run: str) -> str:
    if reason := lacks():
        raise SpeechFailed(reason)
    from pypinyin import Style, lazy_pinyin
    from pypinyin.seg.mmseg import seg

    words = []
    for word in seg.cut(run):
        initials = lazy_pinyin(word, Style.INITIALS)
        finals = lazy_pinyin(word, Style.FINALS_TONE3, v_to_u=True, neutral_tone_with_five=True)
        words.append("".join(map(_spell, initials, finals)))
    return " ".join(words)


def _spell(initial: str, final: str) -> str:
    name, tone = final[:-1], _TONES.get(final[-1:], "")
    letters = "ɨ0" if name == "i" and initial in _BUZZED else _FINALS.get(name, "")
    if name == "o" and not initial:
        letters = "ɔ0"
    return _INITIALS.get(initial, initial) + letters.replace("0", tone)


@lru_cache(maxsize=1)
def _load(lexicon: Path) -> Mapping[str, str]:
    rows = (line.split() for line in lexicon.read_text("utf-8").splitlines())
    return {row[0]: "".join(row[1:]) for row in rows if row}


def _look_up(run: str, words: Mapping[str, str]) -> str:
    """The longest words first; what is in none is silent."""
    found, at = [], 0
    while at < len(run):
        ends = range(min(len(run), at + _LONGEST_WORD), at, -1)
        end = next((end for end in ends if run[at:end] in words), at + 1)
        found.append(words.get(run[at:end], ""))
        at = end
    return " ".join(found)
