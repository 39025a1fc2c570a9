"""A line as a speech server is asked for it, and the address at which it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from studio.backends.base import Param
from studio.backends.qwen3.checkpoint import estimate_frame_bound
from studio.backends.remote.discovery import (
    RemoteVoice,
    ServerCapabilities,
    SpeechTask,
    VoiceSource,
)

PARAMS = (
    Param("speed", "Speed", 0.25, 4.0, 1.0, 0.05, "How fast the line is spoken; 2 is twice."),
)
MAX_CHARS = 400
"""Characters of one segment; Qwen3-TTS speaks these well, and they are easily shared out."""

_NAMED_TASKS = {VoiceSource.CLONE: SpeechTask.BASE, VoiceSource.DESIGN: SpeechTask.VOICE_DESIGN}


@dataclass(frozen=True, slots=True)
class RemoteLine:
    """One segment for whichever server is free.

    Attributes:
        seed: Always set, so that a second try can sound like the first.
        language: A code; None for the server's own choice.
    """

    text: str
    voice: RemoteVoice = field(repr=False)
    seed: int
    language: str | None = None
    speed: float = 1.0


def speech_body(line: RemoteLine, can: ServerCapabilities) -> dict[str, Any]:
    """The JSON body of `POST /v1/audio/speech`.

    Streams wherever the server can, and lets it say its sample rate in a WAV header unless that
    is sure: raw samples carry no rate.

    Source: OpenAI's API reference, audio/createSpeech, and vLLM-Omni, docs/serving/speech_api.md.
    """
    wishes: dict[str, Any] = {
        "seed": line.seed,
        "language": _language(line.language, can),
        "speed": line.speed if line.speed != 1 else None,
        "max_new_tokens": estimate_frame_bound(line.text) if can.task else None,
        "instructions": line.voice.description if can.takes_instructions or can.designs else None,
    }
    wishes |= _voice(line.voice, can) | _format(line, can)
    known = {name: value for name, value in wishes.items() if name in can.fields}
    body = {"model": can.model, "input": line.text} | known
    return {name: value for name, value in body.items() if value is not None}


def _language(code: str | None, can: ServerCapabilities) -> str | None:
    """Another studio takes the code itself; vLLM-Omni wants the name."""
    return code if can.traits is not None else can.languages.get(code or "", code)


def _voice(voice: RemoteVoice, can: ServerCapabilities) -> dict[str, Any]:
    means = can.means(voice)
    assert means is not None, "a server got a line whose voice it refuses"
    named: dict[str, Any] = {"voice": can.voice_name(voice)}
    if can.task is not None:
        named["task_type"] = _NAMED_TASKS.get(means, can.task)
    elif means is VoiceSource.DESIGN:
        named["task_type"] = SpeechTask.VOICE_DESIGN
    if means is VoiceSource.CLONE:
        named |= {
            "ref_audio": voice.ref_audio,
            "ref_text": voice.ref_text,
            # Without a transcript only the timbre can be taken from the sample.
            "x_vector_only_mode": True if voice.ref_text is None else None,
        }
    return named


def _format(line: RemoteLine, can: ServerCapabilities) -> dict[str, Any]:
    # vLLM-Omni changes the speed of finished audio only.
    if line.speed != 1 or "stream_format" not in can.fields:
        return {"response_format": "wav"}
    sure = can.task is not None  # Qwen3-TTS makes the studio's own rate
    return {"stream": True, "stream_format": "audio", "response_format": "pcm" if sure else "wav"}


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL.

    Attributes:
        url: Ends in the API's version, as in "http://127.0.0.1:8091/v1"; holds no credentials.
        credentials: Name and password that stood in the URL.
    """

    url: str
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    @classmethod
    def read(cls, text: str) -> Address:
        """Read a base URL as a person writes it: with or without `/v1`, slash or password."""
        parts = urlsplit(text)
        place = parts.netloc.rpartition("@")[2]
        path = parts.path.rstrip("/") or "/v1"
        credentials = (unquote(parts.username or ""), unquote(parts.password or ""))
        return cls(
            urlunsplit((parts.scheme, place, path, "", "")),
            credentials if "@" in parts.netloc else None,
        )

    @property
    def display_name(self) -> str:
        return urlsplit(self.url).netloc

    def at(self, path: str) -> str:
        """The URL of a path below the version, such as "audio/speech"."""
        return f"{self.url}/{path}"

    def documents(self) -> tuple[str, ...]:
        """URLs of the API's description: next to the version, and below it."""
        return f"{self.url.rpartition('/')[0]}/openapi.json", self.at("openapi.json")
