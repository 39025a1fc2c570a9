"""What other programs and the page ask over HTTP: addresses, names, shapes and headers."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pins_studio import VISITOR, Project, data_lines, serving, tone, unpack

SPEECH_ERROR = {"message", "type", "param", "code"}
STUDIO_ERROR = {"message", "line", "kind"}
LINE_EVENT = {
    "seq", "type", "line_id", "state", "making", "message", "samples", "take", "n_takes", "chosen",
}  # fmt: skip
SUMMARY = {
    "total",
    "done",
    "failed",
    "audio_s",
    "wall_s",
    "first_audio_s",
    "message",
    "remaining_s",
}
PROJECT = {
    "project_id", "name", "rev", "cast", "settings", "pronunciations", "lines", "speakers",
    "notices", "storage", "accepted_takes", "can_undo", "can_redo", "job", "place", "seq",
}  # fmt: skip
ROW = {
    "line_id", "kind", "speaker", "text", "language", "seed", "params", "duration_s", "path",
    "locked", "chosen", "state", "message", "take", "n_takes", "samples", "making", "spoken",
}  # fmt: skip
TAKE = {
    "take_id", "line_id", "key", "seed", "backend", "text", "voice", "samples", "created_at",
    "language", "params", "cut", "doubts", "locked", "gone",
}  # fmt: skip
ABILITIES = {
    "cloning", "builtin_voice", "presets", "described_voices", "instructions", "languages", "tags",
    "params", "streaming", "sample_rate_hz", "max_chars",
}  # fmt: skip
DIALOG = {
    "id", "object", "status", "model", "lines", "segments", "finished", "audio_s", "failed",
    "device_busy_s", "doubtful", "timestamps", "tries", "notices",
}  # fmt: skip
MODEL = {
    "state", "message", "fraction", "active", "idle_timeout_s", "eviction_enabled", "unload_in_s",
    "loads", "unloads", "cancelled_loads", "memory_bytes", "memory_before", "memory_after",
}  # fmt: skip

P, S = "/studio/projects", "/studio/speakers"
ROUTES = f"""\
GET /studio/state
POST /studio/setup/start
POST /studio/model/load
POST /studio/model/cancel
POST /studio/model/unload
POST /studio/model/timeout
POST /studio/model/concurrency
POST /studio/backend
GET {P}
POST {P}
POST {P}/import
POST {P}/lines
GET {P}/ID
PATCH {P}/ID
DELETE {P}/ID
POST {P}/ID/edits
POST {P}/ID/undo
POST {P}/ID/redo
GET {P}/ID/script
PUT {P}/ID/script
GET {P}/ID/events
POST {P}/ID/render
POST {P}/ID/cancel
POST {P}/ID/focus
POST {P}/ID/hints
PUT {P}/ID/place
POST {P}/ID/audio
GET {P}/ID/export
POST {P}/ID/exports
GET {P}/ID/exports/ID
DELETE {P}/ID/exports/ID
GET {P}/ID/exports/ID/file
GET {P}/ID/takes/ID
GET {P}/ID/takes/ID/ID/audio.wav
GET {P}/ID/takes/ID/ID/peaks
GET {P}/ID/peaks
GET {P}/ID/lines/ID/audio
POST {P}/ID/pronunciations/reach
POST {P}/ID/pronunciations/hear
POST {P}/ID/pronunciations/read
GET {P}/ID/pronunciations/file
GET /studio/space
POST /studio/space/free
GET /studio/space/trash
POST /studio/space/trash/ID/restore
GET {S}
POST {S}
POST {S}/import
POST {S}/removed/ID/restore
DELETE {S}/removed/ID
GET {S}/ID/voice
PATCH {S}/ID
DELETE {S}/ID
GET {S}/ID/sample.wav
GET {S}/ID/samples/ID.wav
POST {S}/ID/samples
PATCH {S}/ID/samples/ID
POST {S}/ID/samples/ID/open
PUT {S}/ID/samples/ID/recording
DELETE {S}/ID/samples/ID
POST {S}/ID/formers/ID/restore
DELETE {S}/ID/formers/ID
POST {S}/ID/preview
POST {S}/ID/act
POST /studio/uploads
POST /studio/uploads/ID/check
GET /studio/uploads/ID/audio.wav
POST /studio/uploads/ID/preview
DELETE /studio/uploads/ID
""".splitlines()
AT_ONCE = {
    "/studio/model/load", "/studio/model/cancel", "/studio/model/unload", "/studio/setup/start",
}  # fmt: skip
"""They take no body and would do something, so they are asked with another method."""


@pytest.mark.parametrize("route", ROUTES)
def test_each_address_of_the_page_is_there(client: httpx.Client, route: str) -> None:
    """With an id that nobody has: the studio's own answer, not that there is no such address."""
    method, _, path = route.partition(" ")
    path = path.replace("ID", "0123456789ab")
    # A body that no such route takes: nothing is changed.
    sent = {} if method in ("GET", "DELETE") else {"content": b"\xff{"}
    if path in AT_ONCE:
        answer = client.get(path)
        assert answer.status_code == 405, answer.text
        assert answer.headers["allow"] == "POST"
        return
    answer = client.request(method, path, **sent)
    assert answer.status_code != 405
    if answer.content and answer.headers["content-type"] == "application/json":
        assert "detail" not in answer.json(), "that is what an address that isn't there answers"
    assert answer.status_code < 500


