"""What the studio writes: the names of files, and the keys of every JSON among them."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest
from pins_studio import Project, Server, entries_of, tone

SNAPSHOT = {
    "version", "name", "cast", "first_names", "settings", "lines", "locked_takes", "deleted_takes",
    "accepted_takes", "audio_s", "history",
}  # fmt: skip
HISTORY = {"journal_bytes", "rev", "undo", "redo", "last", "at_s", "seen", "gone"}
SETTINGS = {"backend", "seed", "language", "tries", "says_words"}
PRONUNCIATION = {"written", "spoken", "match_case", "enabled"}
LINE = {
    "line_id", "kind", "speaker", "text", "language", "seed", "params", "duration_s", "path",
    "locked", "chosen",
}  # fmt: skip
TAKE = {
    "take_id", "line_id", "key", "seed", "backend", "text", "voice", "samples", "created_at",
    "language", "params", "cut", "doubts", "figures",
}  # fmt: skip
FIGURES = {"speech_s", "level_db", "usual_s"}
ADDED_FIGURES = {"mean_pitch", "voiceprint", "sample_mean_pitch", "mark"}
ENTRY = {"rev", "at", "client", "kind", "below", "delta"}
SPEAKER = {
    "version", "name", "has_sample", "transcript", "language", "preset", "description", "colour",
    "tags", "consent_at", "moods", "first_name", "formers",
}  # fmt: skip
MANIFEST = {"version", "file", "rate_hz", "duration_s", "n_samples", "failed", "segments"}
SEGMENT = {
    "segment", "line", "speaker", "text", "doubtful", "type", "start_s", "duration_s",
    "start_sample", "n_samples", "file",
}  # fmt: skip
SPOKEN = SEGMENT | {"at_s"}
ADDED_TO_SEGMENT = {"number", "id", "said", "engine", "model", "voice"}
ADDED = {
    "sum", "version", "audio_crc32", "checksums", "pauses", "at_s", "words", "phonemes",
    "recognised", "patch",
}  # fmt: skip
"""Later additions: a format's version, checksums, and of a take its pauses, steps, words, what a
recogniser understood and which samples are a patch."""
MOOD = {"sample_id", "mood", "transcript", "consent_at"}
FORMER = {
    "former_id", "sample_id", "mood", "transcript", "consent_at", "removed", "at", "original",
}  # fmt: skip


@pytest.fixture(scope="module")
def scene(client: httpx.Client) -> Project:
    """A project to which every kind of edit was made."""
    text = "[Ann | speed:2] Oh.\n[Bob | lang:de | seed:3 | speed:2] Ja. Ja.\n[pause:250ms]"
    project = Project.made(client, "Written", text)
    one, two, pause = (line["line_id"] for line in project.lines())
    project.render([one])
    project.render([one], again=True)
    first, second = (take["take_id"] for take in project.takes(one))
    humming = {"line_id": "00000000aaaa", "speaker": "Ann", "text": "Hm."}
    for op in (
        {"op": "insert", "after": one, "lines": [humming]},
        {"op": "move", "line_ids": ["00000000aaaa"], "after": None},
        {"op": "set", "line_ids": [one], "fields": {"text": "Oh!"}},
        {"op": "choose", "line_id": one, "take_id": first},
        {"op": "split", "line_id": two, "at": 4, "new_line_id": "00000000bbbb"},
        {"op": "join", "line_ids": [two, "00000000bbbb"]},
        {"op": "lock_take", "take_id": first, "locked": True},
        {"op": "accept_take", "take_id": first, "accepted": True},
        {"op": "delete_take", "take_id": second},
        {"op": "cast", "speaker": "Bob", "voice": "0123456789ab"},
        {"op": "rename_speaker", "from": "Ann", "to": "Anna"},
        {"op": "settings", "fields": {"seed": 1, "language": "en", "tries": 3}},
        {"op": "pronounce", "put": [{"written": "Ja", "spoken": "Yah"}], "remove": ["None"]},
        {"op": "rename", "name": "Written anew"},
        {"op": "replace", "find": "Hm", "with": "Hum", "whole_word": True, "match_case": True},
        {"op": "delete", "line_ids": [pause]},
    ):  # fmt: skip
        project.edit(op, edit_id=f"edit-{op['op']}")
    project.step("undo")
    project.step("redo")
    project.step("undo", own=True)
    for text in ("A", "Ab"):
        fields = {"text": text, "locked": True}
        project.edit({"op": "set", "line_ids": [two], "fields": fields}, group="typing")
    project.edit(
        {"op": "insert", "lines": [{"line_id": "00000000cccc", "kind": "silence", "duration_s": 1}]}
    )
    answer = client.post(
        f"{project.path}/audio", files={"file": ("bell.wav", tone(300), "audio/wav")}
    )
    assert answer.status_code == 201, answer.text
    path = answer.json()["path"]
    assert re.fullmatch(r"bell-[0-9a-f]{8}\.wav", path)
    project.edit(
        {"op": "insert", "lines": [{"line_id": "00000000dddd", "kind": "audio", "path": path}]}
    )
    return project


@pytest.fixture
def folder(server: Server, scene: Project) -> Path:
    return server.workspace / "projects" / scene.id


def test_a_project_is_a_folder_of_these_files(scene: Project, folder: Path) -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", scene.id)
    assert {path.name for path in folder.iterdir()} - {"pending.json", ".making"} == {
        ".lock", "audio", "edits.jsonl", "project.json", "takes",
    }  # fmt: skip
    for path in (folder / "takes").rglob("*.*"):
        if re.fullmatch(r"\.[0-9a-f]{16}\.part", path.name):
            continue  # the words of a take are being added to its record
        at = path.relative_to(folder).as_posix()
        assert re.fullmatch(r"takes/([0-9a-f]{12}/[0-9a-f]{16}\.(wav|json)|marked\.freed)", at)


def test_keys_of_a_snapshot(scene: Project, folder: Path) -> None:
    first = json.loads((folder / "project.json").read_bytes())
    with zipfile.ZipFile(io.BytesIO(scene.export("tableread"))) as packed:
        latest = json.loads(packed.read("project.json"))
    for snapshot in (first, latest):
        assert snapshot.keys() - {"pronunciations", "sum"} == SNAPSHOT
        assert snapshot["version"] == 1
        assert snapshot["settings"].keys() == SETTINGS
        assert snapshot["history"].keys() == HISTORY
        assert all(line.keys() <= LINE for line in snapshot["lines"])
    assert [one.keys() for one in latest["pronunciations"]] == [PRONUNCIATION]
    assert latest["first_names"] == {"Anna": "Ann 8", "Bob": "Bob 28"}
    assert set().union(*latest["lines"]) == LINE
    kinds = {line.get("kind", "speech") for line in latest["lines"]}
    assert kinds == {"speech", "silence", "audio"}
    speech = {"line_id", "speaker", "text"}
    assert any(line.keys() == speech for line in latest["lines"]), "defaults are left out"


def test_a_journal_is_lines_of_sum_and_entry(folder: Path) -> None:
    journal = (folder / "edits.jsonl").read_bytes()
    for line in journal.splitlines():
        found = re.fullmatch(rb'\{"sum":"([0-9a-f]{8})","entry":(\{.*\})\}', line)
        assert found is not None
        assert int(found[1], 16) == zlib.crc32(found[2])


def test_keys_of_the_journal(folder: Path) -> None:
    more: dict[str, set[str]] = {}
    delta: set[str] = set()
    fields: set[str] = set()
    for entry in entries_of((folder / "edits.jsonl").read_bytes()):
        assert entry.keys() >= ENTRY
        assert entry["version"] == 1
        more.setdefault(entry["kind"], set()).update(entry.keys() - ENTRY - ADDED)
        delta |= entry["delta"].keys()
        fields |= entry["delta"].get("fields", {}).keys()
        for line_id, (before, after) in entry["delta"].get("lines", {}).items():
            assert re.fullmatch(r"[0-9a-f]{12}", line_id)
            assert (before or {}).keys() | (after or {}).keys() <= LINE
        if "order" in entry["delta"]:
            start, removed, inserted, after = entry["delta"]["order"]
            assert isinstance(start, int)
            assert isinstance(removed + inserted, list)
            assert after is None or isinstance(after, str)
    assert more == {
        "made": {"joined"},
        "edit": {"joined", "group", "edit_id"},
        "undo": {"next"},
        "redo": {"next"},
    }
    assert delta == {"lines", "order", "fields"}
    assert fields == {
        "name", "cast", "first_names", "settings", "locked_takes", "deleted_takes",
        "accepted_takes", "pronunciations",
    }  # fmt: skip


def test_keys_of_a_take(folder: Path) -> None:
    paths = list((folder / "takes").rglob("*.json"))
    assert len(paths) == 2
    for path in paths:
        take = json.loads(path.read_bytes())
        assert take.keys() - ADDED == TAKE | {"number"}
        assert take["version"] == 1
        assert take["figures"].keys() == FIGURES | ADDED_FIGURES
        assert (take["take_id"], take["line_id"]) == (path.stem, path.parent.name)
        assert path.with_suffix(".wav").stat().st_size == 44 + 2 * take["samples"]
        assert re.fullmatch(r"[0-9a-f]{32}", take["key"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", take["created_at"])


def test_a_place_is_kept_in_a_file_of_its_own(
    client: httpx.Client, scene: Project, folder: Path
) -> None:
    place = {"line_id": None, "heard": None, "by": "pins"}
    assert client.put(f"{scene.path}/place", json=place).json() == {"number": 1}
    kept = json.loads((folder / "place.json").read_bytes())
    assert kept.pop("rev") == client.get(scene.path).json()["rev"]
    assert {name: one for name, one in kept.items() if name not in ADDED} == place | {"number": 1}


def test_what_a_render_has_to_make_stands_in_a_file(client: httpx.Client, server: Server) -> None:
    """Until it is made; there is far more than is made until this looks."""
    text = "\n".join(
        f"[Ann | speed:2] Line {number} of many that take their time." for number in range(1_500)
    )
    project = Project.made(client, "Pending", text)
    path = server.workspace / "projects" / project.id / "pending.json"
    asked = {"line_ids": None, "again": False}
    assert client.post(f"{project.path}/render", json=asked).status_code == 200
    pending = json.loads(path.read_bytes())
    assert pending.keys() - ADDED == {"lines"}
    assert all(re.fullmatch(r"[0-9a-f]{12}", one) for one in pending["lines"])
    assert set(pending["lines"].values()) == {None}
    client.post(f"{project.path}/cancel")
    end_s = time.monotonic() + 30
    while path.exists():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def test_members_of_a_project_file(client: httpx.Client, files: Path) -> None:
    with zipfile.ZipFile(files / "Scene.tableread.zip") as packed:
        then = {_shape(name) for name in packed.namelist()}
    project = Project.made(client, "Packed", "[Ida | speed:2] Oh.\n[Ida | speed:2] Yes.")
    project.render()
    recording = client.post(
        f"{project.path}/audio", files={"file": ("bell.wav", tone(300), "audio/wav")}
    ).json()
    project.edit(
        {"op": "insert", "lines": [{"line_id": "00000000dddd", "kind": "audio", **recording}]}
    )
    with zipfile.ZipFile(io.BytesIO(project.export("tableread"))) as packed:
        now = {_shape(name) for name in packed.namelist()}
    assert now == then == {
        "project.json",
        "edits.jsonl",
        "takes/<id>/<id>.wav",
        "takes/<id>/<id>.json",
        "audio/bell-<id>.wav",
        "voices/<id>.voice.zip",
    }  # fmt: skip


def test_a_speaker_is_a_folder_of_these_files(client: httpx.Client, server: Server) -> None:
    speaker = _speaker(client, "Keys")
    folder = server.workspace / "speakers" / speaker["speaker_id"]
    assert {_shape(path.name) for path in folder.iterdir()} == {
        "speaker.json", "sample.wav", "mood-<id>.wav", "former-<id>.wav",
    }  # fmt: skip
    record = json.loads((folder / "speaker.json").read_bytes())
    assert record.keys() - (ADDED - SPEAKER) == SPEAKER
    assert record["version"] == 1
    assert [one.keys() for one in record["moods"]] == [MOOD]
    assert [one.keys() for one in record["formers"]] == [FORMER]
    assert (record["name"], record["first_name"]) == ("Keys again", "Keys")
    assert (folder / f"mood-{record['moods'][0]['sample_id']}.wav").is_file()
    assert (folder / f"former-{record['formers'][0]['former_id']}.wav").is_file()


def test_members_of_a_voice_file(client: httpx.Client, files: Path) -> None:
    speaker = _speaker(client, "Taken along")
    answer = client.get(f"/studio/speakers/{speaker['speaker_id']}/voice")
    assert answer.headers["content-disposition"] == (
        "attachment; filename*=utf-8''Taken%20along%20again.voice.zip"
    )
    for content in (answer.content, (files / "Ida.voice.zip").read_bytes()):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            names = {_shape(name) for name in packed.namelist()}
            record = json.loads(packed.read("speaker.json"))
        assert names == {"speaker.json", "sample.wav", "mood-<id>.wav"}
        assert record.keys() - (ADDED - SPEAKER) == SPEAKER
        assert record["formers"] == []


def test_keys_of_the_manifest(client: httpx.Client) -> None:
    project = Project.made(
        client, "Zipped", "[Ann | speed:2] Oh.\n[pause:250ms]\n[Bob | speed:2] Yes."
    )
    project.render()
    with zipfile.ZipFile(io.BytesIO(project.export("zip"))) as packed:
        names = packed.namelist()
        manifest = json.loads(packed.read("manifest.json"))
    assert sorted(names) == ["0001-Ann.wav", "0003-Bob.wav", "manifest.json", "scene.wav"]
    assert manifest.keys() == MANIFEST
    assert (manifest["version"], manifest["file"], manifest["rate_hz"]) == (1, "scene.wav", 24_000)
    keys = [one.keys() - ADDED_TO_SEGMENT for one in manifest["segments"]]
    assert keys == [SPOKEN, SEGMENT, SPOKEN]
    assert [one["type"] for one in manifest["segments"]] == ["audio", "silence", "audio"]
    assert [one["segment"] for one in manifest["segments"]] == [0, 1, 2]
    assert [one["line"] for one in manifest["segments"]] == [1, 2, 3]


def test_members_of_tracks(client: httpx.Client) -> None:
    project = Project.made(client, "Tracks", "[Ann | speed:2] Oh.\n[Bob | speed:2] Yes.")
    project.render()
    with zipfile.ZipFile(io.BytesIO(project.export("tracks"))) as packed:
        names = sorted(packed.namelist())
    assert names == ["01-Ann.wav", "02-Bob.wav", "labels.txt", "scene.rpp"]


def _speaker(client: httpx.Client, name: str) -> dict[str, Any]:
    """One with a sample, a mood, a former sample and a former name."""
    answer = client.post("/studio/speakers", json={"name": name, "sample": _sample(client, 200)})
    assert answer.status_code == 201, answer.text
    path = f"/studio/speakers/{answer.json()['speaker_id']}"
    for more in ({"mood": "glad"}, {}):
        answer = client.post(f"{path}/samples", json=_sample(client, 160) | more)
        assert answer.status_code == 201, answer.text
    answer = client.patch(
        path, json={"name": f"{name} again", "description": "Low.", "tags": ["a"]}
    )
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def _sample(client: httpx.Client, hz: int) -> dict[str, Any]:
    answer = client.post("/studio/uploads", params={"name": "tone.wav"}, content=tone(hz))
    assert answer.status_code == 201, answer.text
    return {"upload_id": answer.json()["upload_id"], "consent": True}


def _shape(name: str) -> str:
    return re.sub(r"[0-9a-f]{8,}", "<id>", name)
