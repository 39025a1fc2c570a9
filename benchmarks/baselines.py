"""Baselines: the engines that ours is compared with, one line after the other, of one timbre."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.metrics import EngineMetrics, TimedLine, measure_one_by_one
from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.qwen3.prompt import Qwen3Voice
from studio.backends.qwen3.qwen3_model import load_model

POSITIONS = 1_024
LANGUAGE = "english"


def measure_reference(folder: Path, device: str, lines: Sequence[TimedLine]) -> EngineMetrics:
    """Measure the package the model came with, one line after the other."""
    from qwen_tts import Qwen3TTSModel

    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    package = Qwen3TTSModel.from_pretrained(str(folder), device_map=device, dtype=dtype)
    prompt = [_prompt_item(_clone_timbre(folder, device))]

    def speak(line: TimedLine) -> float:
        [wave], rate_hz = package.generate_voice_clone(
            line.text, LANGUAGE, voice_clone_prompt=prompt, max_new_tokens=line.frames + 1
        )
        return len(wave) / rate_hz

    return measure_one_by_one("qwen_tts, one by one", device, lines, speak)


def measure_faster(
    folder: Path, device: str, lines: Sequence[TimedLine], *, tries: int
) -> EngineMetrics:
    """Measure faster-qwen3-tts, one line after the other; CUDA only."""
    from faster_qwen3_tts import FasterQwen3TTS

    package = FasterQwen3TTS.from_pretrained(str(folder), device=device, max_seq_len=POSITIONS)
    prompt = [_prompt_item(_clone_timbre(folder, device))]

    def asked(line: TimedLine) -> dict[str, Any]:
        return {
            **{"text": line.text, "language": LANGUAGE, "voice_clone_prompt": prompt},
            "max_new_tokens": line.frames,
        }

    def speak(line: TimedLine) -> float:
        [wave], rate_hz = package.generate_voice_clone(**asked(line))
        return len(wave) / rate_hz

    figures = measure_one_by_one("faster-qwen3-tts, one by one", device, lines, speak)
    first_s = []
    for number in range(tries):
        line = lines[number % len(lines)]
        began_s = time.perf_counter()
        with closing(package.generate_voice_clone_streaming(**asked(line), chunk_size=1)) as out:
            next(out)
            first_s.append(time.perf_counter() - began_s)
    return replace(figures, first_s=first_s, frame_s=None)


def _clone_timbre(folder: Path, device: str) -> Qwen3Voice:
    return load_model(folder, device, graphs=False).clone_voice(make_recording(), None, 0.0)


def _prompt_item(voice: Qwen3Voice) -> Any:
    from qwen_tts.inference.qwen3_tts_model import VoiceClonePromptItem

    return VoiceClonePromptItem(
        ref_code=None, ref_spk_embedding=voice.embedding, x_vector_only_mode=True, icl_mode=False
    )


def make_recording() -> Clip:
    """Two seconds of noise; a voice of its own as well as any."""
    noise = np.random.default_rng(0).normal(0, 0.1, 2 * STUDIO_RATE_HZ)
    return Clip(noise.astype(np.float32))
