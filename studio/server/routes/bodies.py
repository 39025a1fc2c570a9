"""Request and response bodies of the page's project and engine routes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from studio.backends.base import Capabilities
from studio.dialog.model import Notice
from studio.dialog.names import name_key
from studio.project.document import Document, ProjectLine
from studio.project.event_log import EditEvent, LineEvent, ProjectEvent, RenderEvent, StorageEvent
from studio.project.folder import ProjectSummary, read_last_position
from studio.project.history import Author
from studio.project.line_states import LineView
from studio.project.ops import LineId, LineIds, Op
from studio.project.render_queue import RenderProgress
from studio.project.session import ProjectSession
from studio.project.takes import Take, list_plain_fields
from studio.quality.checks import QualityIssue
from studio.voices.speaker import choose_colour


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TimeoutBody(_Body):
    """After how many idle seconds models are unloaded; 0 keeps them."""

    seconds: float = Field(ge=0, le=7 * 24 * 3600, allow_inf_nan=False)


class ConcurrencyBody(_Body):
    """How many segments are spoken at once on a backend without slots of its own."""

    segments: int = Field(ge=1, le=256)


class BackendBody(_Body):
    """Who speaks from now on."""

    name: str = Field(max_length=100)


def notice_body(notice: Notice) -> dict[str, Any]:
    """A notice for the page."""
    return {"line_number": notice.line_number, "message": notice.message}


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
        "instructions": capabilities.instructions,
    }


_SHOWN_SPOKEN_CHARS = 2_000
"""Of a line whose pronunciations make it far longer; all lines of a project are sent at once."""

_MARK = r"^[A-Za-z0-9_-]{1,64}$"


class NewProjectBody(_Body):
    """A project to make: of a script, as a copy, or empty."""

    name: str | None = None
    text: str | None = None
    like: str | None = None


class RenameBody(_Body):
    """A project's new name."""

    name: str


class AuthorBody(_Body):
    """Who edits, on which revision."""

    base_rev: int = Field(ge=0)
    client: str = Field(pattern=_MARK)
    edit_id: str | None = Field(None, pattern=_MARK)

    def author(self, group: str | None = None) -> Author:
        """The author as the project knows it."""
        # A project keeps it with hundreds of news.
        return Author(sys.intern(self.client), group, self.edit_id)


class UndoBody(AuthorBody):
    """What to take back: the latest step, or the latest of one's own."""

    own: bool = False


class EditsBody(AuthorBody):
    """Edits, applied all or none."""

    group: str | None = Field(None, max_length=200)
    ops: Annotated[list[Op], Field(max_length=10_000)]


class ScriptBody(AuthorBody):
    """A script to lay onto the lines."""

    text: str


class RenderBody(_Body):
    """What to make."""

    line_ids: LineIds | None = None
    again: bool = False
    listen_from: LineId | None = None


class FocusBody(_Body):
    """Where somebody listens."""

    line_id: LineId


def card_body(card: ProjectSummary) -> dict[str, Any]:
    """A project in a list."""
    return {
        "project_id": card.project_id,
        "name": card.name,
        "edited_at": datetime.fromtimestamp(card.edited_at_s, UTC).isoformat(),
        "lines": card.lines,
        "audio_s": card.audio_s,
    }


def project_body(session: ProjectSession, notices: tuple[Notice, ...] = ()) -> dict[str, Any]:
    """A project as it stands; news after `seq` change it."""
    place = read_last_position(session.folder.root)
    with session.lock:
        # The number first: news that come in between are then told twice, never missed.
        seq = session.news.seq
        views = session.views()
        document = session.document
        return {
            "project_id": session.project_id,
            "name": document.name,
            "rev": session.rev,
            "cast": dict(document.cast),
            "settings": _settings_body(document),
            "pronunciations": _pronunciations_body(document),
            "lines": [line_body(view, document) for view in views],
            "speakers": speakers_body(session),
            "notices": [*map(notice_body, notices), *_standing_notices(session)],
            "storage": session.storage_message,
            "accepted_takes": list(document.accepted_takes),
            "can_undo": session.can_undo,
            "can_redo": session.can_redo,
            "job": job_body(session),
            "place": place.model_dump() if place else None,
            "seq": seq,
        }


def line_body(view: LineView, document: Document) -> dict[str, Any]:
    """A line with its state and its take."""
    take = take_body(view.take, document, view.doubts) if view.take else None
    return _plain_line(view.line) | {
        "state": view.state,
        "message": view.message,
        "take": take,
        "n_takes": view.n_takes,
        "samples": view.samples,
        "making": view.making,
        "spoken": view.spoken and view.spoken[:_SHOWN_SPOKEN_CHARS],
    }


