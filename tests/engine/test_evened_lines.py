"""How close lines lie, and how loud voices are, whichever engine speaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scenes import OpenStudio, finish

from studio.audio.clip import Samples
from studio.audio.loudness import LoudnessMeter
from studio.audio.timeline import read_take
from studio.backends.base import Backend, Capabilities, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.backends.registry import create
from studio.dialog.model import Dialog, Silence, Speech
from studio.engine.job import Job, build_scene
from studio.services.studio import RenderOptions
from studio.voices.speaker import Voice

RATE_HZ = 24_000
TEXTS = (
    "Good morning, everybody. Sit down, please.",
    "Half past six, if I am lucky?",
    "She sells thick fresh fish.",
    "Yes.",
    "He hopes to hear from Hugh's staff.",
    "Whose shoes are these?",
)
LONGER_TEXTS = (
    "The telegram came before dawn, and nobody in the house had read it.",
    "Half past six, if I am lucky? Then I had better hurry.",
    "He kept the old lantern burning until the last boat was in.",
)
TEN_VOICES = (
    *("af_heart", "af_bella", "af_nova", "am_adam", "am_michael"),
    *("am_puck", "bf_emma", "bf_isabella", "bm_george", "bm_fable"),
)


class Padded(DraftBackend):
    """Keeps 0.8 s of silence around each piece that it speaks, in chunks of 0.1 s."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, max_chars=60)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        silence = np.zeros(RATE_HZ * 2 // 5, np.float32)
        whole = np.concatenate([silence, *super().speak(request), silence])
        yield from np.split(whole, range(RATE_HZ // 10, len(whole), RATE_HZ // 10))


def sounds_in(samples: Samples) -> tuple[float, float]:
    """Seconds of silence before the first and behind the last 10 ms within 40 dB of the loudest."""
    frames = samples[: len(samples) // 240 * 240].reshape(-1, 240)
    levels_db = 10 * np.log10(np.square(frames.astype(np.float64)).mean(axis=1) + 1e-12)
    sounding = np.flatnonzero(levels_db > levels_db.max() - 40)
    return sounding[0] / 100, (len(levels_db) - 1 - sounding[-1]) / 100


def job_of(open_studio: OpenStudio, backend: Backend, *lines: Speech | Silence) -> Job:
    job = open_studio(backend).render(Dialog(lines), RenderOptions(seed=1))
    finish(job)
    assert job.list_failures() == ()
    return job


def distances_of(job: Job) -> list[float]:
    ends = [sounds_in(read_take(one.path).samples) for one in job.records]
    return [before[1] + behind[0] for before, behind in pairwise(ends)]


@pytest.mark.parametrize("kind", [DraftBackend, Padded])
def test_at_no_gap_lines_lie_less_than_a_tenth_of_a_second_apart(
    open_studio: OpenStudio, kind: type[DraftBackend]
) -> None:
    lines = [Speech(("Ida", "Tom", "Zoe")[at % 3], text) for at, text in enumerate(TEXTS)]
    job = job_of(open_studio, kind(), *lines)
    assert max(distances_of(job)) < 0.1
    assert build_scene(job).timeline.duration_s == pytest.approx(
        sum(one.samples for one in job.records) / RATE_HZ
    )


def test_inside_of_a_line_the_voices_pause_stays_at_the_end_of_a_sentence_only(
    open_studio: OpenStudio,
) -> None:
    two = "The ferry leaves before the museum opens. But the harbour has a bench that faces it."
    one = "The harbour has a bench that faces the wind and the gulls and the grey and silent sea."
    job = job_of(open_studio, Padded(), Speech("Ida", two), Speech("Ida", one))
    assert [record.segment.line_idx for record in job.records] == [0, 0, 1, 1]
    at_a_stop, between_lines, in_a_sentence = distances_of(job)
    assert at_a_stop > 0.8
    assert between_lines < 0.1
    assert in_a_sentence < 0.1


def test_beside_a_pause_of_the_script_there_is_no_other(open_studio: OpenStudio) -> None:
    job = job_of(open_studio, Padded(), Speech("Ida", "One. [pause:0.5s] Two."))
    spoken = [one for one in job.records if one.path is not None]
    (_, behind), (before, _) = (sounds_in(read_take(one.path).samples) for one in spoken)
    assert behind + before < 0.1


@pytest.fixture(scope="module")
def kokoro(installed_kokoro: None) -> Iterator[Backend]:
    backend = create("kokoro")
    if lacks := backend.unavailable():
        pytest.skip(lacks)
    backend.load(lambda _: None)
    yield backend
    backend.unload()


@pytest.mark.slow
def test_kokoros_lines_lie_as_close(open_studio: OpenStudio, kokoro: Backend) -> None:
    lines = [Speech(("Ida", "Tom")[at % 2], text) for at, text in enumerate(TEXTS)]
    assert max(distances_of(job_of(open_studio, kokoro, *lines))) < 0.1


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_ten_voices_of_kokoro_are_within_a_decibel(kokoro: Backend) -> None:
    kokoro.load(lambda _: None)  # a studio that had it has closed

    def measure_lufs(voice: str, *, is_evened: bool) -> float:
        meter = LoudnessMeter(true_peak=False)
        conditioning = kokoro.condition(Voice("Ida", preset=voice))
        for text in LONGER_TEXTS:
            request = SpeechRequest(text, conditioning, "en-US", is_evened=is_evened)
            for chunk in kokoro.speak(request):
                assert np.abs(chunk).max() <= 1
                meter.push(chunk)
        return meter.finish().lufs

    here = [one.preset_id for one in kokoro.capabilities.presets]
    voices = TEN_VOICES if {*TEN_VOICES} <= {*here} else here[-10:]  # else the mixtures alone
    evened = [measure_lufs(one, is_evened=True) for one in voices]
    assert max(evened) - min(evened) < 1
    as_they_are = [measure_lufs(one, is_evened=False) for one in voices]
    assert max(as_they_are) - min(as_they_are) > 3
