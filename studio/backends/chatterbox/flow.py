"""The flow of S3Gen: speech tokens to mel spectrograms, for lines of several lengths at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from studio.backends.batching.cuda_graphs import GraphedFunction
from studio.backends.batching.sequence import stop_error
from studio.backends.chatterbox.voice_prompt import ClonedVoice


class RequestNoise:
    """A random generator per device, all seeded as by `torch.manual_seed` in a new process.

    A request draws all its randomness here. It therefore neither disturbs nor feels what other
    threads draw, and its audio is that of the package for the same seed.
    """

    def __init__(self, seed: int) -> None:
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


# Follows the package's `S3Token2Wav.inference` (chatterbox-tts 0.1.7) on the same modules, which
# are only read, with each request's own noise and a look at `cancelled` before each step.
#
# Its steps launch thousands of small kernels, which on a card takes longer than they run: there a
# step is one graph, for few numbers of lines and lengths, and what the estimator multiplies is
# rounded to the 10 bits of TF32 (in float16, whose attention is faster), where that is asked for.
# CosyVoice 2, whose model this is, runs all of the flow in float16 if told to.

FLOW_STEPS = 10
MEANFLOW_STEPS = 2

GRAPHED_TOKENS = 4_096
"""Tokens of all lines in a graph: eight of 10 s, each behind a sample of 10 s. More take the card
longer than their kernels take to launch."""

TOKEN_MULTIPLE = 64
"""Lines of a graph are as long as a multiple of these, the sample included. A new shape has to be
captured, so there are few."""

_MELS = 80
_CONDITIONS = 3  # means, the voice and known frames
_FRAMES_PER_TOKEN = 2
_EMBEDDING = 192


class MelDecoder:
    """The flow; serves any number of requests at once, or one thread where it has graphs."""

    def __init__(self, s3gen: Any, *, graphed: bool = False) -> None:
        self._s3gen = s3gen
        self._graphed: tuple[GraphedFunction, GraphedFunction] | None = None
        if graphed:
            rows = GRAPHED_ROWS[-1]
            channels = GRAPHED_TOKENS * _FRAMES_PER_TOKEN * _MELS
            condition = _CONDITIONS * channels
            self._graphed = (
                GraphedFunction(
                    self._condition,
                    s3gen.device,
                    (GRAPHED_TOKENS, rows, rows * _EMBEDDING, channels, condition),
                    product="conditions of the flow",
                ),
                GraphedFunction(
                    self._step,
                    s3gen.device,
                    (rows, 2, condition, channels, channels),
                    product="steps of the flow",
                ),
            )

    def mels(self, lines: Sequence[UndecodedTokens]) -> list[torch.Tensor]:
        """Mel spectrograms, [80, 2 * n] each; shorter lines are padded and masked."""

        def unwanted() -> bool:
            return all(line.cancelled() for line in lines)

        counts = [line.tokens_read for line in lines]
        padded = pad_shape(counts, TOKEN_MULTIPLE, GRAPHED_TOKENS) if self._graphed else None
        shape = padded or (len(lines), max(counts))
        read, lengths, embeddings, known, mel = self._lay_out(lines, *shape)
        plain = (self._condition, self._step)
        make_condition, step = self._graphed if self._graphed and padded else plain
        if unwanted():
            raise stop_error()
        condition = make_condition(read, lengths, embeddings, known)
        for times in self._times(mel).unfold(0, 2, 1):
            if unwanted():
                raise stop_error()
            mel = step(lengths, times, condition, mel)
        return [
            mel[row, :, line.voice.prompt_feat.size(1) : 2 * line.tokens_read]
            for row, line in enumerate(lines)
        ]

    def close(self) -> None:
        """Release the graphs."""
        for graphed in self._graphed or ():
            graphed.close()
        self._graphed = None

    def _lay_out(
        self, lines: Sequence[UndecodedTokens], rows: int, longest: int
    ) -> tuple[torch.Tensor, ...]:
        """What is read: tokens, their numbers, the voices, known frames and noise, by rows."""
        device = lines[0].tokens.device
        voices = [line.voice.to(device) for line in lines]
        read = torch.zeros(rows, longest, dtype=torch.int64, device=device)
        known = torch.zeros(rows, _MELS, _FRAMES_PER_TOKEN * longest, device=device)
        mel, embeddings = torch.zeros_like(known), known.new_ones(rows, _EMBEDDING)
        counts = [line.tokens_read for line in lines]
        lengths = torch.tensor(counts + [1] * (rows - len(lines)), device=device)
        for row, (voice, line) in enumerate(zip(voices, lines, strict=True)):
            read[row, : counts[row]] = torch.cat([voice.prompt_token[0], line.tokens])
            known[row, :, : voice.prompt_feat.size(1)] = voice.prompt_feat[0].T
            frames = _FRAMES_PER_TOKEN * counts[row]
            own = known.new_empty(1, _MELS, frames)
            made = self._noise(own, _FRAMES_PER_TOKEN * len(line.tokens), line.noise)
            mel[row, :, :frames] = made[0]
            embeddings[row] = voice.embedding[0]
        return read, lengths, embeddings, known, mel

    def _noise(self, like: torch.Tensor, frames: int, noise: RequestNoise) -> torch.Tensor:
        """The flow's initial noise, drawn in the package's order to reproduce its seeds."""
        if not self._s3gen.meanflow:
            return noise.randn_like(like)
        own = noise.randn_like(like.new_empty(1, like.size(1), frames))
        start = noise.randn_like(like)
        start[:, :, -frames:] = own
        return start

    def _condition(
        self,
        read: torch.Tensor,
        lengths: torch.Tensor,
        embeddings: torch.Tensor,
        known: torch.Tensor,
    ) -> torch.Tensor:
        """What each step is given beside its spectrogram: [lines, 240, 2 * longest]."""
        flow = self._s3gen.flow
        mean = self._encode(flow.input_embedding(read), lengths)
        speaker = flow.spk_embed_affine_layer(F.normalize(embeddings, dim=1))  # [lines, 80]
        return torch.cat([mean, _along(speaker, mean), known], dim=1)

    def _step(
        self,
        lengths: torch.Tensor,
        times: torch.Tensor,
        condition: torch.Tensor,
        mel: torch.Tensor,
    ) -> torch.Tensor:
        """The mel spectrograms, the samples' included, a step on: [lines, 80, 2 * longest].

        Args:
            lengths: In tokens: int64 [lines].
            times: Of the step's beginning and end: [2].
            condition: Of `_condition`.
            mel: Before the step.
        """
        mask = _padding_mask(_FRAMES_PER_TOKEN * lengths, mel.size(2)).to(mel)
        with _half_precision(mel.device):
            return mel + (times[1] - times[0]) * self._velocity(mel, condition, mask, times)

    def _encode(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The package's `UpsampleConformerEncoder.forward`, for lines of several lengths.

        It has a layer that looks ahead, into padding that isn't silent; here the padding is.

        Returns:
            Means of the mel spectrograms: [lines, 80, 2 * longest].
        """
        flow = self._s3gen.flow
        encoder = flow.encoder
        seen = _padding_mask(lengths, tokens.size(1))
        x, places, _ = encoder.embed(tokens, seen)
        x = encoder.pre_lookahead_layer(x * seen.transpose(1, 2))
        x = encoder.forward_layers(x, seen, places, seen)
        x, _ = encoder.up_layer(x.transpose(1, 2).contiguous(), lengths)
        seen = _padding_mask(_FRAMES_PER_TOKEN * lengths, x.size(2))
        x, places, _ = encoder.up_embed(x.transpose(1, 2).contiguous(), seen)
        x = encoder.after_norm(encoder.forward_up_layers(x, seen, places, seen))
        mean: torch.Tensor = flow.encoder_proj(x).transpose(1, 2).contiguous()
        return mean

    def _times(self, mel: torch.Tensor) -> torch.Tensor:
        """The time steps of the flow, from 0 to 1."""
        steps = MEANFLOW_STEPS if self._s3gen.meanflow else FLOW_STEPS
        even = torch.linspace(0, 1, steps + 1, device=mel.device, dtype=mel.dtype)
        return even if self._s3gen.meanflow else 1 - torch.cos(even * 0.5 * torch.pi)

    def _velocity(
        self,
        mel: torch.Tensor,
        condition: torch.Tensor,
        mask: torch.Tensor,
        times: torch.Tensor,
    ) -> torch.Tensor:
        """The flow's velocity at a mel spectrogram; arguments as of `_step`."""
        decoder = self._s3gen.flow.decoder
        estimator = decoder.estimator
        x = torch.cat([mel, condition], dim=1)
        if self._s3gen.meanflow:
            return estimate_velocity(estimator, x, mask, _mixed_time(estimator, times))
        blind = torch.cat([mel, torch.zeros_like(condition)], dim=1)
        x, rate = torch.cat([x, blind]), decoder.inference_cfg_rate
        time = _embed_time(estimator, times[:1].repeat(len(x)))
        seen, blind = estimate_velocity(estimator, x, mask.repeat(2, 1, 1), time).chunk(2)
        return (1.0 + rate) * seen - rate * blind


