"""Connections that send nothing, or too slowly, keep nobody out; who works is never refused."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from live import live
from request_costs import CostMeter
from serving import serving
from starlette.types import Receive, Scope, Send

from studio.server.connections import (
    AcceptFailures,
    BoundedProtocol,
    Connections,
    most_connections,
)
from studio.server.middleware.places import Places, network_of

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.slow

HALF_SENT = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-More: "
HEARTBEAT = b"GET /gradio_api/heartbeat/x HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.contextmanager
def opened(
    base_url: str, count: int, data: bytes, host: str = "", *, receives: int = 0
) -> Iterator[list[socket.socket]]:
    """That many connections, each of which sends something once and then nothing more."""
    parts = urlsplit(base_url)
    assert parts.hostname is not None
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.settimeout(30)
            if receives:  # bytes that the system takes before they are read
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
            if host:
                one.bind((host, 0))
            one.connect((parts.hostname, parts.port))
            with contextlib.suppress(OSError):  # closed already, to make room for another
                one.sendall(data)
            sockets.append(one)
        yield sockets


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4_000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip("this process may not open as many sockets")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def page_s(client: httpx.Client) -> float:
    """How long the page takes on a connection of its own."""
    began_s = time.monotonic()
    try:
        status = httpx.get(client.base_url, timeout=30).status_code
    except httpx.TransportError as error:
        status = repr(error)
    assert status == 200
    return time.monotonic() - began_s


def events_of(client: httpx.Client) -> bytes:
    """A request for the stream of a new project."""
    project = client.post("/studio/projects", json={"name": "x", "text": "Ida: Hello."}).json()
    path = f"/studio/projects/{project['project_id']}/events?since={project['seq']}"
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def statuses(sockets: list[socket.socket]) -> set[bytes]:
    return {one.recv(12)[9:] for one in sockets}


def test_1100_silent_connections_leave_the_page_answering(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace", most_files=1_024) as (client, process):
        events = events_of(client)
        address = str(client.base_url)
        # Fifty editors are nothing unusual, nor is that some of them are slow to read.
        with opened(address, 50, events) as pages, opened(address, 50, HEARTBEAT) as hearts:
            assert statuses(pages + hearts) == {b"200"}
            with opened(address, 600, b""), opened(address, 500, HALF_SENT):
                page_s(client)
            for one in pages + hearts:  # none was closed for a newer one
                one.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while part := one.recv(65_536):
                        assert part
                    pytest.fail("a stream has ended")
        assert "Traceback" not in process.said()
        assert process.said().count("accepted for now") <= 1


CHUNKED = b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
MALFORMED = {
    "no request": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "two lengths": GET + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "too long": GET + b"X: " + bytes(70_000),
    "a broken body": b"POST /studio/uploads" + CHUNKED + b"no chunk\r\n",
    "a broken body of a form": b"POST /login" + CHUNKED + b"no chunk\r\n",
    "after an answer": b"POST /nothing" + CHUNKED + b"5\r\n12345\r\n" * 10 + b"no chunk\r\n",
}


def test_what_is_no_http_is_logged_once_a_minute(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace") as (client, process):
        before = process.said()
        for data in MALFORMED.values():
            for _ in range(4):
                with opened(str(client.base_url), 1, data) as (one,):
                    assert closes(one)
        upgrade = b"Connection: Upgrade, close\r\nUpgrade: %b\r\n\r\n"
        for protocol in (b"websocket", b"h2c"):
            for _ in range(4):
                with opened(str(client.base_url), 1, GET + upgrade % protocol) as (one,):
                    assert statuses([one]) == {b"200"}
        assert client.get("/healthz").status_code == 200
        said = process.said().removeprefix(before)
        refused = Counter(re.findall(r"WARNING (.*) [\d.]+ ms, request \w+\n", said))
        assert {"? unknown 403", "POST /studio/uploads 400"} <= refused.keys()
        assert max(refused.values()) <= 2, said  # a minute may end meanwhile
        assert said.count("\n") - refused.total() <= 2, said
        assert "Invalid HTTP" in said
        unknown = (
            b"GET /gradio_api/queue/data?session_hash=nobody HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        for _ in range(4):  # Gradio breaks these off
            with opened(str(client.base_url), 1, unknown) as (one,):
                assert closes(one)
        assert process.said().count("Exception in ASGI application") <= 1


@pytest.mark.skipif(sys.platform != "linux", reason="needs further addresses of this machine")
def test_who_is_not_signed_in_takes_no_place_of_a_stream(tmp_path: Path) -> None:
    begun = b"POST /v1/dialogs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    options = ("--auth", "ida:secret")
    with serving(tmp_path / "workspace", *options, most_files=1_024) as (client, _):
        address = str(client.base_url)
        assert client.post("/login", data={"username": "ida", "password": "secret"}).is_success
        signed_in = "; ".join(f"{name}={token}" for name, token in client.cookies.items())
        events = events_of(client).removesuffix(b"\r\n") + f"Cookie: {signed_in}\r\n\r\n".encode()
        with (
            opened(address, 149, begun, "127.0.0.2"),
            opened(address, 100, begun, "127.0.0.3") as last,
            opened(address, 1, events, "127.0.0.4") as page,
        ):
            assert statuses(page) == {b"200"}
            assert statuses(last) == {b"401"}


@pytest.mark.skipif(sys.platform != "linux", reason="the meter reads /proc")
def test_an_edit_is_written_once_for_all_pages(tmp_path: Path) -> None:
    script = "\n".join(["Ida: All is quiet by the river."] * 3_000)
    with serving(tmp_path / "workspace") as (client, process):
        meter = CostMeter(process.pid)
        project = client.post("/studio/projects", json={"text": script}).json()
        at, rev = f"/studio/projects/{project['project_id']}", project["rev"]
        line_ids = [line["line_id"] for line in project["lines"]]

        def edit(pages: int, language: str) -> float:
            """The processor time of an edit of all lines, which so many pages follow."""
            op = {"op": "set", "line_ids": line_ids, "fields": {"language": language}}
            body = {"base_rev": rev + 9, "client": "ida", "ops": [op]}
            since = client.get(at).json()["seq"]
            request = f"GET {at}/events?since={since} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            with opened(str(client.base_url), pages, request.encode()) as readers:
                assert statuses(readers) == {b"200"}
                answer, cost = meter.measure(lambda: client.post(f"{at}/edits", json=body))
            assert answer.status_code == 200
            return cost.cpu_s

        edit(1, "de")
        assert edit(60, "fr") < 5 * edit(1, "es")


@pytest.mark.campaign
def test_1100_silent_connections_of_each_kind(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace", most_files=1_024) as (client, process):
        server = psutil.Process(process.pid)
        kinds = {"silent": b"", "half-sent": HALF_SENT, "heartbeats": HEARTBEAT}
        for name, data in (kinds | {"event streams": events_of(client)}).items():
            before_s = sum(server.cpu_times()[:2])
            with opened(str(client.base_url), 1_100, data):
                took_s = [page_s(client) for _ in range(4)]
                busy_s = sum(server.cpu_times()[:2]) - before_s
            print(
                f"1,100 {name}: the page takes {took_s[0]:.2f} s at once, then {took_s[-1]:.2f} s; "
                f"{busy_s:.2f} s of processor time"
            )
            assert busy_s < 4
            assert min(took_s) < 1
        assert "Traceback" not in process.said()


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    while scope["method"] == "POST" and (await receive()).get("more_body"):
        pass
    body = b"x" * (20_000_000 if scope["path"] == "/large" else 1)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def bounded(at_most: int, headers_s: float) -> Iterator[str]:
    """A server that has so many connections and waits so long for headers."""
    http = partial(BoundedProtocol, connections=Connections(at_most), headers_s=headers_s)
    with live(answer, http=http) as address:
        yield address


def closes(one: socket.socket) -> bool:
    """Whether the server ends a connection; waits for that."""
    try:
        while one.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize("data", [b"", HALF_SENT, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nG"])
def test_headers_that_do_not_come_are_not_awaited(data: bytes) -> None:
    with bounded(8, headers_s=0.2) as address, opened(address, 1, data) as (one,):
        assert closes(one)


def test_headers_that_come_byte_by_byte_are_not_awaited() -> None:
    with bounded(8, headers_s=0.2) as address, opened(address, 1, HALF_SENT) as (one,):
        one.settimeout(0.02)
        until_s = time.monotonic() + 60
        while time.monotonic() < until_s:
            try:
                one.sendall(b"x")
                if not one.recv(1):
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
        pytest.fail("the headers were awaited for a minute")


def test_the_longest_silent_makes_room_for_the_newest() -> None:
    with bounded(8, headers_s=600) as address, opened(address, 20, b"") as silent:
        assert all(closes(one) for one in silent[:12])
        for _ in range(20):
            assert httpx.get(address).status_code == 200
        # Who has been answered is silent since, and no response is cut for a newer connection.
        silent[-1].sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        got = len(silent[-1].recv(1_000))
        while part := silent[-1].recv(1_000_000):
            got += len(part)
        assert got > 20_000_000


def test_what_nobody_reads_is_bounded_in_all() -> None:
    connections = Connections(40, max_unsent_bytes=50_000_000)
    with live(answer, http=partial(BoundedProtocol, connections=connections)) as address:
        large = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with opened(address, 20, large, receives=4_096) as readers:
            assert all(closes(one) for one in readers[:10])  # each has 20 MB to read
            assert httpx.get(address).status_code == 200
            readers[-1].settimeout(30)
            got = 0
            while got < 20_000_000:
                got += len(readers[-1].recv(1_000_000))


@pytest.mark.parametrize(("files", "connections"), [(1_024, 448), (130, 16)])
def test_half_of_the_files_that_may_be_open_are_connections(files: int, connections: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        assert most_connections() == connections
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_body_of_tiny_chunks_is_refused() -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with bounded(8, headers_s=600) as address:
        with opened(address, 1, head + b"1\r\nx\r\n" * 5_000) as (one,):
            assert one.recv(12).endswith(b"400")
            assert closes(one)
        with opened(address, 1, head + b"20\r\n%b\r\n" % (b"x" * 32) * 5_000) as (one,):
            one.sendall(b"0\r\n\r\n")
            assert one.recv(12).endswith(b"200")


@pytest.mark.skipif(sys.platform != "linux", reason="needs further addresses of this machine")
def test_one_address_has_half_and_this_machine_always_gets_a_connection() -> None:
    with bounded(8, headers_s=600) as address, contextlib.ExitStack() as stack:
        first = stack.enter_context(opened(address, 10, b"", "127.0.0.2"))
        second = stack.enter_context(opened(address, 10, b"", "127.0.0.3"))
        assert all(closes(one) for one in [*first[:6], *second[:6]])
        (own,) = stack.enter_context(opened(address, 1, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
        assert own.recv(12).endswith(b"200")


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("127.0.0.1", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("testclient", None),
        ("", None),
        (None, None),
    ],
)
def test_what_counts_as_one_address(host: str | None, network: str | None) -> None:
    assert network_of(host) == network


def test_a_quarter_of_the_streams_is_this_machines() -> None:
    places = Places(40)
    got = Counter()
    for _ in range(50):
        for network in ("203.0.113.7", "203.0.113.8", "203.0.113.9"):
            if not places.is_full_for(network):
                places.take(network)
                got[network] += 1
    assert got.total() == 30
    for _ in range(10):
        assert not places.is_full_for(None)
        places.take(None)
    assert places.is_full_for(None)
    alone = Places(40)
    for _ in range(20):
        assert not alone.is_full_for("203.0.113.7")
        alone.take("203.0.113.7")
    assert alone.is_full_for("203.0.113.7")
    assert not alone.is_full_for("203.0.113.8")
    alone.leave("203.0.113.7")
    assert not alone.is_full_for("203.0.113.7")


def test_a_failed_accept_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 100.0
    failures = AcceptFailures(Connections(8), clock=lambda: now_s)
    loop = asyncio.new_event_loop()
    error = OSError(errno.EMFILE, "Too many open files")
    context = {"message": "socket.accept() out of system resource", "exception": error}
    try:
        for _ in range(60):
            for _ in range(1_000):
                failures.handle(loop, context)
            now_s += 1
        assert len(caplog.records) == 1
        failures.handle(loop, context)
        assert len(caplog.records) == 2
        failures.handle(loop, {"message": "anything else", "exception": ValueError("x")})
        assert len(caplog.records) == 3
    finally:
        loop.close()
