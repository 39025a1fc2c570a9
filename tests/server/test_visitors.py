"""Desks over HTTP: cookies that last, programs without any, and what a visitor may not have."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import pytest
from shared_studio import app_of_front, front_of, visitor_of
from starlette.requests import HTTPConnection

from studio.server.middleware.visitors import COOKIE, token_of
from studio.services.studio import Studio
from studio.sharing.quota import VisitLimits

pytestmark = pytest.mark.slow

DIALOG = {"input": "Ida: Good evening."}


def folders(studio: Studio) -> list[Path]:
    return sorted((studio.options.workspace / "visitors").glob("*"))


def test_the_cookie_is_sent_again_every_day(studio: Studio) -> None:
    front = front_of(studio)
    client = visitor_of(app_of_front(front))
    first = client.get("/").headers["set-cookie"]
    assert "Max-Age=2592000" in first
    assert "set-cookie" not in client.get("/studio/projects").headers
    front.sessions.find(client.cookies[COOKIE]).cookie_sent_s -= 24 * 3_600
    assert client.get("/studio/projects").headers["set-cookie"] == first
    assert "set-cookie" not in client.get("/studio/projects").headers


def test_it_is_sent_again_by_the_next_studio(studio: Studio) -> None:
    client = visitor_of(app_of_front(front_of(studio)))
    first = client.get("/").headers["set-cookie"]
    made = client.post("/studio/projects", json={"name": "Mine"})
    assert made.status_code == 201
    later = visitor_of(app_of_front(front_of(studio)), **{COOKIE: client.cookies[COOKIE]})
    answer = later.get("/studio/projects")
    assert [one["name"] for one in answer.json()] == ["Mine"]
    assert answer.headers["set-cookie"] == first


@pytest.mark.parametrize(
    "beside", ['prefs={"a":1}', "a[b]=1", "a@b=1", "a=b c", 'x="', "", "=", "a;b", "é=1"]
)
def test_a_cookie_is_found_beside_odd_ones(beside: str) -> None:
    for text in (f"{beside}; {COOKIE}=abc", f"{COOKIE}=abc; {beside}"):
        headers = [(b"cookie", text.encode("latin-1"))]
        assert token_of(HTTPConnection({"type": "http", "headers": headers})) == "abc"


def test_programs_without_a_cookie_share_a_desk_and_find_what_they_made(studio: Studio) -> None:
    app = app_of_front(front_of(studio, VisitLimits(visitors=3)))
    for _ in range(10):
        program = visitor_of(app)
        answer = program.post("/v1/dialogs", json=DIALOG)
        assert answer.status_code == 201
        assert "set-cookie" not in answer.headers
        dialog_id = answer.json()["id"]
        assert visitor_of(app).get(f"/v1/dialogs/{dialog_id}").status_code == 200
    assert len(folders(studio)) == 1
    assert visitor_of(app).get("/").status_code == 200  # they keep nobody out


def test_programs_without_a_cookie_share_an_allowance_told_in_openais_shape(
    studio: Studio,
) -> None:
    app = app_of_front(front_of(studio, VisitLimits(requests_a_minute=5)))
    answers = [visitor_of(app).get("/v1/models") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    error = answers[-1].json()["error"]
    assert error["type"] == "rate_limit_error"
    assert set(error) == {"message", "type", "param", "code"}
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_a_new_cookie_is_no_new_allowance(studio: Studio) -> None:
    app = app_of_front(front_of(studio, VisitLimits(requests_a_minute=5)))
    codes = [visitor_of(app).get("/studio/projects").status_code for _ in range(7)]
    assert codes == [200] * 5 + [429] * 2


def test_a_wrong_key_is_told_as_openai_tells_it(studio: Studio) -> None:
    client = visitor_of(app_of_front(front_of(studio, key="sk-owner")))
    assert client.get("/v1/models", headers={"Authorization": "Bearer no"}).status_code == 200
    assert client.get("/metrics").status_code == 403


def test_a_full_workspace_takes_nothing_more_and_gives_back(studio: Studio) -> None:
    limits = VisitLimits(workspace_bytes=200_000)
    front = front_of(studio, limits)
    client = visitor_of(app_of_front(front))
    client.get("/")
    big = {"name": "Big", "text": "Ida: " + "so it is and so it goes " * 2_000}
    made = client.post("/studio/projects", json=big)
    assert made.status_code == 201, made.text
    project = made.json()["project_id"]
    answers = [client.post("/studio/projects", json={"like": project}) for _ in range(8)]
    assert {answer.status_code for answer in answers} == {201, 507}
    error = answers[-1].json()["error"]
    assert error["kind"] == "NoRoom"
    assert "Delete projects" in error["message"]
    assert client.get("/studio/projects").status_code == 200
    for one in client.get("/studio/projects").json():
        assert client.delete(f"/studio/projects/{one['project_id']}").status_code == 204
    assert client.post("/studio/projects", json=big).status_code == 507  # it lies in the trash
    assert client.post("/studio/space/free", json={"trash": True}).status_code == 200
    assert client.post("/studio/projects", json=big).status_code == 201
    size_bytes = sum(file.stat().st_size for file in folders(studio)[0].rglob("*.json*"))
    assert size_bytes < 2 * limits.workspace_bytes


def test_a_full_workspace_takes_no_body_that_would_not_fit(studio: Studio) -> None:
    client = visitor_of(app_of_front(front_of(studio, VisitLimits(workspace_bytes=100_000))))
    client.get("/")
    answer = client.post("/studio/uploads", content=bytes(200_000))
    assert answer.status_code == 507
    speech = client.post("/v1/audio/speech", json={"input": "a", "ref_audio": "x" * 200_000})
    assert speech.status_code == 507
    assert speech.json()["error"]["type"] == "server_error"


def test_a_recording_in_a_request_is_an_upload(studio: Studio) -> None:
    client = visitor_of(app_of_front(front_of(studio, VisitLimits(uploads_an_hour=1))))
    body = {"input": "Good evening.", "ref_audio": "data:audio/wav;base64,UklGRg=="}
    assert client.post("/v1/audio/speech", json=body).status_code == 400
    refused = client.post("/v1/audio/speech", json=body)
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "LimitReached"
    assert client.post("/v1/audio/speech", json={"input": "Good evening."}).status_code == 200


def test_a_file_that_is_sent_is_an_upload(studio: Studio) -> None:
    client = visitor_of(app_of_front(front_of(studio, VisitLimits(uploads_an_hour=2))))
    client.get("/")
    assert client.get("/studio/projects").status_code == 200  # the cookie came back
    codes = [client.post("/studio/uploads", content=b"RIFF").status_code for _ in range(3)]
    assert codes == [400, 400, 429], "no recordings, but they were sent"
    assert client.get("/studio/projects").status_code == 200


def test_each_voice_of_a_project_file_is_an_upload(studio: Studio) -> None:
    client = visitor_of(app_of_front(front_of(studio, VisitLimits(uploads_an_hour=6))))
    client.get("/")
    assert client.get("/studio/projects").status_code == 200  # the cookie came back

    def bring(voices: int) -> int:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("project.json", "{}")
            for number in range(voices):
                archive.writestr(f"voices/{number:012x}.voice.zip", b"")
        return client.post("/studio/projects/import", content=file.getvalue()).status_code

    assert [bring(3), bring(2), bring(0)] == [400, 429, 400]  # each file is an upload, too


def test_a_render_beyond_the_allowance_stops_and_says_so(studio: Studio) -> None:
    client = visitor_of(app_of_front(front_of(studio, VisitLimits(lines_an_hour=3))))
    client.get("/")
    script = "\n".join(f"Ida: This is line {line}." for line in range(8))
    project = client.post("/studio/projects", json={"text": script}).json()
    at = f"/studio/projects/{project['project_id']}"
    for line in project["lines"][:3]:
        assert client.post(f"{at}/render", json={"line_ids": [line["line_id"]]}).status_code == 200
        assert client.get(f"{at}/lines/{line['line_id']}/audio").status_code == 200
    job = client.post(f"{at}/render", json={}).json()
    assert job["state"] == "cancelled"
    assert "more lines than one visitor may have" in job["summary"]["message"]
    assert job["summary"]["failed"] == 0
    lines = client.get(at).json()["lines"]
    assert not [line["message"] for line in lines if line.get("message")]
    # A line whose sound was sent may still be on its way to the disk when the render stops.
    under_way = f"visitors/*/projects/{project['project_id']}/.making/*"
    until_s = time.monotonic() + 60
    while list(studio.options.workspace.glob(under_way)):
        assert time.monotonic() < until_s
        time.sleep(0.02)
