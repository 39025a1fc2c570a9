"""A package index on this machine: pages of links, and wheels that can be had from a byte on."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from studio.backends.base import Wheel


def make_wheel(project: str, member: str, content: bytes) -> tuple[Wheel, bytes]:
    """A package with one file, as a catalogue states it, and its bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    body = packed.getvalue()
    name = f"{project.replace('-', '_')}-1.0-py3-none-any.whl"
    return Wheel(name, member, len(body), hashlib.sha256(body).hexdigest()), body


@dataclass
class WheelIndex:
    """What the index holds, and how it misbehaves.

    Attributes:
        wheels: Bytes by name.
        break_after: Bytes of a wheel after which the connection drops, once each.
        served: Bytes served, by name.
        asked: Paths with the requests' headers.
    """

    wheels: dict[str, bytes] = field(default_factory=dict)
    break_after: dict[str, list[int]] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Its address, as pip takes it."""
        index = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                index.asked.append((self.path, dict(self.headers)))
                index._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()
        server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        kind, _, name = request.path.strip("/").partition("/")
        if kind == "simple":
            names = [one for one in self.wheels if one.partition("-")[0].replace("_", "-") == name]
            links = "".join(f'<a href="../../files/{one}#sha256=0">{one}</a>\n' for one in names)
            self._send(request, f"<html><body>{links}</body></html>".encode(), bool(names))
        else:
            self._send_wheel(request, name)

    def _send_wheel(self, request: BaseHTTPRequestHandler, name: str) -> None:
        content = self.wheels[name]
        start = int(request.headers.get("Range", "bytes=0-")[len("bytes=") : -1])
        cuts = self.break_after.get(name)
        body = content[start:][: cuts.pop(0) if cuts else None]
        self.served[name] = self.served.get(name, 0) + len(body)
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        request.wfile.write(body)
        request.close_connection = len(body) < len(content) - start

    def _send(self, request: BaseHTTPRequestHandler, body: bytes, found: bool) -> None:
        request.send_response(200 if found else 404)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
