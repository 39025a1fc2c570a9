"""Lines of known lengths through this package's engine, on a checkpoint with random weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.baselines import LANGUAGE, POSITIONS, make_recording
from benchmarks.metrics import (
    WARM_FRAMES,
    EngineMetrics,
    TimedLine,
    estimate_ideal_frame_s,
    mean_frames,
    track_memory,
)
from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Priority
from studio.backends.batching.batch_engine import BatchEngine, start_engine
from studio.backends.batching.kernel_set import select_kernels
from studio.backends.batching.memory_plan import measure_free_bytes
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
        parts: What frames are made of, by name; "" for what suits the device.
    """

    folder: Path
    device: str
    tries: int
    parts: str = ""


def measure_qwen3(
    trial: Qwen3Trial, dialogs: Sequence[Sequence[TimedLine]], *, slots: int
) -> Iterator[EngineMetrics]:
    """Measure this package's engine on one dialog after the other, loaded once.

    Args:
        trial: How.
        dialogs: All lines of one are asked for at once, and nobody listens.
        slots: Lines decoded together.
    """
    folder, device = trial.folder, trial.device
    model = load_model(folder, device, graphs=False)
    frames = sum(mean_frames(lines) for lines in dialogs) / len(dialogs)
    ideal_s = estimate_ideal_frame_s(model.package.talker, read_dims(folder), device, slots, frames)
    batch = BatchOptions(slots=slots, positions=POSITIONS)
    room = plan_talker_memory(read_dims(folder), measure_free_bytes(device), device, batch)
    kernels = select_kernels(
        device, compiles=trial.parts == "compiled", fuses=trial.parts == "fused"
    )
    core = TalkerRunner(model.package, room.layout, release=True, kernels=kernels)
    codec = partial(
        Qwen3CodecWorker, model.codec_decoder, title=TITLE, convolved_at_once=room.codec_frames
    )
    engine, slots = start_engine(core, codec, batch, title=TITLE)
    made = measure_engine(
        engine, _request_factory(model), device, dialogs, slots=slots, tries=trial.tries
    )
    for figures in made:
        name = f"{figures.name}, {trial.parts}" if trial.parts else figures.name
        yield replace(figures, name=name, ideal_s=ideal_s)


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
        steps = speaking.steps
        began_s = time.perf_counter()
        audio_s = speaking.all(lines)
        wall_s = time.perf_counter() - began_s
        steps = speaking.steps - steps
        first_s = speaking.first_audio(lines, beside=slots - 1, tries=tries)
    name = "this engine, 1 slot" if slots == 1 else f"this engine, {slots} slots"
    return EngineMetrics(
        name, audio_s, wall_s, first_s, memory(), frame_s=wall_s / steps, lines=len(lines)
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

    @property
    def steps(self) -> int:
        """Frames that the engine has made."""
        return self._engine.health().steps

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
                pool.submit(lambda: list(stream_chunks(self._engine.submit, task)))
            try:
                return [self._first(lines[n % len(lines)], beside) for n in range(tries)]
            finally:
                stop.append(True)

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


def _request_factory(model: Qwen3Model) -> RequestFn:
    """Lines of one timbre."""
    voice = model.clone_voice(make_recording(), None, 0.0)

    def task(line: TimedLine, **fields: Any) -> TalkerRequest:
        fields.setdefault("priority", partial(Priority, order=(-line.frames,)))
        return TalkerRequest(
            tokens=model.tokens.line(line.text),
            voice=voice,
            language=LANGUAGE,
            sampling=SamplingParams(),
            seed=line.frames,
            max_frames=line.frames,
            **fields,
        )

    return task
