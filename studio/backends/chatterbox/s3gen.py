"""S3Gen: speech tokens to watermarked audio, and recordings to speech tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import librosa
import numpy as np
import torch
import torch.nn.functional as F
from torch.distributions import Uniform
from torch.nn.utils import parametrize

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.batching.cuda_graphs import GraphedFunction
from studio.backends.chatterbox.flow import (
    GRAPHED_ROWS,
    MelDecoder,
    RequestNoise,
    UndecodedTokens,
    pad_shape,
)
from studio.errors import AudioRejected

# Voice conversion: a recording's words and timing, as tokens for another voice to speak.
#
# Follows the package's `ChatterboxVC.generate` (version 0.1.7) on an S3Gen that is loaded already.

MIN_RECORDING_S = 0.2
MAX_RECORDING_S = 60.0

_TOKENIZER_RATE_HZ = 16_000


def check_recording(recording: Clip) -> None:
    """Refuse a recording that can't be converted in one pass.

    Raises:
        AudioRejected: It is too short or too long.
    """
    if not MIN_RECORDING_S <= recording.duration_s <= MAX_RECORDING_S:
        raise AudioRejected(
            f"The recording lasts {recording.duration_s:.1f} s; between {MIN_RECORDING_S:g} and "
            f"{MAX_RECORDING_S:g} s can be converted. Record the line again, or cut it."
        )


def tokenize_recording(s3gen: Any, recording: Clip) -> torch.Tensor:
    """A recording's speech tokens, 25 a second.

    Returns:
        int64 [n] on the module's device.
    """
    at_rate = librosa.resample(
        recording.samples, orig_sr=recording.rate_hz, target_sr=_TOKENIZER_RATE_HZ
    )
    tokens, _ = s3gen.tokenizer(torch.from_numpy(at_rate)[None].to(s3gen.device))
    return tokens[0]


# The vocoder: mel spectrograms to waveforms, batching lines of different lengths.
#
# The package's `HiFTGenerator` (chatterbox-tts 0.1.7) looks ahead in every layer, and each layer
# pads with silence beyond a line's end. So that batch padding is silent too, it is zeroed
# after every convolution; a line's waveform is then the same as alone.


def fold_weight_norms(generator: Any) -> None:
    """Replace weights that are computed anew in each pass by what they come to."""
    for module in list(generator.modules()):
        if parametrize.is_parametrized(module):
            parametrize.remove_parametrizations(module, "weight")


GRAPHED_FRAMES = 4_096
"""Frames of all lines in a graph: eight lines of 10 s."""

FRAME_MULTIPLE = 128
"""Lines of a graph are as long as a multiple of these."""

_SPECTRUM = 18  # magnitudes and phases, or real and imaginary parts
_SPECTRA_PER_FRAME = 120


class Vocoder:
    """A wrapper of `HiFTGenerator`, which it only reads."""

    def __init__(self, generator: Any, *, graphed: bool = False) -> None:
        self._generator = generator
        self._graphed: GraphedFunction | None = None
        if graphed:
            rows = GRAPHED_ROWS[-1]
            spectra = _SPECTRUM * (_SPECTRA_PER_FRAME * GRAPHED_FRAMES + rows)
            self._graphed = GraphedFunction(
                self._decode,
                next(generator.parameters()).device,
                (rows, GRAPHED_FRAMES * generator.conv_pre.in_channels, spectra, spectra),
                product="waves",
            )

    def close(self) -> None:
        """Release the graphs."""
        if self._graphed is not None:
            self._graphed.close()
            self._graphed = None

    def waves(
        self, mels: Sequence[torch.Tensor], noises: Sequence[RequestNoise]
    ) -> list[torch.Tensor]:
        """Turn mel spectrograms into waveforms.

        Args:
            mels: [80, frames] each.
            noises: One for each, the source of its random phases.

        Returns:
            [480 * frames] each.
        """
        counts = [mel.shape[1] for mel in mels]
        padded = pad_shape(counts, FRAME_MULTIPLE, GRAPHED_FRAMES) if self._graphed else None
        rows, longest = padded or (len(counts), max(counts))
        frames = None
        if padded or min(counts) < longest:
            frames = torch.tensor(counts + [1] * (rows - len(counts)), device=mels[0].device)
        x = _pad_batch(mels, rows, longest)
        pitches = self._pitches(x, _PaddingMasks(frames, longest))
        spectra = [
            self._source(pitch[:count], noise)
            for pitch, count, noise in zip(pitches, counts, noises, strict=False)
        ]
        hums = _pad_batch(spectra, rows, _SPECTRA_PER_FRAME * longest + 1)
        decode = self._graphed if self._graphed and padded else self._decode
        made = decode(frames, x, hums)
        return [
            self._wave(row[:, : spectrum.shape[1]])
            for row, spectrum in zip(made, spectra, strict=False)
        ]

    def _pitches(self, mels: torch.Tensor, silence: _PaddingMasks) -> torch.Tensor:
        """Fundamental frequencies: [lines, longest]."""
        predictor, beyond = self._generator.f0_predictor, silence.at(1)
        x = mels
        for layer in predictor.condnet:
            x = beyond.apply(layer(x))
        return predictor.classifier(x.transpose(1, 2))[..., 0].abs()

    def _source(self, pitch: torch.Tensor, noise: RequestNoise) -> torch.Tensor:
        """Spectrum of a line's harmonic source, phase-continuous: [18, 120 * frames + 1].

        Follows the package's `SineGen`, without its detour by the host's memory.
        """
        generator = self._generator
        sines, merge = generator.m_source.l_sin_gen, generator.m_source
        f0 = generator.f0_upsamp(pitch[None, None])  # [1, 1, samples]
        tones = torch.arange(1, sines.harmonic_num + 2, device=f0.device)[:, None]
        angles = 2 * np.pi * (torch.cumsum(f0 * tones / sines.sampling_rate, dim=-1) % 1)
        phases = Uniform(-np.pi, np.pi)
        with noise.route():
            begin = phases.sample((1, sines.harmonic_num + 1, 1)).to(f0.device)
            begin[:, 0] = 0
            waves = sines.sine_amp * torch.sin(angles + begin)
            voiced = (f0 > sines.voiced_threshold).float()
            hiss = voiced * sines.noise_std + (1 - voiced) * sines.sine_amp / 3
            waves = waves * voiced + hiss * torch.randn_like(waves)
        hum = merge.l_tanh(merge.l_linear(waves.transpose(1, 2)))
        return torch.cat(generator._stft(hum[..., 0]), dim=1)[0]

    def _decode(
        self, frames: torch.Tensor | None, x: torch.Tensor, spectra: torch.Tensor
    ) -> torch.Tensor:
        """Decode to magnitudes and phases: [lines, 18, longest spectrum]."""
        silence = _PaddingMasks(frames, x.shape[2])
        generator = self._generator
        kernels, last = generator.num_kernels, generator.num_upsamples - 1
        x, rate = silence.at(1).apply(generator.conv_pre(x)), 1
        for stage, up in enumerate(generator.ups):
            rate *= up.stride[0]
            x = up(F.leaky_relu(x, generator.lrelu_slope))
            if stage == last:
                x = generator.reflection_pad(x)
            beyond = silence.at(rate, more=int(stage == last))
            hum = beyond.apply(generator.source_downs[stage](spectra))
            hum = _run_resblock(generator.source_resblocks[stage], hum, beyond)
            x = beyond.apply(x) + hum
            blocks = generator.resblocks[stage * kernels : (stage + 1) * kernels]
            made = _run_resblock(blocks[0], x, beyond)
            for block in blocks[1:]:
                made += _run_resblock(block, x, beyond)
            x = made / kernels
        return generator.conv_post(F.leaky_relu(x))

    def _wave(self, made: torch.Tensor) -> torch.Tensor:
        generator = self._generator
        loudness, phase = made.tensor_split([generator.istft_params["n_fft"] // 2 + 1])
        wave = generator._istft(loudness.exp()[None], phase.sin()[None])[0]
        return wave.clamp(-generator.audio_limit, generator.audio_limit)


class _SilenceMask:
    """A mask of the padding of rows, at one rate."""

    def __init__(self, audible: torch.Tensor | None) -> None:
        self._audible = audible  # bool [lines, 1, longest]; None where nothing is padded

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        """Zero the padding; x is overwritten."""
        return x if self._audible is None else x.mul_(self._audible)


class _PaddingMasks:
    """Masks of the padding of lines, at any rate."""

    def __init__(self, frames: torch.Tensor | None, longest: int) -> None:
        """`frames` are those of each line, int64 [lines]; None where all have the most."""
        self._longest = longest
        self._frames = None if frames is None else frames[:, None, None]

    def at(self, rate: int, *, more: int = 0) -> _SilenceMask:
        """The mask of what lies beyond `rate * frames + more`."""
        if self._frames is None:
            return _SilenceMask(None)
        places = torch.arange(rate * self._longest + more, device=self._frames.device)
        return _SilenceMask(places < rate * self._frames + more)


def _run_resblock(block: Any, x: torch.Tensor, beyond: _SilenceMask) -> torch.Tensor:
    """The package's `ResBlock.forward`, keeping the padding zero."""
    layers = zip(block.activations1, block.convs1, block.activations2, block.convs2, strict=True)
    for bend, conv, bend_again, conv_again in layers:
        y = beyond.apply(conv(bend(x)))
        x = beyond.apply(conv_again(bend_again(y))) + x
    return x