def estimate_velocity(
    estimator: Any, x: torch.Tensor, mask: torch.Tensor, time: torch.Tensor
) -> torch.Tensor:
    """The package's `ConditionalDecoder.forward`, with one attention mask for all layers.

    The package makes one for each, and reads a value of it, for which a card has to wait.

    Args:
        estimator: The package's; its one lower level has the resolution of the others.
        x: [lines, 320, frames].
        mask: float32 [lines, 1, frames].
        time: Embedded: [lines or 1, channels].

    Returns:
        [lines, 80, frames].
    """
    hidden = (1.0 - mask) * -1.0e10  # of attention

    def run(resnet: Any, blocks: Any, x: torch.Tensor) -> torch.Tensor:
        x = resnet(x, mask, time).transpose(1, 2).contiguous()
        bias = hidden.to(x.dtype)
        for block in blocks:
            x = block(hidden_states=x, attention_mask=bias, timestep=time)
        return x.transpose(1, 2).contiguous()

    [(resnet, blocks, down)] = estimator.down_blocks
    x = skipped = run(resnet, blocks, x)
    x = down(x * mask)
    for resnet, blocks in estimator.mid_blocks:
        x = run(resnet, blocks, x)
    [(resnet, blocks, up)] = estimator.up_blocks
    x = run(resnet, blocks, torch.cat([x, skipped], dim=1))
    x = estimator.final_block(up(x * mask), mask)
    return estimator.final_proj(x * mask) * mask


