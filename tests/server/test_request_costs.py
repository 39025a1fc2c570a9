"""The largest request of every route takes at most 100 MB, and a second where it can."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from addresses import filled
from largest_requests import ADDRESSES, EDITS, ENDLESS, SPECIAL, Largest, Scene, general, script
from request_costs import Cost, CostMeter
from serving import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of memory"),
]

MOST_BYTES = 100_000_000

MEASURED = sorted(ADDRESSES - ENDLESS)


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
        client.timeout = 300
        return send(client, CostMeter(process.pid), largest, ids)


def send(client: httpx.Client, meter: CostMeter, largest: Largest, ids: dict[str, str]) -> Cost:
    client.post(f"/studio/projects/{ids['project_id']}/cancel")  # opens it
    project = {"rev": 0, "lines": []}
    if largest.sends_lines:
        project = client.get(f"/studio/projects/{ids['project_id']}").json()
    request = largest.build(Scene(ids, project))
    method, path = largest.address.split(" ")
    answer, cost = meter.measure(lambda: client.request(method, filled(path, ids), **request))
    assert answer.status_code < 500, answer.text
    print(
        f"{largest.address:60} {largest.name:24} {answer.status_code} "
        f"{cost.memory_bytes / 1e6:6.0f} MB {cost.cpu_s:6.2f} s  {largest.why}"
    )
    return cost


def check(largest: Largest, cost: Cost) -> None:
    assert cost.memory_bytes <= MOST_BYTES, (largest.address, largest.name, cost)
    assert cost.cpu_s <= largest.cpu_s, (largest.address, largest.name, cost)


def test_every_route_is_measured() -> None:
    known = {one.address for one in SPECIAL}
    assert known <= ADDRESSES
    assert ENDLESS <= ADDRESSES
    assert len(ADDRESSES) > 60


def test_what_takes_more_than_a_second_says_why() -> None:
    assert [one.name for one in SPECIAL if one.cpu_s > 1 and not one.why] == []


def test_many_edits_of_a_long_project(large, tmp_path) -> None:
    renames = next(one for one in SPECIAL if "rename_speaker" in one.name)
    assert renames.address == EDITS
    cost = measure(renames, large, tmp_path)
    assert cost.memory_bytes <= MOST_BYTES
    assert cost.cpu_s <= 4  # it took minutes; the campaign has the machine for itself


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
        client.timeout = 300
        meter = CostMeter(process.pid)
        client.get("/studio/state")
        for address in sorted(MEASURED, key=lambda one: one.startswith("DELETE")):
            largest = general(address)
            try:
                check(largest, send(client, meter, largest, ids))
            except AssertionError as error:
                failed.append(str(error))
    assert failed == []
