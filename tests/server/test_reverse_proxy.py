"""A studio below a path of another host, and the headers that reverse proxies send."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from proxying import KEEPS, STRIPS, needs_nginx, proxying
from serving import serving
from shared_studio import app_of_front, front_of
from starlette.testclient import TestClient
from test_sessions import no_tunnel

from studio.server.middleware.origin_guard import OriginGuard
from studio.server.studio_server import ServerEntry
from studio.services.studio import Studio

pytestmark = pytest.mark.slow

STRANGER = "evil.example"
SIGN_IN = {"username": "ida", "password": "secret"}
LINES = "Ida: Good evening.\nTom: Good evening, Ida."
NAMING = (
    {"X-Forwarded-Host": STRANGER},
    {"X-Forwarded-Host": f"{STRANGER}, 127.0.0.1"},
    {"X-Forwarded-Host": "198.51.100.9"},
    {"X-Gradio-Server": f"https://{STRANGER}"},
    {"X-Forwarded-Server": STRANGER},
    {"X-Forwarded-Prefix": f"//{STRANGER}"},
    {"X-Forwarded-Proto": f"https://{STRANGER}/"},
    {"X-Forwarded-Port": STRANGER},
    {"X-Original-URL": f"http://{STRANGER}/"},
    {"X-Original-Host": STRANGER},
    {"X-Rewrite-URL": f"http://{STRANGER}/"},
    {"X-Host": STRANGER},
    {"Forwarded": f"for=198.51.100.9;host={STRANGER};proto=https"},
)


@pytest.fixture(scope="module")
def below_path(tmp_path_factory) -> Iterator[httpx.Client]:
    """A shared studio with a sign-in, which is told that it is at /tts."""
    workspace = tmp_path_factory.mktemp("proxied") / "workspace"
    environ = no_tunnel() | {
        "GRADIO_ROOT_PATH": "/tts",
        "TABLEREAD_ALLOWED_HOSTS": "studio.example",
    }
    options = ("--share", "--auth", "ida:secret")
    with serving(workspace, *options, environ=environ, fresh=True) as (client, _):
        yield client


@pytest.fixture(scope="module", params=[STRIPS, KEEPS], ids=["strips", "keeps"])
def proxied(below_path, request, tmp_path_factory) -> Iterator[httpx.Client]:
    """A browser that has signed in through nginx."""
    folder = tmp_path_factory.mktemp("nginx") / "nginx"
    with (
        proxying(folder, below_path.base_url.netloc.decode(), "/tts", request.param) as address,
        httpx.Client(base_url=address, follow_redirects=True, timeout=60) as client,
    ):
        answer = client.post("/tts/login", data=SIGN_IN)
        assert answer.status_code == 200
        assert {cookie.path for cookie in client.cookies.jar} == {"/tts"}
        assert client.get("/tts/").status_code == 200
        yield client


def root_of(page: httpx.Response) -> str:
    return json.loads(re.search(r'"root":("[^"]*")', page.text)[1])


@needs_nginx
def test_the_page_and_its_files_are_below_the_path(proxied) -> None:
    page = proxied.get("/tts")
    assert page.url.path == "/tts/"
    assert root_of(page) == f"{str(proxied.base_url).rstrip('/')}/tts"
    links = re.findall(
        r'<link rel="(?:preload|modulepreload)"[^>]* href="(studio/[^"]+)"', page.text
    )
    assert len(links) == 2
    for link in links:
        answer = proxied.get(f"/tts/{link}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    for own in ("/tts/config", "/tts/theme.css", "/tts/healthz", "/tts/v1/openapi.json"):
        assert proxied.get(own).status_code == 200, own


@needs_nginx
def test_projects_renders_streams_and_exports(proxied) -> None:
    own = {"Origin": str(proxied.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    proxied.headers.update(own)
    made = proxied.post("/tts/studio/projects", json={"name": "Scene", "text": LINES})
    assert made.status_code == 201, made.text
    project = f"/tts/studio/projects/{made.json()['project_id']}"
    since = made.json()["seq"]
    with proxied.stream("GET", f"{project}/events?since={since}") as events:
        messages = (json.loads(line[5:]) for line in events.iter_lines() if line[:5] == "data:")
        assert next(messages)["type"] == "state"  # no buffer holds it back
        assert proxied.post(f"{project}/render", json={}).status_code == 200
        jobs = (message for message in messages if message["type"] == "job")
        assert any(job["state"] == "done" for job in jobs)
        order = {"format": "wav", "loudness": "rendered", "even_voices": False}
        export = proxied.post(f"{project}/exports", json=order).json()
        done = (one for one in messages if one["type"] == "state" and "exports" in one["state"])
        assert any(
            exported["state"] == "done" for one in done for exported in one["state"]["exports"]
        )
    file = proxied.get(f"{project}/exports/{export['export_id']}/file")
    assert (file.status_code, file.content[:4]) == (200, b"RIFF")
    names = [one["name"] for one in proxied.get("/tts/studio/projects").json()]
    assert names == ["Scene"]
    slashed = proxied.get("/tts/studio/projects/")
    assert slashed.url.path == "/tts/studio/projects"
    assert slashed.status_code == 200
    exported = proxied.get(f"{project}/export?format=tableread")
    assert exported.status_code == 200
    imported = proxied.post(
        "/tts/studio/projects/import?name=a.tableread", content=exported.content
    )
    assert imported.status_code == 201, imported.text


@needs_nginx
def test_the_speech_api_is_below_the_path(proxied) -> None:
    assert proxied.get("/tts/v1/models").status_code == 200
    spoken = proxied.post("/tts/v1/audio/speech", json={"input": "Good evening."})
    assert spoken.status_code == 200
    assert len(spoken.content) > 10_000
    assert "server" in spoken.headers


@needs_nginx
def test_what_names_addresses_to_programs_names_the_path(proxied) -> None:
    assert proxied.get("/tts/v1/openapi.json").json()["servers"] == [{"url": "/tts/v1"}]
    asked = {"name": "render_scene", "arguments": {"script": LINES, "audio_format": "wav"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    accept = {"Accept": "application/json, text/event-stream"}
    answer = proxied.post("/tts/gradio_api/mcp/", json=call, headers=accept)
    link = re.search(r'https?://[^"\\]+\.wav', answer.text)[0]
    assert link.startswith(f"{str(proxied.base_url).rstrip('/')}/tts/gradio_api/file=")
    assert proxied.get(link).content[:4] == b"RIFF"


@needs_nginx
def test_signing_out_ends_the_sign_in_and_leads_to_the_page(proxied) -> None:
    with httpx.Client(base_url=proxied.base_url, follow_redirects=True, timeout=60) as client:
        assert client.post("/tts/login", data=SIGN_IN).status_code == 200
        assert client.get("/tts/studio/state").status_code == 200
        left = client.get("/tts/logout")
        assert (left.status_code, left.url.path) == (200, "/tts/")
        assert not [name for name in client.cookies if name.startswith("access-token")]
        assert client.get("/tts/studio/state").status_code == 401


def test_it_is_also_there_without_the_path(below_path) -> None:
    for prefix in ("", "/tts"):
        assert below_path.get(f"{prefix}/healthz").status_code == 200
    assert below_path.get("/ttsx/healthz").status_code == 404


@pytest.mark.parametrize("header", NAMING, ids=str)
def test_no_header_names_a_stranger_in_the_page_or_a_redirect(below_path, header) -> None:
    with httpx.Client(base_url=below_path.base_url, timeout=60) as client:
        for path in ("/", "/tts", "/tts/", "/logout", "/config", "/studio/projects/", "/login"):
            answer = client.get(path, headers=header)
            said = f"{answer.text} {answer.headers}"
            assert STRANGER not in said, path
            assert "198.51.100.9" not in said, path


@pytest.mark.parametrize(
    ("host", "forwarded", "root"),
    [
        ("127.0.0.1", "studio.example", "http://studio.example/tts"),
        ("127.0.0.1", "STUDIO.example:8443", "http://studio.example:8443/tts"),
        ("127.0.0.1", "127.0.0.1:8080", "http://127.0.0.1:8080/tts"),
        ("127.0.0.1:9", STRANGER, "http://127.0.0.1:9/tts"),
        ("studio.example", "", "http://studio.example/tts"),
    ],
)
def test_a_known_name_is_taken_for_the_pages_own(below_path, host, forwarded, root) -> None:
    headers = {"Host": host, "X-Forwarded-Host": forwarded}
    assert root_of(httpx.get(f"{below_path.base_url}/tts/", headers=headers)) == root
    headers["X-Forwarded-Proto"] = "https"
    secure = httpx.get(f"{below_path.base_url}/tts/", headers=headers)
    assert root_of(secure) == root.replace("http:", "https:")


def test_a_known_forwarded_name_opens_nothing_to_an_unknown_host(below_path) -> None:
    headers = {"Host": STRANGER, "X-Forwarded-Host": "studio.example"}
    assert httpx.get(f"{below_path.base_url}/healthz", headers=headers).status_code == 403


def test_over_https_every_cookie_is_secure(below_path) -> None:
    sent = {"X-Forwarded-Proto": "https"}
    answer = httpx.post(f"{below_path.base_url}/tts/login", data=SIGN_IN, headers=sent)
    cookies = answer.headers.get_list("set-cookie")
    assert len(cookies) == 2
    for cookie in cookies:
        assert "Secure" in cookie.split("; ")
        assert "Path=/tts" in cookie.split("; ")


def entry_below(studio: Studio, prefix: str) -> ServerEntry:
    whole = front_of(studio)
    return ServerEntry(studio, OriginGuard("testserver"), sessions=whole.sessions, prefix=prefix)


@pytest.mark.parametrize("path", ["", "/tts"])
def test_a_visitors_cookie_and_the_owners_sign_in_keep_to_the_path(studio: Studio, path) -> None:
    entry = entry_below(studio, path)
    client = TestClient(app_of_front(entry), follow_redirects=False)
    attributes = client.get(f"{path}/").headers["set-cookie"].split("; ")
    assert f"Path={path or '/'}" in attributes
    entered = client.get(f"{path}/studio/enter?key={entry.sessions.owner_token}")
    assert entered.headers["location"] == ".."
    assert f"Path={path or '/'}" in entered.headers["set-cookie"].split("; ")


def test_the_path_alone_leads_to_the_page(studio: Studio) -> None:
    client = TestClient(app_of_front(entry_below(studio, "/tts")), follow_redirects=False)
    answer = client.get("/tts")
    assert answer.headers["location"] == "/tts/"
    assert "content-security-policy" in answer.headers
    assert client.get("/tts", headers={"Host": STRANGER}).status_code == 403
