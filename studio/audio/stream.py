"""Encoding audio while it is made, for listeners who don't wait for its end."""

from __future__ import annotations

import io
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import av
import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.audio.encode import AudioFormat, encode
from studio.audio.pcm import to_pcm16


class StreamFormat(StrEnum):
    """The formats a listener can ask for."""

    MP3 = "mp3"
    OPUS = "opus"
    AAC = "aac"
    FLAC = "flac"
    WAV = "wav"
    PCM = "pcm"

    @property
    def media_type(self) -> str:
        """What HTTP calls it; Opus comes in Ogg, AAC in ADTS, PCM is s16le mono."""
        return _MEDIA_TYPES[self]


_MEDIA_TYPES = {
    StreamFormat.MP3: "audio/mpeg",
    StreamFormat.OPUS: "audio/ogg",
    StreamFormat.AAC: "audio/aac",
    StreamFormat.FLAC: "audio/flac",
    StreamFormat.WAV: "audio/wav",
    StreamFormat.PCM: "audio/pcm",
}

# Container, codec and options. No Xing header, since it would have to be completed at the end;
# WAV states the largest length there is, which readers take for "to the end".
_MUXED: dict[StreamFormat, tuple[str, str, dict[str, str]]] = {
    StreamFormat.MP3: ("mp3", "libmp3lame", {"write_xing": "0", "id3v2_version": "0"}),
    StreamFormat.OPUS: ("ogg", "libopus", {"page_duration": "20000"}),
    StreamFormat.AAC: ("adts", "aac", {}),
    StreamFormat.WAV: ("wav", "pcm_s16le", {"fflags": "+bitexact"}),
}
_BIT_RATE = {StreamFormat.MP3: 128_000, StreamFormat.OPUS: 48_000, StreamFormat.AAC: 96_000}


class StreamEncoder:
    """Takes chunks of mono float32 at the studio's rate and gives bytes as soon as there are any.

    FLAC gives all its bytes at the end: readers rely on the length in its header. The others give
    theirs with each chunk; MP3 and AAC last up to 90 ms longer than what went in, for the delay
    and the padding of their encoders.
    """

    def __init__(self, audio_format: StreamFormat) -> None:
        """Begin a stream; `finish` or `close` frees the encoder."""
        self._format = audio_format
        self._written = bytearray()
        self._samples = 0
        self._kept: list[Samples] = []
        self._container: Any = None
        if audio_format in _MUXED:
            self._open(*_MUXED[audio_format])

    def push(self, chunk: Samples) -> bytes:
        """Encode a chunk; what came out of the encoder, perhaps nothing."""
        if self._format is StreamFormat.PCM:
            return to_pcm16(chunk).tobytes()
        if self._container is None:
            self._kept.append(chunk)
            return b""
        if len(chunk):
            self._encode(self._frame(chunk))
        return self._taken()

    def finish(self) -> bytes:
        """The rest of the stream; nothing may be pushed any more."""
        if self._format is StreamFormat.FLAC:
            silence = np.zeros(0, dtype=np.float32)
            return encode(Clip(np.concatenate([silence, *self._kept])), AudioFormat.FLAC)
        if self._container is not None:
            self._encode(None)
            self.close()
        return self._taken()

    def close(self) -> None:
        """Free the encoder; harmless after `finish`."""
        container, self._container = self._container, None
        if container is not None:
            container.close()

    def _open(self, container: str, codec: str, options: dict[str, str]) -> None:
        self._container = av.open(_Sink(self._written), "w", format=container, options=options)
        self._stream = self._container.add_stream(codec, rate=STUDIO_RATE_HZ, layout="mono")
        if self._format in _BIT_RATE:
            self._stream.bit_rate = _BIT_RATE[self._format]

    def _frame(self, chunk: Samples) -> Any:
        frame = av.AudioFrame.from_ndarray(to_pcm16(chunk)[None], format="s16", layout="mono")
        frame.sample_rate = STUDIO_RATE_HZ
        frame.pts = self._samples
        self._samples += len(chunk)
        return frame

    def _encode(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def _taken(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def encode_stream(chunks: Iterator[Samples], audio_format: StreamFormat) -> Iterator[bytes]:
    """Encode chunks as they come."""
    encoder = StreamEncoder(audio_format)
    try:
        for chunk in chunks:
            if fresh := encoder.push(chunk):
                yield fresh
        yield encoder.finish()
    finally:
        encoder.close()


class _Sink(io.RawIOBase):
    """Where the container's bytes go; it can't be sought in, so nothing is completed later."""

    def __init__(self, written: bytearray) -> None:
        self._bytes = written

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def write(self, data: Any) -> int:
        self._bytes += data
        return len(data)
