"""The routes of projects."""

from __future__ import annotations

import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import soundfile
import uvicorn
from fastapi import FastAPI

from studio.audio.clip import STUDIO_RATE_HZ
from studio.errors import StudioError
from studio.server.error_responses import answer_error
from studio.server.route_table import studio_routes
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp

SCRIPT = "Ida: Good evening.\n[pause:500ms]\nTom: Is it? [pause:250ms] Is it?\nIda: Well."
NASTY = ["<img src=x onerror=alert(1)>", "${7*7}", "{{x}}", "\\u{", "a/b", 'q"q', "ليلى", "..%2f"]


@pytest.fixture
def client(studio: Studio) -> Iterator[httpx.Client]:
    """A client of a real server, since the stream of events has no end."""
    app = FastAPI(
        routes=studio_routes(lambda _: studio, NothingToSetUp(), guard=lambda: None),
        exception_handlers={StudioError: answer_error},
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/studio", timeout=60) as client:
            yield client
    finally:
        server.force_exit = server.should_exit = True
        thread.join()


def made(client: httpx.Client, text: str | None = SCRIPT, **more: object) -> dict[str, Any]:
    answer = client.post("/projects", json={"text": text, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def at(project: dict[str, Any], rest: str = "") -> str:
    return f"/projects/{project['project_id']}{rest}"


def edited(
    client: httpx.Client,
    project: dict[str, Any],
    *ops: dict[str, object],
    rev: int,
    by: str = "ida",
    **more: object,
) -> httpx.Response:
    body = {"base_rev": rev, "client": by, "ops": ops, **more}
    return client.post(at(project, "/edits"), json=body)


def news(client: httpx.Client, project: dict[str, Any], since: int) -> Iterator[dict[str, Any]]:
    with client.stream("GET", at(project, f"/events?since={since}")) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data:"):
                yield json.loads(line.removeprefix("data:"))


def rendered(client: httpx.Client, project: dict[str, Any]) -> dict[str, Any]:
    client.post(at(project, "/render"), json={}).raise_for_status()
    for step in news(client, project, project["seq"]):
        if step["type"] == "job" and step["state"] == "done":
            break
    return client.get(at(project)).json()


def test_a_project_is_made_of_a_script_and_listed(client: httpx.Client) -> None:
    project = made(client, name="The lighthouse")
    assert project["name"] == "The lighthouse"
    kinds = [(line["kind"], line["state"], line["samples"]) for line in project["lines"]]
    assert kinds == [
        ("speech", "none", None),
        ("silence", "ready", 12_000),
        ("speech", "none", None),
        ("speech", "none", None),
    ]
    speakers = [(one["name"], one["lines"], one["voice"]) for one in project["speakers"]]
    assert speakers == [("Ida", 2, "built-in"), ("Tom", 1, "built-in")]
    assert project["job"] is None
    made(client, None)
    listed = client.get("/projects").json()
    assert [(one["name"], one["lines"], one["numbered"]) for one in listed] == [
        ("Untitled", 0, 0),
        ("The lighthouse", 4, 3),
    ]


def test_a_render_is_told_line_by_line_and_heard_while_it_is_made(client: httpx.Client) -> None:
    project = made(client)
    speech = [line["line_id"] for line in project["lines"] if line["kind"] == "speech"]
    body = client.post(at(project, "/render"), json={"listen_from": speech[0]}).json()
    assert body["summary"]["total"] == 3
    sound = [client.get(at(project, f"/lines/{one}/audio")) for one in speech]
    assert {answer.headers["x-sample-rate"] for answer in sound} == {str(STUDIO_RATE_HZ)}
    told: dict[str, list[str]] = {}
    for step in news(client, project, project["seq"]):
        # What is told is how it is now: the news of the beginning may tell of the end already.
        if step["type"] == "line":
            told.setdefault(step["line_id"], []).append(step["state"])
        if [states[-1] for states in told.values()] == ["ready"] * len(speech):
            break
    assert told.keys() == set(speech)
    for step in news(client, project, project["seq"]):
        if step["type"] == "job" and step["state"] == "done":
            break
    after = client.get(at(project)).json()
    lengths = [line["samples"] for line in after["lines"] if line["kind"] == "speech"]
    assert [len(answer.content) // 2 for answer in sound] == lengths
    summary = after["job"]["summary"]
    assert (summary["done"], summary["failed"], summary["total"]) == (3, 0, 3)
    assert client.get(at(project, f"/lines/{project['lines'][1]['line_id']}/audio")).content == (
        bytes(24_000)
    )
    take = after["lines"][0]["take"]
    file = client.get(at(project, f"/takes/{take['line_id']}/{take['take_id']}/audio.wav"))
    assert "immutable" in file.headers["cache-control"]
    samples, rate_hz = soundfile.read(io.BytesIO(file.content), dtype="int16")
    assert rate_hz == STUDIO_RATE_HZ
    assert samples.tobytes() == sound[0].content
    peaks = client.get(at(project, f"/peaks?bins=8&takes={take['take_id']},nothing")).json()
    assert len(peaks["peaks"][take["take_id"]]) == 16
    listed = client.get(at(project, f"/takes/{take['line_id']}")).json()["takes"]
    assert listed == [take | {"distance": "", "number": 1}]


def test_edits_reach_every_page_and_two_that_clash_are_shown(client: httpx.Client) -> None:
    project = made(client)
    line_id = project["lines"][0]["line_id"]
    said = {"op": "set", "line_ids": [line_id], "fields": {"text": "Good night."}}
    answer = edited(client, project, said, rev=0, edit_id="e1", group="g").json()
    assert answer["rev"] == 1
    assert answer["changes"]["lines"][line_id]["text"] == "Good night."
    step = next(news(client, project, project["seq"]))
    assert (step["type"], step["client"], step["rev"]) == ("edit", "ida", 1)
    assert step["changes"] == answer["changes"]

    again = edited(client, project, said, rev=0, edit_id="e1").json()
    assert again == {"rev": 1, "changes": {"can_undo": True, "can_redo": False}}
    other = {"op": "set", "line_ids": [line_id], "fields": {"text": "Good day."}}
    clash = edited(client, project, other, rev=0, by="tom")
    assert clash.status_code == 409
    body = clash.json()
    assert body["error"]["kind"] == "EditConflict"
    assert body["rev"] == 1
    assert body["conflicts"] == [
        {
            "op": 0,
            "line_id": line_id,
            "field": "text",
            "mine": "Good day.",
            "theirs": "Good night.",
        }
    ]
    undone = client.post(at(project, "/undo"), json={"base_rev": 1, "client": "tom"}).json()
    assert undone["changes"]["lines"][line_id]["text"] == "Good evening."
    assert undone["changes"]["can_redo"] is True
    redone = client.post(at(project, "/redo"), json={"base_rev": 2, "client": "tom"}).json()
    assert redone["changes"]["lines"][line_id]["text"] == "Good night."
    nothing = client.post(at(project, "/redo"), json={"base_rev": 3, "client": "tom"})
    assert nothing.status_code == 409


def test_structural_edits_tell_the_order_and_the_speakers(client: httpx.Client) -> None:
    project = made(client)
    ids = [line["line_id"] for line in project["lines"]]
    new = {"line_id": "a" * 12, "speaker": "Ben", "text": "Hm."}
    changes = edited(
        client,
        project,
        {"op": "insert", "after": ids[0], "lines": [new]},
        {"op": "delete", "line_ids": [ids[1]]},
        rev=0,
    ).json()["changes"]
    assert changes["order"] == [ids[0], "a" * 12, ids[2], ids[3]]
    assert changes["lines"].keys() == {"a" * 12, ids[1]}
    assert changes["lines"][ids[1]] is None
    assert [one["name"] for one in changes["speakers"]] == ["Ida", "Ben", "Tom"]
    cast = {"op": "cast", "speaker": "Ben", "voice": "somebody"}
    settings = {"op": "settings", "fields": {"seed": 5}}
    changes = edited(client, project, cast, settings, rev=1).json()["changes"]
    assert changes["cast"] == {"Ben": "somebody"}
    assert changes["settings"].items() >= {"backend": None, "language": None, "seed": 5}.items()


@pytest.mark.parametrize(
    "items",
    [
        '[{"speaker_id": "Ida", "text": "Yes."}]',
        '[\n{"speaker_id": "Ida",\n"text": "Yes."}\n]',
        '{"speaker_id": "Ida", "text": "Yes."}\n',
    ],
)
def test_items_in_the_script_view_are_lines_and_no_names(client: httpx.Client, items: str) -> None:
    project = made(client)
    body = {"base_rev": 0, "client": "ida", "text": items}
    assert client.put(at(project, "/script"), json=body).status_code == 200
    assert client.get(at(project, "/script")).json()["text"] == "Ida: Yes.\n"


def test_the_script_view_and_the_lines_are_the_same_dialog(client: httpx.Client) -> None:
    project = made(client)
    script = client.get(at(project, "/script")).json()
    assert script["rev"] == 0
    text = script["text"].replace("Well.", "Well, well.")
    body = {"base_rev": 0, "client": "ida", "text": text}
    answer = client.put(at(project, "/script"), json=body).json()
    last = project["lines"][3]["line_id"]
    assert answer["changes"]["lines"].keys() == {last}
    assert "order" not in answer["changes"]
    assert client.get(at(project, "/script")).json() == {"rev": 1, "text": text, "notices": []}
    broken = client.put(
        at(project, "/script"), json={**body, "base_rev": 1, "text": "Ida: a\nIda: [pause:10h] b"}
    )
    assert broken.status_code == 400
    assert broken.json()["error"]["line"] == 2
    assert client.get(at(project)).json()["rev"] == 1


def test_what_the_voice_would_read_aloud_is_told_with_its_line(client: httpx.Client) -> None:
    project = made(client)
    body = {"base_rev": 0, "client": "ida", "text": "Ida: Well.\nBen: [door slams] Well."}
    told = [
        client.put(at(project, "/script"), json=body).json()["notices"],
        client.get(at(project, "/script")).json()["notices"],
    ]
    for (notice,) in told:
        assert notice["line_number"] == 2
        assert "[door slams] would be read aloud" in notice["message"]


def test_a_project_travels_as_one_file_with_takes_and_history(client: httpx.Client) -> None:
    project = made(client, name=NASTY[0])
    line_id = project["lines"][0]["line_id"]
    before = rendered(client, project)
    edited(client, project, {"op": "rename_speaker", "from": "Ida", "to": "Eva"}, rev=0)
    file = client.get(at(project, "/export?format=tableread"))
    assert "filename*=utf-8''" in file.headers["content-disposition"]
    names = zipfile.ZipFile(io.BytesIO(file.content)).namelist()
    assert {"project.json", "edits.jsonl"} < set(names)

    answer = client.post("/projects/import", files={"file": ("x.tableread.zip", file.content)})
    assert answer.status_code == 201, answer.text
    copy = answer.json()
    assert copy["project_id"] != project["project_id"]
    assert copy["name"] == NASTY[0]
    assert copy["lines"][0]["speaker"] == "Eva"
    undone = client.post(at(copy, "/undo"), json={"base_rev": 9, "client": "ida"}).json()
    restored = undone["changes"]["lines"][line_id]
    assert restored["take"] == before["lines"][0]["take"]
    assert restored["state"] == "ready"

    twin = made(client, None, like=project["project_id"])
    assert twin["name"] == f"{NASTY[0]} (copy)"
    assert twin["lines"][0]["n_takes"] == 1
    client.patch(at(twin), json={"name": "Twin"}).raise_for_status()
    client.delete(at(twin)).raise_for_status()
    assert client.get(at(twin)).status_code == 404
    assert {one["name"] for one in client.get("/projects").json()} == {NASTY[0]}


def test_a_removed_project_lies_in_the_trash(client: httpx.Client, studio: Studio) -> None:
    project = made(client)
    client.delete(at(project)).raise_for_status()
    trash = studio.options.workspace / "projects" / ".trash"
    assert (trash / project["project_id"] / "project.json").is_file()
    (trash / project["project_id"]).rename(trash.parent / project["project_id"])
    assert client.get(at(project)).json()["rev"] == 0


@pytest.mark.parametrize("suffix", ["txt", "fountain", "srt", "vtt", "csv", "tsv", "json", "jsonl"])
def test_the_lines_go_out_and_come_back_in_every_format(client: httpx.Client, suffix: str) -> None:
    project = made(client, "Ida: Good evening.\nTom: Is it?")
    file = client.get(at(project, f"/export?format={suffix}"))
    assert file.status_code == 200
    back = client.post("/projects/import", files={"file": (f"scene.{suffix}", file.content)})
    assert back.status_code == 201, back.text
    spoken = [line for line in back.json()["lines"] if line["kind"] == "speech"]
    said = [(line["speaker"].casefold(), line["text"]) for line in spoken]
    assert said == [("ida", "Good evening."), ("tom", "Is it?")]
    assert back.json()["name"] == "scene"


def test_what_can_be_heard_is_exported_to_the_sample(client: httpx.Client) -> None:
    project = made(client)
    assert client.get(at(project, "/export?format=wav")).status_code == 409
    body = rendered(client, project)
    file = client.get(at(project, "/export?format=wav"))
    samples, _ = soundfile.read(io.BytesIO(file.content), dtype="int16")
    parts = [client.get(at(project, f"/lines/{x['line_id']}/audio")).content for x in body["lines"]]
    assert samples.tobytes() == b"".join(parts)
    for suffix in ("flac", "mp3"):
        file = client.get(at(project, f"/export?format={suffix}"))
        assert len(soundfile.read(io.BytesIO(file.content))[0]) == len(samples)
    archive = zipfile.ZipFile(io.BytesIO(client.get(at(project, "/export?format=zip")).content))
    assert json.loads(archive.read("manifest.json"))["n_samples"] == len(samples)


def archive_of(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def test_a_file_that_is_no_project_brings_nothing_in(client: httpx.Client, studio: Studio) -> None:
    good = client.get(at(made(client), "/export?format=tableread")).content
    snapshot = zipfile.ZipFile(io.BytesIO(good)).read("project.json")
    moved = snapshot.replace(json.loads(snapshot)["lines"][0]["line_id"].encode(), b"../../../evil")
    bad = [
        archive_of(**{"project.json": snapshot, "../../evil.txt": b"x"}),
        archive_of(**{"project.json": snapshot, "/etc/evil": b"x"}),
        archive_of(**{"project.json": snapshot, "audio/../../evil": b"x"}),
        archive_of(**{"project.json": snapshot, f"takes/{'a' * 12}/run.py": b"x"}),
        archive_of(**{"project.json": snapshot, "edits.jsonl": bytes(60_000_000)}),
        archive_of(**{"project.json": moved}),
        archive_of(**{"project.json": b"{}"}),
        archive_of(**{"readme.txt": b"no project"}),
        good[: len(good) // 2],
        b"",
        b"\0\1\2" * 100,
    ]
    folder = studio.options.workspace / "projects"
    before = set(folder.iterdir())
    for data in bad:
        answer = client.post("/projects/import", files={"file": ("x.tableread.zip", data)})
        assert answer.status_code in (400, 507), data[:100]
        assert answer.json()["error"]["message"].endswith((".", "”)", "”"))
    assert set(folder.iterdir()) == before
    assert not list(studio.options.workspace.parent.rglob("*evil*"))


def test_any_text_is_kept_as_typed(client: httpx.Client) -> None:
    project = made(client, None)
    for number, text in enumerate(NASTY):
        line = {"line_id": f"{number:012x}", "speaker": text, "text": text}
        edited(client, project, {"op": "insert", "lines": [line]}, rev=number).raise_for_status()
        client.patch(at(project), json={"name": text}).raise_for_status()
    body = client.get(at(project)).json()
    assert [(line["speaker"], line["text"]) for line in body["lines"]] == [
        (text, text) for text in reversed(NASTY)
    ]
    assert body["name"] == NASTY[-1]
    file = client.get(at(project, "/export?format=txt"))
    assert file.headers["content-disposition"].isascii()


@pytest.mark.parametrize(
    "path", ["/projects/%2e%2e", "/projects/%2e%2e%2fspeakers", "/projects/.trash", "/projects/abc"]
)
def test_no_path_leads_out_of_the_projects(client: httpx.Client, path: str) -> None:
    for address in (path, f"{path}/script", f"{path}/takes/{'a' * 12}"):
        assert client.get(address).status_code == 404
    assert client.delete(path).status_code in (404, 405)


def test_takes_of_other_lines_and_lines_that_are_not_there_are_not_found(
    client: httpx.Client,
) -> None:
    project = rendered(client, made(client))
    take_id = project["lines"][0]["take"]["take_id"]
    wrong = [
        f"/takes/{'a' * 12}/{take_id}/audio.wav",
        f"/takes/{'a' * 12}/{'b' * 16}/peaks",
        f"/takes/{'a' * 12}/{take_id}/words",
        f"/lines/{'a' * 12}/audio",
        "/lines/..%2f..%2f/audio",
    ]
    for path in wrong:
        assert client.get(at(project, path)).status_code == 404, path
    body = {"line_ids": ["a" * 12]}
    assert client.post(at(project, "/render"), json=body).status_code == 404
    assert client.post(at(project, "/render"), json={"again": True}).status_code == 400
    assert edited(client, project, {"op": "nothing"}, rev=0).status_code == 422


def test_a_stream_of_another_run_ends_at_once(client: httpx.Client) -> None:
    project = made(client)
    assert list(news(client, project, 5)) == []
    assert list(news(client, project, project["seq"] + 1_000)) == []
