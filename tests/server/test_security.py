"""What stands before the routes, tried from outside on a real server."""

from __future__ import annotations

import itertools
import random
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import quote

import httpx
import pytest
from addresses import PAGE_ADDRESSES, filled
from fastapi import FastAPI
from fastapi.testclient import TestClient
from serving import serving
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from studio.server.middleware.origin_guard import OriginGuard
from studio.server.middleware.security import SecurityMiddleware
from studio.server.policies import RoutePolicies

pytestmark = pytest.mark.slow

SECRET = "canary-7f3a"

ROUTES = (
    ("GET", "/"),
    ("GET", "/config"),
    ("GET", "/theme.css"),
    ("GET", "/gradio_api/info"),
    ("GET", "/gradio_api/queue/data?session_hash=x"),
    ("POST", "/gradio_api/queue/join"),
    ("POST", "/gradio_api/call/speak"),
    ("POST", "/gradio_api/call/v2/speak"),
    ("GET", "/gradio_api/call/speak/0f"),
    ("POST", "/gradio_api/upload"),
    ("GET", "/gradio_api/file=spoken/x/speech.wav"),
    ("POST", "/gradio_api/mcp/"),
    ("GET", "/gradio_api/mcp/schema"),
    ("POST", "/login"),
    *((method, filled(path, {})) for method, path in PAGE_ADDRESSES),
    ("GET", "/studio/assets/page/main.js"),
    ("POST", "/v1/audio/speech"),
    ("GET", "/v1/models"),
    ("GET", "/v1/audio/voices"),
    ("POST", "/v1/dialogs"),
    ("GET", "/v1/dialogs/x"),
    ("DELETE", "/v1/dialogs/x"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
)

FOREIGN = (
    {"Host": "evil.example"},
    {"Host": "evil.example:7860", "Origin": "http://evil.example:7860"},
    {"Host": "localhost.evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://[127.0.0.1"},
    {"Origin": "http://127.0.0.1:port"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
)

CLOSED = (
    ("POST", "/gradio_api/run/add_speaker"),
    ("POST", "/gradio_api/api/add_speaker"),
    ("POST", "/run/predict"),
    ("POST", "/api/predict"),
    ("GET", "/gradio_api/proxy=https://huggingface.co"),
    ("GET", "/gradio_api/upload"),
    ("GET", "/gradio_api/upload_progress"),
    ("GET", "/gradio_api/mcp/sse"),
    ("POST", "/gradio_api/mcp/messages/"),
    ("GET", "/gradio_api/file=spoken/x/../../private.txt"),
    ("GET", "/gradio_api/file=/etc/passwd"),
    ("GET", "/gradio_api/file=http://127.0.0.1:9/x"),
    ("GET", "/gradio_api/file=https://example.com/x"),
    ("GET", "/gradio_api/file/etc/passwd"),
    ("POST", "/gradio_api/process_recording"),
    ("GET", "/gradio_api/deep_link"),
    ("GET", "/monitoring"),
    ("GET", "/monitoring/summary"),
    ("GET", "/gradio_api/token"),
    ("GET", "/gradio_api/openapi.json"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("POST", "/gradio_api/cancel"),
    ("POST", "/gradio_api/stream/x"),
    ("GET", "/gradio_api/runs"),
    ("GET", "/gradio_api/dev/reload"),
    ("POST", "/gradio_api/vibe-edit"),
    ("GET", "/custom_component/x/client/component/style.css"),
)


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("doors")
    (folder / "outside.txt").write_text(SECRET)
    environ = {"TABLEREAD_TEST_SECRET": SECRET, "TABLEREAD_ALLOWED_HOSTS": "studio.example"}
    with serving(folder / "workspace", environ=environ) as (client, _):
        (folder / "workspace" / "private.txt").write_text(SECRET)
        yield client


@pytest.mark.parametrize("foreign", FOREIGN, ids=str)
def test_no_route_answers_a_foreign_page_or_a_foreign_name(client, foreign: dict) -> None:
    for method, path in ROUTES:
        answer = client.request(method, path, headers=foreign, json={})
        assert answer.status_code == 403, (method, path)
        assert answer.json()["error"]["message"]
        # Nothing in the answer lets a foreign page read it.
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("foreign", FOREIGN, ids=str)
def test_no_preflight_lets_a_foreign_page_in(client, foreign: dict) -> None:
    asks = {"Access-Control-Request-Method": "POST"} | foreign
    for _, path in ROUTES:
        answer = client.request("OPTIONS", path, headers=asks)
        assert answer.status_code == 403, path
        assert "access-control-allow-origin" not in answer.headers


def test_its_own_pages_and_programs_are_answered(client) -> None:
    own = str(client.base_url).rstrip("/")
    for headers in (
        {},
        {"Origin": own, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
        {"Host": "studio.example", "Origin": "http://studio.example"},
        {"Host": f"localhost:{client.base_url.port}"},
    ):
        assert client.get("/studio/state", headers=headers).status_code == 200, headers


def test_a_link_elsewhere_leads_to_the_page_and_no_further(client) -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=followed).status_code == 200
    assert client.get("/studio/state", headers=followed).status_code == 403


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_what_gradio_brings_beside_the_contract_is_closed(client, method: str, path: str) -> None:
    assert client.request(method, path, json={}).status_code == 404


def test_every_answer_carries_the_headers(client) -> None:
    for path in ("/", "/studio/state", "/v1/models", "/healthz", "/nothing"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["x-frame-options"] == "SAMEORIGIN", path
        policy = dict(
            part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
        )
        assert policy["object-src"] == "'none'"
        assert "http" not in headers["content-security-policy"]  # no other place at all


def test_a_body_that_is_too_large_is_refused_before_it_is_read(client) -> None:
    for path in (
        "/login",
        "/studio/projects",
        "/studio/projects/0/edits",
        "/v1/audio/speech",
        "/v1/dialogs",
        "/gradio_api/queue/join",
    ):
        # Only the length is sent: an answer means that nobody waited for the body.
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000000\r\n"
            "Content-Type: application/json\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=60) as plain:
            plain.sendall(head.encode())
            assert plain.recv(64).startswith(b"HTTP/1.1 413"), path


def test_a_body_without_a_length_is_refused_when_it_passes_the_limit(client) -> None:
    block = b" " * 1_000_000
    for path, blocks in (("/studio/projects", 14), ("/v1/dialogs", 14), ("/v1/audio/speech", 19)):
        answer = client.post(
            path,
            content=itertools.repeat(block, blocks),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 413, path
        assert "MB" in answer.json()["error"]["message"]
    assert client.get("/studio/state").status_code == 200


def payloads() -> list[str]:
    """200 ways to write a way out of a folder."""
    targets = (
        "outside.txt",
        "workspace/private.txt",
        "launch.py",
        "etc/passwd",
        "proc/self/environ",
    )
    ups = (
        "../",
        "..\\",
        "%2e%2e/",
        "%2e%2e%2f",
        "..%2f",
        "..%5c",
        "%252e%252e%252f",
        "....//",
        "..;/",
        "%c0%ae%c0%ae/",
        ".%00./",
        "/./../",
    )
    made = [f"{up * depth}{target}" for up in ups for depth in (1, 3, 8) for target in targets]
    made += [f"/{target}" for target in targets] + [f"//{target}" for target in targets]
    made += [f"{quote('/' + target, safe='')}" for target in targets]
    made += [f"file:///{target}" for target in targets] + [f"C:\\{target}" for target in targets]
    return random.Random(7).sample(made, 200)


PLACES = (
    *((method, path) for method, path in PAGE_ADDRESSES if "{" in path),
    ("GET", "/studio/assets/{}"),
    ("GET", "/gradio_api/file={}"),
    ("GET", "/gradio_api/file=spoken/{}"),
    ("GET", "/assets/{}"),
    ("GET", "/static/{}"),
    ("GET", "/svelte/{}"),
    ("GET", "/v1/dialogs/{}"),
    ("GET", "/v1/dialogs/{}/audio"),
    ("GET", "/v1/dialogs/{}/events"),
    ("DELETE", "/v1/dialogs/{}"),
)


@pytest.fixture(scope="module")
def plain(client) -> Iterator[HTTPConnection]:
    """A connection on which a path goes out as it stands, at a tenth of a client's cost."""
    with closing(HTTPConnection("127.0.0.1", client.base_url.port, timeout=60)) as connection:
        yield connection


@pytest.mark.parametrize(("method", "place"), PLACES, ids=lambda value: value.replace("/", "."))
def test_no_way_of_writing_a_path_leads_out(client, plain, method: str, place: str) -> None:
    headers = {"Content-Type": "application/json"}
    # Dropping an upload that isn't there is no matter.
    gone = {204} if (method, place) == ("DELETE", "/studio/uploads/{upload_id}") else set()
    for payload in payloads():
        # In the place of each name, as it stands: no library may tidy it up on the way.
        path = re.sub(r"\{[^}]*\}", lambda _, text=payload: text, place)
        plain.request(method, path, body=b"{}", headers=headers)
        answer = plain.getresponse()
        status, body = answer.status, answer.read()
        if status in {301, 302, 303, 307, 308}:
            followed = client.request(method, answer.headers["location"], json={})
            status, body = followed.status_code, body + followed.content
        assert SECRET.encode() not in body, payload
        assert b"root:" not in body, payload
        assert status in {400, 403, 404, 405, 422} | gone, (payload, status)


@pytest.mark.parametrize(
    "body",
    [
        '{"data": [], "fn_index": 999, "session_hash": "a"}',
        '{"data": [], "fn_index": -1, "session_hash": "a"}',
        '{"data": [], "fn_index": "x"}',
        '{"data": [], "fn_index": 0, "session_hash": NaN}',
        "[]",
        "no JSON",
    ],
)
def test_gradios_queue_refuses_what_it_does_not_know(client, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    for _ in range(2):  # the connection goes on
        answer = client.post("/gradio_api/queue/join", content=body, headers=headers)
        assert answer.status_code in {400, 404, 422}, answer.text
        assert answer.json()["error"]["message"]


def test_no_name_is_looked_for_that_no_file_can_have(client) -> None:
    for path in ("/static/", "/assets/", "/svelte/", "/studio/projects/", "/pwa_icon/"):
        assert client.get(path + "9" * 5_000).status_code == 404, path


def test_files_of_this_machine_are_not_served(client) -> None:
    for path in ("/etc/passwd", "launch.py", "requirements.txt", "workspace/private.txt"):
        answer = client.get(f"/gradio_api/file={path}")
        assert answer.status_code in {403, 404}


def test_an_answer_never_holds_the_environment(client) -> None:
    for method, path in ROUTES:
        if "queue/data" not in path and "speak/0f" not in path:  # Gradio breaks them off
            assert SECRET not in client.request(method, path, json={}).text, path


@pytest.mark.parametrize(
    ("bound", "name", "known"),
    [
        (None, "localhost", True),
        (None, "127.0.0.1", True),
        (None, "::1", True),
        (None, "evil.example", False),
        (None, "", False),
        ("studio.lan", "studio.lan", True),
        ("studio.lan", "other.lan", False),
        ("0.0.0.0", "192.168.1.7", True),
        ("0.0.0.0", "evil.example", False),
    ],
)
def test_names_that_are_known(bound: str | None, name: str, known: bool) -> None:
    assert OriginGuard(bound).is_known_host(name) is known


def test_a_share_links_name_is_known_once_it_is_there() -> None:
    hosts = OriginGuard(None)
    headers = Headers({"host": "abc.gradio.live", "origin": "https://abc.gradio.live"})
    assert hosts.find_refusal(headers, is_visit=False)
    hosts.add("https://abc.gradio.live")
    assert hosts.find_refusal(headers, is_visit=False) is None


@pytest.mark.parametrize("host", ["a b", "x/y", "user@localhost", "localhost:port", "", "[::1"])
def test_a_host_header_that_is_none_is_refused(host: str) -> None:
    assert OriginGuard(None).find_refusal(Headers({"host": host}), is_visit=False)


def test_a_refusal_on_the_way_keeps_its_kind_and_when_to_come_again() -> None:
    async def busy(_: Scope, _receive: Receive, _send: Send) -> None:
        raise HTTPException(429, "Too many.", headers={"Retry-After": "2"})

    app = FastAPI()
    app.get("/studio/projects")(lambda: None)
    front = SecurityMiddleware(busy, OriginGuard("testserver"), RoutePolicies(app.routes))
    answer = TestClient(front).get("/studio/projects")
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "2"
    assert answer.json()["error"]["kind"] == "EngineBusy"
