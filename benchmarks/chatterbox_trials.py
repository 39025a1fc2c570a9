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

from benchmarks.metrics import EngineMetrics, TimedLine, measure_one_by_one
from benchmarks.qwen3_trials import TITLE, RequestFn, measure_engine
from benchmarks.synthetic_chatterbox import ModelDepth, build_random_package
from studio.backends.base import Priority
from studio.backends.batching.batch_engine import start_engine
from studio.backends.batching.codec_worker import CodecFrames, CodecWorker
from studio.backends.batching.kernel_set import select_kernels
from studio.backends.batching.memory_plan import measure_free_bytes
from studio.backends.chatterbox.alignment import UNMONITORED_TEXT_TOKENS
from studio.backends.chatterbox.chatterbox_memory import T3Dims, plan_t3_memory
from studio.backends.chatterbox.chatterbox_model import TURBO_TAIL, ChatterboxModel
from studio.backends.chatterbox.s3gen_worker import S3GenWorker
from studio.backends.chatterbox.t3_runner import T3Runner
from studio.backends.chatterbox.t3_slots import T3Request, T3SamplingParams
from studio.backends.chatterbox.variants import TOKENS_PER_S, TURBO, ChatterboxVariant
from studio.backends.options import BatchOptions

_CHARS_PER_TOKEN = {True: 4, False: 2}  # of text
_TEXT_TOKENS = 500
_SAMPLES_PER_TOKEN = 960


@dataclass(frozen=True, slots=True)
class ChatterboxTrial:
    """What is measured.

    Attributes:
        variant: Which.
        depth: Of the model.
        device: Where.
        half: Whether this engine's T3 is in 16 bits; CUDA only.
        sound: Whether tokens become sound, or nothing.
    """

    variant: ChatterboxVariant
    depth: ModelDepth
    device: str
    half: bool = False
    sound: bool = True

    @property
    def turbo(self) -> bool:
        """Whether it is the turbo model."""
        return self.variant is TURBO

    def package(self) -> Any:
        """The package's model, anew."""
        return build_random_package(self.variant, self.depth, self.device)


def measure_chatterbox(
    trial: ChatterboxTrial, lines: Sequence[TimedLine], *, slots: int, tries: int
) -> EngineMetrics:
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
    room = plan_t3_memory(
        trial.variant,
        T3Dims.of(model.t3, half=trial.half),
        measure_free_bytes(device),
        device,
        batch,
    )
    kernels = select_kernels(device, float32=True)
    core = T3Runner(model.t3, room.layout, dtype=model.dtype, release=True, kernels=kernels)
    made = S3GenWorker if trial.sound else _SilentWorker
    engine, slots = start_engine(core, partial(made, model, title=TITLE), batch, title=TITLE)
    task_of = _request_factory(model, trial)
    [figures] = measure_engine(engine, task_of, device, [lines], slots=slots, tries=tries)
    return figures


def measure_package(trial: ChatterboxTrial, lines: Sequence[TimedLine]) -> EngineMetrics:
    """Measure the package's own loops, line by line; arguments as for `measure_chatterbox`."""
    package, turbo = trial.package(), trial.turbo

    def speak(line: TimedLine) -> float:
        # The package prints while it speaks; standard output is the table's.
        with torch.inference_mode(), contextlib.redirect_stdout(sys.stderr):
            tokens = _generate_package_tokens(package, line, turbo=turbo)
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

    return measure_one_by_one("chatterbox, one by one", trial.device, lines, speak)


def _generate_package_tokens(package: Any, line: TimedLine, *, turbo: bool) -> torch.Tensor:
    """As many tokens as it is asked for: int64 [n]."""
    text = _text_tokens(package.t3, line, turbo=turbo).to(package.device)
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


def _text_tokens(t3: Any, line: TimedLine, *, turbo: bool) -> torch.Tensor:
    """Text tokens without a meaning, as many as a line has."""
    count = max(UNMONITORED_TEXT_TOKENS + 1, len(line.text) // _CHARS_PER_TOKEN[turbo])
    tokens = torch.arange(count)[None] % _TEXT_TOKENS
    if not turbo:
        tokens[0, 0], tokens[0, -1] = t3.hp.start_text_token, t3.hp.stop_text_token
    return tokens


def _request_factory(model: ChatterboxModel, trial: ChatterboxTrial) -> RequestFn:
    """Lines of the model's own voice, with the package's default settings."""
    voice, turbo = model.voice(None), trial.turbo
    given = {param.name: param.default for param in trial.variant.capabilities.params}
    exaggeration = given.pop("exaggeration", 0.0)
    if turbo:
        given["top_k"] = int(given["top_k"])
    sampling = T3SamplingParams(**given)  # type: ignore[arg-type]

    def task(line: TimedLine, **fields: Any) -> T3Request:
        text = _text_tokens(model.t3, line, turbo=turbo)
        fields.setdefault("priority", partial(Priority, order=(-line.frames,)))
        return T3Request(
            text=text,
            voice=voice,
            exaggeration=exaggeration,
            sampling=sampling,
            seed=line.frames,
            max_frames=line.frames,
            **fields,
        )

    return task


class _SilentWorker(CodecWorker):
    """Stands for S3Gen where only tokens are measured."""

    streams = False
    frames_per_s = TOKENS_PER_S

    def __init__(self, model: ChatterboxModel, *, title: str) -> None:
        super().__init__(torch.device(model.device), title=title)

    def _batch(self, finished: deque[CodecFrames]) -> list[CodecFrames]:
        return [finished.popleft()]

    def _decode_chunks(self, batch: Sequence[CodecFrames]) -> None:
        self._decode_finished(list(batch))

    def _decode_finished(self, batch: list[CodecFrames]) -> None:
        for frames in batch:
            samples = np.zeros(len(frames.codes) * _SAMPLES_PER_TOKEN, np.float32)
            frames.line.deliver(samples)
            frames.line.end(frames.error)
