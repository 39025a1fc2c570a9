"""What deleted takes and removed projects hold, and that it can be had back without harm."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from project_scenes import IDA, FullDisk, QuickDisk, ops, rendered, text_edit, until
from scenes import OpenStudio

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import Conflict, NotFound, StorageFailed
from studio.project.line_audio import open_line_audio
from studio.project.line_states import LineState
from studio.project.project_file import write_archive
from studio.project.projects import Projects
from studio.project.reclaim import find_reclaimable, reclaim_space
from studio.project.session import ProjectSession
from studio.project.takes import Take
from studio.services.studio import Studio
from studio.storage.disk import DiskUsage
from studio.storage.trash import TrashFolder
from studio.voices.library import SpeakerLibrary


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    """Three lines; the first has two takes."""
    session = studio.projects.create(
        "Scene", read_dialog_text("Ida: Hello.\nTom: Well.\nIda: Go now.").dialog
    )
    rendered(session)
    session.render([session.document.order[0]], again=True)
    until(lambda: not session.busy)
    return session


def delete_take(session: ProjectSession, take: Take) -> None:
    session.edit(ops({"op": "delete_take", "take_id": take.take_id}), IDA, session.rev)


def delete_line(session: ProjectSession, line_id: str) -> None:
    session.edit(ops({"op": "delete", "line_ids": [line_id]}), IDA, session.rev)


def size(session: ProjectSession, *takes: Take) -> DiskUsage:
    sizes = [session.take_store.get_audio_path(take).stat().st_size for take in takes]
    return DiskUsage(len(sizes), sum(sizes))


def take_ids(session: ProjectSession, line_id: str) -> list[str]:
    """A line's takes; the times of their words come to their records a while later."""
    return [take.take_id for take in session.list_takes(line_id)]


def states(session: ProjectSession) -> list[str]:
    return [view.state for view in session.list_views()]


def test_what_is_deleted_is_counted_and_freed_and_the_rest_stays(
    studio: Studio, session: ProjectSession
) -> None:
    first, second, third = session.document.order
    older, newer = session.list_takes(first)
    assert find_reclaimable(studio.projects).takes == DiskUsage()
    (of_second,) = session.list_takes(second)
    delete_take(session, older)
    delete_line(session, second)
    held = size(session, older, of_second)
    assert find_reclaimable(studio.projects).takes == held

    freed = reclaim_space(studio.projects)
    assert freed.takes == held
    assert [(one.project_id, one.takes) for one in freed.projects] == [(session.project_id, held)]
    assert not session.take_store.get_audio_path(older).exists()
    assert not session.take_store.get_audio_path(of_second).exists()
    assert states(session) == ["ready", "ready"]
    assert take_ids(session, first) == [newer.take_id]
    assert take_ids(session, third) == [session.get_view(third).take.take_id]
    assert (
        find_reclaimable(studio.projects).takes
        == reclaim_space(studio.projects).takes
        == DiskUsage()
    )


def test_undo_finds_a_freed_take_as_gone_and_makes_it_again_as_it_was(
    studio: Studio, session: ProjectSession
) -> None:
    first = session.document.order[0]
    older, newer = session.list_takes(first)
    sound = session.take_store.get_audio_path(newer).read_bytes()
    delete_take(session, newer)
    reclaim_space(studio.projects)
    session.undo(IDA, session.rev)
    view = session.get_view(first)
    assert (view.state, view.take, view.line.chosen) == (LineState.NONE, None, newer.take_id)
    assert take_ids(session, first) == [older.take_id, newer.take_id]
    assert session.take_store.is_freed(newer)
    assert not session.take_store.is_freed(older)

    made = len(list(session.take_store))
    session.render([first])
    until(lambda: not session.busy)
    again = session.get_view(first).take
    assert again is not None
    assert (again.take_id, again.key, again.seed) == (newer.take_id, newer.key, newer.seed)
    assert session.take_store.get_audio_path(again).read_bytes() == sound
    assert len(list(session.take_store)) == made
    assert states(session) == ["ready"] * 3