def _pad_batch(tensors: Sequence[torch.Tensor], rows: int, longest: int) -> torch.Tensor:
    """Stack tensors [channels, n] to [rows, channels, longest], padded with zeros."""
    batch = tensors[0].new_zeros(rows, tensors[0].shape[0], longest)
    for row, tensor in zip(batch, tensors, strict=False):
        row[:, : tensor.shape[1]] = tensor
    return batch


# From speech tokens to audio: the S3Gen model, run without storing state on its modules.
#
# The package's `S3Token2Wav.inference` (version 0.1.7) draws its noise from the generator of the
# process and can't be stopped. This follows it on the same modules, with the request's own noise
# and a look at `cancelled` before each step of the flow.


class S3GenDecoder:
    """S3Gen and the watermark; serves any number of requests at once, unless it has graphs."""

    def __init__(self, s3gen: Any, watermarker: Any, *, graphed: bool = False) -> None:
        """Use the loaded modules; they are only read.

        With `graphed` batches are padded to few shapes, each of which is a graph on CUDA; all of
        them come from one thread.
        """
        self._s3gen = s3gen
        self._watermarker = watermarker
        self._flow = MelDecoder(s3gen, graphed=graphed)
        self._vocoder = Vocoder(s3gen.mel2wav, graphed=graphed)

    def synthesize(self, line: UndecodedTokens) -> Samples:
        """Decode one line and watermark it.

        Returns:
            float32 [960 * n] at 24,000 Hz, within [-1, 1].
        """
        return self.watermark(self.synthesize_batch([line])[0])

    def synthesize_batch(self, lines: Sequence[UndecodedTokens]) -> list[Samples]:
        """Decode lines of any voices and lengths as a batch, not yet watermarked.

        Returns:
            In the order given; float32 [960 * n] at 24,000 Hz.
        """
        mels = self._flow.mels(lines)
        waves = self._vocoder.waves(mels, [line.noise for line in lines])
        fade = self._s3gen.trim_fade  # fades out leakage from the sample
        for wave in waves:
            wave[: len(fade)] *= fade
        return [wave.cpu().numpy() for wave in waves]

    def watermark(self, wave: Samples) -> Samples:
        """Watermark a waveform, on the CPU."""
        marked = self._watermarker.apply_watermark(wave, sample_rate=STUDIO_RATE_HZ)
        return np.clip(marked, -1.0, 1.0).astype(np.float32)

    def close(self) -> None:
        """Release the graphs."""
        self._flow.close()
        self._vocoder.close()
