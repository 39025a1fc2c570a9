"""Visitors of a shared studio: a desk of one's own, and nothing of anybody else's."""

from __future__ import annotations

import io
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection

import httpx
import numpy as np
import pytest
import soundfile
from addresses import PAGE_ADDRESSES, filled
from ports import reserve_port
from serving import Process, serving
from speech_client import events_of

pytestmark = pytest.mark.slow

SIGN_IN = {"username": "ida", "password": "the right one"}
UPLOAD = "/studio/uploads/{upload_id}"
SCRIPT = "Ida: This is my own scene.\nTom: And nobody else's."


def no_tunnel() -> dict[str, str]:
    """A tunnel server that isn't there; being shared doesn't depend on it."""
    return {"GRADIO_SHARE_SERVER_ADDRESS": f"127.0.0.1:{reserve_port()}"}


@dataclass(frozen=True)
class Shared:
    address: str
    process: Process

    @contextmanager
    def visitor(self) -> Iterator[httpx.Client]:
        """Somebody with a browser of their own, signed in."""
        with httpx.Client(base_url=self.address, timeout=60, follow_redirects=True) as client:
            assert client.post("/login", data=SIGN_IN).status_code == 200
            assert client.get("/").status_code == 200
            yield client

    @contextmanager
    def owner(self) -> Iterator[httpx.Client]:
        """Who read what the terminal says."""
        key = re.search(r"/studio/enter\?key=\S+", self.process.said())[0]
        with httpx.Client(base_url=self.address, timeout=60, follow_redirects=True) as client:
            assert client.get(key).status_code == 200  # no password: the key stands for it
            yield client


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Shared]:
    workspace = tmp_path_factory.mktemp("shared") / "workspace"
    options = ("--share", "--auth", "ida:the right one")
    with serving(workspace, *options, environ=no_tunnel(), fresh=True) as (client, process):
        yield Shared(str(client.base_url).rstrip("/"), process)


@pytest.fixture
def anna(shared: Shared) -> Iterator[httpx.Client]:
    with shared.visitor() as client:
        yield client


@pytest.fixture
def ben(shared: Shared) -> Iterator[httpx.Client]:
    with shared.visitor() as client:
        yield client


def uploaded(client: httpx.Client) -> str:
    file = io.BytesIO()
    time_s = np.arange(4 * 16_000) / 16_000
    soundfile.write(file, 0.2 * np.sin(2 * np.pi * 140 * time_s), 16_000, format="WAV")
    answer = client.post("/studio/uploads", content=file.getvalue())
    assert answer.status_code == 201, answer.text
    return answer.json()["upload_id"]


def test_every_visitor_has_a_cookie_that_scripts_and_other_sites_cannot_use(shared: Shared) -> None:
    with shared.visitor() as client:
        name = f"tableread_visitor_{client.base_url.port}"  # another port is another studio
        client.cookies.delete(name)
        (cookie,) = client.get("/studio/state").headers.get_list("set-cookie")
        assert cookie.startswith(f"{name}=")
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        # The name of the workspace is not what the browser keeps.
        token = re.match(f"{name}=([^;]+)", cookie)[1]
        assert token not in client.get("/studio/state").text


def test_a_cookie_of_before_it_was_named_for_the_port_goes_on(shared: Shared) -> None:
    with shared.visitor() as client:
        made = client.post("/studio/projects", json={"name": "Kept", "text": "Ida: Yes."})
        assert made.status_code == 201
        headers = {"Cookie": _with_visitor(client, _token(client))}
    answer = httpx.get(f"{shared.address}/studio/projects", headers=headers)
    assert [one["name"] for one in answer.json()] == ["Kept"]


