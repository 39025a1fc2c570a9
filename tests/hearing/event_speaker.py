"""eSpeak NG with its word events: speech whose words have exact times."""

from __future__ import annotations

import ctypes

import numpy as np
import soxr

from studio.audio.clip import STUDIO_RATE_HZ, Clip, from_pcm16
from studio.backends.espeak.espeak_voices import find_package
from studio.hearing.word_times import WordTime

_RATE, _PITCH, _RANGE = 1, 3, 4


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)

_TYPE_WORD = 1


class EventSpeaker:
    """Speaks in this process; its state is the library's, so one at a time."""

    def __init__(self) -> None:
        package = find_package()
        self._espeak = ctypes.CDLL(str(package.library))
        self._rate_hz = self._espeak.espeak_Initialize(2, 1_000, bytes(package.folder), 0x8000)
        self._callback = _Callback(self._take)
        self._espeak.espeak_SetSynthCallback(self._callback)
        self._pcm = bytearray()
        self._events: list[tuple[int, int, int]] = []

    def speak(
        self, text: str, *, voice: str = "en", rate: int = 175, pitch: int = 50, spread: int = 50
    ) -> tuple[Clip, list[WordTime]]:
        """Speak ASCII text; a word ends where the next begins, or its clause does."""
        self._pcm, self._events = bytearray(), []
        assert self._espeak.espeak_SetVoiceByName(voice.encode()) == 0
        for parameter, value in ((_RATE, rate), (_PITCH, pitch), (_RANGE, spread)):
            assert self._espeak.espeak_SetParameter(parameter, value, 0) == 0
        data = text.encode("ascii") + b"\0"
        assert self._espeak.espeak_Synth(data, len(data), 0, 1, 0, 1, None, None) == 0
        pcm = from_pcm16(np.frombuffer(bytes(self._pcm), np.int16))
        clip = Clip(soxr.resample(pcm, self._rate_hz, STUDIO_RATE_HZ))
        return clip, self._words(text, clip.duration_s)

    def _words(self, text: str, duration_s: float) -> list[WordTime]:
        starts = [at for at, _, _ in self._events] + [duration_s * 1_000]
        return [
            WordTime(
                text[place : place + length],
                place,
                place + length,
                at / 1_000,
                max(at, after) / 1_000,
            )
            for (at, place, length), after in zip(self._events, starts[1:], strict=True)
        ]

    def _take(self, samples: object, n_samples: int, events: object) -> int:
        if samples and n_samples > 0:
            self._pcm += ctypes.string_at(samples, 2 * n_samples)
        at = 0
        while events[at].type != 0:
            if events[at].type == _TYPE_WORD:
                event = events[at]
                place = event.text_position - 1
                self._events.append((event.audio_position, place, event.length))
            at += 1
        return 0