def test_an_address_that_is_not_there(client: httpx.Client) -> None:
    assert client.get("/studio/nothing").json() == {"detail": "Not Found"}
    assert client.delete("/studio/state").status_code == 405


def test_the_document_of_the_speech_api(client: httpx.Client) -> None:
    document = client.get("/v1/openapi.json").json()
    assert document["info"] == {"title": "Tableread speech API", "version": "1"}
    assert document["servers"] == [{"url": "/v1"}]
    assert document["security"] == [{}, {"key": []}]
    assert document["components"]["securitySchemes"] == {
        "key": {"type": "http", "scheme": "bearer"}
    }
    kept = json.loads((Path(__file__).parent / "openapi.json").read_text(encoding="utf-8"))
    told = _told(document)
    assert _find_missing(kept, told) == []
    for name in ("SpeechBody", "DialogBody"):  # what was enough to ask for stays enough
        assert told["schemas"][name]["required"] == kept["schemas"][name]["required"] == ["input"]


def _find_missing(kept: Any, now: Any, place: str = "") -> list[str]:
    """What a newer document lacks of an older one; it may say more."""
    if isinstance(kept, dict) and isinstance(now, dict):
        gone = [f"{place}/{name}" for name in kept if name not in now]
        both = [(name, one) for name, one in kept.items() if name in now]
        return gone + [gap for k, v in both for gap in _find_missing(v, now[k], f"{place}/{k}")]
    if isinstance(kept, list) and isinstance(now, list):
        return [f"{place}: {one}" for one in kept if all(_find_missing(one, n) for n in now)]
    return [] if kept == now else [f"{place}: {kept} is now {now}"]


def _told(document: dict[str, Any]) -> dict[str, Any]:
    """Without the words by which things are explained, and the names that Python gives them."""

    def stripped(part: Any) -> Any:
        if isinstance(part, dict):
            if part.get("type") == "object" and "properties" in part:
                part = {
                    **part,
                    "properties": {k: stripped(v) for k, v in part["properties"].items()},
                }
                named = part.pop("properties")
                return {**stripped(part), "properties": named}
            left_out = ("description", "title", "summary", "operationId", "tags")
            return {name: stripped(one) for name, one in part.items() if name not in left_out}
        return [stripped(one) for one in part] if isinstance(part, list) else part

    schemas = document["components"]["schemas"]
    return {
        "paths": stripped(document["paths"]),
        "schemas": {name: stripped(schema) for name, schema in schemas.items()},
    }


def test_models_and_voices(client: httpx.Client) -> None:
    models = client.get("/v1/models").json()
    assert models.keys() == {"object", "data", "models"}
    [draft] = [one for one in models["data"] if one["id"] == "draft"]
    assert draft.keys() == {"id", "object", "created", "owned_by", "title", "capabilities"}
    assert (draft["object"], draft["owned_by"]) == ("model", "tableread")
    assert draft["capabilities"].keys() == ABILITIES
    voices = client.get("/v1/audio/voices", params={"model": "draft"}).json()
    assert voices.keys() == {"voices", "data", "uploaded_voices"}
    assert all(voice.keys() == {"id", "name"} for voice in voices["voices"])
    legacy = client.get("/v1/audio/voices", params={"model": "draft", "legacy": True}).json()
    assert legacy["voices"] == [voice["id"] for voice in voices["voices"]]
    assert {"id", "name", "kind", "languages"} == voices["data"][0].keys()
    assert {one["kind"] for one in voices["data"]} == {"speaker", "preset"}


