from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from acting import ActingDraft
from scenes import OpenStudio

from studio.audio.clip import Clip
from studio.engine.model_manager import ModelState
from studio.errors import BadInput, Cancelled, EngineBusy, ModelInUse
from studio.voices.speaker import Voice

SAID = Clip(np.linspace(-0.5, 0.5, 24_000, dtype=np.float32))
WAIT_S = 60


def never() -> bool:
    return False


def test_a_recording_is_converted_under_a_lease(open_studio: OpenStudio) -> None:
    acting = ActingDraft(held=True)
    engine = open_studio(acting).engine
    with ThreadPoolExecutor() as threads:
        made = threads.submit(engine.convert, "draft", SAID, Voice("Ida"), never)
        assert acting.began.wait(WAIT_S)
        with pytest.raises(ModelInUse):
            engine.unload("draft")
        acting.released.set()
        assert len(made.result(WAIT_S)) == len(SAID)
    engine.unload("draft")
    assert engine.models.get_status("draft").state is ModelState.UNLOADED


def test_a_conversion_under_way_is_stopped_and_the_next_goes_on(open_studio: OpenStudio) -> None:
    acting = ActingDraft(held=True)
    engine = open_studio(acting).engine
    stop = threading.Event()
    with ThreadPoolExecutor() as threads:
        first = threads.submit(engine.convert, "draft", SAID, Voice("Ida"), stop.is_set)
        assert acting.began.wait(WAIT_S)
        second = threads.submit(engine.convert, "draft", SAID, Voice("Tom"), never)
        stop.set()
        with pytest.raises(Cancelled):
            first.result(WAIT_S)
        acting.released.set()
        assert len(second.result(WAIT_S)) == len(SAID)
    assert engine.models.get_status("draft").active == 0


def test_one_that_waits_is_stopped_without_the_one_before(open_studio: OpenStudio) -> None:
    acting = ActingDraft(held=True)
    engine = open_studio(acting).engine
    with ThreadPoolExecutor() as threads:
        first = threads.submit(engine.convert, "draft", SAID, Voice("Ida"), never)
        assert acting.began.wait(WAIT_S)
        with pytest.raises(Cancelled, match="before it began"):
            engine.convert("draft", SAID, Voice("Tom"), lambda: True)
        assert not first.done()
        acting.released.set()
        first.result(WAIT_S)


def test_too_many_at_once_are_sent_away(open_studio: OpenStudio) -> None:
    acting = ActingDraft(held=True)
    engine = open_studio(acting).engine
    stop = threading.Event()
    with ThreadPoolExecutor() as threads:
        tries = [
            threads.submit(engine.convert, "draft", SAID, Voice("Ida"), stop.is_set)
            for _ in range(6)
        ]
        assert acting.began.wait(WAIT_S)
        # The two that found no room are the first to end.
        while sum(one.done() for one in tries) < 2:
            threading.Event().wait(0.01)
        stop.set()
        errors = [type(one.exception(WAIT_S)) for one in tries]
    assert errors.count(EngineBusy) == 2
    assert errors.count(Cancelled) == 4


def test_a_backend_without_conversion_is_refused_before_it_is_loaded(
    open_studio: OpenStudio,
) -> None:
    engine = open_studio().engine
    with pytest.raises(BadInput, match="can't change the voice"):
        engine.convert("draft", SAID, Voice("Ida"), never)
    assert engine.models.get_status("draft").state is ModelState.UNLOADED


def test_conversions_one_after_the_other_are_never_too_many(open_studio: OpenStudio) -> None:
    engine = open_studio(ActingDraft()).engine
    for _ in range(5):
        assert len(engine.convert("draft", SAID, Voice("Ida"), never)) == len(SAID)
