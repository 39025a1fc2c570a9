"""Routes of a project's judgement: how good the checks are on its takes."""

from __future__ import annotations

import threading
from typing import Any

from fastapi import APIRouter

from studio.project.judgement import ProjectJudge, describe_judgement
from studio.server.policies import Access, DiskUse, page_policy
from studio.server.routes.project_routes import Project


def judge_routes() -> APIRouter:
    """Judging in the background: one project of a server at a time, as it takes a whole core."""
    routes = APIRouter(prefix="/studio/projects/{project_id}/judgement")
    turn = threading.BoundedSemaphore(1)

    @routes.get("")
    @page_policy(Access.GUEST)
    def judgement(project: Project) -> dict[str, Any]:
        """How far judging is, and the latest judgement."""
        return judgement_body(project.judge)

    @routes.post("", status_code=202)
    @page_policy(Access.GUEST, disk=DiskUse.EDIT)
    def begin_judging(project: Project) -> dict[str, Any]:
        """Plant faults into the project's takes, and count which the checks find."""
        project.judge.start(turn)
        return judgement_body(project.judge)

    @routes.delete("", status_code=204)
    @page_policy(Access.GUEST)
    def stop_judging(project: Project) -> None:
        """Stop judging; what was known before stays."""
        project.judge.stop()

    return routes


def judgement_body(judge: ProjectJudge) -> dict[str, Any]:
    """How far judging is, and the latest judgement; `judged_at` is None before the first."""
    done, total = judge.progress
    return {
        "state": judge.state.value,
        "done": done,
        "total": total,
        "message": judge.message,
        **describe_judgement(judge.judgement),
    }
