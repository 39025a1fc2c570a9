"""Comments on lines: undone like lines, kept in the project's file, bounded, gone with the line."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from project_scenes import Bench, document_of, ops, text_edit
from pydantic import ValidationError
from test_damage import IDA, projects_of

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import BadInput, FormatNewer, NotFound
from studio.project.comments import MAX_COMMENTS
from studio.project.history import Author
from studio.project.project_file import write_archive
from studio.project.session import ProjectSession
from studio.project.snapshot import SNAPSHOT_FORMAT
from studio.services.studio import Studio
from studio.storage.records import RecordFormat

TOM = Author("tom-1")


def comment(line_id: str, number: int = 1, **fields: object) -> dict[str, object]:
    about = {"author": "Ida", "text": f"Slower, {number}."} | fields
    return {"op": "comment", "comment_id": f"{number:012x}", "line_id": line_id, **about}


def edit(session: ProjectSession, *edits: dict[str, object], author: Author = IDA) -> None:
    session.edit(ops(*edits), author, session.rev)


def said(session: ProjectSession) -> list[tuple[str, str, bool]]:
    return [(one.author, one.text, one.resolved) for one in session.document.comments.values()]


@pytest.fixture
def session(bench: Bench) -> ProjectSession:
    return bench.make(document_of(3), "0123456789ab")


def test_a_comment_is_written_resolved_changed_and_undone(session: ProjectSession) -> None:
    line_id = session.document.order[0]
    edit(session, comment(line_id, author="  Ida\n K. ", text=" Slower,\nplease. "))
    (one,) = session.document.comments.values()
    assert (one.author, one.text, one.line_id) == ("Ida K.", "Slower, please.", line_id)
    assert one.at_s == session._state.deps.now_s()
    key = one.comment_id
    edit(session, {"op": "change_comment", "comment_id": key, "resolved": True})
    edit(session, {"op": "change_comment", "comment_id": key, "text": "Faster."})
    assert said(session) == [("Ida K.", "Faster.", True)]
    edit(session, {"op": "delete_comment", "comment_id": key})
    edit(session, {"op": "delete_comment", "comment_id": key})  # no error
    assert said(session) == []
    session.undo(IDA, session.rev)
    session.undo(IDA, session.rev)
    assert said(session) == [("Ida K.", "Slower, please.", True)]
    session.redo(IDA)
    assert said(session) == [("Ida K.", "Faster.", True)]


def test_a_comment_goes_with_its_line_and_comes_back_with_it(session: ProjectSession) -> None:
    first, second, _ = session.document.order
    edit(session, comment(first), comment(second, 2))
    edit(session, {"op": "delete", "line_ids": [first]})
    assert said(session) == [("Ida", "Slower, 2.", False)]
    session.undo(IDA, session.rev)
    assert len(said(session)) == 2
    session.merge_script("Ida: Something else.", IDA, session.rev)
    assert said(session) == []
    session.undo(IDA, session.rev)
    edit(session, {"op": "join", "line_ids": [first, second]})
    assert [one.line_id for one in session.document.comments.values()] == [first, first]


def test_a_comment_of_another_outlives_an_undo_of_ones_own(session: ProjectSession) -> None:
    first = session.document.order[0]
    edit(session, text_edit(first, "Changed."))
    edit(session, comment(first), author=TOM)
    session.undo(IDA, session.rev, own=True)
    assert session.document.lines[first].text != "Changed."
    assert len(said(session)) == 1


def test_the_line_stays_as_it_sounds(session: ProjectSession) -> None:
    before = [view.state for view in session.list_views()], session.document.lines
    edit(session, comment(session.document.order[0]))
    assert ([view.state for view in session.list_views()], session.document.lines) == before


def test_comments_are_kept_copied_exported_and_brought_in(studio: Studio, tmp_path: Path) -> None:
    session = studio.projects.create("Scene", read_dialog_text("Ida: One.").dialog)
    edit(session, comment(session.document.order[0], text="<b>& “quoted”</b>"))
    expected = said(session)
    write_archive(session, tmp_path / "out.zip")
    with (tmp_path / "out.zip").open("rb") as file:
        assert said(studio.projects.import_file(file)) == expected
    assert said(studio.projects.duplicate(session.project_id)) == expected


def test_comments_are_read_again_from_disk(session: ProjectSession, bench: Bench) -> None:
    edit(session, comment(session.document.order[0]))
    expected = said(session)
    session.close()
    again = bench.open("0123456789ab")
    assert said(again) == expected
    again.close()


def test_an_earlier_studio_refuses_a_project_with_comments_and_reads_one_without(
    session: ProjectSession, bench: Bench
) -> None:
    root = bench.root / "0123456789ab"
    earlier = RecordFormat("This project")
    session.save(now=True)
    assert earlier.decode((root / "project.json").read_bytes())["name"] == "Scene"
    edit(session, comment(session.document.order[0]))
    session.close()
    with pytest.raises(FormatNewer):
        earlier.decode((root / "project.json").read_bytes())
    versions = [
        json.loads(line)["entry"]["version"]
        for line in (root / "edits.jsonl").read_bytes().splitlines()
    ]
    assert versions == [1] * (len(versions) - 1) + [2]
    assert SNAPSHOT_FORMAT.version_of({"comments": [1]}) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"author": " "},
        {"author": "a" * 61},
        {"text": "\n"},
        {"text": "a" * 2_001},
        {"text": "a" * 1_000_000},
        {"line_id": "0" * 11 + "f"},
    ],
)
def test_what_isnt_a_comment_is_refused(session: ProjectSession, fields: dict) -> None:
    with pytest.raises((BadInput, NotFound)):
        edit(session, comment(session.document.order[0]) | fields)
    with pytest.raises(NotFound):
        edit(session, {"op": "change_comment", "comment_id": "0" * 12, "resolved": True})
    with pytest.raises(ValidationError):
        ops(comment(session.document.order[0]) | {"comment_id": "../x"})
    assert said(session) == []


def test_there_are_only_so_many(session: ProjectSession) -> None:
    line_id = session.document.order[0]
    edit(session, *(comment(line_id, number) for number in range(MAX_COMMENTS)))
    with pytest.raises(BadInput, match="at most 2,000 comments"):
        edit(session, comment(line_id, MAX_COMMENTS))
    edit(session, {"op": "delete_comment", "comment_id": f"{0:012x}"})
    edit(session, comment(line_id, MAX_COMMENTS))
    assert len(session.document.comments) == MAX_COMMENTS


def repacked(data: bytes, change) -> io.BytesIO:
    """A project's file with another snapshot."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "project.json":
                record = json.loads(content)
                record.pop("sum")
                change(record)
                content = json.dumps(record).encode()
            new.writestr(name, content)
    out.seek(0)
    return out


@pytest.mark.parametrize(
    "fields",
    [{"text": " a"}, {"author": ""}, {"at_s": -1}, {"line_id": "x"}, {"text": "a" * 2_001}],
)
def test_a_file_with_a_comment_that_no_edit_makes_is_refused(
    session: ProjectSession, bench: Bench, fields: dict
) -> None:
    edit(session, comment(session.document.order[0]))
    path = bench.root / "out.zip"
    write_archive(session, path)
    session.close()
    projects = projects_of(bench.root)
    with pytest.raises(BadInput):
        projects.import_file(
            repacked(path.read_bytes(), lambda record: record["comments"][0].update(fields))
        )
