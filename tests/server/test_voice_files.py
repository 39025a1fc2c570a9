"""Voices that the owner adds over HTTP: by their files, and public ones by name."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sherpa_models
from fastapi.testclient import TestClient
from test_routes import client_of
from tiny_hub import TinyHub

from studio.backends.base import WeightSource
from studio.backends.options import BackendOptions
from studio.backends.registry import create
from studio.services.studio import Studio, StudioOptions
from studio.storage.disk import Disk

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("espeakng_loader")

EVA = "de_DE-eva-medium"
JOE = "en_US-joe-medium"
PATH = "en/en_US/joe/medium/en_US-joe-medium.onnx"


def settings_of(speakers: int = 1, **said: object) -> bytes:
    symbols = dict.fromkeys(sherpa_models.IPA)
    known = {
        "audio": {"sample_rate": 22_050},
        "espeak": {"voice": "de"},
        "num_speakers": speakers,
        "phoneme_id_map": {char: [number] for number, char in enumerate(symbols)},
    }
    return json.dumps(known | said).encode()


def voice(speakers: int = 1, name: str = EVA, **said: object) -> dict[str, bytes]:
    return {
        f"{name}.onnx": sherpa_models.piper_graph(speakers),
        f"{name}.onnx.json": settings_of(speakers, **said),
    }


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinyHub]:
    """The hub with a voice of random weights in Joe's place."""
    graph, settings = voice(2, espeak={"voice": "en-us"}).values()
    hub = TinyHub({PATH: graph, f"{PATH}.json": settings})
    md5s = {path: hashlib.md5(content).hexdigest() for path, content in hub.files.items()}
    sizes = {path: len(content) for path, content in hub.files.items()}

    def state(source: WeightSource) -> dict[str, Any]:
        if PATH not in source.needs:
            return hub._state(source)
        held = source.files.values()
        return {
            one.path: replace(one, md5=md5s[one.path], size_bytes=sizes[one.path]) for one in held
        }

    with hub.serving(monkeypatch, tmp_path / "cache"):
        monkeypatch.setattr(WeightSource, "stated", property(state))
        yield hub


@pytest.fixture
def studio(hub: TinyHub, tmp_path: Path) -> Iterator[Studio]:
    workspace = tmp_path / "workspace"
    make = partial(create, options=BackendOptions(own_voices=workspace / "voices"))
    options = StudioOptions(workspace, "draft", ("piper", "kokoro", "draft"), recognisers={})
    with Studio.open(options, make) as studio:
        yield studio


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with client_of(studio) as client:
        yield client


def send(client: TestClient, files: dict[str, bytes]) -> Any:
    parts = [("files", (name, content)) for name, content in files.items()]
    return client.post("/studio/voice-files", files=parts)


def listed(client: TestClient) -> dict[str, Any]:
    return client.get("/studio/voice-files").json()["own"]


def left(studio: Studio) -> set[str]:
    """What is in the folder of voices, and of an upload."""
    folders = (studio.own_voices, studio.options.workspace / "uploads")
    return {path.name for one in folders if one.is_dir() for path in one.rglob("*")}


def offered(client: TestClient) -> list[dict[str, Any]]:
    """Piper's voices in the picker of a character."""
    project = client.post("/studio/projects", json={"text": "Eva: Guten Abend."}).json()[
        "project_id"
    ]
    voices = client.get(f"/studio/projects/{project}/voices", params={"speaker": "Eva"}).json()
    return [one for one in voices["voices"] if one["engine"] == "piper"]


@pytest.mark.parametrize("speakers", [1, 2, 904])
def test_a_voice_is_in_the_picker_at_once_and_gone_when_it_is_removed(
    client: TestClient, studio: Studio, speakers: int
) -> None:
    answer = send(client, voice(speakers))
    assert answer.status_code == 201, answer.text
    assert len(answer.json()) == speakers
    assert listed(client) == {f"{EVA}.onnx": ["de", speakers]}
    assert len(offered(client)) == speakers
    engines = client.get("/studio/state").json()["backends"]
    assert {one["name"]: one["presets"] for one in engines}["piper"] == speakers
    assert client.delete(f"/studio/engines/{EVA}.onnx/weights").status_code == 204
    assert listed(client) == {}
    assert left(studio) == set()
    again = client.delete(f"/studio/engines/{EVA}.onnx/weights")
    assert again.json()["error"]["message"].startswith(f"There is no voice {EVA}.onnx")


def test_a_style_of_kokoros_is_listed_and_removed(client: TestClient) -> None:
    assert send(client, {"mine.bin": np.zeros((510, 256), np.float32).tobytes()}).json() == ["mine"]
    assert listed(client) == {"mine.bin": None}
    assert client.delete("/studio/engines/mine.bin/weights").status_code == 204
    assert listed(client) == {}