@pytest.mark.parametrize("model", [None, "tts-1", "tts-1-hd", "gpt-4o-mini-tts", "draft"])
def test_a_text_is_spoken(client: httpx.Client, model: str | None) -> None:
    asked = {"input": "Oh.", "voice": "Ida", "response_format": "pcm", "seed": 1, "model": model}
    answer = client.post("/v1/audio/speech", json=asked)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-sample-rate"] == "24000"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "audio/pcm"
    assert len(answer.content) > 4_000


@pytest.mark.parametrize(
    ("suffix", "media_type"),
    [
        ("mp3", "audio/mpeg"),
        ("opus", "audio/ogg"),
        ("aac", "audio/aac"),
        ("flac", "audio/flac"),
        ("wav", "audio/wav"),
        ("pcm", "audio/pcm"),
    ],
)
def test_formats_of_speech(client: httpx.Client, suffix: str, media_type: str) -> None:
    asked = {"input": "Oh.", "response_format": suffix}
    answer = client.post("/v1/audio/speech", json=asked)
    assert answer.headers["content-type"] == media_type


def test_speech_as_events(client: httpx.Client) -> None:
    asked = {"input": "Oh.", "voice": "Ida", "seed": 1, "response_format": "pcm"}
    whole = client.post("/v1/audio/speech", json=asked).content
    answer = client.post("/v1/audio/speech", json=asked | {"stream_format": "sse"})
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *deltas, done = data_lines(answer.text)
    assert {one["type"] for one in deltas} == {"speech.audio.delta"}
    assert [one.keys() for one in deltas] == [{"type", "audio"}] * len(deltas)
    assert b"".join(base64.b64decode(one["audio"]) for one in deltas) == whole
    tenths = round(10 * len(whole) / 2 / 24_000)
    usage = {"input_tokens": 3, "output_tokens": tenths, "total_tokens": 3 + tenths}
    assert done == {"type": "speech.audio.done", "usage": usage}


def test_a_dialog_is_rendered(client: httpx.Client) -> None:
    asked = {"input": "Ann: Oh.\nBob: Yes.", "voices": {"Ann": "Ida"}, "seed": 1, "stream": True}
    answer = client.post("/v1/dialogs", json=asked)
    assert answer.status_code == 201
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    first, *steps, last = data_lines(answer.text)
    assert (first["type"], last["type"]) == ("dialog.created", "dialog.done")
    assert first.keys() == last.keys() == {"type", "dialog"}
    assert first["dialog"].keys() == last["dialog"].keys() == DIALOG
    assert first["dialog"]["object"] == "dialog"
    assert first["dialog"]["status"] in {"running", "done"}  # it takes milliseconds
    assert last["dialog"]["status"] == "done"
    assert {one["type"] for one in steps} == {"dialog.segment"}
    step = {"type", "segment", "status", "at_s", "message", "doubtful"}
    assert all(one.keys() == step for one in steps)
    states = ["planned", "queued", "started", "generated", "saved"]
    assert [one["status"] for one in steps if one["segment"] == 0] == states
    path = f"/v1/dialogs/{first['dialog']['id']}"
    assert client.get(path).json() == last["dialog"]
    assert data_lines(client.get(f"{path}/events").text)[-1] == last
    for suffix, media_type in (("wav", "audio/wav"), ("mp3", "audio/mpeg"), ("opus", "audio/ogg")):
        sound = client.get(f"{path}/audio", params={"format": suffix})
        assert (sound.status_code, sound.headers["content-type"]) == (200, media_type)
    gone = client.delete(path).json()
    assert gone == {"id": first["dialog"]["id"], "object": "dialog.deleted", "deleted": True}
    assert client.get(path).status_code == 404


def test_lines_that_fail_or_may_not_be_right_are_named(client: httpx.Client) -> None:
    asked = {"input": "Ann: [sigh]\nBob: Yes.", "stream": True}
    answer = client.post("/v1/dialogs", json=asked)
    last = data_lines(answer.text)[-1]
    [failed] = last["dialog"]["failed"]
    assert failed.keys() == {"segment", "line", "message"}


