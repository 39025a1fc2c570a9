"""Projects from elsewhere: whatever their file holds, they open and are listed, or are refused."""

from __future__ import annotations

import copy
import io
import json
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from project_scenes import IDA, ops, rendered, text_edit
from scenes import dialog_of

from studio.errors import StudioError
from studio.project.project_file import write_archive
from studio.server.error_responses import answer_error
from studio.server.routes.project_files import project_file_routes
from studio.server.routes.project_routes import project_routes
from studio.services.studio import Studio
from studio.sharing.quota import RateLimits, VisitLimits
from studio.sharing.sessions import VisitorSession

NASTY = [None, [], {}, "x", -1, 10**30, 1e300, True, "\ud800", float("nan"), float("inf")]

Files = dict[str, bytes]


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    app = FastAPI(exception_handlers={StudioError: answer_error})

    @app.middleware("http")
    async def seated(request, call_next):
        request.state.studio = studio
        if "x-visitor" in request.headers:
            allowance = RateLimits(VisitLimits())
            workspace = studio.options.workspace
            request.state.visitor = VisitorSession(
                studio.disk_quota, workspace, lambda: studio, allowance
            )
        return await call_next(request)

    for routes in (project_file_routes, project_routes):
        app.include_router(routes)
    with TestClient(app) as client:
        yield client


@pytest.fixture
def files(studio: Studio, tmp_path) -> Files:
    """What is in a file with a take, an edit and an undo."""
    session = studio.projects.create("Scene", dialog_of(2))
    rendered(session)
    line_id = session.document.order[0]
    session.edit(ops({"op": "pronounce", "put": [{"written": "zero"}]}), IDA, session.rev)
    said = {"op": "pronounce", "put": [{"written": "line", "spoken": "lion"}], "remove": ["zero"]}
    session.edit(ops(text_edit(line_id, "Other words."), said), IDA, session.rev)
    session.undo(IDA, session.rev)
    write_archive(session, tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files: Files) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def brought(client: TestClient, files: Files) -> int:
    """The status of the import; every answer after it is a good one."""
    form = {"file": ("x.tableread.zip", packed(files))}
    answer = client.post("/studio/projects/import", files=form)
    listed = client.get("/studio/projects")
    assert listed.status_code == 200
    if answer.status_code != 201:
        assert "/" not in answer.json()["error"]["message"]
        return answer.status_code
    at = f"/studio/projects/{answer.json()['project_id']}"
    author = {"base_rev": 0, "client": "tom"}
    for answer_of_it in (
        client.get(at),
        client.get(f"{at}/script"),
        client.post(f"{at}/undo", json=author),
        client.post(f"{at}/redo", json=author),
        client.post(f"{at}/edits", json={**author, "ops": []}),
    ):
        assert answer_of_it.status_code < 500, answer_of_it.text
    client.delete(at).raise_for_status()
    return 201


def places_in(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    inner = {**value} if isinstance(value, dict) else {}
    if isinstance(value, list):
        inner = dict(enumerate(value))
    for key, one in inner.items():
        yield from places_in(one, (*at, key))


def with_value(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = new
    return changed


def written(entries: list[Any]) -> bytes:
    lines = []
    for entry in entries:
        body = json.dumps(entry, separators=(",", ":")).encode()
        lines.append(b'{"sum":"%08x","entry":' % zlib.crc32(body) + body + b"}\n")
    return b"".join(lines)


def test_a_whole_file_comes_in(client: TestClient, files: Files) -> None:
    assert brought(client, files) == 201


def test_no_value_of_a_snapshot_harms_the_studio(client: TestClient, files: Files) -> None:
    snapshot = json.loads(files["project.json"])
    # One value at each place, another one at the next: every kind meets every kind of place.
    for number, at in enumerate(places_in(snapshot)):
        bad = with_value(snapshot, at, NASTY[number % len(NASTY)])
        data = {**files, "project.json": json.dumps(bad).encode()}
        assert brought(client, data) in (201, 400), at


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("at_s", 1e30),
        ("at_s", float("nan")),
        ("at_s", "x"),
        ("last", "x"),
        ("journal_bytes", -1),
        ("journal_bytes", 1),
        ("rev", float("nan")),
        ("undo", 7),
    ],
)
def test_a_past_that_never_was_is_refused(
    client: TestClient, files: Files, name: str, value: object
) -> None:
    snapshot = json.loads(files["project.json"])
    snapshot["history"][name] = value
    assert brought(client, {**files, "project.json": json.dumps(snapshot).encode()}) == 400