def _embed_time(estimator: Any, time: torch.Tensor) -> torch.Tensor:
    return estimator.time_mlp(estimator.time_embeddings(time))


def _mixed_time(estimator: Any, times: torch.Tensor) -> torch.Tensor:
    both = [_embed_time(estimator, time) for time in times.split(1)]
    return estimator.time_embed_mixer(torch.cat(both, dim=1))


def _along(of_lines: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """[lines, channels] at every frame."""
    return of_lines[..., None].expand(-1, -1, like.size(2))


def _half_precision(device: torch.device) -> AbstractContextManager[Any]:
    """float16 for what is multiplied on a card, where convolutions may be rounded as much."""
    if device.type == "cuda" and torch.backends.cudnn.allow_tf32:
        return torch.autocast("cuda", dtype=torch.float16)
    return nullcontext()


def _padding_mask(lengths: torch.Tensor, longest: int) -> torch.Tensor:
    """The mask of valid positions: bool [lines, 1, longest]."""
    return (torch.arange(longest, device=lengths.device) < lengths[:, None])[:, None]


GRAPHED_ROWS = (1, 4, 8)
"""Numbers of lines that there are graphs for."""


def pad_shape(counts: Sequence[int], multiple: int, most: int) -> tuple[int, int] | None:
    """The least rows and length of a graph for lines of these lengths; None if it has above `most`.

    Args:
        counts: The lengths.
        multiple: Of lengths that there are graphs for.
        most: Rows times length.
    """
    rows = next((rows for rows in GRAPHED_ROWS if rows >= len(counts)), None)
    longest = -(-max(counts) // multiple) * multiple
    return (rows, longest) if rows and rows * longest <= most else None
