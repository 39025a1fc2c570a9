"""Writing audio files: WAV, FLAC and MP3, block by block."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

import soundfile

from studio.audio.atomic_file import replacing
from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.audio.pcm import to_pcm16
from studio.errors import BadInput


class AudioFormat(StrEnum):
    """The formats the studio writes; the value is the file's suffix without the dot."""

    WAV = "wav"
    FLAC = "flac"
    MP3 = "mp3"


@dataclass(frozen=True, slots=True)
class Mp3:
    """How an MP3 of constant bit rate is written.

    Attributes:
        rate_hz: One of those MPEG knows.
        compression: As libsndfile takes it, 0 to 1; with the rate it decides the bit rate.
        scale: LAME's preset for that bit rate makes the sound quieter by this factor.
    """

    rate_hz: int
    compression: float
    scale: float


STUDIO_MP3 = Mp3(STUDIO_RATE_HZ, 0.2, 0.95)
"""128 kbit/s; speech is transparent well below it."""

ACX_MP3 = Mp3(44_100, 0.44, 0.97)
"""192 kbit/s, which audiobook shops ask for."""


def format_of(path: Path) -> AudioFormat:
    """Choose the format by a file's suffix, whatever its case.

    Raises:
        BadInput: It is none of the three.
    """
    try:
        return AudioFormat(path.suffix.removeprefix(".").lower())
    except ValueError:
        raise BadInput(
            f"“{path.name}” doesn't say in which format to save. End the name in .wav, .flac or"
            " .mp3."
        ) from None


def encode_blocks(
    file: BinaryIO,
    blocks: Iterable[Samples],
    audio_format: AudioFormat,
    *,
    rate_hz: int = STUDIO_RATE_HZ,
    mp3_compression: float = STUDIO_MP3.compression,
) -> int:
    """Write blocks of mono samples as 16-bit audio; memory holds one block at a time.

    Args:
        file: Open for writing and seekable, since the headers are completed at the end.
        blocks: float32 [samples], each of any length.
        audio_format: MP3 needs one of the rates MPEG knows, the studio's among them.
        rate_hz: Of all the blocks.
        mp3_compression: As `Mp3` has it.

    Returns:
        The number of samples written. Decoders give as many back: the MP3 header carries the
        encoder's delay and padding.
    """
    sink = _Sink(file)
    written = 0
    quality: dict[str, Any] = {"subtype": "PCM_16"}
    if audio_format is AudioFormat.MP3:
        quality = {"compression_level": mp3_compression, "bitrate_mode": "CONSTANT"}
    with soundfile.SoundFile(
        sink, "w", samplerate=rate_hz, channels=1, format=audio_format.value, **quality
    ) as encoder:
        for block in blocks:
            encoder.write(to_pcm16(block))
            written += len(block)
            sink.raise_failure()
    sink.raise_failure()
    return written


def encode(clip: Clip, audio_format: AudioFormat) -> bytes:
    """Make a whole file in memory."""
    file = io.BytesIO()
    encode_blocks(file, [clip.samples], audio_format, rate_hz=clip.rate_hz)
    return file.getvalue()


def write_wav(path: Path, clip: Clip) -> None:
    """Write a clip as 16-bit WAV; the file is whole or not there.

    Raises:
        StorageFailed: The folder is missing, can't be written or is full.
    """
    _write(path, clip, AudioFormat.WAV)


def write_flac(path: Path, clip: Clip) -> None:
    """Write a clip as 16-bit FLAC, as `write_wav` does."""
    _write(path, clip, AudioFormat.FLAC)


def write_mp3(path: Path, clip: Clip) -> None:
    """Write a clip as MP3, as `write_wav` does."""
    _write(path, clip, AudioFormat.MP3)


def _write(path: Path, clip: Clip, audio_format: AudioFormat) -> None:
    with replacing(path) as file:
        encode_blocks(file, [clip.samples], audio_format, rate_hz=clip.rate_hz)


class _Sink:
    """A file for libsndfile that keeps the first error for Python.

    The library calls it from C, where an exception would be printed and lost, so a failed write is
    reported as done and raised by the next `raise_failure`.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._failure: OSError | None = None

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def write(self, data: bytes) -> int:
        try:
            if self._failure is None:
                self._file.write(data)
        except OSError as error:
            self._failure = error
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
