from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from studio.errors import EngineBusy, StudioError
from studio.server.error_responses import (
    DOCUMENTED,
    answer_error,
    response_for_error,
    speech_error_body,
    status_of,
)
from studio.server.route_table import studio_routes
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp


def client_of(studio: Studio) -> TestClient:
    app = FastAPI(
        routes=studio_routes(lambda _: studio, NothingToSetUp(), guard=lambda: None),
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
    while (state := client.get("/studio/state").json())["model"]["active"]:
        pass  # its speed is measured
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


STATUSES = {
    **{"BadInput": 400, "SettingError": 400, "ScriptError": 400, "AudioRejected": 400},
    **{"SampleRejected": 400, "NameRejected": 400, "NotAllowed": 403, "NotFound": 404},
    **{"Conflict": 409, "SpeakerExists": 409, "ModelInUse": 409, "EditConflict": 409},
    **{"Cancelled": 409, "SpeechFailed": 422, "EngineBusy": 429, "LimitReached": 429},
    **{"OutOfMemory": 500, "ModelUnavailable": 503, "SetupFailed": 503},
    **{"StorageFailed": 503, "NoRoom": 507, "DiskFull": 507},
    **{"FileDamaged": 409, "FormatNewer": 409, "ReadingChanged": 422},
}
TYPES = {
    **{400: "invalid_request_error", 403: "permission_error", 404: "not_found_error"},
    **{409: "conflict_error", 422: "invalid_request_error", 429: "rate_limit_error"},
    **{500: "server_error", 503: "server_error", 507: "server_error"},
}


def test_every_error_has_its_status_and_openais_type() -> None:
    kinds = {kind for kind in leaves(StudioError) if kind.__module__ == "studio.errors"}
    found = {}
    for kind in kinds - {StudioError}:
        error = kind("why", retry_after_s=1) if issubclass(kind, EngineBusy) else kind("why")
        found[kind.__name__] = status_of(error)
        detail = speech_error_body(error)["error"]
        assert detail["type"] == TYPES[status_of(error)], kind
        assert (detail["code"], detail["message"]) == (kind.__name__, str(error))
    assert found == STATUSES


def test_the_document_names_every_status_that_there_is() -> None:
    refusals = {401, 405, 408, 413}  # before any error of the studio
    assert set(DOCUMENTED) == refusals | set(STATUSES.values())


def test_who_comes_back_is_told_when() -> None:
    for wait_s, told in ((0.2, "1"), (2.4, "2"), (300, "300")):
        answer = response_for_error("/studio/projects", EngineBusy("busy", retry_after_s=wait_s))
        assert (answer.status_code, answer.headers["retry-after"]) == (429, told)
