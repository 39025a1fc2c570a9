"""The studio from outside: its command line, its server, and the workspace that is kept here.

Nothing in this folder imports the studio, so that these tests pass unchanged however it is laid
out and named within.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from ports import reserve_port

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKED = HERE / "workspace.tar.xz"
RECORDED = HERE / "recorded.json"

VISITOR = "pinned-visitor-0123456789abcdef"
"""The cookie of the visitor whose workspace lies in the packed one."""

_START_S = 120
_RENDER_S = 60
_OURS = re.compile(
    r"(TTS|MODEL|CHATTERBOX|QWEN3|TABLEREAD|SPACE|SPACES|HF|GRADIO|PKUSEG)_|CUDA_VISIBLE_DEVICES"
)
_VOLATILE = frozenset({"seq", "job", "removed_s", "up_s", "stamp", "created"})


def environment(home: Path, **variables: str) -> dict[str, str]:
    """This process's environment without what sets the studio; no weights are in `home`."""
    kept = {name: value for name, value in os.environ.items() if not _OURS.match(name)}
    return kept | {"HF_HOME": str(home / "hub"), "HF_HUB_OFFLINE": "1"} | variables


def run(
    *arguments: str, home: Path, timeout_s: float = 120, **variables: str
) -> subprocess.CompletedProcess[str]:
    """One command of the studio, to its end, in a process of its own."""
    if hasattr(os, "fork"):
        return _fork_server().run(arguments, environment(home, **variables), timeout_s)
    return subprocess.run(
        [sys.executable, "-m", "studio", *arguments],
        cwd=ROOT,
        env=environment(home, **variables),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout_s,
        check=False,
    )


_FORK_SERVER = """
import json, os, runpy, sys

import studio.__main__

for line in sys.stdin:
    asked = json.loads(line)
    if pid := os.fork():
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
        continue
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, name in enumerate((os.devnull, asked["stdout"], asked["stderr"])):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    del sys.modules["studio.__main__"]
    sys.argv[1:] = asked["arguments"]
    runpy.run_module("studio", run_name="__main__", alter_sys=True)
    break
"""


class ForkServer:
    """Runs `python -m studio` in forks of a process that has imported it.

    The import takes a second of processor time, most commands next to nothing. Only what a
    process reads of its environment while it imports is not each command's own: the folder of
    the Hugging Face hub, in which no weights are in either case.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pins-")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORK_SERVER],
            cwd=ROOT,
            env=environment(Path(self._folder.name)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        atexit.register(self._process.communicate)  # it ends at the end of its input

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """One command, as `subprocess.run` would."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        said = [Path(self._folder.name, name) for name in ("stdout", "stderr")]
        for path in said:
            path.unlink(missing_ok=True)
        asked = {
            "arguments": arguments,
            "environment": dict(variables),
            "stdout": str(said[0]),
            "stderr": str(said[1]),
        }
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        ended, _, _ = select.select([self._process.stdout], [], [], timeout_s)
        if not ended:
            raise subprocess.TimeoutExpired(list(arguments), timeout_s)
        status = int(self._process.stdout.readline())
        out, err = (path.read_text(encoding="utf-8") for path in said)
        return subprocess.CompletedProcess(list(arguments), status, out, err)


@functools.cache
def _fork_server() -> ForkServer:
    return ForkServer()


class Server:
    """A studio that serves, in a process of its own."""

    def __init__(self, workspace: Path, *options: str, **variables: str) -> None:
        self.workspace = workspace
        port = reserve_port()
        self.url = f"http://127.0.0.1:{port}"
        fixed = ["serve", "--no-browser", "--no-models", "--port", str(port)]
        log = workspace.with_name(f"{workspace.name}.log")
        if "SPACE_ID" in variables:
            variables["GRADIO_SERVER_PORT"] = str(port)
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "studio", *fixed, "--workspace", str(workspace), *options],
                cwd=ROOT,
                env=environment(workspace.parent, **variables),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.client = httpx.Client(base_url=self.url, timeout=60)
        end_s = time.monotonic() + _START_S
        while "The studio:" not in log.read_text(encoding="utf-8"):
            assert self._process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < end_s, log.read_text(encoding="utf-8")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a crash does."""
        self.client.close()
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End it as Ctrl+C does; its exit status."""
        self.client.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        return self._process.wait(timeout=60)


@contextlib.contextmanager
def serving(workspace: Path, *options: str, **variables: str) -> Iterator[Server]:
    server = Server(workspace, *options, **variables)
    try:
        yield server
    finally:
        server.stop()


def unpack(folder: Path) -> Path:
    """Put the kept workspace and the files beside it into a folder; where the workspace is.

    Files are as old as this moment: what is a month old is cleared away at a start.
    """
    with tarfile.open(PACKED) as packed:
        packed.extractall(folder, filter=_now)
    return folder / "workspace"


