"""A model hub on this machine that speaks what downloads need of the real one's HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from studio.backends.base import WeightFile, WeightSource

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def safetensors(n_bytes: int) -> bytes:
    """A file of weights with one tensor of so many bytes."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [n_bytes], "data_offsets": [0, n_bytes]}})
    body = bytes(idx * 31 % 251 for idx in range(n_bytes))
    return struct.pack("<Q", len(header)) + header.encode() + body


@dataclass
class TinyHub:
    """What the hub holds, its releases on GitHub too, and how it misbehaves.

    Attributes:
        files: Content by path.
        status: Answered to every question about the model instead of the model.
        break_after: Bytes of a path's body after which the connection drops, once each.
        busy: Statuses answered to questions for files before the files are.
        corrupt: Paths served with other bytes than the hub says.
        hold_after: Bytes of a path's body after which it waits until it is taken out of here, and
            then longer than the studio takes from one report of its progress to the next.
        served: Bytes served, by path.
    """

    files: dict[str, bytes]
    status: int | None = None
    error_code: str | None = None
    break_after: dict[str, list[int]] = field(default_factory=dict)
    busy: list[int] = field(default_factory=list)
    corrupt: set[str] = field(default_factory=set)
    hold_after: dict[str, int] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)
    requests: int = 0

    @contextmanager
    def serving(self, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[None]:
        """Stand in for the hub, with a cache of its own, until the block ends.

        The catalogues then state the files that this one holds.
        """
        endpoint = self.start()
        monkeypatch.setattr(WeightSource, "stated", property(self._state))
        monkeypatch.setattr(
            "studio.backends.hub.weight_places.RELEASE_URL",
            f"{endpoint}/{{name}}/resolve/{COMMIT}/",
        )
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", endpoint)
        monkeypatch.setattr(
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
            endpoint + "/{repo_id}/resolve/{revision}/{filename}",
        )
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
        yield
        self.stop()

    def _state(self, source: WeightSource) -> dict[str, WeightFile]:
        paths = [path for need in source.needs for path in need.split("|")]
        held = {path: self.files[path] for path in paths if path in self.files}
        return {
            path: WeightFile(path, len(content), hashlib.sha256(content).hexdigest())
            for path, content in held.items()
        }

    def start(self) -> str:
        """Serve in a thread; the endpoint."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                hub.requests += 1
                hub._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self.url

    @property
    def url(self) -> str:
        """The endpoint, once it serves."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        """Refuse connections from now on."""
        self.hold_after.clear()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        if self.status is not None:
            self._send(request, b"{}", status=self.status)
        elif request.path.startswith("/api/models/"):
            self._send(request, json.dumps(self._info()).encode())
        elif self.busy:
            self._send(request, b"", status=self.busy.pop(0))
        else:
            self._send_file(request, request.path.partition("/resolve/")[2].partition("/")[2])

    def _info(self) -> dict[str, object]:
        siblings = [
            {"rfilename": path, "size": len(content), **_etag(path, content)}
            for path, content in self.files.items()
        ]
        return {"id": "ada/voice", "sha": COMMIT, "siblings": siblings}

    def _send_file(self, request: BaseHTTPRequestHandler, path: str) -> None:
        content = self.files[path]
        if path in self.corrupt:
            content = bytes(len(content))
        start = int(request.headers.get("Range", "bytes=0-")[len("bytes=") : -1])
        cuts = self.break_after.get(path)
        cut = cuts.pop(0) if cuts else None
        body = content[start:][:cut]
        self.served[path] = self.served.get(path, 0) + len(body)
        length = len(content) - start
        held = path in self.hold_after
        begun = body[: max(0, self.hold_after[path] - start)] if held else body
        self._send(request, begun, status=206 if start else 200, length=length)
        if held:
            self._wait(path)
            with contextlib.suppress(OSError):  # who asked may have gone meanwhile
                request.wfile.write(body[len(begun) :])
        if cut is not None:
            request.close_connection = True

    def _wait(self, path: str) -> None:
        while path in self.hold_after:
            time.sleep(0.01)
        time.sleep(0.3)

    def _send(
        self, request: BaseHTTPRequestHandler, body: bytes, *, status: int = 200, length: int = -1
    ) -> None:
        request.send_response(status)
        if self.error_code:
            request.send_header("X-Error-Code", self.error_code)
        request.send_header("Content-Length", str(len(body) if length < 0 else length))
        request.end_headers()
        request.wfile.write(body)


def _etag(path: str, content: bytes) -> dict[str, object]:
    if path.endswith(".safetensors"):
        digest = hashlib.sha256(content).hexdigest()
        return {"lfs": {"sha256": digest, "size": len(content), "pointerSize": 130}}
    return {"blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}
