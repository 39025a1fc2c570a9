"""A cloned voice, stored on the CPU and as safetensors, and T3's prompts made of it."""

from __future__ import annotations

import copy
import io
from collections.abc import Hashable
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
from studio.backends.batching.prefill import EmbeddingCache
from studio.backends.batching.slots import to_device


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
        """Copy to another device."""
        return ClonedVoice(**{name: part.to(device) for name, part in self.tensors().items()})

    def tensors(self) -> dict[str, torch.Tensor]:
        """Its tensors by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def size_bytes(self) -> int:
        return sum(part.nbytes for part in self.tensors().values())

    def write(self, path: Path) -> None:
        """Write it as safetensors."""
        save_file({name: part.contiguous() for name, part in self.tensors().items()}, path)

    @classmethod
    def read(cls, path: Path) -> ClonedVoice:
        """Read what `write` wrote."""
        return cls(**load_file(path))

    def for_t3(self, exaggeration: float) -> T3Cond:
        """T3's conditioning for one line; T3 keeps embeddings on it, so each line has its own."""
        return T3Cond(
            speaker_emb=self.speaker,
            cond_prompt_speech_tokens=self.speech_prompt,
            emotion_adv=torch.full((1, 1, 1), exaggeration, device=self.speaker.device),
        )


def extract_voice(conditionals: Any) -> ClonedVoice:
    """Convert the package's `Conditionals` to a voice on the CPU."""
    made = conditionals.gen
    return ClonedVoice(
        speaker=conditionals.t3.speaker_emb,
        speech_prompt=conditionals.t3.cond_prompt_speech_tokens.long(),
        prompt_token=made["prompt_token"].long(),
        prompt_feat=made["prompt_feat"],
        embedding=made["embedding"],
    ).to("cpu")


def clone_voice(package: Any, clip: Clip) -> ClonedVoice:
    """Compute a voice from a sample with the package's own `prepare_conditionals`.

    It stores its result on the object it is called on, so it is called on a copy that shares
    all modules.
    """
    scratch = copy.copy(package)
    with torch.inference_mode():
        if isinstance(package, ChatterboxTurboTTS):
            # Left to the package, numpy 2 makes this float64, which its tokenizer refuses.
            even = package.norm_loudness(clip.samples, clip.rate_hz).astype(np.float32)
            scratch.prepare_conditionals(_encode_wav(Clip(even, clip.rate_hz)), norm_loudness=False)
        else:
            scratch.prepare_conditionals(_encode_wav(clip))
    return extract_voice(scratch.conds)


def _encode_wav(clip: Clip) -> io.BytesIO:
    file = io.BytesIO()
    soundfile.write(file, clip.samples, clip.rate_hz, format="WAV", subtype="FLOAT")
    file.seek(0)
    return file


@dataclass(frozen=True, slots=True, eq=False)
class T3Prompt:
    """The prompt that T3 reads before the first token.

    Attributes:
        embeds: [rows, positions, hidden]; the second row of guidance sees no text.
        shared: Positions at the start that all prompts of `part` have in common.
        part: What they are known by, as long as `voice` is held.
        text_tokens: Positions of text, which come next.
    """

    embeds: torch.Tensor
    voice: ClonedVoice
    shared: int
    part: Hashable
    text_tokens: int


# T3's prompts: the part of a voice is computed once and cached, then the line's text follows.
#
# Source: `T3.prepare_input_embeds`, `T3.inference` and `T3.inference_turbo` of chatterbox-tts
# 0.1.7.

MAX_CACHED_VOICES = 128
"""Voices, each with one exaggeration; a megabyte and a half at most."""


class T3PromptBuilder:
    """Builds prompts for one loaded T3."""

    def __init__(self, t3: Any, dtype: torch.dtype) -> None:
        self._t3 = t3
        self._dtype = dtype
        self._parts = EmbeddingCache(MAX_CACHED_VOICES)

    @property
    def computed(self) -> int:
        return self._parts.computed

    def build(self, text: torch.Tensor, voice: ClonedVoice, exaggeration: float) -> T3Prompt:
        """Build the prompt of one line; its text is int64 [1, n] on the host, as T3 reads it."""
        t3, part = self._t3, (id(voice), exaggeration)
        device = t3.speech_emb.weight.device
        head = self._parts.get_or_compute(
            part, voice, lambda: t3.prepare_conditioning(voice.to(device).for_t3(exaggeration))
        )
        ids = to_device(text, device)
        words = t3.text_emb(ids)  # [1, n, hidden]
        starts = t3.speech_emb(to_device(torch.tensor([[t3.hp.start_speech_token]]), device))
        if not t3.is_gpt:
            words = torch.cat([words, torch.zeros_like(words)]) + t3.text_pos_emb(ids)
            # The package reads the start of speech twice, at the same place of speech.
            starts = (starts + t3.speech_pos_emb.emb.weight[:1]).expand(-1, 2, -1)
        parts = [rows.expand(len(words), -1, -1) for rows in (head, words, starts)]
        embeds = torch.cat(parts, dim=1).to(self._dtype)
        return T3Prompt(embeds, voice, head.shape[1], part, ids.shape[1])
