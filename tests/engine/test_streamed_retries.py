"""A line that begins again while somebody listens: what was played is its take, or is void."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from scenes import OpenStudio, finish

from studio.audio.clip import Samples, to_pcm16
from studio.audio.decode import decode
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.model import Dialog, Speech
from studio.engine.event_log import EventLog
from studio.engine.job import Job, SegmentState
from studio.errors import OutOfMemory, ReadingChanged, SpeechFailed
from studio.services.speech_requests import SpeechOptions, SpeechStream
from studio.services.studio import RenderOptions

NO_MEMORY = OutOfMemory("The device ran out of memory on this line.")
CHANGED = ReadingChanged("It came out otherwise.")
BROKEN = SpeechFailed("A step failed.")
PLAYED = 12_000 - 240  # the draft voice's first 0.01 s of silence are cut


@dataclass
class Try:
    """One try at a line: in chunks of a size, as the voice's own reading or another, and its end.

    Attributes:
        before_fault: Samples that are given before the fault; None for all.
    """

    chunk: int = 5_000
    reading: Callable[[Samples], Samples] = lambda whole: whole
    fault: Exception | None = None
    before_fault: int | None = None


@dataclass
class Listener:
    """Follows each log of a line's audio, in a thread for each."""

    logs: list[tuple[EventLog[Samples], list[Samples]]] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def follow(self, live: EventLog[Samples]) -> None:
        if any(live is known for known, _ in self.logs):
            return
        heard: list[Samples] = []
        self.logs.append((live, heard))
        thread = threading.Thread(target=lambda: heard.extend(live.follow()))
        thread.start()
        self.threads.append(thread)

    def joined(self) -> list[tuple[bool, Samples]]:
        """Of each log, whether it was withdrawn, and what came of it."""
        for thread in self.threads:
            thread.join(60)
        empty = np.zeros(0, np.float32)
        return [(live.withdrawn, np.concatenate([empty, *heard])) for live, heard in self.logs]


class Retried(DraftBackend):
    """Tries a line as it is told to; `listener` follows each try from before its first sample."""

    def __init__(self, *tries: Try) -> None:
        super().__init__()
        self.tries = iter(tries)
        self.seeds: list[int | None] = []
        self.job: Job | None = None
        self.listener = Listener()
        self.may_begin = threading.Event()

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        assert self.may_begin.wait(60)
        assert self.job is not None
        self.listener.follow(self.job.records[0].live)
        self.seeds.append(request.seed)
        one = next(self.tries)
        whole = one.reading(np.concatenate(list(super().speak(request))))
        kept = whole[: one.before_fault]
        for start in range(0, len(kept), one.chunk):
            yield kept[start : start + one.chunk]
        if one.fault is not None:
            raise one.fault

    def follow(self, job: Job) -> None:
        self.job = job
        self.may_begin.set()


def other(whole: Samples) -> Samples:
    return -whole


def rendered(open_studio: OpenStudio, backend: Retried, **options: object) -> Job:
    dialog = Dialog((Speech("Ida", "This is the line that is played while it is made."),))
    job = open_studio(backend).render(dialog, RenderOptions(seed=5, **options))
    backend.follow(job)
    finish(job)
    return job


def take_of(job: Job) -> list[int]:
    path = job.records[0].path
    assert path is not None
    return to_pcm16(decode(path).samples).tolist()


def pcm(samples: Samples) -> list[int]:
    return to_pcm16(samples).tolist()


@pytest.mark.parametrize("chunk", [700, 5_000, 8_000, 10**6])
@pytest.mark.parametrize("played", [1, 5_000, 12_345])
def test_after_a_lack_of_memory_a_listener_gets_the_rest_of_the_same_reading(
    open_studio: OpenStudio, chunk: int, played: int
) -> None:
    backend = Retried(Try(fault=NO_MEMORY, before_fault=played), Try(chunk))
    job = rendered(open_studio, backend)
    assert job.records[0].state is SegmentState.SAVED
    assert backend.seeds == [5, 5]
    [(withdrawn, heard)] = backend.listener.joined()
    assert not withdrawn
    assert len(heard) == job.records[0].samples
    assert pcm(heard) == take_of(job)


