"""From mel spectrograms to waves, lines of several lengths at once.

The package's `HiFTGenerator` (chatterbox-tts 0.1.7) looks ahead in every layer, and each layer
takes what lies beyond a line's end for silence. So that padding is silent too, it is set to 0
behind every convolution; a line's wave is then what it is alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from studio.backends.chatterbox.noise import Noise


class Vocoder:
    """A `HiFTGenerator`; only read."""

    def __init__(self, generator: Any) -> None:
        """Use a loaded one."""
        self._generator = generator

    def waves(self, mels: Sequence[torch.Tensor], noises: Sequence[Noise]) -> list[torch.Tensor]:
        """Sound lines.

        Args:
            mels: [80, frames] each.
            noises: Of each; where their random phases come from.

        Returns:
            [480 * frames] each.
        """
        frames = [mel.shape[1] for mel in mels]
        silence = _Silence(frames, mels[0].device)
        padded = _padded(mels)  # [lines, 80, longest]
        pitches = self._pitches(padded, silence)
        spectra = [
            self._source(pitch[:count], noise)
            for pitch, count, noise in zip(pitches, frames, noises, strict=True)
        ]
        made = self._decoded(padded, _padded(spectra), silence)
        return [
            self._wave(row[:, : spectrum.shape[1]])
            for row, spectrum in zip(made, spectra, strict=True)
        ]

    def _pitches(self, mels: torch.Tensor, silence: _Silence) -> torch.Tensor:
        """Fundamental frequencies: [lines, longest]."""
        predictor, beyond = self._generator.f0_predictor, silence.at(1)
        x = mels
        for layer in predictor.condnet:
            x = beyond.silenced(layer(x))
        return predictor.classifier(x.transpose(1, 2))[..., 0].abs()

    def _source(self, pitch: torch.Tensor, noise: Noise) -> torch.Tensor:
        """Spectrum of a line's hum, whose phase adds up from its start: [18, 120 * frames + 1]."""
        generator = self._generator
        with noise.routed():
            hum, _, _ = generator.m_source(generator.f0_upsamp(pitch[None, None]).transpose(1, 2))
        return torch.cat(generator._stft(hum[..., 0]), dim=1)[0]

    def _decoded(self, x: torch.Tensor, spectra: torch.Tensor, silence: _Silence) -> torch.Tensor:
        """Magnitudes and phases: [lines, 18, longest spectrum]."""
        generator = self._generator
        kernels, last = generator.num_kernels, generator.num_upsamples - 1
        x, rate = silence.at(1).silenced(generator.conv_pre(x)), 1
        for stage, up in enumerate(generator.ups):
            rate *= up.stride[0]
            x = up(F.leaky_relu(x, generator.lrelu_slope))
            if stage == last:
                x = generator.reflection_pad(x)
            beyond = silence.at(rate, more=int(stage == last))
            hum = beyond.silenced(generator.source_downs[stage](spectra))
            hum = _through(generator.source_resblocks[stage], hum, beyond)
            x = beyond.silenced(x) + hum
            blocks = generator.resblocks[stage * kernels : (stage + 1) * kernels]
            made = _through(blocks[0], x, beyond)
            for block in blocks[1:]:
                made += _through(block, x, beyond)
            x = made / kernels
        return generator.conv_post(F.leaky_relu(x))

    def _wave(self, made: torch.Tensor) -> torch.Tensor:
        generator = self._generator
        loudness, phase = made.tensor_split([generator.istft_params["n_fft"] // 2 + 1])
        wave = generator._istft(loudness.exp()[None], phase.sin()[None])[0]
        return wave.clamp(-generator.audio_limit, generator.audio_limit)


class _Beyond:
    """Where rows of one rate are silent."""

    def __init__(self, heard: torch.Tensor | None) -> None:
        self._heard = heard  # bool [lines, 1, longest]; None where nothing is padded

    def silenced(self, x: torch.Tensor) -> torch.Tensor:
        """The same tensor, overwritten."""
        return x if self._heard is None else x.mul_(self._heard)


class _Silence:
    """How far each line goes, at any rate."""

    def __init__(self, frames: Sequence[int], device: torch.device) -> None:
        self._ragged = min(frames) < max(frames)
        self._longest = max(frames)
        self._frames = torch.tensor(frames, device=device)[:, None, None] if self._ragged else None

    def at(self, rate: int, *, more: int = 0) -> _Beyond:
        """What lies beyond `rate * frames + more`."""
        if self._frames is None:
            return _Beyond(None)
        places = torch.arange(rate * self._longest + more, device=self._frames.device)
        return _Beyond(places < rate * self._frames + more)


def _through(block: Any, x: torch.Tensor, beyond: _Beyond) -> torch.Tensor:
    """The package's `ResBlock.forward`, which leaves silence silent."""
    layers = zip(block.activations1, block.convs1, block.activations2, block.convs2, strict=True)
    for bend, conv, bend_again, conv_again in layers:
        y = beyond.silenced(conv(bend(x)))
        x = beyond.silenced(conv_again(bend_again(y))) + x
    return x


def _padded(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """[channels, n] each to [rows, channels, longest], with zeros behind."""
    return pad_sequence([row.T for row in rows], batch_first=True).transpose(1, 2).contiguous()
