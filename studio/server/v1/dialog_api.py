"""`/v1/dialogs`: renders a dialog with several voices as a job, and keeps the result."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Container, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, Response, StreamingResponse

from studio.audio.encode import encode_stream
from studio.audio.file_tags import Cover
from studio.audio.formats import AudioFormat
from studio.backends.base import Backend
from studio.dialog.formats.dialog_file import ImportOptions, read_dialog_text
from studio.dialog.items import parse_items
from studio.dialog.model import (
    Dialog,
    Notice,
    ParamValue,
    Speech,
    check_speaker_count,
    clean_name,
    name_key,
)
from studio.dialog.pronunciation import PronunciationRules, check_pronunciations
from studio.engine.job import (
    Job,
    JobEvent,
    JobState,
    SegmentState,
    build_scene,
    find_segment_issues,
)
from studio.errors import BadInput, Conflict, NotFound, about
from studio.hearing.timing_files import TimingFormat, write_scene_captions, write_timing
from studio.project.characters import PLAIN, Character, change_character
from studio.server.event_stream import encode_event
from studio.server.middleware.access_log import JOB_ID
from studio.server.policies import DiskUse, PerStudio, RequestClass, StudioDep, speech_policy
from studio.server.transfers import StoredFile, attachment, make_file, mastering_of, unless_left
from studio.server.v1.sound_query import SoundQuery
from studio.server.v1.speech_bodies import (
    DialogBody,
    DialogCard,
    DialogDeleted,
    DialogDoubt,
    DialogFailure,
    DialogNotice,
    DialogTimestamps,
    DialogTry,
    backend_for,
    named_voice,
)
from studio.server.v1.timing_bodies import DialogTimings, Granularity, describe_timings
from studio.services.line_checks import check_settings
from studio.services.render_timings import time_render
from studio.services.speech_requests import SpeechOptions, SpeechStream

KEPT_DIALOGS = 20
"""How many renders each studio keeps; a new one evicts the oldest that is finished."""


class DialogStore:
    """The renders of `/v1/dialogs` in one studio; safe from any thread."""

    def __init__(self) -> None:
        # Guards the table, which requests in several threads read and change.
        self._lock = threading.Lock()
        self._streams: dict[str, SpeechStream] = {}

    def put(self, stream: SpeechStream) -> None:
        """Keep a render; evict the oldest finished ones beyond `KEPT_DIALOGS`."""
        with self._lock:
            self._streams[stream.job.job_id] = stream
            finished = [one for one in self._streams.values() if one.job.events.closed]
            gone = finished[: max(0, len(self._streams) - KEPT_DIALOGS)]
            for one in gone:
                del self._streams[one.job.job_id]
        for one in gone:
            one.render.close()

    def get(self, dialog_id: str) -> SpeechStream:
        """A render by its id.

        Raises:
            NotFound: It never existed, or was deleted or evicted.
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
        stream.render.close()


async def _current_store(request: Request, studio: StudioDep) -> DialogStore:
    stores: PerStudio[DialogStore] = request.app.state.dialog_stores
    return stores.get(studio)


DialogStoreDep = Annotated[DialogStore, Depends(_current_store)]
"""Type of a handler's `store`: that of the request's studio."""


dialog_routes = APIRouter(prefix="/dialogs")

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The steps of the render as events.",
        "content": {"text/event-stream": {}},
    }
}
AUDIO_CONTENT: dict[str, dict[str, Any]] = {
    one.encoding.media_type: {"schema": {"type": "string", "format": "binary"}}
    for one in AudioFormat
}
"""Audio of any format as an OpenAPI document has it."""

_AUDIO: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The whole dialog; lines that failed are left out.",
        "content": AUDIO_CONTENT | {"application/zip": {}},
    }
}