def test_wrong_passwords_of_a_guest_keep_neither_others_nor_the_owner_out(shared: Shared) -> None:
    guest = {"X-Forwarded-For": "203.0.113.7"}  # as the tunnel passes it on
    for _ in range(10):
        wrong = SIGN_IN | {"password": "no"}
        assert httpx.post(f"{shared.address}/login", data=wrong, headers=guest).status_code == 400
    answer = httpx.post(f"{shared.address}/login", data=SIGN_IN, headers=guest)
    assert answer.status_code == 429
    with shared.visitor() as other, shared.owner() as owner:
        assert other.get("/studio/projects").status_code == 200
        assert owner.get("/studio/projects").status_code == 200


def test_a_made_up_cookie_opens_nothing(shared: Shared, anna: httpx.Client) -> None:
    with shared.visitor() as client:
        for made_up in (
            "x",
            "../visitors",
            _token(anna)[:-1],
            "é",
            "a" * 9_000,
        ):
            headers = {"Cookie": _with_visitor(client, made_up)}
            answer = httpx.get(f"{shared.address}/studio/state", headers=headers)
            assert answer.status_code in {200, 400, 431}
            assert "tableread_visitor" in answer.headers.get("set-cookie", "tableread_visitor")


def _token(client: httpx.Client) -> str:
    return client.cookies[f"tableread_visitor_{client.base_url.port}"]


def _with_visitor(client: httpx.Client, token: str) -> bytes:
    kept = [f"{name}={value}" for name, value in client.cookies.items() if "visitor" not in name]
    return "; ".join([*kept, f"tableread_visitor={token}"]).encode()


BY = {"base_rev": 0, "client": "ben"}
BODIES = {
    "/projects/{project_id}": {"name": "Stolen"},
    "/edits": BY | {"ops": []},
    "/undo": BY,
    "/redo": BY,
    "/script": BY | {"text": "Ben: Mine now."},
    "/projects/{project_id}/focus": {"line_id": "0" * 12},
    "/speakers/{speaker_id}": {"name": "Stolen"},
    "/speakers/{speaker_id}/preview": {"text": "Speak."},
    "/uploads/{upload_id}/preview": {"text": "Speak."},
    "/samples": {"upload_id": "0", "consent": True},
    "/recording": {"upload_id": "0"},
    "/heard": {"line_id": None},
}
"""What is sent, by the end of a path, the longest that fits; nothing fits: an empty object."""


def sent_to(path: str) -> dict[str, object]:
    if path.endswith(("/act", "}/audio")):
        return {"files": {"file": ("me.wav", b"RIFF")}}
    if path.endswith("/lines/{line_id}/recording"):
        return {"params": BY, "content": b"RIFF"}
    ends = sorted((end for end in BODIES if path.endswith(end)), key=len)
    return {"json": BODIES[ends[-1]] if ends else {}}


def owned(client: httpx.Client) -> dict[str, str]:
    """One of everything a visitor can have, by the name that paths give it."""
    upload = uploaded(client)
    speaker = client.post(
        "/studio/speakers",
        json={"name": "Grandmother", "sample": {"upload_id": upload, "consent": True}},
    ).json()["speaker_id"]
    mood = {"upload_id": uploaded(client), "consent": True, "mood": "angry"}
    samples = client.post(f"/studio/speakers/{speaker}/samples", json=mood).json()
    calm = {"upload_id": uploaded(client), "consent": True, "mood": "calm"}
    more = client.post(f"/studio/speakers/{speaker}/samples", json=calm).json()["samples"]
    gone = next(one["sample_id"] for one in more if one not in samples["samples"])
    removed = client.delete(f"/studio/speakers/{speaker}/samples/{gone}").json()
    project = client.post("/studio/projects", json={"name": "Mine", "text": SCRIPT}).json()
    at = f"/studio/projects/{project['project_id']}"
    assert client.post(f"{at}/render", json={}).status_code in {200, 201}
    line = project["lines"][0]["line_id"]
    assert client.get(f"{at}/lines/{line}/audio").status_code == 200  # to its end
    take = taken(client, f"{at}/takes/{line}")
    return {
        "speaker_id": speaker,
        "sample_id": samples["samples"][-1]["sample_id"],
        "version_id": removed["formers"][-1]["former_id"],
        "upload_id": uploaded(client),
        "project_id": project["project_id"],
        "line_id": line,
        "take_id": take,
        "export_id": exported(client, f"{at}/exports"),
    }


