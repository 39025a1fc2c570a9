"""A workspace of an earlier studio opens whole: everything in it is answered as it was then."""

from __future__ import annotations

import importlib.metadata
import json
import time
from pathlib import Path

import httpx
import pytest
from pins_studio import (
    Project,
    Server,
    answer_of,
    differences,
    digest,
    entries_of,
    recorded,
    samples_of,
    steady,
    tone,
)

KEPT = recorded()
IDS = KEPT["ids"]


def _have_the_same_packages() -> bool:
    """Whether the voices are of the versions of then; takes of other versions are stale."""
    try:
        return all(
            importlib.metadata.version(name) == one for name, one in KEPT["versions"].items()
        )
    except importlib.metadata.PackageNotFoundError:
        return False


same_packages = pytest.mark.skipif(
    not _have_the_same_packages(), reason="the takes were made with other packages"
)


@same_packages
@pytest.mark.parametrize("address", KEPT["answers"])
def test_it_answers_as_it_did(client: httpx.Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    assert differences(KEPT["answers"][address], answer_of(address, answer)) == []


def test_its_wav_is_as_long_as_it_was(client: httpx.Client) -> None:
    """44 bytes and its samples: what later studios say in the WAVs of new projects isn't in it."""
    scene = client.get(f"/studio/projects/{IDS['scene']}/export?format=wav").content
    assert len(scene) == 44 + len(samples_of(scene))


@same_packages
@pytest.mark.parametrize("name", ["batched qwen", "batched turbo"])
def test_takes_of_engines_that_had_another_name_still_are_what_their_line_says(
    client: httpx.Client, name: str
) -> None:
    line = Project(client, IDS[name]).lines()[0]
    assert line["take"]["seed"] == 1234
    assert line["state"] == "ready"


def test_the_kept_journal_is_ahead_of_its_snapshot(unpacked: Path) -> None:
    folder = unpacked / "workspace" / "projects" / IDS["steps"]
    snapshot = json.loads((folder / "project.json").read_bytes())
    journal = (folder / "edits.jsonl").read_bytes()
    assert snapshot["history"]["journal_bytes"] < len(journal)
    kinds = {entry["kind"] for entry in entries_of(journal)}
    assert kinds == {"made", "edit", "undo", "redo"}
    assert any(entry["joined"] for entry in entries_of(journal) if entry["kind"] == "edit")
    assert any("gone" in entry for entry in entries_of(journal))


@same_packages
def test_every_step_is_undone_and_redone_to_what_it_was(client: httpx.Client) -> None:
    project = Project(client, IDS["steps"])
    found = {"00 opened": steady(project.now())}
    for way in ("redo", "undo", "redo"):
        while project.now()[f"can_{way}"]:
            project.step(way)
            found[f"{len(found):02} {way}"] = steady(project.now())
    assert list(found) == list(KEPT["steps"])
    for name, then in KEPT["steps"].items():
        assert differences(then, found[name], name) == []


def test_an_edit_that_took_effect_then_takes_none_now(client: httpx.Client) -> None:
    project = Project(client, IDS["scene"])
    before = project.now()
    project.edit({"op": "rename", "name": "Another"}, edit_id="pinned-edit")
    assert (project.now()["rev"], project.now()["name"]) == (before["rev"], "Scene")


def test_a_freed_take_is_told_as_gone_and_comes_back_with_its_undo(client: httpx.Client) -> None:
    project = _imported(client, "scene")
    line_id = next(one["line_id"] for one in project.lines() if one["text"] == "No!")
    while len(project.takes(line_id)) < 2:
        project.step("undo")
    assert [one["gone"] for one in project.takes(line_id)] == [True, False]


def test_a_render_that_was_cut_short_goes_on(server: Server) -> None:
    project = Project(server.client, IDS["unfinished"])
    end_s = time.monotonic() + 60
    while {one["state"] for one in project.lines()} != {"ready"}:
        assert time.monotonic() < end_s, project.lines()
        time.sleep(0.05)
    first, second = project.lines()
    assert first["take"]["seed"] == int(first["line_id"], 16) % 2**31
    assert second["take"]["seed"] == 99
    pending = server.workspace / "projects" / project.id / "pending.json"
    while pending.exists():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def test_a_removed_project_is_listed_and_comes_back(client: httpx.Client) -> None:
    [card] = client.get("/studio/space/trash").json()
    assert card.keys() == {"project_id", "name", "edited_at", "lines", "audio_s"}
    assert (card["project_id"], card["name"], card["lines"]) == (IDS["removed"], "Removed", 1)
    answer = client.post(f"/studio/space/trash/{IDS['removed']}/restore")
    assert answer.status_code == 200, answer.text
    [line] = Project(client, IDS["removed"]).lines()
    assert (line["text"], line["take"]["voice"], line["n_takes"]) == ("Oh.", "Tom", 1)
    sound = f"/studio/projects/{IDS['removed']}/takes/{line['line_id']}/{line['chosen']}/audio.wav"
    assert len(samples_of(client.get(sound).content)) == 2 * line["samples"]


def test_a_removed_voice_is_listed_and_comes_back(client: httpx.Client) -> None:
    [removed] = client.get("/studio/speakers").json()["removed"]
    assert removed.keys() == {"speaker_id", "name", "removed_s"}
    assert (removed["speaker_id"], removed["name"]) == (IDS["Gone"], "Gone")
    answer = client.post(f"/studio/speakers/removed/{IDS['Gone']}/restore")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["tags"], [one["sample_id"] for one in body["samples"]]) == (["away"], ["main"])
    sample = client.get(f"/studio/speakers/{IDS['Gone']}/sample.wav").content
    assert sample == _kept_sample(150)


