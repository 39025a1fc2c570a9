"""The same lines through the package and through this engine, with and without their sound."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from studio.backends.batched.assembly import started
from studio.backends.batched.figures import Figures, TimedLine, one_by_one
from studio.backends.batched.memory import free_memory_bytes
from studio.backends.batched.sound_thread import Frames, SoundThread
from studio.backends.batched.yardstick_runs import TITLE, TaskOf, timed
from studio.backends.batched_chatterbox.core import TokenCore
from studio.backends.batched_chatterbox.memory import TokenDimensions, token_room
from studio.backends.batched_chatterbox.sound_thread import S3GenThread
from studio.backends.batched_chatterbox.token_line import TokenSampling, TokenTask
from studio.backends.batched_chatterbox.yardstick import Depth, random_package
from studio.backends.chatterbox.model import TURBO_TAIL, ChatterboxModel
from studio.backends.chatterbox.text import TOKENS_PER_S
from studio.backends.chatterbox.variants import TURBO, Variant
from studio.backends.chatterbox.watch import UNWATCHED_TEXT_TOKENS
from studio.backends.options import BatchOptions

_CHARS_PER_TOKEN = {True: 4, False: 2}  # of text
_TEXT_TOKENS = 500
_SAMPLES_PER_TOKEN = 960


@dataclass(frozen=True, slots=True)
class Trial:
    """What is measured.

    Attributes:
        variant: Which.
        depth: Of the model.
        device: Where.
        half: Whether this engine's T3 is in 16 bits; CUDA only.
        sound: Whether tokens become sound, or nothing.
    """

    variant: Variant
    depth: Depth
    device: str
    half: bool = False
    sound: bool = True

    @property
    def turbo(self) -> bool:
        """Whether it is the turbo model."""
        return self.variant is TURBO

    def package(self) -> Any:
        """The package's model, anew."""
        return random_package(self.variant, self.depth, self.device)


def ours(trial: Trial, lines: Sequence[TimedLine], *, slots: int, tries: int) -> Figures:
    """Measure this package's engine.

    Args:
        trial: What.
        lines: All are asked for at once; `frames` are tokens.
        slots: Lines decoded together.
        tries: Times that a line is asked for beside `slots` - 1 others.
    """
    device = trial.device
    model = ChatterboxModel(trial.variant, trial.package(), device, amp=trial.half)
    batch = BatchOptions(slots=slots)
    room = token_room(
        trial.variant,
        TokenDimensions.of(model.t3, half=trial.half),
        free_memory_bytes(device),
        device,
        batch,
    )
    core = TokenCore(model.t3, room.layout, dtype=model.dtype, release=True)
    made = S3GenThread if trial.sound else _Silence
    engine, slots = started(core, partial(made, model, title=TITLE), batch, title=TITLE)
    task_of = _asked(model, trial)
    [figures] = timed(engine, task_of, device, [lines], slots=slots, tries=tries)
    return figures


def reference(trial: Trial, lines: Sequence[TimedLine]) -> Figures:
    """Measure the package's own loops, one line after the other; arguments as for `ours`."""
    package, turbo = trial.package(), trial.turbo

    def speak(line: TimedLine) -> float:
        # The package prints while it speaks; standard output is the table's.
        with torch.inference_mode(), contextlib.redirect_stdout(sys.stderr):
            tokens = _tokens_of_package(package, line, turbo=turbo)
            if trial.sound:
                silence = tokens.new_tensor(TURBO_TAIL if turbo else ())
                tokens = torch.cat([tokens, silence])
                steps = {"n_cfm_timesteps": 2} if turbo else {}
                wave, _ = package.s3gen.inference(
                    speech_tokens=tokens, ref_dict=package.conds.gen, **steps
                )
                package.watermarker.apply_watermark(
                    wave.squeeze(0).cpu().numpy(), sample_rate=package.sr
                )
        return len(tokens) / TOKENS_PER_S

    return one_by_one("chatterbox, one by one", trial.device, lines, speak)


def _tokens_of_package(package: Any, line: TimedLine, *, turbo: bool) -> torch.Tensor:
    """As many tokens as it is asked for: int64 [n]."""
    text = _text(package.t3, line, turbo=turbo).to(package.device)
    if turbo:
        tokens = package.t3.inference_turbo(
            t3_cond=package.conds.t3, text_tokens=text, max_gen_len=line.frames - 1
        )
    else:
        tokens = package.t3.inference(
            t3_cond=package.conds.t3,
            text_tokens=text.expand(2, -1),
            max_new_tokens=line.frames,
            top_p=1.0,
        )
        for layer in package.t3.tfmr.layers:
            layer.self_attn._forward_hooks.clear()  # which the multilingual one adds with each line
    row: torch.Tensor = tokens[0]
    return row


def _text(t3: Any, line: TimedLine, *, turbo: bool) -> torch.Tensor:
    """Text tokens without a meaning, as many as a line has."""
    count = max(UNWATCHED_TEXT_TOKENS + 1, len(line.text) // _CHARS_PER_TOKEN[turbo])
    tokens = torch.arange(count)[None] % _TEXT_TOKENS
    if not turbo:
        tokens[0, 0], tokens[0, -1] = t3.hp.start_text_token, t3.hp.stop_text_token
    return tokens


def _asked(model: ChatterboxModel, trial: Trial) -> TaskOf:
    """Lines of the model's own voice, with the package's default settings."""
    voice, turbo = model.voice(None), trial.turbo
    given = {param.name: param.default for param in trial.variant.capabilities.params}
    exaggeration = given.pop("exaggeration", 0.0)
    if turbo:
        given["top_k"] = int(given["top_k"])
    sampling = TokenSampling(**given)  # type: ignore[arg-type]

    def task(line: TimedLine, **fields: Any) -> TokenTask:
        text = _text(model.t3, line, turbo=turbo)
        how = (line.frames, line.frames, line.frames)  # seed, bound, expected
        return TokenTask(text, voice, exaggeration, sampling, *how, **fields)

    return task


class _Silence(SoundThread):
    """Stands for S3Gen where only tokens are measured."""

    streams = False
    frames_per_s = TOKENS_PER_S

    def __init__(self, model: ChatterboxModel, *, title: str) -> None:
        super().__init__(torch.device(model.device), title=title)

    def _batch(self, finished: deque[Frames]) -> list[Frames]:
        return [finished.popleft()]

    def _chunks(self, batch: Sequence[Frames]) -> None:
        self._whole(list(batch))

    def _whole(self, batch: list[Frames]) -> None:
        for frames in batch:
            samples = np.zeros(len(frames.codes) * _SAMPLES_PER_TOKEN, np.float32)
            frames.line.give(samples)
            frames.line.end(frames.error)
