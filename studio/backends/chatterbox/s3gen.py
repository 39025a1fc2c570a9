"""S3Gen: speech tokens to watermarked audio, and recordings to speech tokens."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import librosa
import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.overrides import TorchFunctionMode

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.batching.sequence import stop_error
from studio.backends.chatterbox.voice_prompt import ClonedVoice
from studio.errors import AudioRejected


class RequestNoise:
    """A random generator per device, all seeded as by `torch.manual_seed` in a new process.

    A request draws all its randomness here. It therefore neither disturbs nor feels what other
    threads draw, and its audio is that of the package for the same seed.
    """

    def __init__(self, seed: int) -> None:
        """Seed the generators with a number from 0."""
        self._seed = seed
        self._streams: dict[str, torch.Generator] = {}

    def generator(self, device: torch.device | str) -> torch.Generator:
        """The generator of a device."""
        key = str(device)
        if key not in self._streams:
            self._streams[key] = torch.Generator(device).manual_seed(self._seed)
        return self._streams[key]

    def randn_like(self, tensor: torch.Tensor) -> torch.Tensor:
        """Normal noise like a tensor, bit-identical to `torch.randn_like`."""
        return torch.empty_like(tensor).normal_(generator=self.generator(tensor.device))

    def route(self) -> TorchFunctionMode:
        """A context manager in which this thread's random `torch` functions draw from here."""
        return _RoutedDraws(self)


class _RoutedDraws(TorchFunctionMode):  # type: ignore[misc]
    """Redirects random functions of the thread that entered it; torch's modes are per thread."""

    def __init__(self, noise: RequestNoise) -> None:
        super().__init__()
        self._noise = noise

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:
        options = options or {}
        if function is torch.randn_like:
            return self._noise.randn_like(*arguments, **options)
        if function in {torch.rand, torch.randn}:
            options["generator"] = self._noise.generator(options.get("device") or "cpu")
        return function(*arguments, **options)


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


class Vocoder:
    """A wrapper of `HiFTGenerator`, which it only reads."""

    def __init__(self, generator: Any) -> None:
        """Wrap a loaded generator."""
        self._generator = generator

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
        frames = [mel.shape[1] for mel in mels]
        silence = _PaddingMasks(frames, mels[0].device)
        padded = _pad_batch(mels)  # [lines, 80, longest]
        pitches = self._pitches(padded, silence)
        spectra = [
            self._source(pitch[:count], noise)
            for pitch, count, noise in zip(pitches, frames, noises, strict=True)
        ]
        made = self._decode(padded, _pad_batch(spectra), silence)
        return [
            self._wave(row[:, : spectrum.shape[1]])
            for row, spectrum in zip(made, spectra, strict=True)
        ]

    def _pitches(self, mels: torch.Tensor, silence: _PaddingMasks) -> torch.Tensor:
        """Fundamental frequencies: [lines, longest]."""
        predictor, beyond = self._generator.f0_predictor, silence.at(1)
        x = mels
        for layer in predictor.condnet:
            x = beyond.apply(layer(x))
        return predictor.classifier(x.transpose(1, 2))[..., 0].abs()

    def _source(self, pitch: torch.Tensor, noise: RequestNoise) -> torch.Tensor:
        """Spectrum of a line's harmonic source, phase-continuous: [18, 120 * frames + 1]."""
        generator = self._generator
        with noise.route():
            hum, _, _ = generator.m_source(generator.f0_upsamp(pitch[None, None]).transpose(1, 2))
        return torch.cat(generator._stft(hum[..., 0]), dim=1)[0]

    def _decode(
        self, x: torch.Tensor, spectra: torch.Tensor, silence: _PaddingMasks
    ) -> torch.Tensor:
        """Decode to magnitudes and phases: [lines, 18, longest spectrum]."""
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

    def __init__(self, frames: Sequence[int], device: torch.device) -> None:
        self._ragged = min(frames) < max(frames)
        self._longest = max(frames)
        self._frames = torch.tensor(frames, device=device)[:, None, None] if self._ragged else None

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


