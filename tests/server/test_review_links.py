"""Review links: listen and comment, nothing else, only that project, until the owner ends them."""

from __future__ import annotations

import hashlib
import json
import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from addresses import PAGE_ADDRESSES, REVIEW_ADDRESSES, filled
from serving import serving
from test_sessions import SCRIPT, SIGN_IN, Shared, exported, no_tunnel, sent_to, taken

pytestmark = pytest.mark.slow

OTHER = "Ida: Nobody reviews these words."
WAIT_S = 60
V1_ADDRESSES = (
    ("GET", "/v1/models"),
    ("GET", "/v1/audio/voices"),
    ("POST", "/v1/audio/speech"),
    ("POST", "/v1/dialogs"),
    ("GET", "/v1/dialogs/{dialog_id}"),
    ("GET", "/metrics"),
    ("GET", "/config"),
    ("GET", "/gradio_api/info"),
    ("GET", "/gradio_api/queue/data"),
    ("GET", "/gradio_api/file=spoken/AAAA/dialog.wav"),
    ("POST", "/gradio_api/upload"),
    ("GET", "/gradio_api/mcp/schema"),
    ("POST", "/gradio_api/mcp/"),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Shared]:
    workspace = tmp_path_factory.mktemp("reviewed") / "workspace"
    options = ("--share", "--auth", "ida:the right one")
    with serving(workspace, *options, environ=no_tunnel(), fresh=True) as (client, process):
        yield Shared(str(client.base_url).rstrip("/"), process)


@pytest.fixture(scope="module")
def owner(shared: Shared) -> Iterator[httpx.Client]:
    with shared.owner() as client:
        yield client


@pytest.fixture
def reviewer(shared: Shared) -> Iterator[httpx.Client]:
    """Somebody who never signed in."""
    with httpx.Client(base_url=shared.address, timeout=WAIT_S) as client:
        yield client


def project_of(owner: httpx.Client, text: str = SCRIPT) -> dict[str, Any]:
    return owner.post("/studio/projects", json={"name": "Scene", "text": text}).json()


def rendered(owner: httpx.Client, project: dict[str, Any]) -> str:
    """Render the first line; the id of its take."""
    at, line_id = f"/studio/projects/{project['project_id']}", project["lines"][0]["line_id"]
    assert owner.post(f"{at}/render", json={"line_ids": [line_id]}).status_code == 200
    assert owner.get(f"{at}/lines/{line_id}/audio").status_code == 200
    return taken(owner, f"{at}/takes/{line_id}")


def linked(owner: httpx.Client, project: dict[str, Any]) -> tuple[str, str]:
    """A new link: its id, and where it leads."""
    made = owner.post(f"/studio/projects/{project['project_id']}/reviews")
    assert made.status_code == 201, made.text
    return made.json()["review_id"], "/" + made.json()["path"]


class Stream:
    """Reads a stream in a thread."""

    def __init__(self, client: httpx.Client, path: str) -> None:
        self._came: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._answer = client.stream("GET", path)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(httpx.TransportError), self._answer as answer:
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    self._came.put(json.loads(line.removeprefix("data:")))
        self._came.put(None)

    def next(self) -> dict[str, Any] | None:
        return self._came.get(timeout=WAIT_S)


