"""The same codes and the same audio as the package's own `generate`, at temperature 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_speakers import collected, loaded_backend, loaded_model, loaded_package, speaker

from studio.audio.clip import Samples
from studio.backends.qwen3.model import Task
from studio.backends.qwen3.request import Sampling
from studio.speakers.speaker import Sample, Voice

pytestmark = pytest.mark.models

FRAMES = 24
SILENCE = np.zeros(12_000, dtype=np.float32)  # what the backend puts after a sample
GREEDY = {
    "do_sample": False,
    "subtalker_dosample": False,
    "repetition_penalty": 1.05,
    "max_new_tokens": FRAMES + 1,  # the package drops the frame of the last one
}

LONGER = "The kettle is on, and the door is open to the garden."

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


@pytest.mark.parametrize(("text", "ends"), [(LONGER, False), ("Yes.", True)])
@pytest.mark.parametrize("case", CASES)
def test_greedy_codes_and_audio_are_those_of_the_package(case, text, ends, monkeypatch):
    kind, voice, language = CASES[case]
    package, model = loaded_package(kind, ends=ends), loaded_model(kind, ends=ends)
    codec = package.model.speech_tokenizer
    decode, decoded = codec.decode, []
    monkeypatch.setattr(codec, "decode", lambda codes: decode(decoded.append(codes) or codes))

    theirs = package_audio(package, voice, text, language or "auto")
    task = Task(
        text=text,
        voice=loaded_backend(kind).condition(voice).payload,
        language=language,
        seed=0,
        sampling=Sampling(temperature=0),
        max_frames=FRAMES,
        stop=lambda: None,
    )
    ours = torch.stack(collected(model.frames(task)))
    audio = np.concatenate(collected(model.speak(task)))

    their_codes = decoded[0][0]["audio_codes"][-len(ours) :]
    assert len(ours) == FRAMES or ends
    assert torch.equal(ours, their_codes)
    assert len(audio) == len(ours) * 1_920
    assert np.abs(audio - theirs[-len(audio) :]).max() < 1e-4
    assert abs(len(theirs) - len(audio)) <= 1  # the package cuts the sample off by proportion
