"""Gaps of a project: laid out, exported, undone, and refused by studios that don't know them."""

from __future__ import annotations

import io
import json
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import rpp
import soundfile
from project_scenes import IDA, Bench, document_of, ops, rendered

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.scene_file import ExportOptions
from studio.dialog.formats.dialog_file import Format, read_dialog_text
from studio.dialog.gaps import spread_gap
from studio.dialog.script import write_script
from studio.errors import BadInput, FormatNewer
from studio.project.project_file import write_archive
from studio.project.scene_export import build_scene, export_script
from studio.project.session import ProjectSession
from studio.services.studio import Studio
from studio.storage.records import RecordFormat

SCRIPT = "Ida: The lamp is still burning.\nTom: Is it?\n[pause:1s]\nIda: Yes.\nTom: Oh."
HALF = {"op": "settings", "fields": {"gap_s": 0.5}}


def gap_edit(line_id: str, gap_s: float) -> dict[str, object]:
    return {"op": "set", "line_ids": [line_id], "fields": {"params": {"gap_s": gap_s}}}


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    rendered(session)
    return session


def spaces_s(session: ProjectSession) -> list[float]:
    """Seconds between successive lines that sound, pauses included."""
    heard = [one for one in build_scene(session).timeline.entries if one.source is not None]
    return [
        round((after.start_sample - before.end_sample) / STUDIO_RATE_HZ, 6)
        for before, after in pairwise(heard)
    ]


def test_lines_are_laid_with_the_projects_gap_and_with_their_own(session: ProjectSession) -> None:
    assert spaces_s(session) == [0.0, 1.0, 0.0]
    session.edit(ops(HALF), IDA, session.rev)
    usual = [spread_gap(0.5, "Is it?"), 1.0, spread_gap(0.5, "Oh.")]
    assert spaces_s(session) == usual
    last = session.document.order[-1]
    session.edit(ops(gap_edit(last, 2.0)), IDA, session.rev)
    assert spaces_s(session) == [*usual[:2], 2.0]
    session.undo(IDA, session.rev)
    assert spaces_s(session) == usual
    session.undo(IDA, session.rev)
    assert spaces_s(session) == [0.0, 1.0, 0.0]


def test_a_gap_changes_no_take(session: ProjectSession) -> None:
    before = [(view.state, view.line.chosen) for view in session.list_views()]
    session.edit(ops(HALF, gap_edit(session.document.order[1], 0.2)), IDA, session.rev)
    assert [(view.state, view.line.chosen) for view in session.list_views()] == before


def test_sound_captions_and_chapters_follow_the_gaps(session: ProjectSession) -> None:
    without = build_scene(session)
    length_s = without.timeline.duration_s
    assert b"--> 00:00:0" in export_script(session, Format.SRT)[0]
    session.edit(ops(gap_edit(session.document.order[1], 2.0)), IDA, session.rev)
    scene = build_scene(session)
    assert scene.timeline.duration_s == pytest.approx(length_s + 2)
    first, second = scene.timeline.entries[:2]
    cues = export_script(session, Format.SRT)[0].decode().split("\n\n")
    assert cues[1].splitlines()[1].startswith(f"00:00:0{second.start_s:.3f}".replace(".", ","))
    assert b"Oh." in scene.write_captions()[".srt"]
    blocks = io.BytesIO()
    soundfile.write(
        blocks,
        [sample for block in scene.timeline.blocks() for sample in block],
        STUDIO_RATE_HZ,
        format="WAV",
    )
    blocks.seek(0)
    sound, _ = soundfile.read(blocks)
    assert len(sound) == scene.timeline.n_samples
    assert not sound[first.end_sample : second.start_sample].any()


def test_a_script_view_keeps_gaps(session: ProjectSession) -> None:
    order = session.document.order
    session.edit(ops(gap_edit(order[1], 0.8)), IDA, session.rev)
    text = write_script(session.document.to_dialog())
    assert "[Tom | gap_s:0.8] Is it?" in text
    session.merge_script(text.replace("Is it?", "Is it? Really?"), IDA, session.rev)
    assert session.document.lines[order[1]].params == {"gap_s": 0.8}


