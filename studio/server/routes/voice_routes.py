"""Routes of voice engines and recognisers, of a character's voices, and of takes made by hand.

And of the judgement: how good the checks are on a project's takes.
"""

from __future__ import annotations

import threading
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, File, Query, Request, Response, UploadFile
from pydantic import Field

from studio.backends.sherpa.own_voices import list_voice_files
from studio.backends.sherpa.public_voices import read_public_voices
from studio.project.judgement import ProjectJudge, describe_judgement
from studio.server.policies import (
    UPLOAD_BYTES,
    Access,
    DiskUse,
    RequestClass,
    StudioDep,
    page_policy,
    upload_policy,
)
from studio.server.routes.bodies import MARK, AuthorBody, PatchBody, RequestBody, edit_body
from studio.server.routes.project_routes import Project
from studio.server.transfers import receive, unless_gone, wav_answer
from studio.services.previews import MAX_PREVIEW_CHARS, Sentence

voice_routes = APIRouter(prefix="/studio")


class DownloadBody(RequestBody):
    """Whether the engine speaks once its weights are here."""

    choose: bool = False


class TryBody(RequestBody):
    """A sentence, the speaker of the project who says it, and the engine."""

    engine: str = Field(max_length=100)
    speaker: str = Field(max_length=200)
    text: str = Field(max_length=MAX_PREVIEW_CHARS)


@voice_routes.post("/engines/{name}/download", status_code=204)
@page_policy(Access.OWNER)
def download(studio: StudioDep, name: str, body: DownloadBody) -> None:
    """Start or resume the download of the weights of an engine or recogniser."""
    studio.download_voice(name, choose=body.choose)


@voice_routes.post("/engines/{name}/pause", status_code=204)
@page_policy(Access.OWNER)
def pause(studio: StudioDep, name: str) -> None:
    """Stop a download and keep what has come."""
    studio.downloads_with(name).pause(name)


@voice_routes.post("/engines/{name}/cancel", status_code=204)
@page_policy(Access.OWNER)
def cancel(studio: StudioDep, name: str) -> None:
    """Stop a download and delete what has come."""
    studio.downloads_with(name).cancel(name)


@voice_routes.delete("/engines/{name}/weights", status_code=204)
@page_policy(Access.OWNER, request_class=RequestClass.LONG)
def remove(studio: StudioDep, name: str) -> None:
    """Delete the weights of an engine or recogniser, or a voice that somebody added."""
    studio.remove_voice(name)


@voice_routes.get("/voice-files")
@page_policy(Access.OWNER)
def voice_files(studio: StudioDep) -> dict[str, Any]:
    """List the voices that somebody added, and the public ones that can be downloaded."""
    public = [asdict(replace(one, sources=())) for one in read_public_voices().values()]
    files = list_voice_files(studio.own_voices)
    own = {name: one and (one.language, len(one.speakers)) for name, one in files.items()}
    return {"own": own, "public": public}


@voice_routes.post("/voice-files", status_code=201)
@page_policy(Access.OWNER, UPLOAD_BYTES, RequestClass.LONG, DiskUse.FILL, is_upload=True)
def add_voice_files(
    studio: StudioDep, files: Annotated[list[UploadFile], File(max_length=10)]
) -> list[str]:
    """Add a voice, with all its files; the presets that there are now."""
    return studio.add_own_voices({PurePath(one.filename or "x").name: one.file for one in files})


@voice_routes.post("/projects/{project_id}/try")
@page_policy(Access.GUEST, disk=DiskUse.FILL)
async def try_engine(
    studio: StudioDep, project: Project, body: TryBody, request: Request
) -> Response:
    """Speak a sentence by an engine in the voice of a speaker of the project."""
    saying = studio.previews.speak_as(project.cast, body.speaker, body.text, body.engine)
    return wav_answer(await unless_gone(request, saying))


class CharacterAuditionBody(RequestBody):
    """A line of a character, and the voice that is to say it."""

    speaker: str = Field(max_length=200)
    voice: str = Field(max_length=400, description="The key of a voice, as the list has it.")
    text: str = Field(max_length=MAX_PREVIEW_CHARS)
    language: str | None = Field(None, max_length=100)


@voice_routes.get("/projects/{project_id}/voices")
@page_policy(Access.GUEST)
def list_voices(
    studio: StudioDep, project: Project, speaker: Annotated[str, Query(max_length=200)]
) -> dict[str, Any]:
    """List every voice that a character could have, and the engines that speak them."""
    backends = list(studio.backends().values())
    return {
        "engine": project.backend.name,
        "engines": list(map(asdict, studio.auditions.list_engines(backends))),
        "voices": list(map(asdict, studio.auditions.list_voices(project, speaker, backends))),
    }


@voice_routes.post("/projects/{project_id}/audition")
@page_policy(Access.GUEST, disk=DiskUse.FILL)
async def audition(
    studio: StudioDep, project: Project, body: CharacterAuditionBody, request: Request
) -> Response:
    """Say a line of a character by a voice that it could have; nothing is kept."""
    sentence = Sentence(body.text, language=body.language)
    saying = studio.auditions.say(project, body.speaker, body.voice, sentence)
    return wav_answer(await unless_gone(request, saying))


@voice_routes.post("/projects/{project_id}/lines/{line_id}/patch")
@page_policy(Access.GUEST, disk=DiskUse.FILL)
async def say_again(
    studio: StudioDep, project: Project, line_id: str, body: PatchBody, request: Request
) -> dict[str, Any]:
    """Say words of a ready line again, and lay them into a new take of it, which is chosen.

    Nothing but these words is new; the take's `patch` says which samples. One with an `edit_id` can
    be withdrawn.
    """
    marked = (body.start, body.end)
    author = body.author(group=body.edit_id)
    saying = studio.patches.say_again(project, line_id, marked, author)
    return edit_body(project, await unless_gone(request, saying))


class RecordingQuery(AuthorBody):
    """Whether a recording is changed to the voice of its line's speaker."""

    acted: bool = False


@voice_routes.post("/projects/{project_id}/lines/{line_id}/recording", status_code=201)
@upload_policy()
async def record(
    studio: StudioDep,
    project: Project,
    line_id: str,
    query: Annotated[RecordingQuery, Query()],
    request: Request,
) -> dict[str, Any]:
    """Make a take of a recording, which is the body, and choose it.

    No engine makes such a take again: its `source` says that it was recorded. One with an `edit_id`
    can be withdrawn.
    """
    author = query.author(group=query.edit_id)
    async with receive(request, studio) as path:
        work = studio.recordings.add(project, line_id, path, author, acted=query.acted)
        return edit_body(project, await unless_gone(request, work))


class WithdrawalQuery(AuthorBody):
    """The id with which a take was asked for."""

    edit_id: str = Field(pattern=MARK)


@voice_routes.delete("/projects/{project_id}/pending-take", status_code=204)
@page_policy(Access.GUEST, disk=DiskUse.EDIT)
def withdraw_take(
    studio: StudioDep, project: Project, query: Annotated[WithdrawalQuery, Query()]
) -> None:
    """Cancel what `record` or `say_again` was asked with this `edit_id`: there is no such take."""
    studio.pending_takes.withdraw(project, query.author(group=query.edit_id))


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
