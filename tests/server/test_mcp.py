"""The MCP server, as the official client of the protocol sees it."""
# ruff: noqa: ASYNC212 - what the page asks needs no loop: the server has a process of its own

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import soundfile
from serving import serving

mcp = pytest.importorskip("mcp", reason="the package mcp isn't installed")

from mcp import ClientSession  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

pytestmark = pytest.mark.slow

KEY = "sesame-sesame-sesame"
SCRIPT = "Ida: Good evening.\nTom: How long?\nIda: Not long."


@pytest.fixture(scope="module")
def http(tmp_path_factory) -> Iterator[httpx.Client]:
    with serving(tmp_path_factory.mktemp("mcp") / "workspace") as (http, _):
        yield http


@asynccontextmanager
async def connected(http: httpx.Client, key: str | None = None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    address = f"{str(http.base_url).rstrip('/')}/gradio_api/mcp/"
    async with (
        httpx.AsyncClient(headers=headers, timeout=120) as sender,
        streamable_http_client(address, http_client=sender) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def call(session: ClientSession, name: str, **given: Any) -> Any:
    done = await session.call_tool(name, given)
    assert not done.isError, done.content
    return json.loads(done.content[0].text)


async def test_the_tools_are_listed_as_on_the_page(http: httpx.Client) -> None:
    async with connected(http) as session:
        listed = (await session.list_tools()).tools
    assert [tool.name for tool in listed] == [
        "list_voices",
        "try_voice",
        "render_scene",
        "list_projects",
        "read_project",
        "propose_edits",
        "read_proposal",
    ]
    [seed, _none] = listed[2].inputSchema["properties"]["seed"]["anyOf"]
    assert (seed["minimum"], seed["exclusiveMaximum"]) == (0, 4_294_967_296)
    on_page = http.get("/gradio_api/mcp/schema").json()
    assert [(one["name"], one["inputSchema"]) for one in on_page] == [
        (tool.name, tool.inputSchema) for tool in listed
    ]
    assert http.get("/config").json()["mcp_server"] is True
    reads = {tool.name: tool.annotations.readOnlyHint for tool in listed}
    assert [name for name, is_reading in reads.items() if not is_reading] == ["propose_edits"]
    assert {tool.annotations.destructiveHint or False for tool in listed} == {False}


async def test_the_server_names_the_studios_version(http: httpx.Client) -> None:
    address = f"{str(http.base_url).rstrip('/')}/gradio_api/mcp/"
    async with (
        streamable_http_client(address) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        about = (await session.initialize()).serverInfo
    assert (about.name, about.version) == ("tableread", "0.1.0")


async def test_it_renders_a_scene_and_tells_how_far_it_is(http: httpx.Client) -> None:
    heard: list[tuple[float, float | None]] = []

    async def hear(done: float, total: float | None, _: str | None) -> None:
        heard.append((done, total))

    async with connected(http) as session:
        given = {"script": SCRIPT, "voices": {"Tom": "Ida"}, "seed": 1, "audio_format": "mp3"}
        done = await session.call_tool("render_scene", given, progress_callback=hear)
    about = json.loads(done.content[0].text)
    assert about["lines"] == 3
    assert about["failed"] == []
    sound, rate_hz = soundfile.read(io.BytesIO(base64.b64decode(done.content[1].data)))
    assert done.content[1].mimeType == "audio/mpeg"
    assert len(sound) / rate_hz == pytest.approx(about["audio_s"], abs=0.1)
    assert http.get(about["url"]).content == base64.b64decode(done.content[1].data)
    assert heard[-1] == (3, 3)


async def test_it_lists_and_tries_voices(http: httpx.Client) -> None:
    async with connected(http) as session:
        voices = await call(session, "list_voices")
        assert {"id", "name", "kind", "languages"} == set(voices[0])
        tried = await session.call_tool("try_voice", {"voice": voices[0]["id"]})
        assert tried.content[1].type == "audio"
        by_name = await session.call_tool("try_voice", {"voice": voices[-1]["name"].upper()})
        assert by_name.content[1].type == "audio"
        for voice in ("", "Nobody here"):
            wrong = await session.call_tool("try_voice", {"voice": voice})
            assert wrong.isError
            assert "list_voices has those there are" in wrong.content[0].text
        silent = await session.call_tool("try_voice", {"voice": voices[0]["id"], "text": "[sigh]"})
        assert "Nothing to say" in silent.content[0].text


async def test_proposed_edits_wait_for_the_page(http: httpx.Client) -> None:
    made = http.post("/studio/projects", json={"name": "Scene", "text": SCRIPT}).json()
    project_id, at = made["project_id"], f"/studio/projects/{made['project_id']}"
    async with connected(http) as session:
        assert project_id in {one["project_id"] for one in await call(session, "list_projects")}
        read = await call(session, "read_project", project_id=project_id)
        assert [line["text"] for line in read["lines"]] == [
            "Good evening.",
            "How long?",
            "Not long.",
        ]
        first = read["lines"][0]["line_id"]
        changes = [{"kind": "change", "line_id": first, "text": "Good evening, Tom."}]
        proposed = await call(
            session, "propose_edits", project_id=project_id, changes=changes, note="Name him."
        )
        assert proposed["state"] == "waiting"
        shown = http.get(f"{at}/proposal").json()
        assert shown == {
            "proposal_id": proposed["proposal_id"],
            "state": "waiting",
            "note": "Name him.",
            "changes": [
                {
                    "line_id": first,
                    "before": {"speaker": "Ida", "text": "Good evening."},
                    "after": {"speaker": "Ida", "text": "Good evening, Tom."},
                }
            ],
        }
        assert http.get(at).json()["lines"][0]["text"] == "Good evening."
        body = {"base_rev": made["rev"], "client": "person-page"}
        accepted = http.post(f"{at}/proposal/{proposed['proposal_id']}/accept", json=body)
        assert accepted.status_code == 200
        told = await call(
            session, "read_proposal", project_id=project_id, proposal_id=proposed["proposal_id"]
        )
        assert told["state"] == "accepted"
    assert http.get(at).json()["lines"][0]["text"] == "Good evening, Tom."
    http.post(f"{at}/undo", json=body | {"base_rev": accepted.json()["rev"], "own": True})
    assert http.get(at).json()["lines"][0]["text"] == "Good evening."


async def test_lines_are_numbered_as_on_the_page(http: httpx.Client) -> None:
    script = "## One\nIda: Good evening.\n[pause:1s]\n# note\nTom: How long?\n[audio: bell.wav]"
    project_id = http.post("/studio/projects", json={"name": "S", "text": script}).json()[
        "project_id"
    ]
    async with connected(http) as session:
        whole = await call(session, "read_project", project_id=project_id)
        rest = await call(session, "read_project", project_id=project_id, first=3)
        listed = await call(session, "list_projects")
        made = json.loads(
            (await session.call_tool("render_scene", {"script": script})).content[0].text
        )
    assert (whole["n_lines"], whole["n_rows"], made["lines"]) == (3, 6, 3)
    assert [one["lines"] for one in listed if one["project_id"] == project_id] == [3]
    assert made["failed"] == ["Line 6: The audio file “bell.wav” can't be used here."]
    numbers = [(line["kind"], line.get("number")) for line in whole["lines"]]
    assert numbers == [
        ("heading", None),
        ("speech", 1),
        ("silence", None),
        ("note", None),
        ("speech", 2),
        ("audio", 3),
    ]
    assert rest["lines"] == whole["lines"][2:]


async def test_a_wrong_call_is_told_in_words(http: httpx.Client) -> None:
    async with connected(http) as session:
        for name, given, message in [
            ("shout", {}, "no tool"),
            ("render_scene", {"script": 3}, "argument script"),
            ("render_scene", {"script": "Ida: Hm.", "url": "http://x"}, "argument url"),
            ("read_project", {"project_id": "../../etc"}, ""),
        ]:
            refused = await session.call_tool(name, given)
            assert refused.isError
            assert message in refused.content[0].text


def test_a_browser_is_told_what_this_is(http: httpx.Client) -> None:
    answer = http.get("/gradio_api/mcp/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert "MCP client" in answer.text


async def test_of_a_shared_studio_only_the_key_opens_the_owners(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    space = {"SPACE_ID": "ida/studio", "SPACE_HOST": "ida-studio.hf.space"}
    environ = {"TABLEREAD_API_KEY": KEY, **space}
    with serving(workspace, "--host", "127.0.0.1", environ=environ) as (http, _):
        owner = {"Authorization": f"Bearer {KEY}"}
        made = http.post(
            "/studio/projects", json={"name": "Mine", "text": SCRIPT}, headers=owner
        ).json()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            answer = http.post("/gradio_api/mcp/", json=message, headers=accept | headers)
            assert answer.status_code == 401
        async with connected(http, KEY) as session:
            listed = await call(session, "list_projects")
            assert [one["project_id"] for one in listed] == [made["project_id"]]
            about = await call(session, "render_scene", script="Ida: Good evening.")
        assert http.get(f"/studio/projects/{made['project_id']}/proposal").status_code == 404
        file = httpx.URL(about["url"]).raw_path.decode()
        assert http.get(file).status_code == 404  # a guest's studio doesn't have it
        assert http.get(file, headers=owner).status_code == 200


async def test_of_a_shared_studio_without_a_key_nothing_of_a_visitor_is_seen(
    tmp_path: Path,
) -> None:
    space = {"SPACE_ID": "ida/studio", "SPACE_HOST": "ida-studio.hf.space"}
    with serving(tmp_path / "workspace", "--host", "127.0.0.1", environ=space) as (http, _):
        answer = http.post("/studio/projects", json={"name": "Mine", "text": SCRIPT})
        guest = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        project_id, line_id = answer.json()["project_id"], answer.json()["lines"][0]["line_id"]
        async with connected(http) as session:
            assert await call(session, "list_projects") == []
            for name, given in (
                ("read_project", {}),
                ("propose_edits", {"changes": [{"kind": "delete", "line_id": line_id}]}),
                ("read_proposal", {"proposal_id": "0" * 16}),
            ):
                refused = await session.call_tool(name, given | {"project_id": project_id})
                assert refused.isError
            about = await call(session, "render_scene", script="Ida: Good evening.")
        at = f"/studio/projects/{project_id}"
        assert http.get(at, headers=guest).status_code == 200
        assert http.get(f"{at}/proposal", headers=guest).status_code == 404
        # The file is in the studio of callers without a cookie.
        assert http.get(about["url"], headers=guest).status_code == 404
        assert http.get(about["url"]).status_code == 200


_ASKS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_LIST = b'{"jsonrpc":"2.0","id":%b,"method":"tools/list"}'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (_LIST % b'"\xff"', -32700),
        (b"[" * 5_000 + b"]" * 5_000, -32700),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, -32700),
        (_LIST % (b"9" * 5_000), -32700),
        (_LIST % b"NaN", -32700),
        (b"", -32700),
        (b"{", -32700),
        (b"[]", -32600),
        (b"[" + _LIST % b"1" + b"]", -32600),
        (b"3", -32600),
        (b"null", -32600),
        (_LIST % b"null", -32600),
        (_LIST % b"1.5", -32600),
        (_LIST % b"true", -32600),
    ],
)
def test_what_is_no_message_is_refused_as_json_rpc_says(
    http: httpx.Client, body: bytes, code: int
) -> None:
    answer = http.post("/gradio_api/mcp/", content=body, headers=_ASKS)
    assert answer.status_code == 400
    refused = answer.json()
    assert (refused["jsonrpc"], refused["id"], refused["error"]["code"]) == ("2.0", None, code)
    assert len(refused["error"]["message"]) < 100


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"id": "\ud800", "method": "tools/list"}, "list_voices"),
        ({"method": "tools/call", "params": {"name": "\ud800", "arguments": {}}}, "no tool “�”"),
        (
            {
                "method": "tools/call",
                "params": {"name": "render_scene", "arguments": {"script": "Ida: Hm, \ud83d."}},
            },
            '\\"lines\\": 1',
        ),
    ],
)
def test_half_a_character_gets_an_answer(
    http: httpx.Client, message: dict[str, Any], told: str
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
    answer = http.post("/gradio_api/mcp/", content=body, headers=_ASKS)
    assert answer.status_code == 200
    assert told in answer.text


def test_a_client_that_wants_no_answer_gets_none(http: httpx.Client) -> None:
    body = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    answer = http.post("/gradio_api/mcp/", content=body, headers=_ASKS)
    assert (answer.status_code, answer.content) == (202, b"")
