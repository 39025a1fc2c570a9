"""Lines of known lengths through this package's engine, on a checkpoint with random weights."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.baselines import LANGUAGE, POSITIONS, make_recording
from benchmarks.engine_table import DeviceMissing
from benchmarks.metrics import (
    WARM_FRAMES,
    EngineMetrics,
    TimedLine,
    estimate_ideal_frame_s,
    mean_frames,
    track_memory,
)
from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Health, Priority
from studio.backends.batching.batch_engine import BatchEngine, start_engine
from studio.backends.batching.cuda_graphs import synchronize
from studio.backends.batching.kernel_set import select_kernels
from studio.backends.batching.memory_plan import MemoryPlan, measure_free_bytes
from studio.backends.batching.sequence import TtsRequest, stream_chunks
from studio.backends.options import BatchOptions
from studio.backends.qwen3.batched_codec import Qwen3CodecWorker
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.qwen3_memory import plan_talker_memory, read_dims
from studio.backends.qwen3.qwen3_model import Qwen3Model, load_model
from studio.backends.qwen3.talker import TalkerRunner
from studio.backends.qwen3.talker_slots import TalkerRequest
from studio.errors import SpeechFailed

TITLE = "Bench"
GRAPH_REPLAY, EAGER = "graph replay", "eager"
_PATIENCE_S = 300.0


RequestFn = Callable[..., TtsRequest]
"""Makes a task of a `TimedLine`; `cancelled` and `priority` by name."""


@dataclass(frozen=True, slots=True)
class Qwen3Trial:
    """How this package's engine is measured.

    Attributes:
        folder: From `write_checkpoint`.
        device: Where.
        tries: Times that a line is asked for, and listened to, while all other slots are taken.
        float32: As in `BatchOptions`.
        mixed: Whether each line that is listened to has another sampling than the one before.
        continuous: Whether a slot is refilled while other lines run; else a batch runs empty first.
        transcript: Of the voice's recording; with one the model goes on from the recording.
    """

    folder: Path
    device: str
    tries: int
    float32: bool = False
    mixed: bool = False
    continuous: bool = True
    transcript: str | None = None

    @property
    def details(self) -> str:
        """What to say of it besides the slots."""
        details = (
            "float32" if self.float32 else "",
            "mixed sampling" if self.mixed else "",
            "" if self.continuous else "batch and wait",
            "with transcripts" if self.transcript else "",
        )
        return "".join(f", {detail}" for detail in details if detail)

    def make_runner(
        self, model: Qwen3Model, batch: BatchOptions
    ) -> tuple[TalkerRunner, MemoryPlan]:
        """A runner of as many slots as asked for, which takes the model's layers."""
        room = plan_talker_memory(
            read_dims(self.folder), measure_free_bytes(self.device), self.device, batch
        )
        kernels = select_kernels(self.device, float32=self.float32)
        return TalkerRunner(model.package, room.layout, release=True, kernels=kernels), room


def measure_qwen3(
    trial: Qwen3Trial, dialogs: Sequence[Sequence[TimedLine]], *, slots: int
) -> Iterator[EngineMetrics]:
    """Measure this package's engine on one dialog after the other, loaded once.

    Args:
        trial: How.
        dialogs: All lines of one are asked for at once, and nobody listens.
        slots: Lines decoded together.
    """
    device = trial.device
    frames = sum(mean_frames(lines) for lines in dialogs) / len(dialogs)
    model = load_model(trial.folder, device, graphs=False)
    dims = read_dims(trial.folder)
    ideal_s = estimate_ideal_frame_s(model.package.talker, dims, device, slots, frames)
    engine, slots = open_engine(trial, model, slots)
    task_of = request_factory(model, trial.transcript, mixed=trial.mixed)
    made = measure_engine(engine, task_of, device, dialogs, slots=slots, tries=trial.tries)
    for figures in made:
        yield replace(figures, name=figures.name + trial.details, ideal_s=ideal_s)


def open_engine(trial: Qwen3Trial, model: Qwen3Model, slots: int) -> tuple[BatchEngine, int]:
    """Start an engine on a model, whose layers it takes; returns the slots that there are, too."""
    batch = BatchOptions(
        slots=slots, positions=POSITIONS, continuous=trial.continuous, float32=trial.float32
    )
    core, room = trial.make_runner(model, batch)
    codec = partial(
        Qwen3CodecWorker, model.codec_decoder, title=TITLE, convolved_at_once=room.codec_frames
    )
    return start_engine(core, codec, batch, title=TITLE)


def name_step(slots: int, how: str) -> str:
    """The name of a measured step."""
    return f"one step, {slots} slot{'s' if slots > 1 else ''}, {how}"


STEPS = 20
"""Frames over which a step is measured."""


def measure_step(trial: Qwen3Trial, *, slots: int, replays: bool) -> EngineMetrics:
    """Measure one frame of all slots, without codec: replayed as a graph, or step by step.

    The slots are free, which changes nothing about the work of a step.

    Args:
        trial: How.
        slots: Of the step.
        replays: Whether a graph is replayed.

    Raises:
        DeviceMissing: A graph can't be replayed here.
    """
    if replays and trial.device != "cuda":
        raise DeviceMissing("needs CUDA")
    batch = BatchOptions(slots=slots, positions=POSITIONS)
    core, _ = trial.make_runner(load_model(trial.folder, trial.device, graphs=False), batch)
    with closing(core), track_memory(trial.device) as memory:
        bucket = core.buckets[-1]
        core._graphs._captures = replays
        for _ in range(3):  # the first is plain, the second captures
            core.step(bucket)
        assert core._graphs.captured == int(replays)
        synchronize(core.device)
        began_s, cpu_s = time.perf_counter(), time.process_time()
        for _ in range(STEPS):
            core.step(bucket)
        synchronize(core.device)
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    name = name_step(slots, GRAPH_REPLAY if replays else EAGER)
    return EngineMetrics(name, 0.0, wall_s, (), memory(), frame_s=wall_s / STEPS, cpu_s=cpu_s)


