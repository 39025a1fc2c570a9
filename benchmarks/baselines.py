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

from benchmarks.metrics import EngineMetrics, TimedLine, measure_at_once, measure_one_by_one
from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.qwen3.prompt import Qwen3Voice
from studio.backends.qwen3.qwen3_model import load_model

POSITIONS = 1_024
LANGUAGE = "english"


TRANSCRIPT = "Nobody has climbed the stairs since Tuesday."
"""What the recording is said to hold, where voices have a transcript."""


def measure_reference(
    folder: Path, device: str, lines: Sequence[TimedLine], *, transcript: str | None = None
) -> EngineMetrics:
    """Measure the package the model came with, one line after the other."""
    prompt = [_prompt_item(_clone_voice(folder, device, transcript), transcript)]
    package = _load_reference(folder, device)

    def speak(line: TimedLine) -> float:
        [wave], rate_hz = package.generate_voice_clone(
            line.text, LANGUAGE, voice_clone_prompt=prompt, max_new_tokens=line.frames + 1
        )
        return len(wave) / rate_hz

    name = "qwen_tts, one by one, with transcripts" if transcript else "qwen_tts, one by one"
    return measure_one_by_one(name, device, lines, speak)


def measure_reference_list(folder: Path, device: str, lines: Sequence[TimedLine]) -> EngineMetrics:
    """Measure the package the model came with, given the list of all texts in one call.

    It batches them by itself, until the longest has ended. A line of trained weights ends before;
    here its codes are cut where it should, before they become audio.
    """
    prompt = [_prompt_item(_clone_voice(folder, device))]
    package = _load_reference(folder, device)
    generate = package.model.generate

    def speak(asked: Sequence[TimedLine]) -> float:
        def generate_cut(*given: Any, **named: Any) -> tuple[list[torch.Tensor], Any]:
            codes, hidden = generate(*given, **named)
            return [one[: line.frames] for one, line in zip(codes, asked, strict=True)], hidden

        package.model.generate = generate_cut
        waves, rate_hz = package.generate_voice_clone(
            [line.text for line in asked],
            LANGUAGE,
            voice_clone_prompt=prompt,
            max_new_tokens=max(line.frames for line in asked) + 1,
        )
        return sum(len(wave) for wave in waves) / rate_hz

    return measure_at_once("qwen_tts, list of all texts", device, lines, speak)


def _load_reference(folder: Path, device: str) -> Any:
    from qwen_tts import Qwen3TTSModel

    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    return Qwen3TTSModel.from_pretrained(str(folder), device_map=device, dtype=dtype)


def measure_faster(
    folder: Path, device: str, lines: Sequence[TimedLine], *, tries: int
) -> EngineMetrics:
    """Measure faster-qwen3-tts, one line after the other; CUDA only."""
    from faster_qwen3_tts import FasterQwen3TTS

    package = FasterQwen3TTS.from_pretrained(str(folder), device=device, max_seq_len=POSITIONS)
    prompt = [_prompt_item(_clone_voice(folder, device))]

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


def _clone_voice(folder: Path, device: str, transcript: str | None = None) -> Qwen3Voice:
    return load_model(folder, device, graphs=False).clone_voice(make_recording(), transcript, 0.0)


def _prompt_item(voice: Qwen3Voice, transcript: str | None = None) -> Any:
    from qwen_tts.inference.qwen3_tts_model import VoiceClonePromptItem

    return VoiceClonePromptItem(
        ref_code=voice.ref_codes,
        ref_spk_embedding=voice.embedding,
        x_vector_only_mode=transcript is None,
        icl_mode=transcript is not None,
        ref_text=transcript,
    )


def make_recording() -> Clip:
    """Two seconds of noise; a voice of its own as well as any."""
    noise = np.random.default_rng(0).normal(0, 0.1, 2 * STUDIO_RATE_HZ)
    return Clip(noise.astype(np.float32))
