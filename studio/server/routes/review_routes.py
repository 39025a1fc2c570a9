"""Routes of what others say about a project: by review links, and programs by proposals.

The owner makes and ends links; who holds one listens and comments. The page shows, accepts and
rejects the edits that a program proposes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse
from pydantic import Field

from studio.errors import Conflict, NotAllowed, NotFound
from studio.project.comments import MAX_AUTHOR_CHARS, MAX_COMMENT_CHARS, MAX_COMMENTS
from studio.project.document import Document, LineKind, ProjectLine
from studio.project.history import Author
from studio.project.line_states import LineState
from studio.project.ops import AddComment, LineId
from studio.project.session import ProjectSession
from studio.server.event_stream import EventStream
from studio.server.policies import (
    Access,
    DiskUse,
    RequestClass,
    StudioDep,
    page_policy,
    reviewer_policy,
)
from studio.server.routes.bodies import AuthorBody, RequestBody, edit_body, json_response
from studio.server.routes.project_routes import Project, open_session
from studio.server.routes.reading_routes import PAGES, follow_reading, reading_body
from studio.server.transfers import StoredFile
from studio.sharing.reviews import LINK_ENDED, ReviewLink, ReviewLinks

_KEPT_FOR_OWNER = 200
"""Of a project's comments, how many only the owner can still write."""

_NOT_SHARED = (
    "Review links need a shared studio, where guests can do only what is theirs. Start it with "
    "--share to make some."
)


class ReviewCommentBody(RequestBody):
    """What a reviewer says of a line."""

    line_id: LineId
    author: str = Field(max_length=10 * MAX_AUTHOR_CHARS)
    text: str = Field(max_length=10 * MAX_COMMENT_CHARS)


def review_link_routes(reviews: ReviewLinks | None) -> APIRouter:
    """The owner's routes; where the studio isn't shared, they refuse."""
    routes = APIRouter(prefix="/studio/projects/{project_id}/reviews")

    def links() -> ReviewLinks:
        if reviews is None:
            raise NotAllowed(_NOT_SHARED)
        return reviews

    @routes.get("")
    @page_policy(Access.OWNER)
    def list_links(project: Project) -> list[dict[str, Any]]:
        return [_link_body(one) for one in links().list_for(project.project_id)]

    @routes.post("", status_code=201)
    @page_policy(Access.OWNER)
    def create(project: Project) -> dict[str, Any]:
        link, token = links().create(project.project_id)
        body = {"path": f"studio/review/{token}", "public_url": links().public_url}
        return _link_body(link) | body

    @routes.delete("/{review_id}", status_code=204)
    @page_policy(Access.OWNER)
    def end(project_id: str, review_id: str) -> None:
        links().end(project_id, review_id)

    return routes


def _link_body(link: ReviewLink) -> dict[str, Any]:
    values = asdict(link)
    return {name: values[name] for name in ("review_id", "made_at_s", "used_at_s")}


@dataclass(frozen=True, slots=True)
class Review:
    """What a review link opens."""

    links: ReviewLinks
    link: ReviewLink
    session: ProjectSession


async def open_review(reviews: ReviewLinks | None, token: str) -> Review:
    """Open the project of a review link, of which the use is noted.

    Raises:
        NotFound: The link has ended, there never was one, or its project was deleted.
    """
    if reviews is None:
        raise NotFound(LINK_ENDED)
    link = await asyncio.to_thread(reviews.use, token)
    try:
        session = await open_session(reviews.studio, link.project_id)
    except NotFound as error:
        raise NotFound(LINK_ENDED) from error
    return Review(reviews, link, session)


def find_review(reviews: ReviewLinks | None) -> Callable[[Request, str], Awaitable[None]]:
    """Make the dependency that looks up each request's review link before its handler runs.

    The handlers get their project this way and no other, so that one place decides what a reviewer
    sees.
    """

    async def find(request: Request, token: str) -> None:
        request.state.review = await open_review(reviews, token)

    return find


async def _request_review(request: Request) -> Review:
    review = request.state.review
    assert isinstance(review, Review)
    return review


ReviewDep = Annotated[Review, Depends(_request_review)]
"""Type of a handler's `review`: that of the token in the path."""


def review_page(reviews: ReviewLinks | None) -> APIRouter:
    """The page that a review link leads to; of an ended link it says so."""
    routes = APIRouter()

    @routes.get("/studio/review/{token}")
    @reviewer_policy(is_page=True)
    async def page(token: str) -> FileResponse:
        status = 200
        try:
            await open_review(reviews, token)
        except NotFound:
            status = 404
        headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        return FileResponse(PAGES / "review.html", status, headers)

    return routes


_COMMENT_BYTES = 100_000

