"""New takes of voices that say a line the same way each time, whatever the seed."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scenes import OpenStudio, finish

from studio.audio.clip import Samples
from studio.audio.timeline import read_take
from studio.backends.base import VARIED_SEEDS, Capabilities, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.model import Dialog, Speech
from studio.engine.job import Job, find_segment_issues
from studio.services.studio import RenderOptions

TEXT = "The ferry leaves before the museum opens, and nobody told me."


class Fixed(DraftBackend):
    """Ignores seeds, and says so; what it is asked for is kept."""

    is_seeded = False
    has_speed = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[SpeechRequest] = []

    @property
    def capabilities(self) -> Capabilities:
        can = super().capabilities
        seeds = (0, 2**31) if self.is_seeded else VARIED_SEEDS
        params = can.params if self.has_speed else ()
        return replace(can, seeded=self.is_seeded, take_seeds=seeds, params=params)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        self.requests.append(request)
        return super().speak(replace(request, seed=None))


class Slow(Fixed):
    """Has no speed of its own."""

    has_speed = False


class Boastful(Fixed):
    """Says that a seed decides, and ignores it."""

    is_seeded = True


class Noisy(Fixed):
    """Is never the same twice."""

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        hiss = np.random.default_rng(len(self.requests))
        for chunk in super().speak(request):
            yield chunk + hiss.normal(0, 1e-4, len(chunk)).astype(np.float32)


def job_of(open_studio: OpenStudio, backend: Fixed, *texts: str, **how: object) -> Job:
    lines = tuple(Speech("Ida", text, line_number=at) for at, text in enumerate(texts, 1))
    job = open_studio(backend).render(Dialog(lines), RenderOptions(**how))
    finish(job)
    assert job.list_failures() == ()
    return job


def sound_of(job: Job) -> Samples:
    return read_take(job.records[0].path).samples


@pytest.mark.parametrize("kind", [Fixed, Slow])
def test_a_seed_of_a_new_take_changes_the_pace_a_little(
    open_studio: OpenStudio, kind: type[Fixed]
) -> None:
    first = sound_of(job_of(open_studio, kind(), TEXT))
    assert np.array_equal(first, sound_of(job_of(open_studio, kind(), TEXT, seed=7)))
    takes = {
        seed: sound_of(job_of(open_studio, kind(), TEXT, seed=seed))
        for seed in range(VARIED_SEEDS[0], VARIED_SEEDS[0] + 6)
    }
    paces = [len(first) / len(one) for one in takes.values()]
    assert all(0.025 < abs(one - 1) < 0.07 for one in paces)
    assert min(paces) < 1 < max(paces)
    assert len({one.tobytes() for one in takes.values()}) == len(takes)
    again = sound_of(job_of(open_studio, kind(), TEXT, seed=VARIED_SEEDS[0]))
    assert np.array_equal(again, takes[VARIED_SEEDS[0]])


def test_a_speed_that_was_asked_for_stays_within_the_voices_range(open_studio: OpenStudio) -> None:
    backend = Fixed()
    line = Speech("Ida", TEXT, params={"speed": 2.0}, line_number=1)
    for seed in range(VARIED_SEEDS[0], VARIED_SEEDS[0] + 6):
        finish(open_studio(backend).render(Dialog((line,)), RenderOptions(seed=seed)))
    speeds = {one.params["speed"] for one in backend.requests if one.text == TEXT}
    assert max(speeds) == 2.0
    assert 1.85 < min(speeds) < 1.99


def test_a_voice_that_varies_by_itself_is_left_as_it_is(open_studio: OpenStudio) -> None:
    backend = Noisy()
    studio = open_studio(backend)
    for seed in (VARIED_SEEDS[0], VARIED_SEEDS[0] + 1):
        line = Speech("Ida", TEXT, line_number=1)
        finish(studio.render(Dialog((line,)), RenderOptions(seed=seed)))
    assert all("speed" not in one.params for one in backend.requests)
    assert [one.text == TEXT for one in backend.requests] == [False, False, True, True]


def test_further_tries_sound_different(open_studio: OpenStudio) -> None:
    class Trailing(Fixed):
        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            yield from super().speak(request)
            yield np.sin(np.arange(36_000, dtype=np.float32) / 32) * np.float32(0.01)

    [record] = job_of(open_studio, Trailing(), TEXT, tries=3).records
    assert len({one.path.read_bytes() for one in record.tries}) == 3
    assert all(one.seed is not None for one in record.tries[1:])


def test_a_voice_that_says_the_same_again_isnt_asked_a_third_time(open_studio: OpenStudio) -> None:
    class Trailing(Boastful):
        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            yield from super().speak(request)
            yield np.sin(np.arange(36_000, dtype=np.float32) / 32) * np.float32(0.01)

    backend = Trailing()
    job = job_of(open_studio, backend, TEXT, tries=4, seed=5)
    assert len(backend.requests) == 2
    assert len(job.records[0].tries) == 1
    assert job.list_retries() == ()
    assert [one.line_number for one in find_segment_issues(job)] == [1]


def test_the_same_sound_is_judged_the_same_way_by_all_lines(open_studio: OpenStudio) -> None:
    """The ninth line stands out of the eight before it; of all it doesn't."""

    class Rising(Boastful):
        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            gain = np.float32(0.2 if "late" in request.text else 1.0)
            for number, chunk in enumerate(super().speak(request)):
                yield chunk * gain + np.float32(1e-4 * len(self.requests) * (number == 0))

    early = [f"This is the early line number {word}." for word in string.ascii_lowercase[:8]]
    late = [f"This is the late line number {word}." for word in string.ascii_lowercase[:10]]
    studio = open_studio(Rising(), max_concurrency=1)
    lines = tuple(Speech("Ida", text, line_number=at) for at, text in enumerate(early + late, 1))
    job = studio.render(Dialog(lines), RenderOptions(seed=5, tries=2))
    finish(job)
    assert any(len(record.tries) > 1 for record in job.records)
    marked = {one.segment_idx for one in find_segment_issues(job)}
    for record in job.records:
        if len(record.tries) > 1:
            used = record.tries[record.best_try]
            assert bool(used.issues) == (record.segment.segment_idx in marked)
            assert used.score == min(one.score for one in record.tries)
