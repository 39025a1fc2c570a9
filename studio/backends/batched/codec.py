"""Lines to audio, as if each were decoded whole and alone.

Finished lines go through rows together, some frames of each at a time; lines that are heard while
they are made have rows of their own. All of a line's state is in its row, so nothing is computed
twice, and what a voice's sample leaves there is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from studio.audio.clip import Samples
from studio.backends.batched.codec_chunks import HeardLines, LineStream
from studio.backends.batched.codec_room import CODEC_FRAMES, CODEC_ROW_FRAMES, KEPT_SAMPLES
from studio.backends.batched.codec_rounds import Round, rounds
from studio.backends.batched.codec_rows import Block, CodecRows
from studio.backends.batched.kept_parts import KeptParts
from studio.backends.batched.sending import sent
from studio.backends.qwen3.codec_step import CodecStep

_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True, eq=False)
class CodedLine:
    """One finished line.

    Attributes:
        codes: int64 [frames, groups]; may be empty.
        sample: The codes of the sample before it, which are heard and not decoded; on any device.
    """

    codes: torch.Tensor
    sample: torch.Tensor | None = None


class BatchedCodec:
    """Decodes lines; keeps nothing of them but what their voices' samples come to.

    One thread may decode finished lines while another decodes chunks.
    """

    def __init__(
        self, decoder: Any, *, convolved_at_once: int | None = None, graphs: bool | None = None
    ) -> None:
        """Allocate the rows; capture nothing yet.

        Args:
            decoder: The package's `Qwen3TTSTokenizerV2Decoder`, on any device, in float32; it is
                only read.
            convolved_at_once: Frames of finished lines that are decoded at once; None for what
                the device takes.
            graphs: Whether rounds have few shapes, as graphs need; None for what suits the device.

        Raises:
            torch.OutOfMemoryError: There is no room for the rows.
        """
        with torch.inference_mode():
            self._step = CodecStep(decoder)
        device = self._step.device.type
        self._rows = (convolved_at_once or CODEC_FRAMES[device][1]) // CODEC_ROW_FRAMES or 1
        shapes = _SIZES if (device == "cuda" if graphs is None else graphs) else range(self._rows)
        self._sizes = [*(size for size in shapes if 0 < size < self._rows), self._rows]
        self._places = CodecRows(self._step, self._rows, CODEC_ROW_FRAMES)
        self._heard = HeardLines(self._step)
        self._samples = KeptParts(KEPT_SAMPLES)

    @property
    def rows(self) -> int:
        """Finished lines that are decoded at once."""
        return self._rows

    @property
    def frames_at_once(self) -> int:
        """Frames of finished lines that are decoded at once."""
        return self._rows * CODEC_ROW_FRAMES

    @property
    def captured(self) -> int:
        """Shapes that are replayed."""
        return self._places.captured + self._heard.captured

    @property
    def computed(self) -> int:
        """Samples that were heard so far; others were known."""
        return self._samples.computed

    def prepare(self) -> None:
        """Capture all graphs, the largest first, whose memory is enough for the others.

        Raises:
            torch.OutOfMemoryError: There is too little for the largest.
        """
        for size in reversed(self._sizes):
            self._places.prepare(Block(0, size, CODEC_ROW_FRAMES))
        self._heard.prepare()

    def close(self) -> None:
        """Give up the graphs and the memory they hold."""
        self._places.close()
        self._heard.close()

    def decode(self, lines: Sequence[CodedLine]) -> list[Samples]:
        """Decode finished lines of any lengths.

        Returns:
            In the order given; float32 [frames * samples per frame], within [-1, 1].
        """
        made = dict(self.decoded(lines))
        return [made[number] for number in range(len(lines))]

    def decoded(
        self,
        lines: Sequence[CodedLine],
        *,
        most_rows: int | None = None,
    ) -> Iterator[tuple[int, Samples]]:
        """Decode finished lines, each given out when it is done.

        Args:
            lines: Of any lengths.
            most_rows: Of a round, so that it takes less of a card from others.

        Yields:
            A line's number and its samples, as from `decode`.
        """
        spoken = [number for number, line in enumerate(lines) if len(line.codes)]
        yield from ((n, np.zeros(0, np.float32)) for n in range(len(lines)) if n not in spoken)
        if not spoken:
            return
        batch = _Batch(self._step, [lines[number] for number in spoken])
        pieces: list[list[Samples]] = [[] for _ in spoken]
        sizes = [size for size in self._sizes if size <= (most_rows or size)] or self._sizes[:1]
        for one in rounds(batch.lengths, sizes, CODEC_ROW_FRAMES):
            for piece, samples in zip(one.pieces, self._round(batch, one), strict=True):
                pieces[piece.line].append(samples)
                if piece.last:
                    yield spoken[piece.line], np.concatenate(pieces[piece.line])
                    pieces[piece.line] = []

    def stream(self, sample: torch.Tensor | None = None) -> LineStream:
        """Begin a line that is heard while it is made, after a sample's codes."""
        with torch.inference_mode():
            begun = self._begun(sample)
            return LineStream(self._step.fresh(1)[0] if begun is None else begun.clone())

    def decode_chunks(self, chunks: Sequence[tuple[LineStream, torch.Tensor]]) -> list[Samples]:
        """Decode the next frames of lines that are heard; see `HeardLines.decode`."""
        return self._heard.decode(chunks)

    def _round(self, batch: _Batch, one: Round) -> Iterator[Samples]:
        """The samples of each piece, without the padding's."""
        places, per_frame = self._places, self._step.samples_per_frame
        held = []  # until the copies have been made, whatever else is kept meanwhile
        with torch.inference_mode():
            for row, piece in enumerate(one.pieces):
                if piece.start == 0:
                    held.append(begun := self._begun(batch.lines[piece.line].sample))
                    places.state[row] = 0 if begun is None else begun
            rows = len(one.pieces)
            places.codes[:rows, : one.frames] = batch.frames(one)
        made = places.run(Block(0, one.rows, one.frames))
        for row, piece in enumerate(one.pieces):
            yield made[row, : (piece.end - piece.start) * per_frame].copy()

    def _begun(self, sample: torch.Tensor | None) -> torch.Tensor | None:
        """The state after a sample, computed once: float32 [numbers]; None without a sample."""
        if sample is None or not len(sample):
            return None

        def heard() -> torch.Tensor:
            state = self._step.fresh(1)
            self._step.hear(sample[None].to(self._step.device), state)
            if state.is_cuda:  # who decodes chunks has another stream than who decodes lines
                torch.cuda.current_stream().synchronize()
            return state[0]

        return self._samples.once(id(sample), sample, heard)


class _Batch:
    """Finished lines that are decoded together; their codes lie end to end on the device."""

    def __init__(self, step: CodecStep, lines: Sequence[CodedLine]) -> None:
        self.lines = lines
        self.lengths = [len(line.codes) for line in lines]
        padding = torch.zeros((CODEC_ROW_FRAMES, step.groups), dtype=torch.int64)
        parts = [*(line.codes for line in lines), padding]
        self._codes = torch.cat([part.to(step.device) for part in parts])
        self._starts = [sum(self.lengths[:number]) for number in range(len(lines))]
        self._within = torch.arange(CODEC_ROW_FRAMES, device=step.device)

    def frames(self, one: Round) -> torch.Tensor:
        """Codes of a round's pieces: int64 [pieces, frames, groups].

        Behind a line's end they are the next line's, which change nothing that is kept.
        """
        starts = torch.tensor([self._starts[piece.line] + piece.start for piece in one.pieces])
        return self._codes[sent(starts, self._codes.device)[:, None] + self._within]
