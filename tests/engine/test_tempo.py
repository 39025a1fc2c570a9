"""Every voice can speak a line faster or slower: what has no speed of its own is stretched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from scenes import OpenStudio, finish

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.base import Capabilities, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.model import Dialog, Speech


class Humming(DraftBackend):
    """Hums 220 Hz for 1.5 s in three chunks; has no speed."""

    requests: list[SpeechRequest]

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, params=(), sample_rate_hz=STUDIO_RATE_HZ)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        self.requests = [*getattr(self, "requests", []), request]
        at = np.arange(3 * STUDIO_RATE_HZ // 2) / STUDIO_RATE_HZ
        yield from np.split((0.3 * np.sin(2 * np.pi * 220 * at)).astype(np.float32), 3)


@pytest.mark.parametrize("speed", [0.5, 1.0, 1.3, 2.0])
def test_a_voice_without_a_speed_is_stretched_at_its_pitch(
    open_studio: OpenStudio, speed: float
) -> None:
    backend = Humming()
    job = open_studio(backend).render(
        Dialog((Speech("Ida", "All is well.", params={"speed": speed}, line_number=1),))
    )
    finish(job)
    [record] = job.records
    assert record.path is not None, record.message
    assert backend.requests[0].params == {}, "the model never sees what it can't do"
    samples, rate_hz = soundfile.read(record.path)
    assert len(samples) / rate_hz == pytest.approx(1.5 / speed, abs=0.06)
    middle = samples[len(samples) // 4 : -len(samples) // 4]
    loudest_hz = np.argmax(np.abs(np.fft.rfft(middle))) * rate_hz / len(middle)
    assert loudest_hz == pytest.approx(220, abs=5)
    assert record.streamed_samples == len(samples)
    assert job.spec.plan.notices == ()


def test_a_speed_out_of_range_fails_its_line_with_the_range(open_studio: OpenStudio) -> None:
    job = open_studio(Humming()).render(
        Dialog((Speech("Ida", "All is well.", params={"speed": 3}, line_number=1),))
    )
    finish(job)
    assert "“speed” is 3, but this voice takes 0.5 to 2." in (job.records[0].message or "")
