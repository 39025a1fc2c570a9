"""Routes of the edits that a program proposes: the page shows, accepts and rejects them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from studio.server.policies import Access, DiskUse, StudioDep, page_policy
from studio.server.routes.bodies import AuthorBody, edit_body
from studio.server.routes.project_routes import Project

proposal_routes = APIRouter(prefix="/studio/projects/{project_id}/proposal")


@proposal_routes.get("")
@page_policy(Access.GUEST)
def read(studio: StudioDep, project: Project) -> dict[str, Any]:
    """Fetch the latest proposal, and whether it can still be accepted."""
    proposal = studio.proposals.find(project)
    return {
        "proposal_id": proposal.proposal_id,
        "state": proposal.state,
        "note": proposal.note,
        "changes": [asdict(change) for change in proposal.changes],
    }


@proposal_routes.post("/{proposal_id}/accept")
@page_policy(Access.GUEST, disk=DiskUse.EDIT)
def accept(
    studio: StudioDep, project: Project, proposal_id: str, body: AuthorBody
) -> dict[str, Any]:
    """Make the changes, as one step of undo."""
    return edit_body(project, studio.proposals.accept(project, proposal_id, body.author()))


@proposal_routes.post("/{proposal_id}/reject", status_code=204)
@page_policy(Access.GUEST)
def reject(studio: StudioDep, project: Project, proposal_id: str) -> None:
    """Discard a proposal."""
    studio.proposals.reject(project, proposal_id)