def exported(client: httpx.Client, path: str) -> str:
    """A file of the project's sound."""
    export = client.post(path, json={"format": "wav"}).json()
    deadline_s = time.monotonic() + 60
    while export["state"] == "running":
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
        export = client.get(f"{path}/{export['export_id']}").json()
    assert export["state"] == "done"
    return export["export_id"]


def taken(client: httpx.Client, path: str) -> str:
    """The first take of a line; it is written a moment after it was heard."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        answer = client.get(path).json()
        takes = answer["takes"] if isinstance(answer, dict) else answer
        if takes:
            return takes[0]["take_id"]
        time.sleep(0.05)
    raise AssertionError("the line was never kept")


def test_no_route_gives_one_visitor_what_is_anothers(
    shared: Shared, anna: httpx.Client, ben: httpx.Client
) -> None:
    mine = owned(anna)
    stream = anna.post("/v1/dialogs", json={"input": SCRIPT, "stream": True})
    dialog = events_of(stream.text)[-1]["dialog"]["id"]
    asked = [
        (method, path, sent_to(path))
        for method, path in PAGE_ADDRESSES
        if "_id}" in path and "/reviews" not in path  # the owner's alone, in tests of review links
    ]
    asked += [
        ("GET", f"/v1/dialogs/{dialog}", {}),
        ("GET", f"/v1/dialogs/{dialog}/events", {}),
        ("GET", f"/v1/dialogs/{dialog}/audio", {}),
        ("DELETE", f"/v1/dialogs/{dialog}", {}),
    ]
    assert len(asked) > 35
    with shared.owner() as owner:
        for method, path, sent in asked:
            sent = {} if method in {"GET", "DELETE"} else sent
            for stranger in (ben, owner):
                answer = stranger.request(method, filled(path, mine), **sent)
                # Dropping an upload that isn't there is no matter; its owner still has it, below.
                wanted = 204 if (method, path) == ("DELETE", UPLOAD) else 404
                assert answer.status_code == wanted, (method, path, answer.text)
                assert "my own scene" not in answer.text
    for method, path, _ in asked:
        if method == "GET" and not path.endswith(("/events", "/proposal")):
            asks = {"peaks": {"takes": mine["take_id"]}, "voices": {"speaker": "Ida"}}
            query = asks.get(path.partition("{project_id}/")[2], {})
            answer = anna.get(filled(path, mine), params=query)
            assert answer.is_success, (path, answer.text)


def test_what_is_made_of_a_strangers_upload_or_project_is_nothing(
    anna: httpx.Client, ben: httpx.Client
) -> None:
    upload = uploaded(anna)
    sample = {"name": "Thief", "sample": {"upload_id": upload, "consent": True}}
    assert ben.post("/studio/speakers", json=sample).status_code == 404
    project = anna.post("/studio/projects", json={"text": SCRIPT}).json()["project_id"]
    assert ben.post("/studio/projects", json={"like": project}).status_code == 404
    assert project not in ben.get("/studio/projects").text


def test_what_one_visitor_makes_no_other_sees_in_the_state(
    anna: httpx.Client, ben: httpx.Client
) -> None:
    project = anna.post("/studio/projects", json={"text": SCRIPT}).json()["project_id"]
    ids = {one["speaker_id"] for one in anna.get("/studio/state").json()["speakers"]}
    after = ben.get("/studio/state").json()
    assert project not in json.dumps(after)
    assert ids.isdisjoint(one["speaker_id"] for one in after["speakers"])


def test_who_has_not_signed_in_gets_no_desk(shared: Shared) -> None:
    with httpx.Client(base_url=shared.address, timeout=60) as client:
        for path in ("/studio/state", "/v1/models", "/metrics"):
            answer = client.get(path)
            assert answer.status_code == 401
            assert "set-cookie" not in answer.headers


def test_visitors_leave_models_and_figures_to_the_owner(shared: Shared, anna: httpx.Client) -> None:
    for method, path, body in (
        ("POST", "/studio/model/load", None),
        ("POST", "/studio/model/unload", None),
        ("POST", "/studio/model/timeout", {"seconds": 0}),
        ("POST", "/studio/model/concurrency", {"segments": 2}),
        ("POST", "/studio/model/cancel", None),
        ("POST", "/studio/setup/start", None),
        ("POST", "/studio/setup/stop", None),
        ("POST", "/studio/engines/kitten/download", {}),
        ("POST", "/studio/engines/kitten/pause", None),
        ("POST", "/studio/engines/kitten/cancel", None),
        ("DELETE", "/studio/engines/kitten/weights", None),
        ("DELETE", "/studio/engines/de_DE-eva-medium.onnx/weights", None),
        ("GET", "/studio/voice-files", None),
        ("POST", "/studio/voice-files", None),
        ("GET", "/metrics", None),
    ):
        answer = anna.request(method, path, json=body)
        assert answer.status_code == 403, path
        assert answer.json()["error"]["kind"] == "NotAllowed"
    with shared.owner() as owner:
        assert owner.post("/studio/model/load").status_code == 200


def test_a_wrong_way_in_is_nobodys(shared: Shared) -> None:
    with httpx.Client(base_url=shared.address, timeout=60) as client:
        answer = client.get("/studio/enter?key=wrong")
        assert answer.status_code == 303
        assert "set-cookie" not in answer.headers


def test_the_heartbeat_asks_for_a_sign_in(shared: Shared) -> None:
    answer = httpx.get(f"{shared.address}/gradio_api/heartbeat/x", timeout=20)
    assert answer.status_code == 401


def test_a_sign_out_ends_one_session(shared: Shared) -> None:
    with shared.visitor() as first, shared.visitor() as second:
        assert first.get("/studio/state").status_code == 200
        left = first.get("/logout", follow_redirects=False)
        assert (left.status_code, left.headers["location"]) == (303, ".")
        assert first.get("/studio/state").status_code == 401
        assert second.get("/studio/state").status_code == 200


def test_a_token_is_dead_after_its_sign_out(shared: Shared) -> None:
    with shared.visitor() as client:
        kept = dict(client.cookies)
        client.get("/logout", follow_redirects=False)
        again = httpx.get(f"{shared.address}/studio/state", cookies=kept)
        assert again.status_code == 401


def streams_of(client: httpx.Client, held: ExitStack) -> tuple[str, list[httpx.Response]]:
    """A new project, and what streams to a page: its events, the table read, Gradio's heartbeat."""
    project = client.post("/studio/projects", json={"text": SCRIPT}).json()
    at = f"/studio/projects/{project['project_id']}"
    paths = (
        f"{at}/events?since={project['seq']}",
        f"{at}/reading/events",
        "/gradio_api/heartbeat/x",
    )
    streams = [held.enter_context(client.stream("GET", path)) for path in paths]
    assert [stream.status_code for stream in streams] == [200] * 3
    return at, streams