@pytest.mark.slow
def test_no_value_of_a_history_harms_the_studio(client: TestClient, files: Files) -> None:
    entries = [json.loads(line)["entry"] for line in files["edits.jsonl"].splitlines()]
    snapshot = json.loads(files["project.json"])
    for number, at in enumerate(places_in(entries)):
        journal = written(with_value(entries, at, NASTY[number % len(NASTY)]))
        snapshot["history"]["journal_bytes"] = 0 if number % 2 else len(journal)
        data = {**files, "project.json": json.dumps(snapshot).encode(), "edits.jsonl": journal}
        assert brought(client, data) in (201, 400), at


@pytest.mark.parametrize(
    ("field", "value"), [("voice", "x" * 1_000_000), ("backend", "x" * 1_001), ("samples", -1)]
)
def test_a_take_that_no_studio_makes_is_left_out(
    client: TestClient, files: Files, field: str, value: object
) -> None:
    name = next(name for name in files if name.startswith("takes/") and name.endswith(".json"))
    record = json.loads(files[name])
    record.pop("sum")
    others = {one: data for one, data in files.items() if not one.endswith(".wav")}
    data = packed({**others, name: json.dumps(record | {field: value}, indent=1).encode()})
    answer = client.post("/studio/projects/import", files={"file": ("x.zip", data)}).json()
    (notice,) = [one["message"] for one in answer["notices"] if "is damaged" in one["message"]]
    assert ".json" not in notice
    assert len(json.dumps(answer)) < 20_000


def test_a_file_that_is_cut_off_says_so(client: TestClient, files: Files) -> None:
    form = {"file": ("x.tableread.zip", packed(files)[:-50])}
    answer = client.post("/studio/projects/import", files=form)
    assert answer.status_code == 400
    assert "project file is damaged" in answer.json()["error"]["message"]


def test_an_undo_that_leads_in_a_circle_is_refused(client: TestClient, files: Files) -> None:
    entries = [json.loads(line)["entry"] for line in files["edits.jsonl"].splitlines()]
    entries[1] |= {"below": 0, "joined": True}
    start = len(written(entries[:1]))
    entries[1]["below"] = start
    assert brought(client, {**files, "edits.jsonl": written(entries)}) == 400


def test_a_file_of_a_newer_studio_says_so(client: TestClient, files: Files) -> None:
    snapshot = json.loads(files["project.json"]) | {"version": 99}
    form = {"file": ("x.zip", packed({**files, "project.json": json.dumps(snapshot).encode()}))}
    answer = client.post("/studio/projects/import", files=form)
    assert answer.status_code == 400
    assert "newer studio" in answer.json()["error"]["message"]


def test_a_project_that_was_spoilt_on_the_disk_hides_no_other(
    client: TestClient, studio: Studio, files: Files
) -> None:
    spoilt = studio.options.workspace / "projects" / "0123456789ab"
    spoilt.mkdir()
    snapshot = json.loads(files["project.json"])
    snapshot["history"]["at_s"] = 1e30
    (spoilt / "project.json").write_text(json.dumps(snapshot), encoding="utf-8")
    names = [one["name"] for one in client.get("/studio/projects").json()]
    assert names == ["Scene", "Damaged project 0123456789ab"]
    answer = client.get("/studio/projects/0123456789ab")
    assert answer.status_code == 409
    assert str(studio.options.workspace) not in answer.text


def test_a_file_goes_to_the_disk_as_it_comes(
    client: TestClient, studio: Studio, files: Files
) -> None:
    data = packed(files)
    sent = iter([data[:1_000], data[1_000:]])
    answer = client.post("/studio/projects/import?name=scene.zip", content=sent)
    assert answer.status_code == 201
    assert [line["state"] for line in answer.json()["lines"]] == ["ready", "ready"]
    answer = client.post("/studio/projects/import?name=act%20one.txt", content=b"Ida: Hello.")
    assert (answer.status_code, answer.json()["name"]) == (201, "act one")
    assert not list((studio.options.workspace / "projects").glob(".new-*"))


def test_a_file_that_is_too_large_is_refused_before_it_comes(
    client: TestClient, studio: Studio
) -> None:
    def status(size_bytes: int, **headers: str) -> tuple[int, str]:
        stated = {"content-length": str(size_bytes), **headers}
        answer = client.post("/studio/projects/import?name=x", content=b"x", headers=stated)
        return answer.status_code, answer.json()["error"]["message"]

    assert status(300_000_000, **{"x-visitor": "1"}) == (
        400,
        "This is larger than the 200 MB that are taken here. Export the project without deleted "
        "takes.",
    )
    assert status(10**14)[0] == 400
    free_bytes = shutil.disk_usage(studio.options.workspace).free
    if free_bytes < 90_000_000_000:  # else there is room for all that is taken
        code, message = status(free_bytes + 1_000_000_000)
        assert code == 507
        assert "the disk has" in message
    assert not list((studio.options.workspace / "projects").glob(".new-*"))