def test_a_line_that_comes_back_chooses_a_gone_take_to_have_it_made(
    studio: Studio, session: ProjectSession
) -> None:
    first = session.document.order[0]
    older, newer = session.list_takes(first)
    delete_line(session, first)
    assert reclaim_space(studio.projects).takes.count == 2
    session.undo(IDA, session.rev)
    session.edit(
        ops({"op": "choose", "line_id": first, "take_id": older.take_id}), IDA, session.rev
    )
    rendered(session)
    take = session.get_view(first).take
    assert take is not None
    assert (take.take_id, take.seed) == (older.take_id, older.seed)
    assert session.take_store.is_freed(newer)
    assert session.get_view(first).n_takes == 2


def test_words_that_changed_are_not_made_in_the_place_of_a_gone_take(
    studio: Studio, session: ProjectSession
) -> None:
    first = session.document.order[0]
    newer = session.list_takes(first)[1]
    delete_take(session, newer)
    reclaim_space(studio.projects)
    session.undo(IDA, session.rev)
    session.edit(ops(text_edit(first, "Other words.")), IDA, session.rev)
    rendered(session)
    take = session.get_view(first).take
    assert take is not None
    assert (take.text, take.take_id != newer.take_id) == ("Other words.", True)
    assert session.take_store.is_freed(newer)
    assert states(session) == ["ready"] * 3


async def test_a_gone_take_is_not_heard(studio: Studio, session: ProjectSession) -> None:
    second = session.document.order[1]
    delete_take(session, session.list_takes(second)[0])
    reclaim_space(studio.projects)
    session.undo(IDA, session.rev)
    with pytest.raises(NotFound, match="Render it first"):
        await open_line_audio(session, second)


def test_a_locked_take_outlives_its_line(studio: Studio, session: ProjectSession) -> None:
    second = session.document.order[1]
    (take,) = session.list_takes(second)
    lock = {"op": "lock_take", "take_id": take.take_id, "locked": True}
    session.edit(ops(lock, {"op": "delete", "line_ids": [second]}), IDA, session.rev)
    assert (
        find_reclaimable(studio.projects).takes
        == reclaim_space(studio.projects).takes
        == DiskUsage()
    )
    assert session.take_store.get_audio_path(take).is_file()


def test_a_locked_line_gets_its_own_take_back_and_no_other(
    studio: Studio, session: ProjectSession
) -> None:
    first, second, _ = session.document.order
    takes = {one: session.get_view(one).take for one in (first, second)}
    for one in (first, second):
        lock = {"op": "set", "line_ids": [one], "fields": {"locked": True}}
        session.edit(ops(lock), IDA, session.rev)
    session.edit(ops(text_edit(second, "Other words.")), IDA, session.rev)
    session.edit(ops({"op": "delete", "line_ids": [first, second]}), IDA, session.rev)
    assert reclaim_space(studio.projects).takes.count == 3
    session.undo(IDA, session.rev)
    rendered(session)
    assert session.get_view(first).take.take_id == takes[first].take_id
    assert session.get_view(second).take is None
    assert states(session) == ["ready", "none", "ready"]


def test_freed_takes_are_gone_after_a_restart_too_and_travel_so(
    open_studio: OpenStudio, session: ProjectSession, tmp_path: Path
) -> None:
    first = session.document.order[0]
    newer = session.list_takes(first)[1]
    delete_take(session, newer)
    session.free_unused_takes()
    write_archive(session, tmp_path / "scene.zip")
    session.undo(IDA, session.rev)
    session.close()
    projects = open_studio().projects
    with (tmp_path / "scene.zip").open("rb") as file:
        copy = projects.import_file(file)
    copy.undo(IDA, copy.rev)
    for opened in (projects.open(session.project_id), copy):
        assert opened.take_store.is_freed(newer)
        assert opened.folder.notices == []
        assert opened.get_view(first).state is LineState.NONE
        rendered(opened)
        assert opened.get_view(first).take.take_id == newer.take_id


def test_takes_that_an_earlier_studio_freed_are_not_missing(
    open_studio: OpenStudio, session: ProjectSession
) -> None:
    first = session.document.order[0]
    delete_take(session, session.list_takes(first)[1])
    session.free_unused_takes()
    session.close()
    (mark,) = session.folder.root.glob("takes/*/*.freed")
    mark.unlink()
    again = open_studio().projects.open(session.project_id)
    again.undo(IDA, again.rev)
    again.close()
    for path in session.folder.root.rglob("*.freed"):
        path.unlink()  # as that one wrote none
    for _ in range(2):
        again = open_studio().projects.open(session.project_id)
        assert again.folder.notices == []
        again.close()
    again = open_studio().projects.open(session.project_id)
    assert again.get_view(first).state is LineState.NONE
    rendered(again)
    assert again.get_view(first).state is LineState.READY
    assert not mark.exists()


