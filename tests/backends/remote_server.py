"""A speech server for the tests, in a process of its own, with faults on demand.

It speaks with the draft voice, so the same request has the same sound on every server. Started as
`python remote_server.py PORT KIND`, where KIND is one of:

    base, custom, design   vLLM-Omni with that kind of Qwen3-TTS checkpoint: the fields, checks
                           and messages that it publishes (docs/serving/speech_api.md, 0.30)
    plain                  OpenAI's API and no more: no list of voices, no document

`POST /faults` puts faults on the next speech requests, one each; `GET /seen` tells of all.
"""

from __future__ import annotations

import asyncio
import base64
import io
import os
import struct
import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import numpy as np
import soundfile
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from studio.audio.clip import to_pcm16
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.voices.speaker import Voice

RATE_HZ = 24_000
TASKS = {"base": "Base", "custom": "CustomVoice", "design": "VoiceDesign"}
VOICES = {"base": [], "custom": ["vivian", "ryan", "uncle_fu"], "design": []}
LANGUAGES = {
    "Auto",
    "Chinese",
    "English",
    "Japanese",
    "Korean",
    "German",
    "French",
    "Russian",
    "Portuguese",
    "Spanish",
    "Italian",
}
INT64 = 2**63


class OmniRequest(BaseModel):
    """Every field that vLLM-Omni publishes, with its range; anything else is refused."""

    model_config = ConfigDict(extra="forbid")

    input: str
    model: str | None = None
    voice: str | None = None
    instructions: str | None = None
    response_format: Literal["wav", "pcm", "flac", "mp3", "opus"] = "wav"
    sample_rate: Annotated[int, Field(gt=0)] | None = None
    speed: Annotated[float, Field(ge=0.25, le=4)] | None = 1.0
    stream_format: Literal["sse", "audio"] | None = None
    stream: bool = False
    task_type: Literal["CustomVoice", "VoiceDesign", "Base"] | None = None
    language: str | None = None
    ref_audio: str | list[str] | None = None
    ref_text: str | None = None
    x_vector_only_mode: bool | None = None
    ref_audio_2: str | None = None
    ambient_sound: str | None = None
    duration_seconds: Annotated[float, Field(ge=0)] | None = None
    speaker_embedding: list[float] | None = None
    max_new_tokens: Annotated[int, Field(ge=1, le=4096)] | None = None
    seed: Annotated[int, Field(ge=-INT64, lt=INT64)] | None = None
    initial_codec_chunk_frames: Annotated[int, Field(ge=0)] | None = None
    non_streaming_mode: bool | None = None
    extra_params: dict[str, Any] | None = None
    word_timestamps: bool = False

    @property
    def streams(self) -> bool:
        return self.stream or self.stream_format is not None


class PlainRequest(BaseModel):
    """What OpenAI's own API takes."""

    model_config = ConfigDict(extra="forbid")

    model: str
    input: Annotated[str, Field(max_length=4096)]
    voice: str
    instructions: str | None = None
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = "mp3"
    speed: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    stream_format: Literal["sse", "audio"] | None = None

    streams: bool = Field(default=False, exclude=True, init=False)


class Fault(BaseModel):
    """Something to go wrong with one request.

    `status` answers it at once; `cut` is the share of the audio after which `then` happens.
    """

    status: int | None = None
    headers: dict[str, str] = {}
    body: str = ""
    content_type: str = "application/json"
    cut: float | None = None
    then: Literal["end", "break", "hold"] = "end"
    odd_bytes: int = 0
    hold_first: bool = False
    takes_s: float = 0.0
    rate_hz: int = RATE_HZ
    other_sound: bool = False


