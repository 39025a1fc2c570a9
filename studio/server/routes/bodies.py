"""Bodies of the page's requests and responses about projects and the engine."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from itertools import accumulate
from operator import attrgetter
from typing import Annotated, Any

from fastapi import Response
from pydantic import ConfigDict, Field
from pydantic_core import to_json

from studio.backends.base import Backend, Capabilities
from studio.backends.engine_cards import card_of
from studio.backends.registry import describe_engine, offer_of
from studio.dialog.gaps import MAX_GAP_S
from studio.dialog.model import Line, Notice, name_key
from studio.project.document import Document, ProjectLine
from studio.project.folder import ProjectSummary, read_last_position
from studio.project.history import Author
from studio.project.line_states import (
    EditEvent,
    LineEvent,
    LineView,
    ProjectEvent,
    RenderEvent,
    StorageEvent,
)
from studio.project.ops import LineId, LineIds, Op
from studio.project.session import ProjectSession
from studio.project.takes import Take, list_plain_fields
from studio.quality.checks import QualityIssue, score_issues
from studio.storage.json_bounds import BoundedModel


class RequestBody(BoundedModel):
    """A body of the page's; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class TimeoutBody(RequestBody):
    """After how many idle seconds a model is unloaded; 0 means never."""

    seconds: float = Field(ge=0, le=7 * 24 * 3600, allow_inf_nan=False)


class ConcurrencyBody(RequestBody):
    """How many segments are spoken at once on a backend without slots of its own."""

    segments: int = Field(ge=1, le=256)


class BackendBody(RequestBody):
    """The backend to use from now on."""

    name: str = Field(max_length=100)


def json_response(body: object, status: int = 200) -> Response:
    """A response that is encoded here, in the handler's thread.

    FastAPI would take another thread to look at the body, and encode it on the event loop, where a
    large project makes everybody wait.
    """
    data = to_json(body, inf_nan_mode="null")
    return Response(data, status, media_type="application/json")


def capabilities_body(capabilities: Capabilities) -> dict[str, Any]:
    """What a backend can do, for the page's controls."""
    return {
        "params": list(map(asdict, capabilities.line_params)),
        "languages": dict(capabilities.languages),
        "tags": sorted(capabilities.tags),
        "instructions": capabilities.instructions,
        "seeded": capabilities.seeded,
    }


def engine_body(backend: Backend, device: str) -> dict[str, Any]:
    """A voice engine as its card shows it, but for its speed here, which changes more often.

    By the kind of device that it is likely to run on, the card says how fast it may be.
    """
    offer, languages = offer_of(backend), backend.capabilities.languages
    return describe_engine(backend, device) | {
        "reason": offer.unavailable,
        "to_fetch": offer.to_fetch,
        "languages": sorted(set(languages.values())),
        "language_codes": sorted(languages),
        "expected_speed": card_of(backend.name).expected.get(device),
    }


_LINE_FIELDS = tuple(one.name for one in fields(ProjectLine))
_get_line_values = attrgetter(*_LINE_FIELDS)
_PROGRESS_FIELDS = ("total", "done", "failed", "audio_s", "wall_s", "first_audio_s", "message")

MARK = r"^[A-Za-z0-9_-]{1,64}$"
"""What a client calls itself and its edits."""


class NewProjectBody(RequestBody):
    """A project to create: from a script in `text`, as a copy of project `like`, or empty.

    `gap_s` is the usual gap between its lines; a copy has that of its original.
    """

    name: str | None = None
    text: str | None = None
    like: str | None = None
    gap_s: Annotated[float, Field(ge=0, le=MAX_GAP_S)] = 0.0


class RenameBody(RequestBody):
    """A project's new name."""

    name: str


class AuthorBody(RequestBody):
    """The client that edits, and the revision that its edit is based on."""

    base_rev: int = Field(ge=0)
    client: str = Field(pattern=MARK)
    edit_id: str | None = Field(None, pattern=MARK)

    def author(self, group: str | None = None) -> Author:
        """The author as the project stores it."""
        # Interned, because a project stores it with hundreds of events.
        return Author(sys.intern(self.client), group, self.edit_id)


class UndoBody(AuthorBody):
    """What to undo: the latest step, or the latest of the client's own."""

    own: bool = False


