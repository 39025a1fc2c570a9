"""From speech tokens to sound: the S3Gen model, run for one request without a trace on it.

The package's `S3Token2Wav.inference` (version 0.1.7) draws its noise from the generator of the
process and can't be stopped. This follows it on the same modules, with the request's own noise
and a look at `cancelled` before each step of the flow. It always runs in float32.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.chatterbox.conditioning import ClonedVoice
from studio.backends.chatterbox.noise import Noise
from studio.errors import Cancelled

FLOW_STEPS = 10
MEANFLOW_STEPS = 2


class Sound:
    """An S3Gen and the watermark; any number of requests at once."""

    def __init__(self, s3gen: Any, watermarker: Any) -> None:
        """Use the loaded modules; they are only read."""
        self._s3gen = s3gen
        self._watermarker = watermarker

    def spoken(
        self,
        tokens: torch.Tensor,
        voice: ClonedVoice,
        noise: Noise,
        cancelled: Callable[[], bool],
    ) -> Samples:
        """Speak tokens with a voice, watermarked.

        Args:
            tokens: int64 [n], n from 1, below 6561, on the model's device.
            voice: The voice; moved to the model's device.
            noise: The request's random stream.
            cancelled: Polled at each step of the flow.

        Returns:
            float32 [960 * n] at 24,000 Hz, within [-1, 1].

        Raises:
            Cancelled: `cancelled` became true.
        """
        mel = self._mel(tokens, voice.to(tokens.device), noise, cancelled)
        wave = self._wave(mel, noise)[0].cpu().numpy()
        marked = self._watermarker.apply_watermark(wave, sample_rate=STUDIO_RATE_HZ)
        return np.clip(marked, -1.0, 1.0).astype(np.float32)

    def _mel(
        self,
        tokens: torch.Tensor,
        voice: ClonedVoice,
        noise: Noise,
        cancelled: Callable[[], bool],
    ) -> torch.Tensor:
        """Mel spectrogram, [1, 80, 2 * n]."""
        flow = self._s3gen.flow
        both = torch.cat([voice.prompt_token, tokens[None]], dim=1)  # [1, prompt + n]
        length = torch.tensor([both.size(1)], device=both.device)
        hidden, _ = flow.encoder(flow.input_embedding(both), length)  # [1, 2 * (prompt + n), 512]
        mean = flow.encoder_proj(hidden).transpose(1, 2).contiguous()
        prompt_frames = voice.prompt_feat.size(1)
        known = torch.zeros_like(mean)
        known[:, :, :prompt_frames] = voice.prompt_feat.transpose(1, 2)
        speaker = flow.spk_embed_affine_layer(F.normalize(voice.embedding, dim=1))  # [1, 80]
        mel = self._flow_noise(mean, 2 * len(tokens), noise)
        velocity = self._velocity(mean, speaker, known)
        for begin, end in itertools.pairwise(self._times(mean)):
            if cancelled():
                raise Cancelled("The line was stopped before it was finished.")
            mel = mel + (end - begin) * velocity(mel, begin[None], end[None])
        return mel[:, :, prompt_frames:]

    def _flow_noise(self, mean: torch.Tensor, frames: int, noise: Noise) -> torch.Tensor:
        """Where the flow starts; drawn in the package's order, so that seeds mean the same."""
        if not self._s3gen.meanflow:
            return noise.like(mean)
        own = noise.like(mean.new_empty(1, mean.size(1), frames))
        start = noise.like(mean)
        start[:, :, -frames:] = own
        return start

    def _times(self, mean: torch.Tensor) -> torch.Tensor:
        """Ends of the flow's steps, from 0 to 1."""
        steps = MEANFLOW_STEPS if self._s3gen.meanflow else FLOW_STEPS
        even = torch.linspace(0, 1, steps + 1, device=mean.device, dtype=mean.dtype)
        return even if self._s3gen.meanflow else 1 - torch.cos(even * 0.5 * torch.pi)

    def _velocity(
        self, mean: torch.Tensor, speaker: torch.Tensor, known: torch.Tensor
    ) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
        """The flow's direction at a mel and a step's two times, [1] each."""
        decoder = self._s3gen.flow.decoder
        estimate = decoder.estimator.forward
        mask = torch.ones_like(mean[:, :1])
        if self._s3gen.meanflow:
            return lambda mel, begin, end: estimate(
                x=mel, mask=mask, mu=mean, t=begin, spks=speaker, cond=known, r=end
            )
        pair = _with_nothing(mean), _with_nothing(speaker), _with_nothing(known)
        rate = decoder.inference_cfg_rate

        def guided(mel: torch.Tensor, begin: torch.Tensor, _end: torch.Tensor) -> torch.Tensor:
            twice = mel.repeat(2, 1, 1)
            seen, blind = estimate(
                x=twice, mask=mask.repeat(2, 1, 1), mu=pair[0], t=begin.repeat(2),
                spks=pair[1], cond=pair[2], r=None,
            ).chunk(2)  # fmt: skip
            return (1.0 + rate) * seen - rate * blind

        return guided

    def _wave(self, mel: torch.Tensor, noise: Noise) -> torch.Tensor:
        """Sound, [1, samples]."""
        vocoder = self._s3gen.mel2wav
        pitch = vocoder.f0_upsamp(vocoder.f0_predictor(mel)[:, None]).transpose(1, 2)
        with noise.routed():
            source, _, _ = vocoder.m_source(pitch)  # [1, samples, 1]
        wave = vocoder.decode(x=mel, s=source.transpose(1, 2))
        fade = self._s3gen.trim_fade  # hides what spills over from the sample
        wave[:, : len(fade)] *= fade
        return wave


def _with_nothing(tensor: torch.Tensor) -> torch.Tensor:
    """Guidance's two rows: with the line, and without."""
    return torch.cat([tensor, torch.zeros_like(tensor)])
