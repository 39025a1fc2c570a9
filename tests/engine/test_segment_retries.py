"""A line that doesn't come to its end: one more try with another seed, and what is kept of it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scenes import OpenStudio, finish

from studio.audio.clip import Clip, Samples, write_wav
from studio.audio.decode import decode
from studio.backends.base import VARIED_SEEDS, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.model import Audio, Dialog, Speech
from studio.engine.job import SegmentState, build_scene
from studio.engine.renderer import derive_cut_retry_seed
from studio.errors import Conflict, OutOfMemory, SpeechFailed
from studio.server.routes.monitoring import Metrics
from studio.services.speech_requests import SpeechOptions, SpeechStream
from studio.services.studio import RenderOptions

SECOND = derive_cut_retry_seed(5, VARIED_SEEDS[0])
WHY = "The voice didn't come to the end of this line and was cut after 4 s."


class Babbling(DraftBackend):
    """Is cut on its first tries at a line, after a part of it."""

    def __init__(self, *, cut_tries: int = 1, silent_tries: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.cut_tries = cut_tries
        self.silent_tries = silent_tries
        self.seeds: list[int | None] = []

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        self.seeds.append(request.seed)
        tries = len(self.seeds)
        if tries in self.silent_tries:
            raise SpeechFailed("Not a sound came of it.")
        whole = np.concatenate(list(super().speak(replace(request, seed=None))))
        if tries > self.cut_tries:
            yield whole
            return
        yield whole[: 1000 * tries]
        raise SpeechFailed(WHY)


def one_line(seed: int | None = None) -> Dialog:
    return Dialog((Speech("Ida", "This is the line.", seed=seed, line_number=7),))


def test_a_line_that_is_cut_is_tried_once_more_with_another_seed(open_studio: OpenStudio) -> None:
    backend = Babbling()
    job = open_studio(backend).render(one_line(), RenderOptions(seed=5))
    events = finish(job)
    record = job.records[0]
    assert record.state is SegmentState.SAVED
    assert not record.cut
    assert record.retry_reason == WHY
    assert backend.seeds == [5, SECOND]
    assert record.samples is not None
    assert record.samples > 1000
    assert [event.state for event in events if event.message == WHY] == ["started"]
    assert [(again.line_number, again.message) for again in job.list_retries()] == [(7, WHY)]
    assert job.list_failures() == ()


def test_the_second_seed_is_another_and_always_the_same() -> None:
    seeds = [derive_cut_retry_seed(seed) for seed in range(200)]
    assert seeds == [derive_cut_retry_seed(seed) for seed in range(200)]
    assert len(set(seeds)) == 200
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds)
    assert derive_cut_retry_seed(None) is None


def test_a_line_that_is_cut_twice_has_failed_and_can_be_heard(open_studio: OpenStudio) -> None:
    backend = Babbling(cut_tries=9)
    job = open_studio(backend).render(one_line())
    finish(job)
    record = job.records[0]
    assert len(backend.seeds) == 2
    assert (record.state, record.cut, record.message) == (SegmentState.FAILED, True, WHY)
    assert record.path is not None
    assert record.samples == len(decode(record.path)) == 2000, "the second try's"
    failure = job.list_failures()[0]
    assert (failure.cut, failure.message) == (True, WHY)
    with pytest.raises(Conflict, match=WHY):
        build_scene(job)


def test_a_line_with_a_seed_of_its_own_is_tried_once(open_studio: OpenStudio) -> None:
    backend = Babbling(cut_tries=9)
    job = open_studio(backend).render(one_line(seed=11))
    finish(job)
    record = job.records[0]
    assert backend.seeds == [11]
    assert (record.cut, record.retry_reason, record.samples) == (True, None, 1000)


def test_a_second_try_without_a_sound_leaves_what_the_first_made(open_studio: OpenStudio) -> None:
    backend = Babbling(silent_tries=(2,))
    job = open_studio(backend).render(one_line())
    finish(job)
    record = job.records[0]
    assert (record.cut, record.samples, record.message) == (True, 1000, WHY)


def test_a_line_without_a_sound_is_not_tried_again(open_studio: OpenStudio) -> None:
    backend = Babbling(silent_tries=(1,))
    job = open_studio(backend).render(one_line())
    finish(job)
    record = job.records[0]
    assert len(backend.seeds) == 1
    assert (record.state, record.cut, record.path) == (SegmentState.FAILED, False, None)


def test_who_listened_is_told_that_the_first_try_is_void(open_studio: OpenStudio) -> None:
    job = open_studio(Babbling()).render(one_line(), RenderOptions(listen=True))
    first = job.records[0].live
    heard = list(first.follow())
    finish(job)
    assert first.withdrawn
    assert sum(len(chunk) for chunk in heard) == 1000


def test_a_second_try_that_finds_no_memory_keeps_its_seed(open_studio: OpenStudio) -> None:
    class Cramped(Babbling):
        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            if len(self.seeds) == 1:
                self.seeds.append(request.seed)
                raise OutOfMemory("The device ran out of memory on this line.")
            yield from super().speak(request)

    backend = Cramped()
    job = open_studio(backend).render(one_line(), RenderOptions(seed=5))
    finish(job)
    assert job.records[0].state is SegmentState.SAVED
    assert backend.seeds == [5, SECOND, SECOND]


class Narrow(DraftBackend):
    """Finds no memory in the middle of its first try at a line, after some of it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        self.tries += 1
        whole = np.concatenate(list(super().speak(request)))
        if self.tries == 1:
            yield whole[:3000]
            raise OutOfMemory("The device ran out of memory on this line.")
        yield from np.array_split(whole, [2000, 5000])  # cut elsewhere than the first time


