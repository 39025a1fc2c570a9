from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile
from fastapi import FastAPI
from fastapi.testclient import TestClient
from scenes import OpenStudio

from studio.api.errors import answer_error, status_of
from studio.api.routes import studio_routes
from studio.audio.clip import STUDIO_RATE_HZ
from studio.errors import EngineBusy, StudioError
from studio.service import Studio
from studio.setup_report import NothingToSetUp

SCRIPT = "Ida: Good evening.\n[pause:500ms]\nTom: Is it?\nIda:\nTom: Well."


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


def follow(client: TestClient, job_id: str, since: int = 0) -> list[dict[str, Any]]:
    with client.stream("GET", f"/studio/jobs/{job_id}/events?since={since}") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return [
            json.loads(line.removeprefix("data:"))
            for line in answer.iter_lines()
            if line.startswith("data:")
        ]


def rendered(client: TestClient, text: str = SCRIPT) -> dict[str, Any]:
    answer = client.post("/studio/jobs", json={"text": text})
    assert answer.status_code == 201
    follow(client, answer.json()["job_id"])
    return client.get(f"/studio/jobs/{answer.json()['job_id']}").json()


def test_a_script_comes_back_as_lines_notices_and_speakers(client: TestClient) -> None:
    body = client.post("/studio/script", json={"text": SCRIPT + "\nTOM: [shrug] Hm."}).json()
    assert [line["kind"] for line in body["lines"]][:3] == ["speech", "silence", "speech"]
    assert body["lines"][1]["duration_s"] == 0.5
    assert [(speaker["name"], speaker["lines"]) for speaker in body["speakers"]] == [
        ("Ida", 2),
        ("Tom", 3),
    ]
    assert all(speaker["colour"].startswith("#") for speaker in body["speakers"])
    assert any("TOM" in notice["message"] for notice in body["notices"])
    assert body["error"] is None


def test_a_script_that_is_no_dialog_says_where(client: TestClient) -> None:
    body = client.post("/studio/script", json={"text": "Ida: Hi.\nTom: [pause:10h] Well."}).json()
    assert body["error"]["line"] == 2
    assert body["lines"] == []
    refused = client.post("/studio/jobs", json={"text": "no dialog at all"})
    assert refused.status_code == 400
    assert refused.json()["error"]["kind"] == "ScriptError"


def test_a_script_of_10_mb_is_refused_with_the_limit(client: TestClient) -> None:
    text = "Ida: Hello there.\n" * 600_000
    error = client.post("/studio/script", json={"text": text}).json()["error"]
    assert "at most 5 MB" in error["message"]
    assert client.post("/studio/jobs", json={"text": text}).status_code == 400


def test_a_job_is_watched_heard_and_taken_home(client: TestClient) -> None:
    job = rendered(client)
    assert job["state"] == "done"
    assert [segment["state"] for segment in job["segments"]] == [
        "saved",
        "saved",
        "saved",
        "failed",
        "saved",
    ]
    assert job["segments"][3]["line_number"] == 4
    assert job["summary"]["failed"] == 1
    heard = b""
    for segment in job["segments"]:
        answer = client.get(f"/studio/jobs/{job['job_id']}/segments/{segment['segment_idx']}/audio")
        if segment["state"] == "failed":
            assert answer.status_code == 500
            continue
        assert answer.headers["x-sample-rate"] == str(STUDIO_RATE_HZ)
        assert len(answer.content) == 2 * segment["samples"]
        heard += answer.content
    wav = client.get(f"/studio/jobs/{job['job_id']}/export?format=wav")
    samples, rate_hz = soundfile.read(io.BytesIO(wav.content), dtype="int16")
    assert rate_hz == STUDIO_RATE_HZ
    assert samples.tobytes() == heard
    assert "attachment" in wav.headers["content-disposition"]


@pytest.mark.parametrize("suffix", ["flac", "mp3"])
def test_other_formats_last_as_long(client: TestClient, suffix: str) -> None:
    job = rendered(client)
    answer = client.get(f"/studio/jobs/{job['job_id']}/export?format={suffix}")
    samples, _ = soundfile.read(io.BytesIO(answer.content))
    assert len(samples) == round(job["summary"]["audio_s"] * STUDIO_RATE_HZ)


def test_the_zip_holds_segments_scene_and_manifest(client: TestClient) -> None:
    job = rendered(client)
    answer = client.get(f"/studio/jobs/{job['job_id']}/export?format=zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read("manifest.json"))
    assert "scene.wav" in names
    assert sum(name.endswith(".wav") for name in names) == 1 + 3
    assert [segment["type"] for segment in manifest["segments"]].count("failed") == 1


def test_events_continue_from_where_a_page_left(client: TestClient) -> None:
    job = rendered(client)
    events = follow(client, job["job_id"])
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert follow(client, job["job_id"], since=len(events) - 2) == events[-2:]
    assert events[-1] == {
        "seq": len(events),
        "type": "job",
        "state": "done",
        "summary": job["summary"],
    }


def test_what_is_not_there_is_404(client: TestClient) -> None:
    job = rendered(client)
    for path in (
        "/studio/jobs/nothing",
        "/studio/jobs/nothing/export",
        f"/studio/jobs/{job['job_id']}/segments/99/audio",
        "/studio/speakers/nobody/sample.wav",
        "/studio/assets/../launch.py",
    ):
        assert client.get(path).status_code == 404, path


def test_cancel_and_focus(client: TestClient) -> None:
    text = "\n".join(f"Ida: This is line {number} of a long scene." for number in range(400))
    job = client.post("/studio/jobs", json={"text": text}).json()
    assert (
        client.post(f"/studio/jobs/{job['job_id']}/focus", json={"segment_idx": 300}).status_code
        == 204
    )
    cancelled = client.post(f"/studio/jobs/{job['job_id']}/cancel").json()
    follow(client, job["job_id"])
    states = {segment["state"] for segment in cancelled["segments"]}
    assert "cancelled" in states
    assert "queued" not in states


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
    assert state["engine"] == {"in_flight": 0, "queued": 0, "max_concurrency": 3}
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


def test_a_name_may_be_given_another_speakers_voice(client: TestClient, studio: Studio) -> None:
    tom = studio.speakers.add("Tom").speaker_id
    heard = {}
    for name, voices in (("Tom", {}), ("Ida", {"ida": tom}), ("Ben", {})):
        body = {"text": f"{name}: Good evening.", "voices": voices}
        job_id = client.post("/studio/jobs", json=body).json()["job_id"]
        follow(client, job_id)
        heard[name] = client.get(f"/studio/jobs/{job_id}/segments/0/audio").content
    assert heard["Ida"] == heard["Tom"]
    assert heard["Ben"] != heard["Tom"]


def test_a_full_queue_says_when_to_come_back(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.jobs.MAX_QUEUED_SEGMENTS", 0)
    with client_of(open_studio()) as client:
        answer = client.post("/studio/jobs", json={"text": SCRIPT})
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "60"


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
    from studio.api import errors

    return errors._STATUS