def test_what_streams_to_a_browser_ends_with_its_sign_in(shared: Shared) -> None:
    with shared.visitor() as first, shared.visitor() as second, ExitStack() as held:
        _, ended = streams_of(first, held)
        at, (_, stays, _) = streams_of(second, held)
        lines = stays.iter_lines()
        assert "changed" in next(lines)
        first.get("/logout", follow_redirects=False)
        until_s = time.monotonic() + 120
        for stream in ended:
            for _ in stream.iter_raw():  # each says once in a while that it lives
                assert time.monotonic() < until_s
        edit = {"base_rev": 0, "client": "me", "ops": [{"op": "rename", "name": "Goes on"}]}
        assert second.post(f"{at}/edits", json=edit).status_code == 200
        assert any("changed" in line for line in lines)
    assert "Traceback" not in shared.process.said()


@pytest.mark.parametrize(
    ("method", "path", "ends"),
    [
        ("HEAD", "/logout", True),
        ("GET", "/logout?all_session=true", True),
        ("GET", "/%6cogout", True),
        ("POST", "/logout", False),
        ("GET", "/logout/", False),
        ("GET", "//logout", False),
        ("GET", "/gradio_api/mcp/logout", False),
    ],
)
def test_however_a_sign_out_is_asked_for_others_stay(
    shared: Shared, method: str, path: str, *, ends: bool
) -> None:
    with shared.visitor() as first, shared.visitor() as second:
        cookies = "; ".join(f"{name}={value}" for name, value in first.cookies.items())
        with closing(HTTPConnection("127.0.0.1", first.base_url.port, timeout=60)) as plain:
            plain.request(method, path, headers={"Cookie": cookies})  # as it stands
            assert plain.getresponse().status == (303 if ends else 404)
        assert first.get("/studio/state").status_code == (401 if ends else 200)
        assert second.get("/studio/state").status_code == 200