def test_a_reviewer_listens_and_comments(shared, owner, reviewer) -> None:
    project = project_of(owner)
    take_id = rendered(owner, project)
    _, at = linked(owner, project)
    page = reviewer.get(at, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    assert (page.status_code, page.headers["referrer-policy"]) == (200, "no-referrer")
    assert "set-cookie" not in page.headers
    seen = reviewer.get(f"{at}/project").json()
    assert seen.keys() == {"name", "seq", "colours", "lines", "comments"}
    first, second = seen["lines"]
    sound = {"before_s", "level_db", "pan"}
    assert first.keys() == {"line_id", "kind", "speaker", "text", "take_id", "samples"} | sound
    assert (first["take_id"], second["take_id"]) == (take_id, None), "listening makes nothing"
    sound = reviewer.get(f"{at}/takes/{first['line_id']}/{take_id}.wav")
    assert sound.content[:4] == b"RIFF"
    said = {"line_id": second["line_id"], "author": "Ruth <b>", "text": "<i>Warmer</i>, please."}
    answer = reviewer.post(f"{at}/comments", json=said)
    assert answer.status_code == 201
    (comment,) = owner.get(f"/studio/projects/{project['project_id']}").json()["comments"]
    assert {name: comment[name] for name in said} == said
    assert answer.json()["comments"] == [comment]
    assert not reviewer.cookies


def test_a_reviewer_is_told_how_the_scene_sounds(owner, reviewer) -> None:
    script = "Ida: One.\n[pause:1.5s]\n# note\n[pause:500ms]\nTom: Two.\n## Three\nIda: Four."
    body = {"name": "Scene", "text": script, "gap_s": 0.4}
    project = owner.post("/studio/projects", json=body).json()
    fields = {"level_db": -6, "pan": 0.5, "gap_s": 1.0}
    ops = [{"op": "character", "speaker": "Tom", "fields": fields}]
    edit = {"base_rev": project["rev"], "client": "ida-page", "ops": ops}
    assert owner.post(f"/studio/projects/{project['project_id']}/edits", json=edit).is_success
    _, at = linked(owner, project)
    lines = reviewer.get(f"{at}/project").json()["lines"]
    waits = {line["text"]: line["before_s"] for line in lines if line["kind"] == "speech"}
    assert (waits["One."], waits["Two."]) == (0, 2.0)  # beside a pause there is no gap
    assert 3 * 0.28 <= waits["Four."] <= 3 * 0.52
    tom = next(line for line in lines if line["speaker"] == "Tom")
    assert (tom["level_db"], tom["pan"]) == (-6, 0.5)


def test_the_link_is_listed_without_its_token_and_kept_hashed(shared, owner, reviewer) -> None:
    project = project_of(owner)
    review_id, at = linked(owner, project)
    token = at.rpartition("/")[2]
    assert len(token) >= 32
    path = f"/studio/projects/{project['project_id']}/reviews"
    (listed,) = owner.get(path).json()
    assert listed.keys() == {"review_id", "made_at_s", "used_at_s"}
    assert (listed["review_id"], listed["used_at_s"]) == (review_id, None)
    reviewer.get(f"{at}/project")
    (listed,) = owner.get(path).json()
    assert listed["used_at_s"] >= listed["made_at_s"]
    kept = (shared.process.log.with_suffix("") / "reviews.json").read_text()
    assert token not in kept
    assert hashlib.sha256(token.encode()).hexdigest() in kept
    assert token not in shared.process.said()


def test_a_link_that_is_ended_is_over_at_once_open_streams_too(shared, owner, reviewer) -> None:
    project = project_of(owner)
    take_id = rendered(owner, project)
    review_id, at = linked(owner, project)
    _, other = linked(owner, project)
    values = {"line_id": project["lines"][0]["line_id"], "take_id": take_id}
    stream, stays = Stream(reviewer, f"{at}/events"), Stream(reviewer, f"{other}/events")
    assert stream.next()["type"] == stays.next()["type"] == "changed"
    reviews = f"/studio/projects/{project['project_id']}/reviews"
    assert owner.delete(f"{reviews}/{review_id}").status_code == 204
    assert stream.next() is None
    for method, path in REVIEW_ADDRESSES:
        where = filled(path, values | {"token": at.rpartition("/")[2]})
        body = {"line_id": values["line_id"], "author": "Ruth", "text": "Late."}
        answer = reviewer.request(method, where, json=body if method == "POST" else None)
        assert answer.status_code == 404, where
    assert "has ended" in reviewer.get(f"{at}/project").json()["error"]["message"]
    assert owner.delete(f"{reviews}/{review_id}").status_code == 404
    owner.post(
        f"/studio/projects/{project['project_id']}/edits",
        json={"base_rev": 0, "client": "me", "ops": [{"op": "rename", "name": "Renamed"}]},
    ).raise_for_status()
    assert stays.next()["type"] == "changed", "the other one goes on"
    assert reviewer.get(f"{other}/project").json()["name"] == "Renamed"


def test_a_deleted_project_is_reviewed_no_more(owner, reviewer) -> None:
    project = project_of(owner)
    _, at = linked(owner, project)
    assert owner.delete(f"/studio/projects/{project['project_id']}").status_code == 204
    assert reviewer.get(f"{at}/project").status_code == 404
    assert reviewer.get(at).status_code == 404
    owner.post(f"/studio/space/trash/{project['project_id']}/restore").raise_for_status()
    assert reviewer.get(f"{at}/project").status_code == 200


def test_only_the_owner_makes_lists_and_ends_links(shared, owner, reviewer) -> None:
    project = project_of(owner)
    review_id, _ = linked(owner, project)
    with shared.visitor() as guest:
        own = project_of(guest)
        for client, wanted in ((guest, 403), (reviewer, 401)):
            for one in (project["project_id"], own["project_id"]):
                at = f"/studio/projects/{one}/reviews"
                assert client.get(at).status_code == wanted
                assert client.post(at).status_code == wanted
                assert client.delete(f"{at}/{review_id}").status_code == wanted
    assert len(owner.get(f"/studio/projects/{project['project_id']}/reviews").json()) == 1


def test_no_route_but_its_own_is_open_to_a_reviewer(shared, owner, reviewer) -> None:
    """Every route, with the token in every place that other keys have."""
    project = project_of(owner)
    at_project = f"/studio/projects/{project['project_id']}"
    values = {
        "project_id": project["project_id"],
        "line_id": project["lines"][0]["line_id"],
        "take_id": rendered(owner, project),
        "export_id": exported(owner, f"{at_project}/exports"),
        "speaker_id": owner.get("/studio/speakers").json()["speakers"][0]["speaker_id"],
    }
    review_id, at = linked(owner, project)
    token = at.rpartition("/")[2]
    values["review_id"] = review_id
    port = httpx.URL(shared.address).port
    keys = (
        {},
        {"Cookie": f"tableread_visitor_{port}={token}; tableread_visitor={token}"},
        {"Cookie": f"access-token-unsecure-x={token}"},
        {"Authorization": f"Bearer {token}"},
        {"Referer": f"{shared.address}{at}"},
    )
    before = owner.get(at_project).json()
    asked = [*PAGE_ADDRESSES, *V1_ADDRESSES]
    assert len(asked) > 90
    for method, path in asked:
        where = filled(path, values)
        for headers in keys:
            sent = {} if method in {"GET", "DELETE"} else sent_to(path)
            answer = reviewer.request(method, where, headers=headers, **sent)
            assert answer.status_code == 401, (method, where, headers, answer.text)
            assert "my own scene" not in answer.text
            assert "set-cookie" not in answer.headers
    after = owner.get(at_project).json()
    assert after["rev"] == before["rev"]
    assert [line["n_takes"] for line in after["lines"]] == [1, 0]
    assert reviewer.post("/login", data=SIGN_IN | {"password": token}).status_code == 400


def test_a_link_opens_one_project_and_no_other(owner, reviewer) -> None:
    project, other = project_of(owner), project_of(owner, OTHER)
    take_id = rendered(owner, other)
    _, at = linked(owner, project)
    line_id = other["lines"][0]["line_id"]
    assert reviewer.get(f"{at}/takes/{line_id}/{take_id}.wav").status_code == 404
    said = {"line_id": line_id, "author": "Ruth", "text": "Mine?"}
    assert reviewer.post(f"{at}/comments", json=said).status_code == 404
    assert "Nobody reviews" not in reviewer.get(f"{at}/project").text
    for wrong in ("x", "..", "%2e%2e", at.rpartition("/")[2][:-1], "a" * 200, other["project_id"]):
        for method, path in REVIEW_ADDRESSES:
            answer = reviewer.request(method, filled(path, {"token": wrong}), json=said)
            assert answer.status_code in {401, 404, 405}, (wrong, path)
            assert "Nobody reviews" not in answer.text


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"author": " ", "text": "Words."}, 400),
        ({"author": "Ruth", "text": ""}, 400),
        ({"author": "Ruth", "text": "a" * 2_001}, 400),
        ({"author": "Ruth", "text": "a" * 30_000}, 422),
        ({"author": "Ruth", "text": "a" * 200_000}, 413),
        ({"author": "Ruth"}, 422),
        ({"author": "Ruth", "text": "Words.", "resolved": True}, 422),
    ],
)
def test_what_isnt_a_comment_is_refused(owner, reviewer, said: dict, status: int) -> None:
    project = project_of(owner)
    _, at = linked(owner, project)
    body = {"line_id": project["lines"][0]["line_id"]} | said
    answer = reviewer.post(f"{at}/comments", json=body)
    assert answer.status_code == status, answer.text
    assert reviewer.get(f"{at}/project").json()["comments"] == []


