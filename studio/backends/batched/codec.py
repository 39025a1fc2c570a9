"""Finished lines to audio, many at once, as if each were decoded whole and alone.

The codec's decoder is a transformer and causal convolutions behind it, so padding on the right
changes nothing to its left. The transformer reads the lines padded to one length. Its output is
cut into windows, each behind the few frames that the convolutions look back on, and windows of
about the same length go through the convolutions together: memory is bounded whatever the lines'
lengths. Of the sample's frames before a line, the convolutions see only those looked back on.

Source: `Qwen3TTSTokenizerV2Decoder` of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from studio.audio.clip import Samples
from studio.backends.qwen3.codec import frames_looked_back

WINDOW_FRAMES = 128  # looking back costs ten frames a window
READ_AT_ONCE = 8_192  # frames through the transformer; attention is quadratic in a line's
CONVOLVED_AT_ONCE = {"cuda": 2_048, "mps": 512, "cpu": 128}  # about 3 MB a frame at full size


@dataclass(frozen=True, slots=True, eq=False)
class CodedLine:
    """One finished line.

    Attributes:
        codes: int64 [frames, groups]; may be empty.
        sample: The codes of the sample before it, which are heard and not decoded; on any device.
    """

    codes: torch.Tensor
    sample: torch.Tensor | None = None

    @property
    def skipped(self) -> int:
        """Frames of the sample."""
        return 0 if self.sample is None else len(self.sample)

    def joined(self, device: torch.device) -> torch.Tensor:
        """Sample and line: int64 [frames, groups]."""
        codes = self.codes.to(device)
        return codes if self.sample is None else torch.cat([self.sample.to(device), codes])


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """Frames of one line for the convolutions.

    Attributes:
        owner: The line's index in the batch.
        latents: [dim, context + frames].
        context: Frames at the start that are only looked back on.
    """

    owner: int
    latents: torch.Tensor
    context: int

    def __len__(self) -> int:
        return self.latents.shape[1]


class BatchedCodec:
    """Decodes finished lines; keeps nothing of them."""

    def __init__(
        self,
        decoder: Any,
        *,
        window_frames: int = WINDOW_FRAMES,
        convolved_at_once: int | None = None,
    ) -> None:
        """Take the package's `Qwen3TTSTokenizerV2Decoder`; it is only read.

        Args:
            decoder: On any device, in float32.
            window_frames: New frames in one piece of a line, at least 1.
            convolved_at_once: Frames through the convolutions at once; None for what the device
                takes.
        """
        self._decoder = decoder
        self._window_frames = window_frames
        self._at_once = convolved_at_once or CONVOLVED_AT_ONCE[decoder.device.type]
        self._looked_back = frames_looked_back(decoder)
        self._samples_per_frame = int(decoder.total_upsample)

    def decode(self, lines: Sequence[CodedLine]) -> list[Samples]:
        """Decode lines of any lengths.

        Returns:
            In the order given; float32 [frames * samples per frame], within [-1, 1].
        """
        with torch.inference_mode():
            windows = [window for group in self._groups(lines) for window in self._read(group)]
            pieces: list[list[torch.Tensor]] = [[] for _ in lines]
            made: dict[int, torch.Tensor] = {}
            for batch in _batches(windows, self._at_once):
                made.update(self._convolved(windows, batch))
            for number, window in enumerate(windows):
                pieces[window.owner].append(made[number])
            return [_samples(line) for line in pieces]

    def _groups(self, lines: Sequence[CodedLine]) -> Iterator[list[tuple[int, CodedLine]]]:
        """Lines of about the same length, with their indices."""
        spoken = [(index, line) for index, line in enumerate(lines) if len(line.codes)]
        spoken.sort(key=lambda one: one[1].skipped + len(one[1].codes))
        lengths = [line.skipped + len(line.codes) for _, line in spoken]
        for group in _split(lengths, READ_AT_ONCE):
            yield [spoken[number] for number in group]

    def _read(self, group: list[tuple[int, CodedLine]]) -> Iterator[_Window]:
        """Run the transformer over lines padded to one length, and cut its output."""
        decoder = self._decoder
        joined = [line.joined(decoder.device) for _, line in group]
        codes = torch.nn.utils.rnn.pad_sequence(joined, batch_first=True)  # [lines, frames, groups]
        hidden = decoder.pre_conv(decoder.quantizer.decode(codes.transpose(1, 2))).transpose(1, 2)
        latents = decoder.pre_transformer(inputs_embeds=hidden).last_hidden_state.transpose(1, 2)
        for (owner, line), own, row in zip(group, joined, latents, strict=True):
            yield from self._windows(owner, row[:, : len(own)], line.skipped)

    def _windows(self, owner: int, latents: torch.Tensor, skipped: int) -> Iterator[_Window]:
        end = latents.shape[1]
        for start in range(skipped, end, self._window_frames):
            context = min(self._looked_back, start)
            stop = min(end, start + self._window_frames)
            yield _Window(owner, latents[:, start - context : stop], context)

    def _convolved(
        self, windows: Sequence[_Window], batch: Sequence[int]
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """The audio of some windows, by their number: [samples], without their context's."""
        rows = [windows[number].latents.T for number in batch]
        wave = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).transpose(1, 2)
        for stage in self._decoder.upsample:
            for block in stage:
                wave = block(wave)
        for block in self._decoder.decoder:
            wave = block(wave)
        rate = self._samples_per_frame
        for number, row in zip(batch, wave[:, 0].clamp(-1, 1), strict=True):
            window = windows[number]
            yield number, row[window.context * rate : len(window) * rate].clone()


def _batches(windows: Sequence[_Window], at_once: int) -> Iterator[list[int]]:
    """Numbers of windows to convolve together: the shortest first, so that little is padded."""
    order = sorted(range(len(windows)), key=lambda number: len(windows[number]))
    for batch in _split([len(windows[number]) for number in order], at_once):
        yield [order[place] for place in batch]


def _split(lengths: Sequence[int], at_most: int) -> Iterator[range]:
    """Cut ascending lengths into runs whose padded sum stays within `at_most`, one at least."""
    cuts, start = [0], 0
    for place, length in enumerate(lengths):
        if place > start and (place + 1 - start) * length > at_most:
            cuts.append(place)
            start = place
    cuts.append(len(lengths))
    yield from (range(start, stop) for start, stop in pairwise(cuts) if start < stop)


def _samples(pieces: Sequence[torch.Tensor]) -> Samples:
    if not pieces:
        return np.zeros(0, np.float32)
    samples: Samples = torch.cat(list(pieces)).float().cpu().numpy()
    return samples
