"""Encoding of audio: files, streams while the sound is generated, and their tempo."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import av
import av.error
import numpy as np
import numpy.typing as npt
import soundfile
from av.filter import Graph

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples, from_pcm16, peek_channels, to_pcm16
from studio.audio.file_tags import FileTags, set_tags
from studio.audio.formats import FILE_SUFFIXES, AudioFormat, Encoding
from studio.errors import BadInput

LAYOUTS = {1: "mono", 2: "stereo"}
"""FFmpeg's names of the layouts, by the number of channels."""


@dataclass(frozen=True, slots=True)
class Mp3Settings:
    """Settings of an MP3 of constant bit rate.

    Attributes:
        rate_hz: One of those MPEG knows.
        compression: As libsndfile takes it, 0 to 1; with the rate it decides the bit rate.
        scale: LAME's preset for that bit rate makes the sound quieter by this factor.
    """

    rate_hz: int
    compression: float
    scale: float


STUDIO_MP3 = Mp3Settings(STUDIO_RATE_HZ, 0.2, 0.95)
"""128 kbit/s; speech is transparent well below it."""

ACX_MP3 = Mp3Settings(44_100, 0.44, 0.97)
"""192 kbit/s, which audiobook shops ask for."""


def mp3_settings(kbps: int) -> Mp3Settings:
    """The settings of an MP3 of a bit rate of `BIT_RATES_KBPS`."""
    if kbps > 160:  # more than MPEG-2 has, which low sample rates need
        return replace(ACX_MP3, compression=(320 - kbps) / (320 - 32))
    return replace(STUDIO_MP3, compression=(160 - kbps) / (160 - 8))


def parse_format(path: Path) -> AudioFormat:
    """Choose the format by a file's suffix, whatever its case.

    Raises:
        BadInput: It is none of them.
    """
    suffix = path.suffix.removeprefix(".").lower()
    if suffix in FILE_SUFFIXES:
        return AudioFormat(suffix)
    *others, last = FILE_SUFFIXES
    raise BadInput(
        f"“{path.name}” doesn't say in which format to save. End the name in "
        f".{', .'.join(others)} or .{last}."
    )


_BY_LIBSNDFILE = frozenset((AudioFormat.WAV, AudioFormat.FLAC, AudioFormat.MP3))


def encode_blocks(
    file: BinaryIO,
    blocks: Iterable[Samples],
    audio_format: AudioFormat,
    *,
    rate_hz: int = STUDIO_RATE_HZ,
    mp3_compression: float = STUDIO_MP3.compression,
) -> int:
    """Write blocks of samples as 16-bit audio; memory holds one block at a time.

    Args:
        file: Open for writing and seekable, since the headers are completed at the end. What is in
            it already stays before the sound.
        blocks: float32 [samples], or [samples, 2] for stereo, each of any length.
        audio_format: MP3 needs one of the rates MPEG knows, the studio's among them.
        rate_hz: Of all the blocks.
        mp3_compression: As `Mp3Settings` has it.

    Returns:
        The number of samples written of each channel. Decoders give as many back: the MP3 header
        carries the encoder's delay and padding.
    """
    if audio_format not in _BY_LIBSNDFILE:
        return encode_tagged(file, blocks, audio_format, FileTags(), rate_hz=rate_hz)
    sink = _GuardedSink(file)
    written = 0
    quality: dict[str, Any] = {"subtype": "PCM_16"}
    if audio_format is AudioFormat.MP3:
        quality = {"compression_level": mp3_compression, "bitrate_mode": "CONSTANT"}
    channels, blocks = peek_channels(blocks)
    is_stereo_mp3 = channels == 2 and audio_format is AudioFormat.MP3
    with soundfile.SoundFile(
        sink, "w", samplerate=rate_hz, channels=channels, format=audio_format.value, **quality
    ) as encoder:
        for block in blocks:
            pcm = to_pcm16(block)
            # libsndfile 1.2.2 mixes up the channels of 16-bit samples that it encodes as MP3.
            encoder.write(from_pcm16(pcm) if is_stereo_mp3 else pcm)
            written += len(block)
            sink.raise_failure()
    sink.raise_failure()
    return written


