"""`/v1/dialogs`: a dialog with several voices, rendered as a job."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from studio.api.desk import Desk
from studio.api.exports import file_made, unless_left
from studio.api.sound import mastering_of
from studio.api.v1.bodies import DialogBody, DialogCard, DialogDeleted, DialogDoubt, DialogFailure
from studio.api.v1.shelf import ShelfDesk
from studio.api.v1.voices import backend_for, named_voice
from studio.audio.scene_file import SoundChoice
from studio.audio.stream import StreamFormat, encode_stream
from studio.dialog.items import parse_items
from studio.dialog.model import Dialog
from studio.dialog.pronouncing import Pronouncing, checked_pronunciations
from studio.dialog.read import read_dialog_text
from studio.engine.doubtful import doubtful
from studio.engine.job import Job, JobState
from studio.engine.record import Event, SegmentState
from studio.engine.scene import export_job, mastered_blocks
from studio.errors import BadInput, Conflict
from studio.speech import Reading, ReadingOptions

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
def begin(studio: Desk, shelf: ShelfDesk, body: DialogBody) -> DialogCard | StreamingResponse:
    """Render a dialog; with `stream`, the answer is its progress."""
    dialog = _dialog(body)
    backend = backend_for(studio, body.model)
    voices = {name: named_voice(studio, backend, one) for name, one in body.voices.items()}
    entries = checked_pronunciations(one.entry() for one in body.pronunciations)
    options = ReadingOptions(
        backend.name,
        body.seed,
        voices,
        pronounce=Pronouncing(entries).spoken,
        mastering=mastering_of(body.loudness, even_voices=body.even_voices),
    )
    reading = Reading(studio, dialog, options)
    shelf.put(reading)
    if body.stream:
        return StreamingResponse(
            _progress(reading.job), status_code=201, media_type="text/event-stream"
        )
    return _card(reading.job)


@dialog_routes.get("/{dialog_id}")
def snapshot(shelf: ShelfDesk, dialog_id: str) -> DialogCard:
    """A render as it stands."""
    return _card(shelf.job(dialog_id))


@dialog_routes.get("/{dialog_id}/events", response_class=StreamingResponse, responses=_EVENTS)
async def events(shelf: ShelfDesk, dialog_id: str) -> StreamingResponse:
    """The steps of a render from its start, until its end."""
    job = shelf.job(dialog_id)
    return StreamingResponse(_progress(job), media_type="text/event-stream")


@dialog_routes.get("/{dialog_id}/audio", response_class=Response, responses=_AUDIO)
def audio(
    studio: Desk,
    shelf: ShelfDesk,
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
        return file_made(
            studio,
            f"dialog.{audio_format.value}",
            lambda path: export_job(job, path, SoundChoice(reading.mastering), on_progress=left),
            media_type=audio_format.media_type,
            filename=f"dialog.{audio_format.value}",
        )
    blocks = mastered_blocks(job, reading.mastering)
    return StreamingResponse(
        encode_stream(blocks, audio_format), media_type=audio_format.media_type
    )


@dialog_routes.delete("/{dialog_id}")
def remove(shelf: ShelfDesk, dialog_id: str) -> DialogDeleted:
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
            for one in doubtful(job)
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


def _step(job: Job, event: Event, segment_idx: int) -> dict[str, Any]:
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
