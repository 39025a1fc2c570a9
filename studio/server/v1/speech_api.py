"""The speech API as an application of its own: `/v1/audio/speech`, models and voices."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.audio.encode import StreamEncoder, StreamFormat
from studio.audio.tempo import Tempo
from studio.backends.registry import offer_of
from studio.dialog.line_text import paragraph
from studio.dialog.model import Dialog, Speech
from studio.errors import StudioError
from studio.server.deps import StudioDep, StudioOf, current_studio, spend_upload
from studio.server.error_responses import (
    DOCUMENTED,
    answer_speech_error,
    answer_speech_fault,
    answer_speech_http_error,
    answer_speech_invalid,
    speech_error_body,
)
from studio.server.policies import SPEECH_BYTES, DiskUse, speech_policy
from studio.server.v1.dialog_api import DialogStores, dialog_routes
from studio.server.v1.requested_voice import (
    References,
    backend_for,
    language_for,
    model_card,
    voice_cards,
    voice_for,
)
from studio.server.v1.speech_bodies import ModelList, SpeechBody, VoiceList
from studio.services.speech_requests import SpeechOptions, SpeechStream
from studio.services.studio import Studio

speech_routes = APIRouter()

_CLIENT_CLOSED = 499  # nobody reads it; it stands in the access log

_AUDIO: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The audio, in chunks as it is made; with stream_format sse, events that "
        "carry it in base64.",
        "content": {
            **{
                audio_format.media_type: {"schema": {"type": "string", "format": "binary"}}
                for audio_format in StreamFormat
            },
            "text/event-stream": {},
        },
    }
}


@speech_routes.get("/models")
@speech_policy()
def models(studio: StudioDep) -> ModelList:
    """The backends that can speak now, without a download."""
    ready = [backend for backend in studio.backends().values() if offer_of(backend).ready]
    return ModelList(data=[model_card(backend) for backend in ready])


@speech_routes.get("/audio/voices")
@speech_policy()
def voices(studio: StudioDep, model: str | None = None) -> VoiceList:
    """The library's speakers, and the presets of a backend."""
    cards = voice_cards(studio, backend_for(studio, model))
    return VoiceList(voices=[card.id for card in cards], data=cards)


@speech_routes.post("/audio/speech", response_class=StreamingResponse, responses=_AUDIO)
@speech_policy(max_body_bytes=SPEECH_BYTES, disk=DiskUse.FILL)
async def speech(studio: StudioDep, body: SpeechBody, request: Request) -> Response:
    """Speak a text. The answer begins with the first sound, so that what fails has a status."""
    if body.ref_audio is None:
        reading = await asyncio.to_thread(begin_speech, studio, body)
    else:
        spend_upload(request)
        reading = await request.app.state.references.run(lambda: begin_speech(studio, body))
    try:
        spoken = SpokenAudio(reading, body)
        waited = await spoken.wait_for_sound(request)
    except BaseException:
        _finish_later(reading, request.app)
        raise
    if not waited:
        _finish_later(reading, request.app)
        return Response(status_code=_CLIENT_CLOSED)
    as_events = body.stream_format == "sse"
    media_type = "text/event-stream" if as_events else body.response_format.media_type
    headers = {"X-Sample-Rate": str(STUDIO_RATE_HZ), "Cache-Control": "no-store"}
    chunks = spoken.events() if as_events else spoken.audio()
    return _Closing(reading, chunks, media_type=media_type, headers=headers)


def begin_speech(studio: Studio, body: SpeechBody) -> SpeechStream:
    """Let a request's text wait for its turn."""
    backend = backend_for(studio, body.model)
    voice = voice_for(studio, backend, body)
    language = language_for(backend, body.language)
    line = Speech(voice.speaker, paragraph(body.input), language, line_number=1)
    options = SpeechOptions(backend.name, body.seed, {voice.speaker: voice})
    return SpeechStream(studio, Dialog((line,)), options)