def test_torn_files_are_freed_and_files_of_others_are_not(
    open_studio: OpenStudio, studio: Studio, session: ProjectSession
) -> None:
    folder = session.take_store.get_audio_path(
        session.list_takes(session.document.order[0])[0]
    ).parent
    session.close()
    torn = [folder / f"{'a' * 16}.wav", folder / f".{'b' * 16}.part"]
    for path in torn:
        path.write_bytes(b"torn")
    (folder / "notes.txt").write_text("mine")
    projects = open_studio().projects
    assert find_reclaimable(projects).takes == DiskUsage(2, 8)
    assert reclaim_space(projects).takes == DiskUsage(2, 8)
    assert not any(path.exists() for path in torn)
    assert (folder / "notes.txt").exists()
    assert states(projects.open(session.project_id)) == ["ready"] * 3


def test_only_the_projects_that_are_named_are_freed(
    studio: Studio, session: ProjectSession
) -> None:
    other = studio.projects.duplicate(session.project_id)
    for one in (session, other):
        delete_line(one, one.document.order[1])
    freed = reclaim_space(studio.projects, [other.project_id], trash=False)
    assert [one.project_id for one in freed.projects] == [other.project_id]
    assert [one.project_id for one in find_reclaimable(studio.projects).projects] == [
        session.project_id
    ]


def test_a_project_that_another_studio_has_open_is_left_and_named(
    open_studio: OpenStudio, session: ProjectSession
) -> None:
    delete_line(session, session.document.order[1])
    session.save(now=True)
    other = open_studio()
    freed = reclaim_space(other.projects)
    assert freed.takes == DiskUsage()
    ((left, message),) = freed.failures
    assert left == session.project_id
    assert "another studio" in message


def test_a_project_that_another_studio_has_restored_is_not_gone(
    open_studio: OpenStudio, studio: Studio, session: ProjectSession
) -> None:
    studio.projects.remove(session.project_id)
    other = open_studio().projects
    other.restore(session.project_id)
    with pytest.raises(Conflict, match="back already"):
        studio.projects.restore(session.project_id)
    other.remove(session.project_id)
    studio.projects.restore(session.project_id)


def test_a_full_disk_does_not_keep_anybody_from_freeing(tmp_path: Path, studio: Studio) -> None:
    disk = FullDisk(10**6, for_good=True)
    library = SpeakerLibrary(tmp_path / "speakers")
    projects = Projects(tmp_path / "full", studio.engine, library, lambda: "draft", disk=disk)
    session = projects.create("Scene", read_dialog_text("Ida: Hello.\nTom: Well.").dialog)
    rendered(session)
    delete_line(session, session.document.order[0])
    session.save(now=True)
    removed = projects.create("Old")
    projects.remove(removed.project_id)
    disk.fails_at = disk.writes + 1
    with pytest.raises(StorageFailed):
        session.edit(ops(text_edit(session.document.order[0], "No.")), IDA, session.rev)
    freed = reclaim_space(projects, trash=False)
    assert (freed.takes.count, freed.failures) == (1, ())
    disk.fails_at = 10**6
    assert reclaim_space(projects).trash.count == 1
    assert states(session) == ["ready"]
    projects.close()


def test_removed_projects_wait_a_month_and_then_go_by_themselves(
    open_studio: OpenStudio, studio: Studio, session: ProjectSession
) -> None:
    other = studio.projects.create("Kept")
    for one in (session, other):
        studio.projects.remove(one.project_id)
    trash = studio.options.workspace / "projects" / ".trash"
    held = find_reclaimable(studio.projects).trash
    assert held.count == 2
    assert held.size_bytes > 100_000
    long_ago_s = time.time() - 30 * 24 * 3_600 - 60
    lately_s = long_ago_s + 3_600
    os.utime(trash / session.project_id, (long_ago_s, long_ago_s))
    os.utime(trash / other.project_id, (lately_s, lately_s))
    abandoned = studio.options.workspace / "projects" / ".new-abc"
    abandoned.mkdir()
    os.utime(abandoned, (long_ago_s, long_ago_s))
    open_studio().projects.create("Next")
    until(lambda: not (trash / session.project_id).exists() and not abandoned.exists())
    assert (trash / other.project_id).is_dir()
    assert find_reclaimable(studio.projects).trash.count == 1
    (trash / other.project_id).rename(trash.parent / other.project_id)
    assert studio.projects.open(other.project_id).document.name == "Kept"


