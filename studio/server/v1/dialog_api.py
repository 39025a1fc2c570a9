"""`/v1/dialogs`: a dialog with several voices, rendered as a job and kept for its client."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response, StreamingResponse

from studio.audio.encode import StreamFormat, encode_stream
from studio.audio.scene_file import ExportOptions
from studio.dialog.formats.importing import read_dialog_text
from studio.dialog.items import parse_items
from studio.dialog.model import Dialog
from studio.dialog.pronunciation import PronunciationRules, check_pronunciations
from studio.engine.job import Job, JobEvent, JobState, SegmentState
from studio.engine.job_results import export_job, find_segment_issues, read_mastered_blocks
from studio.errors import BadInput, Conflict, NotFound
from studio.server.deps import StudioDep
from studio.server.policies import DiskUse, RequestClass, speech_policy
from studio.server.routes.project_files import mastering_of
from studio.server.transfers import make_file, unless_left
from studio.server.v1.requested_voice import backend_for, named_voice
from studio.server.v1.speech_bodies import (
    DialogBody,
    DialogCard,
    DialogDeleted,
    DialogDoubt,
    DialogFailure,
)
from studio.services.speech_requests import SpeechOptions, SpeechStream
from studio.services.studio import Studio

KEPT_DIALOGS = 20
"""Finished renders kept for each studio; older ones make room."""


class DialogStore:
    """The dialogs that programs had rendered in one studio; any thread may ask."""

    def __init__(self) -> None:
        """Start empty."""
        # Guards the table, which requests in several threads read and change.
        self._lock = threading.Lock()
        self._streams: dict[str, SpeechStream] = {}

    def put(self, stream: SpeechStream) -> None:
        """Keep a render; the oldest finished one makes room."""
        with self._lock:
            self._streams[stream.job.job_id] = stream
            finished = [one for one in self._streams.values() if one.job.events.closed]
            gone = finished[: max(0, len(self._streams) - KEPT_DIALOGS)]
            for one in gone:
                del self._streams[one.job.job_id]
        for one in gone:
            one.close()

    def get_job(self, dialog_id: str) -> Job:
        """The job of a render, as `get`."""
        return self.get(dialog_id).job

    def get(self, dialog_id: str) -> SpeechStream:
        """A render by its id.

        Raises:
            NotFound: It never was, was deleted, or made room.
        """
        with self._lock:
            stream = self._streams.get(dialog_id)
        if stream is None:
            raise NotFound("This dialog isn't there any more; render it again.")
        return stream

    def remove(self, dialog_id: str) -> None:
        """Stop and forget a render.

        Raises:
            NotFound: It isn't there.
        """
        with self._lock:
            stream = self._streams.pop(dialog_id, None)
        if stream is None:
            raise NotFound("This dialog isn't there any more.")
        stream.close()


class DialogStores:
    """A store for each studio, so that no visitor finds the dialogs of another."""

    def __init__(self) -> None:
        """Start with none."""
        self._stores: WeakKeyDictionary[Studio, DialogStore] = WeakKeyDictionary()

    def of(self, studio: Studio) -> DialogStore:
        """The store of a studio."""
        return self._stores.setdefault(studio, DialogStore())


async def _current_store(request: Request, studio: StudioDep) -> DialogStore:
    stores = request.app.state.dialog_stores
    assert isinstance(stores, DialogStores)
    return stores.of(studio)


DialogStoreDep = Annotated[DialogStore, Depends(_current_store)]
"""The type of a handler's `store`: the one of the visitor who asks."""


dialog_routes = APIRouter(prefix="/dialogs")

_FILES = frozenset({StreamFormat.WAV, StreamFormat.FLAC, StreamFormat.MP3})
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The steps of the render as events.",
        "content": {"text/event-stream": {}},
    }
}
_AUDIO: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The whole dialog; lines that failed are left out.",
        "content": {
            audio_format.media_type: {"schema": {"type": "string", "format": "binary"}}
            for audio_format in StreamFormat
        },
    }
}


