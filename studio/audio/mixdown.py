"""A mastered scene on the disk for as long as it is cut into pieces."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from studio.audio.clip import Samples
from studio.audio.mastering import Master, Watch
from studio.audio.pcm import from_pcm16, to_pcm16
from studio.audio.timeline import BLOCK_SAMPLES, Timeline, TimelineEntry

_SAMPLE_BYTES = 2


class Mixdown:
    """The scene's 16-bit samples; any part of them is read without what stands before it."""

    def __init__(self, file: IO[bytes], n_samples: int) -> None:
        """Read from a file of s16le; made by `mixed_down`."""
        self._file = file
        self.n_samples = n_samples

    def blocks(self) -> Iterator[Samples]:
        """All of it: float32 [samples]."""
        for piece in self.pieces(0, self.n_samples):
            yield from_pcm16(np.frombuffer(piece, dtype="<i2"))

    def part(self, entry: TimelineEntry) -> Iterator[bytes]:
        """One entry's place, as s16le."""
        return self.pieces(entry.start_sample, entry.n_samples)

    def pieces(self, start_sample: int, n_samples: int) -> Iterator[bytes]:
        """So many samples from one on, as s16le in pieces of at most a block."""
        left = n_samples
        while left:
            self._file.seek((start_sample + n_samples - left) * _SAMPLE_BYTES)
            piece = self._file.read(min(left, BLOCK_SAMPLES) * _SAMPLE_BYTES)
            assert piece, "a mixdown is as long as its timeline"
            left -= len(piece) // _SAMPLE_BYTES
            yield piece


@contextmanager
def mixed_down(timeline: Timeline, master: Master, folder: Path, watch: Watch) -> Iterator[Mixdown]:
    """Lay a mastered scene into a passing file of a folder.

    Raises:
        OSError: It can't be written.
        StorageFailed: A take can't be read.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        for block in watch(master.blocks(timeline)):
            file.write(to_pcm16(block).tobytes())
        yield Mixdown(file, timeline.n_samples)
