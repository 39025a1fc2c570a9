from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from studio.errors import EngineBusy, StudioError
from studio.server.error_responses import answer_error, status_of
from studio.server.route_table import studio_routes
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp


def client_of(studio: Studio) -> TestClient:
    assets = Path(__file__).parents[2] / "assets"
    app = FastAPI(
        routes=studio_routes(lambda _: studio, NothingToSetUp(), guard=lambda: None, assets=assets),
        exception_handlers={StudioError: answer_error},
    )
    return TestClient(app)


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with client_of(studio) as client:
        yield client


@pytest.mark.parametrize("path", ["/studio/speakers/0/sample.wav", "/studio/assets/../launch.py"])
def test_what_is_not_there_is_404(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_model_is_loaded_unloaded_and_counted(client: TestClient) -> None:
    assert client.post("/studio/model/load").json()["state"] == "loaded"
    state = client.get("/studio/state").json()
    assert state["model"]["unload_in_s"] == pytest.approx(900, abs=60)
    assert state["model"]["memory_bytes"] > 0
    assert client.post("/studio/model/timeout", json={"seconds": 0}).json()["unload_in_s"] is None
    assert client.post("/studio/model/unload").json()["state"] == "unloaded"
    assert client.post("/studio/model/timeout", json={"seconds": -1}).status_code == 422


def test_memory_before_and_after_a_load_is_told(client: TestClient) -> None:
    assert client.get("/studio/state").json()["model"]["memory_before"] is None
    loaded = client.post("/studio/model/load").json()
    assert loaded["memory_before"]["resident_bytes"] > 0
    assert loaded["memory_after"]["device_bytes"] is None


def test_stopping_a_load_that_is_none_changes_nothing(client: TestClient) -> None:
    assert client.post("/studio/model/cancel").json()["state"] == "unloaded"
    client.post("/studio/model/load")
    assert client.post("/studio/model/cancel").json()["state"] == "loaded"


def test_a_backend_is_chosen_by_name(client: TestClient) -> None:
    assert client.post("/studio/backend", json={"name": "draft"}).status_code == 200
    refused = client.post("/studio/backend", json={"name": "nobody"})
    assert refused.status_code == 400
    assert "draft" in refused.json()["error"]["message"]
    assert client.get("/studio/state").json()["backend"]["name"] == "draft"


def test_the_state_tells_of_every_backend_what_it_lacks(client: TestClient) -> None:
    (draft,) = client.get("/studio/state").json()["backends"]
    assert draft["name"] == "draft"
    assert draft["reason"] is draft["to_fetch"] is None


def test_the_state_names_what_the_page_shows(client: TestClient, studio: Studio) -> None:
    studio.speakers.add("Ida")
    state = client.get("/studio/state").json()
    assert state["backend"]["name"] == "draft"
    assert {param["name"] for param in state["backend"]["params"]} >= {"speed", "pitch"}
    assert state["engine"] == {
        "in_flight": 0,
        "queued": 0,
        "max_concurrency": 3,
        "slots": None,
        "usable_slots": None,
    }
    assert [speaker["name"] for speaker in state["speakers"]] == ["Ida"]


def test_a_speaker_is_renamed_recoloured_and_removed(client: TestClient, studio: Studio) -> None:
    speaker_id = studio.speakers.add("Ida").speaker_id
    path = f"/studio/speakers/{speaker_id}"
    assert client.patch(path, json={"name": "Ada", "colour": "#112233"}).status_code == 200
    assert studio.speakers.get("ada").colour == "#112233"
    studio.speakers.add("Tom")
    assert client.patch(path, json={"name": "TOM"}).status_code == 409
    assert client.patch(path, json={"colour": "red; }"}).status_code == 422
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404


def leaves(kind: type[StudioError]) -> Iterator[type[StudioError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from leaves(child)


def test_every_error_has_a_status_of_its_own_kind() -> None:
    for kind in set(leaves(StudioError)) - {StudioError}:
        is_busy = issubclass(kind, EngineBusy)
        error = kind("busy", retry_after_s=1) if is_busy else kind("why")
        assert 400 <= status_of(error) < 600
        assert any(issubclass(kind, known) for known, _ in _table()), kind


def _table() -> tuple[tuple[type[StudioError], int], ...]:
    from studio.server import error_responses

    return error_responses._STATUS