def measure_engine(
    engine: BatchEngine,
    task_of: RequestFn,
    device: str,
    dialogs: Sequence[Sequence[TimedLine]],
    *,
    slots: int,
    tries: int,
) -> Iterator[EngineMetrics]:
    """Measure a running engine, and close it; the rest as for `measure_qwen3`.

    Args:
        engine: Idle.
        task_of: Makes a task of a line.
        device: Where it is.
        dialogs: All lines of one are asked for at once; first audio is that of the first one's.
        slots: Of the engine.
        tries: Times that a first line is listened to.
    """
    with closing(engine):
        speaking = _EngineClient(engine, task_of)
        speaking.all([TimedLine("Warm.", WARM_FRAMES)] * slots)
        for number, lines in enumerate(dialogs):
            yield _measure_dialog(
                speaking, device, lines, slots=slots, tries=0 if number else tries
            )


def _measure_dialog(
    speaking: _EngineClient, device: str, lines: Sequence[TimedLine], *, slots: int, tries: int
) -> EngineMetrics:
    with track_memory(device) as memory:
        before = speaking.health()
        began_s, cpu_s = time.perf_counter(), time.process_time()
        audio_s = speaking.all(lines)
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
        after = speaking.health()
        first_s = speaking.first_audio(lines, beside=slots - 1, tries=tries)
    name = "this engine, 1 slot" if slots == 1 else f"this engine, {slots} slots"
    return EngineMetrics(
        name,
        audio_s,
        wall_s,
        first_s,
        memory(),
        frame_s=wall_s / (after.steps - before.steps),
        lines=len(lines),
        cpu_s=cpu_s,
        refilled=after.refilled - before.refilled,
    )


class _EngineClient:
    """Lines through a running engine."""

    def __init__(self, engine: BatchEngine, task_of: RequestFn) -> None:
        self._engine = engine
        self._task = task_of

    def all(self, lines: Sequence[TimedLine]) -> float:
        """Ask for all at once; seconds of audio."""
        with ThreadPoolExecutor(len(lines)) as pool:
            return sum(pool.map(self._speak, lines))

    def health(self) -> Health:
        """What the engine has made so far."""
        return self._engine.health()

    def first_audio(self, lines: Sequence[TimedLine], *, beside: int, tries: int) -> list[float]:
        """Seconds to the first audio of a line that is listened to, beside others that run.

        Each try listens to the next line: a text of a new length may cost more.
        """
        if not tries:
            return []
        stop: list[bool] = []
        others = TimedLine(lines[0].text, POSITIONS)
        task = self._task(others, cancelled=lambda: bool(stop))
        with ThreadPoolExecutor(max(1, beside)) as pool:
            for _ in range(beside):
                pool.submit(self._repeat, task, stop)
            try:
                return [self._first(lines[n % len(lines)], beside) for n in range(tries)]
            finally:
                stop.append(True)

    def _repeat(self, task: TtsRequest, stop: Sequence[bool]) -> None:
        """Ask for a line again and again: where nothing streams, each try outlasts some."""
        while not stop:
            list(stream_chunks(self._engine.submit, task))

    def _first(self, line: TimedLine, beside: int) -> float:
        patience_s = time.perf_counter() + _PATIENCE_S
        while self._engine.health().running != beside and time.perf_counter() < patience_s:
            time.sleep(0.001)
        began_s = time.perf_counter()
        with closing(
            stream_chunks(self._engine.submit, self._task(line, priority=partial(Priority, 0)))
        ) as spoken:
            next(spoken)
            return time.perf_counter() - began_s

    def _speak(self, line: TimedLine) -> float:
        samples = 0
        try:
            for chunk in stream_chunks(self._engine.submit, self._task(line)):
                samples += len(chunk)
        except SpeechFailed:  # it was cut where it should be
            pass
        return samples / STUDIO_RATE_HZ


MIXED_SAMPLING = (
    SamplingParams(),
    SamplingParams(temperature=0),
    SamplingParams(top_p=0.8),
    SamplingParams(top_k=200),
)
"""What `mixed` lines that are listened to ask for, in turn; all but the first need graphs that a
usual line doesn't."""


def request_factory(model: Qwen3Model, transcript: str | None, *, mixed: bool = False) -> RequestFn:
    """Lines of one voice; `mixed` is that of `Qwen3Trial`."""
    voice = model.clone_voice(make_recording(), transcript, 0.0)
    turns = itertools.cycle(MIXED_SAMPLING if mixed else MIXED_SAMPLING[:1])

    def task(line: TimedLine, **fields: Any) -> TalkerRequest:
        sampling = next(turns) if "priority" in fields else SamplingParams()
        fields.setdefault("priority", partial(Priority, order=(-line.frames,)))
        return TalkerRequest(
            tokens=model.tokens.line(line.text),
            voice=voice,
            language=LANGUAGE,
            sampling=sampling,
            seed=line.frames,
            max_frames=line.frames,
            **fields,
        )

    return task
