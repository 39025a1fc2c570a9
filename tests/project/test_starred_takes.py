"""Stars on takes: kept, undone, exported; what has any states a newer version of its format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project_scenes import IDA, ops, rendered
from scenes import OpenStudio

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import FormatNewer
from studio.project.project_file import write_archive
from studio.project.session import ProjectSession
from studio.server.routes.bodies import project_body
from studio.services.studio import Studio
from studio.storage.records import RecordFormat


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    session = studio.projects.create("Scene", read_dialog_text("Ida: Hello.\nTom: Well.").dialog)
    rendered(session)
    return session


def star(session: ProjectSession, take_id: str, *, starred: bool = True) -> None:
    edit = {"op": "star_take", "take_id": take_id, "starred": starred}
    session.edit(ops(edit), IDA, session.rev)


def first_take(session: ProjectSession) -> str:
    take = session.list_views()[0].take
    assert take is not None
    return take.take_id


def versions(root: Path) -> tuple[int, list[int]]:
    """What the snapshot and each line of the history state."""
    lines = (root / "edits.jsonl").read_bytes().splitlines()
    entries = [json.loads(line)["entry"] for line in lines]
    return json.loads((root / "project.json").read_bytes())["version"], [
        entry["version"] for entry in entries
    ]


def test_a_star_is_kept_and_is_a_step_of_undo(
    studio: Studio, session: ProjectSession, open_studio: OpenStudio
) -> None:
    take_id = first_take(session)
    star(session, take_id)
    star(session, take_id)
    assert project_body(session)["starred_takes"] == [take_id]
    session.undo(IDA, session.rev)
    assert session.document.starred_takes == ()
    session.redo(IDA)
    project_id = session.project_id
    studio.projects.close()
    again = open_studio().projects.open(project_id)
    assert again.document.starred_takes == (take_id,)
    star(again, take_id, starred=False)
    assert again.document.starred_takes == ()


def test_only_files_with_a_star_state_the_newer_version(
    studio: Studio, session: ProjectSession, open_studio: OpenStudio
) -> None:
    root, take_id = session.folder.root, first_take(session)
    star(session, take_id)
    studio.projects.close()
    snapshot, entries = versions(root)
    assert snapshot == 2
    assert entries[-1] == 2
    assert set(entries[:-1]) == {1}
    with pytest.raises(FormatNewer):  # as a studio that knows no stars
        RecordFormat("This project").decode((root / "project.json").read_bytes())
    again = open_studio().projects.open(session.project_id)
    star(again, take_id, starred=False)
    again.close()
    snapshot, entries = versions(root)
    assert snapshot == 1
    assert entries[-2:] == [2, 2]  # the history still names the star
    assert not list(root.glob("*.version-*"))


def test_stars_travel_with_the_project(
    studio: Studio, session: ProjectSession, tmp_path: Path
) -> None:
    star(session, first_take(session))
    path = tmp_path / "scene.zip"
    write_archive(session, path)
    with path.open("rb") as file:
        copy = studio.projects.import_file(file)
    assert copy.document.starred_takes == session.document.starred_takes
    copy.undo(IDA, copy.rev)
    assert copy.document.starred_takes == ()
