"""What a speech request asks of Qwen3-TTS: text, sampling, and how long a line may become."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass, replace

from studio.backends.base import Param, SpeechRequest
from studio.errors import SpeechFailed

FRAMES_PER_S = 12.5
MAX_CHARS = 400
"""Of one segment; far beyond, the voice drifts and words are lost."""

MAX_FRAMES = 1_250  # 100 s; with the longest sample it fits the 2,048 positions of a CUDA graph

MOST_TOP_K = 200

PARAMS = (
    Param(
        "temperature", "Temperature", 0.0, 1.5, 0.9, 0.05, "Liveliness; 0 is the same every time."
    ),
    Param("top_k", "Top k", 1, MOST_TOP_K, 50, 1, "How many of the likeliest sounds compete."),
    Param("top_p", "Top p", 0.05, 1.0, 1.0, 0.05, "Share of likelihood that competes."),
    Param(
        "repetition_penalty",
        "Repetition penalty",
        1.0,
        2.0,
        1.05,
        0.05,
        "Above 1, sounds made before become less likely.",
    ),
)

_STARTING_S = 2.0
_S_PER_CHAR = 0.25  # slow speech takes 0.1 s
_S_PER_DENSE_CHAR = 0.8  # slow speech takes 0.4 s
_DENSE = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")  # one character is a syllable or more


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next code is chosen; `temperature` 0 takes the likeliest one."""

    temperature: float = 0.9
    top_k: int = 50
    top_p: float = 1.0
    repetition_penalty: float = 1.05

    @property
    def greedy(self) -> bool:
        """Whether chance takes no part."""
        return self.temperature == 0


USUAL = Sampling()
"""Of the released checkpoints, for a frame's first code and, but for repetition, the others."""


def params_of(usual: Sampling) -> tuple[Param, ...]:
    """What a line may set, with a checkpoint's own defaults, kept within the ranges."""
    return tuple(
        replace(param, default=min(max(getattr(usual, param.name), param.minimum), param.maximum))
        for param in PARAMS
    )


def sampling_of(request: SpeechRequest, usual: Sampling = USUAL) -> Sampling:
    """The request's parameters, with a checkpoint's defaults for what it leaves out."""
    chosen = {
        param.name: float(request.params.get(param.name, getattr(usual, param.name)))
        for param in PARAMS
    }
    return Sampling(
        temperature=chosen["temperature"],
        top_k=round(chosen["top_k"]),
        top_p=chosen["top_p"],
        repetition_penalty=chosen["repetition_penalty"],
    )


def speakable(text: str) -> str:
    """The text without surrounding space.

    Raises:
        SpeechFailed: It has neither a letter nor a digit, on which the model would babble.
    """
    if not any(char.isalnum() for char in text):
        raise SpeechFailed(
            "There is nothing to speak in this line. Write at least one word, or use a pause."
        )
    return text.strip()


def frame_bound(text: str) -> int:
    """Frames after which a line counts as one that never stops.

    2 s, and 0.25 s a character, or 0.8 s where one character is a syllable or a spoken number:
    over twice what slow speech takes. At most `MAX_FRAMES`.
    """
    dense = sum(_is_dense(char) for char in text)
    bound_s = _STARTING_S + _S_PER_CHAR * (len(text) - dense) + _S_PER_DENSE_CHAR * dense
    return min(MAX_FRAMES, math.ceil(bound_s * FRAMES_PER_S))


def _is_dense(char: str) -> bool:
    return char.isdigit() or unicodedata.name(char, "").startswith(_DENSE)
