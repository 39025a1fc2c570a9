"""The scheduler for other programs: when lines begin, and how they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from studio.audio.clip import Samples
from studio.backends.base import Capabilities, Conditioning, Param, SpeechRequest
from studio.errors import BadInput, Cancelled, Conflict, SettingError, SpeechFailed
from tableread_engine.planned_names import BatchScheduler
from tableread_engine.speech_model import SpeechModel
from tableread_engine.speech_scheduler import SpeechScheduler

PATIENCE_S = 60
LEVEL = Param("level", "Level", 0.0, 1.0, 0.5, 0.1)


class Gated:
    """A backend whose lines end when the test lets them, and that keeps what happened in order."""

    name = title = revision = "gated"
    capabilities = Capabilities(24_000, 100, builtin_voice=True, params=(LEVEL,), slots=2)

    def __init__(self) -> None:
        self.events: list[str] = []
        self._changed = threading.Condition()
        self._open: set[str] = set()

    def condition(self, voice: object) -> Conditioning:
        return Conditioning(voice, 0)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        text = request.text
        with self._changed:
            self._note(f"begin {text}")
            while text not in self._open and not request.cancelled():
                self._changed.wait(0.01)  # as often as a model asks between steps
            self._note(f"end {text}")
        if request.cancelled():
            raise Cancelled
        if text == "broken":
            raise SpeechFailed("It broke.")
        yield np.full(4, request.params.get("level", 0.5), np.float32)

    def let(self, *texts: str) -> None:
        with self._changed:
            self._open.update(texts)
            self._changed.notify_all()

    async def until(self, event: str) -> None:
        def wait() -> None:
            with self._changed:
                assert self._changed.wait_for(lambda: event in self.events, PATIENCE_S)

        await asyncio.to_thread(wait)

    def _note(self, event: str) -> None:
        self.events.append(event)
        self._changed.notify_all()


@pytest.fixture
def backend() -> Gated:
    return Gated()


@pytest.fixture
def make(backend) -> Callable[..., SpeechScheduler]:
    return lambda **given: SpeechScheduler(SpeechModel(backend), **given)


def asked(scheduler: SpeechScheduler, *texts: str) -> list[asyncio.Task]:
    return [asyncio.create_task(scheduler.infer(text=text)) for text in texts]


async def test_continuous_refills_a_slot_while_others_run(backend, make) -> None:
    scheduler = make()
    await scheduler.start()
    lines = asked(scheduler, "a", "b", "c")
    await backend.until("begin b")
    assert "begin c" not in backend.events
    backend.let("a")
    await backend.until("begin c")
    assert "end b" not in backend.events
    backend.let("b", "c")
    assert [rate for _, rate in await asyncio.gather(*lines)] == [24_000] * 3
    await scheduler.stop()


async def test_batch_and_wait_begins_when_the_last_batch_is_done(backend, make) -> None:
    scheduler = make(continuous=False, max_wait_ms=10_000)
    await scheduler.start()
    lines = asked(scheduler, "a", "b", "c", "d")
    backend.let("a")
    await lines[0]
    await backend.until("begin b")
    backend.let("b", "c", "d")
    await asyncio.gather(*lines)
    await scheduler.stop()
    assert set(backend.events[:4]) == {"begin a", "end a", "begin b", "end b"}


async def test_a_batch_that_is_not_full_begins_after_its_wait(backend, make) -> None:
    scheduler = make(continuous=False, max_wait_ms=1)
    await scheduler.start()
    backend.let("a")
    samples, _ = await scheduler.infer(text="a")
    assert samples.tolist() == [0.5] * 4
    await scheduler.stop()


async def test_a_line_fails_alone_and_with_its_own_error(backend, make) -> None:
    scheduler = make(defaults={"level": 0.25})
    await scheduler.start()
    backend.let("a", "broken", "b")
    made = await asyncio.gather(
        scheduler.infer(text="a"),
        scheduler.infer(text="broken"),
        scheduler.infer(text="a", level=7),
        scheduler.infer(text="b", level=0.5),
        return_exceptions=True,
    )
    await scheduler.stop()
    assert made[0][0].tolist() == [0.25] * 4
    assert isinstance(made[1], SpeechFailed)
    assert isinstance(made[2], BadInput)
    assert made[3][0].tolist() == [0.5] * 4


async def test_cancelling_a_call_frees_its_slot(backend, make) -> None:
    scheduler = make(max_batch=1)
    await scheduler.start()
    first, second, third = asked(scheduler, "a", "b", "c")
    await backend.until("begin a")
    second.cancel()  # while it waits
    first.cancel()
    backend.let("c")
    await third
    assert backend.events == ["begin a", "end a", "begin c", "end c"]
    assert [one.cancelled() for one in (first, second)] == [True, True]
    await scheduler.stop()


async def test_stopping_finishes_what_was_asked_for_and_refuses_the_rest(backend, make) -> None:
    scheduler = make(max_batch=1)
    with pytest.raises(Conflict, match="start it first"):
        await scheduler.infer(text="a")
    await scheduler.start()
    with pytest.raises(Conflict, match="runs already"):
        await scheduler.start()
    lines = asked(scheduler, "a", "b")
    await backend.until("begin a")
    stopping = asyncio.create_task(scheduler.stop())
    backend.let("a", "b")
    await stopping
    assert [len(samples) for samples, _ in await asyncio.gather(*lines)] == [4, 4]
    with pytest.raises(Conflict):
        await scheduler.infer(text="a")
    await scheduler.stop()
    await scheduler.start()  # again
    await scheduler.infer(text="a")
    await scheduler.stop()


def test_planned_names_and_ranges(backend) -> None:
    model = SpeechModel(backend)
    BatchScheduler(model, max_batch_size=4, max_wait_ms=50, gen_kwargs={"max_new_tokens": 5})
    for wrong in ({"max_batch": 0}, {"max_wait_ms": -1}, {"max_wait_ms": float("nan")}):
        with pytest.raises(SettingError):
            SpeechScheduler(model, **wrong)
