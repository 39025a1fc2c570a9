"""The real draft voice, which says something else in some lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend

SLIPS: Mapping[str, str] = {
    "The lamp is still burning in the tower.": "The lamp is burning in the tower.",
    "Nobody has climbed the stairs today.": "Nobody has climbed has climbed the stairs today.",
    "The captain sold his silver watch.": "The captain sold his orange watch.",
    "We waited until the morning came.": "Bring seven chickens with yellow feathers please.",
}
"""What it says by what is written: a word is missing, said twice, another one, all of them."""

MUSIC = "The band plays on and on and on."
"""The line of which it makes music."""


SILENCE = "The sailor never says another word."
"""The line of which it makes a take of silence."""


class SlippingDraft(DraftBackend):
    """Speaks as the draft voice does, but for its slips."""

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak, or make music, or nothing."""
        if request.text == MUSIC:
            yield play_chords(2.5)
            return
        if request.text == SILENCE:
            yield np.zeros(2 * STUDIO_RATE_HZ, dtype=np.float32)
            return
        yield from super().speak(replace(request, text=SLIPS.get(request.text, request.text)))


def play_chords(seconds: float) -> Samples:
    """Chords of an organ, two a second."""
    at_s = np.arange(round(seconds * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    root_hz = 220 * 2 ** (np.floor(2 * at_s) % 5 / 12)
    phase = 2 * np.pi * np.cumsum(root_hz) / STUDIO_RATE_HZ
    tones = sum(np.sin(ratio * phase) for ratio in (1.0, 1.26, 1.5, 2.0))
    return (0.08 * tones).astype(np.float32)
