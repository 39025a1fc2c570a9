"""The application under `/v1`, in the shape of OpenAI's: speech, models and voices."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import numpy as np
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.audio.encode import StreamEncoder, Tempo
from studio.dialog.model import Dialog, Speech, paragraph
from studio.dialog.planning import SpeechSegment
from studio.dialog.pronunciation import IN_WORDS, build_spoken_words
from studio.engine.engine import Render
from studio.errors import StudioError, about
from studio.hearing.timing_files import TimedLine, place_in_scene
from studio.hearing.word_aligner import WordAligner
from studio.hearing.written_words import place_in_written
from studio.server.error_responses import DOCUMENTED, SPEECH_HANDLERS, speech_error_body
from studio.server.event_stream import encode_event
from studio.server.middleware.access_log import JOB_ID
from studio.server.policies import (
    SPEECH_BYTES,
    DiskUse,
    PerStudio,
    StudioDep,
    StudioOf,
    current_studio,
    speech_policy,
    spend_upload,
)
from studio.server.v1.catalog_api import catalog_routes
from studio.server.v1.dialog_api import AUDIO_CONTENT, DialogStore, dialog_routes
from studio.server.v1.speech_bodies import (
    References,
    SpeechBody,
    backend_for,
    language_for,
    voice_for,
)
from studio.server.v1.timing_bodies import describe_timings
from studio.services.speech_requests import SpeechOptions, SpeechStream
from studio.services.studio import Studio

log = logging.getLogger(__name__)

speech_routes = APIRouter()

_MOST_BYTES = 1_000_000  # sent at once: a whole FLAC comes at the end
_CLIENT_CLOSED = 499  # for the access log; the client has left

_AUDIO: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The audio, in chunks as it is made; with stream_format sse, events that "
        "carry it in base64.",
        "content": {**AUDIO_CONTENT, "text/event-stream": {}},
    }
}


@speech_routes.post("/audio/speech", response_class=StreamingResponse, responses=_AUDIO)
@speech_policy(max_body_bytes=SPEECH_BYTES, disk=DiskUse.FILL)
async def speech(studio: StudioDep, body: SpeechBody, request: Request) -> Response:
    """Speak a text. The response waits for the first sound, so that a failure has a status."""
    if body.ref_audio is None:
        reading = await asyncio.to_thread(begin_speech, studio, body)
    else:
        spend_upload(request)
        reading = await request.app.state.references.run(lambda: begin_speech(studio, body))
    has_sound = False
    try:
        spoken = SpokenAudio(reading, body, studio.aligner)
        has_sound = await spoken.wait_for_sound(request)
    finally:
        if not has_sound:
            _finish_later(reading.render, request.app)
    if not has_sound:
        return Response(status_code=_CLIENT_CLOSED)
    as_events = body.stream_format == "sse"
    media_type = "text/event-stream" if as_events else body.response_format.encoding.media_type
    headers = {"X-Sample-Rate": str(STUDIO_RATE_HZ), "Cache-Control": "no-store"}
    headers[JOB_ID] = reading.job.job_id
    chunks = spoken.events() if as_events else spoken.audio()
    return _Closing(reading.render, chunks, media_type=media_type, headers=headers)


def begin_speech(studio: Studio, body: SpeechBody) -> SpeechStream:
    """Submit a request's text to the engine."""
    with about("model"):
        backend = backend_for(studio, body.model)
    voice = voice_for(studio, backend, body)
    language = language_for(backend, body.language)
    params = body.check_params(backend)
    line = Speech(voice.speaker, paragraph(body.input), language, params=params, line_number=1)
    options = SpeechOptions(backend.name, body.seed, {voice.speaker: voice})
    return SpeechStream(studio, Dialog((line,)), options, needs_files=False)