def test_who_has_not_signed_in_sends_no_body(shared: Shared) -> None:
    """The answer doesn't wait for one, which would take memory or disk until then."""
    port, some = httpx.URL(shared.address).port, bytes(2_000_000)
    for path, kind in (
        ("/v1/dialogs", "application/json"),
        ("/studio/projects", "application/json"),
        ("/gradio_api/upload", "multipart/form-data; boundary=ab"),
        ("/v1/audio/voices", "multipart/form-data; boundary=ab"),
    ):
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            "Content-Length: 11000000\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", port), timeout=120) as plain:
            plain.sendall(head.encode() + some)
            assert plain.recv(12) == b"HTTP/1.1 401", path


@pytest.fixture(scope="module")
def with_key(tmp_path_factory) -> Iterator[Shared]:
    """A shared studio whose owner has a key; the last test spends its sign-ins."""
    workspace = tmp_path_factory.mktemp("key") / "workspace"
    options = ("--share", "--auth", "ida:the right one")
    environ = no_tunnel() | {"TABLEREAD_API_KEY": "sk-owner"}
    with serving(workspace, *options, environ=environ, fresh=True) as (client, process):
        yield Shared(str(client.base_url).rstrip("/"), process)


def test_a_key_is_the_owners(with_key: Shared) -> None:
    key = {"Authorization": "Bearer sk-owner"}
    with httpx.Client(base_url=with_key.address, timeout=60) as client:
        assert client.get("/metrics", headers=key).status_code == 200
        begun = client.post("/v1/dialogs", json={"input": SCRIPT}, headers=key).json()
        assert client.get(f"/v1/dialogs/{begun['id']}", headers=key).status_code == 200
        assert "set-cookie" not in client.get("/v1/models", headers=key).headers
    with with_key.visitor() as visitor:
        refused = visitor.get(f"/v1/dialogs/{begun['id']}")
        assert refused.status_code == 401
        assert refused.json()["error"]["type"] == "invalid_request_error"
        assert refused.json()["error"]["code"] == "invalid_api_key"
        assert visitor.get("/metrics").status_code == 403
    assert "sk-owner" not in with_key.process.said()


def test_passwords_cannot_be_guessed(with_key: Shared) -> None:
    with httpx.Client(base_url=with_key.address, timeout=60, follow_redirects=True) as client:
        assert client.post("/login", data=SIGN_IN).status_code == 200
        wrong = {"username": "ida", "password": "a guess"}
        codes = [client.post("/login", data=wrong).status_code for _ in range(14)]
        assert codes[:10] == [400] * 10
        assert set(codes[10:]) == {429}
        assert client.post("/login", data=SIGN_IN).status_code == 429
        assert client.get("/studio/state").status_code == 200  # who is in stays in
