"""Names a canary's address to every route of a Space's studio; prints whether the canary was asked.

Run in a network of its own, where the canary's public address is this machine's.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import sys
import threading
from pathlib import Path

import httpx
from addresses import PAGE_ADDRESSES, filled
from serving import end_forks, serving

ASKED: list[str] = []

GRADIO_ADDRESSES = [
    *(
        ("POST", f"/gradio_api/{name}")
        for name in (
            "queue/join",
            "mcp/",
            "run/speak",
            "call/speak",
            "call/v2/speak",
            "api/speak",
            "upload",
            "reset",
        )
    ),
    ("GET", "/gradio_api/queue/data"),
    ("GET", "/config"),
    ("GET", "/"),
]
SPEECH_ADDRESSES = [("POST", "/v1/audio/speech"), ("POST", "/v1/dialogs"), ("GET", "/v1/models")]


class Canary(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        ASKED.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"RIFF")

    do_POST = do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


def speak_bodies(url: str) -> list[dict]:
    """What Gradio takes for a file of another server."""
    named = {"url": url, "path": url, "meta": {"_type": "gradio.FileData"}}
    call = {"fn_index": 0, "session_hash": "canary"}
    return [
        call | {"data": [named, "Ida", 1]},
        call | {"data": ["Hello.", named, 1]},
        call | {"data": ["Hello.", "Ida", named]},
        call | {"data": [[named], "Ida", 1]},
        call | {"data": [{"value": named}, "Ida", 1]},
        call | {"data": [[named], ["Ida"], [1]], "batched": True},
        call | {"data": ["Hello.", "Ida", 1, named]},
        call | {"data": named},
        call | {"data": [f"recording:{url}", named]},
        call | {"data": ["Hello.", named | {"path": "recording:0123456789abcde"}]},
    ]


def passed_bodies(url: str) -> list[dict]:
    """Calls that are passed on, with the address where it is a text or isn't read."""
    stored = {"path": "recording:0123456789abcdef", "url": url, "orig_name": url}
    stored["meta"] = {"_type": "gradio.FileData"}
    call = {"session_hash": "canary"}
    return [
        call | {"fn_index": fn_index, "data": data}
        for fn_index, data in (
            (0, [url, url, 1]),
            (1, [f"[audio: {url}]\nIda: {url}", f"Ida = {url}", 1, "rendered", "wav"]),
            (3, [stored, "Ida", True, ""]),
            (3, [url, "Ida", True, ""]),
            (4, [stored, url, "wav"]),
        )
    ]


def tool_bodies(url: str) -> list[dict]:
    """Calls of the MCP server's tools with an address in each argument."""
    tools: dict[str, dict] = {
        "render_scene": {"script": f"[audio: {url}]\nIda: {url}", "voices": {"Ida": url}},
        "try_voice": {"voice": url, "text": url},
        "read_project": {"project_id": url},
        "propose_edits": {"project_id": url, "changes": [{"kind": "insert", "text": url}]},
    }
    return [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": given},
        }
        for name, given in tools.items()
    ]


def other_bodies(url: str) -> list[dict]:
    named = {"url": url, "path": url, "meta": {"_type": "gradio.FileData"}}
    return [
        named,
        {
            "input": "Hello.",
            "voice": url,
            "ref_audio": url,
            "model": url,
            "dialog": f"[audio: {url}]",
            "script": f"[audio: {url}]\nIda: Hello.",
            "name": url,
            "path": url,
            "file": named,
            "data": [named],
        },
    ]


def main() -> None:
    address, workspace = sys.argv[1], Path(sys.argv[2])
    canary = http.server.ThreadingHTTPServer((address, 0), Canary)
    threading.Thread(target=canary.serve_forever, daemon=True).start()
    url = f"http://{address}:{canary.server_port}/canary.wav"
    httpx.get(url)
    self_test, sent, speak = len(ASKED), 0, []
    ASKED.clear()
    space = {"SPACE_ID": "ida/studio", "SPACE_HOST": "ida-studio.hf.space"}
    with serving(workspace, "--host", "127.0.0.1", environ=space) as (client, _):
        client.timeout = 20
        for body in speak_bodies(url):
            speak.append(client.post("/gradio_api/queue/join", json=body).status_code)
            with contextlib.suppress(httpx.TransportError):  # Gradio breaks off an unknown one
                client.get("/gradio_api/queue/data", params={"session_hash": "canary"})
            sent += 2
        passed = [client.post("/gradio_api/queue/join", json=one) for one in passed_bodies(url)]
        assert all(one.is_success for one in passed), [one.text for one in passed]
        with contextlib.suppress(httpx.TransportError):
            client.get("/gradio_api/queue/data", params={"session_hash": "canary"})
        accept = {"Accept": "application/json, text/event-stream"}
        for body in tool_bodies(url):
            client.post("/gradio_api/mcp/", json=body, headers=accept)
        sent += len(passed) + len(tool_bodies(url))
        routes = [*GRADIO_ADDRESSES, *SPEECH_ADDRESSES, *PAGE_ADDRESSES]
        for method, path in routes:
            if path.endswith("/events"):
                continue
            for body in other_bodies(url) if method in {"POST", "PUT", "PATCH"} else [None]:
                asked = {"url": url, "file": url, "path": url}
                headers = {"X-Forwarded-Host": f"{address}:{canary.server_port}", "Referer": url}
                where = filled(path, {})
                with contextlib.suppress(httpx.TransportError):
                    client.request(method, where, json=body, params=asked, headers=headers)
                sent += 1
    canary.shutdown()
    end_forks()
    print(json.dumps({"self_test": self_test, "sent": sent, "speak": speak, "asked": ASKED}))


if __name__ == "__main__":
    main()
