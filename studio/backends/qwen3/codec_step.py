"""The codec's decoder as a step: the next frames of some lines to samples, state moved on.

Nothing here reads a tensor's value on the host, and no shape depends on one: the same code runs at
once on a CPU and is captured as a graph on CUDA.

Source: `Qwen3TTSTokenizerV2Decoder` of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from studio.backends.qwen3.codec_convolutions import Convolution, parts_of, passed
from studio.backends.qwen3.codec_state import Ledger
from studio.backends.qwen3.codec_transformer import CodecTransformer


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


class CodecStep:
    """Decodes the next frames of lines whose state is in the rows of a tensor.

    Attributes:
        groups: Codes of a frame.
        samples_per_frame: Made of each frame.
        device: Where the weights are.
    """

    def __init__(self, decoder: Any) -> None:
        """Lay out the state, and fold what is constant.

        Args:
            decoder: The package's `Qwen3TTSTokenizerV2Decoder`, in float32; only read.
        """
        ledger = Ledger()
        self.groups = int(decoder.config.num_quantizers)
        self.samples_per_frame = int(decoder.total_upsample)
        self.device: torch.device = decoder.device
        self._looked_back = frames_looked_back(decoder)
        with torch.no_grad():
            self._books = _Books(decoder.quantizer)
            self._before = Convolution(decoder.pre_conv, ledger)
            self._transformer = CodecTransformer(decoder.pre_transformer, ledger)
            self._parts = parts_of(decoder, ledger)
        self._numbers = ledger.numbers

    @property
    def tables(self) -> tuple[torch.Tensor, ...]:
        """What it holds of its own beside the weights: the codebooks."""
        return self._books.tables

    @property
    def numbers(self) -> int:
        """Of a line's state."""
        return self._numbers

    def fresh(self, rows: int) -> torch.Tensor:
        """The state of lines that have not begun: float32 [rows, numbers], all zeros."""
        return torch.zeros(rows, self._numbers, device=self.device)

    def __call__(self, codes: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Decode the next frames of each row's line.

        Args:
            codes: int64 [rows, frames, groups].
            state: float32 [rows, numbers]; is moved on.

        Returns:
            float32 [rows, frames * samples per frame], within [-1, 1].
        """
        wave = passed(self._parts, self._read(codes, state), state)
        return wave[:, 0].clamp(-1, 1)

    def hear(self, codes: torch.Tensor, state: torch.Tensor) -> None:
        """Read frames that are not to be sounded; the next ones go on from them.

        The convolutions read only those that reach into a later frame's audio.
        """
        latents = self._read(codes, state)
        passed(self._parts, latents[..., -self._looked_back :], state)

    def _read(self, codes: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Codes through the transformer: [rows, width, frames]."""
        hidden = self._before(self._books(codes), state)
        return self._transformer(hidden.transpose(1, 2), state).transpose(1, 2)


class _Books:
    """The codebooks, divided out once; the package does that for every frame."""

    def __init__(self, quantizer: Any) -> None:
        self._semantic = int(quantizer.n_q_semantic)
        self._first = _Shelf(quantizer.rvq_first)
        self._rest = _Shelf(quantizer.rvq_rest)

    @property
    def tables(self) -> tuple[torch.Tensor, ...]:
        return self._first.table, self._rest.table

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        """What codes stand for: [rows, dim, frames]."""
        first, rest = codes[..., : self._semantic], codes[..., self._semantic :]
        return self._first(first) + self._rest(rest)


class _Shelf:
    """The codebooks of one quantizer, one below the other."""

    def __init__(self, quantizer: Any) -> None:
        tables = [layer.project_out(_table(layer._codebook)) for layer in quantizer.vq.layers]
        sizes = [len(table) for table in tables]
        self.table = torch.cat(tables)
        self._offsets = _offsets(sizes, self.table.device)
        self._project = quantizer.output_proj

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        found = F.embedding(codes + self._offsets, self.table).sum(dim=2)
        return self._project(found.transpose(1, 2))


def _table(book: Any) -> torch.Tensor:
    return book.embedding_sum / book.cluster_usage.clamp(min=book.epsilon)[:, None]


def _offsets(sizes: Sequence[int], device: torch.device) -> torch.Tensor:
    return torch.tensor([sum(sizes[:n]) for n in range(len(sizes))], device=device)