def encode(clip: Clip, audio_format: AudioFormat) -> bytes:
    """Encode a whole file in memory."""
    file = io.BytesIO()
    encode_blocks(file, [clip.samples], audio_format, rate_hz=clip.rate_hz)
    return file.getvalue()


class _GuardedSink:
    """A file for an encoder that keeps the first error for Python.

    The encoders call it from C, where an exception would be printed and lost, so a failed write is
    reported as done and raised by the next `raise_failure`.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._start = file.tell()
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
        start = self._start if whence == 0 else 0
        return self._file.seek(start + offset, whence) - self._start

    def tell(self) -> int:
        return self._file.tell() - self._start


def encode_tagged(
    file: BinaryIO,
    blocks: Iterable[Samples],
    audio_format: AudioFormat,
    tags: FileTags,
    *,
    rate_hz: int = STUDIO_RATE_HZ,
    kbps: int | None = None,
) -> int:
    """Write blocks of samples with tags by FFmpeg; returns how many.

    Args:
        file: Open for writing and seekable.
        blocks: float32 [samples], or [samples, 2] for stereo, each of any length.
        audio_format: None whose tags or header FFmpeg can't write: WAV and MP3.
        tags: What the file says of itself.
        rate_hz: Of all the blocks.
        kbps: Bit rate of all channels together; None for the format's default.
    """
    channels, blocks = peek_channels(blocks)
    how = audio_format.encoding
    options = {"fflags": "+bitexact", **how.options}  # the same bytes each time
    sink = _GuardedSink(file)
    with av.open(sink, "w", format=how.container, options=options) as container:
        stream: Any = container.add_stream(how.codec, rate=rate_hz, layout=LAYOUTS[channels])
        if how.kbps:
            stream.bit_rate = 1000 * (kbps or how.kbps)
        set_tags(container, tags)
        at_sample = 0
        for block in blocks:
            if len(block):
                frame = _make_frame(to_pcm16(block), "s16", at_sample, rate_hz)
                container.mux(stream.encode(frame))
                at_sample += len(block)
                sink.raise_failure()
        container.mux(stream.encode(None))
    sink.raise_failure()
    return at_sample


def _make_frame(
    samples: npt.NDArray[Any], sample_format: str, start_sample: int, rate_hz: int = STUDIO_RATE_HZ
) -> Any:
    """A frame of PyAV's, with samples as blocks have them, by default at the studio's rate."""
    layout = LAYOUTS[samples.ndim]
    frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format=sample_format, layout=layout)
    frame.sample_rate = rate_hz
    frame.pts = start_sample
    return frame


class StreamEncoder:
    """Takes chunks of float32 at the studio's rate and gives bytes as soon as there are any.

    Those without a `live` encoding give all their bytes at the end, the others theirs with each
    chunk; MP3 and AAC last up to 90 ms longer than what went in, for the delay and the padding of
    their encoders.
    """

    def __init__(self, audio_format: AudioFormat, *, channels: int = 1) -> None:
        self._format = audio_format
        self._channels = channels
        self._written = bytearray()
        self._samples = 0
        self._file: soundfile.SoundFile | None = None
        self._container: Any = None
        live = audio_format.encoding.live
        if live is None:
            # Compressed as it comes, since an hour of samples takes 350 MB; on no disk, which may
            # be full.
            self._whole = io.BytesIO()
            self._file = soundfile.SoundFile(
                self._whole,
                "w",
                samplerate=STUDIO_RATE_HZ,
                channels=channels,
                format=audio_format.name,
                subtype="PCM_16",
            )
        elif audio_format is not AudioFormat.PCM:
            self._open(audio_format.encoding, dict(live))

    def push(self, chunk: Samples) -> bytes:
        """Encode a chunk; returns the encoder's output, perhaps empty."""
        if self._format is AudioFormat.PCM:
            return to_pcm16(chunk).tobytes()
        if self._file is not None:
            self._file.write(to_pcm16(chunk))
            return b""
        if len(chunk):
            self._encode(_make_frame(to_pcm16(chunk), "s16", self._samples))
            self._samples += len(chunk)
        return self._take_bytes()

    def finish(self) -> bytes:
        """The rest of the stream; nothing may be pushed after it."""
        if self._file is not None:
            self.close()  # which writes the length into the header
            return self._whole.getvalue()
        if self._container is not None:
            self._encode(None)
            self.close()
        return self._take_bytes()

    def close(self) -> None:
        """Free the encoder; harmless after `finish`."""
        for encoder in (self._container, self._file):
            if encoder is not None:
                encoder.close()
        self._container = self._file = None

    def _open(self, how: Encoding, options: dict[str, str]) -> None:
        self._container = av.open(
            _StreamSink(self._written), "w", format=how.container, options=options
        )
        self._stream = self._container.add_stream(
            how.codec, rate=STUDIO_RATE_HZ, layout=LAYOUTS[self._channels]
        )
        if how.kbps:
            self._stream.bit_rate = 1000 * (how.live_kbps or how.kbps)

    def _encode(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def _take_bytes(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def encode_stream(chunks: Iterator[Samples], audio_format: AudioFormat) -> Iterator[bytes]:
    """Encode chunks as they come."""
    channels, chunks = peek_channels(chunks)
    encoder = StreamEncoder(audio_format, channels=channels)
    try:
        for chunk in chunks:
            if fresh := encoder.push(chunk):
                yield fresh
        yield encoder.finish()
    finally:
        encoder.close()


class _StreamSink(io.RawIOBase):
    """Collects the container's bytes; not seekable, so the container completes nothing later."""

    def __init__(self, written: bytearray) -> None:
        self._bytes = written

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def write(self, data: Any) -> int:
        self._bytes += data
        return len(data)


MIN_SPEED = 0.25
MAX_SPEED = 4.0
_MAX_FILTER_SPEED = 2.0
"""The most that one filter changes the tempo; beyond it, several are chained."""


class Tempo:
    """Stretches mono float32 at the studio's rate in time, chunk by chunk."""

    def __init__(self, speed: float) -> None:
        assert MIN_SPEED <= speed <= MAX_SPEED
        self._samples = 0
        self._graph: Any = _build_graph(speed) if speed != 1.0 else None

    def push(self, chunk: Samples) -> Samples:
        """Stretch a chunk; returns what is ready, perhaps nothing."""
        if self._graph is None or not len(chunk):
            return chunk
        self._graph.push(_make_frame(chunk, "flt", self._samples))
        self._samples += len(chunk)
        return self._pull()

    def finish(self) -> Samples:
        """The rest of the audio; nothing may be pushed after it."""
        if self._graph is None or not self._samples:
            return np.zeros(0, dtype=np.float32)
        self._graph.push(None)
        return self._pull()

    def _pull(self) -> Samples:
        blocks = [np.zeros(0, dtype=np.float32), *_pull_all(self._graph)]
        samples: Samples = np.concatenate(blocks)
        return np.clip(samples, -1.0, 1.0, out=samples)


def change_tempo(chunks: Iterator[Samples], speed: float) -> Iterator[Samples]:
    """Change the speed of float32 chunks at the studio's rate; the pitch stays."""
    tempo = Tempo(speed)
    for chunk in chunks:
        if len(stretched := tempo.push(chunk)):
            yield stretched
    if len(rest := tempo.finish()):
        yield rest


def _build_graph(speed: float) -> Any:
    graph = Graph()
    last = graph.add_abuffer(sample_rate=STUDIO_RATE_HZ, format="flt", layout="mono")
    for step in _split_speed(speed):
        tempo = graph.add("atempo", f"{step:.6f}")
        last.link_to(tempo)
        last = tempo
    last.link_to(graph.add("abuffersink"))
    graph.configure()
    return graph


def _split_speed(speed: float) -> Iterator[float]:
    while not 1 / _MAX_FILTER_SPEED <= speed <= _MAX_FILTER_SPEED:
        step = _MAX_FILTER_SPEED if speed > 1 else 1 / _MAX_FILTER_SPEED
        yield step
        speed /= step
    yield speed


def _pull_all(graph: Any) -> Iterator[Samples]:
    while True:
        try:
            yield graph.pull().to_ndarray().reshape(-1)
        except (av.error.BlockingIOError, av.error.EOFError):
            return
