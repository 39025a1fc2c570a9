"""The process in which eSpeak NG speaks; run by path, with the library and its data folder.

It takes one request after another on standard input, to speak text, with the times of its words and
phonemes if they are wanted, or to tell its phonemes, and answers each on standard output: frames of
`FRAME` with a payload behind it. It imports the standard library only, and ends when its input
ends, so it never outlives the studio.

What eSpeak NG says depends on what it said before: pitch flutter, roughness and gain live in
static variables that neither `espeak_Terminate` nor `espeak_Initialize` resets (1.52). So every
utterance is spoken by a freshly loaded library, made ready while the last answer is on its way.
"""

from __future__ import annotations

import _ctypes  # the only way to unload a library
import ctypes
import json
import os
import signal
import struct
import sys
from typing import IO, Any

FRAME = struct.Struct("<iII")
"""Error code (0 is success), payload bytes, 1 when the worker ends now."""

SIZE = struct.Struct("<I")
"""Bytes of the JSON that follows: a request, or the events of speech."""

MAX_UTTERANCES = 100
"""Then the worker ends and another takes its place, which costs 0.3 ms an utterance: the library
leaves 2 to 20 KiB behind at each, and 200 KiB where Latin words stand in another script."""

_SYNCHRONOUS = 2
_NO_EXIT = 0x8000  # an error is returned instead of ending the process
_PHONEME_EVENTS, _AS_IPA = 0x01, 0x02  # they leave the sound as it is
_BUFFER_MS = 1_000
_UTF8_PLAIN = 1  # neither SSML (0x10) nor phonemes in brackets (0x100)
_RATE, _VOLUME, _PITCH, _RANGE = 1, 2, 3, 4
_IPA, _TIED = 0x02, 0x80  # the tie's character stands in the bits above
_QUIET_ENOUGH = 50  # percent; at 100 loud variants reach eSpeak NG's own limiter, which distorts

_WORD_EVENT, _PHONEME_EVENT = 1, 7