@pytest.mark.parametrize(
    ("asked", "status", "kind", "param", "code"),
    [
        ({"input": ""}, 400, "invalid_request_error", "input", None),
        ({"input": "x", "model": "none"}, 404, "not_found_error", "model", "NotFound"),
        ({"input": "x", "speed": 9}, 400, "invalid_request_error", "speed", None),
        ({"input": "[sigh]"}, 400, "invalid_request_error", None, "BadInput"),
        ({"input": "x", "ref_audio": "a"}, 400, "invalid_request_error", "ref_audio", "BadInput"),
    ],
)
def test_errors_of_the_speech_api(
    client: httpx.Client,
    asked: dict[str, Any],
    status: int,
    kind: str,
    param: str | None,
    code: str | None,
) -> None:
    answer = client.post("/v1/audio/speech", json=asked)
    error = answer.json()["error"]
    assert answer.json().keys() == {"error"}
    assert error.keys() == SPEECH_ERROR
    assert (answer.status_code, error["type"], error["param"], error["code"]) == (
        status, kind, param, code,
    )  # fmt: skip


def test_errors_of_the_studio(client: httpx.Client) -> None:
    project = Project.made(client, "Errors", "Ann: Oh.")
    line_id = project.lines()[0]["line_id"]
    bad = {"base_rev": 0, "client": "pins", "ops": [{"op": "none"}]}
    locked = {"base_rev": 0, "client": "pins"}
    for answer, status, kind in (
        (client.get(f"{P}/none"), 404, "NotFound"),
        (client.post(f"{project.path}/edits", json=bad), 422, "BadInput"),
        (client.post(f"{project.path}/undo", json=locked), 409, "Conflict"),
        (client.post(P, json={"text": "# no dialog at all", "name": "x"}), 400, "ScriptError"),
        (client.post("/studio/backend", json={"name": "none"}), 400, "SettingError"),
    ):
        assert (answer.status_code, answer.json().keys()) == (status, {"error"}), answer.text
        assert answer.json()["error"].keys() == STUDIO_ERROR
        assert answer.json()["error"]["kind"] == kind
    mine = {"base_rev": 0, "client": "one-a", "ops": [_text(line_id, "One.")]}
    theirs = {"base_rev": 0, "client": "two-b", "ops": [_text(line_id, "Two.")]}
    assert client.post(f"{project.path}/edits", json=mine).status_code == 200
    answer = client.post(f"{project.path}/edits", json=theirs)
    assert answer.status_code == 409
    assert answer.json().keys() == {"error", "rev", "conflicts"}
    assert answer.json()["error"]["kind"] == "EditConflict"


def _text(line_id: str, text: str) -> dict[str, Any]:
    return {"op": "set", "line_ids": [line_id], "fields": {"text": text}}


def test_keys_of_the_state(client: httpx.Client) -> None:
    state = client.get("/studio/state").json()
    assert state.keys() >= {
        "backend", "backends", "auto_reason", "model", "engine", "setup", "speakers",
    }  # fmt: skip
    assert state["backend"].keys() >= {
        "name", "title", "params", "languages", "tags", "instructions",
    }  # fmt: skip
    assert state["backend"]["params"][0].keys() >= {
        "name", "label", "minimum", "maximum", "default", "step", "help",
    }  # fmt: skip
    assert state["backends"][0].keys() >= {"name", "title", "reason", "to_fetch"}
    assert state["model"].keys() >= MODEL
    assert state["engine"].keys() >= {
        "in_flight", "queued", "max_concurrency", "slots", "usable_slots",
    }  # fmt: skip
    assert state["speakers"][0].keys() >= {"speaker_id", "name", "colour", "moods", "stamp"}
    assert {one["name"] for one in state["backends"]} >= {
        "remote", "qwen3", "chatterbox", "chatterbox-multilingual", "chatterbox-turbo", "draft",
    }  # fmt: skip


