"""What the log says of requests: one line each, bounded, and nothing that was sent."""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from serving import serving
from shared_studio import app_of_front, front_of, routes_of, visitor_of
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from studio.server.middleware.access_log import AccessLog, LogLimit
from studio.server.policies import RoutePolicies
from studio.services.studio import Studio

pytestmark = pytest.mark.slow

LOGGER = "studio.server.middleware.access_log"


@pytest.fixture
def app(studio: Studio, caplog: pytest.LogCaptureFixture) -> TestClient:
    caplog.set_level(logging.INFO, LOGGER)
    return visitor_of(app_of_front(front_of(studio, apart=False)))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Without the ids that were drawn, and how long it took."""
    said = [one.getMessage() for one in caplog.records if one.name == LOGGER]
    return [re.sub(r" [\d.]+ ms, request \w{16}", "", one) for one in said]


def test_a_line_has_the_method_the_routes_template_and_the_status(
    app: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    made = app.post("/studio/projects?key=sesame", json={"text": "Ida: Hello."}).json()
    app.get(f"/studio/projects/{made['project_id']}")
    app.get("/studio/projects/%1b[31mred%0d%0aGET")
    app.get("/nothing/sesame")
    app.put("/studio/projects")
    app.request("SESAME", "/studio/projects")
    app.get("/studio/projects", headers={"Host": "evil.example"})
    app.post("/v1/dialogs", json={"input": ""})
    assert lines(caplog) == [
        "POST /studio/projects 201",
        "GET /studio/projects/{project_id} 200",
        "GET unknown 404",
        "GET unknown 404",
        "PUT /studio/projects 405",
        "? /studio/projects 405",
        "GET /studio/projects 403",
        "POST /v1/dialogs 400",
    ]
    assert "sesame" not in caplog.text.lower()
    assert "evil" not in caplog.text


def test_a_refused_request_is_a_warning_but_for_an_address_that_nobody_has(
    app: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOGGER)
    app.get("/studio/projects")
    app.get("/apple-touch-icon.png")
    app.get("/studio/projects/000000000000")
    app.get("/studio/projects", headers={"Host": "evil.example"})
    app.post("/v1/dialogs", json={"input": ""})
    app.put("/studio/projects")
    app.put("/studio/projects?again")  # the same kind, which is told once a minute
    assert lines(caplog) == [
        "GET /studio/projects/{project_id} 404",
        "GET /studio/projects 403",
        "POST /v1/dialogs 400",
        "PUT /studio/projects 405",
    ]


def test_a_response_has_the_requests_id_and_that_of_its_job(
    app: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = app.get("/healthz"), app.get("/nothing")
    drawn = {one.headers["x-request-id"] for one in (first, second)}
    assert len(drawn) == 2
    assert all(re.fullmatch(r"[0-9a-f]{16}", one) for one in drawn)
    of_proxy = app.get("/healthz", headers={"X-Request-Id": "proxy-7.a_b"})
    assert of_proxy.headers["x-request-id"] == "proxy-7.a_b"
    for wrong in ("a b", "x" * 65, "a\x1b[31m", ""):
        answer = app.get("/healthz", headers={"X-Request-Id": wrong})
        assert re.fullmatch(r"[0-9a-f]{16}", answer.headers["x-request-id"])
    dialog = app.post("/v1/dialogs", json={"input": "Ida: Hello."})
    assert dialog.headers["x-job-id"] == dialog.json()["id"]
    spoken = app.post("/v1/audio/speech", json={"input": "Hello."})
    assert re.fullmatch(r"[0-9a-f]{16}", spoken.headers["x-job-id"])
    assert lines(caplog)[-2:] == [
        f"POST /v1/dialogs 201, job {dialog.json()['id']}",
        f"POST /v1/audio/speech 200, job {spoken.headers['x-job-id']}",
    ]


async def test_a_flood_leaves_a_bounded_number_of_lines(
    studio: Studio, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    now_s = 0.0
    routes = routes_of(front_of(studio, apart=False)).routes
    access = AccessLog(RoutePolicies(routes), clock=lambda: now_s)

    async def ask(status: int, times: int) -> None:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await Response(status_code=status)(scope, receive, send)

        async def drop(_: object) -> None:
            pass

        scope = {"type": "http", "method": "GET", "path": "/healthz", "headers": []}
        for _ in range(times):
            await access.follow(answer, scope, drop, drop)

    await ask(200, 1_000)
    await ask(404, 1_000)
    assert len(lines(caplog)) == 720
    assert lines(caplog).count("GET /healthz 404") == 120
    now_s = 60.0
    await ask(200, 1)
    assert lines(caplog)[720:] == ["1280 more requests weren't logged", "GET /healthz 200"]
    assert [one.levelname for one in caplog.records[718:]] == ["WARNING"] * 2 + ["INFO"] * 2


def test_everything_of_a_project_is_asked_for_again(app: TestClient) -> None:
    made = app.post("/studio/projects", json={"text": "Ida: Hello."}).json()
    for path in (f"/studio/projects/{made['project_id']}", "/studio/projects", "/v1/models"):
        assert app.get(path).headers["cache-control"] == "private, no-cache"


@pytest.fixture(scope="module", params=["text", "json", None])
def served(request, tmp_path_factory) -> Iterator[tuple[str | None, httpx.Client, list[str]]]:
    """A server that other machines reach, in each format, and what it logged of its requests."""
    environ = {} if request.param is None else {"TABLEREAD_LOG_FORMAT": request.param}
    workspace = tmp_path_factory.mktemp("log") / "workspace"
    with serving(workspace, "--host", "0.0.0.0", environ=environ) as (http, process):
        http.get("/studio/projects", headers={"X-Request-Id": "first"})
        with socket.create_connection(("127.0.0.1", http.base_url.port)) as other:
            other.sendall(b"no http\r\n\r\n")
            other.recv(1_000)
        http.get("/gradio_api/call/speak/sesame")
        for _ in range(100):  # a line is written once its response is sent
            if "call/{}/{}" in process.said():
                break
            http.get("/healthz/live")
        yield request.param, http, process.said().splitlines()


def test_the_log_is_in_the_format_that_is_set(served) -> None:
    log_format, _, said = served
    rows = [row for row in said if row.startswith("{" if log_format == "json" else "2")]
    if log_format == "json":
        read = [json.loads(row) for row in rows]
        assert [row["message"] for row in read][:1] == ["Tableread 0.1.0 logs at level INFO"]
        asked = next(row for row in read if row.get("request_id") == "first")
        assert asked["ms"] >= 0
        assert {"method", "route", "status", "level", "time", "logger"} <= asked.keys()
        assert (asked["method"], asked["route"], asked["status"]) == (
            "GET",
            "/studio/projects",
            200,
        )
        assert asked["time"].endswith("+00:00")
        assert any(row["logger"].startswith("uvicorn") for row in read)
        assert any(row.get("route") == "/gradio_api/call/{}/{}" for row in read)
    else:
        assert rows[0].endswith("INFO Tableread 0.1.0 logs at level INFO")
        assert any(" GET /studio/projects 200 " in row and "request first" in row for row in rows)
        assert any("WARNING Invalid HTTP" in row for row in rows)
        assert any(" GET /gradio_api/call/{}/{} 200 " in row for row in rows)


def test_health_and_metrics_answer_by_any_name_and_nothing_else_does(served) -> None:
    _, http, _ = served
    by_container = {"Host": "studio:7860"}
    for path in ("/healthz", "/healthz/live", "/metrics"):
        assert http.get(path, headers=by_container).status_code == 200
        evil = by_container | {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
        assert http.get(path, headers=evil).status_code == 403
    for path in ("/", "/studio/projects", "/v1/models", "/healthz/", "/gradio_api/info"):
        assert http.get(path, headers=by_container, follow_redirects=False).status_code == 403
    families = text_string_to_metric_families(http.get("/metrics").text)
    build = next(one for one in families if one.name == "tableread_build_info")
    assert [(one.labels, one.value) for one in build.samples] == [({"version": "0.1.0"}, 1.0)]


def test_a_studio_of_this_machine_logs_refused_requests_and_answers_by_its_own_names_only(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "workspace") as (http, process):
        assert http.get("/healthz").headers["x-request-id"]
        assert http.get("/healthz", headers={"Host": "studio:7860"}).status_code == 403
        assert http.get("/healthz", headers={"Host": "studio:7860"}).status_code == 403
        assert " WARNING GET /healthz 403 " in process.said()  # the first one's, at least
        assert "/healthz 200 " not in process.said()


def test_what_other_packages_log_of_a_request_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(limit := LogLimit())
    logging.getLogger("mcp.server").warning("Unknown tool: %s", "x" * 200_000)
    caplog.handler.removeFilter(limit)
    assert len(caplog.messages[0]) < 1_100