class _EventId(ctypes.Union):
    _fields_ = (("name", ctypes.c_void_p), ("phoneme", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    """`espeak_EVENT` of speak_lib.h (1.52); a list ends with type 0."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),  # in characters, from 1
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _EventId),
    )


_Events = Any  # a ctypes pointer to events
_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Event))


class EspeakError(Exception):
    """eSpeak NG returned an error; `args` are its code and what was asked of it."""


class Library:
    """One loaded copy of eSpeak NG, good for one utterance."""

    def __init__(self, path: str) -> None:
        """Load and initialise it; its data lies in the current folder.

        Raises:
            OSError: The library is missing or doesn't fit this system.
            EspeakError: It has no data, or of another version.
        """
        self._pcm = bytearray()
        self._events: list[tuple[int, int | str]] | None = None
        self._espeak = ctypes.CDLL(path)
        self.is_fresh = self._espeak.espeak_ng_GetSampleRate() == 0
        # The data's own path may be longer than the 160 bytes eSpeak NG keeps, or not ASCII.
        options = _NO_EXIT | _PHONEME_EVENTS | _AS_IPA
        self.rate_hz = self._espeak.espeak_Initialize(_SYNCHRONOUS, _BUFFER_MS, b".", options)
        if self.rate_hz <= 0:
            raise EspeakError(self.rate_hz, "initialise")
        self._callback = _Callback(self._take)
        self._espeak.espeak_SetSynthCallback(self._callback)

    @property
    def version(self) -> str:
        """Such as "1.52.0"."""
        self._espeak.espeak_Info.restype = ctypes.c_char_p
        version: bytes = self._espeak.espeak_Info(None)
        return version.decode()

    def speak(self, request: dict[str, Any]) -> bytes | bytearray:
        """Speak one request; call it once.

        Returns:
            Little-endian 16-bit mono PCM at `rate_hz`. If `with_events`, before it the size of a
            JSON list as `SIZE`, and the list: the first sample of a word with its offset in the
            text in characters, or of a phoneme with its IPA, which is empty for silence.

        Raises:
            EspeakError: The voice isn't known, or the synthesis failed.
        """
        voice = request["voice"]
        self._events = [] if request["with_events"] else None
        self._check(self._espeak.espeak_SetVoiceByName(voice.encode()), voice)
        settings = {
            _RATE: request["words_per_minute"],
            _PITCH: request["pitch"],
            _RANGE: request["pitch_range"],
            _VOLUME: _QUIET_ENOUGH,
        }
        for parameter, value in settings.items():
            self._check(self._espeak.espeak_SetParameter(parameter, value, 0), str(parameter))
        text = request["text"].encode() + b"\0"
        status = self._espeak.espeak_Synth(text, len(text), 0, 1, 0, _UTF8_PLAIN, None, None)
        self._check(status, "speak")
        if self._events is None:
            return self._pcm  # no copy, as it may last minutes
        events = json.dumps(self._events).encode()
        return SIZE.pack(len(events)) + events + self._pcm

    def read(self, request: dict[str, Any]) -> bytes:
        """Tell how sentences are pronounced, without speaking them.

        Returns:
            JSON: for each of the request's `sentences` its clauses, each as IPA and the text up to
            where eSpeak NG had read, which may be a letter into the next clause.

        Raises:
            EspeakError: The voice isn't known.
        """
        voice = request["voice"]
        self._check(self._espeak.espeak_SetVoiceByName(voice.encode()), voice)
        self._espeak.espeak_TextToPhonemes.restype = ctypes.c_char_p
        mode = _IPA | (_TIED | ord(request["tie"]) << 8 if request["tie"] else 0)
        return json.dumps([self._clauses(one, mode) for one in request["sentences"]]).encode()

    def _clauses(self, sentence: str, mode: int) -> list[tuple[str, str]]:
        text = sentence.encode() + b"\0"
        buffer = ctypes.create_string_buffer(text)
        start = ctypes.addressof(buffer)
        at, clauses = ctypes.c_void_p(start), []
        done = 0
        while at.value is not None:
            ipa = self._espeak.espeak_TextToPhonemes(ctypes.byref(at), _UTF8_PLAIN, mode) or b""
            end = len(text) - 1 if at.value is None else at.value - start
            clauses.append((ipa.decode(errors="replace"), text[done:end].decode(errors="replace")))
            done = end
        return clauses

    def close(self) -> None:
        """Forget all state by unloading the library itself."""
        self._espeak.espeak_Terminate()
        # The callback holds this object, and the collector hardly ever runs here: without this,
        # the sound of a hundred utterances would stay in memory.
        del self._callback, self._pcm
        handle = self._espeak._handle
        if sys.platform == "win32":
            _ctypes.FreeLibrary(handle)
        else:
            _ctypes.dlclose(handle)

    def _take(self, samples: int | None, n_samples: int, events: _Events) -> int:
        if samples and n_samples > 0:
            self._pcm += ctypes.string_at(samples, 2 * n_samples)
        if self._events is not None:
            self._take_events(events, self._events)
        return 0

    @staticmethod
    def _take_events(events: _Events, found: list[tuple[int, int | str]]) -> None:
        at = 0
        while (event := events[at]).type:
            if event.type == _WORD_EVENT:
                found.append((event.sample, event.text_position - 1))
            elif event.type == _PHONEME_EVENT:
                # Eight bytes at most, which may end within a character.
                found.append((event.sample, event.id.phoneme.decode(errors="ignore")))
            at += 1

    @staticmethod
    def _check(status: int, what: str) -> None:
        if status != 0:
            raise EspeakError(status, what)


def serve(library_path: str, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Send the version, then answer requests until input ends or the limit is reached."""
    Library(library_path).close()
    library = Library(library_path)
    # Where a library can't be unloaded, the second copy is the first one again: then every
    # utterance needs a worker of its own.
    limit = MAX_UTTERANCES if library.is_fresh else 1
    hello = {"version": library.version, "rate_hz": library.rate_hz}
    _answer(answers, json.dumps(hello).encode())
    for spoken in range(1, limit + 1):
        request = _next_request(requests)
        if request is None:
            return
        _serve_one(library, request, answers, is_last=spoken == limit)
        library.close()
        library = Library(library_path)


def _serve_one(
    library: Library, request: dict[str, Any], answers: IO[bytes], *, is_last: bool
) -> None:
    try:
        payload = library.read(request) if "sentences" in request else library.speak(request)
        code = 0
    except EspeakError as error:
        payload, code = str(error.args[1]).encode(), error.args[0]
    _answer(answers, payload, code=code, last=is_last)


def _next_request(requests: IO[bytes]) -> dict[str, Any] | None:
    head = requests.read(SIZE.size)
    if len(head) < SIZE.size:
        return None
    body = requests.read(*SIZE.unpack(head))
    request: dict[str, Any] = json.loads(body)
    return request


def _answer(
    answers: IO[bytes], payload: bytes | bytearray, *, code: int = 0, last: bool = False
) -> None:
    answers.write(FRAME.pack(code, len(payload), last))
    answers.write(payload)
    answers.flush()


def main(library_path: str, data_folder: str) -> None:
    """Serve on this process's standard streams."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the studio's to handle
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the library prints stays out of the answers
    try:
        os.chdir(data_folder)
        serve(library_path, sys.stdin.buffer, answers)
    except (OSError, EspeakError) as error:
        _answer(answers, str(error).encode(), code=1, last=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
