"""Backends on a card that is lent: in a forked process, which shares nothing with this one."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from environment import settings_from

from studio.app import _studio
from studio.backends.base import Conditioning, Priority, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.backends.zero_gpu import (
    GpuCall,
    ZeroGpuProxy,
    duration_s,
)
from studio.errors import Cancelled, SampleRejected, SpeechFailed
from studio.voices.speaker import Voice

PATIENCE_S = 240
END = None


class Forking:
    """Runs what it marks in a process that is forked at the first call, as the platform does."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("fork")
        self.processes: list[Any] = []
        self.asked_s: list[int] = []
        self._pipe: Any = None
        self._stop = self.context.Event()

    def __call__(self, *, duration):
        def mark(task):
            def lent(errand: GpuCall) -> Iterator[Any]:
                self.asked_s.append(duration(errand))
                if not self.processes:
                    self._fork(task)
                self._pipe.send(errand)  # pickled, as there
                try:
                    while (made := self._received()) is not END:
                        yield made
                except GeneratorExit:
                    self._stop.set()
                    while self._received() is not END:
                        pass
                    raise

            return lent

        return mark

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()

    def _received(self) -> Any:
        assert self._pipe.poll(PATIENCE_S), "the other process hangs"
        return self._pipe.recv()

    def _fork(self, task) -> None:
        self._pipe, there = self.context.Pipe()
        process = self.context.Process(target=self._serve, args=(task, there), daemon=True)
        process.start()
        there.close()  # so that the end of the process is the end of the pipe
        self.processes.append(process)

    def _serve(self, task, pipe) -> None:
        while True:
            errand = pipe.recv()
            self._stop.clear()
            made = task(errand)
            for one in made:
                if self._stop.is_set():
                    made.close()
                    break
                pipe.send(one)
            pipe.send(END)


class Here:
    """Where nothing is lent, a marked function is the function itself; it may also fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def __call__(self, *, duration):
        def lent(_errand: GpuCall) -> Iterator[Any]:
            raise self._error
            yield

        return lambda task: task if self._error is None else lent


@pytest.fixture
def forking() -> Iterator[Forking]:
    lender = Forking()
    yield lender
    lender.close()


class Pid(DraftBackend):
    """Tells who speaks."""

    name = "pid"

    def fetch(self, _progress) -> None:
        self.fetched = True

    def write_conditioning(self, conditioning: Conditioning, path: Path) -> None:
        assert conditioning.payload is not None
        path.write_text("Ida")

    def read_conditioning(self, path: Path) -> Conditioning:
        return super().condition(Voice(path.read_text()))

    def condition(self, voice: Voice):
        if voice.speaker == "Nobody":
            raise SampleRejected("Nobody has no sample.")
        if voice.speaker == "Fault":
            raise ValueError("no such tensor")
        return super().condition(voice)

    def speak(self, request):
        yield np.full(10, os.getpid(), np.float32)
        yield from super().speak(request)


def asked(text: str, **fields: object):
    backend = DraftBackend()
    return SpeechRequest(text, backend.condition(Voice("Ida")), seed=1, **fields)


@pytest.fixture
def lent(forking: Forking):
    backend = ZeroGpuProxy(lambda _: Pid(), forking).wrap(Pid())
    backend.load(lambda _: None)
    return backend


def test_a_request_full_of_functions_of_this_process_is_spoken_in_the_other(lent, forking):
    request = asked("Hello.", cancelled=lambda: False, priority=lambda: Priority(0))
    chunks = list(lent.speak(request))
    assert {*chunks[0].tolist()} == {float(forking.processes[0].pid)}
    assert forking.processes[0].pid != os.getpid()
    assert sum(map(len, chunks[1:])) > 1_000


def test_errors_there_are_those_here(lent):
    with pytest.raises(SampleRejected, match="Nobody has no sample"):
        lent.condition(Voice("Nobody"))
    with pytest.raises(SpeechFailed, match="ValueError: no such tensor"):
        lent.condition(Voice("Fault"))
    assert lent.condition(Voice("Ida")).size_bytes >= 0


def test_a_cancelled_line_gives_the_card_back_for_the_next(lent, forking):
    stopped: list[bool] = []
    chunks = lent.speak(asked("Hello.", cancelled=lambda: bool(stopped)))
    next(chunks)
    stopped.append(True)
    with pytest.raises(Cancelled):
        next(chunks)
    closed = lent.speak(asked("Hello."))
    next(closed)
    closed.close()
    assert list(lent.speak(asked("Hello.")))
    assert len(forking.processes) == 1


def test_a_card_that_is_not_lent_is_told():
    backend = ZeroGpuProxy(lambda _: Pid(), Here(RuntimeError("GPU task aborted"))).wrap(Pid())
    with pytest.raises(SpeechFailed, match=r"gave no answer \(GPU task aborted\)"):
        list(backend.speak(asked("Hello.")))


def test_the_time_stays_within_what_is_lent() -> None:
    def seconds(text: str) -> int:
        return duration_s(GpuCall("pid", "speak", {"request": asked(text)}))

    assert 40 <= seconds("a") < seconds("a" * 5_000) == 120
    voice = {"voice": Voice("Ida")}
    assert duration_s(GpuCall("pid", "condition", voice)) == 40


def test_the_draft_voice_needs_no_card() -> None:
    backend = DraftBackend()
    assert ZeroGpuProxy(lambda _: backend, Here()).wrap(backend) is backend
    assert "speak" not in vars(backend)


def test_no_engine_with_threads_of_its_own_on_a_card_that_is_lent(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "spaces", SimpleNamespace(GPU=Here()))
    settings = settings_from(
        {"SPACES_ZERO_GPU": "true", "TABLEREAD_WORKSPACE": str(tmp_path), "TTS_BACKEND": "draft"}
    )
    with _studio(settings) as studio:
        assert {"qwen3", "draft"} <= {*studio.options.backend_names}
        assert not studio.backends()["qwen3"]._batch.enabled
        assert studio.backends()["qwen3"].capabilities.slots is None


@pytest.mark.models
def test_a_neural_voice_clones_and_speaks_on_the_card_as_it_does_here(forking):
    pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")
    from qwen3_speakers import collected, loaded_backend, made_backend, request_for, speaker

    here = loaded_backend()
    lent = ZeroGpuProxy(lambda _: made_backend(), forking).wrap(made_backend())
    lent.load(lambda _: None)
    for number in (1, 2):
        plain = collected(here.speak(request_for(here, speaker(), "No.", seed=number)))
        spoken = collected(lent.speak(request_for(lent, speaker(), "No.", seed=number)))
        assert np.array_equal(np.concatenate(plain), np.concatenate(spoken))
    assert lent._model is None
    assert len(forking.processes) == 1
    with pytest.raises(SpeechFailed, match="doesn't know the language"):
        list(lent.speak(request_for(lent, speaker(), language="xx")))
