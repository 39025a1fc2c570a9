"""First audio of a line that somebody listens to, beside as many as fill the slots: what it waits
for, counted on a small model whose news come a step late, as they do on a card."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_speakers import loaded_package, use_one_core

from benchmarks.synthetic_qwen3 import SIZES, build_random_model
from studio.backends.base import Priority
from studio.backends.batching import model_runner, prefill
from studio.backends.batching.batch_engine import BatchEngine
from studio.backends.batching.codec_worker import CodecFrames
from studio.backends.batching.model_runner import StatusReadback
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.batching.sequence import SequenceEnd, TtsSequence
from studio.backends.batching.slot_scheduler import SlotScheduler
from studio.backends.qwen3.batched_codec import Qwen3CodecWorker
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.codec_batch import CodecGraphBuffers, RowBlock
from studio.backends.qwen3.prompt import Qwen3Voice
from studio.backends.qwen3.talker import TalkerRunner
from studio.backends.qwen3.talker_slots import TalkerRequest

pytestmark = pytest.mark.models

SLOTS = 64
OTHERS = SLOTS - 1
PATIENCE_S = 120
FOREVER = 400  # frames; more than are made before the test ends
HIDDEN = SIZES["tiny"].hidden


@cache
def model() -> Any:
    """No line of it ends by itself."""
    use_one_core()
    return build_random_model(SIZES["tiny"])


def voice() -> Qwen3Voice:
    chance = torch.Generator().manual_seed(5)
    return Qwen3Voice(
        embedding=torch.randn(HIDDEN, generator=chance),
        ref_codes=torch.randint(0, 2_048, (12, 16), generator=chance),
        ref_tokens=torch.tensor([257, 100, 101, *range(20), 258, 10]),
    )


def task_of(whose: Qwen3Voice, words: int, frames: int, **fields: Any) -> TalkerRequest:
    return TalkerRequest(
        tokens=torch.tensor([257, 100, 101, *range(words), 258, 10, 257, 100, 10]),
        voice=whose,
        language="english",
        sampling=SamplingParams(),
        seed=words,
        max_frames=frames,
        **fields,
    )


@dataclass
class Course:
    """What happened, in order, in whichever thread; and a gate before a step."""

    events: list[tuple[str, Any]] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def note(self, what: str, how: Any = None) -> None:
        self.events.append((what, how))

    def gate(self) -> None:
        if self.closed.is_set():
            self.reached.set()
            assert self.opened.wait(PATIENCE_S)

    def until(self, wanted: Callable[[str, Any], bool]) -> list[tuple[str, Any]]:
        """All up to the first that is wanted, with it."""
        at = next(n for n, one in enumerate(self.events) if wanted(*one))
        return self.events[: at + 1]

    def of(self, what: str) -> list[Any]:
        return [how for name, how in self.events if name == what]


def watch(monkeypatch: pytest.MonkeyPatch, course: Course, core: TalkerRunner) -> None:
    """Note what the core and the codec are asked for."""
    step, progress, read, run = (
        core.step,
        core.progress,
        model_runner.prefill,
        CodecGraphBuffers.run,
    )
    submit = Qwen3CodecWorker.submit

    def noted_step(bucket: int) -> None:
        course.gate()
        course.note("step", bucket)
        step(bucket)

    def noted_progress(*, latest: bool = False) -> Any:
        course.note("wait", "the last step" if latest else "the one before")
        return progress(latest=latest)

    def noted_read(*args: Any, **how: Any) -> None:
        course.note("read", len(args[2]))
        read(*args, **how)

    def noted_submit(thread: Qwen3CodecWorker, frames: CodecFrames) -> None:
        course.note("handed over", (frames.streamed, len(frames.codes)))
        submit(thread, frames)

    def noted_run(rows: CodecGraphBuffers, block: RowBlock) -> Any:
        course.note("codec", block)
        return run(rows, block)

    monkeypatch.setattr(core, "step", noted_step)
    monkeypatch.setattr(core, "progress", noted_progress)
    monkeypatch.setattr(model_runner, "prefill", noted_read)
    monkeypatch.setattr(prefill, "prefill", noted_read)
    monkeypatch.setattr(Qwen3CodecWorker, "submit", noted_submit)
    monkeypatch.setattr(CodecGraphBuffers, "run", noted_run)


@contextmanager
def engine_of(monkeypatch: pytest.MonkeyPatch, course: Course) -> Iterator[BatchEngine]:
    core = TalkerRunner(model(), SlotLayout(SLOTS, 512, FOREVER))
    core._readback = StatusReadback(core._slots.ints, late=True)
    watch(monkeypatch, course, core)
    codec = Qwen3CodecWorker(loaded_package().model.speech_tokenizer.model.decoder, title="Paper")
    scheduler: SlotScheduler[TtsSequence] = SlotScheduler(SLOTS, max_wait_s=0.01)
    engine = BatchEngine(core, codec, scheduler, title="Paper")
    try:
        yield engine
    finally:
        course.opened.set()
        engine.close()


def heard_out(engine: BatchEngine, task: TalkerRequest) -> None:
    given: queue.SimpleQueue[Any] = queue.SimpleQueue()
    engine.submit(TtsSequence(task, given.put))
    while not isinstance(given.get(timeout=PATIENCE_S), SequenceEnd):
        pass


def fill(engine: BatchEngine, whose: Qwen3Voice, stopped: threading.Event) -> None:
    """Take all slots but one, and wait until all of those run."""
    for number in range(OTHERS):
        task = task_of(whose, 3 + number % 30, FOREVER, cancelled=stopped.is_set)
        engine.submit(TtsSequence(task, lambda _: None))
    patience = threading.Event()
    for _ in range(10 * PATIENCE_S):
        if engine.health().running == OTHERS:
            return
        patience.wait(0.1)
    raise AssertionError(f"{engine.health().running} of {OTHERS} lines run")


def test_first_audio_beside_63_others_waits_for_one_frame_one_prompt_and_one_call(monkeypatch):
    course, whose, stopped = Course(), voice(), threading.Event()
    given: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with engine_of(monkeypatch, course) as engine:
        heard_out(
            engine, task_of(whose, 4, 2, priority=lambda: Priority(0))
        )  # the voice is known from here
        fill(engine, whose, stopped)
        course.closed.set()
        assert course.reached.wait(PATIENCE_S)  # a step is about to be queued
        course.events.clear()
        line = task_of(whose, 9, FOREVER, priority=lambda: Priority(0), cancelled=stopped.is_set)
        engine.submit(TtsSequence(line, given.put))
        course.opened.set()
        first = given.get(timeout=PATIENCE_S)
        stopped.set()
        way = course.until(lambda what, how: (what, how) == ("handed over", (True, 1)))
    assert len(first) == 1_920
    assert [how for what, how in way if what == "step"] == [SLOTS, SLOTS]
    assert way[:2] == [("step", SLOTS), ("wait", "the one before")]  # under way when it came
    told: Sequence[tuple[str, Any]] = [one for one in way[2:] if one[0] != "codec"]
    print("what a listener waits for:", way)
    assert told == [
        ("handed over", (True, 0)),  # its sample is heard meanwhile
        ("read", 1),  # its own prompt, and no other
        ("step", SLOTS),
        ("wait", "the last step"),
        ("handed over", (True, 1)),
    ]
    assert course.of("codec")[0] == RowBlock(0, 1, 1)
