"""Names a canary's address to every route of a Space's studio; prints whether the canary was asked.

Run in a network of its own, where the canary's public address is this machine's.
"""

from __future__ import annotations

import contextlib
import gzip
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


def odd_calls(url: str, host: str) -> list[tuple[bytes, dict[str, str]]]:
    """Calls as no client writes them, with their headers."""
    names = [
        url,
        url.upper(),
        url.removeprefix("http:"),
        url.replace("//", "\\\\"),
        url.replace(".", "\u3002").replace("5", "\uff15"),
        f"http://ida@{host}/x.wav",
        f"ftp://{host}/x.wav",
        "file:///etc/hostname",
        "data:audio/wav;base64,UklGRg==",
        "/etc/hostname",
        "/proc/self/environ",
        "recording:../../../etc/hostname",
    ]
    files = [{"path": one, "url": one, "meta": {"_type": "gradio.FileData"}} for one in names]
    first = files[0]
    files += [
        {"meta": {"_type": "gradio.FileData"}, "is_stream": True, "url": url, "path": names[-1]},
        {"meta": {"_type": "gradio._urlData"}, "path": url},
        {"meta": {"_type": "gradio.FileData"}, "path": "recording:0123456789abcdef\n", "url": url},
        [[{"a": [{"b": (first, [first])}]}]],
        {"__type__": "blob", "data": first},
    ]
    odd = [json.dumps([one, "Ida", 1]) for one in files]
    odd.append(odd[0].replace("_type", "\\u005ftype").replace("url", "\\u0075rl"))
    json_type = {"Content-Type": "application/json"}
    call = '{"fn_index": 3, "session_hash": "canary", "data": %s}'
    calls = [((call % one).encode(), json_type) for one in odd]
    twice = '{"fn_index": 3, "session_hash": "canary", "data": %s, "data": %s}'
    plain = '["Hello.", "Ida", 1]'
    calls += [((twice % both).encode(), json_type) for both in ((plain, odd[0]), (odd[0], plain))]
    calls.append((json.dumps({"recording": first, "name": url}).encode(), json_type))
    whole = call % odd[0]
    for charset in ("utf-16", "utf-16-le", "utf-32", "utf-7", "utf-8-sig"):
        sent = {"Content-Type": f"application/json; charset={charset}"}
        calls.append((whole.encode(charset), sent))
    calls.append((gzip.compress(whole.encode()), {**json_type, "Content-Encoding": "gzip"}))
    for kind in ("text/plain", "application/ld+json", "application/x-www-form-urlencoded", ""):
        calls.append((whole.encode(), {"Content-Type": kind}))
    part = f'--ab\r\nContent-Disposition: form-data; name="data"\r\n\r\n{odd[0]}\r\n--ab--\r\n'
    calls.append((part.encode(), {"Content-Type": "multipart/form-data; boundary=ab"}))
    return calls


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
    copies = workspace.parent / "copies"
    space = {"SPACE_ID": "ida/studio", "SPACE_HOST": "ida-studio.hf.space"}
    space["GRADIO_TEMP_DIR"] = str(copies)
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
        joined = False
        for body, headers in odd_calls(url, f"{address}:{canary.server_port}"):
            for path in ("queue/join", "call/add_voice", "call/v2/add_voice", "mcp/", "reset"):
                for content in (body, iter([body])):  # of a stated length, and in chunks
                    answer = client.post(f"/gradio_api/{path}", content=content, headers=headers)
                    joined |= path == "queue/join" and answer.is_success
                    sent += 1
        if joined:  # or nothing would end the stream of a session that is known
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
    copied = [str(one) for one in copies.rglob("*") if one.is_file()]
    seen = {"self_test": self_test, "sent": sent, "speak": speak, "asked": ASKED}
    print(json.dumps(seen | {"copied": copied}))


if __name__ == "__main__":
    main()
