"""Decoding of recordings from outside: wav, flac, mp3, ogg, m4a and webm, within limits.

A file is judged three times: by its size, by what its header claims, and, since headers lie, by
what comes out of it while it is decoded.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import av
import av.error
import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples, resample
from studio.errors import AudioRejected

# Only these are opened: playlists and the like make the decoder read other files and addresses.
_CONTAINERS = "wav,flac,mp3,ogg,mov,mp4,m4a,matroska,webm,aac,aiff,w64"
_FORMATS_FOR_MESSAGES = "wav, flac, mp3, ogg, m4a or webm"

# Formats whose header states the exact length, so that a missing end is detected.
_EXACT_LENGTH = frozenset({"flac", "mov", "matroska"})
_MISSING_END_S = 0.25

_OPENING_ERRORS = (av.error.FFmpegError, ValueError, LookupError)


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """The largest recording that is accepted."""

    max_bytes: int = 100_000_000
    max_duration_s: float = 600.0
    max_channels: int = 8
    max_rate_hz: int = 192_000


DEFAULT_LIMITS = DecodeLimits()


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """What a recording's header says.

    Attributes:
        duration_s: None where the header gives none, as in what browsers record.
        rate_hz: Samples a second of each channel.
        channels: 1 for mono.
        codec: Name of the decoder, such as "opus" or "pcm_s16le".
        size_bytes: Of the file.
    """

    duration_s: float | None
    rate_hz: int
    channels: int
    codec: str
    size_bytes: int


def probe(
    path: Path, *, limits: DecodeLimits = DEFAULT_LIMITS, display_name: str | None = None
) -> AudioInfo:
    """Read a recording's header.

    Args:
        path: The file, whatever its suffix.
        limits: What its size and its header are held to.
        display_name: What messages call the file, where its own name means nothing to a person.
    """
    with _Recording.open(path, limits, display_name) as recording:
        return recording.info


def decode(
    path: Path,
    *,
    limits: DecodeLimits = DEFAULT_LIMITS,
    rate_hz: int = STUDIO_RATE_HZ,
    display_name: str | None = None,
) -> Clip:
    """Decode a recording to one channel at `rate_hz`.

    Channels are averaged. Memory holds the result and one block; decoding ends as soon as a limit
    is passed. A WAV whose header claims more than the file holds gives what it holds.

    Args:
        path: The file, whatever its suffix.
        limits: What its size, its header and its content are held to.
        rate_hz: Rate of the result.
        display_name: What messages call the file, where its own name means nothing to a person.
    """
    with _Recording.open(path, limits, display_name) as recording:
        blocks = list(recording.blocks(rate_hz))
    samples = np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.float32)
    return Clip(np.clip(samples, -1.0, 1.0, out=samples), rate_hz)


@dataclass(frozen=True, slots=True)
class _Recording:
    """An open recording; `container` and `stream` are PyAV's, `name` is for messages."""

    name: str
    limits: DecodeLimits
    info: AudioInfo
    container: Any
    stream: Any

    @classmethod
    @contextmanager
    def open(cls, path: Path, limits: DecodeLimits, name: str | None) -> Iterator[_Recording]:
        """Open a file and check its size and header against the limits."""
        name = name or path.name
        with _open_file(path, name) as file:
            size_bytes = file.seek(0, io.SEEK_END)
            file.seek(0)
            _check_size(size_bytes, limits, name)
            with _open_container(file, name) as container:
                stream = _find_audio_stream(container, name)
                info = _read_info(container, stream, size_bytes)
                recording = cls(name, limits, info, container, stream)
                recording._check_header()
                yield recording

    def blocks(self, rate_hz: int) -> Iterator[Samples]:
        """Decode block by block."""
        own = self._counted_blocks()
        return own if rate_hz == self.info.rate_hz else resample(own, self.info.rate_hz, rate_hz)

    def _counted_blocks(self) -> Iterator[Samples]:
        decoded = 0
        for block in self._source_blocks():
            decoded += len(block)
            self._check_duration(decoded / self.info.rate_hz)
            yield block
        self._check_end(decoded / self.info.rate_hz)

    def _source_blocks(self) -> Iterator[Samples]:
        try:
            for frame in self.container.decode(self.stream):
                self._check_frame(frame)
                block = _mix_to_mono(frame)
                if not np.isfinite(block).all():
                    raise AudioRejected(
                        f"“{self.name}” holds values that aren't numbers. Export it again as 16-bit"
                        " WAV."
                    )
                yield block
        except MemoryError:
            raise
        except av.error.FFmpegError as error:
            raise AudioRejected(
                f"“{self.name}” is damaged and can't be decoded to its end. Copy or export it"
                " again."
            ) from error

    def _check_header(self) -> None:
        info, limits = self.info, self.limits
        if info.channels < 1 or info.rate_hz < 1:
            raise AudioRejected(f"“{self.name}” holds no sound. Choose another recording.")
        if info.channels > limits.max_channels:
            raise AudioRejected(
                f"“{self.name}” has {info.channels} channels; {limits.max_channels} are the most."
                " Export it as mono."
            )
        if info.rate_hz > limits.max_rate_hz:
            raise AudioRejected(
                f"“{self.name}” has {info.rate_hz:,} samples a second; {limits.max_rate_hz:,} are"
                " the most. Export it at 48,000."
            )
        if info.duration_s is not None:
            self._check_duration(info.duration_s)

    def _check_duration(self, duration_s: float) -> None:
        if duration_s > self.limits.max_duration_s:
            raise AudioRejected(
                f"“{self.name}” is longer than {self.limits.max_duration_s / 60:g} minutes, the"
                " most that is taken. Cut out the part that is needed."
            )

    def _check_frame(self, frame: Any) -> None:
        if (frame.sample_rate, frame.layout.nb_channels) != (self.info.rate_hz, self.info.channels):
            raise AudioRejected(
                f"“{self.name}” changes its sample rate or channels on the way. Export it again as"
                " WAV."
            )

    def _check_end(self, decoded_s: float) -> None:
        if decoded_s == 0:
            raise AudioRejected(f"“{self.name}” holds no sound. Choose another recording.")
        stated_s = self.info.duration_s
        exact = not _EXACT_LENGTH.isdisjoint(self.container.format.name.split(","))
        if exact and stated_s is not None and decoded_s < stated_s - _MISSING_END_S:
            raise AudioRejected(
                f"“{self.name}” is cut off: {decoded_s:.1f} s of {stated_s:.1f} s are there. Copy"
                " it again."
            )


