"""Makes the workspace that the tests here open, and what a studio answers about it.

Run once, with the studio of the day whose files are to open for good: `python
tests/pins/make_fixtures.py`. Made anew with a later studio it would hold nothing of an earlier one;
so it isn't run again unless the workspace has to hold more, and then with a checkout of that day.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import secrets
import shutil
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import Any

import httpx
from pins_studio import (
    PACKED,
    RECORDED,
    VISITOR,
    Project,
    Server,
    answer_of,
    samples_of,
    serving,
    steady,
    tone,
    unpack,
)

SCENE = """\
Ida: Oh.
Tom: Yes.
[Ida | lang:de | speed:2 | seed:7] Ja.
[pause:250ms]
[Ida | mood:angry] No!
Vale: Hush.
Ghost: Boo.
Stray: Hey.
"""
QUICK = {"speed": 2}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="pins-") as name:
        folder = Path(name)
        workspace = folder / "workspace"
        ids = _made(workspace, folder / "files")
        _visited(folder, workspace)
        _written_by_hand(workspace, ids)
        _pack(folder)
    with tempfile.TemporaryDirectory(prefix="pins-") as name:
        workspace = unpack(Path(name))
        with serving(workspace, "--backend", "draft") as server:
            told = _asked(server.client, ids)
            steps = _stepped(server.client, ids)
    written = {"ids": ids, "versions": _versions(), "answers": told, "steps": steps}
    text = json.dumps(written, ensure_ascii=False, indent=1, sort_keys=True)
    RECORDED.write_text(f"{text}\n", encoding="utf-8")
    print(f"{PACKED.stat().st_size} and {RECORDED.stat().st_size} bytes")


def _made(workspace: Path, files: Path) -> dict[str, str]:
    """Work with a studio, and end it as a crash does: the journal is ahead of the snapshots."""
    files.mkdir()
    server = Server(workspace, "--backend", "draft")
    client = server.client
    ids = _speakers(client)
    scene = _scene(client, ids)
    ids["scene"] = scene.id
    for name, backend in (
        ("batched qwen", "qwen3-batched"),
        ("batched turbo", "chatterbox-turbo-batched"),
    ):
        one = Project.made(client, name, "Ida: Oh.\nTom: Yes.")
        one.edit({"op": "settings", "fields": {"backend": backend}})
        ids[name] = one.id
    ids["unfinished"] = Project.made(client, "Unfinished", "Tom: Oh.\nTom: Yes.").id
    removed = Project.made(client, "Removed", "Tom: Oh.")
    removed.render()
    assert client.delete(removed.path).status_code == 204
    ids["removed"] = removed.id
    (files / "Scene.tableread.zip").write_bytes(scene.export("tableread"))
    (files / "Scene without deleted.tableread.zip").write_bytes(
        scene.export("tableread", deleted=False)
    )
    answer = client.get(f"/studio/speakers/{ids['Ida']}/voice")
    (files / "Ida.voice.zip").write_bytes(answer.content)
    # The latest: within the five seconds in which nobody writes a snapshot.
    ids["steps"] = _steps(client).id
    server.kill()
    return ids


def _speakers(client: httpx.Client) -> dict[str, str]:
    there = client.get("/studio/speakers").json()["speakers"]
    ids = {one["name"]: one["speaker_id"] for one in there}
    preset = client.get("/studio/speakers").json()["offer"]["presets"][0]["preset_id"]
    added = (
        ("Ida", {"language": "en", "tags": ["calm", "low"]}, 200),
        ("Tom", {"preset": preset}, 0),
        ("Vale", {"description": "An old, dry voice.", "colour": "#335577"}, 0),
        ("Gone", {"tags": ["away"]}, 150),
    )  # fmt: skip
    for name, details, hz in added:
        if name in ids:
            path = f"/studio/speakers/{ids[name]}"
            _ok(client.patch(path, json=details))
            if hz:
                _ok(client.post(f"{path}/samples", json=_sample(client, hz)))
            continue
        body = {"name": name, **details} | ({"sample": _sample(client, hz)} if hz else {})
        ids[name] = _ok(client.post("/studio/speakers", json=body))["speaker_id"]
    path = f"/studio/speakers/{ids['Ida']}"
    for mood, hz in (("angry", 240), ("tired", 120)):
        _ok(client.post(f"{path}/samples", json=_sample(client, hz) | {"mood": mood}))
    # Main samples are changed and the one of a mood removed: all stay as former recordings.
    for name, hz in (("Ida", 160), ("Maud", 300), ("Maud", 150)):
        path = f"/studio/speakers/{ids[name]}"
        _ok(client.post(f"{path}/samples", json=_sample(client, hz)))
    speakers = _ok(client.get("/studio/speakers"))["speakers"]
    [ida] = [one for one in speakers if one["name"] == "Ida"]
    [tired] = [one for one in ida["samples"] if one["mood"] == "tired"]
    _ok(client.delete(f"/studio/speakers/{ids['Ida']}/samples/{tired['sample_id']}"))
    assert client.delete(f"/studio/speakers/{ids['Gone']}").status_code == 204
    return ids


def _sample(client: httpx.Client, hz: int) -> dict[str, Any]:
    upload = client.post("/studio/uploads", params={"name": f"{hz}.wav"}, content=tone(hz))
    return {
        "upload_id": _ok(upload)["upload_id"],
        "consent": True,
        "transcript": f"A tone of {hz} Hz.",
    }


def _scene(client: httpx.Client, ids: dict[str, str]) -> Project:
    scene = Project.made(client, "Scene", SCENE)
    rows = scene.lines()
    speech = [one["line_id"] for one in rows if one["kind"] == "speech"]
    oh, yes, _, no, hush, boo, hey = speech
    for line_id in (oh, yes, no, hush, boo, hey):
        scene.edit(
            {"op": "set", "line_ids": [line_id], "fields": {"params": _faster(rows, line_id)}}
        )
    answer = client.post(
        f"{scene.path}/audio", files={"file": ("bell.wav", tone(300, seconds=0.2), "audio/wav")}
    )
    bell = {"line_id": "00be110000be", "kind": "audio", "path": _ok(answer)["path"]}
    scene.edit({"op": "insert", "after": oh, "lines": [bell]})
    scene.edit({"op": "settings", "fields": {"seed": 5, "language": "en-GB", "tries": 2}})
    scene.edit({"op": "cast", "speaker": "Ghost", "voice": ids["Vale"]})
    scene.edit({"op": "rename_speaker", "from": "Tom", "to": "Thomas"})
    scene.edit({"op": "rename_speaker", "from": "Stray", "to": "Wanderer"})
    scene.edit(
        {
            "op": "pronounce",
            "put": [
                {"written": "Hush", "spoken": "Hoosh", "match_case": True},
                {"written": "Boo", "spoken": "Bah", "enabled": False},
            ],
        }
    )
    scene.render()
    scene.render([oh], again=True)
    scene.render([oh], again=True)
    scene.render([yes], again=True)
    scene.render([no], again=True)
    first, second, third = scene.takes(oh)
    scene.edit(
        {"op": "choose", "line_id": oh, "take_id": second["take_id"]},
        {"op": "lock_take", "take_id": first["take_id"], "locked": True},
    )
    freed, _ = scene.takes(no)
    scene.edit({"op": "delete_take", "take_id": freed["take_id"]})
    _ok(client.post("/studio/space/free", json={"takes": True, "trash": False}))
    scene.edit({"op": "delete_take", "take_id": third["take_id"]})
    scene.edit({"op": "set", "line_ids": [hush], "fields": {"locked": True}})
    accepted = scene.takes(yes)[0]["take_id"]
    scene.edit({"op": "accept_take", "take_id": accepted, "accepted": True})
    # Changed since it was read, and a deleted line whose take an undo brings back.
    scene.edit({"op": "replace", "find": "Ja", "with": "Nein"}, edit_id="pinned-edit")
    scene.edit({"op": "delete", "line_ids": [boo]})
    _ok(client.put(f"{scene.path}/place", json={"line_id": yes, "heard": oh, "by": "pins"}))
    return scene


def _faster(rows: list[dict[str, Any]], line_id: str) -> dict[str, Any]:
    [row] = [one for one in rows if one["line_id"] == line_id]
    return {**row["params"], **QUICK}


def _steps(client: httpx.Client) -> Project:
    """Every kind of step, joined ones, steps of two people, undone and redone ones."""
    steps = Project.made(client, "Steps", "[Ida | speed:2] One.\n[Tom | speed:2] Two. Three.")
    other = Project(client, steps.id, "else-page")
    one, two = (line["line_id"] for line in steps.lines())
    steps.render()
    for text in ("On", "Onl", "Only"):
        steps.edit({"op": "set", "line_ids": [one], "fields": {"text": text}}, group=f"text-{one}")
    steps.edit({"op": "split", "line_id": two, "at": 4, "new_line_id": "0000000000a3"})
    other.edit(
        {
            "op": "insert",
            "after": two,
            "lines": [{"line_id": "0000000000a4", "kind": "silence", "duration_s": 0.5}],
        }
    )
    steps.edit({"op": "move", "line_ids": ["0000000000a3"], "after": None})
    steps.edit({"op": "join", "line_ids": [one, two]})
    steps.edit({"op": "pronounce", "put": [{"written": "Only", "spoken": "Own lee"}]})
    steps.edit({"op": "rename_speaker", "from": "Tom", "to": "Thomas"})
    steps.edit({"op": "settings", "fields": {"language": "en"}})
    other.edit({"op": "rename", "name": "Many steps"})
    steps.step("undo", own=True)
    steps.step("undo")
    steps.step("redo")
    steps.step("undo")
    return steps


def _visited(folder: Path, workspace: Path) -> None:
    """A workspace of a visitor of a shared studio, under the name that its cookie gives it."""
    space = folder / "space"
    server = Server(space, SPACE_ID="pins/pins")
    answer = server.client.get("/studio/state")
    token = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    cookie = {"Cookie": f"tableread_visitor={token}"}
    made = server.client.post(
        "/studio/projects", json={"name": "A visitor's", "text": "Tom: Oh."}, headers=cookie
    )
    assert made.status_code == 201, made.text
    server.kill()
    came = space / "visitors" / _visitor_folder(token)
    kept = workspace / "visitors" / _visitor_folder(VISITOR)
    kept.parent.mkdir()
    shutil.move(came, kept)


def _visitor_folder(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _written_by_hand(workspace: Path, ids: dict[str, str]) -> None:
    """What no draft voice brings about: a doubt, a render cut short, takes of neural voices."""
    projects = workspace / "projects"
    unfinished = projects / ids["unfinished"]
    lines = json.loads((unfinished / "project.json").read_bytes())["lines"]
    pending = {"lines": {lines[0]["line_id"]: None, lines[1]["line_id"]: 99}}
    (unfinished / "pending.json").write_text(json.dumps(pending, indent=1) + "\n")
    # Left behind by the crash or not, as chance has it.
    (projects / ids["steps"] / "pending.json").unlink(missing_ok=True)
    yes = json.loads((projects / ids["scene"] / "project.json").read_bytes())["lines"][2]
    path = next((projects / ids["scene"] / "takes" / yes["line_id"]).glob("*.json"))
    record = json.loads(path.read_bytes())
    record["doubts"] = [{"kind": "tail", "figure": 1.5, "message": "1.5 s of noise after it."}]
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, backend, revision, params, language in (
        (
            "batched qwen",
            "qwen3-batched",
            f"qwen-tts-hf {importlib.metadata.version('qwen-tts-hf')}, "
            "Qwen/Qwen3-TTS-12Hz-0.6B-Base not here yet, silence 0.5 s",
            {"temperature": 0.9, "top_k": 50.0, "top_p": 1.0, "repetition_penalty": 1.05},
            "en",
        ),
        (
            "batched turbo",
            "chatterbox-turbo-batched",
            f"chatterbox-tts {importlib.metadata.version('chatterbox-tts')}, "
            "ResembleAI/chatterbox-turbo not here",
            {"temperature": 0.8, "repetition_penalty": 1.2, "top_k": 1000.0, "top_p": 0.95},
            None,  # it has one language only
        ),
    ):
        _take_of(workspace, ids[name], ids["Ida"], (backend, revision, language, params))


def _take_of(
    workspace: Path,
    project_id: str,
    speaker_id: str,
    made_by: tuple[str, str, str | None, dict[str, Any]],
) -> None:
    """A take of the first line, of the key that this voice has for it, in the journal too."""
    backend, revision, language, params = made_by
    folder = workspace / "projects" / project_id
    snapshot = json.loads((folder / "project.json").read_bytes())
    line = snapshot["lines"][0]
    sample = (workspace / "speakers" / speaker_id / "sample.wav").read_bytes()
    record = json.loads((workspace / "speakers" / speaker_id / "speaker.json").read_bytes())
    mark = ["sample", hashlib.sha256(sample).hexdigest(), record["transcript"]]
    parts = [backend, revision, mark, line["text"], language, params]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode("ascii")).hexdigest()[:32]
    take_id = secrets.token_hex(8)
    sound = tone(100, seconds=0.1)
    take = {
        "take_id": take_id, "line_id": line["line_id"], "key": key, "seed": 1234,
        "backend": backend, "text": line["text"], "voice": "Ida",
        "samples": len(samples_of(sound)) // 2, "created_at": "2026-11-22T12:00:00.000+00:00",
        "language": None, "params": {}, "cut": False, "doubts": [], "figures": None,
    }  # fmt: skip
    at = folder / "takes" / line["line_id"]
    at.mkdir(parents=True, exist_ok=True)
    (at / f"{take_id}.wav").write_bytes(sound)
    (at / f"{take_id}.json").write_text(json.dumps(take, indent=2) + "\n", encoding="utf-8")
    last = json.loads((folder / "edits.jsonl").read_bytes().splitlines()[-1])["entry"]
    change = [{"chosen": None}, {"chosen": take_id}]
    entry = {
        "rev": last["rev"], "at": last["at"] + 1, "client": "", "kind": "made", "joined": False,
        "below": None, "delta": {"lines": {line["line_id"]: change}},
    }  # fmt: skip
    body = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()
    with (folder / "edits.jsonl").open("ab") as file:
        file.write(b'{"sum":"%08x","entry":' % zlib.crc32(body) + body + b"}\n")


def _pack(folder: Path) -> None:
    with tarfile.open(PACKED, "w:xz") as packed:
        for name in ("workspace", "files"):
            packed.add(folder / name, name, filter=_plain)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if Path(member.name).name in {".lock", "renders", "exports", "readings", "uploads"}:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _versions() -> dict[str, str]:
    """Packages whose version is part of a take's key."""
    names = ("espeakng-loader", "qwen-tts-hf", "chatterbox-tts")
    return {name: importlib.metadata.version(name) for name in names}


