"""The engine's parameters in requests of `/v1`: taken, or refused with the name and the range."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
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
from studio.project.session import ProjectSession
from studio.services.studio import Studio, StudioOptions

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


@pytest.fixture
def page(tmp_path: Path) -> Iterator[tuple[TestClient, ProjectSession]]:
    """A page of a studio with all engines, and a project of two lines."""
    options = StudioOptions(tmp_path / "workspace", "draft", backend_names=tuple(BACKENDS))
    studio = Studio.open(options, create)
    studio.start()
    session = studio.projects.create("Scene", read_dialog_text("Ida: Hello.\nTom: Hi.").dialog)
    with TestClient(routes_of(front_of(studio, apart=False))) as client:
        yield client, session
    studio.close()


def edited(page: tuple[TestClient, ProjectSession], *edits: object) -> httpx.Response:
    client, session = page
    body = json.dumps({"base_rev": session.rev, "client": "ida", "ops": edits})
    return client.post(
        f"/studio/projects/{session.project_id}/edits",
        content=body,
        headers={"Content-Type": "application/json"},
    )


def set_params(line_ids: Sequence[str], params: object) -> dict[str, object]:
    return {"op": "set", "line_ids": line_ids, "fields": {"params": params}}


def set_character(params: object) -> dict[str, object]:
    return {"op": "character", "speaker": "Ida", "fields": {"params": params}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"speed": "fast"}, "“speed” must be a number from 0.5 to 2."),
        ({"speed": 2.1}, "“speed” must be a number from 0.5 to 2."),
        ({"pitch": True}, "“pitch” must be a number from -12 to 12."),
        ({"pitch": math.nan}, "“pitch” must be a number from -12 to 12."),
        ({"pitch": -13}, "“pitch” must be a number from -12 to 12."),
        ({"mood": "sad", "pitch": 12.5}, "“pitch” must be a number from -12 to 12."),
        ({"speed": [1]}, "“speed” must be a number from 0.5 to 2."),
        ({"warmth": 1}, "has no parameter “warmth”. It has speed (0.5 to 2), pitch (-12 to 12)"),
        ({"warmth": {}}, "has no parameter “warmth”."),
    ],
)
@pytest.mark.parametrize("door", ["set", "insert", "character"])
def test_an_edit_with_a_setting_that_no_engine_can_take_is_refused_by_name(
    page: tuple[TestClient, ProjectSession], given: object, message: str, door: str
) -> None:
    line_ids = list(page[1].document.order)
    line = {"line_id": "f" * 12, "speaker": "Ida", "text": "Yes.", "params": given}
    edits = {
        "set": set_params(line_ids, given),
        "insert": {"op": "insert", "after": line_ids[0], "lines": [line]},
        "character": set_character(given),
    }
    answer = edited(page, {"op": "rename", "name": "Another"}, edits[door])
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["error"]["message"]
    assert page[1].rev == 0
    assert page[1].document.name == "Scene"


def test_the_range_is_that_of_the_engine_that_the_project_has_now(
    page: tuple[TestClient, ProjectSession],
) -> None:
    line_ids = list(page[1].document.order)
    assert edited(page, set_params(line_ids, {"temperature": 40})).is_success
    to_turbo = {"op": "settings", "fields": {"backend": "chatterbox-turbo"}}
    assert edited(page, to_turbo).is_success
    assert edited(page, set_params(line_ids, {"pitch": 40, "temperature": 40})).is_success
    refused = edited(page, set_params(line_ids, {"temperature": 41}))
    assert refused.status_code == 400
    assert "“temperature” must be a number from 0.05 to 2." in refused.json()["error"]["message"]


def test_what_a_line_has_from_an_earlier_studio_stays_and_its_range_is_said_when_it_is_spoken(
    page: tuple[TestClient, ProjectSession],
) -> None:
    session = page[1]
    ida, tom = session.document.order
    old = {"pitch": 40, "warmth": 1}
    session.edit(OPS_ADAPTER.validate_python([set_params([ida], old)]), Author("ida"), 0)
    assert edited(page, set_params([ida], {**old, "temperature": 0.7})).is_success
    assert session.document.lines[ida].params == {**old, "temperature": 0.7}
    copy = {"line_id": "f" * 12, "speaker": "Ida", "text": "Hello.", "params": old}
    assert edited(page, {"op": "insert", "after": tom, "lines": [copy]}).is_success
    assert edited(page, set_params([tom], old)).status_code == 400
    assert edited(page, set_params([ida], {"pitch": 41, "warmth": 1})).status_code == 400
    assert edited(page, set_params([ida], {"warmth": 1})).is_success
    session.undo(Author("ida"), session.rev)
    rendered(session)
    view = session.list_views()[0]
    assert "“pitch” is 40, but this voice takes -12 to 12." in view.message


def test_what_a_character_has_from_an_earlier_studio_stays(
    page: tuple[TestClient, ProjectSession],
) -> None:
    session = page[1]
    session.edit(OPS_ADAPTER.validate_python([set_character({"pitch": 40})]), Author("ida"), 0)
    assert edited(page, set_character({"pitch": 40, "speed": 1.5, "mood": "sad"})).is_success
    assert edited(page, set_character({"pitch": 41})).status_code == 400
    kept = {"pitch": 40, "speed": 1.5, "mood": "sad"}
    assert session.document.find_character("ida").params == kept


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


def send_script(page: tuple[TestClient, ProjectSession], door: str, text: str) -> httpx.Response:
    """Bring a script or items into the studio as a page does."""
    client, session = page
    if door == "import":
        return client.post("/studio/projects/import?name=scene.txt", content=text)
    if door == "project":
        return client.post("/studio/projects", json={"text": text})
    body = {"base_rev": session.rev, "client": "ida", "text": text}
    return client.put(f"/studio/projects/{session.project_id}/script", json=body)


@pytest.mark.parametrize("door", ["project", "script"])
@pytest.mark.parametrize(("setting", "message"), SETTINGS)
def test_a_script_with_a_setting_that_no_engine_can_take_makes_no_project_and_changes_none(
    page: tuple[TestClient, ProjectSession], door: str, setting: str, message: str
) -> None:
    client, session = page
    name, _, value = setting.partition(":")
    with suppress(ValueError):
        value = json.loads(value)
    tom = {"type": "speech", "speaker_id": "Tom", "text": "Well."}
    items = [tom, {"type": "speech", "speaker_id": "Ida", "text": "Yes.", "params": {name: value}}]
    for text in (f"Tom: Well.\n[Ida | {setting}] Good evening.", json.dumps(items)):
        answer = send_script(page, door, text)
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        assert error["line"] == 2
        assert error["message"].startswith("Line 2: ")
        assert message in error["message"]
    assert len(client.get("/studio/projects").json()) == 1
    assert session.rev == 0
    assert [line.text for line in session.document] == ["Hello.", "Hi."]


@pytest.mark.parametrize("door", ["project", "script", "import"])
def test_a_script_may_set_what_another_engine_has(
    page: tuple[TestClient, ProjectSession], door: str
) -> None:
    answer = send_script(page, door, "[Ida | exaggeration:99 | mood:sad | pitch:-12] Good evening.")
    assert answer.is_success, answer.text


@pytest.mark.parametrize("door", ["projects/import?name=scene.csv", "projects/lines"])
def test_from_a_file_of_others_it_is_left_out_with_a_remark(
    page: tuple[TestClient, ProjectSession], door: str
) -> None:
    table = "speaker,line,warmth,pitch\nTom,Well.,1,2\nIda,Yes.,1,99\nIda,No.,2,\n"
    answer = page[0].post(f"/studio/{door}", content=table)
    assert answer.is_success, answer.text
    body = answer.json()
    assert [line.get("params", {}) for line in body["lines"]] == [{"pitch": 2}, {}, {}]
    warmth, pitch = body["notices"]
    assert warmth["line_number"] == 2
    assert "has no parameter “warmth”. It has speed (0.5 to 2)" in warmth["message"]
    assert warmth["message"].endswith("So it is in 2 other lines. It is left out.")
    assert pitch == {
        "line_number": 3,
        "message": "“pitch” must be a number from -12 to 12. It is left out.",
        "rows": [1],
    }


@pytest.fixture
def old(page: tuple[TestClient, ProjectSession]) -> ProjectSession:
    """A project of which an earlier studio saved settings that no engine can take."""
    session = page[1]
    tom = session.document.order[1]
    pause = {"op": "insert", "lines": [{"line_id": "f" * 12, "kind": "silence", "duration_s": 1}]}
    edits = [set_params([tom], {"pitch": 40, "warmth": 1}), pause]
    session.edit(OPS_ADAPTER.validate_python(edits), Author("ida"), 0)
    return session


def test_a_project_from_an_earlier_studio_is_opened_copied_and_its_script_changed(
    page: tuple[TestClient, ProjectSession], old: ProjectSession
) -> None:
    client, path = page[0], f"/studio/projects/{old.project_id}"
    lines = client.get(path).json()["lines"]
    assert [line["params"] for line in lines] == [{}, {}, {"pitch": 40, "warmth": 1}]
    assert client.post("/studio/projects", json={"like": old.project_id}).status_code == 201
    script = client.get(f"{path}/script").json()["text"]
    assert send_script(page, "script", script.replace("Hi.", "Ho.")).is_success
    assert old.document.lines[old.document.order[2]].params == {"pitch": 40, "warmth": 1}
    refused = send_script(page, "script", script.replace("pitch:40", "pitch:41"))
    assert refused.status_code == 400
    said = refused.json()["error"]["message"]
    assert said == "Line 3: “pitch” must be a number from -12 to 12."


def test_the_file_of_such_a_project_is_imported_with_a_remark(
    page: tuple[TestClient, ProjectSession], old: ProjectSession
) -> None:
    client = page[0]
    packed = client.get(f"/studio/projects/{old.project_id}/export?format=tableread").content
    answer = client.post("/studio/projects/import?name=old.tableread.zip", content=packed)
    assert answer.status_code == 201, answer.text
    assert answer.json()["lines"][2]["params"] == {"pitch": 40, "warmth": 1}
    pitch, warmth = answer.json()["notices"]
    assert pitch["line_number"] == warmth["line_number"] == 2, "pauses aren't counted"
    said = "“pitch” must be a number from -12 to 12. It stays as it was saved."
    assert pitch["message"] == said
    assert "has no parameter “warmth”" in warmth["message"]


def test_of_many_such_settings_the_first_are_named(
    page: tuple[TestClient, ProjectSession],
) -> None:
    columns = [f"s{number}" for number in range(30)]
    table = f"speaker,line,{','.join(columns)}\nTom,Well.,{','.join('1' * 30)}\n"
    notices = page[0].post("/studio/projects/lines", content=table).json()["notices"]
    assert [one["line_number"] for one in notices] == [2] * 10 + [0]
    assert notices[-1]["message"] == "20 further settings can't be taken either. It is left out."


def test_an_edit_that_is_refused_names_its_line(
    page: tuple[TestClient, ProjectSession], old: ProjectSession
) -> None:
    ida, tom = old.document.order[1:]
    line = {"line_id": "e" * 12, "speaker": "Ida", "text": "Yes."}
    new = [line, line | {"line_id": "d" * 12, "params": {"pitch": 13}}]
    for edit, place in (
        (set_params([tom], {"pitch": 13}), "Line 2"),
        (set_params([ida, tom], {"pitch": 40}), "Line 1"),
        ({"op": "insert", "after": tom, "lines": new}, "New line 2"),
    ):
        said = edited(page, edit).json()["error"]["message"]
        assert said == f"{place}: “pitch” must be a number from -12 to 12."


def test_yes_is_no_number_even_where_a_line_has_the_number_one(
    page: tuple[TestClient, ProjectSession],
) -> None:
    line_ids = list(page[1].document.order)
    assert edited(page, set_params(line_ids, {"pitch": 1})).is_success
    assert edited(page, set_params(line_ids, {"pitch": True})).status_code == 400
    assert send_script(page, "script", "[Ida | pitch:true] Hello.").status_code == 400


def test_a_setting_that_only_another_engine_has_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scene.txt").write_text("[Ida | exaggeration:0.7 | mood:sad] Good evening.")
    assert render(tmp_path) == 0
    assert "no setting “exaggeration”; it is ignored" in capsys.readouterr().err
    assert (tmp_path / "scene.wav").exists()