_IMAGE = {
    "requestBody": {
        "required": True,
        "content": {
            name: {"schema": {"type": "string", "format": "binary"}}
            for name in ("image/jpeg", "image/png")
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
    studio: StudioDep, store: DialogStoreDep, body: DialogBody, response: Response
) -> DialogCard | StreamingResponse:
    """Render a dialog; with `stream`, the response is its progress as events."""
    with about("model"):
        backend = backend_for(studio, body.model)
    with about("params"):
        params = backend.capabilities.check_params(backend.title, body.params)
    with about("input"):
        dialog, notices, title = _dialog(body)
        check_speaker_count(len(dialog.speakers()))
        check_settings(dialog, backend, studio.backends().values())
    characters = _read_characters(body, backend)
    dialog = _with_params(dialog, params, characters)
    voices = {}
    for name, one in body.voices.items():
        with about(f"voices.{name}"):
            voices[name] = named_voice(studio, backend, one)
    entries = check_pronunciations(one.entry() for one in body.pronunciations)
    options = SpeechOptions(
        backend.name,
        body.seed,
        voices,
        rules=PronunciationRules(entries, in_words=True),
        mastering=mastering_of(body.loudness, even_voices=body.even_voices),
        notices=notices,
        tries=body.tries,
        characters=characters,
        gap_s=body.gap_s,
        title=title,
    )
    stream = SpeechStream(studio, dialog, options)
    store.put(stream)
    named = {JOB_ID: stream.job.job_id}
    if body.stream:
        return StreamingResponse(
            _progress(stream.job), status_code=201, media_type="text/event-stream", headers=named
        )
    response.headers.update(named)
    return _card(stream.job)


@dialog_routes.get("/{dialog_id}")
@speech_policy()
def snapshot(store: DialogStoreDep, dialog_id: str) -> DialogCard:
    """The current state of a render."""
    return _card(store.get(dialog_id).job)


@dialog_routes.get("/{dialog_id}/events", response_class=StreamingResponse, responses=_EVENTS)
@speech_policy()
async def events(store: DialogStoreDep, dialog_id: str) -> StreamingResponse:
    """The steps of a render from its start, until its end."""
    progress = _progress(store.get(dialog_id).job)
    return StreamingResponse(progress, media_type="text/event-stream")


@dialog_routes.get("/{dialog_id}/audio", response_class=Response, responses=_AUDIO)
@speech_policy(request_class=RequestClass.LONG)
def audio(
    studio: StudioDep,
    store: DialogStoreDep,
    request: Request,
    dialog_id: str,
    sound: Annotated[SoundQuery, Query()],
) -> Response:
    """The finished audio; all but AAC and PCM name title, speakers, engine and chapters."""
    stream = store.get(dialog_id)
    job = stream.job
    if job.state is JobState.RUNNING:
        raise Conflict("The dialog is still being rendered; follow its events to the end.")
    scene = studio.describe_scene(build_scene(job), sound.title or stream.title)
    scene = replace(
        scene,
        tags=replace(scene.tags, cover=stream.cover),
        kept_loudness=studio.kept_loudness,
        write_captions=lambda: write_scene_captions(
            *time_render(job, stream.dialog, studio.aligner, stream.rules)[:2]
        ),
    )
    if sound.streamed is not None:
        blocks = scene.mastered_blocks(stream.mastering)
        return StreamingResponse(encode_stream(blocks, sound.streamed), media_type=sound.media_type)
    left, options = unless_left(request), sound.to_options(stream.mastering)
    return make_file(
        studio,
        f"dialog.{sound.suffix}",
        lambda path: scene.write(path, options, on_progress=left),
        media_type=sound.media_type,
        filename=f"dialog.{sound.suffix}",
    )


@dialog_routes.put("/{dialog_id}/cover", status_code=204, openapi_extra=_IMAGE)
@speech_policy(disk=DiskUse.FILL)
async def put_cover(store: DialogStoreDep, request: Request, dialog_id: str) -> None:
    """Choose the image, a JPEG or PNG, that files of the audio carry."""
    stream = store.get(dialog_id)
    cover = Cover(await request.body())
    await asyncio.to_thread(stream.save_cover, cover)


@dialog_routes.get(
    "/{dialog_id}/segments/{segment}/tries/{number}",
    response_class=FileResponse,
    responses={200: {"description": "One try of a segment.", "content": {"audio/wav": {}}}},
)
@speech_policy()
def try_audio(store: DialogStoreDep, dialog_id: str, segment: int, number: int) -> FileResponse:
    """The audio of one try, also of one that isn't used."""
    records = store.get(dialog_id).job.records
    if 0 <= segment < len(records) and 0 < number <= len(records[segment].tries):
        path = records[segment].tries[number - 1].path
        if path is not None:
            return StoredFile(path, media_type="audio/wav")
    raise NotFound("This segment has no such try with audio.")


_TIMINGS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "What is said when; a file where `format` names one.",
        "content": {"application/octet-stream": {}},
    }
}


