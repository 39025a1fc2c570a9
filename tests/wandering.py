"""The real draft voice, which goes on with a hum after some lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend

ALWAYS, ONCE = "marsh", "brook"
"""Words of lines that have a hum behind them: each time they are spoken, and the first time."""

HUM_S = 2.0


class WanderingDraft(DraftBackend):
    """Goes on for two seconds where a line names a marsh; names of a brook only the first time.

    Attributes:
        seeds: Of what was spoken, by text, in order.
    """

    def __init__(self) -> None:
        """Nothing was spoken yet."""
        super().__init__()
        self._times: Counter[str] = Counter()
        self.seeds: dict[str, list[int | None]] = {}

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak, and go on."""
        self.seeds.setdefault(request.text, []).append(request.seed)
        self._times[request.text] += 1
        yield from super().speak(request)
        if ALWAYS in request.text or (ONCE in request.text and self._times[request.text] == 1):
            yield hum(HUM_S)


def hum(seconds: float) -> Samples:
    """A low tone, 20 dB below the draft voice's speech."""
    at_s = np.arange(round(seconds * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    return (0.01 * np.sin(2 * np.pi * 120 * at_s)).astype(np.float32)