def test_keys_of_a_project(client: httpx.Client) -> None:
    project = Project.made(client, "Keys", "[Ann | speed:2] Oh.")
    project.render()
    now = project.now()
    assert now.keys() >= PROJECT
    [line] = now["lines"]
    assert line.keys() >= ROW
    assert line["take"].keys() >= TAKE
    assert now["job"].keys() >= {"state", "summary"}
    assert now["job"]["summary"].keys() >= SUMMARY
    assert now["speakers"][0].keys() >= {"name", "colour", "lines", "voice"}
    sound = client.get(f"{project.path}/lines/{line['line_id']}/audio")
    assert sound.headers["x-take"] == line["take"]["take_id"]
    assert sound.headers["x-sample-rate"] == "24000"
    assert sound.headers["content-type"] == "application/octet-stream"
    assert len(sound.content) == 2 * line["samples"]
    take = f"{project.path}/takes/{line['line_id']}/{line['take']['take_id']}/audio.wav"
    answer = client.get(take)
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    left_out = client.get(f"{project.path}/export", params={"format": "srt"}).headers["x-left-out"]
    assert isinstance(left_out, str)


def test_a_step_is_undone_over_http(client: httpx.Client) -> None:
    project = Project.made(client, "Undone", "Ann: Oh.")
    line_id = project.lines()[0]["line_id"]
    answer = project.edit(_text(line_id, "Ah."))
    assert answer.keys() == {"rev", "changes"}
    asked = {"base_rev": 1, "client": "pins-other", "own": True, "edit_id": "pinned"}
    answer = client.post(f"{project.path}/undo", json=asked)
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == {"rev", "changes"}
    assert answer.json()["changes"]["lines"][line_id]["text"] == "Oh."


def test_events_of_a_project(client: httpx.Client) -> None:
    project = Project.made(client, "Events", "[Ann | speed:2] Oh.")
    seen: dict[str, dict[str, Any]] = {}
    ids: list[str] = []
    headers: dict[str, str] = {}
    listening = threading.Event()

    def listen() -> None:
        with httpx.stream(
            "GET", f"{client.base_url}{project.path}/events?since={since}", timeout=60
        ) as answer:
            headers.update(answer.headers)
            listening.set()
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    ids.append(line[4:])
                if line.startswith("data: "):
                    event = json.loads(line[6:])
                    seen[event["type"]] = seen.get(event["type"], {}) | event
                    if event["type"] == "job" and event["state"] == "done":
                        return

    since = project.now()["seq"]
    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert listening.wait(60)
    line_id = project.lines()[0]["line_id"]
    silence = {"line_id": "00000000aaaa", "kind": "silence", "duration_s": 1}
    for op in (
        _text(line_id, "Ah."),
        {"op": "rename", "name": "Other"},
        {"op": "cast", "speaker": "Ann", "voice": None},
        {"op": "settings", "fields": {"seed": 2}},
        {"op": "pronounce", "put": [{"written": "Ah", "spoken": "Oh"}]},
        {"op": "insert", "lines": [silence]},
    ):  # fmt: skip
        project.edit(op)
    project.render()
    thread.join(60)
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert seen.keys() >= {"edit", "line", "job"}
    assert seen["edit"].keys() >= {"seq", "type", "rev", "client", "changes"}
    assert seen["edit"]["client"] == "pins-page"
    assert seen["edit"]["changes"].keys() >= {"can_undo", "can_redo"}
    assert seen["line"].keys() >= LINE_EVENT
    assert seen["job"].keys() >= {"seq", "type", "state", "summary"}
    assert seen["job"]["summary"].keys() >= SUMMARY
    assert ids == sorted(ids, key=int)


def test_an_export_is_followed_and_fetched(client: httpx.Client) -> None:
    project = Project.made(client, "Exported", "Ann: This is long enough.")
    project.render()
    asked = {"format": "wav", "loudness": "podcast", "even_voices": True}
    answer = client.post(f"{project.path}/exports", json=asked)
    assert answer.status_code == 201, answer.text
    path = f"{project.path}/exports/{answer.json()['export_id']}"
    while (body := client.get(path).json())["state"] not in ("done", "failed"):
        time.sleep(0.02)
    assert body.keys() == {"export_id", "state", "share", "message", "measured"}
    assert body["state"] == "done"
    assert body["measured"].keys() == {
        "loudness_lufs", "range_lu", "true_peak_db", "peak_db", "rms_db", "noise_db", "remarks",
    }  # fmt: skip
    file = client.get(f"{path}/file")
    assert "Exported.wav" in file.headers["content-disposition"]
    assert client.delete(path).status_code == 204
    for suffix in ("wav", "flac", "mp3", "zip", "tracks", "tableread"):
        assert project.export(suffix)