def _pad_batch(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Stack tensors [channels, n] to [rows, channels, longest], padded with zeros."""
    return pad_sequence([row.T for row in rows], batch_first=True).transpose(1, 2).contiguous()


# From speech tokens to audio: the S3Gen model, run without storing state on its modules.
#
# The package's `S3Token2Wav.inference` (version 0.1.7) draws its noise from the generator of the
# process and can't be stopped. This follows it on the same modules, with the request's own noise
# and a look at `cancelled` before each step of the flow. It always runs in float32.

FLOW_STEPS = 10
MEANFLOW_STEPS = 2


@dataclass(frozen=True, slots=True, eq=False)
class UndecodedTokens:
    """A line's speech tokens, to be decoded to audio.

    Attributes:
        tokens: int64 [n], n from 1, below 6561, on the model's device.
        cancelled: Polled at each step of the flow.
    """

    tokens: torch.Tensor
    voice: ClonedVoice
    noise: RequestNoise
    cancelled: Callable[[], bool]

    @property
    def tokens_read(self) -> int:
        """Number of tokens of the sample and the line."""
        return self.voice.prompt_token.size(1) + len(self.tokens)


class S3GenDecoder:
    """S3Gen and the watermark; serves any number of requests at once."""

    def __init__(self, s3gen: Any, watermarker: Any) -> None:
        """Use the loaded modules; they are only read."""
        self._s3gen = s3gen
        self._watermarker = watermarker
        self._vocoder = Vocoder(s3gen.mel2wav)

    def synthesize(self, line: UndecodedTokens) -> Samples:
        """Decode one line and watermark it.

        Returns:
            float32 [960 * n] at 24,000 Hz, within [-1, 1].

        Raises:
            Cancelled: `line.cancelled` became true.
        """
        return self.watermark(self.synthesize_batch([line])[0])

    def synthesize_batch(self, lines: Sequence[UndecodedTokens]) -> list[Samples]:
        """Decode lines of any voices and lengths as a batch, not yet watermarked.

        Returns:
            In the order given; float32 [960 * n] at 24,000 Hz.

        Raises:
            Cancelled: Nobody wants any of them any more.
        """
        mels = [mel[0] for mel in self._mels(lines)]
        waves = self._vocoder.waves(mels, [line.noise for line in lines])
        fade = self._s3gen.trim_fade  # fades out leakage from the sample
        for wave in waves:
            wave[: len(fade)] *= fade
        return [wave.cpu().numpy() for wave in waves]

    def watermark(self, wave: Samples) -> Samples:
        """Watermark a waveform, on the CPU."""
        marked = self._watermarker.apply_watermark(wave, sample_rate=STUDIO_RATE_HZ)
        return np.clip(marked, -1.0, 1.0).astype(np.float32)

    def _mels(self, lines: Sequence[UndecodedTokens]) -> list[torch.Tensor]:
        """Mel spectrograms, [1, 80, 2 * n] each; shorter lines are padded and masked."""
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
        hidden, mask = self._encode(flow.input_embedding(read), lengths)
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
                raise stop_error()
            mel = mel + (end - begin) * velocity(mel, begin[None], end[None])
        return [
            mel[row : row + 1, :, voice.prompt_feat.size(1) : 2 * line.tokens_read]
            for row, (voice, line) in enumerate(zip(voices, lines, strict=True))
        ]

    def _encode(
        self, tokens: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The package's `UpsampleConformerEncoder.forward`, for lines of several lengths.

        It has a layer that looks ahead, into padding that isn't silent; here the padding is.

        Returns:
            [lines, 2 * longest, 512] and its mask, float32 [lines, 1, 2 * longest].
        """
        encoder = self._s3gen.flow.encoder
        seen = _padding_mask(lengths, tokens.size(1))
        x, places, _ = encoder.embed(tokens, seen)
        x = encoder.pre_lookahead_layer(x * seen.transpose(1, 2))
        x = encoder.forward_layers(x, seen, places, seen)
        x, _ = encoder.up_layer(x.transpose(1, 2).contiguous(), lengths)
        seen = _padding_mask(2 * lengths, x.size(2))
        x, places, _ = encoder.up_embed(x.transpose(1, 2).contiguous(), seen)
        x = encoder.after_norm(encoder.forward_up_layers(x, seen, places, seen))
        return x, seen.to(x)

    def _flow_noise(self, mean: torch.Tensor, frames: int, noise: RequestNoise) -> torch.Tensor:
        """The flow's initial noise, drawn in the package's order to reproduce its seeds."""
        if not self._s3gen.meanflow:
            return noise.randn_like(mean)
        own = noise.randn_like(mean.new_empty(1, mean.size(1), frames))
        start = noise.randn_like(mean)
        start[:, :, -frames:] = own
        return start

    def _times(self, mean: torch.Tensor) -> torch.Tensor:
        """The time steps of the flow, from 0 to 1."""
        steps = MEANFLOW_STEPS if self._s3gen.meanflow else FLOW_STEPS
        even = torch.linspace(0, 1, steps + 1, device=mean.device, dtype=mean.dtype)
        return even if self._s3gen.meanflow else 1 - torch.cos(even * 0.5 * torch.pi)

    def _velocity(
        self, mean: torch.Tensor, speaker: torch.Tensor, known: torch.Tensor, mask: torch.Tensor
    ) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
        """The flow's velocity at a mel spectrogram, for a step's start and end times, [1] each."""
        decoder = self._s3gen.flow.decoder
        estimate = decoder.estimator.forward
        if self._s3gen.meanflow:
            return lambda mel, begin, end: estimate(
                x=mel, mask=mask, mu=mean, t=begin, spks=speaker, cond=known, r=end
            )
        pair = _with_unconditional(mean), _with_unconditional(speaker), _with_unconditional(known)
        rate = decoder.inference_cfg_rate

        def guided_velocity(
            mel: torch.Tensor, begin: torch.Tensor, _end: torch.Tensor
        ) -> torch.Tensor:
            twice = mel.repeat(2, 1, 1)
            seen, blind = estimate(
                x=twice, mask=mask.repeat(2, 1, 1), mu=pair[0], t=begin.repeat(len(twice)),
                spks=pair[1], cond=pair[2], r=None,
            ).chunk(2)  # fmt: skip
            return (1.0 + rate) * seen - rate * blind

        return guided_velocity


def _padding_mask(lengths: torch.Tensor, longest: int) -> torch.Tensor:
    """The mask of valid positions: bool [lines, 1, longest]."""
    return (torch.arange(longest, device=lengths.device) < lengths[:, None])[:, None]


def _with_unconditional(tensor: torch.Tensor) -> torch.Tensor:
    """Double a batch for guidance: with the condition, and with zeros in its place."""
    return torch.cat([tensor, torch.zeros_like(tensor)])