def _asked(client: httpx.Client, ids: dict[str, str]) -> dict[str, Any]:
    """Answers by address: bodies of JSON as they are, files as digests, sounds of their samples."""
    told = {}
    for address in _addresses(client, ids):
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.text)
        told[address] = answer_of(address, answer)
    return told


def _addresses(client: httpx.Client, ids: dict[str, str]) -> list[str]:
    found = ["/studio/speakers", "/studio/projects", "/v1/audio/voices"]
    for one in client.get("/studio/speakers").json()["speakers"]:
        if one["name"] == "Maud":
            continue  # whose former recordings a test brings back
        for sample in one["samples"]:
            found.append(f"/studio/speakers/{one['speaker_id']}/samples/{sample['sample_id']}.wav")
    for name in ("scene", "batched qwen", "batched turbo"):
        project = Project(client, ids[name])
        found += [project.path, f"{project.path}/script"]
        for line in project.lines():
            found.append(f"{project.path}/takes/{line['line_id']}")
            for take in project.takes(line["line_id"]):
                if not take["gone"]:
                    at = f"{project.path}/takes/{line['line_id']}/{take['take_id']}"
                    found += [f"{at}/audio.wav", f"{at}/peaks?bins=20"]
            if line["samples"]:
                found.append(f"{project.path}/lines/{line['line_id']}/audio")
    scene = f"/studio/projects/{ids['scene']}"
    for suffix in ("txt", "fountain", "srt", "vtt", "csv", "tsv", "json", "jsonl", "wav"):
        found.append(f"{scene}/export?format={suffix}")
    found += [f"{scene}/pronunciations/file?format={suffix}" for suffix in ("csv", "txt")]
    return found


def _stepped(client: httpx.Client, ids: dict[str, str]) -> dict[str, Any]:
    """The lines and all else of a project after each undo to its beginning, and each redo back."""
    project = Project(client, ids["steps"])
    told: dict[str, Any] = {"00 opened": steady(project.now())}
    for way in ("redo", "undo", "redo"):
        while project.now()[f"can_{way}"]:
            project.step(way)
            told[f"{len(told):02} {way}"] = steady(project.now())
    return told


def _ok(answer: httpx.Response) -> Any:
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


if __name__ == "__main__":
    sys.exit(main())
