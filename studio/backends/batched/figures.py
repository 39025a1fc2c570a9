"""What an engine did on lines of known lengths, and how that is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from studio.backends.device import give_back, memory_used_bytes

WARM_FRAMES = 12


@dataclass(frozen=True, slots=True)
class TimedLine:
    """A line and the frames it lasts."""

    text: str
    frames: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What one engine did.

    Attributes:
        name: Of the engine.
        audio_s: Made in the counted run.
        wall_s: Of that run, codec included.
        first_s: Time to first audio, one figure a try.
        memory_bytes: The most that was allocated, on a CPU the process's memory at the end.
        frame_s: Time a frame took, of all lines together; None where it isn't known.
        ideal_s: What reading weights and caches once takes at this device's speed.
        lines: It was measured on.
    """

    name: str
    audio_s: float
    wall_s: float
    first_s: Sequence[float]
    memory_bytes: int
    frame_s: float | None = None
    ideal_s: float | None = None
    lines: int = 0

    @property
    def speed(self) -> float:
        """Audio seconds a second."""
        return self.audio_s / self.wall_s


def lines_mean(lines: Sequence[TimedLine]) -> float:
    """Mean frames of a line."""
    return sum(line.frames for line in lines) / len(lines)


def one_by_one(
    name: str, device: str, lines: Sequence[TimedLine], speak: Callable[[TimedLine], float]
) -> Figures:
    """Measure an engine that gives a line when it is whole."""
    with memory_used(device) as memory:
        speak(TimedLine("Warm.", WARM_FRAMES))
        took_s, audio_s = [], 0.0
        for line in lines:
            began_s = time.perf_counter()
            audio_s += speak(line)
            took_s.append(time.perf_counter() - began_s)
    frame_s = sum(took_s) / sum(line.frames for line in lines)
    return Figures(name, audio_s, sum(took_s), took_s, memory(), frame_s, lines=len(lines))


@contextmanager
def memory_used(device: str) -> Iterator[Callable[[], int]]:
    """The most allocated within, on a CPU what the process holds at the end."""
    give_back(device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    used = [0]
    yield lambda: used[0]
    used[0] = torch.cuda.max_memory_allocated() if device == "cuda" else memory_used_bytes(device)
