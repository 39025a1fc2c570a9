"""From the bytes of an answer to samples at the studio's rate, as they arrive."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import soxr

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.audio.pcm import from_pcm16
from studio.backends.remote.faults import Garbled

_PCM, _EXTENSIBLE = 1, 0xFFFE
_UNKNOWN_BYTES = (0, 0x7FFF_FFFF, 0xFFFF_FFFF)  # what streaming servers write for "don't know"
_LOWEST_HZ, _HIGHEST_HZ = 8_000, 192_000
_MAX_HEADER_BYTES = 65_536
_NOTHING = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Form:
    """How 16-bit samples lie in an answer; `data_bytes` is None when it isn't told."""

    rate_hz: int = STUDIO_RATE_HZ
    channels: int = 1
    data_bytes: int | None = None


class SpeechReader:
    """Takes an answer's bytes in any pieces, raw 16-bit samples or a WAV file.

    A WAV file is known by its first bytes, whatever was asked for: some servers send nothing else.
    """

    def __init__(self) -> None:
        """Wait for the first bytes."""
        self._pending = b""
        self._form: Form | None = None
        self._left_bytes: int | None = None
        self._resampler: soxr.ResampleStream | None = None
        self._samples = 0

    def feed(self, data: bytes) -> Samples:
        """Take more bytes; what is complete of them, float32 [samples] at the studio's rate.

        Raises:
            Garbled: It is a WAV file with something else than 16-bit samples.
        """
        self._pending += data
        if self._form is None and not self._begin():
            return _NOTHING
        assert self._form is not None
        frame_bytes = 2 * self._form.channels
        usable = len(self._pending) if self._left_bytes is None else self._left_bytes
        whole_bytes = min(len(self._pending), usable) // frame_bytes * frame_bytes
        frames, self._pending = self._pending[:whole_bytes], self._pending[whole_bytes:]
        if self._left_bytes is not None:
            self._left_bytes -= whole_bytes
        return self._at_studio_rate(_mono(frames, self._form.channels))

    def finish(self) -> Samples:
        """The last samples, once no more bytes come.

        Raises:
            Garbled: The audio isn't whole, or there is none.
        """
        missing = self._left_bytes if self._left_bytes is not None else len(self._pending)
        if self._form is None or missing:
            raise Garbled("sent audio that isn't whole")
        rest = self._at_studio_rate(_NOTHING, last=True)
        if not self._samples:
            raise Garbled("sent no audio")
        return rest

    def _begin(self) -> bool:
        """Learn the form from the first bytes; whether there are enough of them."""
        if len(self._pending) < 4:
            return False
        if self._pending.startswith(b"RIFF"):
            found = _wav_form(self._pending)
            if found is None:
                return False
            self._form, start = found
            self._pending = self._pending[start:]
        else:
            self._form = Form()
        self._left_bytes = self._form.data_bytes
        if self._form.rate_hz != STUDIO_RATE_HZ:
            self._resampler = soxr.ResampleStream(
                self._form.rate_hz, STUDIO_RATE_HZ, 1, dtype="float32", quality="HQ"
            )
        return True

    def _at_studio_rate(self, samples: Samples, *, last: bool = False) -> Samples:
        self._samples += len(samples)
        if self._resampler is None:
            return samples
        fresh: Samples = self._resampler.resample_chunk(samples, last=last)
        return np.clip(fresh, -1.0, 1.0)


def _wav_form(head: bytes) -> tuple[Form, int] | None:
    """The form and where the samples start; None when that hasn't come yet."""
    form, place = None, 12
    while len(head) >= place + 8:
        name, size = struct.unpack_from("<4sI", head, place)
        place += 8
        if name == b"data":
            if form is None:
                raise Garbled("sent a WAV file without a format")
            known = None if size in _UNKNOWN_BYTES else size
            return Form(form.rate_hz, form.channels, known), place
        if name == b"fmt " and len(head) >= place + 16:
            form = _format_chunk(head[place : place + 16])
        place += size + size % 2
    if place > _MAX_HEADER_BYTES:
        raise Garbled("sent a WAV file without samples")
    return None


def _format_chunk(chunk: bytes) -> Form:
    kind, channels, rate_hz, _, _, bits = struct.unpack("<HHIIHH", chunk)
    if kind not in (_PCM, _EXTENSIBLE) or bits != 16 or not (channels and rate_hz):
        raise Garbled(f"sent a WAV file of a kind that can't be read ({bits} bits, format {kind})")
    if not _LOWEST_HZ <= rate_hz <= _HIGHEST_HZ:
        raise Garbled(f"sent a WAV file with {rate_hz} samples a second")
    return Form(rate_hz, channels)


def _mono(frames: bytes, channels: int) -> Samples:
    samples = from_pcm16(np.frombuffer(frames, dtype="<i2"))
    if channels == 1:
        return samples
    return samples.reshape(-1, channels).mean(axis=1, dtype=np.float32)