@pytest.mark.parametrize("reading", [other, lambda whole: whole[:9_000]], ids=["other", "shorter"])
def test_another_reading_is_never_joined_to_what_was_played(
    open_studio: OpenStudio, reading: Callable[[Samples], Samples]
) -> None:
    backend = Retried(
        Try(fault=NO_MEMORY, before_fault=12_000), Try(reading=reading), Try(reading=reading)
    )
    job = rendered(open_studio, backend)
    assert job.records[0].state is SegmentState.SAVED
    assert backend.seeds == [5, 5, 5]
    (first_is_void, first), (second_is_void, second) = backend.listener.joined()
    assert (first_is_void, len(first)) == (True, PLAYED)
    assert not second_is_void
    assert pcm(second) == take_of(job)


def test_a_reading_that_an_engine_could_not_continue_is_void_and_begun_once_more(
    open_studio: OpenStudio,
) -> None:
    backend = Retried(Try(fault=CHANGED, before_fault=12_000), Try(reading=other))
    job = rendered(open_studio, backend)
    assert backend.seeds == [5, 5]
    (first_is_void, _), (second_is_void, second) = backend.listener.joined()
    assert (first_is_void, second_is_void) == (True, False)
    assert pcm(second) == take_of(job)


def test_one_that_never_can_be_continued_fails_with_the_reason(open_studio: OpenStudio) -> None:
    backend = Retried(*(Try(fault=CHANGED, before_fault=12_000) for _ in range(2)))
    job = rendered(open_studio, backend)
    record = job.records[0]
    assert (record.state, record.message) == (SegmentState.FAILED, "It came out otherwise.")
    assert record.fault == "ReadingChanged"
    assert next(backend.tries, None) is None


def test_after_a_fault_the_second_try_is_a_stream_of_its_own(open_studio: OpenStudio) -> None:
    backend = Retried(Try(fault=BROKEN, before_fault=12_000), Try(reading=other))
    job = rendered(open_studio, backend)
    assert backend.seeds[0] != backend.seeds[1]
    (first_is_void, first), (second_is_void, second) = backend.listener.joined()
    assert (first_is_void, len(first)) == (True, PLAYED)
    assert not second_is_void
    assert pcm(second) == take_of(job)


def test_where_the_first_of_several_tries_is_the_best_the_last_stream_is_void(
    open_studio: OpenStudio,
) -> None:
    def doubtful(whole: Samples) -> Samples:
        return np.concatenate([whole, np.zeros(240_000, np.float32), whole])

    def silent(whole: Samples) -> Samples:
        return np.zeros(480_000, np.float32)

    backend = Retried(Try(reading=doubtful), Try(reading=silent), Try(reading=silent))
    job = rendered(open_studio, backend, tries=3)
    heard = backend.listener.joined()
    assert [withdrawn for withdrawn, _ in heard] == [True, True, True]
    assert pcm(heard[0][1]) == take_of(job)


def test_of_tries_that_are_as_good_the_first_is_used(open_studio: OpenStudio) -> None:
    def silent(seconds: int) -> Try:
        return Try(reading=lambda _: np.zeros(seconds * 24_000, np.float32))

    job = rendered(open_studio, Retried(*map(silent, (20, 19, 21))), tries=3)
    record = job.records[0]
    assert [one.score for one in record.tries] == [5.0, 5.0, 5.0]
    assert record.best_try == 0


async def test_the_stream_of_another_reading_ends_there_and_nothing_follows(
    open_studio: OpenStudio,
) -> None:
    backend = Retried(
        Try(fault=NO_MEMORY, before_fault=12_000), Try(reading=other), Try(reading=other)
    )
    line = Speech("Ida", "This is the line that is played while it is made.")
    stream = SpeechStream(open_studio(backend), Dialog((line,)), SpeechOptions(seed=5))
    backend.follow(stream.job)
    lengths: list[int] = []

    async def send() -> None:
        async for chunk in stream.chunks():
            lengths.append(len(chunk))

    with pytest.raises(SpeechFailed):
        await send()
    assert sum(lengths) == PLAYED
    await stream.render.aclose()