def test_a_month_begins_with_the_removal_however_old_the_project_is(tmp_path: Path) -> None:
    day_s = 24 * 3_600.0
    now_s = 300 * day_s
    trash = TrashFolder(tmp_path / ".trash", QuickDisk(), "Gone.", now_s=lambda: now_s)
    project = tmp_path / "abc"
    project.mkdir()
    os.utime(project, (0, 0))
    trash.put(project)
    assert trash.empty(older_than_s=30 * day_s) == DiskUsage()
    now_s += 30 * day_s - 1
    assert trash.empty(older_than_s=30 * day_s) == DiskUsage()
    now_s += 1
    assert trash.empty(older_than_s=30 * day_s) == DiskUsage(1, 0)
    assert list((tmp_path / ".trash").iterdir()) == []


def test_a_project_that_was_being_deleted_is_deleted_to_the_end(tmp_path: Path) -> None:
    class Stuck(QuickDisk):
        def remove(self, path: Path) -> None:
            raise StorageFailed("It can't be removed.")

    project = tmp_path / "abc"
    project.mkdir()
    TrashFolder(tmp_path / ".trash", QuickDisk(), "Gone.").put(project)
    with pytest.raises(StorageFailed):
        TrashFolder(tmp_path / ".trash", Stuck(), "Gone.").empty()
    trash = TrashFolder(tmp_path / ".trash", QuickDisk(), "Gone.")
    assert trash.measure() == DiskUsage()
    trash.empty(older_than_s=30 * 24 * 3_600.0)
    assert list((tmp_path / ".trash").iterdir()) == []


def test_a_take_that_comes_back_while_it_is_freed_is_whole_or_gone(studio: Studio) -> None:
    session = studio.projects.create("Scene", read_dialog_text("Ida: Hello.").dialog)
    rendered(session)
    (line_id,) = session.document.order
    (take,) = session.list_takes(line_id)
    for _ in range(10):
        delete_take(session, take)
        assert session.free_unused_takes()[0].count == 1
        session.undo(IDA, session.rev)
        session.render([line_id])
        session.free_unused_takes()
        until(lambda: not session.busy)
        assert session.get_view(line_id).take.take_id == take.take_id
        assert len(list(session.take_store)) == 1


def test_a_recording_that_no_line_plays_is_counted_and_freed(studio: Studio) -> None:
    session = studio.projects.create("Scene", read_dialog_text("[audio: kept.wav]").dialog)
    folder = session.folder.root / "audio"
    folder.mkdir()
    for name in ("kept.wav", "replaced.wav", ".torn.part", "just-came.wav"):
        (folder / name).write_bytes(b"12345")
        age_s = 3_000 if name == "just-came.wav" else 3_700
        os.utime(folder / name, (time.time() - age_s,) * 2)
    assert find_reclaimable(studio.projects).recordings == DiskUsage(2, 10)
    assert find_reclaimable(studio.projects).takes == DiskUsage()
    assert reclaim_space(studio.projects).recordings == DiskUsage(2, 10)
    assert sorted(path.name for path in folder.iterdir()) == ["just-came.wav", "kept.wav"]
    assert reclaim_space(studio.projects).recordings == DiskUsage()


def test_deleting_a_take_and_taking_that_back_tell_of_its_line(session: ProjectSession) -> None:
    first = session.document.order[0]
    older, _ = session.list_takes(first)
    news = session.edit(ops({"op": "delete_take", "take_id": older.take_id}), IDA, session.rev)
    assert news.line_ids == (first,)
    assert session.get_view(first).n_takes == 1
    assert session.undo(IDA, session.rev).line_ids == (first,)
    assert session.get_view(first).n_takes == 2
    assert session.redo(IDA).line_ids == (first,)
