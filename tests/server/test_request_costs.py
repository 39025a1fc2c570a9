"""The largest request of every route takes at most 100 MB and a second of processor time."""

from __future__ import annotations

import io
import json
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio
import httpx
import psutil
import pytest
import soundfile
from addresses import filled
from largest_requests import (
    EDITS,
    LONG_LINES,
    SPECIAL,
    Largest,
    Scene,
    archive,
    general,
    long_requests,
    long_script,
    script,
)
from request_costs import Cost, CostMeter, Yardstick
from route_catalogue import CATALOGUE, Body
from serving import serving
from shared_studio import front_of

from studio.server.policies import RoutePolicies
from studio.server.studio_server import StudioServer
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp
from studio.ui.blocks import create_ui

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of memory"),
]

MOST_BYTES = 100_000_000
MOST_CPU_S = 1.0

LISTENED_S = 60
"""How long a render goes on that would take minutes or hours."""

MEASURED = [one for one, body in CATALOGUE.items() if body is not Body.ENDLESS]
"""Streams without an end are held to their bounds by the tests of the connections."""


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A workspace with a project as long as any, and the ids in it."""
    workspace = tmp_path_factory.mktemp("costs") / "workspace"
    with serving(workspace) as (client, _):
        project = client.post("/studio/projects", json={"text": script(20_000)}).json()
        speaker = client.post("/studio/speakers", json={"name": "Ida"}).json()
        ids = {"project_id": project["project_id"], "speaker_id": speaker["speaker_id"]}
        yield workspace, ids | {"line_id": project["lines"][0]["line_id"]}


def measure(largest: Largest, large: tuple[Path, dict[str, str]], folder: Path) -> Cost:
    """What a request costs a server that has had none like it, with the project open."""
    workspace, ids = large
    copy = folder / "workspace"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(workspace, copy)
    with serving(copy) as (client, process):
        client.timeout = 1_800
        return send(client, CostMeter(process.pid), largest, ids)


def send(client: httpx.Client, meter: CostMeter, largest: Largest, ids: dict[str, str]) -> Cost:
    client.post(f"/studio/projects/{ids['project_id']}/cancel")  # opens it
    project = {"rev": 0, "lines": []}
    if largest.sends_lines:
        project = client.get(f"/studio/projects/{ids['project_id']}").json()
    request = largest.build(Scene(ids, project))
    method, path = largest.address.split(" ")
    print(f"{largest.address:60} {largest.name:24}", end=" ")
    if largest.speaks:
        return send_for_speech(client, meter, (method, filled(path, ids)), request)
    answer, cost = meter.measure(lambda: client.request(method, filled(path, ids), **request))
    if largest.writes_files:
        cost = replace(cost, cpu_s=cost.cpu_s - cost.kernel_s)
    print(f"{answer.status_code} {cost.memory_bytes / 1e6:6.0f} MB {show_s(cost)}", end=" ")
    print(f"and the disk's {cost.kernel_s:.2f} s" if largest.writes_files else "")
    assert answer.status_code < 500, answer.text
    return cost


def send_for_speech(
    client: httpx.Client, meter: CostMeter, where: tuple[str, str], request: dict[str, Any]
) -> Cost:
    """The processor time until the response begins, and the memory of all of it.

    It begins once there is sound, and FLAC's bytes come at the end.
    """
    speak_once(client)
    first_s: list[float] = []

    def speak() -> tuple[httpx.Response, float]:
        begun_s, begun_cpu_s = time.monotonic(), meter.measure_cpu_s()
        with client.stream(*where, **request) as answer:
            first_s.extend((time.monotonic() - begun_s, meter.measure_cpu_s() - begun_cpu_s))
            sound = answer.read()
        return answer, listen_to(client, answer, sound)

    (answer, sound_s), cost = meter.measure(speak)
    wall_s, cpu_s = first_s
    until = replace(cost, cpu_s=cpu_s)
    print(
        f"{answer.status_code} {cost.memory_bytes / 1e6:6.0f} MB {show_s(until)} until it begins,"
        f" after {wall_s:.2f} s; {1_000 * cost.ordinary_s / sound_s:.1f} ms for a second of sound"
    )
    assert answer.status_code < 300, answer.text
    return until


def show_s(cost: Cost) -> str:
    return f"{cost.ordinary_s:6.2f} s ({cost.cpu_s:.2f} here)"


def speak_once(client: httpx.Client) -> None:
    """Start what speech needs once: the voice's processes and the one that times words."""
    for _ in range(3):
        client.post("/v1/audio/speech", json={"input": "All is quiet by the river. " * 80})
    many = {"input": "Ida: All is quiet by the river.\n" * 80, "stream": True}  # until the end
    client.post("/v1/dialogs", json=many).raise_for_status()
    project = client.post("/studio/projects", json={"text": "Ida: All is quiet."}).json()
    address, line_id = f"/studio/projects/{project['project_id']}", project["lines"][0]["line_id"]
    client.post(f"{address}/render", json={}).raise_for_status()
    while not (takes := client.get(f"{address}/takes/{line_id}").json()["takes"]):
        time.sleep(0.1)
    words = client.get(f"{address}/takes/{line_id}/{takes[0]['take_id']}/words")
    assert len(words.raise_for_status().json()["words"]) == 3
    client.delete(address).raise_for_status()


