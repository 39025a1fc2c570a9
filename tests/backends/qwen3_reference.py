"""One line by the package's own `generate` and by ours, at temperature 0, on any device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from qwen3_speakers import collected, made_backend, speaker

from studio.audio.clip import Samples
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.qwen3_model import Qwen3Model
from studio.backends.qwen3.talker_slots import TalkerRequest
from studio.voices.speaker import Sample, Voice

FRAMES = 21  # three chunks: of 4, 16 and 1
SILENCE = np.zeros(12_000, dtype=np.float32)  # what the backend puts after a sample
GREEDY = {
    "do_sample": False,
    "subtalker_dosample": False,
    "repetition_penalty": 1.05,
    "max_new_tokens": FRAMES + 1,  # the package drops the frame of the last one
}

SAMPLE = speaker()
TIMBRE = speaker(transcript=None)
DESIGN = Voice("Ida", description="An old sailor, hoarse and kind.")
RYAN = Voice("Ida", preset="ryan", description="Whisper it.")
ERIC = Voice("Ida", preset="eric")  # speaks a dialect of Chinese

CASES = {
    "full reference": ("base", SAMPLE, "english"),
    "full reference, language left out": ("base", SAMPLE, None),
    "timbre only": ("base", TIMBRE, "german"),
    "preset with instruction": ("custom_voice", RYAN, "english"),
    "preset with dialect": ("custom_voice", ERIC, None),
    "preset with dialect, in another language": ("custom_voice", ERIC, "english"),
    "described": ("voice_design", DESIGN, "english"),
}


def package_audio(package: Any, voice: Voice, text: str, language: str) -> Samples:
    if voice.sample is not None:
        items = package_prompt(package, voice.sample)
        [wave], _ = package.generate_voice_clone(text, language, voice_clone_prompt=items, **GREEDY)
    elif voice.preset is not None:
        [wave], _ = package.generate_custom_voice(
            text, voice.preset, language, voice.description, **GREEDY
        )
    else:
        [wave], _ = package.generate_voice_design(text, voice.description, language, **GREEDY)
    return wave


def package_prompt(package: Any, sample: Sample) -> list[Any]:
    """The package's prompt of a sample; the silence belongs to its codes, not to its timbre."""
    audio, rate_hz = sample.clip.samples, sample.clip.rate_hz
    items = package.create_voice_clone_prompt((audio, rate_hz), x_vector_only_mode=True)
    if sample.transcript:
        padded = (np.append(audio, SILENCE), rate_hz)
        [full] = package.create_voice_clone_prompt(padded, sample.transcript)
        full.ref_spk_embedding = items[0].ref_spk_embedding
        items = [full]
    return items


@dataclass(frozen=True, slots=True)
class Pair:
    """One line twice: codes int64 [frames, groups], audio float32 [samples] at 24 kHz."""

    our_codes: torch.Tensor
    our_audio: Samples
    their_codes: torch.Tensor
    their_audio: Samples


def spoken_twice(case: str, text: str, package: Any, model: Qwen3Model) -> Pair:
    """Let the package and us speak a line; both hold the same checkpoint, on one device."""
    kind, voice, language = CASES[case]
    codec, decoded = package.model.speech_tokenizer, []
    decode = codec.decode
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "decode", lambda codes: decode(decoded.append(codes) or codes))
        their_audio = package_audio(package, voice, text, language or "auto")
    task = TalkerRequest(
        tokens=model.tokens.line(text),
        voice=made_backend(kind)._make_voice(model, voice),
        language=language,
        seed=0,
        sampling=SamplingParams(temperature=0),
        max_frames=FRAMES,
    )
    ours = torch.stack(collected(model.frames(task)))
    our_audio = np.concatenate(collected(model.speak(task)))
    return Pair(ours, our_audio, decoded[0][0]["audio_codes"][-len(ours) :], their_audio)
