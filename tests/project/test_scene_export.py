"""Sound is made into a file in the background: once, told of, stopped, and gone in the end."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import soundfile
from project_scenes import IDA, Bench, document_of, ops, rendered, until

from studio.audio.mastering import Mastering, parse_target
from studio.audio.scene_file import ExportOptions
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import Conflict, NotFound
from studio.project.document import Document, ProjectLine
from studio.project.history import Author, EntryKind, History, Journal, Marks
from studio.project.project_file import write_archive
from studio.project.scene_export import (
    FAULT_MESSAGE,
    MAX_RUNNING,
    ExportState,
    SceneExport,
    SceneExports,
    SceneExportSpec,
    build_scene,
)
from studio.project.session import ProjectSession
from studio.services.studio import Studio
from studio.storage.disk import Disk

SCRIPT = "Ida: The lamp is still burning.\n[pause:1s]\nTom: Is it?"


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    rendered(session)
    return session


@pytest.fixture
def turns() -> threading.Semaphore:
    """Nobody's turn comes before a test gives one."""
    return threading.Semaphore(0)


@pytest.fixture
def changes() -> list[str]:
    """One item for each change that the exports reported."""
    return []


@pytest.fixture
def exports(tmp_path: Path, turns: threading.Semaphore, changes: list[str]) -> SceneExports:
    return SceneExports(tmp_path / "exports", turns, lambda: changes.append("changed"))


def order_of(
    session: ProjectSession, suffix: str = ".wav", loudness: str = "podcast"
) -> SceneExportSpec:
    choice = ExportOptions(Mastering(parse_target(loudness)), is_measured=True)
    return SceneExportSpec(session.project_id, build_scene(session), suffix, choice)


def ended(export: SceneExport) -> ExportState:
    until(lambda: export.state is not ExportState.RUNNING)
    return export.state


def folders(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "exports").iterdir())


def test_a_file_is_made_and_can_be_fetched(
    session: ProjectSession, exports: SceneExports, turns: threading.Semaphore
) -> None:
    export = exports.begin(order_of(session))
    assert (export.state, export.progress) == (ExportState.RUNNING, 0.0)
    turns.release()
    assert ended(export) is ExportState.DONE
    assert export.progress == 1.0
    assert exports.find(session.project_id, export.export_id) is export
    assert soundfile.info(export.path).frames == export.spec.scene.timeline.n_samples
    assert export.loudness.lufs == pytest.approx(-16, abs=0.5)
    exports.drop(export)


def test_its_begin_its_progress_and_its_end_are_reported(
    session: ProjectSession,
    exports: SceneExports,
    turns: threading.Semaphore,
    changes: list[str],
) -> None:
    export = exports.begin(order_of(session))
    assert len(changes) == 1
    turns.release()
    assert ended(export) is ExportState.DONE
    until(lambda: len(changes) >= 3)
    assert len(changes) <= 102  # a percent at a time
    assert exports.list_all() == (export,)
    reported = len(changes)
    exports.drop(export)
    assert len(changes) == reported + 1
    assert exports.list_all() == ()


def test_asking_twice_makes_one_file(
    session: ProjectSession, exports: SceneExports, turns: threading.Semaphore, tmp_path: Path
) -> None:
    export = exports.begin(order_of(session))
    assert exports.begin(order_of(session)) is export
    assert len(folders(tmp_path)) == 1
    other = exports.begin(order_of(session, ".flac"))
    assert other is not export
    with pytest.raises(Conflict, match="cancel one"):
        exports.begin(order_of(session, ".mp3"))
    for _ in range(MAX_RUNNING):
        turns.release()
    assert ended(export) is ended(other) is ExportState.DONE
    turns.release()
    assert exports.begin(order_of(session)) is not export


def test_a_stopped_export_leaves_nothing(
    session: ProjectSession, exports: SceneExports, turns: threading.Semaphore, tmp_path: Path
) -> None:
    export = exports.begin(order_of(session))
    exports.drop(export)
    with pytest.raises(NotFound):
        exports.find(session.project_id, export.export_id)
    turns.release()
    assert ended(export) is ExportState.CANCELLED
    until(lambda: not folders(tmp_path))


def test_an_older_file_makes_room(
    session: ProjectSession, exports: SceneExports, turns: threading.Semaphore, tmp_path: Path
) -> None:
    made = []
    for suffix in (".wav", ".flac", ".mp3"):
        turns.release()
        made.append(exports.begin(order_of(session, suffix, "rendered")))
        assert ended(made[-1]) is ExportState.DONE
    with pytest.raises(NotFound, match="Export the audio again"):
        exports.find(session.project_id, made[0].export_id)
    until(lambda: len(folders(tmp_path)) == 2)
    with pytest.raises(NotFound):
        exports.find("another", made[1].export_id)


def test_why_it_failed_is_told(
    session: ProjectSession, exports: SceneExports, turns: threading.Semaphore, tmp_path: Path
) -> None:
    order = order_of(session)
    order.scene.timeline.entries[0].source.unlink()
    export = exports.begin(order)
    turns.release()
    assert ended(export) is ExportState.FAILED
    assert "Render it again" in export.message
    until(lambda: not folders(tmp_path))


