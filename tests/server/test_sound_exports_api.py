"""The routes by which sound becomes a file."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest
import soundfile
from fastapi import FastAPI
from fastapi.testclient import TestClient
from independent_meter import lufs

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.project.session import ProjectSession
from studio.server.error_responses import HANDLERS
from studio.server.route_table import studio_routes
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp

SCRIPT = (
    "Ida: The lamp is still burning, and nobody has climbed the stairs since Tuesday.\n"
    "[pause:500ms]\nTom: Did you really think that I would not notice?"
)
PATIENCE_S = 60


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    app = FastAPI(
        routes=studio_routes(lambda _: studio, NothingToSetUp(), guard=lambda: None),
        exception_handlers=HANDLERS,
    )
    with TestClient(app, base_url="http://testserver/studio/") as client:
        yield client


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    return rendered(studio, "A/B “scene”", SCRIPT)


def rendered(studio: Studio, name: str, script: str) -> ProjectSession:
    session = studio.projects.create(name, read_dialog_text(script).dialog)
    session.render(None)
    deadline = time.monotonic() + PATIENCE_S
    while session.busy:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return session


def finished(client: TestClient, session: ProjectSession, **wish: object) -> dict:
    answer = client.post(f"projects/{session.project_id}/exports", json=wish)
    assert answer.status_code == 201, answer.text
    body, deadline = answer.json(), time.monotonic() + PATIENCE_S
    while body["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.01)
        body = client.get(f"projects/{session.project_id}/exports/{body['export_id']}").json()
    return body


def test_a_file_is_begun_followed_and_fetched(client: TestClient, session: ProjectSession) -> None:
    body = finished(client, session, format="flac", loudness="podcast", even_voices=True)
    assert (body["state"], body["share"], body["message"]) == ("done", 1.0, None)
    at = f"projects/{session.project_id}/exports/{body['export_id']}"
    file = client.get(f"{at}/file")
    assert file.headers["content-disposition"].endswith("A%2FB%20%E2%80%9Cscene%E2%80%9D.flac")
    samples, rate_hz = soundfile.read(io.BytesIO(file.content))
    found = lufs(samples, rate_hz)
    assert found == pytest.approx(-16, abs=0.5)
    assert body["measured"]["loudness_lufs"] == pytest.approx(found, abs=0.2)
    assert body["measured"]["true_peak_db"] <= -0.95
    assert client.get(f"{at}/file").content == file.content
    assert client.delete(at).status_code == 204
    assert client.get(at).status_code == client.get(f"{at}/file").status_code == 404


def test_lines_have_the_names_of_another_program(client: TestClient, studio: Studio) -> None:
    script = "[Ida | id:VO_1 | file:barks/a.wav] Halt!\n[Tom | id:VO_2 | file:barks/a.wav] Who?"
    session = rendered(studio, "Game", script)
    for names, wanted in (
        ("{id}", ["VO_1.wav", "VO_2.wav"]),
        ("{file}", ["barks/a.wav", "barks/a-2.wav"]),
    ):
        body = finished(client, session, format="zip", names=names)
        at = f"projects/{session.project_id}/exports/{body['export_id']}/file"
        with zipfile.ZipFile(io.BytesIO(client.get(at).content)) as archive:
            assert archive.namelist() == ["scene.wav", *wanted, "manifest.json"]
    assert body["measured"]["remarks"] == [
        "Two files would be “barks/a.wav”; one is saved as “barks/a-2.wav”."
    ]


def test_tracks_come_as_a_zip(client: TestClient, session: ProjectSession) -> None:
    body = finished(client, session, format="tracks")
    file = client.get(f"projects/{session.project_id}/exports/{body['export_id']}/file")
    assert file.headers["content-disposition"].endswith("tracks.zip")
    names = zipfile.ZipFile(io.BytesIO(file.content)).namelist()
    assert names == ["01-Ida.wav", "02-Tom.wav", "labels.txt", "scene.rpp"]


def test_an_audiobook_is_told_whether_it_passes(
    client: TestClient, session: ProjectSession
) -> None:
    body = finished(client, session, loudness="audiobook")
    assert -23 <= body["measured"]["rms_db"] <= -18
    assert body["measured"]["peak_db"] <= -3
    assert body["measured"]["remarks"] == ["It keeps ACX’s limits of level, peak and noise."]


@pytest.mark.parametrize(
    "wish",
    [
        {"loudness": "loud"},
        {"loudness": -31},
        {"loudness": -8.5},
        {"loudness": "-16"},
        {"loudness": True},
        {"loudness": None},
        {"even_voices": "yes"},
        {"format": "ogg"},
        {"format": "../wav"},
        {"colour": "red"},
    ],
)
def test_a_wish_that_is_none_is_refused(
    client: TestClient, session: ProjectSession, wish: dict[str, object]
) -> None:
    answer = client.post(f"projects/{session.project_id}/exports", json=wish)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


def test_without_sound_there_is_nothing_to_make(client: TestClient, studio: Studio) -> None:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    answer = client.post(f"projects/{session.project_id}/exports", json={})
    assert answer.status_code == 409
    assert "Generate all" in answer.json()["error"]["message"]


def test_a_link_to_the_sound_takes_a_level_too(client: TestClient, session: ProjectSession) -> None:
    at = f"projects/{session.project_id}/export?format=wav"
    plain, _ = soundfile.read(io.BytesIO(client.get(at).content))
    loud, rate_hz = soundfile.read(io.BytesIO(client.get(f"{at}&loudness=-20").content))
    assert len(plain) == len(loud)
    assert not np.array_equal(plain, loud)
    assert lufs(loud, rate_hz) == pytest.approx(-20, abs=0.5)
    refused = client.get(f"{at}&loudness=loud")
    assert refused.status_code == 400
    assert "podcast" in refused.json()["error"]["message"]
    tracks = client.get(f"projects/{session.project_id}/export?format=tracks&loudness=podcast")
    assert "scene.rpp" in zipfile.ZipFile(io.BytesIO(tracks.content)).namelist()


def test_where_every_line_failed_there_is_nothing_to_save(
    studio: Studio, client: TestClient
) -> None:
    script = "Ida: [sigh]\n[pause:2s]\nTom: [sigh]"
    silent = studio.projects.create("Silent", read_dialog_text(script).dialog)
    silent.render(None)
    deadline = time.monotonic() + PATIENCE_S
    while silent.busy:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for answer in (
        client.post(f"projects/{silent.project_id}/exports", json={}),
        client.get(f"projects/{silent.project_id}/export?format=wav"),
    ):
        assert answer.status_code == 409, answer.text
        assert "Press Generate all first." in answer.text


def test_podcast_files_come_by_themselves(client: TestClient, session: ProjectSession) -> None:
    at = f"projects/{session.project_id}/export"
    transcript = client.get(at, params={"format": "transcript.json"})
    assert [one["speaker"] for one in transcript.json()["segments"]] == ["Ida", "Tom"]
    refused = client.get(at, params={"format": "chapters.json"})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "Conflict")
    assert "Add a heading" in refused.text
