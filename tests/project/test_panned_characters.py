"""A character's pan: kept, undone, exported and refused like its other settings."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from project_scenes import Bench, document_of, ops, rendered
from test_damage import IDA

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.dialog.gaps import GAP
from studio.errors import BadInput, FormatNewer
from studio.project.characters import PLAIN, Character, change_character
from studio.project.history import ENTRY_FORMAT
from studio.project.project_file import write_archive
from studio.project.scene_export import build_scene
from studio.project.session import ProjectSession
from studio.services.studio import Studio
from studio.storage.records import RecordFormat

AS_BEFORE = frozenset({"starred_takes", "comments", "characters", GAP})


def pan(speaker: str, value: object) -> dict[str, object]:
    return {"op": "character", "speaker": speaker, "fields": {"pan": value}}


def edit(session: ProjectSession, *changes: dict[str, object]) -> None:
    session.edit(ops(*changes), IDA, session.rev)


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    session = studio.projects.create("Scene", read_dialog_text("Ida: One.\nTom: Two.").dialog)
    rendered(session)
    return session


def test_a_scene_is_stereo_as_long_as_a_line_in_it_is_panned(
    session: ProjectSession, tmp_path: Path
) -> None:
    wav, mp3 = tmp_path / "a.wav", tmp_path / "a.mp3"
    before = []
    for path in (wav, mp3):
        build_scene(session).write(path)
        before.append(path.read_bytes())
    mono, _ = soundfile.read(wav)
    edit(session, pan("ida", -0.4))
    assert {view.state for view in session.list_views()} == {"ready"}
    build_scene(session).write(wav)
    stereo, _ = soundfile.read(wav)
    first, second = build_scene(session).timeline.entries
    for entry, (left, right) in [(first, (0.891, 0.454)), (second, (0.7071, 0.7071))]:
        place = slice(entry.start_sample, entry.end_sample)
        assert np.allclose(stereo[place, 0], left * mono[place], atol=1e-4)
        assert np.allclose(stereo[place, 1], right * mono[place], atol=1e-4)
    session.undo(IDA, session.rev)
    for path, data in zip((wav, mp3), before, strict=True):
        build_scene(session).write(path)
        assert path.read_bytes() == data
    edit(session, pan("Nobody who speaks", 1))
    assert build_scene(session).timeline.n_channels == 1


def test_a_pan_is_undone_and_set_back(session: ProjectSession) -> None:
    edit(session, pan("Tom", 0.7))
    session.undo(IDA, session.rev)
    assert session.document.characters == {}
    session.redo(IDA)
    assert session.document.characters == {"tom": Character(pan=0.7)}
    edit(session, pan("Tom", None))
    assert session.document.characters == {}


@pytest.mark.parametrize("value", [-1.01, 2, "left", True, float("nan"), [0]], ids=str)
def test_a_pan_that_cant_be_is_refused(session: ProjectSession, value: object) -> None:
    with pytest.raises(BadInput):
        change_character(PLAIN, {"pan": value})
    with pytest.raises(BadInput):
        edit(session, pan("Tom", value))
    assert session.document.characters == {}


def versions_of(root: Path) -> tuple[int, list[int]]:
    rows = (root / "edits.jsonl").read_bytes().splitlines()
    snapshot = json.loads((root / "project.json").read_bytes())
    return snapshot["version"], [json.loads(row)["entry"]["version"] for row in rows]


def test_only_a_project_with_a_pan_states_the_newest_version(bench: Bench) -> None:
    session = bench.make(document_of(2))
    root = bench.root / session.project_id
    speaker = next(iter(session.document)).speaker
    edit(session, {"op": "character", "speaker": speaker, "fields": {"level_db": -3}})
    session.save(now=True)
    assert versions_of(root) == (2, [1, 2])
    assert b'"pan"' not in (root / "project.json").read_bytes()
    edit(session, pan(speaker, 0.5))
    session.save(now=True)
    assert versions_of(root) == (3, [1, 2, 3])
    earlier = RecordFormat("This project", further=AS_BEFORE)  # as the studio before had it
    with pytest.raises(FormatNewer):
        earlier.decode((root / "project.json").read_bytes())
    again = bench.open(session.project_id) if session.close() is None else session
    (character,) = again.document.characters.values()
    assert character == Character(level_db=-3.0, pan=0.5)
    edit(again, pan(speaker, None))
    again.save(now=True)
    assert versions_of(root) == (2, [1, 2, 3, 3])
    assert not list(root.glob("project.version-*"))
    again.close()


def test_a_project_file_brings_pans_and_no_others_than_an_edit_sets(
    session: ProjectSession, studio: Studio, tmp_path: Path
) -> None:
    edit(session, pan("Tom", 0.7))
    path = tmp_path / "scene.tableread.zip"
    write_archive(session, path)
    with path.open("rb") as file:
        brought = studio.projects.import_file(file)
    assert brought.document.characters == {"tom": Character(pan=0.7)}
    forged = tmp_path / "forged.tableread.zip"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(forged, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("project.json"):
                record = json.loads(data.replace(b'"pan": 0.7', b'"pan": 7'))
                record.pop("sum")
                data = json.dumps(record).encode()
            target.writestr(name, data)
    with forged.open("rb") as file, pytest.raises(BadInput):
        studio.projects.import_file(file)


def test_the_newest_version_is_read_by_this_studio_only() -> None:
    assert ENTRY_FORMAT.newest == 3
    kind = RecordFormat("This", further=frozenset({"more"}), latest=frozenset({"most"}))
    assert kind.decode(kind.encode({"most": 1})) == {"most": 1}
    stated = [
        kind.version_of(one) for one in ({}, {"more": 1}, {"most": 1}, {"more": 1, "most": 1})
    ]
    assert stated == [1, 2, 3, 3]
    before = RecordFormat("This", further=frozenset({"more"}))
    assert before.decode(kind.encode({"more": 1})) == {"more": 1}
    with pytest.raises(FormatNewer):
        before.decode(kind.encode({"more": 1, "most": 1}))
