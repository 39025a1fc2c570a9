"""From a speech request to what eSpeak NG is asked, in its own units."""

from __future__ import annotations

import unicodedata

from studio.backends.base import Param, SpeechRequest
from studio.backends.draft.espeak import Utterance
from studio.backends.draft.package import Language
from studio.backends.draft.voices import DraftVoice

PARAMS = (
    Param(
        "speed", "Speed", 0.5, 2.0, 1.0, 0.05, "How fast the line is spoken; 2 is twice as fast."
    ),
    Param("pitch", "Pitch", -12, 12, 0, 0.5, "Semitones above or below the speaker's own voice."),
    Param("expressiveness", "Expressiveness", 0, 2, 1, 0.1, "How far the melody rises and falls."),
)

# Joiners shape words of Persian and Indian scripts; all else invisible is noise or a command
# to eSpeak NG, which takes control characters as such.
_KEPT_INVISIBLE = {"\u200c", "\u200d"}

_WORDS_PER_MINUTE = 175
_SLOWEST, _FASTEST = 80, 450  # eSpeak NG's own bounds
_LEAST_SHIFT, _MOST_SHIFT = 0.6, 1.7


def plain_text(text: str) -> str:
    """Text without control and other invisible characters, on one line."""
    visible = (
        " " if char.isspace() else char
        for char in text
        if char.isspace()
        or char in _KEPT_INVISIBLE
        or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn"}
    )
    return "".join(visible).strip()


def utterance_for(text: str, request: SpeechRequest, language: Language) -> tuple[Utterance, float]:
    """The request in eSpeak NG's units, and the shift that its samples still need.

    The shift moves the formants by the voice's tract, and makes up for what eSpeak NG's pitch,
    an integer of two octaves, can't reach. A high pitch at the lowest speed comes out faster than
    asked: eSpeak NG speaks no slower than `_SLOWEST`.
    """
    voice = request.conditioning.payload
    assert isinstance(voice, DraftVoice), "conditioning of another backend"
    wanted_hz = voice.fundamental_hz * 2 ** (_param(request, "pitch") / 12)
    pitch = voice.variant.pitch(wanted_hz / voice.tract)
    shift = wanted_hz / voice.variant.fundamental_hz(pitch)
    shift = min(_MOST_SHIFT, max(_LEAST_SHIFT, shift))
    words_per_minute = _WORDS_PER_MINUTE * _param(request, "speed") * voice.tempo / shift
    utterance = Utterance(
        text=text,
        voice=f"{language.voice_file}+{voice.variant.name}",
        words_per_minute=min(_FASTEST, max(_SLOWEST, round(words_per_minute))),
        pitch=pitch,
        pitch_range=min(99, round(50 * _param(request, "expressiveness"))),
    )
    return utterance, shift


def _param(request: SpeechRequest, name: str) -> float:
    default = next(param.default for param in PARAMS if param.name == name)
    return float(request.params.get(name, default))