def create_long_project(client: httpx.Client, kind: str) -> str:
    """A project of 50 lines of 99,000 characters, which may be more bytes than a script."""
    project = client.post("/studio/projects", json={"text": long_script(kind)}).json()
    project_id, lines = project["project_id"], project["lines"]
    edit = {"base_rev": project["rev"], "client": "ida-page"}
    for number in range(len(lines), 50):
        line = {"line_id": f"{number:012x}", "speaker": "Ida", "text": lines[0]["text"]}
        op = {"op": "insert", "after": lines[0]["line_id"], "lines": [line]}
        sent = client.post(f"/studio/projects/{project_id}/edits", json={**edit, "ops": [op]})
        sent.raise_for_status()
    return project_id


def measure_beginning(client: httpx.Client, pid: int, project_id: str) -> float:
    """The processor time until a render has begun, without the voice's processes."""
    server, address = psutil.Process(pid), f"/studio/projects/{project_id}"
    with Yardstick() as yardstick:
        before = server.cpu_times()
        client.post(f"{address}/render", json={}).raise_for_status()
        after = server.cpu_times()
    client.post(f"{address}/cancel").raise_for_status()
    return (after.user + after.system - before.user - before.system) / yardstick.slowness


def listen_to(client: httpx.Client, answer: httpx.Response, body: bytes) -> float:
    """How many seconds of sound were made of a request, a render being stopped after a minute."""
    if answer.headers["content-type"].startswith("audio/"):
        return soundfile.info(io.BytesIO(body)).duration
    path = answer.request.url.path
    if path.startswith("/v1"):
        address = f"/v1/dialogs/{json.loads(body)['id']}"
        time.sleep(LISTENED_S)
        audio_s = client.get(address).json()["audio_s"]
        client.delete(address)
        return audio_s
    time.sleep(LISTENED_S)
    return client.post(path.replace("/render", "/cancel")).json()["summary"]["audio_s"]


def check(largest: Largest, cost: Cost) -> None:
    assert cost.memory_bytes <= MOST_BYTES, (largest.address, largest.name, cost)
    assert cost.ordinary_s <= MOST_CPU_S, (largest.address, largest.name, cost)


def _served_addresses(studio: Studio) -> frozenset[str]:
    """Method and path of each route that the server answers, Gradio's too as far as they are open.

    Mounts and the paths with a slash at their ends count as one.
    """
    server = StudioServer(front_of(studio, apart=False), NothingToSetUp())
    own = RoutePolicies(server.routes).routes
    gradio.routes.App.create_app(create_ui(dict), app=server)
    policies = RoutePolicies(server.routes)
    found = {(method, one.path) for one in own for method in one.methods or {"GET"}}
    found |= {
        (method, path.rstrip("/") or "/")
        for path, methods in _gradio_paths(server.routes)
        for method in methods
        if policies.find(method, filled(path, {}))
    }
    return frozenset(f"{method} {path}" for method, path in found if method != "HEAD")


