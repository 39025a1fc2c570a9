"""A dialog has at most 5,000 speakers, by whatever door; a project that has more stays open."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from speech_client import app_of

from studio.server.error_responses import HANDLERS
from studio.server.route_table import studio_routes
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp

MOST = 5_000


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    app = FastAPI(
        routes=[
            *studio_routes(lambda _: studio, NothingToSetUp(), guard=lambda: None),
            *app_of(studio).routes,
        ],
        exception_handlers=HANDLERS,
    )
    with TestClient(app) as client:
        yield client


def script_of(speakers: int) -> str:
    return "\n".join(f"Person {number}: Yes." for number in range(speakers))


def created(client: TestClient, speakers: int) -> dict[str, Any]:
    body = {"name": "Crowd", "text": script_of(speakers)}
    return client.post("/studio/projects", json=body).raise_for_status().json()


def edit(client: TestClient, project: dict[str, Any], **op: Any) -> httpx.Response:
    body = {"base_rev": 0, "client": "page-1", "ops": [op]}
    return client.post(f"/studio/projects/{project['project_id']}/edits", json=body)


def insert(client: TestClient, project: dict[str, Any], speaker: str) -> httpx.Response:
    line = {"line_id": secrets.token_hex(6), "speaker": speaker, "text": "Me too."}
    return edit(client, project, op="insert", after=None, lines=[line])


def rewrite(client: TestClient, project: dict[str, Any], text: str) -> httpx.Response:
    rev = client.get(f"/studio/projects/{project['project_id']}").json()["rev"]
    body = {"base_rev": rev, "client": "page-1", "text": text}
    return client.put(f"/studio/projects/{project['project_id']}/script", json=body)


def assert_refused(answer: httpx.Response) -> None:
    assert answer.status_code == 400, answer.text
    assert "at most 5,000 speakers. Divide it into parts." in answer.text


def test_no_door_lets_more_in(client: TestClient) -> None:
    project = created(client, MOST)
    crowd = script_of(MOST + 1)
    assert_refused(client.post("/studio/projects", json={"text": crowd}))
    assert_refused(client.post("/studio/projects/import?name=a.txt", content=crowd))
    assert_refused(rewrite(client, project, crowd))
    assert_refused(insert(client, project, "Newcomer"))
    assert_refused(client.post("/v1/dialogs", json={"input": crowd}))
    assert insert(client, project, "PERSON 7").status_code == 200
    someone = [project["lines"][0]["line_id"]]
    other = edit(client, project, op="set", line_ids=someone, fields={"speaker": "Newcomer"})
    assert other.status_code == 200


def test_a_project_that_has_more_can_be_edited_but_gets_no_further_one(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("studio.project.draft.MAX_SPEAKERS", MOST + 2)
        project = created(client, MOST + 2)
    assert len(project["speakers"]) == MOST + 2
    first, second = (line["line_id"] for line in project["lines"][:2])
    typed = edit(client, project, op="set", line_ids=[first], fields={"text": "No."})
    assert typed.status_code == 200
    assert insert(client, project, "Person 7").status_code == 200
    assert_refused(insert(client, project, "Newcomer"))
    assert edit(client, project, op="delete", line_ids=[second]).status_code == 200
    assert_refused(insert(client, project, "Newcomer"))
    text = client.get(f"/studio/projects/{project['project_id']}/script").json()["text"]
    assert rewrite(client, project, text.replace("No.", "Well.")).status_code == 200