def _open_file(path: Path, name: str) -> BinaryIO:
    try:
        if path.is_file():
            return path.open("rb")
    except (OSError, ValueError) as error:
        raise AudioRejected(f"“{name}” can't be read: {error}. Choose another file.") from error
    reason = "is not a file" if path.exists() else "can't be found"
    raise AudioRejected(f"“{name}” {reason} at {path}. Choose the recording again.")


def _check_size(size_bytes: int, limits: DecodeLimits, name: str) -> None:
    if size_bytes == 0:
        raise AudioRejected(f"“{name}” is empty (0 bytes). Copy or record it again.")
    if size_bytes > limits.max_bytes:
        raise AudioRejected(
            f"“{name}” has {size_bytes / 1e6:.0f} MB; {limits.max_bytes / 1e6:g} MB are the most."
            " Cut out the part that is needed, or save it as flac or mp3."
        )


def _open_container(file: BinaryIO, name: str) -> Any:
    try:
        return av.open(file, options={"format_whitelist": _CONTAINERS}, metadata_errors="ignore")
    except MemoryError:  # PyAV's is an FFmpegError too, and says nothing about the file
        raise
    except _OPENING_ERRORS as error:
        raise AudioRejected(
            f"“{name}” is not a recording that can be read. Use {_FORMATS_FOR_MESSAGES}."
        ) from error


def _find_audio_stream(container: Any, name: str) -> Any:
    streams = container.streams.audio
    if not streams or streams[0].codec_context is None:
        raise AudioRejected(
            f"“{name}” holds no audio that can be read. Use {_FORMATS_FOR_MESSAGES}."
        )
    return streams[0]


def _read_info(container: Any, stream: Any, size_bytes: int) -> AudioInfo:
    duration_s = None
    if container.duration is not None:
        duration_s = container.duration / av.time_base
    context = stream.codec_context
    return AudioInfo(
        duration_s=duration_s,
        rate_hz=context.sample_rate or 0,
        channels=context.channels,
        codec=context.name,
        size_bytes=size_bytes,
    )


_CANCELLED = 1e-3  # of the power of one channel is left in the mean: 30 dB less


def _mix_to_mono(frame: Any) -> Samples:
    """Average a frame's channels to float32 [samples], full scale ±1."""
    data = frame.to_ndarray()  # planar [channels, samples], packed [1, samples * channels]
    channels = frame.layout.nb_channels
    planes = data if frame.format.is_planar else data.reshape(-1, channels).T
    # A float file may hold any value; the caller refuses what overflows as not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = planes.astype(np.float64)
        if data.dtype == np.uint8:
            scaled = (scaled - 128) / 128
        elif data.dtype.kind == "i":
            scaled /= -float(np.iinfo(data.dtype).min)
        mono = scaled.mean(axis=0)
        if channels == 2 and np.square(mono).mean() < _CANCELLED * np.square(scaled[0]).mean():
            mono = (scaled[0] - scaled[1]) / 2  # one of both is inverted
        samples: Samples = mono.astype(np.float32)
        return samples
