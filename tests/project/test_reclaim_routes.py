"""The routes by which space is looked at and freed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from project_scenes import IDA, ops, rendered
from scenes import dialog_of

from studio.errors import StudioError
from studio.project.session import ProjectSession
from studio.server.error_responses import answer_error
from studio.server.routes.project_routes import project_audio_routes, project_routes, space_routes
from studio.services.studio import Studio


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    app = FastAPI(exception_handlers={StudioError: answer_error})

    @app.middleware("http")
    async def seated(request, call_next):
        request.state.studio = studio
        return await call_next(request)

    for routes in (project_routes, project_audio_routes, space_routes):
        app.include_router(routes)
    with TestClient(app) as client:
        yield client


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    session = studio.projects.create("<b>Scene</b>", dialog_of(3))
    rendered(session)
    return session


def test_space_is_told_freed_and_told_again(
    client: TestClient, studio: Studio, session: ProjectSession
) -> None:
    first = session.document.order[0]
    (take,) = session.list_takes(first)
    size = session.take_store.get_audio_path(take).stat().st_size
    session.edit(ops({"op": "delete_take", "take_id": take.take_id}), IDA, session.rev)
    removed = studio.projects.duplicate(session.project_id)
    client.delete(f"/studio/projects/{removed.project_id}").raise_for_status()

    held = client.get("/studio/space").json()
    project = {
        "project_id": session.project_id, "name": "<b>Scene</b>", "files": 1, "bytes": size
    }  # fmt: skip
    assert held["takes"] == {"files": 1, "bytes": size}
    assert held["projects"] == [project]
    assert held["trash"]["projects"] == 1
    assert held["bytes"] == size + held["trash"]["bytes"]

    only_takes = client.post("/studio/space/free", json={"trash": False}).json()
    assert only_takes["projects"] == [project]
    assert only_takes["trash"] == {"projects": 0, "bytes": 0}
    freed = client.post("/studio/space/free", json={}).json()
    assert (freed["takes"]["files"], freed["trash"], freed["left"]) == (0, held["trash"], [])
    assert client.get("/studio/space").json()["bytes"] == 0


def test_the_trash_alone_can_be_emptied(client: TestClient, session: ProjectSession) -> None:
    session.edit(ops({"op": "delete", "line_ids": [session.document.order[0]]}), IDA, session.rev)
    freed = client.post("/studio/space/free", json={"takes": False}).json()
    assert freed["bytes"] == 0
    assert client.get("/studio/space").json()["takes"]["files"] == 1
    nobody = client.post("/studio/space/free", json={"project_ids": ["../..", "abc"]}).json()
    assert (nobody["bytes"], nobody["left"]) == (0, [])
    assert client.post("/studio/space/free", json={"all": True}).status_code == 422


def test_a_gone_take_is_shown_and_can_not_be_fetched(
    client: TestClient, session: ProjectSession
) -> None:
    first = session.document.order[0]
    (take,) = session.list_takes(first)
    session.edit(ops({"op": "delete", "line_ids": [first]}), IDA, session.rev)
    client.post("/studio/space/free", json={}).raise_for_status()
    session.undo(IDA, session.rev)
    at = f"/studio/projects/{session.project_id}"
    line = client.get(at).json()["lines"][0]
    assert (line["state"], line["take"], line["samples"]) == ("none", None, None)
    assert (line["chosen"], line["n_takes"]) == (take.take_id, 1)
    (shown,) = client.get(f"{at}/takes/{first}").json()["takes"]
    assert shown["gone"] is True
    assert (shown["text"], shown["seed"]) == (take.text, take.seed)
    answer = client.get(f"{at}/takes/{first}/{take.take_id}/audio.wav")
    assert answer.status_code == 404
    assert "was freed" in answer.json()["error"]["message"]
    assert client.get(f"{at}/takes/{first}/{take.take_id}/peaks").status_code == 404
    assert client.get(f"{at}/peaks?takes={take.take_id}").json() == {"peaks": {}}
    rendered(session)
    (shown,) = client.get(f"{at}/takes/{first}").json()["takes"]
    assert (shown["gone"], shown["take_id"]) == (False, take.take_id)
    assert client.get(f"{at}/takes/{first}/{take.take_id}/audio.wav").status_code == 200


def test_all_that_can_be_freed_is_freed_unless_a_program_says_otherwise(
    client: TestClient, session: ProjectSession
) -> None:
    copy = client.post("/studio/projects", json={"like": session.project_id}).json()
    client.delete(f"/studio/projects/{copy['project_id']}").raise_for_status()
    client.post("/studio/space/free", json={"trash": False}).raise_for_status()
    assert client.get("/studio/space").json()["trash"]["projects"] == 1
    client.post("/studio/space/free", json={}).raise_for_status()
    assert client.get("/studio/space").json()["trash"]["projects"] == 0
