from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gated import GatedDraft
from prometheus_client.parser import text_string_to_metric_families
from scenes import OpenStudio, dialog_of, finish

from studio.backends.base import Health
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.model import Dialog, Speech
from studio.engine.event_log import StateChange
from studio.server.route_table import service_routes
from studio.server.routes.monitoring import Metrics, health_routes
from studio.server.routes.state_feed import StateReader
from studio.services.studio import Studio


def client_of(studio: Studio) -> TestClient:
    return TestClient(FastAPI(routes=service_routes(studio, lambda _: studio, guard=lambda: None)))


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with client_of(studio) as client:
        yield client


def figures(client: TestClient) -> dict[str, float]:
    """All samples, by name and labels."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        sample.name + "".join(f"/{value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_a_studio_that_works_is_ready(client: TestClient) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json()["ready"] is answer.json()["alive"] is True
    assert client.get("/healthz/live").json() == {"alive": True}


def test_a_stuck_engine_is_alive_and_not_ready(client: TestClient, studio: Studio) -> None:
    is_stuck, may_go_on = threading.Event(), threading.Event()

    def hold() -> None:
        is_stuck.set()
        may_go_on.wait()

    holder = threading.Thread(target=lambda: studio.engine._loop.call(hold))
    holder.start()
    try:
        assert is_stuck.wait(60)
        answer = client.get("/healthz")
        assert answer.status_code == 503
        assert answer.json()["alive"] is True
        assert answer.json()["ready"] is False
        assert "restart" in answer.json()["reason"]
        assert client.get("/healthz/live").status_code == 200
    finally:
        may_go_on.set()
        holder.join()
    assert client.get("/healthz").status_code == 200


def test_a_dead_engine_is_not_ready(client: TestClient, studio: Studio) -> None:
    loop = studio.engine._loop
    loop._loop.call_soon_threadsafe(loop._loop.stop)
    loop._thread.join()
    assert client.get("/healthz").status_code == 503
    # So that the studio can be closed as usual.
    loop._thread = threading.Thread(target=loop._run, daemon=True)
    loop._thread.start()


def test_an_engine_that_was_never_started_is_not_ready(tmp_path) -> None:
    from studio.backends.registry import create
    from studio.services.studio import StudioOptions

    studio = Studio.open(StudioOptions(tmp_path / "workspace", "draft"), create)
    with TestClient(FastAPI(routes=health_routes(studio).routes)) as client:
        assert client.get("/healthz").json()["ready"] is False


class Threaded(DraftBackend):
    """The draft voice, saying of a thread that it doesn't have what a test wants said."""

    now = Health()

    def health(self) -> Health:
        return self.now


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (Health(), None),
        (Health(last_step_age_s=900.0), None),  # nothing to do
        (Health(last_step_age_s=0.1, running=3), None),
        (Health(alive=False), "threads of draft have ended"),
        (Health(last_step_age_s=90.0, running=3), "no step for 90 s"),
    ],
)
def test_a_backend_whose_thread_is_dead_or_stuck_is_not_ready(
    open_studio: OpenStudio, now: Health, reason: str | None
) -> None:
    backend = Threaded()
    studio = open_studio(backend)
    backend.now = now
    with client_of(studio) as client:
        assert client.get("/healthz").status_code == 200, "nothing is loaded"
        studio.engine.load(studio.backend_name)
        answer = client.get("/healthz")
        assert answer.status_code == (503 if reason else 200)
        assert (reason or "") in (answer.json()["reason"] or "")
        assert figures(client)["tableread_slots_running/draft"] == now.running


