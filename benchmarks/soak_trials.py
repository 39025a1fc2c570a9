"""What an engine holds after many loads, and under lines of every kind."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

import torch

from benchmarks.metrics import EngineMetrics, TimedLine
from benchmarks.qwen3_trials import Qwen3Trial, RequestFn, open_engine, request_factory
from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Priority
from studio.backends.batching.batch_engine import BatchEngine
from studio.backends.batching.sequence import stream_chunks
from studio.backends.device import give_back, memory_used_bytes
from studio.backends.qwen3.qwen3_model import load_model
from studio.errors import Cancelled, SpeechFailed

CYCLES = 4
"""Loads and unloads; the first brings what a process keeps of its libraries."""


def measure_leak(
    trial: Qwen3Trial, lines: Sequence[TimedLine], slots: int
) -> Iterator[EngineMetrics]:
    """Load, speak and unload; each row has what the process holds afterwards."""
    for cycle in range(1, CYCLES + 1):
        began_s = time.perf_counter()
        audio_s = _load_and_speak(trial, lines, slots)
        wall_s = time.perf_counter() - began_s
        give_back(trial.device)
        yield EngineMetrics(
            f"after unload {cycle} of {CYCLES}",
            audio_s,
            wall_s,
            (),
            used_bytes(trial.device),
            lines=len(lines),
        )


def _load_and_speak(trial: Qwen3Trial, lines: Sequence[TimedLine], slots: int) -> float:
    model = load_model(trial.folder, trial.device, graphs=False)
    engine, _ = open_engine(trial, model, slots)
    task_of = request_factory(model, trial.transcript)
    del model
    with closing(engine), ThreadPoolExecutor(len(lines)) as pool:
        soak = Soak(engine, task_of, lines, 0.0)
        return sum(pool.map(soak.speak_whole, lines))


def used_bytes(device: str) -> int:
    """Memory in use: on CUDA of the whole card, what no allocator of torch knows included."""
    if device != "cuda":
        return memory_used_bytes(device)
    free, total = torch.cuda.mem_get_info()
    return total - free


def measure_soak(
    trial: Qwen3Trial, lines: Sequence[TimedLine], slots: int, seconds: float
) -> EngineMetrics:
    """Keep more lines in flight than there are slots, of mixed sampling, for some seconds.

    Every tenth line is cancelled, and somebody listens to every tenth. The notes hold how many
    lines came, how many failed though nobody cancelled them, the engine's faults, and the memory
    that was added after the first quarter.
    """
    model = load_model(trial.folder, trial.device, graphs=False)
    engine, slots = open_engine(trial, model, slots)
    task_of = request_factory(model, trial.transcript, mixed=True)
    with closing(engine):
        soak = Soak(engine, task_of, lines, seconds)
        began_s, cpu_s = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(slots + slots // 2 + 1) as pool:
            workers = [pool.submit(soak.work, number) for number in range(slots + slots // 2)]
            early = pool.submit(_bytes_after, seconds / 4, trial.device)
            for worker in workers:
                worker.result()
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
        late, faults = used_bytes(trial.device), engine.health().faults
    return EngineMetrics(
        f"soak of {seconds:.0f} s, {slots} slots",
        soak.audio_s,
        wall_s,
        soak.first_s,
        late,
        lines=soak.lines_done,
        cpu_s=cpu_s,
        notes=f"{soak.lines_failed} lines failed, {faults} faults, "
        f"{(late - early.result()) / 1e6:+.0f} MB",
    )


def _bytes_after(seconds: float, device: str) -> int:
    time.sleep(seconds)
    return used_bytes(device)


@dataclass(slots=True)
class Soak:
    """Lines through an engine until time is up; `work` is called by many threads.

    Attributes:
        first_s: To the first audio of lines that were listened to.
    """

    engine: BatchEngine
    task_of: RequestFn
    lines: Sequence[TimedLine]
    seconds: float
    first_s: list[float] = field(default_factory=list)
    lines_done: int = 0
    lines_failed: int = 0
    audio_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)  # guards the counts

    def work(self, number: int) -> None:
        """Ask for one line after the other."""
        chance = random.Random(number)  # noqa: S311 - not for secrets
        until_s = time.perf_counter() + self.seconds
        while time.perf_counter() < until_s:
            line, kind = chance.choice(self.lines), chance.randrange(10)
            if kind == 0:
                self._cancel(line, after_s=chance.random() / 10)
            elif kind == 1:
                self._listen(line)
            else:
                self.speak_whole(line)

    def speak_whole(self, line: TimedLine) -> float:
        """Speak a line; seconds of audio."""
        return self._consume(self.task_of(line))

    def _listen(self, line: TimedLine) -> None:
        self._consume(self.task_of(line, priority=partial(Priority, 0)), listens=True)

    def _cancel(self, line: TimedLine, *, after_s: float) -> None:
        until_s = time.perf_counter() + after_s
        task = self.task_of(line, cancelled=lambda: time.perf_counter() > until_s)
        self._consume(task)

    def _consume(self, task: object, *, listens: bool = False) -> float:
        samples, failed, began_s = 0, 0, time.perf_counter()
        try:
            for chunk in stream_chunks(self.engine.submit, task):  # type: ignore[arg-type]
                if listens and not samples:
                    self.first_s.append(time.perf_counter() - began_s)
                samples += len(chunk)
        except Cancelled:
            pass
        except SpeechFailed:  # a line is cut where it should be; one without audio has failed
            failed = int(not samples)
        with self._lock:
            self.lines_done += 1
            self.lines_failed += failed
            self.audio_s += samples / STUDIO_RATE_HZ
        return samples / STUDIO_RATE_HZ