def test_a_fault_is_in_the_log_and_ends_the_export(
    session: ProjectSession,
    exports: SceneExports,
    turns: threading.Semaphore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    order = order_of(session)
    broken = replace(order, scene=replace(order.scene, captions=None))
    export = exports.begin(broken)
    turns.release()
    assert ended(export) is ExportState.FAILED
    assert export.message == FAULT_MESSAGE
    assert "Traceback" in caplog.text


def test_a_scene_without_sound_is_refused(studio: Studio) -> None:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    with pytest.raises(Conflict, match="Press Generate all first"):
        build_scene(session)


def test_a_scene_without_any_sound_says_which_take_is_damaged(studio: Studio) -> None:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    last = session.document.order[-1]
    session.render([last])
    until(lambda: not session.busy)
    path = session.take_store.get_audio_path(session.get_view(last).take)
    path.write_bytes(path.read_bytes()[:-2] + b"xx")
    with pytest.raises(Conflict, match="has changed on the disk"):
        build_scene(session)


def test_a_file_names_each_speaker_as_written_first_and_the_language_that_was_spoken(
    studio: Studio,
) -> None:
    lines = "IDA: The lamp is still burning.\nida: Is it?\nTom: It is."
    session = studio.projects.create("Scene", read_dialog_text(lines).dialog)
    rendered(session)
    tags = studio.describe_scene(build_scene(session), "Scene").tags
    assert tags.speakers == ("IDA", "Tom")
    assert tags.language == "en-US"  # the draft voice takes Latin letters for that
    assert tags.engines == ("Draft voice (eSpeak NG)",)


def wav_of(session: ProjectSession, folder: Path) -> bytes:
    path = folder / "scene.wav"
    build_scene(session).write(path)
    return path.read_bytes()


def test_a_new_projects_wav_carries_tags_whatever_becomes_of_it(
    studio: Studio, session: ProjectSession, tmp_path: Path
) -> None:
    tagged = wav_of(session, tmp_path)
    sound_bytes = 44 + 2 * build_scene(session).timeline.n_samples
    assert b"INAM\x06\0\0\0Scene\0" in tagged[sound_bytes:]
    session.edit(ops({"op": "settings", "fields": {"seed": 3}}), IDA, session.rev)
    session.undo(IDA, session.rev)
    assert wav_of(session, tmp_path) == tagged
    write_archive(session, tmp_path / "scene.tableread.zip")
    with (tmp_path / "scene.tableread.zip").open("rb") as file:
        assert wav_of(studio.projects.import_file(file), tmp_path) == tagged
    copy = studio.projects.duplicate(session.project_id)
    assert wav_of(copy, tmp_path).replace(b"Scene (copy)", b"Scene") != wav_of(copy, tmp_path)
    assert json.loads((session.folder.root / "project.json").read_bytes())["version"] == 1


def test_a_project_is_as_old_as_its_history_says(bench: Bench) -> None:
    session = bench.make(document_of(2))
    session.edit(ops({"op": "rename", "name": "Renamed"}), IDA, session.rev)
    session.close()
    (bench.root / "abc" / "project.json").unlink()
    again = bench.open()
    assert again.has_wav_tags
    again.close()
    journal = bench.root / "abc" / "edits.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"Renamed", b"Remaned"))
    mended = bench.open()
    assert mended.folder.notices
    assert mended.has_wav_tags
    bench.kill(mended)


def test_the_wav_of_a_project_from_before_there_were_tags_stays_the_same(
    studio: Studio, tmp_path: Path
) -> None:
    line = ProjectLine("0" * 12, speaker="Ida", text="The lamp is still burning.")
    document = Document("Old", {line.line_id: line}, (line.line_id,))
    root = studio.options.workspace / "projects" / "0123456789ab"
    root.mkdir(parents=True)
    journal = Journal(root / "edits.jsonl", Disk())
    History(journal, Document(), Marks()).record(document, Author(), 1_000.0, EntryKind.MADE)
    journal.close()
    session = studio.projects.open(root.name)
    rendered(session)
    session.edit(ops({"op": "settings", "fields": {"gap_s": 0.5}}), IDA, session.rev)
    (take,) = session.take_store
    for one in (session, studio.projects.duplicate(root.name)):
        assert len(wav_of(one, tmp_path)) == 44 + 2 * take.samples


def test_a_section_ends_at_the_next_heading(studio: Studio) -> None:
    script = "Ida: One.\n\n## The lamp\nIda: Two.\nTom: Three.\n\n## The door\nTom: Four."
    session = studio.projects.create("Scene", read_dialog_text(script).dialog)
    rendered(session)
    lamp, door = (view.line for view in session.list_views() if view.line.unspoken is not None)

    def heard(section: str) -> tuple[str | None, list[str | None]]:
        scene = build_scene(session, section)
        entries = (one for one in scene.timeline.entries if one.source is not None)
        return scene.tags.title, [scene.captions[one.segment_idx].text for one in entries]

    assert heard(lamp.line_id) == ("The lamp", ["Two.", "Three."])
    assert heard(door.line_id) == ("The door", ["Four."])
    with pytest.raises(NotFound, match="section"):
        build_scene(session, session.document.order[0])
