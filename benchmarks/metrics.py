"""What an engine did on lines of known lengths, how it is measured, and the ideal frame time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from studio.backends.device import give_back, memory_used_bytes
from studio.backends.qwen3.qwen3_memory import TalkerDims

if TYPE_CHECKING:
    import torch

WARM_FRAMES = 12


@dataclass(frozen=True, slots=True)
class TimedLine:
    """A line and the frames it lasts."""

    text: str
    frames: int


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """What one engine did.

    Attributes:
        name: Of the engine.
        audio_s: Made in the counted run; 0 where no audio was made, only frames.
        wall_s: Of that run, codec included.
        first_s: Time to first audio, one figure a try.
        memory_bytes: The most that was allocated, on a CPU the process's memory at the end.
        frame_s: Time a frame took, of all lines together; None where it isn't known.
        ideal_s: What reading weights and caches once takes at this device's speed.
        lines: It was measured on.
        cpu_s: Processor seconds of that run, of all cores and threads together; None if unknown.
        refilled: Slots that were refilled while other lines ran on; None for one without slots.
        notes: What else there is to say.
    """

    name: str
    audio_s: float
    wall_s: float
    first_s: Sequence[float]
    memory_bytes: int
    frame_s: float | None = None
    ideal_s: float | None = None
    lines: int = 0
    cpu_s: float | None = None
    refilled: int | None = None
    notes: str = ""

    @property
    def speed(self) -> float:
        """Audio seconds a second."""
        return self.audio_s / self.wall_s

    def rate_on(self, device: str) -> float:
        """What engines are compared by: audio seconds a second, on a CPU a processor second.

        Wall time of a CPU tells of all that runs on it. 0 where nothing can be compared.
        """
        took_s = self.cpu_s if device == "cpu" else self.wall_s
        return self.audio_s / took_s if took_s else 0.0


def mean_frames(lines: Sequence[TimedLine]) -> float:
    """Mean frames of a line."""
    return sum(line.frames for line in lines) / len(lines)


def measure_one_by_one(
    name: str, device: str, lines: Sequence[TimedLine], speak: Callable[[TimedLine], float]
) -> EngineMetrics:
    """Measure an engine that gives a line when it is whole."""
    with track_memory(device) as memory:
        speak(TimedLine("Warm.", WARM_FRAMES))
        took_s, audio_s, cpu_s = [], 0.0, time.process_time()
        for line in lines:
            began_s = time.perf_counter()
            audio_s += speak(line)
            took_s.append(time.perf_counter() - began_s)
        cpu_s = time.process_time() - cpu_s
    frame_s = sum(took_s) / sum(line.frames for line in lines)
    return EngineMetrics(
        name, audio_s, sum(took_s), took_s, memory(), frame_s, lines=len(lines), cpu_s=cpu_s
    )


def measure_at_once(
    name: str,
    device: str,
    lines: Sequence[TimedLine],
    speak: Callable[[Sequence[TimedLine]], float],
) -> EngineMetrics:
    """Measure an engine that takes all lines in one call, and gives all when the last is whole."""
    with track_memory(device) as memory:
        speak([TimedLine("Warm.", WARM_FRAMES)] * 2)
        began_s, cpu_s = time.perf_counter(), time.process_time()
        audio_s = speak(lines)
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    frame_s = wall_s / max(line.frames for line in lines)
    return EngineMetrics(
        name, audio_s, wall_s, [wall_s], memory(), frame_s, lines=len(lines), cpu_s=cpu_s
    )


@contextmanager
def track_memory(device: str) -> Iterator[Callable[[], int]]:
    """The most allocated within, on a CPU what the process holds at the end."""
    give_back(device)
    used = [0]
    if device != "cuda":
        yield lambda: used[0]
        used[0] = memory_used_bytes(device)
        return
    import torch

    torch.cuda.reset_peak_memory_stats()
    yield lambda: used[0]
    used[0] = torch.cuda.max_memory_allocated()


_COPIED_BYTES = 256_000_000
_COPIES = 8


def estimate_ideal_frame_s(
    talker: Any, dimensions: TalkerDims, device: str, slots: int, mean_frames: float
) -> float:
    """Seconds that reading weights and caches takes at the speed of a copy on this device.

    Args:
        talker: The package's `Qwen3TTSTalkerForConditionalGeneration`, with all its layers.
        dimensions: Of the same checkpoint.
        device: Where it is.
        slots: Lines decoded together.
        mean_frames: Of a line; on average half of them are in the cache.
    """
    number_bytes = talker.codec_head.weight.element_size()
    cached = dimensions.position_numbers * slots * mean_frames / 2
    moved_bytes = _weights_bytes(talker) + cached * number_bytes
    return moved_bytes / measure_copy_bytes_per_s(device)


@cache
def measure_copy_bytes_per_s(device: str) -> float:
    """Bytes that this device reads and writes a second when it copies: the best of some copies."""
    import torch

    source = torch.ones(_COPIED_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best_s = min(_time_copy_s(source, target, device) for _ in range(_COPIES))
    return 2 * _COPIED_BYTES / best_s


def _time_copy_s(source: torch.Tensor, target: torch.Tensor, device: str) -> float:
    _synchronize(device)
    began_s = time.perf_counter()
    target.copy_(source)
    _synchronize(device)
    return time.perf_counter() - began_s


def _synchronize(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def _weights_bytes(talker: Any) -> int:
    """What a frame reads: the talker once, the predictor's layers once a code, each head once."""
    predictor = talker.code_predictor
    rest = _parameter_bytes(predictor.model.layers) * len(predictor.lm_head) + _parameter_bytes(
        predictor.lm_head
    )
    return _parameter_bytes(talker.model.layers) + _parameter_bytes(talker.codec_head) + rest


def _parameter_bytes(module: Any) -> int:
    return sum(parameter.nbytes for parameter in module.parameters())
