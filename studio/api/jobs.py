"""Routes of a render: begin, watch, hear, cancel, take home."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import FileResponse, Response, StreamingResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.background import BackgroundTask

from studio.api.desk import Desk
from studio.api.schemas import FocusBody, JobBody, event_body, job_body
from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.pcm import to_pcm16
from studio.dialog.read import read_dialog_text
from studio.engine.job import Job, SegmentRecord, SegmentState
from studio.engine.scene import export_job, read_take
from studio.errors import Cancelled, NotFound, SpeechFailed
from studio.service import RenderOptions

_SILENCE_BLOCK_SAMPLES = STUDIO_RATE_HZ


job_routes = APIRouter(prefix="/studio/jobs")


def _asked_job(studio: Desk, job_id: str) -> Job:
    return studio.job(job_id)


AskedJob = Annotated[Job, Depends(_asked_job)]
"""The job of the address, looked up before a stream of events begins its answer."""


@job_routes.post("", status_code=201)
def begin(studio: Desk, body: JobBody) -> dict[str, Any]:
    """Begin to render a script."""
    parsed = read_dialog_text(body.text)
    options = RenderOptions(
        backend_name=body.backend, seed=body.seed, assigned=body.voices, listen=True
    )
    return job_body(studio.render(parsed.dialog, options))


@job_routes.get("/{job_id}")
def snapshot(studio: Desk, job_id: str) -> dict[str, Any]:
    """A render as it stands."""
    return job_body(studio.job(job_id))


@job_routes.get("/{job_id}/events", response_class=EventSourceResponse)
async def events(job: AskedJob, since: int = 0) -> AsyncIterator[ServerSentEvent]:
    """The steps of a render after `since`, as they come."""
    seq = since
    async for event in job.events.afollow(since):
        seq += 1
        yield ServerSentEvent(data=event_body(job, seq, event), id=str(seq))


@job_routes.get("/{job_id}/segments/{segment_idx}/audio")
async def audio(studio: Desk, job_id: str, segment_idx: int) -> StreamingResponse:
    """One segment as s16le mono, live while it is generated."""
    record = _record(studio.job(job_id), segment_idx)
    return StreamingResponse(
        _pcm(record),
        media_type="application/octet-stream",
        headers={"X-Sample-Rate": str(STUDIO_RATE_HZ), "Cache-Control": "no-store"},
    )


@job_routes.post("/{job_id}/cancel")
def cancel(studio: Desk, job_id: str) -> dict[str, Any]:
    """Stop a render."""
    job = studio.job(job_id)
    studio.cancel(job)
    return job_body(job)


@job_routes.post("/{job_id}/focus", status_code=204)
def focus(studio: Desk, job_id: str, body: FocusBody) -> None:
    """Say where somebody listens: it goes first from there on."""
    studio.focus(studio.job(job_id), body.segment_idx)


@job_routes.get("/{job_id}/export")
def export(
    studio: Desk,
    job_id: str,
    suffix: Annotated[Literal["wav", "flac", "mp3", "zip"], Query(alias="format")] = "wav",
) -> Response:
    """The scene as it is now, as a file."""
    folder = tempfile.TemporaryDirectory(prefix="tableread-")
    path = Path(folder.name) / f"scene.{suffix}"
    try:
        export_job(studio.job(job_id), path)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(path, filename=path.name, background=BackgroundTask(folder.cleanup))


def _record(job: Job, segment_idx: int) -> SegmentRecord:
    if not 0 <= segment_idx < len(job.records):
        raise NotFound(f"The render has no segment {segment_idx}.")
    record = job.records[segment_idx]
    if record.state is SegmentState.FAILED:
        raise SpeechFailed(record.message or "This line could not be spoken.")
    if record.state is SegmentState.CANCELLED:
        raise Cancelled("This line was cancelled before it was spoken.")
    return record


async def _pcm(record: SegmentRecord) -> AsyncIterator[bytes]:
    """A segment as s16le mono, from its live chunks or from its file."""
    # The feed before the path: once the feed is replaced, the path is there.
    live, path = record.live, record.path
    if path is not None:
        yield await asyncio.to_thread(read_take, path)
    elif record.state is SegmentState.SAVED:
        for start in range(0, record.samples or 0, _SILENCE_BLOCK_SAMPLES):
            yield bytes(2 * min(_SILENCE_BLOCK_SAMPLES, (record.samples or 0) - start))
    else:
        async for chunk in live.afollow():
            yield to_pcm16(chunk).tobytes()
