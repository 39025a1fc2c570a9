"""Bodies of the page's own routes. Inside, the studio uses its own types."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from studio.backends.base import Capabilities
from studio.dialog.model import Audio, Dialog, Line, Notice, Speech
from studio.dialog.planning import AudioSegment, SilenceSegment
from studio.engine.job import Event, Job, JobState, SegmentRecord


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ScriptBody(_Body):
    """A script as typed."""

    text: str


class JobBody(ScriptBody):
    """A script to render; `voices` are ids of the library's speakers by the name in the script."""

    backend: str | None = None
    voices: dict[str, str] = Field(default_factory=dict, max_length=1_000)
    seed: int | None = Field(None, ge=0, lt=2**63)


class FocusBody(_Body):
    """Where somebody listens."""

    segment_idx: int = Field(ge=0)


class TimeoutBody(_Body):
    """After how many idle seconds models are unloaded; 0 keeps them."""

    seconds: float = Field(ge=0, le=7 * 24 * 3600, allow_inf_nan=False)


class ConcurrencyBody(_Body):
    """How many segments are spoken at once on a backend without slots of its own."""

    segments: int = Field(ge=1, le=256)


class BackendBody(_Body):
    """Who speaks from now on."""

    name: str = Field(max_length=100)


def line_body(line_idx: int, line: Line) -> dict[str, Any]:
    """A line of a dialog for the page."""
    body: dict[str, Any] = {
        "line_idx": line_idx,
        "line_number": line.line_number,
        "kind": _line_kind(line),
        "speaker": None,
        "text": None,
        "language": None,
        "duration_s": None,
        "path": None,
    }
    if isinstance(line, Speech):
        return body | {"speaker": line.speaker, "text": line.text, "language": line.language}
    if isinstance(line, Audio):
        return body | {"path": line.path}
    return body | {"duration_s": line.duration_s}


def notice_body(notice: Notice) -> dict[str, Any]:
    """A notice for the page."""
    return {"line_number": notice.line_number, "message": notice.message}


def lines_by_speaker(dialog: Dialog) -> dict[str, int]:
    """How many lines each speaker has, by the name as first written."""
    return {
        name: sum(
            isinstance(line, Speech) and line.speaker.casefold() == name.casefold()
            for line in dialog
        )
        for name in dialog.speakers()
    }


def job_body(job: Job) -> dict[str, Any]:
    """A job as it stands; events after `seq` change it."""
    # The sequence number first: an event that comes in between is then seen twice, never missed.
    seq = len(job.events)
    return {
        "job_id": job.job_id,
        "state": job.state,
        "backend": job.order.backend_name,
        "segments": [_segment_body(record) for record in job.records],
        "notices": [notice_body(notice) for notice in job.order.plan.notices],
        "seq": seq,
        "summary": None if job.state is JobState.RUNNING else summary_body(job),
    }


def event_body(job: Job, seq: int, event: Event) -> dict[str, Any]:
    """One step of a job."""
    if event.segment_idx is None:
        return {"seq": seq, "type": "job", "state": event.state, "summary": summary_body(job)}
    return {
        "seq": seq,
        "type": "segment",
        "segment_idx": event.segment_idx,
        "state": event.state,
        "samples": event.samples,
        "message": event.message,
    }


def summary_body(job: Job) -> dict[str, Any]:
    """A job in figures."""
    summary = job.summary()
    return {
        "audio_s": summary.audio_s,
        "wall_s": summary.wall_s,
        "first_audio_s": summary.first_audio_s,
        "max_in_flight": summary.max_in_flight,
        "failed": summary.failed,
    }


def capabilities_body(capabilities: Capabilities) -> dict[str, Any]:
    """What a backend can do, for the page's controls."""
    return {
        "params": [
            {
                "name": param.name,
                "label": param.label,
                "minimum": param.minimum,
                "maximum": param.maximum,
                "default": param.default,
                "step": param.step,
                "help": param.help,
            }
            for param in capabilities.params
        ],
        "languages": dict(capabilities.languages),
        "tags": sorted(capabilities.tags),
    }


def _line_kind(line: Line) -> str:
    if isinstance(line, Speech):
        return "speech"
    return "audio" if isinstance(line, Audio) else "silence"


def _segment_body(record: SegmentRecord) -> dict[str, Any]:
    segment = record.segment
    kind = "speech"
    if isinstance(segment, SilenceSegment):
        kind = "silence"
    elif isinstance(segment, AudioSegment):
        kind = "audio"
    return {
        "segment_idx": segment.segment_idx,
        "line_idx": segment.line_idx,
        "line_number": segment.line_number,
        "kind": kind,
        "speaker": getattr(segment, "speaker", None),
        "text": getattr(segment, "text", None),
        "state": record.state,
        "samples": record.samples,
        "message": record.message,
    }
