"""A mono clip of audio: in memory, as 16-bit samples, resampled, and as a WAV file."""

from __future__ import annotations

import wave
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soxr

from studio.storage.disk import open_atomic

Samples = npt.NDArray[np.float32]

STUDIO_RATE_HZ = 24_000
"""Every clip on a timeline has this rate; the neural voices make it natively."""


FLOOR_DB = -120.0
"""Level of digital silence; no level is given below it."""


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """Mono audio: float32 [samples] within [-1, 1] at `rate_hz`."""

    samples: Samples
    rate_hz: int = STUDIO_RATE_HZ

    def __post_init__(self) -> None:
        assert self.samples.ndim == 1, f"a clip is mono, not {self.samples.shape}"
        assert self.samples.dtype == np.float32, f"a clip is float32, not {self.samples.dtype}"
        assert self.rate_hz > 0

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.rate_hz

    @classmethod
    def silence(cls, duration_s: float, rate_hz: int = STUDIO_RATE_HZ) -> Clip:
        """Digital silence; the duration is rounded to the nearest sample."""
        return cls(np.zeros(round(duration_s * rate_hz), dtype=np.float32), rate_hz)


BLOCK_SAMPLES = 65_536
"""Longest piece of audio that is worked on at once: 2.7 s at the studio's rate, 256 KB."""


def silent(n_samples: int, channels: int = 1) -> Samples:
    """Silence: float32 [samples] of one channel, [samples, 2] of two."""
    return np.zeros((n_samples, 2)[:channels], dtype=np.float32)


def peek_channels(blocks: Iterable[Samples]) -> tuple[int, Iterator[Samples]]:
    """How many channels blocks have, by the shape of the first; and all of them, to be read."""
    unread = iter(blocks)
    first = next(unread, None)
    if first is None:
        return 1, unread
    return 1 if first.ndim == 1 else first.shape[1], chain((first,), unread)


def split_blocks(samples: Samples, block_samples: int = BLOCK_SAMPLES) -> Iterator[Samples]:
    """Views of consecutive samples, so that work on a long clip takes little memory."""
    for start in range(0, len(samples), block_samples):
        yield samples[start : start + block_samples]


def join_chunks(chunks: Sequence[Samples]) -> Samples:
    """Join chunks; those that most of an array was cut into are a view of it.

    A copy of a minute takes 6 MB.
    """
    whole = chunks[0].base
    if isinstance(whole, np.ndarray) and whole.dtype == np.float32 and whole.ndim == 1:
        start = after = (chunks[0].ctypes.data - whole.ctypes.data) // whole.itemsize
        for chunk in chunks:
            is_next = chunk.ctypes.data == whole.ctypes.data + after * whole.itemsize
            if chunk.base is not whole or not is_next or not chunk.flags.c_contiguous:
                break
            after += len(chunk)
        else:
            if whole.flags.c_contiguous and 2 * (after - start) > len(whole):
                return whole[start:after]
    return np.concatenate(chunks)


Pcm16 = npt.NDArray[np.int16]

_PCM16_FULL_SCALE = 32_768


def to_pcm16(samples: Samples) -> Pcm16:
    """Round to the nearest 16-bit step; what lies outside [-1, 1) is held at the end of the scale.

    Samples that came from `from_pcm16` come back bit for bit.
    """
    scaled = samples * np.float32(_PCM16_FULL_SCALE)
    np.rint(scaled, out=scaled)
    np.clip(scaled, -_PCM16_FULL_SCALE, _PCM16_FULL_SCALE - 1, out=scaled)
    return scaled.astype(np.int16)


def from_pcm16(pcm: Pcm16) -> Samples:
    """Scale 16-bit samples to float32 within [-1, 1)."""
    samples: Samples = pcm.astype(np.float32)
    samples /= np.float32(_PCM16_FULL_SCALE)
    return samples


def power_to_db(power: float) -> float:
    """Decibels of full scale of a mean square, `FLOOR_DB` at the least."""
    return max(FLOOR_DB, 10 * float(np.log10(max(power, 1e-30))))


def resample(chunks: Iterator[Samples], from_hz: int, to_hz: int) -> Iterator[Samples]:
    """Resample a stream chunk by chunk, as if it were one recording.

    Args:
        chunks: float32 [samples] each, or [samples, 2]; closed when this iterator is closed.
        from_hz: Their rate.
        to_hz: The rate wanted.

    Yields:
        float32 of the same shape, never empty; joined, they are the whole resampled.
    """
    try:
        channels, whole = peek_channels(chunks)
        stream = soxr.ResampleStream(from_hz, to_hz, channels, dtype="float32", quality="HQ")
        for chunk in whole:
            fresh = stream.resample_chunk(chunk)
            if len(fresh):
                yield fresh
        rest = stream.resample_chunk(silent(0, channels), last=True)
        if len(rest):
            yield rest
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


def write_wav(path: Path, clip: Clip) -> None:
    """Write a clip as 16-bit WAV; the file is whole or not there."""
    with open_atomic(path) as file, wave.open(file, "wb") as out:
        out.setparams((1, 2, clip.rate_hz, len(clip), "NONE", ""))
        for block in split_blocks(clip.samples):
            out.writeframesraw(to_pcm16(block).tobytes())
