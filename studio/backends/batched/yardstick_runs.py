"""Lines of known lengths through this package's engine, on a checkpoint with random weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.batched.assembly import assembled
from studio.backends.batched.core import BatchedCore
from studio.backends.batched.dimensions import dimensions_in
from studio.backends.batched.figures import (
    WARM_FRAMES,
    Figures,
    TimedLine,
    lines_mean,
    memory_used,
)
from studio.backends.batched.infer import chunks
from studio.backends.batched.line import LineTask, Task
from studio.backends.batched.memory import free_memory_bytes, room_for
from studio.backends.batched.parts import chosen
from studio.backends.batched.rivals import LANGUAGE, POSITIONS, recording
from studio.backends.batched.roofline import ideal_frame_s
from studio.backends.batched.thread import Engine
from studio.backends.options import BatchOptions
from studio.backends.qwen3.model import Qwen3Model, load_model
from studio.backends.qwen3.request import Sampling
from studio.errors import SpeechFailed

TITLE = "Bench"
_PATIENCE_S = 300.0


TaskOf = Callable[..., Task]
"""Makes a task of a `TimedLine`; `cancelled` and `urgency` by name."""


@dataclass(frozen=True, slots=True)
class Trial:
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


def ours(trial: Trial, dialogs: Sequence[Sequence[TimedLine]], *, slots: int) -> Iterator[Figures]:
    """Measure this package's engine on one dialog after the other, loaded once.

    Args:
        trial: How.
        dialogs: All lines of one are asked for at once, and nobody listens.
        slots: Lines decoded together.
    """
    folder, device = trial.folder, trial.device
    model = load_model(folder, device, graphs=False)
    frames = sum(lines_mean(lines) for lines in dialogs) / len(dialogs)
    ideal_s = ideal_frame_s(model.package.talker, dimensions_in(folder), device, slots, frames)
    batch = BatchOptions(slots=slots, positions=POSITIONS)
    room = room_for(dimensions_in(folder), free_memory_bytes(device), device, batch)
    parts = chosen(device, compiles=trial.parts == "compiled", fuses=trial.parts == "fused")
    core = BatchedCore(model.package, room.layout, release=True, parts=parts)
    engine, slots = assembled(model, core, room, batch, title=TITLE)
    made = timed(engine, _asked(model), device, dialogs, slots=slots, tries=trial.tries)
    for figures in made:
        name = f"{figures.name}, {trial.parts}" if trial.parts else figures.name
        yield replace(figures, name=name, ideal_s=ideal_s)


def timed(
    engine: Engine,
    task_of: TaskOf,
    device: str,
    dialogs: Sequence[Sequence[TimedLine]],
    *,
    slots: int,
    tries: int,
) -> Iterator[Figures]:
    """Measure a running engine, and close it; the rest as for `ours`.

    Args:
        engine: Idle.
        task_of: Makes a task of a line.
        device: Where it is.
        dialogs: All lines of one are asked for at once; first audio is that of the first one's.
        slots: Of the engine.
        tries: Times that a first line is listened to.
    """
    with closing(engine):
        speaking = _Speaking(engine, task_of)
        speaking.all([TimedLine("Warm.", WARM_FRAMES)] * slots)
        for number, lines in enumerate(dialogs):
            yield _timed(speaking, device, lines, slots=slots, tries=0 if number else tries)


def _timed(
    speaking: _Speaking, device: str, lines: Sequence[TimedLine], *, slots: int, tries: int
) -> Figures:
    with memory_used(device) as memory:
        steps = speaking.steps
        began_s = time.perf_counter()
        audio_s = speaking.all(lines)
        wall_s = time.perf_counter() - began_s
        steps = speaking.steps - steps
        first_s = speaking.first_audio(lines, beside=slots - 1, tries=tries)
    name = "this engine, 1 slot" if slots == 1 else f"this engine, {slots} slots"
    return Figures(
        name, audio_s, wall_s, first_s, memory(), frame_s=wall_s / steps, lines=len(lines)
    )


class _Speaking:
    """Lines through a running engine."""

    def __init__(self, engine: Engine, task_of: TaskOf) -> None:
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
                pool.submit(lambda: list(chunks(self._engine.submit, task)))
            try:
                return [self._first(lines[n % len(lines)], beside) for n in range(tries)]
            finally:
                stop.append(True)

    def _first(self, line: TimedLine, beside: int) -> float:
        patience_s = time.perf_counter() + _PATIENCE_S
        while self._engine.health().running != beside and time.perf_counter() < patience_s:
            time.sleep(0.001)
        began_s = time.perf_counter()
        with closing(chunks(self._engine.submit, self._task(line, urgency=lambda: 0))) as spoken:
            next(spoken)
            return time.perf_counter() - began_s

    def _speak(self, line: TimedLine) -> float:
        samples = 0
        try:
            for chunk in chunks(self._engine.submit, self._task(line)):
                samples += len(chunk)
        except SpeechFailed:  # it was cut where it should be
            pass
        return samples / STUDIO_RATE_HZ


def _asked(model: Qwen3Model) -> TaskOf:
    """Lines of one timbre."""
    voice = model.cloned(recording(), None, 0.0)

    def task(line: TimedLine, **fields: Any) -> LineTask:
        return LineTask(
            tokens=model.tokens.line(line.text),
            voice=voice,
            language=LANGUAGE,
            sampling=Sampling(),
            seed=line.frames,
            max_frames=line.frames,
            expected_frames=line.frames,
            **fields,
        )

    return task
