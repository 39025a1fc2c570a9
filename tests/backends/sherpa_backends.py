"""Small voices for tests: as the registry makes them, but with a sample where they clone."""

from dataclasses import replace

import numpy as np

from studio.audio.clip import Clip
from studio.backends.base import Conditioning
from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE
from studio.voices.speaker import Sample, Voice

NOISE = np.random.default_rng(0).standard_normal(36_000).astype(np.float32)
SAMPLE = Sample(Clip(0.2 * np.tanh(NOISE)), "5a" * 32, transcript="Good evening.")


class WithSample(SherpaBackend):
    """Gives each voice without a sample one, so that models that clone can be asked as others."""

    def condition(self, voice: Voice) -> Conditioning:
        return super().condition(voice if voice.sample else replace(voice, sample=SAMPLE))


def make(name: str, **options: object) -> SherpaBackend:
    model = CATALOGUE[name]
    return (WithSample if model.cloning else SherpaBackend)(model, **options)