def _gradio_paths(routes: list[Any]) -> Iterator[tuple[str, set[str]]]:
    for route in routes:
        if hasattr(route, "path"):
            if hasattr(route, "methods"):  # no mount
                yield route.path, route.methods or {"GET"}
            continue
        for one in route.original_router.routes:
            yield f"/gradio_api{one.path.removeprefix('/gradio_api')}", one.methods or {"GET"}


def test_every_route_is_in_the_catalogue(studio: Studio) -> None:
    served = _served_addresses(studio)
    assert served == CATALOGUE.keys()
    assert len(served) > 100
    assert {"POST /login", "GET /healthz", "GET /metrics", "GET /logout"} <= served
    assert "POST /gradio_api/queue/join" in served


def test_special_requests_are_of_known_routes() -> None:
    assert {one.address for one in SPECIAL} <= CATALOGUE.keys()


def test_many_edits_of_a_long_project(tmp_path) -> None:
    renames = next(one for one in SPECIAL if "rename_speaker" in one.name)
    assert renames.address == EDITS
    with serving(tmp_path / "workspace") as (client, process):
        project = client.post("/studio/projects", json={"text": script(5_000)}).json()
        ids = {"project_id": project["project_id"]}
        cost = send(client, CostMeter(process.pid), renames, ids)
    assert cost.memory_bytes <= MOST_BYTES
    assert cost.ordinary_s <= 4  # it took minutes; the campaign has the machine for itself


@pytest.mark.campaign
@pytest.mark.parametrize("largest", SPECIAL, ids=lambda one: f"{one.address} {one.name}")
def test_the_largest_request_is_bounded(largest, large, tmp_path) -> None:
    check(largest, measure(largest, large, tmp_path))


@pytest.mark.campaign
def test_the_largest_body_of_every_route_is_bounded(large, tmp_path) -> None:
    workspace, ids = large
    copy = tmp_path / "workspace"
    failed = []
    shutil.copytree(workspace, copy)
    with serving(copy) as (client, process):
        client.timeout = 1_800
        meter = CostMeter(process.pid)
        client.get("/studio/state")
        for address in sorted(MEASURED, key=lambda one: one.startswith("DELETE")):
            largest = general(address)
            try:
                check(largest, send(client, meter, largest, ids))
            except (AssertionError, httpx.HTTPError) as error:
                failed.append(f"{address}: {error}")
    assert failed == []


@pytest.mark.campaign
@pytest.mark.parametrize("kind", LONG_LINES)
def test_a_project_of_long_lines_costs_as_little(kind, tmp_path) -> None:
    failed = []
    with serving(tmp_path / "workspace") as (client, process):
        client.timeout = 1_800
        meter = CostMeter(process.pid)
        speak_once(client)
        ids = {"project_id": create_long_project(client, kind)}
        for largest in long_requests(kind):
            try:
                check(largest, send(client, meter, largest, ids))
            except (AssertionError, httpx.HTTPError) as error:
                failed.append(f"{largest.address} {largest.name}: {error}")
        spent_s = measure_beginning(client, process.pid, ids["project_id"])
    print(f"{spent_s:.2f} s until a render begins")
    assert failed == []
    assert spent_s <= MOST_CPU_S


@pytest.mark.campaign
def test_others_are_answered_while_a_large_project_comes_in(large, tmp_path) -> None:
    workspace = tmp_path / "workspace"
    with serving(workspace) as (client, _), ThreadPoolExecutor(1) as threads:
        client.timeout = 1_800
        project = client.post("/studio/projects", json={"text": "Ida: Good evening."}).json()
        url = f"/studio/projects/{project['project_id']}/edits"
        line_ids, rev = [project["lines"][0]["line_id"]], project["rev"]
        sent = threads.submit(client.post, "/studio/projects/import", **archive(32_000))
        while not sent.done() and not list((workspace / "projects").glob(".new-*/takes")):
            pass
        answered = 0
        while not sent.done():
            op = {"op": "set", "line_ids": line_ids, "fields": {"text": f"Now {answered}."}}
            edit = {"base_rev": rev, "client": "ida-page", "ops": [op]}
            assert client.get("/healthz/live").status_code == 200
            rev = client.post(url, json=edit).json()["rev"]
            answered += 1
        print(f"{answered} edits while 16,000 takes were imported")
        assert sent.result().status_code == 201
        assert answered >= 10
