"""Routes of a project's cover: the image that its sound files carry."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import Response

from studio.audio.file_tags import Cover
from studio.project.cover import read_project_cover, save_project_cover
from studio.server.policies import Access, DiskUse, page_policy
from studio.server.routes.project_routes import Project

cover_routes = APIRouter(prefix="/studio/projects/{project_id}/cover")


@cover_routes.get("")
@page_policy(Access.GUEST)
def show_cover(project: Project) -> Response:
    """The image, as it was chosen; an empty response where there is none."""
    cover = read_project_cover(project.folder.root)
    if cover is None:
        return Response(status_code=204)
    return Response(cover.data, media_type=cover.media_type, headers={"Cache-Control": "no-store"})


@cover_routes.put("", status_code=204)
@page_policy(Access.GUEST, disk=DiskUse.FILL)
async def put_cover(project: Project, request: Request) -> None:
    """Choose the image, a JPEG or PNG, which is the body itself."""
    data = await request.body()
    await asyncio.to_thread(save_project_cover, project.folder, Cover(data))


@cover_routes.delete("", status_code=204)
@page_policy(Access.GUEST, disk=DiskUse.FREE)
def remove_cover(project: Project) -> None:
    """Take the image away."""
    save_project_cover(project.folder, None)