def test_the_second_half_of_a_line_has_not_the_gap_before_the_first(
    session: ProjectSession,
) -> None:
    line_id, new_id = session.document.order[1], "0000000000aa"
    split = {"op": "split", "line_id": line_id, "at": 3, "new_line_id": new_id}
    session.edit(ops(gap_edit(line_id, 0.8), split), IDA, session.rev)
    assert session.document.lines[line_id].params == {"gap_s": 0.8}
    assert session.document.lines[new_id].params == {}


@pytest.mark.parametrize("gap_s", [-0.1, 30.5, "long", True])
def test_gaps_out_of_range_are_refused(session: ProjectSession, gap_s: object) -> None:
    with pytest.raises(BadInput, match="gap"):
        session.edit(ops({"op": "settings", "fields": {"gap_s": gap_s}}), IDA, session.rev)
    with pytest.raises(BadInput, match="gap"):
        session.edit(ops(gap_edit(session.document.order[0], gap_s)), IDA, session.rev)  # type: ignore[arg-type]


def versions_of(root: Path) -> tuple[int, set[int]]:
    rows = (root / "edits.jsonl").read_bytes().splitlines()
    stated = {json.loads(row)["entry"]["version"] for row in rows}
    return json.loads((root / "project.json").read_bytes())["version"], stated


def test_a_project_without_gaps_stays_in_the_version_that_earlier_studios_read(
    bench: Bench,
) -> None:
    session = bench.make(document_of(2))
    session.edit(ops({"op": "settings", "fields": {"seed": 3}}), IDA, session.rev)
    session.close()
    assert versions_of(bench.root / "abc") == (1, {1})
    assert b"gap_s" not in (bench.root / "abc" / "project.json").read_bytes()
    assert b"gap_s" not in (bench.root / "abc" / "edits.jsonl").read_bytes()


@pytest.mark.parametrize("edit", [HALF, gap_edit(f"{1:012x}", 0.2)], ids=["project", "line"])
def test_a_project_with_gaps_states_a_newer_version(bench: Bench, edit: dict[str, object]) -> None:
    session = bench.make(document_of(2))
    session.edit(ops(edit), IDA, session.rev)
    session.close()
    root = bench.root / "abc"
    assert versions_of(root) == (2, {1, 2})
    assert not list(root.glob("project.version-*"))
    again = bench.open()
    assert again.document.settings.gap_s == (0.5 if edit is HALF else 0.0)
    assert list(again.document)[1].params == ({} if edit is HALF else {"gap_s": 0.2})
    again.close()
    earlier = RecordFormat("This project")  # as the studio before had it
    with pytest.raises(FormatNewer):
        earlier.decode((root / "project.json").read_bytes())


def test_a_project_file_brings_its_gaps(
    session: ProjectSession, studio: Studio, tmp_path: Path
) -> None:
    session.edit(ops(HALF, gap_edit(session.document.order[1], 0.2)), IDA, session.rev)
    path = tmp_path / "scene.tableread.zip"
    write_archive(session, path)
    assert zipfile.is_zipfile(path)
    with path.open("rb") as file:
        brought = studio.projects.import_file(file)
    assert brought.document.settings.gap_s == 0.5
    assert spaces_s(brought) == spaces_s(session)


def test_reapers_items_stand_where_the_gaps_put_them(
    session: ProjectSession, tmp_path: Path
) -> None:
    session.edit(ops(gap_edit(session.document.order[1], 2.0)), IDA, session.rev)
    scene = build_scene(session)
    scene.write(tmp_path / "tracks.zip", ExportOptions(tracks=True))
    with zipfile.ZipFile(tmp_path / "tracks.zip") as archive:
        project = rpp.loads(archive.read("scene.rpp").decode())
        files = {name: archive.read(name) for name in archive.namelist()}
    whole = np.concatenate(list(scene.timeline.blocks()))
    found = []
    for track in project.findall("TRACK"):
        for item in track.findall("ITEM"):
            rows = {row[0]: row[1] for row in item if isinstance(row, list)}
            start, length, offset = (
                round(float(rows[name]) * STUDIO_RATE_HZ)
                for name in ("POSITION", "LENGTH", "SOFFS")
            )
            (source,) = item.findall("SOURCE")
            sound, _ = soundfile.read(io.BytesIO(files[dict(source.children)["FILE"]]))
            assert np.allclose(sound[offset:][:length], whole[start:][:length], atol=1 / 32_768)
            found.append((start, length))
    heard = [one for one in scene.timeline.entries if one.source is not None]
    assert sorted(found) == [(one.start_sample, one.n_samples) for one in heard]