async def test_who_listens_hears_no_part_of_a_second_try_twice(open_studio: OpenStudio) -> None:
    reading = SpeechStream(open_studio(Narrow()), one_line(), SpeechOptions(seed=5))
    heard = np.concatenate([chunk async for chunk in reading.chunks()])
    await reading.render.aclose()
    plain = SpeechStream(open_studio(), one_line(), SpeechOptions(seed=5))
    expected = np.concatenate([chunk async for chunk in plain.chunks()])
    await plain.render.aclose()
    assert len(heard) == len(expected)
    assert np.array_equal(heard, expected)


def test_second_tries_are_counted(open_studio: OpenStudio) -> None:
    backend = Babbling()
    studio = open_studio(backend)
    metrics = Metrics(studio)
    finish(studio.render(one_line()))
    assert "tableread_second_tries_total 1.0" in metrics.text().decode()


@pytest.mark.parametrize("where", ["save", "decode"])
def test_an_error_that_is_not_the_studios_ends_the_line_and_not_the_job(
    open_studio: OpenStudio, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count()

    def breaks(*given: object) -> None:
        if next(calls) == 0:
            raise MemoryError("no room")
        write_wav(*given)  # type: ignore[arg-type]

    if where == "decode":
        monkeypatch.setattr("studio.engine.renderer.decode", breaks)
        studio = open_studio()
        dialog = Dialog((Audio("door.wav"), Speech("Ida", "Two.")))
    else:
        studio = open_studio(max_concurrency=1, save=breaks)
        dialog = Dialog((Speech("Ida", "One."), Speech("Ida", "Two.")))
    root = studio.options.workspace
    job = studio.render(dialog, RenderOptions(audio_root=root))
    finish(job)
    assert [record.state.value for record in job.records] == ["failed", "saved"]
    assert "MemoryError: no room" in job.list_failures()[0].message


async def test_a_stream_of_a_line_that_was_cut_ends_there_with_the_reason(
    open_studio: OpenStudio,
) -> None:
    reading = SpeechStream(open_studio(Babbling()), one_line(), SpeechOptions(seed=5))
    chunks = reading.chunks()
    assert len(await anext(chunks)) == 1000
    with pytest.raises(SpeechFailed, match="didn't come to the end"):
        await anext(chunks)
    await reading.render.aclose()


def test_a_second_try_that_was_cut_is_never_sent_as_a_whole_line(
    open_studio: OpenStudio,
) -> None:
    may_save = threading.Event()

    def save(path: Path, clip: Clip) -> None:
        assert may_save.wait(60)
        write_wav(path, clip)

    reading = SpeechStream(
        open_studio(Babbling(cut_tries=2), save=save), one_line(), SpeechOptions(seed=5)
    )
    record = reading.job.records[0]
    while not (record.retry_reason and record.live.closed):
        time.sleep(0.01)
    assert record.state is SegmentState.STARTED, "its file isn't written yet"
    with pytest.raises(SpeechFailed, match="cut"):
        reading.clip()
    may_save.set()
    reading.render.close()
