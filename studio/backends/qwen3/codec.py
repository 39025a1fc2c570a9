"""Codes to audio, chunk by chunk, as if the whole line were decoded at once.

The codec's decoder is a transformer whose layers look back one attention window each, and causal
convolutions behind it. The transformer goes on from its own key-value cache, so that its left
context is the window at every layer; the convolutions start again from the last few frames of its
output, as many as they look back. The package decodes with 25 frames of context through both,
which costs more and changes the audio.

Source: `Qwen3TTSTokenizerV2Decoder` of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from transformers import DynamicCache

from studio.audio.clip import Samples


def frames_looked_back(decoder: Any) -> int:
    """Frames of the transformer's output that reach into the audio of a later frame."""
    frames, rate = 0.0, 1
    blocks = [*(block for stage in decoder.upsample for block in stage), *decoder.decoder]
    for block in blocks:
        for module in block.modules():
            name = type(module).__name__
            if name.endswith("CausalConvNet"):
                frames += module.padding / rate
            elif name.endswith("CausalTransConvNet"):
                frames += module.right_pad / module.conv.stride[0] / rate
                rate *= module.conv.stride[0]
    return math.ceil(frames)


class CodecStream:
    """Decodes the frames of one line in order; holds all state of it."""

    def __init__(self, decoder: Any) -> None:
        """Begin a line.

        Args:
            decoder: The package's `Qwen3TTSTokenizerV2Decoder`; only read.
        """
        self._decoder = decoder
        self._cache = DynamicCache(config=decoder.config)
        self._samples_per_frame = int(decoder.total_upsample)
        self._looked_back = frames_looked_back(decoder)
        self._quantized: torch.Tensor | None = None  # [1, dim, the last few frames]
        self._latents: torch.Tensor | None = None  # [1, dim, the last few frames]

    def skip(self, codes: torch.Tensor) -> None:
        """Hear frames that come before the line, such as the sample's: int64 [frames, groups]."""
        with torch.inference_mode():
            self._latents = self._transformed(codes)

    def decode(self, codes: torch.Tensor) -> Samples:
        """Decode the next frames.

        Args:
            codes: int64 [frames, groups], at least one frame.

        Returns:
            float32 [frames * samples per frame].
        """
        with torch.inference_mode():
            wave = self._transformed(codes)  # [1, dim, context + frames]
            self._latents = wave
            for stage in self._decoder.upsample:
                for block in stage:
                    wave = block(wave)
            for block in self._decoder.decoder:
                wave = block(wave)
            fresh = wave[0, 0, -len(codes) * self._samples_per_frame :]
            samples: Samples = fresh.clamp(-1, 1).float().cpu().numpy()
        return samples

    def _transformed(self, codes: torch.Tensor) -> torch.Tensor:
        """The transformer's output for new frames, behind that of the frames looked back on."""
        decoder = self._decoder
        fresh = decoder.quantizer.decode(codes.T[None].to(decoder.device))  # [1, dim, frames]
        known = fresh if self._quantized is None else torch.cat([self._quantized, fresh], dim=-1)
        self._quantized = known[..., -decoder.pre_conv.padding :]
        hidden = decoder.pre_conv(known)[..., -len(codes) :].transpose(1, 2)
        out = decoder.pre_transformer(
            inputs_embeds=hidden, past_key_values=self._cache, use_cache=True
        )
        latents = out.last_hidden_state.transpose(1, 2)
        if self._latents is not None:
            latents = torch.cat([self._latents[..., -self._looked_back :], latents], dim=-1)
        return latents
