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
        self._readings: dict[str, SpeechStream] = {}

    def put(self, reading: SpeechStream) -> None:
        """Keep a render; the oldest finished one makes room."""
        with self._lock:
            self._readings[reading.job.job_id] = reading
            finished = [one for one in self._readings.values() if one.job.events.closed]
            gone = finished[: max(0, len(self._readings) - KEPT_DIALOGS)]
            for one in gone:
                del self._readings[one.job.job_id]
        for one in gone:
            one.close()

    def job(self, dialog_id: str) -> Job:
        """The job of a render, as `reading`."""
        return self.reading(dialog_id).job

    def reading(self, dialog_id: str) -> SpeechStream:
        """A render by its id.

        Raises:
            NotFound: It never was, was deleted, or made room.
        """
        with self._lock:
            reading = self._readings.get(dialog_id)
        if reading is None:
            raise NotFound("This dialog isn't there any more; render it again.")
        return reading

    def remove(self, dialog_id: str) -> None:
        """Stop and forget a render.

        Raises:
            NotFound: It isn't there.
        """
        with self._lock:
            reading = self._readings.pop(dialog_id, None)
        if reading is None:
            raise NotFound("This dialog isn't there any more.")
        reading.close()


class DialogStores:
    """One shelf for each studio, so that nobody finds what another one ordered."""

    def __init__(self) -> None:
        """Start with none."""
        self._shelves: WeakKeyDictionary[Studio, DialogStore] = WeakKeyDictionary()

    def of(self, studio: Studio) -> DialogStore:
        """The shelf of a studio."""
        return self._shelves.setdefault(studio, DialogStore())


async def _shelf_of(request: Request, studio: StudioDep) -> DialogStore:
    shelves = request.app.state.shelves
    assert isinstance(shelves, DialogStores)
    return shelves.of(studio)


DialogStoreDep = Annotated[DialogStore, Depends(_shelf_of)]
"""The type of a handler's `shelf`: the one of the visitor who asks."""


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
def begin(
    studio: StudioDep, shelf: DialogStoreDep, body: DialogBody
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
    reading = SpeechStream(studio, dialog, options)
    shelf.put(reading)
    if body.stream:
        return StreamingResponse(
            _progress(reading.job), status_code=201, media_type="text/event-stream"
        )
    return _card(reading.job)


@dialog_routes.get("/{dialog_id}")
def snapshot(shelf: DialogStoreDep, dialog_id: str) -> DialogCard:
    """A render as it stands."""
    return _card(shelf.job(dialog_id))


@dialog_routes.get("/{dialog_id}/events", response_class=StreamingResponse, responses=_EVENTS)
async def events(shelf: DialogStoreDep, dialog_id: str) -> StreamingResponse:
    """The steps of a render from its start, until its end."""
    job = shelf.job(dialog_id)
    return StreamingResponse(_progress(job), media_type="text/event-stream")


@dialog_routes.get("/{dialog_id}/audio", response_class=Response, responses=_AUDIO)
def audio(
    studio: StudioDep,
    shelf: DialogStoreDep,
    request: Request,
    dialog_id: str,
    audio_format: Annotated[StreamFormat, Query(alias="format")] = StreamFormat.WAV,
) -> Response:
    """The finished audio."""
    reading = shelf.reading(dialog_id)
    job = reading.job
    if job.state is JobState.RUNNING:
        raise Conflict("The dialog is still being rendered; follow its events to the end.")
    if audio_format in _FILES:
        left = unless_left(request)
        return make_file(
            studio,
            f"dialog.{audio_format.value}",
            lambda path: export_job(job, path, ExportOptions(reading.mastering), on_progress=left),
            media_type=audio_format.media_type,
            filename=f"dialog.{audio_format.value}",
        )
    blocks = read_mastered_blocks(job, reading.mastering)
    return StreamingResponse(
        encode_stream(blocks, audio_format), media_type=audio_format.media_type
    )


@dialog_routes.delete("/{dialog_id}")
def remove(shelf: DialogStoreDep, dialog_id: str) -> DialogDeleted:
    """Stop a render and forget it."""
    shelf.remove(dialog_id)
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
        model=job.order.backend_name,
        lines=len({record.segment.line_idx for record in job.records}),
        segments=len(job.records),
        finished=sum(record.final for record in job.records),
        audio_s=job.summary().audio_s,
        failed=[
            DialogFailure(segment=one.segment_idx, line=one.line_number, message=one.message)
            for one in job.failures()
        ],
        doubtful=[
            DialogDoubt(
                segment=one.segment_idx,
                line=one.line_number,
                kinds=[doubt.kind for doubt in one.doubts],
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
    checked = job.records[segment_idx].checked if event.state == SegmentState.SAVED else None
    return {
        "type": "dialog.segment",
        "segment": segment_idx,
        "status": event.state,
        "message": event.message,
        "doubtful": [doubt.message for doubt in checked.doubts] if checked else [],
    }


def _event(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"
