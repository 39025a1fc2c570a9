"""What a studio answers is on the disk by then: in the order of its system calls."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import psutil
import pytest
from ports import reserve_port
from project_scenes import until

from studio.audio.clip import Clip, write_wav

SERVER = Path(__file__).with_name("project_server.py")
ROOT = Path(__file__).parents[2]
CALLS = "write,writev,pwrite64,sendto,sendmsg,fsync,fdatasync,rename,renameat,renameat2"


def traces() -> bool:
    """Whether strace is here, and may be used."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode == 0


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not traces(), reason="needs strace, a package of Debian, and its rights"),
]


class Call(NamedTuple):
    """A system call that succeeded: when it began and ended, its file and what it was given."""

    began: int
    ended: int
    name: str
    path: str
    given: str


def read_calls(log: Path) -> Iterator[Call]:
    """The calls of all threads in the order in which they ended."""
    begun: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(log.read_text(errors="replace").splitlines()):
        thread, said = line.split(maxsplit=1)
        began = number
        if said.endswith("<unfinished ...>"):
            begun[thread] = number, said.removesuffix("<unfinished ...>")
            continue
        if resumed := re.match(r"<\.\.\. \w+ resumed>", said):
            began, head = begun.pop(thread)
            said = head + said[resumed.end() :]
        if found := re.match(r"(\w+)\((?:\d+<([^>]*)>)?(.*)\) += \d+$", said):
            yield Call(began, number, found[1], found[2] or "", found[3])


@contextmanager
def traced(folder: Path) -> Iterator[httpx.Client]:
    """A server of which `calls.log` in the folder has the calls that write."""
    port = reserve_port()
    command = [
        "strace",
        "-f",
        "-y",
        "-s",
        "4000",
        "-e",
        f"trace={CALLS}",
        "-o",
        folder / "calls.log",
    ]
    command += [sys.executable, SERVER, folder / "workspace", str(port)]
    with (folder / "server.log").open("wb") as log:
        tracer = subprocess.Popen(
            list(map(str, command)), env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=log
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/studio", timeout=60) as client:
            until(lambda: tracer.poll() is not None or is_up(client), every_s=0.1)
            yield client
    finally:
        for server in psutil.Process(tracer.pid).children():
            server.kill()
        tracer.wait()


def is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/projects").status_code == 200
    except httpx.TransportError:
        return False


def text_edit(client: httpx.Client, project: dict, line: int, text: str) -> None:
    fields = {"line_ids": [project["lines"][line]["line_id"]], "fields": {"text": text}}
    body = {"base_rev": 0, "client": f"writer-{line}", "ops": [{"op": "set", **fields}]}
    client.post(f"/projects/{project['project_id']}/edits", json=body).raise_for_status()


def test_an_edit_is_written_then_synced_then_answered(tmp_path: Path) -> None:
    with traced(tmp_path) as client:
        script = "\n\n".join(f"Ida: Line {line}." for line in range(4))
        project = client.post("/projects", json={"name": "Scene", "text": script}).json()

        def write(line: int) -> list[str]:
            texts = [f"Editor {line} says {number}." for number in range(5)]
            for text in texts:
                text_edit(client, project, line, text)
            return texts

        with ThreadPoolExecutor(4) as editors:
            texts = [text for each in editors.map(write, range(4)) for text in each]
    calls = list(read_calls(tmp_path / "calls.log"))
    journal = [one for one in calls if one.path.endswith("/edits.jsonl")]
    syncs = [one for one in journal if one.name == "fsync"]
    for text in texts:
        written = next(one for one in journal if text in one.given)
        answered = next(one for one in calls if "socket:" in one.path and text in one.given)
        assert any(written.ended < one.began and one.ended < answered.began for one in syncs), text
    print(f"{len(texts)} edits of four editors, {len(syncs)} times synced")


class Files:
    """What a power cut could take at a moment: data or names that weren't waited for."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._data: set[str] = set()
        self._names: set[str] = set()

    def take(self, call: Call) -> None:
        """Follow a call."""
        if call.name in ("fsync", "fdatasync"):
            self._data.discard(call.path)
            self._names = {one for one in self._names if str(Path(one).parent) != call.path}
        elif call.name.startswith("rename"):
            source, target = re.findall(r'"([^"]*)"', call.given)
            if not target.startswith(self._root):  # Python's own, of modules that are new
                return
            self._names.add(target)
            if source in self._data:
                self._data.remove(source)
                self._data.add(target)
        elif call.path.startswith(self._root):
            self._data.add(call.path)

    def list_at_risk(self) -> list[str]:
        """Files at risk, but those without a name yet and the snapshot that is written beside."""
        named = {one for one in self._data | self._names if not one.endswith(".part")}
        return sorted(one for one in named if Path(one).name != "project.json")


def test_nothing_is_answered_that_a_power_cut_could_take(tmp_path: Path) -> None:
    sound = tmp_path / "said.wav"
    at_s = np.arange(48_000) / 24_000
    write_wav(sound, Clip((0.3 * np.sin(1_200 * at_s) * np.sin(7 * at_s)).astype(np.float32)))
    with traced(tmp_path) as client:
        made = client.post("/projects", json={"name": "Scene", "text": "Ida: One."}).json()
        at, line_id = f"/projects/{made['project_id']}", made["lines"][0]["line_id"]
        text_edit(client, made, 0, "Two.")
        by = {"base_rev": 1, "client": "writer-0"}
        comment = {"op": "comment", "comment_id": "c" * 12, "line_id": line_id}
        said, about = {"author": "Tom", "text": "Hm."}, {**by, "edit_id": "d" * 12}
        answers = [
            client.post(f"{at}/undo", json=by),
            client.post(f"{at}/redo", json=by),
            client.patch(at, json={"name": "Other"}),
            client.post(f"{at}/edits", json={**by, "ops": [comment | said]}),
            client.post(
                f"{at}/lines/{line_id}/recording", params=about, content=sound.read_bytes()
            ),
            client.put(f"{at}/place", json={"line_id": line_id, "by": "writer"}),
            client.put(f"{at}/script", json={**by, "base_rev": 9, "text": "Ida: Three."}),
            client.post("/speakers", json={"name": "Zoe"}),
            client.delete(at),
            client.post(f"/space/trash/{made['project_id']}/restore", json={}),
        ]
        assert [one.text for one in answers if one.is_error] == []
    files, n_answers = Files(tmp_path / "workspace"), 0
    for call in read_calls(tmp_path / "calls.log"):
        if "socket:" not in call.path:
            files.take(call)
        elif '"HTTP/1.1 2' in call.given:
            n_answers += 1
            assert files.list_at_risk() == [], f"answer {n_answers}"
    assert n_answers >= len(answers) + 2