@dialog_routes.get(
    "/{dialog_id}/timestamps",
    response_model=DialogTimings,
    response_model_exclude_none=True,
    responses=_TIMINGS,
)
@speech_policy(request_class=RequestClass.LONG)
def timestamps(
    studio: StudioDep,
    store: DialogStoreDep,
    dialog_id: str,
    granularities: Annotated[list[Granularity], Query(alias="timestamp_granularities[]")] = [],  # noqa: B006
    named_plainly: Annotated[  # as in a JSON body, and by clients that add no brackets
        list[Granularity], Query(alias="timestamp_granularities", include_in_schema=False)
    ] = [],  # noqa: B006
    format_: Annotated[TimingFormat | None, Query(alias="format")] = None,
) -> DialogTimings | Response:
    """When each word and sentence of the finished audio is said."""
    stream = store.get(dialog_id)
    if stream.job.state is JobState.RUNNING:
        raise Conflict("The dialog is still being rendered; follow its events to the end.")
    lines, duration_s, _ = time_render(stream.job, stream.dialog, studio.aligner, stream.rules)
    if format_ is None:
        return describe_timings(lines, duration_s, [*granularities, *named_plainly])
    return Response(
        write_timing(lines, format_, duration_s),
        media_type="application/octet-stream",
        headers={"Content-Disposition": attachment(f"dialog.{format_.value}")},
    )


@dialog_routes.delete("/{dialog_id}")
@speech_policy(disk=DiskUse.FREE)
def remove(store: DialogStoreDep, dialog_id: str) -> DialogDeleted:
    """Stop a render and delete it."""
    store.remove(dialog_id)
    return DialogDeleted(id=dialog_id)


def _dialog(body: DialogBody) -> tuple[Dialog, tuple[Notice, ...], str]:
    """The dialog of a request, with notices and what its text calls itself."""
    if isinstance(body.input, str):
        read = read_dialog_text(body.input, ImportOptions(fit=body.fit))
        return read.dialog, read.notices, read.title or ""
    try:
        written = json.dumps(body.input, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadInput("The items hold half of a character; send whole ones.") from error
    parsed = parse_items(written.decode())
    return parsed.dialog, parsed.notices, ""


def _read_characters(body: DialogBody, backend: Backend) -> dict[str, Character]:
    """Settings of characters; they go before the parameters for all lines."""
    found = {}
    for name, one in body.characters.items():
        with about(f"characters.{name}.params"):
            params = backend.capabilities.check_params(backend.title, one.params)
        merged = {**body.params, **params}
        fields = {"params": merged, "level_db": one.level_db, "pan": one.pan}
        found[name_key(clean_name(name))] = change_character(PLAIN, fields)
    return found


def _with_params(
    dialog: Dialog, params: Mapping[str, ParamValue], characters: Container[str]
) -> Dialog:
    """A dialog whose lines have these parameters where they don't set their own.

    Lines of characters get them with their characters' own.
    """
    if not params:
        return dialog
    return Dialog(
        tuple(
            replace(line, params={**params, **line.params})
            if isinstance(line, Speech) and name_key(line.speaker) not in characters
            else line
            for line in dialog
        )
    )


def _card(job: Job) -> DialogCard:
    summary = job.summarize()
    return DialogCard(
        id=job.job_id,
        status=job.state.value,
        model=job.spec.backend_name,
        lines=len({record.segment.line_idx for record in job.records}),
        segments=len(job.records),
        finished=sum(record.is_final for record in job.records),
        audio_s=summary.audio_s,
        device_busy_s=round(summary.device_busy_s, 6),
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
        notices=[
            DialogNotice(line=one.line_number, message=one.message) for one in job.spec.plan.notices
        ],
        tries=[
            DialogTry(
                segment=record.segment.segment_idx,
                line=record.segment.line_number,
                number=number,
                seed=one.seed,
                score=one.score,
                kinds=[issue.kind for issue in one.issues],
                message=one.message,
                used=number == record.best_try + 1,
            )
            for record in job.records
            if len(record.tries) > 1
            for number, one in enumerate(record.tries, start=1)
        ],
        timestamps=[
            DialogTimestamps(
                segment=record.segment.segment_idx,
                line=record.segment.line_number,
                at_s=record.timestamps_s,
            )
            for record in (() if job.state is JobState.RUNNING else job.records)
        ],
    )


async def _progress(job: Job) -> AsyncIterator[bytes]:
    """An event for each step of the job; the last one has the render as it ended."""
    yield encode_event({"type": "dialog.created", "dialog": _card(job).model_dump()})
    async for event in job.events.subscribe():
        if event.segment_idx is None:
            yield encode_event({"type": f"dialog.{event.state}", "dialog": _card(job).model_dump()})
        else:
            yield encode_event(_step(job, event, event.segment_idx))


def _step(job: Job, event: JobEvent, segment_idx: int) -> dict[str, Any]:
    """A step of one segment; its quality issues are known once its audio is saved."""
    checked = job.records[segment_idx].report if event.state == SegmentState.SAVED else None
    return {
        "type": "dialog.segment",
        "segment": segment_idx,
        "status": event.state,
        "at_s": round(event.at_s, 6),
        "message": event.message,
        "doubtful": [doubt.message for doubt in checked.issues] if checked else [],
    }
