"""kill -9 of a real server at random moments of editing and rendering."""

from __future__ import annotations

import json
import os
import random
import threading
import time
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from ports import reserve_port
from project_scenes import until
from serving import Process

SERVER = Path(__file__).with_name("project_server.py")
LINES = 60

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="kill -9 is a thing of POSIX systems"),
]


@contextmanager
def serving(workspace: Path) -> Iterator[tuple[httpx.Client, Process]]:
    port = reserve_port()
    log = workspace.with_suffix(".log")
    process = Process([str(workspace), str(port)], os.environ, log, script=SERVER)
    try:
        base = f"http://127.0.0.1:{port}/studio"
        with httpx.Client(base_url=base, timeout=60) as client:
            until(lambda: process.poll() is not None or is_up(client), every_s=0.1)
            yield client, process
    finally:
        process.kill()
        process.wait()


def is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/projects").status_code == 200
    except httpx.TransportError:
        return False


class Writer:
    """Edits and renders until the server is gone; knows what was acknowledged."""

    def __init__(self, client: httpx.Client, project: dict[str, Any], rng: random.Random) -> None:
        self._client = client
        self._rng = rng
        self._path = f"/projects/{project['project_id']}"
        self.rev = project["rev"]
        self.texts = {line["line_id"]: line["text"] for line in project["lines"]}
        self.in_doubt: dict[str, Any] | None = None
        self.takes: set[str] = set()
        self.deleted: set[str] = set()
        self.edits = self.freed = 0

    def work(self) -> None:
        try:
            self._client.post(f"{self._path}/render", json={})
            while True:
                self._edit()
                if self._rng.random() < 0.2:
                    self._look()
                if self._rng.random() < 0.1:
                    self._client.post(f"{self._path}/render", json={})
                if self._rng.random() < 0.1:
                    self._throw_away()
        except httpx.TransportError:
            return

    def _throw_away(self) -> None:
        """Delete the take of a line, and free what deleted takes and lines hold."""
        lines = self._client.get(self._path).json()["lines"]
        takes = [line["take"]["take_id"] for line in lines if line["take"]]
        if takes:
            take_id = self._rng.choice(takes)
            self.deleted.add(take_id)
            self._edit({"op": "delete_take", "take_id": take_id})
        answer = self._client.post("/space/free", json={})
        assert answer.status_code == 200, answer.text
        self.freed += answer.json()["takes"]["files"]

    def _edit(self, op: dict[str, Any] | None = None) -> None:
        op = op or self._next_op()
        self.in_doubt = op
        body = {"base_rev": self.rev, "client": "writer", "ops": [op]}
        answer = self._client.post(f"{self._path}/edits", json=body)
        assert answer.status_code == 200, answer.text
        self.rev = answer.json()["rev"]
        apply(op, self.texts)
        self.in_doubt = None
        self.edits += 1

    def _next_op(self) -> dict[str, Any]:
        line_id = self._rng.choice(list(self.texts))
        number = self._rng.randrange(10**6)
        if self._rng.random() < 0.7:
            return {"op": "set", "line_ids": [line_id], "fields": {"text": f"Now {number}."}}
        if self._rng.random() < 0.7:
            new = {"line_id": f"{number:012x}", "speaker": "Ben", "text": f"New {number}."}
            return {"op": "insert", "after": line_id, "lines": [new]}
        return {"op": "delete", "line_ids": [line_id]}

    def _look(self) -> None:
        """Remember the takes that were shown as finished."""
        body = self._client.get(self._path).json()
        self.takes |= {line["take"]["take_id"] for line in body["lines"] if line["take"]}


def apply(op: dict[str, Any], texts: dict[str, str]) -> None:
    match op["op"]:
        case "set":
            texts[op["line_ids"][0]] = op["fields"]["text"]
        case "insert":
            texts.setdefault(op["lines"][0]["line_id"], op["lines"][0]["text"])
        case "delete":
            texts.pop(op["line_ids"][0])
        case "delete_take":
            pass