def test_lines_are_read_and_nothing_changes(client: httpx.Client) -> None:
    answer = client.post(f"{P}/lines", content=b"Ann: Oh.", params={"name": "a.txt"})
    held = {"lines", "notices", "chat", "plain", "title", "unspoken", "quoted", "timed", "columns"}
    assert answer.json().keys() == held
    [line] = answer.json()["lines"]
    assert line.keys() == {"line_id", "kind", "speaker", "text"}


def test_space_that_could_be_freed(client: httpx.Client) -> None:
    held = {"bytes", "takes", "recordings", "trash", "projects"}
    body = client.get("/studio/space").json()
    assert body.keys() == held
    assert body["takes"].keys() == body["recordings"].keys() == {"files", "bytes"}
    assert body["trash"].keys() == {"projects", "bytes"}
    assert body["projects"][0].keys() == {"project_id", "name", "files", "bytes"}
    asked = {"takes": False, "trash": False, "project_ids": []}
    assert client.post("/studio/space/free", json=asked).json().keys() == held | {"left"}


def test_an_upload_is_checked(client: httpx.Client) -> None:
    answer = client.post("/studio/uploads", params={"name": "tone.wav"}, content=tone(200))
    assert answer.json().keys() == {
        "upload_id", "file_name", "duration_s", "rate_hz", "channels", "part_s", "levels", "before",
        "steps", "outline", "problems",
    }  # fmt: skip
    assert answer.json()["levels"].keys() == {
        "speech_db", "noise_db", "peak_db", "clipped_share", "speech_share",
    }  # fmt: skip


def test_names_of_the_metrics(client: httpx.Client) -> None:
    client.post("/v1/audio/speech", json={"input": "Oh."})
    text = client.get("/metrics").text
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    assert {name: one for name, one in types.items() if not name.endswith("_created")} == {
        "tableread_build_info": "gauge",
        "tableread_queued": "gauge",
        "tableread_in_flight": "gauge",
        "tableread_concurrency": "gauge",
        "tableread_model_loaded": "gauge",
        "tableread_model_active": "gauge",
        "tableread_model_slots": "gauge",
        "tableread_model_loads_total": "counter",
        "tableread_model_unloads_total": "counter",
        "tableread_model_failed_loads_total": "counter",
        "tableread_model_cancelled_loads_total": "counter",
        "tableread_model_refused_unloads_total": "counter",
        "tableread_model_resident_seconds_total": "counter",
        "tableread_slots_running": "gauge",
        "tableread_slots_waiting": "gauge",
        "tableread_slots_usable": "gauge",
        "tableread_slots_most": "gauge",
        "tableread_slots_steps_total": "counter",
        "tableread_slots_faults_total": "counter",
        "tableread_segments_total": "counter",
        "tableread_failures_total": "counter",
        "tableread_second_tries_total": "counter",
        "tableread_doubts_total": "counter",
        "tableread_audio_seconds_total": "counter",
        "tableread_first_audio_seconds": "histogram",
        "tableread_job_seconds": "histogram",
    }
    labels = {
        (name, label)
        for name, label in re.findall(r"^(\w+)\{(\w+)=", text, re.MULTILINE)
        if "_bucket" not in name and not name.endswith("_created")
    }
    assert {label for name, label in labels if name.startswith("tableread_model_")} == {"model"}
    assert ("tableread_segments_total", "state") in labels
    assert 'tableread_segments_total{state="saved"}' in text
    bounds = re.findall(r'^tableread_job_seconds_bucket\{le="(.*?)"\}', text, re.MULTILINE)
    assert bounds == [
        "0.05", "0.1", "0.25", "0.5", "1.0", "2.0", "5.0", "10.0", "30.0", "60.0", "300.0", "+Inf",
    ]  # fmt: skip
    assert 'tableread_model_loaded{model="draft"}' in text


def test_health(client: httpx.Client) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 200
    body = answer.json()
    assert body.keys() == {"alive", "ready", "reason", "up_s", "slots", "max_slots", "storage"}
    assert (body["alive"], body["ready"], body["reason"]) == (True, True, None)
    assert client.get("/healthz/live").json() == {"alive": True}


