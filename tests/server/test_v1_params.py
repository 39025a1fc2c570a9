"""The engine's parameters in requests of `/v1`: taken, or refused with the name and the range."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from project_scenes import rendered
from shared_studio import front_of, routes_of
from speech_client import app_of, events_of

from studio.app import main
from studio.backends.base import Capabilities
from studio.backends.registry import BACKENDS, create
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import BadInput
from studio.project.history import Author
from studio.project.ops import OPS_ADAPTER
from studio.services.studio import Studio

LINE = {"input": "Good evening. Did anybody hear the bell?", "response_format": "pcm", "seed": 7}


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with TestClient(app_of(studio)) as client:
        yield client


def speak(client: TestClient, **more: Any) -> np.ndarray:
    answer = client.post("/v1/audio/speech", json=LINE | more)
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, dtype="<i2")


def refusal(client: TestClient, path: str, **more: Any) -> str:
    answer = client.post(path, json=LINE | more if "speech" in path else more)
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]["message"]


def test_a_parameter_changes_the_sound(client: TestClient) -> None:
    plain = speak(client)
    for given in ({"pitch": 6}, {"params": {"pitch": 6}}):
        assert not np.array_equal(speak(client, **given), plain)
    assert np.array_equal(speak(client, pitch=None, params={"speed": 1.0}), plain)
    assert len(speak(client, params={"speed": 2.0})) < 0.7 * len(plain)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pitch": 13}, "“pitch” must be a number from -12 to 12."),
        ({"params": {"pitch": -12.5}}, "“pitch” must be a number from -12 to 12."),
        ({"params": {"pitch": "high"}}, "“pitch” must be a number from -12 to 12."),
        ({"pitch": True}, "“pitch” must be a number from -12 to 12."),
        ({"pitch": [1]}, "“pitch” must be a number from -12 to 12."),
        ({"exaggeration": 0.5}, "(eSpeak NG) has no parameter “exaggeration”. It has speed (0.5"),
        ({"params": {"warmth": 1}}, "has no parameter “warmth”"),
        ({"temprature": 1}, "has no parameter “temprature”"),
    ],
)
def test_what_the_engine_cannot_take_is_refused(
    client: TestClient, given: dict[str, Any], message: str
) -> None:
    assert message in refusal(client, "/v1/audio/speech", **given)
    params = given.get("params", given)
    assert message in refusal(client, "/v1/dialogs", input="Ida: Good evening.", params=params)


@pytest.mark.parametrize("beside", ["stream", "user", "max_new_tokens", "volume_multiplier"])
def test_what_other_servers_clients_send_along_is_ignored(client: TestClient, beside: str) -> None:
    assert np.array_equal(speak(client, **{beside: 1}), speak(client))


def test_those_of_a_dialog_are_for_lines_without_them(client: TestClient) -> None:
    def duration_s(**body: Any) -> float:
        answer = client.post("/v1/dialogs", json={"stream": True} | body)
        return events_of(answer.text)[-1]["dialog"]["audio_s"]

    text = "The lamp is still burning, and nobody has climbed the stairs since Tuesday."
    usual = duration_s(input=f"Ida: {text}")
    assert duration_s(input=f"Ida: {text}", params={"speed": 2}) < 0.7 * usual
    own = f"[Ida | speed:1.0]\n{text}"
    assert duration_s(input=own, params={"speed": 2}) == pytest.approx(usual)


def test_the_models_list_says_what_each_takes(client: TestClient) -> None:
    [draft] = [one for one in client.get("/v1/models").json()["data"] if one["id"] == "draft"]
    pitch = next(one for one in draft["capabilities"]["params"] if one["name"] == "pitch")
    assert (pitch["minimum"], pitch["maximum"], pitch["default"]) == (-12, 12, 0)


@pytest.mark.parametrize("name", list(BACKENDS))
def test_every_engine_refuses_what_is_out_of_its_ranges(name: str) -> None:
    backend = create(name)
    can: Capabilities = backend.capabilities
    assert "speed" in {param.name for param in can.line_params}
    for param in can.line_params:
        given = {param.name: param.default}
        assert can.check_params(backend.title, given) == given
        wrong = [param.maximum + param.step, param.minimum - param.step, "1", True, [], {}]
        if param.name == "top_k":
            wrong.append(1.5)
        for value in wrong:
            with pytest.raises(BadInput, match=f"“{param.name}” must be"):
                can.check_params(backend.title, {param.name: value})
    with pytest.raises(BadInput, match=r"has no parameter “warmth”\. It has .*speed"):
        can.check_params(backend.title, {"warmth": 1.0})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('{"speed": "fast"}', "“speed” must be a number from 0.5 to 2."),
        ('{"pitch": true}', "“pitch” must be a number from -12 to 12."),
        ('{"pitch": NaN}', "The value of “pitch” is not a number that can be used."),
        ('{"speed": [1]}', "“speed” must be a number from 0.5 to 2."),
        ('{"warmth": {}}', "The value of “warmth” can't be used."),
    ],
)
def test_an_edit_with_a_setting_of_another_type_is_refused_by_name(
    studio: Studio, given: str, message: str
) -> None:
    session = studio.projects.create("Scene", read_dialog_text("Ida: Good evening.").dialog)
    (line_id,) = session.document.order
    front = front_of(studio, apart=False)
    with TestClient(routes_of(front)) as page:
        path = f"/studio/projects/{session.project_id}/edits"
        edit = f'{{"op": "set", "line_ids": ["{line_id}"], "fields": {{"params": {given}}}}}'
        body = f'{{"base_rev": 0, "client": "ida", "ops": [{edit}]}}'
        answer = page.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["error"]["message"]
    assert session.rev == 0


def test_a_setting_for_another_engine_is_kept_and_its_range_is_said_when_it_is_spoken(
    studio: Studio,
) -> None:
    session = studio.projects.create("Scene", read_dialog_text("Ida: Good evening.").dialog)
    line_id = session.document.order[0]
    edit = {"pitch": 40, "temperature": 0.7}
    op = {"op": "set", "line_ids": [line_id], "fields": {"params": edit}}
    session.edit(OPS_ADAPTER.validate_python([op]), Author("ida"), 0)
    assert session.document.lines[line_id].params == edit
    rendered(session)
    (view,) = session.list_views()
    assert "“pitch” is 40, but this voice takes -12 to 12." in view.message


def render(folder: Path) -> int:
    scene, out = folder / "scene.txt", folder / "scene.wav"
    options = ["--backend", "draft", "--workspace", str(folder / "workspace")]
    return main(["render", str(scene), "-o", str(out), *options])


PITCH = "Line 2: “pitch” must be a number from -12 to 12."
SETTINGS = [
    ("pitch:99", PITCH),
    ("pitch:-12.5", PITCH),
    ("pitch:high", PITCH),
    ("pitch:true", PITCH),
    ("speed:0", "Line 2: “speed” must be a number from 0.5 to 2."),
    ("warmth:1", "(eSpeak NG) has no parameter “warmth”. It has speed (0.5 to 2)"),
]


@pytest.mark.parametrize(("setting", "message"), SETTINGS)
def test_a_setting_of_a_line_that_no_engine_can_take_is_refused_by_every_door(
    client: TestClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    setting: str,
    message: str,
) -> None:
    script = f"Tom: Well.\n[Ida | {setting}] Good evening."
    assert message in refusal(client, "/v1/dialogs", input=script)
    name, _, value = setting.partition(":")
    with suppress(ValueError):
        value = json.loads(value)
    items = [
        {"type": "speech", "speaker_id": "Tom", "text": "Well."},
        {"type": "speech", "speaker_id": "Ida", "text": "Good evening.", "params": {name: value}},
    ]
    said = refusal(client, "/v1/dialogs", input=items)
    assert message.removeprefix("Line 2: ") in said
    (tmp_path / "scene.txt").write_text(script)
    assert render(tmp_path) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "scene.wav").exists()


def test_a_setting_that_only_another_engine_has_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scene.txt").write_text("[Ida | exaggeration:0.7 | mood:sad] Good evening.")
    assert render(tmp_path) == 0
    assert "no setting “exaggeration”; it is ignored" in capsys.readouterr().err
    assert (tmp_path / "scene.wav").exists()