def test_a_former_recording_comes_back_byte_for_byte(client: httpx.Client) -> None:
    path = f"/studio/speakers/{IDS['Maud']}"
    assert client.get(f"{path}/sample.wav").content == _kept_sample(150)
    [maud] = [
        one
        for one in client.get("/studio/speakers").json()["speakers"]
        if one["speaker_id"] == IDS["Maud"]
    ]
    [former] = maud["formers"]
    answer = client.post(f"{path}/formers/{former['former_id']}/restore")
    assert answer.status_code == 200, answer.text
    assert answer.json()["samples"][0]["transcript"] == "A tone of 300 Hz."
    assert client.get(f"{path}/sample.wav").content == _kept_sample(300)


@same_packages
@pytest.mark.parametrize("deleted", [True, False])
def test_a_project_file_is_imported_whole(client: httpx.Client, files: Path, deleted: bool) -> None:
    name = "Scene.tableread.zip" if deleted else "Scene without deleted.tableread.zip"
    answer = client.post(
        "/studio/projects/import", params={"name": name}, content=(files / name).read_bytes()
    )
    assert answer.status_code == 201, answer.text
    then = KEPT["answers"][f"/studio/projects/{IDS['scene']}"]
    # The place where somebody was, and the doubt that was written by hand later, aren't in it.
    left_out = ("project_id", "place")
    expected = {one: then[one] for one in then if one not in left_out}
    found = steady(answer.json())
    for lines in (expected["lines"], found["lines"]):
        for line in lines:
            if line["take"]:
                line["take"] = {**line["take"], "doubts": []}
    assert differences(expected, found) == []
    project = Project(client, answer.json()["project_id"])
    steps = 0
    while project.now()["can_undo"]:
        project.step("undo")
        steps += 1
    assert steps == 23
    texts = [one["text"] for one in project.lines()]
    assert texts == ["Oh.", "Yes.", "Ja.", "", "No!", "Hush.", "Boo.", "Hey."]


def test_a_voice_file_is_imported_whole(client: httpx.Client, files: Path) -> None:
    answer = client.post("/studio/speakers/import", content=(files / "Ida.voice.zip").read_bytes())
    assert answer.status_code == 201, answer.text
    body = answer.json()
    then = KEPT["answers"]["/studio/speakers"]["speakers"][IDS["Ida"]]
    assert body["name"] == "Ida 2"
    for name in ("language", "tags", "preset", "description", "samples"):
        assert body[name] == then[name]
    for sample in body["samples"]:
        at = f"samples/{sample['sample_id']}.wav"
        sound = client.get(f"/studio/speakers/{body['speaker_id']}/{at}").content
        kept = KEPT["answers"][f"/studio/speakers/{IDS['Ida']}/{at}"]
        assert {"samples": digest(samples_of(sound))} == kept


def _imported(client: httpx.Client, name: str) -> Project:
    body = client.get(f"/studio/projects/{IDS[name]}/export", params={"format": "tableread"})
    answer = client.post("/studio/projects/import", content=body.content)
    assert answer.status_code == 201, answer.text
    return Project(client, answer.json()["project_id"])


def _kept_sample(hz: int) -> bytes:
    """What the library keeps of a recording that needs no change: the same file."""
    return tone(hz)
