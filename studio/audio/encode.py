"""Encoding of audio: files, streams while the sound is generated, and their tempo."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
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
from studio.errors import BadInput

_MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    **dict.fromkeys(("m4a", "m4b"), "audio/mp4"),
}


LAYOUTS = {1: "mono", 2: "stereo"}
"""FFmpeg's names of the layouts, by the number of channels."""


class AudioFormat(StrEnum):
    """The formats the studio writes; the value is the file's suffix without the dot."""

    WAV = "wav"
    FLAC = "flac"
    MP3 = "mp3"
    OPUS = "opus"
    M4A = "m4a"
    M4B = "m4b"


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

BIT_RATES_KBPS = (64, 96, 128, 192)
"""What can be asked for of a format that loses something; 192 has 44,100 samples a second."""

DEFAULT_KBPS = {
    AudioFormat.MP3: 128,
    AudioFormat.OPUS: 64,
    AudioFormat.M4A: 96,
    AudioFormat.M4B: 96,
}


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
    try:
        return AudioFormat(path.suffix.removeprefix(".").lower())
    except ValueError:
        raise BadInput(
            f"“{path.name}” doesn't say in which format to save. End the name in .wav, .flac or"
            " .mp3, or in .opus, .m4a or .m4b."
        ) from None


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
    if audio_format in _TAGGED and audio_format is not AudioFormat.FLAC:
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


# Container, codec and options. The brand of an M4B is what makes it an audiobook.
_TAGGED: dict[AudioFormat, tuple[str, str, dict[str, str]]] = {
    AudioFormat.FLAC: ("flac", "flac", {}),
    AudioFormat.OPUS: ("ogg", "libopus", {}),
    AudioFormat.M4A: ("mp4", "aac", {"brand": "M4A "}),
    AudioFormat.M4B: ("mp4", "aac", {"brand": "M4B "}),
}


def encode_tagged(
    file: BinaryIO,
    blocks: Iterable[Samples],
    audio_format: AudioFormat,
    tags: FileTags,
    *,
    rate_hz: int = STUDIO_RATE_HZ,
    kbps: int | None = None,
) -> int:
    """Write blocks of samples with tags, as FLAC, Opus, M4A or M4B; returns how many.

    Args:
        file: Open for writing and seekable.
        blocks: float32 [samples], or [samples, 2] for stereo, each of any length.
        audio_format: One of the four.
        tags: What the file says of itself.
        rate_hz: Of all the blocks.
        kbps: Bit rate of all channels together; None for the format's default.
    """
    channels, blocks = peek_channels(blocks)
    container_format, codec, options = _TAGGED[audio_format]
    options = {"fflags": "+bitexact", **options}  # the same bytes each time
    sink = _GuardedSink(file)
    with av.open(sink, "w", format=container_format, options=options) as container:
        stream: Any = container.add_stream(codec, rate=rate_hz, layout=LAYOUTS[channels])
        if audio_format in DEFAULT_KBPS:
            stream.bit_rate = 1000 * (kbps or DEFAULT_KBPS[audio_format])
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


class StreamFormat(StrEnum):
    """The formats a listener can ask for."""

    MP3 = "mp3"
    OPUS = "opus"
    AAC = "aac"
    FLAC = "flac"
    WAV = "wav"
    PCM = "pcm"
    M4A = "m4a"
    M4B = "m4b"

    @property
    def media_type(self) -> str:
        """The MIME type; Opus comes in Ogg, AAC in ADTS, PCM is s16le."""
        return _MEDIA_TYPES.get(self, f"audio/{self.value}")


# Container, codec and options. No Xing header, since it would have to be completed at the end;
# WAV states the largest length there is, which readers take for "to the end".
_MUXED: dict[StreamFormat, tuple[str, str, dict[str, str]]] = {
    StreamFormat.MP3: ("mp3", "libmp3lame", {"write_xing": "0", "id3v2_version": "0"}),
    StreamFormat.OPUS: ("ogg", "libopus", {"page_duration": "20000"}),
    StreamFormat.AAC: ("adts", "aac", {}),
    StreamFormat.WAV: ("wav", "pcm_s16le", {"fflags": "+bitexact"}),
    # In fragments, as only a seekable file can have its index completed.
    **dict.fromkeys(
        (StreamFormat.M4A, StreamFormat.M4B),
        ("mp4", "aac", {"movflags": "empty_moov+default_base_moof", "frag_duration": "250000"}),
    ),
}
_BIT_RATE = {
    **{StreamFormat.MP3: 128_000, StreamFormat.OPUS: 48_000},
    **dict.fromkeys((StreamFormat.AAC, StreamFormat.M4A, StreamFormat.M4B), 96_000),
}


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

    FLAC gives all its bytes at the end: readers rely on the length in its header. The others give
    theirs with each chunk; MP3 and AAC last up to 90 ms longer than what went in, for the delay
    and the padding of their encoders.
    """

    def __init__(self, audio_format: StreamFormat, *, channels: int = 1) -> None:
        """Begin a stream; `finish` or `close` frees the encoder."""
        self._format = audio_format
        self._channels = channels
        self._written = bytearray()
        self._samples = 0
        self._flac: soundfile.SoundFile | None = None
        self._container: Any = None
        if audio_format in _MUXED:
            self._open(*_MUXED[audio_format])
        elif audio_format is StreamFormat.FLAC:
            # Compressed as it comes, since an hour of samples takes 350 MB; on no disk, which may
            # be full.
            self._whole = io.BytesIO()
            self._flac = soundfile.SoundFile(
                self._whole,
                "w",
                samplerate=STUDIO_RATE_HZ,
                channels=channels,
                format="FLAC",
                subtype="PCM_16",
            )

    def push(self, chunk: Samples) -> bytes:
        """Encode a chunk; returns the encoder's output, perhaps empty."""
        if self._format is StreamFormat.PCM:
            return to_pcm16(chunk).tobytes()
        if self._flac is not None:
            self._flac.write(to_pcm16(chunk))
            return b""
        if len(chunk):
            self._encode(_make_frame(to_pcm16(chunk), "s16", self._samples))
            self._samples += len(chunk)
        return self._take_bytes()

    def finish(self) -> bytes:
        """The rest of the stream; nothing may be pushed after it."""
        if self._flac is not None:
            self.close()  # which writes the length into the header
            return self._whole.getvalue()
        if self._container is not None:
            self._encode(None)
            self.close()
        return self._take_bytes()

    def close(self) -> None:
        """Free the encoder; harmless after `finish`."""
        for encoder in (self._container, self._flac):
            if encoder is not None:
                encoder.close()
        self._container = self._flac = None

    def _open(self, container: str, codec: str, options: dict[str, str]) -> None:
        self._container = av.open(
            _StreamSink(self._written), "w", format=container, options=options
        )
        self._stream = self._container.add_stream(
            codec, rate=STUDIO_RATE_HZ, layout=LAYOUTS[self._channels]
        )
        if self._format in _BIT_RATE:
            self._stream.bit_rate = _BIT_RATE[self._format]

    def _encode(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def _take_bytes(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def encode_stream(chunks: Iterator[Samples], audio_format: StreamFormat) -> Iterator[bytes]:
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
        """Begin; `speed` 2 takes half the time, within `MIN_SPEED` to `MAX_SPEED`."""
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
