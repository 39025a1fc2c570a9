"""Text read as lines of any project, and the place where one was last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shared_studio import app_of_front, front_of, visitor_of
from starlette.testclient import TestClient

from studio.cli.render import read_script
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.dialog.script import write_script
from studio.project.document import encode_line
from studio.project.script_merge import create_lines
from studio.services.studio import Studio

SCRIPT = """Ida: One.
[pause:0.5s]
[Tom | lang:de | seed:7 | mood:"very sad"] Zwei.
[audio: a.wav]"""

REAL_SCRIPTS = sorted(
    path
    for path in (Path(__file__).parents[1] / "dialog" / "real_scripts").iterdir()
    if path.name != "SOURCES.md"
)


@pytest.fixture
def client(studio: Studio) -> TestClient:
    return visitor_of(app_of_front(front_of(studio)))


def read(client: TestClient, text: str | bytes, name: str = "") -> dict:
    answer = client.post(
        "/studio/projects/lines",
        params={"name": name},
        content=text,
        headers={"Content-Type": "application/json"},  # as a browser says of a .json file
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def made(client: TestClient) -> dict:
    return client.post("/studio/projects", json={"name": "Scene", "text": SCRIPT}).json()


def test_what_was_copied_is_read_with_all_it_says(client: TestClient) -> None:
    speech, pause, german, audio = read(client, SCRIPT)["lines"]
    assert (speech["speaker"], speech["text"]) == ("Ida", "One.")
    assert pause["duration_s"] == 0.5
    assert (german["language"], german["seed"]) == ("de", 7)
    assert german["params"] == {"mood": "very sad"}
    assert (audio["kind"], audio["path"]) == ("audio", "a.wav")
    assert client.get("/studio/projects").json() == []


def test_the_lines_go_into_a_project_in_one_step(client: TestClient) -> None:
    project = made(client)
    before = [line["line_id"] for line in project["lines"]]
    lines = read(client, SCRIPT)["lines"]
    op = {"op": "insert", "after": before[0], "lines": lines}
    about = {"base_rev": project["rev"], "client": "ida"}
    at = f"/studio/projects/{project['project_id']}"
    assert client.post(f"{at}/edits", json={**about, "ops": [op]}).status_code == 200
    body = client.get(at).json()
    brought = [line["line_id"] for line in lines]
    order = [line["line_id"] for line in body["lines"]]
    assert order == [before[0], *brought, *before[1:]]
    assert body["lines"][3]["params"] == {"mood": "very sad"}
    undone = client.post(f"{at}/undo", json={**about, "base_rev": body["rev"], "own": True})
    assert undone.json()["changes"]["order"] == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nIda: One.\n"),
        ("a.json", json.dumps([{"type": "speech", "speaker_id": "Ida", "text": "One."}])),
        ("a.csv", "speaker,text\nIda,One.\n"),
        ("", "1\n00:00:01,000 --> 00:00:02,000\nIda: One.\n"),
    ],
)
def test_files_of_every_kind_are_read(client: TestClient, name: str, text: str) -> None:
    speech = [line for line in read(client, text, name)["lines"] if line["kind"] == "speech"]
    assert [(line["speaker"], line["text"]) for line in speech] == [("Ida", "One.")]


def test_a_chat_is_told_from_a_script(client: TestClient) -> None:
    body = read(client, "10:02 Ida: Are you up?\n10:03 Tom: Since five.")
    assert body["chat"]
    assert [(one["speaker"], one["text"]) for one in body["lines"]] == [
        ("Ida", "Are you up?"),
        ("Tom", "Since five."),
    ]
    assert not read(client, SCRIPT)["chat"]


@pytest.mark.parametrize("text", [b"", b"\0\1\2", b"Ida: [pause:900s]"])
def test_what_is_no_dialog_is_refused_in_words(client: TestClient, text: bytes) -> None:
    for name in ("", "a.txt"):
        answer = client.post("/studio/projects/lines", params={"name": name}, content=text)
        assert answer.status_code == 400
        assert len(answer.json()["error"]["message"]) > 20


def test_a_place_is_kept_for_other_devices_and_goes_with_no_copy(client: TestClient) -> None:
    project = made(client)
    assert project["place"] is None
    at = f"/studio/projects/{project['project_id']}"
    line_id = project["lines"][2]["line_id"]
    place = {"line_id": line_id, "heard": None, "by": "desk"}
    assert client.put(f"{at}/place", json=place).json() == {"number": 1}
    assert client.put(f"{at}/place", json=place | {"by": "phone"}).json() == {"number": 2}
    body = client.get(at).json()
    assert body["place"] == {"line_id": line_id, "heard": None, "by": "phone", "number": 2}
    assert body["rev"] == project["rev"]
    copy = client.post("/studio/projects", json={"like": project["project_id"]}).json()
    assert copy["place"] is None


def test_a_place_that_is_none_is_refused_and_a_damaged_one_is_none(
    client: TestClient, studio: Studio
) -> None:
    project = made(client)
    at = f"/studio/projects/{project['project_id']}"
    bad = ({"by": "x", "line_id": "../../etc"}, {"by": ""}, {"line_id": None}, {"by": "a b"})
    for place in bad:
        assert client.put(f"{at}/place", json=place).status_code == 422
    assert client.put("/studio/projects/none/place", json={"by": "x"}).status_code == 404
    [root] = studio.options.workspace.glob(f"visitors/*/projects/{project['project_id']}")
    (root / "place.json").write_text("{", encoding="utf-8")
    assert client.get(at).json()["place"] is None


def test_visitors_have_places_of_their_own(studio: Studio) -> None:
    app = app_of_front(front_of(studio))
    ida, tom = visitor_of(app), visitor_of(app)
    project = made(ida)
    at = f"/studio/projects/{project['project_id']}"
    assert ida.put(f"{at}/place", json={"by": "desk"}).status_code == 200
    assert tom.put(f"{at}/place", json={"by": "desk"}).status_code == 404


def said(lines: list[dict]) -> list[tuple]:
    return [(one["kind"], one.get("speaker"), one.get("text") or None) for one in lines]


@pytest.mark.parametrize("path", REAL_SCRIPTS, ids=lambda path: path.name)
def test_a_real_script_is_the_same_pasted_dropped_imported_and_typed(
    client: TestClient, path: Path
) -> None:
    text = path.read_text("utf-8")
    pasted = read(client, text)
    assert said(read(client, text, path.name)["lines"]) == said(pasted["lines"])
    imported = client.post(
        "/studio/projects/import", params={"name": path.name}, content=text.encode()
    ).json()
    assert said(imported["lines"]) == said(pasted["lines"])
    assert imported["name"] == (pasted["title"] or path.stem)
    assert imported["unspoken"] == pasted["unspoken"]
    made_of = client.post("/studio/projects", json={"text": text}).json()
    assert said(made_of["lines"]) == said(pasted["lines"])
    empty = client.post("/studio/projects", json={"name": "Typed"}).json()
    at = f"/studio/projects/{empty['project_id']}"
    written = write_script(read_dialog_text(text).dialog)  # as the page writes what is pasted there
    edit = {"base_rev": empty["rev"], "client": "ida", "text": written}
    put = client.put(f"{at}/script", json=edit)
    assert put.status_code == 200, put.text
    assert said(client.get(at).json()["lines"]) == said(pasted["lines"])
    # What the script view then shows reads back to the same lines, with the same ids.
    shown = client.get(f"{at}/script").json()
    before = client.get(at).json()
    edit |= {"base_rev": shown["rev"], "text": shown["text"]}
    assert client.put(f"{at}/script", json=edit).status_code == 200
    assert client.get(at).json()["lines"] == before["lines"]


def test_a_narrator_reads_what_would_be_left_out(client: TestClient) -> None:
    text = "INT. WEIR - NIGHT\n\nRain.\n\nIVO\nGet out!\n\nANNA\nNo.\n"
    assert read(client, text)["unspoken"] == 2
    answer = client.post(
        "/studio/projects/lines", params={"narrator": "Reader"}, content=text.encode()
    ).json()
    assert answer["unspoken"] == 0
    assert said(answer["lines"])[:2] == [
        ("speech", "Reader", "INT. WEIR - NIGHT"),
        ("speech", "Reader", "Rain."),
    ]


def test_a_document_is_the_same_dropped_imported_and_read_by_render(client: TestClient) -> None:
    path = REAL_SCRIPTS[0].parents[1] / "documents" / "lamp-room.docx"
    dropped = read(client, path.read_bytes(), path.name)
    imported = client.post(
        "/studio/projects/import", params={"name": path.name}, content=path.read_bytes()
    ).json()
    rendered = create_lines(read_script(path).dialog)
    assert (
        said(dropped["lines"])
        == said(imported["lines"])
        == said([{"kind": str(one.kind), **encode_line(one)} for one in rendered])
    )
    assert imported["name"] == "The Lamp Room"
