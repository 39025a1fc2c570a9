"""Routes of the edits that a program proposes: the page shows, accepts and rejects them."""

from __future__ import annotations

from fastapi import APIRouter, Response

from studio.server.policies import Access, DiskUse, StudioDep, page_policy
from studio.server.routes.bodies import AuthorBody, edit_body, json_response
from studio.server.routes.project_routes import Project

proposal_routes = APIRouter(prefix="/studio/projects/{project_id}/proposal")


@proposal_routes.get("")
@page_policy(Access.GUEST)
def read(studio: StudioDep, project: Project) -> Response:
    """Fetch the latest proposal, and whether it can still be accepted."""
    proposal = studio.proposals.find(project)
    names = ("proposal_id", "state", "note", "changes")
    return json_response({name: getattr(proposal, name) for name in names})


@proposal_routes.post("/{proposal_id}/accept")
@page_policy(Access.GUEST, disk=DiskUse.EDIT)
def accept(studio: StudioDep, project: Project, proposal_id: str, body: AuthorBody) -> Response:
    """Make the changes, as one step of undo."""
    news = studio.proposals.accept(project, proposal_id, body.author())
    return json_response(edit_body(project, news))


@proposal_routes.post("/{proposal_id}/reject", status_code=204)
@page_policy(Access.GUEST)
def reject(studio: StudioDep, project: Project, proposal_id: str) -> None:
    """Discard a proposal."""
    studio.proposals.reject(project, proposal_id)