class SpokenAudio:
    """A reading as encoded bytes, at the speed that was asked for."""

    def __init__(self, reading: SpeechStream, body: SpeechBody) -> None:
        """Prepare; nothing is read yet."""
        self._chunks = reading.chunks()
        self._first: Samples | None = None
        self._tempo = Tempo(body.speed)
        self._encoder = StreamEncoder(body.response_format)
        self._input_chars = len(body.input)
        self._samples = 0

    async def wait_for_sound(self, request: Request) -> bool:
        """Wait until there is something to hear; False when the caller left before.

        Raises:
            SpeechFailed: There will be nothing.
        """
        first = asyncio.ensure_future(anext(self._chunks, None))
        gone = asyncio.ensure_future(_wait_for_disconnect(request))
        try:
            await asyncio.wait([first, gone], return_when=asyncio.FIRST_COMPLETED)
            if first.done():
                self._first = first.result()
            return first.done()
        finally:
            first.cancel()
            gone.cancel()

    async def audio(self) -> AsyncIterator[bytes]:
        """Encoded bytes, as soon as there are any."""
        try:
            if self._first is not None:
                yield await self._encode(self._first)
            async for chunk in self._chunks:
                yield await self._encode(chunk)
            yield await asyncio.to_thread(self._finish)
        finally:
            self._encoder.close()

    async def events(self) -> AsyncIterator[str]:
        """The same as events; a failure on the way is one too."""
        try:
            async for data in self.audio():
                if data:
                    audio = base64.b64encode(data).decode()
                    yield _event({"type": "speech.audio.delta", "audio": audio})
        except StudioError as error:
            yield _event({"type": "error"} | speech_error_body(error))
        else:
            yield _event({"type": "speech.audio.done", "usage": self._usage()})

    async def _encode(self, chunk: Samples) -> bytes:
        self._samples += len(chunk)
        return await asyncio.to_thread(lambda: self._encoder.push(self._tempo.push(chunk)))

    def _finish(self) -> bytes:
        return self._encoder.push(self._tempo.finish()) + self._encoder.finish()

    def _usage(self) -> dict[str, Any]:
        """Characters and tenths of seconds stand in for tokens, which not every backend has."""
        output_tokens = round(10 * self._samples / STUDIO_RATE_HZ)
        total = self._input_chars + output_tokens
        return {
            "input_tokens": self._input_chars,
            "output_tokens": output_tokens,
            "total_tokens": total,
        }


class _Closing(StreamingResponse):
    """Ends its reading whatever becomes of the connection, also when nothing was sent."""

    def __init__(self, reading: SpeechStream, chunks: Any, **options: Any) -> None:
        super().__init__(chunks, **options)
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # Not awaited: who is cancelled here may not wait.
            _finish_later(self._reading, scope["app"])


def _finish_later(reading: SpeechStream, app: FastAPI) -> None:
    loop = asyncio.get_running_loop()
    if reading.is_over:
        loop.run_in_executor(None, reading.close)
        return
    task = loop.create_task(reading.aclose())
    # The loop itself holds tasks only weakly.
    app.state.finishing.add(task)
    task.add_done_callback(app.state.finishing.discard)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _event(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def speech_api(studio_of: StudioOf, *, guard: Callable[..., Any]) -> FastAPI:
    """What is served under `/v1`.

    Args:
        studio_of: Whose studio a request works with.
        guard: Refuses who has no key, where one is needed.
    """
    api = FastAPI(
        title="Tableread speech API",
        version="1",
        docs_url=None,
        openapi_url=None,
        redoc_url=None,
        dependencies=[Depends(guard), Depends(current_studio(studio_of))],
        responses=DOCUMENTED,
        exception_handlers={
            StudioError: answer_speech_error,
            HTTPException: answer_speech_http_error,
            RequestValidationError: answer_speech_invalid,
            Exception: answer_speech_fault,
        },
    )
    api.state.dialog_stores = DialogStores()
    api.state.finishing = set()
    api.state.references = References()
    api.include_router(speech_routes)
    api.include_router(dialog_routes)
    api.openapi = lambda: _document(api)  # type: ignore[method-assign]
    api.add_route("/openapi.json", _describe, include_in_schema=False)
    return api


@speech_policy()
async def _describe(request: Request) -> JSONResponse:
    """The OpenAPI document; for anybody, since it says nothing of what is here."""
    return JSONResponse(request.app.openapi())


def _document(api: FastAPI) -> dict[str, Any]:
    """The document as served."""
    if api.openapi_schema is None:
        document = get_openapi(title=api.title, version=api.version, routes=api.routes)
        document["servers"] = [{"url": "/v1"}]
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"key": []}]
        api.openapi_schema = document
    return api.openapi_schema