reviewer_routes = APIRouter(prefix="/studio/review/{token}")


@reviewer_routes.get("/project")
@reviewer_policy()
def read(review: ReviewDep) -> Response:
    """What a reviewer sees of the project."""
    return json_response(_review_body(review.session))


@reviewer_routes.get("/events")
@reviewer_policy(request_class=RequestClass.UNCOUNTED)
async def follow(review: ReviewDep) -> EventStream:
    """That the project changed; ends at once when the link does."""
    links, link = review.links, review.link
    return EventStream(
        follow_reading(review.session, links.ended, is_over=lambda: not links.is_open(link))
    )


@reviewer_routes.get("/takes/{line_id}/{take_id}.wav")
@reviewer_policy(request_class=RequestClass.LONG)
def listen(review: ReviewDep, line_id: str, take_id: str) -> FileResponse:
    """Fetch the take that a line has now."""
    path = _find_audio(review.session, line_id, take_id)
    headers = {"Cache-Control": "private, max-age=600"}
    return StoredFile(path, media_type="audio/wav", headers=headers)


@reviewer_routes.post("/comments", status_code=201)
@reviewer_policy(max_body_bytes=_COMMENT_BYTES)
def comment(review: ReviewDep, body: ReviewCommentBody) -> Response:
    """Comment on a line."""
    _add_comment(review.session, review.link, body)
    return json_response(_review_body(review.session), 201)


def _review_body(session: ProjectSession) -> dict[str, Any]:
    with session.lock:
        body = reading_body(session)
        document = session.document
        comments = list(map(asdict, document.comments.values()))
        sounds = [_sound_body(document, *one) for one in _list_waits(document)]
    del body["heard"]
    lines = [line | sound for line, sound in zip(body["lines"], sounds, strict=True)]
    return body | {"lines": lines, "comments": comments}


def _list_waits(document: Document) -> Iterator[tuple[ProjectLine, float]]:
    """Each line with the silence before it: its gap, and the pauses since the last one sounded."""
    lines = list(document)
    paused_s = 0.0
    for line, gap_s in zip(
        lines, document.gaps.find(one.to_dialog_line() for one in lines), strict=True
    ):
        if line.kind is LineKind.SILENCE:
            paused_s += line.duration_s or 0.0
            yield line, 0.0
        elif line.unspoken is not None:
            yield line, 0.0
        else:
            yield line, paused_s + gap_s
            paused_s = 0.0


def _sound_body(document: Document, line: ProjectLine, before_s: float) -> dict[str, float]:
    character = document.find_character(line.speaker)
    return {"before_s": before_s, "level_db": character.level_db, "pan": character.pan}


def _find_audio(session: ProjectSession, line_id: str, take_id: str) -> Path:
    """The take that a line has now; no other, and none is made.

    Raises:
        NotFound: It isn't that of the line now.
    """
    view = session.get_view(line_id)
    is_ready = view is not None and view.state is LineState.READY
    if view is None or view.take is None or not is_ready or view.take.take_id != take_id:
        raise NotFound("This line sounds otherwise now, or is still to be made.")
    session.check_audio(view.take)
    return session.take_store.get_audio_path(view.take)


def _add_comment(session: ProjectSession, link: ReviewLink, body: ReviewCommentBody) -> None:
    if len(session.document.comments) >= MAX_COMMENTS - _KEPT_FOR_OWNER:
        raise Conflict("This project can take no further comments. Tell whoever sent you the link.")
    op = AddComment(op="comment", comment_id=secrets.token_hex(6), **body.model_dump())
    session.edit([op], Author(f"review-{link.review_id}"), session.rev)


proposal_routes = APIRouter(prefix="/studio/projects/{project_id}/proposal")


@proposal_routes.get("")
@page_policy(Access.GUEST)
def read_proposal(studio: StudioDep, project: Project) -> Response:
    """Fetch the latest proposal, and whether it can still be accepted."""
    proposal = studio.proposals.find(project)
    names = ("proposal_id", "state", "note", "changes")
    return json_response({name: getattr(proposal, name) for name in names})


@proposal_routes.post("/{proposal_id}/accept")
@page_policy(Access.GUEST, disk=DiskUse.EDIT)
def accept_proposal(
    studio: StudioDep, project: Project, proposal_id: str, body: AuthorBody
) -> Response:
    """Make the changes, as one step of undo."""
    news = studio.proposals.accept(project, proposal_id, body.author())
    return json_response(edit_body(project, news))


@proposal_routes.post("/{proposal_id}/reject", status_code=204)
@page_policy(Access.GUEST)
def reject_proposal(studio: StudioDep, project: Project, proposal_id: str) -> None:
    """Discard a proposal."""
    studio.proposals.reject(project, proposal_id)