def test_the_width_of_a_batched_engine_is_given(open_studio: OpenStudio) -> None:
    backend = Threaded()
    studio = open_studio(backend)
    with client_of(studio) as client:
        answer = client.get("/healthz").json()
        assert (answer["slots"], answer["max_slots"]) == (None, None), "nothing is loaded"
        studio.engine.load(studio.backend_name)
        for slots in (8, 1):
            backend.now = Health(slots=slots, max_slots=8)
            answer = client.get("/healthz").json()
            assert (answer["slots"], answer["max_slots"], answer["ready"]) == (slots, 8, True)
            assert figures(client)["tableread_slots_usable/draft"] == slots
            assert figures(client)["tableread_slots_most/draft"] == 8
            engine = StateReader(None, list).read(studio, {StateChange.WORK})["engine"]
            assert engine["usable_slots"] == slots


def test_a_line_that_never_ends_makes_it_not_ready(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = GatedDraft()
    studio = open_studio(backend)
    with client_of(studio) as client:
        job = studio.render(dialog_of(1))
        while not backend.in_speak:
            assert not job.events.closed
        assert client.get("/healthz").status_code == 200  # it may take its time
        monkeypatch.setattr("studio.server.routes.monitoring._SILENT_S", 0.0)
        answer = client.get("/healthz")
        assert answer.status_code == 503
        assert "without a sound" in answer.json()["reason"]
        assert client.get("/healthz/live").status_code == 200
        backend.let_through(1)
        finish(job)
        assert client.get("/healthz").status_code == 200


def test_what_jobs_did_is_counted(client: TestClient, studio: Studio) -> None:
    before = figures(client)
    assert before["tableread_audio_seconds_total"] == 0
    dialog = Dialog((*dialog_of(3).lines, Speech("Ida", "", line_number=4)))
    job = studio.render(dialog)
    finish(job)
    after = figures(client)
    assert after["tableread_segments_total/saved"] == 3
    assert after["tableread_segments_total/failed"] == 1
    assert after["tableread_failures_total/BadInput"] == 1
    assert after["tableread_audio_seconds_total"] == pytest.approx(job.summarize().audio_s)
    assert after["tableread_first_audio_seconds_count"] == 1
    assert after["tableread_job_seconds_count"] == 1
    assert figures(client)["tableread_segments_total/saved"] == 3  # once, however often asked


def test_the_models_and_the_queue_are_told(client: TestClient, studio: Studio) -> None:
    studio.engine.load(studio.backend_name)
    loaded = figures(client)
    assert loaded["tableread_model_loaded/draft"] == 1
    assert loaded["tableread_model_loads_total/draft"] == 1
    assert loaded["tableread_model_slots/draft"] == 3
    assert loaded["tableread_in_flight"] == loaded["tableread_queued"] == 0
    resident = "tableread_model_resident_seconds_total/draft"
    assert 0 < loaded[resident] < figures(client)[resident], "it grows while the model is loaded"
    studio.engine.unload(studio.backend_name)
    unloaded = figures(client)
    assert unloaded["tableread_model_loaded/draft"] == 0
    assert unloaded["tableread_model_unloads_total/draft"] == 1
    assert unloaded["tableread_model_resident_seconds_total/draft"] > 0


def test_two_studios_keep_their_figures_apart(studio: Studio, open_studio) -> None:
    other = open_studio()
    with client_of(studio) as first, client_of(other) as second:
        finish(studio.render(dialog_of(1)))
        assert figures(first)["tableread_job_seconds_count"] == 1
        assert figures(second)["tableread_job_seconds_count"] == 0


def test_times_are_counted_in_the_steps_that_dashboards_know(studio: Studio) -> None:
    steps = ["0.05", "0.1", "0.25", "0.5", "1.0", "2.0", "5.0", "10.0", "30.0", "60.0", "300.0"]
    families = text_string_to_metric_families(Metrics(studio).text().decode())
    found = {
        family.name: [one.labels["le"] for one in family.samples if "le" in one.labels]
        for family in families
        if family.type == "histogram"
    }
    assert found == {
        "tableread_first_audio_seconds": [*steps, "+Inf"],
        "tableread_job_seconds": [*steps, "+Inf"],
    }
