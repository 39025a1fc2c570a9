"""The same lines through several engines, on a checkpoint with random weights.

Every engine clones the same timbre, makes each line as long as it is told, and gives audio.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.batched.assembly import assembled
from studio.backends.batched.core import BatchedCore
from studio.backends.batched.infer import chunks
from studio.backends.batched.line import LineTask, Task
from studio.backends.batched.memory import dimensions_in, free_memory_bytes, room_for
from studio.backends.batched.roofline import ideal_frame_s
from studio.backends.batched.thread import Engine
from studio.backends.device import give_back, memory_used_bytes
from studio.backends.options import BatchOptions
from studio.backends.qwen3.model import Qwen3Model, load_model
from studio.backends.qwen3.request import Sampling
from studio.backends.qwen3.voice import Qwen3Voice
from studio.errors import SpeechFailed

_POSITIONS = 1_024
TITLE = "Bench"
_LANGUAGE = "english"
WARM_FRAMES = 12
_PATIENCE_S = 300.0


TaskOf = Callable[..., Task]
"""Makes a task of a `TimedLine`; `cancelled` and `urgency` by name."""


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


@dataclass(frozen=True, slots=True)
class Trial:
    """How this package's engine is measured.

    Attributes:
        folder: From `write_checkpoint`.
        device: Where.
        tries: Times that a line is asked for, and listened to, while all other slots are taken.
        compiles: Whether frames are made of compiled parts.
    """

    folder: Path
    device: str
    tries: int
    compiles: bool = False


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
    batch = BatchOptions(slots=slots, positions=_POSITIONS)
    room = room_for(dimensions_in(folder), free_memory_bytes(device), device, batch)
    core = BatchedCore(model.package, room.layout, release=True, compiles=trial.compiles)
    engine, slots = assembled(model, core, room, batch, title=TITLE)
    made = timed(engine, _asked(model), device, dialogs, slots=slots, tries=trial.tries)
    for figures in made:
        name = f"{figures.name}, compiled" if trial.compiles else figures.name
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


def reference(folder: Path, device: str, lines: Sequence[TimedLine]) -> Figures:
    """Measure the package the model came with, one line after the other."""
    from qwen_tts import Qwen3TTSModel

    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    package = Qwen3TTSModel.from_pretrained(str(folder), device_map=device, dtype=dtype)
    prompt = [_prompt_item(_timbre(folder, device))]

    def speak(line: TimedLine) -> float:
        [wave], rate_hz = package.generate_voice_clone(
            line.text, _LANGUAGE, voice_clone_prompt=prompt, max_new_tokens=line.frames + 1
        )
        return len(wave) / rate_hz

    return one_by_one("qwen_tts, one by one", device, lines, speak)


def faster(folder: Path, device: str, lines: Sequence[TimedLine], *, tries: int) -> Figures:
    """Measure faster-qwen3-tts, one line after the other; CUDA only."""
    from faster_qwen3_tts import FasterQwen3TTS

    package = FasterQwen3TTS.from_pretrained(str(folder), device=device, max_seq_len=_POSITIONS)
    prompt = [_prompt_item(_timbre(folder, device))]

    def asked(line: TimedLine) -> dict[str, Any]:
        return {
            **{"text": line.text, "language": _LANGUAGE, "voice_clone_prompt": prompt},
            "max_new_tokens": line.frames,
        }

    def speak(line: TimedLine) -> float:
        [wave], rate_hz = package.generate_voice_clone(**asked(line))
        return len(wave) / rate_hz

    figures = one_by_one("faster-qwen3-tts, one by one", device, lines, speak)
    first_s = []
    for number in range(tries):
        line = lines[number % len(lines)]
        began_s = time.perf_counter()
        with closing(package.generate_voice_clone_streaming(**asked(line), chunk_size=1)) as out:
            next(out)
            first_s.append(time.perf_counter() - began_s)
    return replace(figures, first_s=first_s, frame_s=None)


def lines_mean(lines: Sequence[TimedLine]) -> float:
    """Mean frames of a line."""
    return sum(line.frames for line in lines) / len(lines)


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
        others = TimedLine(lines[0].text, _POSITIONS)
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
    voice = model.cloned(_recording(), None, 0.0)

    def task(line: TimedLine, **fields: Any) -> LineTask:
        return LineTask(
            tokens=model.tokens.line(line.text),
            voice=voice,
            language=_LANGUAGE,
            sampling=Sampling(),
            seed=line.frames,
            max_frames=line.frames,
            expected_frames=line.frames,
            **fields,
        )

    return task


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


def _timbre(folder: Path, device: str) -> Qwen3Voice:
    return load_model(folder, device, graphs=False).cloned(_recording(), None, 0.0)


def _prompt_item(voice: Qwen3Voice) -> Any:
    from qwen_tts.inference.qwen3_tts_model import VoiceClonePromptItem

    return VoiceClonePromptItem(
        ref_code=None, ref_spk_embedding=voice.embedding, x_vector_only_mode=True, icl_mode=False
    )


def _recording() -> Clip:
    """Two seconds of noise; a voice of its own as well as any."""
    noise = np.random.default_rng(0).normal(0, 0.1, 2 * STUDIO_RATE_HZ)
    return Clip(noise.astype(np.float32))
