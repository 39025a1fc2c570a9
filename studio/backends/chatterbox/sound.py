"""From speech tokens to sound: the S3Gen model, run for one request without a trace on it.

The package's `S3Token2Wav.inference` (version 0.1.7) draws its noise from the generator of the
process and can't be stopped. This follows it on the same modules, with the request's own noise
and a look at `cancelled` before each step of the flow. It always runs in float32.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.chatterbox.conditioning import ClonedVoice
from studio.backends.chatterbox.noise import Noise
from studio.backends.chatterbox.vocoder import Vocoder
from studio.errors import Cancelled

FLOW_STEPS = 10
MEANFLOW_STEPS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Unsounded:
    """A line's speech tokens, to be turned into sound.

    Attributes:
        tokens: int64 [n], n from 1, below 6561, on the model's device.
        voice: Whose.
        noise: The line's random stream.
        cancelled: Polled at each step of the flow.
    """

    tokens: torch.Tensor
    voice: ClonedVoice
    noise: Noise
    cancelled: Callable[[], bool]

    @property
    def tokens_read(self) -> int:
        """Those of the sample and its own."""
        return self.voice.prompt_token.size(1) + len(self.tokens)


class Sound:
    """An S3Gen and the watermark; any number of requests at once."""

    def __init__(self, s3gen: Any, watermarker: Any) -> None:
        """Use the loaded modules; they are only read."""
        self._s3gen = s3gen
        self._watermarker = watermarker
        self._vocoder = Vocoder(s3gen.mel2wav)

    def spoken(self, line: Unsounded) -> Samples:
        """Speak one line, watermarked.

        Returns:
            float32 [960 * n] at 24,000 Hz, within [-1, 1].

        Raises:
            Cancelled: `line.cancelled` became true.
        """
        return self.marked(self.waves([line])[0])

    def waves(self, lines: Sequence[Unsounded]) -> list[Samples]:
        """Speak lines of any voices and lengths together, not yet watermarked.

        Returns:
            In the order given; float32 [960 * n] at 24,000 Hz.

        Raises:
            Cancelled: Nobody wants any of them any more.
        """
        mels = [mel[0] for mel in self._mels(lines)]
        waves = self._vocoder.waves(mels, [line.noise for line in lines])
        fade = self._s3gen.trim_fade  # hides what spills over from the sample
        for wave in waves:
            wave[: len(fade)] *= fade
        return [wave.cpu().numpy() for wave in waves]

    def marked(self, wave: Samples) -> Samples:
        """A wave with the watermark, which is put in on the CPU."""
        marked = self._watermarker.apply_watermark(wave, sample_rate=STUDIO_RATE_HZ)
        return np.clip(marked, -1.0, 1.0).astype(np.float32)

    def _mels(self, lines: Sequence[Unsounded]) -> list[torch.Tensor]:
        """Mel spectrograms, [1, 80, 2 * n] each; shorter lines are padded behind and masked."""
        flow = self._s3gen.flow
        device = lines[0].tokens.device
        voices = [line.voice.to(device) for line in lines]
        read = pad_sequence(
            [
                torch.cat([voice.prompt_token[0], line.tokens])
                for voice, line in zip(voices, lines, strict=True)
            ],
            batch_first=True,
        )  # [lines, longest]
        lengths = torch.tensor([line.tokens_read for line in lines], device=device)
        hidden, mask = self._encoded(flow.input_embedding(read), lengths)
        mean = flow.encoder_proj(hidden).transpose(1, 2).contiguous()  # [lines, 80, 2 * longest]
        known, mel = torch.zeros_like(mean), torch.zeros_like(mean)
        for row, (voice, line) in enumerate(zip(voices, lines, strict=True)):
            known[row, :, : voice.prompt_feat.size(1)] = voice.prompt_feat[0].T
            frames = 2 * line.tokens_read
            own = mean.new_empty(1, mean.size(1), frames)
            mel[row, :, :frames] = self._flow_noise(own, 2 * len(line.tokens), line.noise)[0]
        embeddings = torch.cat([voice.embedding for voice in voices])
        speaker = flow.spk_embed_affine_layer(F.normalize(embeddings, dim=1))  # [lines, 80]
        velocity = self._velocity(mean, speaker, known, mask)
        for begin, end in itertools.pairwise(self._times(mean)):
            if all(line.cancelled() for line in lines):
                raise Cancelled("The line was stopped before it was finished.")
            mel = mel + (end - begin) * velocity(mel, begin[None], end[None])
        return [
            mel[row : row + 1, :, voice.prompt_feat.size(1) : 2 * line.tokens_read]
            for row, (voice, line) in enumerate(zip(voices, lines, strict=True))
        ]

    def _encoded(
        self, tokens: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The package's `UpsampleConformerEncoder.forward`, for lines of several lengths.

        It has a layer that looks ahead, into padding that isn't silent; here the padding is.

        Returns:
            [lines, 2 * longest, 512] and its mask, float32 [lines, 1, 2 * longest].
        """
        encoder = self._s3gen.flow.encoder
        seen = _mask(lengths, tokens.size(1))
        x, places, _ = encoder.embed(tokens, seen)
        x = encoder.pre_lookahead_layer(x * seen.transpose(1, 2))
        x = encoder.forward_layers(x, seen, places, seen)
        x, _ = encoder.up_layer(x.transpose(1, 2).contiguous(), lengths)
        seen = _mask(2 * lengths, x.size(2))
        x, places, _ = encoder.up_embed(x.transpose(1, 2).contiguous(), seen)
        x = encoder.after_norm(encoder.forward_up_layers(x, seen, places, seen))
        return x, seen.to(x)

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
        self,
        mean: torch.Tensor,
        speaker: torch.Tensor,
        known: torch.Tensor,
        mask: torch.Tensor,
    ) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
        """The flow's direction at a mel and a step's two times, [1] each."""
        decoder = self._s3gen.flow.decoder
        estimate = decoder.estimator.forward
        if self._s3gen.meanflow:
            return lambda mel, begin, end: estimate(
                x=mel, mask=mask, mu=mean, t=begin, spks=speaker, cond=known, r=end
            )
        pair = _with_nothing(mean), _with_nothing(speaker), _with_nothing(known)
        rate = decoder.inference_cfg_rate

        def guided(mel: torch.Tensor, begin: torch.Tensor, _end: torch.Tensor) -> torch.Tensor:
            twice = mel.repeat(2, 1, 1)
            seen, blind = estimate(
                x=twice, mask=mask.repeat(2, 1, 1), mu=pair[0], t=begin.repeat(len(twice)),
                spks=pair[1], cond=pair[2], r=None,
            ).chunk(2)  # fmt: skip
            return (1.0 + rate) * seen - rate * blind

        return guided


def _mask(lengths: torch.Tensor, longest: int) -> torch.Tensor:
    """What isn't padding: bool [lines, 1, longest]."""
    return (torch.arange(longest, device=lengths.device) < lengths[:, None])[:, None]


def _with_nothing(tensor: torch.Tensor) -> torch.Tensor:
    """Guidance's two halves: with the lines, and without."""
    return torch.cat([tensor, torch.zeros_like(tensor)])