class SpokenAudio:
    """The sound of a speech request as encoded bytes, at the requested speed."""

    def __init__(self, reading: SpeechStream, body: SpeechBody, aligner: WordAligner) -> None:
        self._body = body
        self._line = reading.dialog.lines[0]
        self._segments = [one.segment for one in reading.job.records]
        self._aligner = aligner
        self._spoken: list[Samples] = []
        self._chunks = reading.chunks()
        self._first: Samples | None = None
        self._tempo = Tempo(body.speed)
        self._encoder = StreamEncoder(body.response_format)
        self._input_chars = len(body.input)
        self._samples = 0

    async def wait_for_sound(self, request: Request) -> bool:
        """Wait for the first sound; False when the client disconnected before it."""
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
        """The encoded audio, chunk by chunk."""
        try:
            if self._first is not None:
                yield await self._encode(self._first)
            async for chunk in self._chunks:
                yield await self._encode(chunk)
            rest = await asyncio.to_thread(self._finish)
            for start in range(0, len(rest), _MOST_BYTES):
                yield rest[start : start + _MOST_BYTES]
        finally:
            self._encoder.close()

    async def events(self) -> AsyncIterator[bytes]:
        """The encoded audio as server-sent events; a failure on the way becomes an event."""
        try:
            async for data in self.audio():
                if data:
                    audio = base64.b64encode(data).decode()
                    yield encode_event({"type": "speech.audio.delta", "audio": audio})
        except StudioError as error:
            yield encode_event({"type": "error"} | speech_error_body(error))
        else:
            stamps = await asyncio.to_thread(self._find_stamps)
            yield encode_event({"type": "speech.audio.done", "usage": self._usage()} | stamps)

    async def _encode(self, chunk: Samples) -> bytes:
        self._samples += len(chunk)
        if self._body.timestamp_granularities:
            self._spoken.append(chunk)
        return await asyncio.to_thread(lambda: self._encoder.push(self._tempo.push(chunk)))

    def _finish(self) -> bytes:
        return self._encoder.push(self._tempo.finish()) + self._encoder.finish()

    def _find_stamps(self) -> dict[str, Any]:
        """When words and sentences are said, if that is wanted and can be found."""
        wanted = self._body.timestamp_granularities
        if not wanted or not self._spoken:
            return {}
        clip, line = Clip(np.concatenate(self._spoken)), self._line
        assert isinstance(line, Speech)
        try:
            spoken = [one for one in self._segments if isinstance(one, SpeechSegment)]
            text, said_in = " ".join(one.text for one in spoken), spoken[0].said_in
            found = self._aligner.align(clip, text, line.language)
        except StudioError as error:
            log.warning("the words of a speech request aren't timed: %s", error)
            return {}
        pace = self._body.speed
        timed = TimedLine(1, line.speaker, line.text, 0.0, clip.duration_s / pace)
        said = build_spoken_words(line.text, IN_WORDS, said_in)
        found = replace(found, words=place_in_written(found.words, said, line.text))
        timed = place_in_scene(timed, found.moved(0.0, pace=pace))
        stamps = describe_timings([timed], timed.end_s, wanted)
        return stamps.model_dump(include={"words", "segments", "duration"}, exclude_none=True)

    def _usage(self) -> dict[str, Any]:
        """Characters and tenths of a second stand in for tokens: not every backend has those."""
        output_tokens = round(10 * self._samples / STUDIO_RATE_HZ)
        total = self._input_chars + output_tokens
        return {
            "input_tokens": self._input_chars,
            "output_tokens": output_tokens,
            "total_tokens": total,
        }


class _Closing(StreamingResponse):
    """Ends its render however the connection ends, even when nothing was sent."""

    def __init__(self, render: Render, chunks: Any, **options: Any) -> None:
        super().__init__(chunks, **options)
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # Not awaited: this task may be cancelled already.
            _finish_later(self._render, scope["app"])


def _finish_later(render: Render, app: FastAPI) -> None:
    loop = asyncio.get_running_loop()
    if render.is_over:
        loop.run_in_executor(None, render.close)
        return
    task = loop.create_task(render.aclose())
    # The loop itself holds tasks only weakly.
    app.state.finishing.add(task)
    task.add_done_callback(app.state.finishing.discard)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def speech_api(studio_of: StudioOf, *, guard: Callable[..., Any]) -> FastAPI:
    """Build the application under `/v1`; the guard refuses a request that lacks the key."""
    api = FastAPI(
        title="Tableread speech API",
        version="1",
        docs_url=None,
        openapi_url=None,
        redoc_url=None,
        dependencies=[Depends(guard), Depends(current_studio(studio_of))],
        responses=DOCUMENTED,
        exception_handlers=SPEECH_HANDLERS,
    )
    # Each studio has its own, so that no visitor finds the dialogs of another.
    api.state.dialog_stores = PerStudio(lambda _studio: DialogStore())
    api.state.finishing = set()
    api.state.references = References()
    api.include_router(catalog_routes)
    api.include_router(speech_routes)
    api.include_router(dialog_routes)
    api.openapi = lambda: _document(api)  # type: ignore[method-assign]
    api.add_route("/openapi.json", _describe, include_in_schema=False)
    return api


@speech_policy()
async def _describe(request: Request) -> JSONResponse:
    """The OpenAPI document; it says nothing about this studio's models and voices."""
    server = {"url": f"{request.base_url.path}v1"}
    return JSONResponse(request.app.openapi() | {"servers": [server]})


def _document(api: FastAPI) -> dict[str, Any]:
    """The OpenAPI document with the key that a client sends."""
    if api.openapi_schema is None:
        document = get_openapi(title=api.title, version=api.version, routes=api.routes)
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"key": []}]
        api.openapi_schema = document
    return api.openapi_schema