def test_another_site_cannot_comment(owner, reviewer) -> None:
    project = project_of(owner)
    _, at = linked(owner, project)
    body = {"line_id": project["lines"][0]["line_id"], "author": "Eve", "text": "Words."}
    answer = reviewer.post(f"{at}/comments", json=body, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403


def test_links_last_over_a_restart_and_one_studio_alone_has_none(tmp_path) -> None:
    workspace = tmp_path / "workspace"
    with serving(workspace) as (client, _):
        project = project_of(client)
        at = f"/studio/projects/{project['project_id']}"
        assert "--share" in client.get(f"{at}/reviews").json()["error"]["message"]
        assert client.post(f"{at}/reviews").status_code == 403
        assert client.get("/studio/review/x").status_code == 404
    options = ("--share", "--auth", "ida:the right one")
    with (
        serving(workspace, *options, environ=no_tunnel()) as (client, process),
        Shared(str(client.base_url).rstrip("/"), process).owner() as owner,
    ):
        _, link = linked(owner, project)
    with serving(workspace, *options, environ=no_tunnel()) as (client, _):
        assert client.get(f"{link}/project").json()["name"] == "Scene"


def test_a_table_read_follows_the_play_head(owner, shared, reviewer) -> None:
    project = project_of(owner)
    at = f"/studio/projects/{project['project_id']}"
    body = owner.get(f"{at}/reading").json()
    assert body["heard"] is None
    assert [line["text"] for line in body["lines"]] == [one["text"] for one in project["lines"]]
    stream = Stream(owner, f"{at}/reading/events")
    assert stream.next()["type"] == "changed"
    heard = {"line_id": project["lines"][1]["line_id"], "playing": True}
    assert owner.put(f"{at}/heard", json=heard).status_code == 204
    assert stream.next() == {"type": "heard", "heard": heard}
    assert owner.get(f"{at}/reading").json()["heard"] == heard
    ops = [{"op": "rename", "name": "Anew"}]
    edit = {"base_rev": project["rev"], "client": "ida-page", "ops": ops}
    assert owner.post(f"{at}/edits", json=edit).is_success
    assert stream.next()["type"] == "changed", "what was heard before isn't told again"
    assert reviewer.get("/studio/read").status_code == 200, "the page itself holds nothing"
    assert reviewer.get(f"{at}/reading").status_code == 401