def killed_once(workspace: Path, rng: random.Random) -> str:
    script = "\n\n".join(f"Ida: This is line {idx}." for idx in range(LINES))
    with serving(workspace) as (client, process):
        project = client.post("/projects", json={"name": "Scene", "text": script}).json()
        writer = Writer(client, project, rng)
        thread = threading.Thread(target=writer.work)
        thread.start()
        # The random moment: after some edits, so that a slow machine has as much to lose.
        n_edits = rng.randrange(80)
        until(lambda: writer.edits >= n_edits or not thread.is_alive())
        time.sleep(rng.uniform(0.0, 0.05))
        process.kill()
        process.wait()
        thread.join()
    folder = workspace / "projects" / project["project_id"]
    on_disk, gone = check_files(folder)
    assert not on_disk & gone
    with serving(workspace) as (client, _):
        check(client, writer, folder)
    return (
        f"{writer.edits} edits, {len(on_disk)} takes at the kill, {len(gone)} gone, "
        f"{writer.freed} freed"
    )


def check_files(folder: Path) -> tuple[set[str], set[str]]:
    """Every record has its whole audio or none; the takes there are, and those that are gone."""
    takes, gone = set(), set()
    for path in (folder / "takes").glob("*/*.json"):
        record = json.loads(path.read_text("utf-8"))
        if not path.with_suffix(".wav").exists():
            gone.add(record["take_id"])
            continue
        with wave.open(str(path.with_suffix(".wav")), "rb") as audio:
            assert audio.getnframes() == record["samples"]
        takes.add(record["take_id"])
    return takes, gone


def check(client: httpx.Client, writer: Writer, folder: Path) -> None:
    path = f"/projects/{folder.name}"
    on_disk, gone = check_files(folder)
    body = client.get(path).json()
    shown = {line["line_id"]: line["text"] for line in body["lines"]}
    if shown != writer.texts:
        # The edit whose answer the kill cut off may have taken effect, all of it.
        assert writer.in_doubt is not None
        apply(writer.in_doubt, writer.texts)
        assert shown == writer.texts
    assert writer.takes <= on_disk | gone
    assert body["notices"] == []
    kept = {line["chosen"] for line in body["lines"] if line["chosen"]}
    assert kept.isdisjoint(gone), "a take of a line that is there was freed"
    made_ready(client, path)
    assert on_disk <= check_files(folder)[0]
    records = [json.loads(one.read_text("utf-8")) for one in folder.glob("takes/*/*.json")]
    made = [
        (one["line_id"], one["key"], one["seed"])
        for one in records
        if one["take_id"] not in writer.deleted
    ]
    assert len(set(made)) == len(made), "a take was made twice"
    for _ in range(30):
        client.post(f"{path}/undo", json={"base_rev": 10**6, "client": "writer"})
    made_ready(client, path)


def made_ready(client: httpx.Client, path: str) -> None:
    client.post(f"{path}/render", json={}).raise_for_status()
    until(lambda: (client.get(path).json()["job"] or {}).get("state") != "running", every_s=0.1)
    assert {line["state"] for line in client.get(path).json()["lines"]} == {"ready"}


@pytest.mark.parametrize("seed", range(2))
def test_a_project_survives_the_end_of_its_server(tmp_path: Path, seed: int) -> None:
    print(killed_once(tmp_path / "workspace", random.Random(seed)))


def test_a_render_goes_on_by_itself_after_the_end_of_its_server(tmp_path: Path) -> None:
    script = "\n\n".join(f"Ida: This is line {idx}." for idx in range(400))
    with serving(tmp_path) as (client, process):
        project = client.post("/projects", json={"text": script}).json()
        path = f"/projects/{project['project_id']}"
        client.post(f"{path}/render", json={})
        until(lambda: client.get(path).json()["job"]["summary"]["done"] >= 5, every_s=0.02)
        process.kill()
        process.wait()
    before, _ = check_files(tmp_path / "projects" / project["project_id"])
    print(f"{len(before)} of 400 lines had a take at the kill")
    assert len(before) >= 5
    with serving(tmp_path) as (client, _):
        until(lambda: client.get(path).json()["job"]["state"] == "done", every_s=0.1)
        body = client.get(path).json()
        assert body["job"]["summary"]["total"] <= 400 - len(before) + 5
    assert {line["state"] for line in body["lines"]} == {"ready"}
    after, _ = check_files(tmp_path / "projects" / project["project_id"])
    assert before <= after
    assert len(after) == 400


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_fifty_kills(tmp_path: Path) -> None:
    for seed in range(50):
        told = killed_once(tmp_path / f"workspace-{seed}", random.Random(1_000 + seed))
        print(f"kill {seed}: {told}")
