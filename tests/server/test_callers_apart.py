"""What a Space without a key keeps for callers that it can't tell from each other: nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import soundfile
from fastapi.testclient import TestClient
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from serving import serving
from shared_studio import app_of_front, front_of, visitor_of
from voice_like import voice_like

from studio.services.studio import Studio
from studio.voices.library import SpeakerLibrary

pytestmark = pytest.mark.slow

SPACE = {"SPACE_ID": "ida/studio", "SPACE_HOST": "ida-studio.hf.space"}
KEY = "sesame-sesame-sesame"
PUBLIC = ["Captain", "Maud", "Pip"]
CONSENT = {"consent": "true", "ref_text": "private words"}


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sent") / "me.wav"
    soundfile.write(path, voice_like(6.0).samples, 24_000)
    return path


@pytest.fixture(scope="module")
def http(tmp_path_factory) -> Iterator[httpx.Client]:
    workspace = tmp_path_factory.mktemp("space") / "workspace"
    with serving(workspace, "--host", "127.0.0.1", environ=SPACE) as (http, _):
        yield http


def caller(http: httpx.Client) -> httpx.Client:
    """Another machine's program, as a proxy names it, without any cookie."""
    return httpx.Client(base_url=http.base_url, headers={"X-Forwarded-For": "192.0.2.7"})


def send_voice(client: httpx.Client, recording: Path, name: str) -> httpx.Response:
    sent = {"audio_sample": ("a.wav", recording.read_bytes())}
    return client.post("/v1/audio/voices", files=sent, data={"name": name, **CONSENT})


def names(client: httpx.Client | TestClient) -> list[str]:
    listed = client.get("/v1/audio/voices").raise_for_status().json()
    assert listed["uploaded_voices"] == []
    return [one["id"] for one in listed["data"] if one["kind"] == "speaker"]


def test_a_program_without_a_cookie_adds_and_deletes_no_voice(
    http: httpx.Client, recording: Path
) -> None:
    with caller(http) as first, caller(http) as second:
        refused = [
            send_voice(first, recording, "GrandmaClone"),
            second.delete("/v1/audio/voices/GrandmaClone"),
            second.delete("/v1/audio/voices/Maud"),
        ]
        for one in refused:
            assert one.status_code == 403
            assert one.json()["error"]["type"] == "permission_error"
            assert "cookie" in one.json()["error"]["message"]
            assert "TABLEREAD_API_KEY" in one.json()["error"]["message"]
        assert names(second) == PUBLIC
        spoken = second.post("/v1/audio/speech", json={"input": "Hello.", "voice": "Maud"})
        assert spoken.status_code == 200
        assert len(spoken.content) > 1_000


def test_with_the_cookie_of_the_page_it_has_voices_of_its_own(
    http: httpx.Client, recording: Path
) -> None:
    with caller(http) as first, caller(http) as second:
        cookie = first.get("/").headers["set-cookie"].partition(";")[0]
        first.cookies.clear()
        first.headers["Cookie"] = cookie
        assert send_voice(first, recording, "Vera").status_code == 200
        assert "Vera" in first.get("/v1/audio/voices").text
        assert names(second) == PUBLIC
        assert second.delete("/v1/audio/voices/Vera").status_code == 403
        assert first.delete("/v1/audio/voices/Vera").status_code == 200


def test_gradios_client_without_a_cookie_keeps_no_voice(
    http: httpx.Client, recording: Path, tmp_path: Path
) -> None:
    first, second = (
        Client(str(http.base_url), verbose=False, download_files=tmp_path) for _ in range(2)
    )
    with pytest.raises(AppError, match="cookie that its page sets, or the key"):
        first.predict(handle_file(recording), "SecretClone", consent=True, api_name="/add_voice")
    speakers = [one for one in second.predict(api_name="/voices") if one["kind"] == "speaker"]
    assert [one["name"] for one in speakers] == PUBLIC
    assert len(soundfile.read(second.predict("Hello.", "Maud", api_name="/speak"))[0]) > 1_000
    levelled, _ = second.predict(handle_file(recording), "-20", api_name="/loudness")
    assert len(soundfile.read(levelled)[0]) > 1_000
    first.close()
    second.close()


async def test_an_mcp_client_without_a_cookie_reads_and_changes_no_project(
    http: httpx.Client,
) -> None:
    pytest.importorskip("mcp", reason="the package mcp isn't installed")
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    address = f"{str(http.base_url).rstrip('/')}/gradio_api/mcp/"
    async with (
        streamable_http_client(address) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        change = {"kind": "insert", "speaker": "Ida", "text": "Hello."}
        for name, given in (
            ("read_project", {}),
            ("propose_edits", {"changes": [change]}),
            ("read_proposal", {"proposal_id": "0" * 16}),
        ):
            refused = await session.call_tool(name, given | {"project_id": "0" * 12})
            assert refused.isError
            assert "cookie" in refused.content[0].text
        listed = json.loads((await session.call_tool("list_voices", {})).content[0].text)
        assert [one["id"] for one in listed if one["kind"] == "speaker"] == PUBLIC
        tried = await session.call_tool("try_voice", {"voice": "Maud"})
        assert tried.content[1].type == "audio"


def test_gradios_client_with_the_key_works_in_the_owners_studio(
    recording: Path, tmp_path: Path
) -> None:
    owner = {"Authorization": f"Bearer {KEY}"}
    environ = {"TABLEREAD_API_KEY": KEY, **SPACE}
    with serving(tmp_path / "workspace", "--host", "127.0.0.1", environ=environ) as (http, _):
        client = Client(str(http.base_url), headers=owner, verbose=False)
        client.predict(handle_file(recording), "Vera", consent=True, api_name="/add_voice")
        client.close()
        assert "Vera" in http.get("/v1/audio/voices", headers=owner).text


def test_what_an_earlier_version_kept_for_all_is_nobodys(studio: Studio) -> None:
    shared = SpeakerLibrary(studio.options.workspace / "visitors" / "programs" / "speakers")
    shared.add("GrandmaClone", sample=voice_like(6.0))
    shared.add("Moody")
    shared.add_mood("Moody", "angry", voice_like(6.0))
    shared.add("Ida")
    app = app_of_front(front_of(studio))
    assert names(visitor_of(app)) == ["Ida"]
    assert {one.name for one in shared.list_removed()} == {"GrandmaClone", "Moody"}