class State:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.faults: list[Fault] = []
        self.seen: list[dict[str, Any]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.key: str | None = None
        self.gate = asyncio.Event()
        self.down = False
        self.voice = DraftBackend(workers=1)
        self.voice.load(lambda _: None)

    @property
    def model(self) -> str:
        return "tts-1" if self.kind == "plain" else f"Qwen/Qwen3-TTS-12Hz-1.7B-{TASKS[self.kind]}"


def build(kind: str) -> FastAPI:
    plain = kind == "plain"
    app = FastAPI(openapi_url=None if plain else "/openapi.json")
    state = State(kind)
    _add_control(app, state)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return problem(400, str(error.errors()))

    @app.get("/v1/models")
    async def models(request: Request) -> Any:
        if state.down:
            return problem(503, "The model is loading.")
        if not allowed(state, request):
            return problem(401, f"Incorrect API key provided: {request.headers['authorization']}.")
        return {"object": "list", "data": [{"id": state.model, "object": "model"}]}

    if not plain:

        @app.get("/v1/audio/voices")
        async def voices() -> Any:
            return {"voices": VOICES[kind], "uploaded_voices": []}

    body_type = PlainRequest if plain else OmniRequest

    async def speech(body: body_type, request: Request) -> Response:  # type: ignore[valid-type]
        if not allowed(state, request):
            return problem(401, "Incorrect API key provided.")
        state.seen.append(body.model_dump(exclude_none=True, exclude_unset=True))
        wrong = None if plain else omni_refusal(kind, body)
        if wrong:
            return problem(400, wrong)
        return await answer(state, body)

    speech.__annotations__["body"] = body_type
    app.post("/v1/audio/speech")(speech)
    return app


def _add_control(app: FastAPI, state: State) -> None:
    @app.post("/faults")
    async def faults(faults: list[Fault]) -> None:
        state.faults = faults

    @app.post("/key")
    async def key(key: str | None = None) -> None:
        state.key = key

    @app.post("/down")
    async def down(down: bool) -> None:
        state.down = down

    @app.post("/release")
    async def release() -> None:
        state.gate.set()

    @app.post("/reset")
    async def reset() -> None:
        state.faults, state.seen, state.most_in_flight = [], [], 0
        state.key, state.down = None, False
        state.gate.set()
        state.gate = asyncio.Event()

    @app.get("/seen")
    async def seen() -> Any:
        return {
            "requests": state.seen,
            "in_flight": state.in_flight,
            "most_in_flight": state.most_in_flight,
        }


def allowed(state: State, request: Request) -> bool:
    return state.key is None or request.headers.get("authorization") == f"Bearer {state.key}"


def problem(status: int, message: str) -> JSONResponse:
    error = {"message": message, "type": "BadRequestError", "param": None, "code": status}
    return JSONResponse({"error": error}, status)


def omni_refusal(kind: str, body: OmniRequest) -> str | None:
    """The checks of vLLM-Omni's Qwen3-TTS adapter, in its order."""
    task = body.task_type
    if task is None:
        task = "Base" if body.ref_audio or body.ref_text else "CustomVoice"
    if task != TASKS[kind]:
        return f"Qwen3-TTS {TASKS[kind]} checkpoint does not support task_type='{task}'."
    if body.sample_rate is not None:
        return "sample_rate is not supported by the current TTS model"
    if not body.input.strip():
        return "Input text cannot be empty"
    if body.language is not None and body.language.title() not in LANGUAGES:
        return f"Invalid language '{body.language}'."
    if body.streams and (body.response_format not in ("pcm", "wav") or body.speed not in (1, None)):
        return "Streaming requires response_format='pcm' or 'wav' and speed 1.0."
    if len(body.instructions or "") > 500:
        return "Instructions too long (max 500 characters)"
    return {"base": _base, "custom": _custom, "design": _design}[kind](body)


def _base(body: OmniRequest) -> str | None:
    if not isinstance(body.ref_audio, str):
        return "Base task requires 'ref_audio' or 'speaker_embedding' for voice cloning"
    head, _, data = body.ref_audio.partition(";base64,")
    if not head.startswith("data:audio/"):
        return "ref_audio must be a URL (http/https), base64 data URL (data:...), or file URI"
    sample = soundfile.info(io.BytesIO(base64.b64decode(data, validate=True)))
    if not 1 <= sample.duration <= 30:
        return f"Reference audio lasts {sample.duration} s; 1 to 30 s are needed"
    if not body.x_vector_only_mode and not (body.ref_text or "").strip():
        return "Base task requires non-empty 'ref_text' unless 'x_vector_only_mode' is enabled"
    return None


def _custom(body: OmniRequest) -> str | None:
    if body.voice is not None and body.voice.lower() not in VOICES["custom"]:
        return f"Invalid voice '{body.voice}'."
    if body.ref_text is not None or body.x_vector_only_mode is not None:
        return "'ref_text' is only valid for Base task"
    return None


def _design(body: OmniRequest) -> str | None:
    return None if body.instructions else "VoiceDesign task requires 'instructions'"


async def answer(state: State, body: Any) -> Response:
    fault = state.faults.pop(0) if state.faults else Fault()
    if fault.status is not None:
        return Response(fault.body, fault.status, fault.headers, fault.content_type)
    pcm = await asyncio.to_thread(spoken, state, body, fault.other_sound)
    if fault.rate_hz != RATE_HZ:
        pcm = pcm[:: RATE_HZ // fault.rate_hz]
    data = pcm.tobytes()
    if body.response_format == "wav":
        told = 0xFFFF_FFFF if body.streams else len(data)
        data = wav_header(fault.rate_hz, told) + data
    return StreamingResponse(pieces(state, data, fault), media_type=f"audio/{body.response_format}")


def spoken(state: State, body: Any, other: bool) -> np.ndarray:
    name = "someone else entirely" if other else body.voice or (body.ref_text or "") or "sample"
    voice = state.voice.condition(Voice(name))
    request = SpeechRequest(body.input, voice, "en", params={"speed": min(2, max(0.5, body.speed))})
    return to_pcm16(np.concatenate(list(state.voice.speak(request))))


def wav_header(rate_hz: int, data_bytes: int) -> bytes:
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate_hz, 2 * rate_hz, 2, 16)
    head = struct.pack("<4sI4s", b"RIFF", 0xFFFF_FFFF, b"WAVE")
    return head + form + struct.pack("<4sI", b"data", data_bytes)


async def pieces(state: State, data: bytes, fault: Fault) -> AsyncIterator[bytes]:
    state.in_flight += 1
    state.most_in_flight = max(state.most_in_flight, state.in_flight)
    try:
        if fault.hold_first:
            await state.gate.wait()
        await asyncio.sleep(fault.takes_s)
        end = (
            len(data)
            if fault.cut is None
            else int(len(data) // 2 * fault.cut) * 2 + fault.odd_bytes
        )
        for start in range(0, end, 9_999):  # odd, so that samples are cut in two
            yield data[start : min(end, start + 9_999)]
        if fault.cut is not None and fault.then == "hold":
            await state.gate.wait()
        if fault.cut is not None and fault.then == "break":
            raise ConnectionAbortedError("as the test asked for")
    finally:
        state.in_flight -= 1


if __name__ == "__main__":
    uvicorn.run(build(sys.argv[2]), port=int(sys.argv[1]), log_level="critical")
    os._exit(0)
