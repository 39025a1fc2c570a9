"""No answer holds a path of this machine, and none fails at what the request itself held."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from addresses import PAGE_ADDRESSES, filled
from fastapi.testclient import TestClient
from route_catalogue import CATALOGUE
from shared_studio import app_of_front, front_of, visitor_of
from test_sessions import uploaded

from studio.engine.renderer import describe_fault
from studio.errors import BadInput, ScriptError, StudioError
from studio.services.studio import Studio

pytestmark = pytest.mark.slow

LINES = "Ida: Good evening.\nTom: Good evening, Ida."
NO_NUMBER = ("NaN", "Infinity", "-Infinity", r'"\ud800"', r'{"\udfff": NaN}')


@pytest.fixture
def client(studio: Studio) -> TestClient:
    return visitor_of(app_of_front(front_of(studio, apart=False)))


def refuse_constant(name: str) -> None:
    pytest.fail(f"{name} is no JSON")


@pytest.mark.parametrize("odd", NO_NUMBER)
def test_a_conflict_over_what_is_no_json_is_a_conflict(client: TestClient, odd: str) -> None:
    made = client.post("/studio/projects", json={"text": LINES}).json()
    line, path = made["lines"][0]["line_id"], f"/studio/projects/{made['project_id']}"
    headers = {"Content-Type": "application/json"}

    def edit(client_name: str, fields: str, rev: int) -> httpx.Response:
        op = f'{{"op": "set", "line_ids": ["{line}"], "fields": {fields}}}'
        body = f'{{"base_rev": {rev}, "client": "{client_name}", "ops": [{op}]}}'
        return client.post(f"{path}/edits", content=body, headers=headers)

    assert edit("tom", '{"text": "Mine.", "params": {"speed": 1.5}}', made["rev"]).is_success
    for fields in (
        f'{{"text": {odd}}}',
        f'{{"params": {odd}}}',
        f'{{"params": {{"speed": {odd}}}}}',
    ):
        answer = edit("ida", fields, made["rev"])
        assert answer.status_code in {400, 409, 422}, (fields, answer.text)
        json.loads(answer.content, parse_constant=refuse_constant)
        answer.content.decode()
    surrogate = edit("ida", r'{"text": "Oh \ud800."}', made["rev"])
    assert surrogate.status_code in {409, 422}
    assert surrogate.json()["error"]["message"]


def test_what_a_message_quotes_is_json_all_the_same(client: TestClient) -> None:
    made = client.post("/studio/projects", json={"text": LINES}).json()
    project = f"/studio/projects/{made['project_id']}"
    for method, path, body in (
        ("POST", "/studio/projects", r'{"name": "a\ud800", "text": "Ida: \ud800."}'),
        ("PATCH", project, r'{"name": "a\ud800"}'),
        (
            "PUT",
            f"{project}/script",
            r'{"base_rev": 0, "client": "a\ud800", "text": "I\ud800: \udfff"}',
        ),
        ("POST", "/studio/speakers", r'{"name": "a\ud800"}'),
        ("POST", "/studio/backend", r'{"name": "a\ud800"}'),
        ("POST", f"{project}/hints", r'{"line_ids": ["\ud800"]}'),
        ("POST", f"{project}/exports", r'{"format": "\ud800", "loudness": NaN}'),
        ("PUT", f"{project}/place", r'{"line_id": "\ud800", "heard": NaN, "by": "\ud800"}'),
        ("POST", "/v1/audio/speech", r'{"input": "\ud800", "voice": "\ud800"}'),
        ("POST", "/v1/audio/speech", r'{"input": "a", "speed": NaN, "model": "\ud800"}'),
        ("POST", "/v1/dialogs", r'{"input": "I\ud800: \ud800", "seed": NaN}'),
    ):
        answer = client.request(
            method, path, content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code < 500, (path, body, answer.text)
        if answer.content and answer.headers["content-type"] == "application/json":
            json.loads(answer.content, parse_constant=refuse_constant)
    queries = (
        "",
        "/script",
        "/export?format=tableread",
        "/export?format=txt",
        "/export?format=csv",
    )
    for address in ("/studio/projects", "/studio/speakers", *(project + one for one in queries)):
        assert client.get(address).status_code < 500, address


def spoil_takes(workspace: Path) -> None:
    for take in workspace.rglob("takes/*.wav"):
        take.write_bytes(take.read_bytes()[:40])


def spoil_sound(workspace: Path) -> None:
    for sound in workspace.rglob("*.wav"):
        sound.write_bytes(b"RIFF\xff\xff\xff\x7fWAVEfmt ")


def lose_sound(workspace: Path) -> None:
    for sound in workspace.rglob("*.wav"):
        sound.unlink()


def folders_for_sound(workspace: Path) -> None:
    lose = list(workspace.rglob("*.wav"))
    for sound in lose:
        sound.unlink()
        sound.mkdir()


def spoil_records(workspace: Path) -> None:
    for record in (*workspace.rglob("*.json"), *workspace.rglob("*.jsonl")):
        record.write_bytes(b'{"version": 1, "\xff')


def folders_for_records(workspace: Path) -> None:
    for record in (*workspace.rglob("*.json"), *workspace.rglob("*.jsonl")):
        record.unlink()
        record.mkdir()


def files_for_folders(workspace: Path) -> None:
    for folder in [one for one in workspace.iterdir() if one.is_dir()]:
        shutil.rmtree(folder)
        folder.write_bytes(b"")


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_takes,
        spoil_sound,
        lose_sound,
        folders_for_sound,
        spoil_records,
        folders_for_records,
        files_for_folders,
    ],
    ids=lambda spoil: spoil.__name__,
)
@pytest.mark.parametrize("opened", [True, False], ids=["open", "opened after"])
def test_no_answer_shows_a_path_of_the_machine(
    open_studio, spoil: Callable[[Path], None], opened: bool
) -> None:
    studio = open_studio()
    workspace = studio.options.workspace
    client = visitor_of(app_of_front(front_of(studio, apart=False)))
    ids = made_of_everything(client)
    if not opened:
        client = visitor_of(app_of_front(front_of(open_studio(), apart=False)))
    spoil(workspace)
    answers = list(asked(client, ids))
    assert any(answer.status_code >= 400 for answer in answers)
    places = {str(workspace), str(workspace.parent), tempfile.gettempdir(), str(Path.home())}
    for answer in answers:
        text = f"{answer.headers} {answer.content.decode('latin-1')}".replace("\\\\", "\\")
        found = [place for place in places if f"{place}/" in text or f"{place}\\" in text]
        assert not found, (str(answer.request.url), text[:2_000])


def made_of_everything(client: TestClient) -> dict[str, str]:
    """Ids of a project with takes, and of a speaker with a sample."""
    made = client.post("/studio/projects", json={"text": LINES}).json()
    project = f"/studio/projects/{made['project_id']}"
    line = made["lines"][0]["line_id"]
    assert client.post(f"{project}/render", json={}).status_code == 200
    while client.get(project).json()["job"]["state"] == "running":
        pass
    takes = client.get(f"{project}/takes/{line}").json()
    speaker = client.post("/studio/speakers", json={"name": "Ben"}).json()
    upload = uploaded(client)
    sample = {"upload_id": upload, "transcript": "So it is."}
    client.post(f"/studio/speakers/{speaker['speaker_id']}/samples", json=sample)
    rows = takes["takes"] if isinstance(takes, dict) else takes
    return {
        "project_id": made["project_id"],
        "line_id": line,
        "take_id": rows[0]["take_id"],
        "speaker_id": speaker["speaker_id"],
        "sample_id": "main",
        "upload_id": uploaded(client),
    }


def asked(client: TestClient, ids: dict[str, str]) -> Iterator[httpx.Response]:
    """Answers of every address that neither streams without an end nor removes what was made."""
    bodies = {
        "/studio/projects": {"like": ids["project_id"]},
        "/studio/projects/{project_id}/edits": {"base_rev": 0, "client": "ida", "ops": []},
        "/studio/projects/{project_id}/exports": {"format": "wav", "loudness": "rendered"},
    }
    for method, path in PAGE_ADDRESSES:
        if method == "DELETE" or path.endswith("/events") or "setup" in path:
            continue
        query = "?format=tableread&bins=8&takes=" + ids["take_id"] if method == "GET" else ""
        yield client.request(method, filled(path, ids) + query, json=bodies.get(path, {}))
    for path in ("/healthz", "/healthz/ready", "/metrics", "/v1/models", "/v1/audio/voices"):
        yield client.get(path)
    for voice in ("Ben", "Ida"):
        yield client.post("/v1/audio/speech", json={"input": "Good evening.", "voice": voice})
    yield client.post("/v1/dialogs", json={"input": "Ben: Oh.\nIda: Well."})


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("The take /srv/a b/takes/0.wav can't be read.", "The take 0.wav can't be read."),
        (r"“x” isn't at C:\Users\Ida M\x.wav.", "“x” isn't at x.wav."),
        ("[Errno 2] No such file: '/srv/x/'", "[Errno 2] No such file: 'a folder'"),
        ("GET /v1/models lists them.", "GET /v1/models lists them."),
        ("See docs/operate/install.md and https://example.com/a/b.", None),
        ("Either /v1 or /metrics, and/or one of owner/model.", None),
    ],
)
def test_an_error_names_files_without_their_folders(message: str, shown: str | None) -> None:
    for kind in (StudioError, BadInput, ScriptError):
        assert str(kind(message)) == (shown or message)
        assert kind(message).full_message == message


def test_a_fault_on_a_line_names_files_without_their_folders() -> None:
    fault = FileNotFoundError(2, "No such file or directory", "/srv/models/voice.bin")
    message = describe_fault("The voice", fault)
    assert "voice.bin" in message
    assert "/srv" not in message


FORM = "multipart/form-data"
BOUNDED = f"{FORM}; boundary=ab"
PART = b'--ab\r\nContent-Disposition: form-data; name="%s"; filename="a.txt"\r\n\r\nIda: Hi.\r\n'
MALFORMED_FORMS = {
    "no boundary": (FORM, PART % b"file"),
    "another boundary": (f"{FORM}; boundary=cd", PART % b"file" + b"--ab--\r\n"),
    "no name": (BOUNDED, b"--ab\r\nContent-Disposition: form-data\r\n\r\nIda\r\n--ab--\r\n"),
    "no disposition": (BOUNDED, b"--ab\r\nA: b\r\n\r\nIda\r\n--ab--\r\n"),
    "a broken header": (BOUNDED, b"--ab\r\nContent\x00Disposition\r\n\r\nIda\r\n--ab--\r\n"),
    "cut short": (BOUNDED, PART % b"file"),
    "two files": (BOUNDED, PART % b"file" + PART % b"other" + b"--ab--\r\n"),
    "1,100 fields": (
        BOUNDED,
        b'--ab\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n' * 1_100 + b"--ab--\r\n",
    ),
    "a field of 2 MB": (
        BOUNDED,
        b'--ab\r\nContent-Disposition: form-data; name="a"\r\n\r\n%s\r\n--ab--\r\n' % bytes(2**21),
    ),
    "an odd charset": (f"{BOUNDED}; charset=no-such", PART % b"\xff" + b"--ab--\r\n"),
    "nothing": (BOUNDED, b""),
    "another kind of form": ("application/x-www-form-urlencoded", b"%ff=%&&;=" * 10),
}


@pytest.mark.parametrize("form", MALFORMED_FORMS)
def test_a_malformed_form_is_refused_in_our_words(client: TestClient, form: str) -> None:
    content_type, body = MALFORMED_FORMS[form]
    asked = 0
    for address in CATALOGUE:
        method, path = address.split(" ")
        if method in {"GET", "DELETE"} or not path.startswith(("/studio", "/v1")):
            continue
        asked += 1
        answer = client.request(
            method, filled(path, {}), content=body, headers={"Content-Type": content_type}
        )
        assert answer.status_code < 500 or answer.status_code == 503, (address, answer.text)
        if answer.is_success:
            continue
        error = answer.json()["error"]
        ours = (
            {"message", "type", "param", "code"} if path[1] == "v" else {"message", "line", "kind"}
        )
        assert error.keys() == ours, (address, error)
        assert error["message"], address
    assert asked > 40


@pytest.mark.parametrize(
    ("error", "status"),
    [
        *((error, 507) for error in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)),
        *((error, 503) for error in (errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE)),
    ],
)
def test_what_the_system_refuses_is_said_without_a_path(
    client: TestClient, studio: Studio, monkeypatch: pytest.MonkeyPatch, error: int, status: int
) -> None:
    studio.speakers.add("Ida")
    (speaker,) = client.get("/studio/speakers").json()["speakers"]

    def refuse(*_: object) -> None:
        raise OSError(error, os.strerror(error), "/home/ida/workspace/file")

    monkeypatch.setattr("studio.server.routes.speaker_routes.write_pack", refuse)
    address = f"/studio/speakers/{speaker['speaker_id']}"
    answer = client.get(f"{address}/voice")
    assert (answer.status_code, "ida/" in answer.text) == (status, False)
    assert os.strerror(error) in answer.json()["error"]["message"]
    monkeypatch.setattr(type(studio.speakers), "get_by_id", refuse)
    answer = client.get(f"{address}/voice")
    assert (answer.status_code, "ida/" in answer.text) == (status, False)
    assert os.strerror(error) in answer.json()["error"]["message"]


def test_a_project_on_a_read_only_disk_says_so(
    client: TestClient, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = client.post("/studio/projects", json={"text": LINES}).json()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("studio.project.folder.FileLock.acquire", refuse)
    answer = client.delete(f"/studio/projects/{made['project_id']}")
    assert answer.status_code == 503
    assert "Read-only file system" in answer.json()["error"]["message"]