class EditsBody(AuthorBody):
    """Edits, applied all or none."""

    group: str | None = Field(None, max_length=200)
    ops: Annotated[list[Op], Field(max_length=10_000, fail_fast=True)]


class ScriptBody(AuthorBody):
    """A script that the lines are changed to."""

    text: str


class RenderBody(RequestBody):
    """What to render: some lines, or all; `again` asks for further takes."""

    line_ids: LineIds | None = None
    again: bool = False
    listen_from: LineId | None = None


class PatchBody(AuthorBody):
    """Words of a line to say again, as a part of its text in UTF-16 units, as JavaScript counts."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)


class FocusBody(RequestBody):
    """The line at the play-head."""

    line_id: LineId


def card_body(card: ProjectSummary) -> dict[str, Any]:
    """A project in a list; `problem` only where there is one."""
    body: dict[str, Any] = {  # not by `asdict`, which takes as long as all else of a long list
        "project_id": card.project_id,
        "name": card.name,
        "lines": card.lines,
        "audio_s": card.audio_s,
        "edited_at": datetime.fromtimestamp(card.edited_at_s, UTC).isoformat(),
    }
    return body if card.problem is None else body | {"problem": card.problem}


_MOST_ROWS = 500


def notice_bodies(notices: Iterable[Notice], lines: Iterable[Line]) -> list[dict[str, Any]]:
    """Notices, with the places from 0 of the lines that begin where each says, or next after it.

    Args:
        notices: Of a text.
        lines: What was read of it, in order, with the numbers that they have there.
    """
    begins = list(accumulate((line.line_number for line in lines), max))
    bodies = []
    for notice in notices:
        rows: set[int] = set()
        for number in (notice.line_number, *notice.further) if notice.line_number else ():
            first = bisect_left(begins, number)
            same = bisect_right(begins, begins[first]) if first < len(begins) else first
            rows.update(range(first, same))
        place = {"line_number": notice.line_number, "rows": sorted(rows)[:_MOST_ROWS]}
        bodies.append({"message": notice.message, **place})
    return bodies


def project_body(
    session: ProjectSession, notices: Iterable[Notice] = (), lines: Iterable[Line] = ()
) -> dict[str, Any]:
    """A project's current state; the events after `seq` change it.

    `notices` are those of a text of which its `lines` were made.
    """
    place = read_last_position(session.folder.root)
    with session.lock:
        # Read first: an event in between is then sent twice rather than missed.
        seq = session.events.seq
        views = session.list_views()
        document = session.document
        locked = frozenset(document.locked_takes)
        return {
            "project_id": session.project_id,
            "rev": session.rev,
            **{name: value() for name, value in _document_fields(document).items()},
            "lines": [line_body(view, locked) for view in views],
            "speakers": speakers_body(session),
            "notices": notice_bodies((*notices, *map(Notice, session.folder.notices)), lines),
            "storage": session.storage_message,
            "can_undo": session.can_undo,
            "can_redo": session.can_redo,
            "job": job_body(session),
            "place": place.model_dump() if place else None,
            "seq": seq,
        }


def line_body(view: LineView, locked: Collection[str]) -> dict[str, Any]:
    """A line with its state and its take, which may be one of the locked ones."""
    take = take_body(view.take, locked, view.issues) if view.take else None
    body = line_fields(view.line)
    body.update(  # in place, as there may be 20,000
        state=str(view.state),  # which is encoded faster than the enumeration
        message=view.message,
        take=take,
        n_takes=view.n_takes,
        samples=view.samples,
        making=view.generating_take_id,
        spoken=view.spoken_text,
    )
    return body


def take_body(
    take: Take, locked: Collection[str], doubts: Sequence[QualityIssue], *, gone: bool = False
) -> dict[str, Any]:
    """A take and its quality issues; `gone` if its audio has been deleted."""
    return list_plain_fields(take) | {
        "params": dict(take.params),
        "doubts": [
            {"kind": one.kind, "message": one.message, "start": one.start, "end": one.end}
            for one in doubts
        ],
        "score": score_issues(doubts),
        "recognised": (take.recognised.text or take.recognised.note) if take.recognised else None,
        "locked": take.take_id in locked,
        "gone": gone,
        "patch": asdict(take.patch) if take.patch else None,
    }


def speakers_body(session: ProjectSession) -> list[dict[str, Any]]:
    """The speakers of a project; the order is that of their first lines."""
    document, ground = session.document, session.render_context
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for name, count in document.count_speakers().items():
        key = name_key(name)
        names.setdefault(key, name)
        counts[key] = counts.get(key, 0) + count
    voices = {key: ground.find_voice(name) for key, name in names.items()}
    colours = session.colours.choose(
        {key: voice.colour if voice else None for key, voice in voices.items()}
    )
    return [
        {
            "name": name,
            "colour": colours[key],
            "lines": counts[key],
            "voice": voice.kind if (voice := voices[key]) else "built-in",
            "voice_name": voice.title if voice else "",
            "key": key,
        }
        for key, name in names.items()
    ]


def job_body(session: ProjectSession) -> dict[str, Any] | None:
    """The render under way, or the last one."""
    run = session.render_progress
    if run is None:
        return None
    ended = "cancelled" if run.cancelled else "done"
    running = "waiting" if session.waits_for_room else "running"
    summary = {name: getattr(run, name) for name in _PROGRESS_FIELDS}
    summary["remaining_s"] = session.remaining_s
    return {"state": running if run.ended_s is None else ended, "summary": summary}


def edit_body(session: ProjectSession, news: EditEvent) -> dict[str, Any]:
    """The new revision after an edit, and what the edit changed."""
    with session.lock:
        return {"rev": news.rev, "changes": changes_body(session, news)}


def news_body(session: ProjectSession, seq: int, news: ProjectEvent) -> dict[str, Any] | None:
    """An event for the page; None if it is about a line that has been deleted since."""
    with session.lock:
        match news:
            case EditEvent():
                changes = changes_body(session, news)
                about = {"type": "edit", "rev": news.rev, "client": news.client, "changes": changes}
            case LineEvent():
                view = session.get_view(news.line_id)
                if view is None:
                    return None
                body = line_body(view, session.document.locked_takes)
                shown = ("line_id", "state", "making", "message", "samples", "take", "n_takes")
                about = {"type": "line", **{name: body[name] for name in (*shown, "chosen")}}
            case RenderEvent():
                about = {"type": "job", **(job_body(session) or {})}
            case StorageEvent():
                about = {"type": "storage", "message": session.storage_message}
        return {"seq": seq, **about}


def changes_body(session: ProjectSession, news: EditEvent) -> dict[str, Any]:
    """The current values of what an edit changed."""
    document = session.document
    changes: dict[str, Any] = {"can_undo": session.can_undo, "can_redo": session.can_redo}
    values = _document_fields(document)
    changes |= {name: values[name]() for name in news.fields if name in values}
    if news.line_ids:
        views, locked = session.get_views(news.line_ids), frozenset(document.locked_takes)
        changes["lines"] = {
            line_id: line_body(view, locked) if view else None for line_id, view in views.items()
        }
    if news.order:
        changes["order"] = list(document.order)
    if news.speakers:
        changes["speakers"] = speakers_body(session)
    return changes


def line_fields(line: ProjectLine) -> dict[str, Any]:
    """A line as the page edits it."""
    # Not `asdict`, which copies deeply: a project may have 20,000 lines.
    values = dict(zip(_LINE_FIELDS, _get_line_values(line), strict=True))
    values["kind"], values["params"] = str(line.kind), dict(line.params)
    return values


def _document_fields(document: Document) -> dict[str, Callable[[], object]]:
    """What the page has of a document besides its lines; each value is made when it is needed."""
    return {
        "name": lambda: document.name,
        "cast": lambda: dict(document.cast),
        "settings": lambda: asdict(document.settings),
        "pronunciations": lambda: list(map(asdict, document.pronunciations.values())),
        "characters": lambda: {
            key: asdict(one) | {"voices": dict(one.voices), "params": dict(one.params)}
            for key, one in document.characters.items()
        },
        "accepted_takes": lambda: list(document.accepted_takes),
        "starred_takes": lambda: list(document.starred_takes),
        "comments": lambda: list(map(asdict, document.comments.values())),
    }