def test_what_gradios_client_may_call(client: httpx.Client) -> None:
    endpoints = client.get("/gradio_api/info").json()["named_endpoints"]
    assert endpoints.keys() == {"/speak", "/dialog", "/voices", "/add_voice", "/loudness"}
    told = [
        (one["parameter_name"], one["parameter_has_default"], one["parameter_default"])
        for one in endpoints["/speak"]["parameters"]
    ]
    assert told == [("text", False, None), ("voice", True, "Narrator"), ("seed", True, None)]
    assert len(endpoints["/speak"]["returns"]) == 1


def test_headers_of_every_answer(client: httpx.Client) -> None:
    for path in ("/", "/healthz", "/v1/models", "/studio/state", "/nothing"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'; ")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-frame-options"] == "SAMEORIGIN"
        assert headers["permissions-policy"].startswith("microphone=(self), camera=()")


def test_other_sites_are_refused(client: httpx.Client) -> None:
    for headers in ({"Host": "elsewhere.example"}, {"Origin": "https://elsewhere.example"}):
        answer = client.post("/v1/audio/speech", json={"input": "Oh."}, headers=headers)
        assert answer.status_code == 403
        assert answer.json()["error"].keys() == SPEECH_ERROR


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A studio as a Space has it, with a key, on the workspace where a visitor was before."""
    workspace = unpack(tmp_path_factory.mktemp("shared"))
    with serving(workspace, SPACE_ID="pins/pins", TABLEREAD_API_KEY="pinned-key") as running:
        yield running.client


def test_the_cookie_of_a_visitor(shared: httpx.Client) -> None:
    answer = httpx.get(f"{shared.base_url}/studio/state")
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert re.fullmatch(r"tableread_visitor=[\w-]{20,}", cookie)
    assert attributes == [
        "Path=/", "Max-Age=2592000", "HttpOnly", "SameSite=None", "Secure", "Partitioned",
    ]  # fmt: skip


def test_a_visitor_of_an_earlier_studio_finds_the_workspace(shared: httpx.Client) -> None:
    cookie = {"Cookie": f"tableread_visitor={VISITOR}"}
    answer = httpx.get(f"{shared.base_url}/studio/projects", headers=cookie)
    assert [one["name"] for one in answer.json()] == ["A visitor's"]
    fresh = httpx.get(f"{shared.base_url}/studio/projects")
    assert fresh.json() == []


def test_a_key_is_asked_for(shared: httpx.Client) -> None:
    for path, status in (("/v1/models", 401), ("/metrics", 403)):
        answer = httpx.get(f"{shared.base_url}{path}")
        assert answer.status_code == status
        key = {"Authorization": "Bearer pinned-key"}
        assert httpx.get(f"{shared.base_url}{path}", headers=key).status_code == 200
    error = httpx.get(f"{shared.base_url}/v1/models").json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
    wrong = httpx.get(f"{shared.base_url}/v1/models")
    assert wrong.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "path",
    [
        "/studio/model/load",
        "/studio/model/unload",
        "/studio/model/cancel",
        "/studio/model/timeout",
        "/studio/model/concurrency",
        "/studio/setup/start",
    ],
)
def test_what_only_the_owner_may(shared: httpx.Client, path: str) -> None:
    cookie = {"Cookie": f"tableread_visitor={VISITOR}"}
    answer = httpx.post(f"{shared.base_url}{path}", headers=cookie)
    assert answer.status_code == 403
    assert answer.json()["error"]["kind"] == "NotAllowed"


def test_notices_of_a_text_name_the_lines_that_they_are_about(client: httpx.Client) -> None:
    text = (
        "1\n00:00:00,000 --> 00:00:01,000\nAnna: One.\n\n2\nno time --> at all\nAnna: Two.\n\n"
        "3\n00:00:05,000 --> 00:00:06,000\nBen: Three.\n\n4\nno time --> at all\nBen: Four.\n"
    )
    answer = client.post(f"{P}/lines", content=text.encode(), params={"name": "a.srt"})
    lines, [notice] = answer.json()["lines"], answer.json()["notices"]
    assert notice.keys() == {"line_number", "message", "rows"}
    assert [lines[row]["text"] for row in notice["rows"]] == ["Two.", "Four."]