def take_body(
    take: Take, document: Document, doubts: Sequence[QualityIssue], *, gone: bool = False
) -> dict[str, Any]:
    """A take and what is doubtful about it; of one that is gone, what it was made of."""
    return list_plain_fields(take) | {
        "params": dict(take.params),
        "doubts": [{"kind": doubt.kind, "message": doubt.message} for doubt in doubts],
        "locked": take.take_id in document.locked_takes,
        "gone": gone,
    }


def speakers_body(session: ProjectSession) -> list[dict[str, Any]]:
    """Who speaks; who isn't in the library gets a colour for as long as that lasts."""
    document, ground = session.document, session.ground
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for line in document:
        if line.speaker is not None:
            key = name_key(line.speaker)
            names.setdefault(key, line.speaker)
            counts[key] = counts.get(key, 0) + 1
    colours = session.colours()
    bodies = []
    for key, name in names.items():
        voice = ground.voice(name)
        colour = (voice and voice.colour) or choose_colour(colours)
        colours.append(colour)
        kind = voice.kind if voice else "built-in"
        bodies.append({"name": name, "colour": colour, "lines": counts[key], "voice": kind})
    return bodies


def job_body(session: ProjectSession) -> dict[str, Any] | None:
    """The render under way, or the last one."""
    run = session.run
    if run is None:
        return None
    return {"state": _run_state(run), "summary": _summary_body(run)}


def edit_body(session: ProjectSession, news: EditEvent) -> dict[str, Any]:
    """What an edit did."""
    with session.lock:
        return {"rev": news.rev, "changes": changes_body(session, news)}


def news_body(session: ProjectSession, seq: int, news: ProjectEvent) -> dict[str, Any] | None:
    """News for the page; None when what they are about is gone meanwhile."""
    with session.lock:
        match news:
            case EditEvent():
                changes = changes_body(session, news)
                about = {"type": "edit", "rev": news.rev, "client": news.client, "changes": changes}
            case LineEvent():
                view = session.view(news.line_id)
                if view is None:
                    return None
                body = line_body(view, session.document)
                told = ("line_id", "state", "making", "message", "samples", "take", "n_takes")
                about = {"type": "line", **{name: body[name] for name in (*told, "chosen")}}
            case RenderEvent():
                about = {"type": "job", **(job_body(session) or {})}
            case StorageEvent():
                about = {"type": "storage", "message": session.storage_message}
        return {"seq": seq, **about}


def changes_body(session: ProjectSession, news: EditEvent) -> dict[str, Any]:
    """What changed, as it is now."""
    document = session.document
    changes: dict[str, Any] = {"can_undo": session.can_undo, "can_redo": session.can_redo}
    if news.line_ids:
        views = {line_id: session.view(line_id) for line_id in news.line_ids}
        changes["lines"] = {
            line_id: line_body(view, document) if view else None for line_id, view in views.items()
        }
    if news.order:
        changes["order"] = list(document.order)
    if news.speakers:
        changes["speakers"] = speakers_body(session)
    if "name" in news.fields:
        changes["name"] = document.name
    if "cast" in news.fields:
        changes["cast"] = dict(document.cast)
    if "settings" in news.fields:
        changes["settings"] = _settings_body(document)
    if "accepted_takes" in news.fields:
        changes["accepted_takes"] = list(document.accepted_takes)
    if "pronunciations" in news.fields:
        changes["pronunciations"] = _pronunciations_body(document)
    return changes


def _plain_line(line: ProjectLine) -> dict[str, Any]:
    return {
        "line_id": line.line_id,
        "kind": line.kind,
        "speaker": line.speaker,
        "text": line.text,
        "language": line.language,
        "seed": line.seed,
        "params": dict(line.params),
        "duration_s": line.duration_s,
        "path": line.path,
        "locked": line.locked,
        "chosen": line.chosen,
    }


def _settings_body(document: Document) -> dict[str, Any]:
    return asdict(document.settings)


def _pronunciations_body(document: Document) -> list[dict[str, Any]]:
    return [asdict(one) for one in document.pronunciations.values()]


def _standing_notices(session: ProjectSession) -> list[dict[str, Any]]:
    return [{"line_number": 0, "message": message} for message in session.folder.notices]


def _run_state(run: RenderProgress) -> str:
    if run.ended_s is None:
        return "running"
    return "cancelled" if run.cancelled else "done"


def _summary_body(run: RenderProgress) -> dict[str, Any]:
    return {
        "total": run.total,
        "done": run.done,
        "failed": run.failed,
        "audio_s": run.audio_s,
        "wall_s": run.wall_s,
        "first_audio_s": run.first_audio_s,
        "message": run.message,
    }
