"""What Chatterbox computes from a sample: once, kept on the CPU, written as safetensors."""

from __future__ import annotations

import copy
import io
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from chatterbox.models.t3.modules.cond_enc import T3Cond
from chatterbox.tts_turbo import ChatterboxTurboTTS
from safetensors.torch import load_file, save_file

from studio.audio.clip import Clip
from studio.backends.base import Conditioning


@dataclass(frozen=True, slots=True)
class ClonedVoice:
    """A voice as the models take it. How much it exaggerates is each line's own choice.

    Attributes:
        speaker: float32 [1, 256], for T3.
        speech_prompt: int64 [1, n], the sample's first tokens, for T3.
        prompt_token: int64 [1, n], the sample's tokens, for S3Gen.
        prompt_feat: float32 [1, 2 * n, 80], its mel spectrogram.
        embedding: float32 [1, 192], its speaker for S3Gen.
    """

    speaker: torch.Tensor
    speech_prompt: torch.Tensor
    prompt_token: torch.Tensor
    prompt_feat: torch.Tensor
    embedding: torch.Tensor

    def to(self, device: torch.device | str) -> ClonedVoice:
        """The same on another device."""
        return ClonedVoice(**{name: part.to(device) for name, part in self.tensors().items()})

    def tensors(self) -> dict[str, torch.Tensor]:
        """Its parts by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def for_t3(self, exaggeration: float) -> T3Cond:
        """T3's conditioning for one line; T3 keeps embeddings on it, so each line has its own."""
        return T3Cond(
            speaker_emb=self.speaker,
            cond_prompt_speech_tokens=self.speech_prompt,
            emotion_adv=torch.full((1, 1, 1), exaggeration, device=self.speaker.device),
        )


def voice_of(conditionals: Any) -> ClonedVoice:
    """Take the voice out of the package's `Conditionals`, onto the CPU."""
    made = conditionals.gen
    return ClonedVoice(
        speaker=conditionals.t3.speaker_emb,
        speech_prompt=conditionals.t3.cond_prompt_speech_tokens.long(),
        prompt_token=made["prompt_token"].long(),
        prompt_feat=made["prompt_feat"],
        embedding=made["embedding"],
    ).to("cpu")


def clone(package: Any, clip: Clip) -> ClonedVoice:
    """Compute a voice from a sample with the package's own `prepare_conditionals`.

    It stores its result on the object it is called on, so it is called on a copy that shares
    all modules.
    """
    scratch = copy.copy(package)
    with torch.inference_mode():
        if isinstance(package, ChatterboxTurboTTS):
            # Left to the package, numpy 2 makes this float64, which its tokenizer refuses.
            even = package.norm_loudness(clip.samples, clip.rate_hz).astype(np.float32)
            scratch.prepare_conditionals(_wav(Clip(even, clip.rate_hz)), norm_loudness=False)
        else:
            scratch.prepare_conditionals(_wav(clip))
    return voice_of(scratch.conds)


def conditioning_of(voice: ClonedVoice) -> Conditioning:
    """Wrap a voice for the engine."""
    return Conditioning(voice, sum(part.nbytes for part in voice.tensors().values()))


def write_voice(voice: ClonedVoice, path: Path) -> None:
    """Write a voice as safetensors."""
    save_file({name: part.contiguous() for name, part in voice.tensors().items()}, path)


def read_voice(path: Path) -> ClonedVoice:
    """Read what `write_voice` wrote."""
    return ClonedVoice(**load_file(path))


def _wav(clip: Clip) -> io.BytesIO:
    file = io.BytesIO()
    soundfile.write(file, clip.samples, clip.rate_hz, format="WAV", subtype="FLOAT")
    file.seek(0)
    return file