def test_a_style_of_a_loaded_kokoro_is_offered_at_once(
    client: TestClient, studio: Studio, hub: TinyHub
) -> None:
    hub.files |= sherpa_models.kokoro({"af_heart": np.ones((510, 1, 256), np.float32)})
    studio.engine.load("kokoro")
    backend = studio.backends()["kokoro"]
    for change, presets in (
        (lambda: send(client, {"mine.bin": np.zeros((510, 256), np.float32).tobytes()}), {"mine"}),
        (lambda: client.delete("/studio/engines/mine.bin/weights"), set()),
    ):
        assert change().is_success
        offered = {one.preset_id for one in backend.capabilities.presets}
        assert offered == {"af_heart", *presets}
        studio.engine.load("kokoro")


def only(suffix: str) -> dict[str, bytes]:
    return {name: content for name, content in voice().items() if name.endswith(suffix)}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (only(".onnx"), r"\.onnx comes without \S+\.onnx\.json: add both files of the voice\."),
        (only(".json"), r"\.onnx\.json comes without \S+\.onnx: add both files of the voice\."),
        (voice() | {f"{EVA}.onnx": b"x"}, r"\.onnx is no Piper voice, or broken\."),
        (
            voice(phoneme_id_map={"_": [0], "^": [1], "$": [2], "a": [9_000]}),
            r"is of another voice",
        ),
        (voice() | {f"{EVA}.onnx.json": b"[]"}, r"isn't the description of a Piper voice\."),
        ({"x.png": b"x"}, r"x\.png is no voice: add a Piper voice"),
        ({"x.npz": b"x"}, r"x\.npz holds no styles of Kokoro's\."),
        ({"../../x.png": b"x"}, r"^x\.png is no voice"),
        ({"..": b"x"}, ""),
    ],
)
def test_what_is_no_voice_is_refused_in_a_sentence_and_leaves_nothing(
    client: TestClient, studio: Studio, files: dict[str, bytes], said: str
) -> None:
    answer = send(client, files)
    assert 400 <= answer.status_code < 600
    message = answer.json()["error"]["message"]
    assert re.search(said, message)
    assert str(studio.options.workspace) not in message
    assert left(studio) == set()


def test_a_disk_that_is_full_is_said_in_a_sentence(
    client: TestClient, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_up(_disk: Disk, _source: Path, target: Path) -> None:
        target.write_bytes(b"begun")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Disk, "_copy", fill_up)
    answer = send(client, voice())
    assert answer.status_code == 507
    assert "No space left on device" in answer.json()["error"]["message"]
    assert left(studio) == set()


def test_more_files_than_a_voice_has_are_refused(client: TestClient) -> None:
    assert send(client, {f"{n}.onnx": b"x" for n in range(11)}).status_code == 422


def wait(studio: Studio, state: str | None) -> str:
    """Wait until a download is in a state, or not listed any more (None); its message."""
    while True:
        found = studio.public_voices.list().get(JOE)
        if (found and found.state) == state:
            return found.message if found else ""
        time.sleep(0.01)


def test_a_public_voice_comes_by_its_name(client: TestClient, studio: Studio) -> None:
    [joe] = [
        one for one in client.get("/studio/voice-files").json()["public"] if one["title"] == JOE
    ]
    assert (joe["language"], joe["quality"], joe["licence"]) == ("en-US", "medium", "CC0 1.0")
    assert joe["size_bytes"] == 63_206_088
    assert client.post(f"/studio/engines/{JOE}/download", json={}).status_code == 204
    wait(studio, None)
    assert listed(client) == {f"{JOE}.onnx": ["en-US", 2]}
    assert len(offered(client)) == 2


def test_a_public_voice_is_paused_cancelled_and_what_failed_says_why(
    client: TestClient, studio: Studio, hub: TinyHub, tmp_path: Path
) -> None:
    hub.hold_after[PATH] = 9_000
    client.post(f"/studio/engines/{JOE}/download", json={})
    assert client.get("/studio/state").json()["downloads"][JOE]["state"] == "running"
    client.post(f"/studio/engines/{JOE}/pause")
    hub.hold_after.clear()
    wait(studio, "paused")
    client.post(f"/studio/engines/{JOE}/cancel")
    wait(studio, None)
    assert not [one for one in (tmp_path / "cache").rglob("*") if one.suffix == ".partial"]
    hub.corrupt.add(PATH)
    client.post(f"/studio/engines/{JOE}/download", json={})
    assert "sent another file, which was thrown away" in wait(studio, "failed")
    assert listed(client) == {}


def test_the_list_shows_without_a_network(client: TestClient, studio: Studio, hub: TinyHub) -> None:
    hub.stop()
    assert len(client.get("/studio/voice-files").json()["public"]) > 150
    client.post(f"/studio/engines/{JOE}/download", json={})
    assert "can't be reached; check the network" in wait(studio, "failed")
    hub.start()  # for the fixture's end