def _now(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    checked = tarfile.data_filter(member, folder)
    return None if checked is None else checked.replace(mtime=int(time.time()), deep=False)


def recorded() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return read


def steady(body: Any) -> Any:
    """A body without what differs from run to run."""
    if isinstance(body, dict):
        # Of who isn't in the library, and goes by the colours that others leave.
        passing = _VOLATILE | {"colour"} if "voice" in body and "lines" in body else _VOLATILE
        return {name: steady(value) for name, value in body.items() if name not in passing}
    return [steady(one) for one in body] if isinstance(body, list) else body


def differences(expected: Any, found: Any, at: str = "") -> list[str]:
    """Where something that was there is another or gone; more keys than there were are none."""
    if isinstance(expected, dict) and isinstance(found, dict):
        gone = [f"{at}.{name} is gone" for name in expected if name not in found]
        both = [name for name in expected if name in found]
        return gone + [
            one for name in both for one in differences(expected[name], found[name], f"{at}.{name}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [
            one
            for number, (left, right) in enumerate(zip(expected, found, strict=True))
            for one in differences(left, right, f"{at}[{number}]")
        ]
    if expected == found or (at.endswith(".backend") and found == _without_suffix(expected)):
        return []
    return [f"{at}: {expected!r} became {found!r}"]


def _without_suffix(backend: Any) -> Any:
    """What a voice engine that decodes many lines together may be called by another name."""
    return backend.removesuffix("-batched") if isinstance(backend, str) else backend


def answer_of(address: str, answer: httpx.Response) -> Any:
    """What is kept of an answer: JSON and text as they are, of sound the digest of its samples.

    Lists to which other tests add are told by id, without those that other tests change.
    """
    body = answer.content
    if "format=" in address and "wav" not in address:
        return body.decode("utf-8")
    match answer.headers["content-type"].partition(";")[0]:
        case "application/json":
            return _BY_ID.get(address, steady)(answer.json())
        case "audio/wav" | "audio/x-wav":
            return {"samples": digest(samples_of(body))}
        case _:
            return {"samples": digest(samples_of(body) if "format=wav" in address else body)}


def _speakers(body: Any) -> Any:
    return {
        "problems": body["problems"],
        "speakers": {
            one["speaker_id"]: steady(one) for one in body["speakers"] if one["name"] != "Maud"
        },
    }


_BY_ID: dict[str, Callable[[Any], Any]] = {
    "/studio/speakers": _speakers,
    "/studio/projects": lambda body: {
        one["project_id"]: {"name": one["name"], "lines": one["lines"]}
        for one in body
        if one["name"] != "Many steps"
    },
    "/v1/audio/voices": lambda body: {one["id"]: one for one in body["data"]},
}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def samples_of(wav: bytes) -> bytes:
    """The samples of a WAV."""
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24_000)
        return file.readframes(file.getnframes())


def tone(hz: int, *, seconds: float = 1.2, loudness: int = 3_000) -> bytes:
    """A WAV that can serve as a sample and packs well: a tone that repeats to the sample."""
    period = 24_000 // hz
    one = b"".join(
        round(loudness * (1 - abs(4 * at / period - 2))).to_bytes(2, "little", signed=True)
        for at in range(period)
    )
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(24_000)
        out.writeframes(one * round(seconds * 24_000 / period))
    return file.getvalue()


def entries_of(journal: bytes) -> list[dict[str, Any]]:
    return [json.loads(line)["entry"] for line in journal.splitlines()]


def data_lines(text: str) -> list[Any]:
    """The events of a stream that has ended."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


class Project:
    """A project over HTTP."""

    def __init__(self, client: httpx.Client, project_id: str, who: str = "pins-page") -> None:
        self.client = client
        self.id = project_id
        self.path = f"/studio/projects/{project_id}"
        self._who = who

    @classmethod
    def made(cls, client: httpx.Client, name: str, text: str = "") -> Project:
        answer = client.post("/studio/projects", json={"name": name, "text": text})
        assert answer.status_code == 201, answer.text
        return cls(client, answer.json()["project_id"])

    def now(self) -> dict[str, Any]:
        body: dict[str, Any] = self._got(self.client.get(self.path))
        return body

    def lines(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = self.now()["lines"]
        return lines

    def edit(self, *ops: Mapping[str, Any], **more: object) -> dict[str, Any]:
        asked = {"base_rev": self.now()["rev"], "client": self._who, "ops": ops, **more}
        body: dict[str, Any] = self._got(self.client.post(f"{self.path}/edits", json=asked))
        return body

    def step(self, way: str, **more: object) -> dict[str, Any]:
        """`undo` or `redo`."""
        asked = {"base_rev": self.now()["rev"], "client": self._who, **more}
        body: dict[str, Any] = self._got(self.client.post(f"{self.path}/{way}", json=asked))
        return body

    def render(self, line_ids: list[str] | None = None, *, again: bool = False) -> None:
        asked = {"line_ids": line_ids, "again": again}
        self._got(self.client.post(f"{self.path}/render", json=asked))
        end_s = time.monotonic() + _RENDER_S
        while self.now()["job"]["state"] == "running":
            assert time.monotonic() < end_s, "the render doesn't end"
            time.sleep(0.02)

    def takes(self, line_id: str) -> list[dict[str, Any]]:
        takes: list[dict[str, Any]] = self._got(self.client.get(f"{self.path}/takes/{line_id}"))[
            "takes"
        ]
        return takes

    def export(self, suffix: str, **query: Any) -> bytes:
        answer = self.client.get(f"{self.path}/export", params={"format": suffix, **query})
        assert answer.status_code == 200, answer.text
        return answer.content

    def _got(self, answer: httpx.Response) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()