@dialog_routes.post(
    "",
    status_code=201,
    response_model=DialogCard,
    responses={201: {"content": {"text/event-stream": {}}}},
)
@speech_policy(disk=DiskUse.FILL)
def begin(
    studio: StudioDep, store: DialogStoreDep, body: DialogBody
) -> DialogCard | StreamingResponse:
    """Render a dialog; with `stream`, the answer is its progress."""
    dialog = _dialog(body)
    backend = backend_for(studio, body.model)
    voices = {name: named_voice(studio, backend, one) for name, one in body.voices.items()}
    entries = check_pronunciations(one.entry() for one in body.pronunciations)
    options = SpeechOptions(
        backend.name,
        body.seed,
        voices,
        pronounce=PronunciationRules(entries).spoken,
        mastering=mastering_of(body.loudness, even_voices=body.even_voices),
    )
    stream = SpeechStream(studio, dialog, options)
    store.put(stream)
    if body.stream:
        return StreamingResponse(
            _progress(stream.job), status_code=201, media_type="text/event-stream"
        )
    return _card(stream.job)


@dialog_routes.get("/{dialog_id}")
@speech_policy()
def snapshot(store: DialogStoreDep, dialog_id: str) -> DialogCard:
    """A render as it stands."""
    return _card(store.get_job(dialog_id))


@dialog_routes.get("/{dialog_id}/events", response_class=StreamingResponse, responses=_EVENTS)
@speech_policy()
async def events(store: DialogStoreDep, dialog_id: str) -> StreamingResponse:
    """The steps of a render from its start, until its end."""
    job = store.get_job(dialog_id)
    return StreamingResponse(_progress(job), media_type="text/event-stream")


@dialog_routes.get("/{dialog_id}/audio", response_class=Response, responses=_AUDIO)
@speech_policy(request_class=RequestClass.LONG)
def audio(
    studio: StudioDep,
    store: DialogStoreDep,
    request: Request,
    dialog_id: str,
    audio_format: Annotated[StreamFormat, Query(alias="format")] = StreamFormat.WAV,
) -> Response:
    """The finished audio."""
    stream = store.get(dialog_id)
    job = stream.job
    if job.state is JobState.RUNNING:
        raise Conflict("The dialog is still being rendered; follow its events to the end.")
    if audio_format in _FILES:
        left = unless_left(request)
        return make_file(
            studio,
            f"dialog.{audio_format.value}",
            lambda path: export_job(job, path, ExportOptions(stream.mastering), on_progress=left),
            media_type=audio_format.media_type,
            filename=f"dialog.{audio_format.value}",
        )
    blocks = read_mastered_blocks(job, stream.mastering)
    return StreamingResponse(
        encode_stream(blocks, audio_format), media_type=audio_format.media_type
    )


@dialog_routes.delete("/{dialog_id}")
@speech_policy(disk=DiskUse.FREE)
def remove(store: DialogStoreDep, dialog_id: str) -> DialogDeleted:
    """Stop a render and forget it."""
    store.remove(dialog_id)
    return DialogDeleted(id=dialog_id)


def _dialog(body: DialogBody) -> Dialog:
    if isinstance(body.input, str):
        return read_dialog_text(body.input).dialog
    try:
        written = json.dumps(body.input, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadInput("The items hold half of a character; send whole ones.") from error
    return parse_items(written.decode()).dialog


def _card(job: Job) -> DialogCard:
    return DialogCard(
        id=job.job_id,
        status=job.state.value,
        model=job.spec.backend_name,
        lines=len({record.segment.line_idx for record in job.records}),
        segments=len(job.records),
        finished=sum(record.is_final for record in job.records),
        audio_s=job.summarize().audio_s,
        failed=[
            DialogFailure(segment=one.segment_idx, line=one.line_number, message=one.message)
            for one in job.list_failures()
        ],
        doubtful=[
            DialogDoubt(
                segment=one.segment_idx,
                line=one.line_number,
                kinds=[doubt.kind for doubt in one.issues],
                message=one.message,
            )
            for one in find_segment_issues(job)
        ],
    )


async def _progress(job: Job) -> AsyncIterator[str]:
    """One event a step; the last one holds the render as it ended."""
    yield _event({"type": "dialog.created", "dialog": _card(job).model_dump()})
    async for event in job.events.afollow():
        if event.segment_idx is None:
            yield _event({"type": f"dialog.{event.state}", "dialog": _card(job).model_dump()})
        else:
            yield _event(_step(job, event, event.segment_idx))


def _step(job: Job, event: JobEvent, segment_idx: int) -> dict[str, Any]:
    """One step of a segment; what is doubtful about it comes with its sound."""
    checked = job.records[segment_idx].report if event.state == SegmentState.SAVED else None
    return {
        "type": "dialog.segment",
        "segment": segment_idx,
        "status": event.state,
        "message": event.message,
        "doubtful": [doubt.message for doubt in checked.issues] if checked else [],
    }


def _event(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"
