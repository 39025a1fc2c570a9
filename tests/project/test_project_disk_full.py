"""A disk that runs full at the nth write, for every n: the project on it stays whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from project_scenes import IDA, FullDisk, QuickDisk, ops, rendered, text_edit, until
from scenes import dialog_of

from studio.engine.engine import Engine
from studio.errors import NotFound, StorageFailed
from studio.project.projects import Projects
from studio.project.reclaim import reclaim_space
from studio.project.session import ProjectSession
from studio.project.takes import read_take_record
from studio.services.studio import Studio
from studio.storage.disk import Disk
from studio.voices.library import SpeakerLibrary

pytestmark = pytest.mark.slow

MOST_WRITES = 200


def projects_on(disk: Disk, root: Path, engine: Engine) -> Projects:
    library = SpeakerLibrary(root / "speakers")
    return Projects(root / "projects", engine, library, lambda: "draft", disk=disk)


def words(session: ProjectSession) -> list[tuple[str, str]]:
    return [(line.line_id, line.text) for line in session.document]


class Day:
    """A day's work on a full disk: what was acknowledged, and what was said of the rest."""

    def __init__(self, projects: Projects, disk: FullDisk, *, for_good: bool) -> None:
        self._disk = disk
        self._for_good = for_good
        self.acknowledged: dict[str, list[tuple[str, str]]] = {}
        self.messages: list[str] = []
        self.removed: str | None = None
        self._projects = projects
        self._last: ProjectSession | None = None

    def work(self) -> None:
        session = self._tried(lambda: self._projects.create("Scene", dialog_of(2)))
        if session is None:
            return
        first = session.document.order[0]
        self._tried(lambda: session.edit(ops(text_edit(first, "Once.")), IDA, session.rev))
        self._note(session)
        self._render(session)
        session.save(now=True)
        self._tried(lambda: session.edit(ops(text_edit(first, "Twice.")), IDA, session.rev))
        if session.can_undo:
            self._tried(lambda: session.undo(IDA, session.rev))
        self._throw_away(session)
        self._note(session)
        copy = self._tried(lambda: self._projects.duplicate(session.project_id))
        if copy is not None:
            self._note(copy)
        if session.storage_message is not None:
            self.messages.append(session.storage_message)
        self.removed = (copy or session).project_id
        self._tried(lambda: self._projects.remove(self.removed))
        self._tried(lambda: reclaim_space(self._projects))

    def _throw_away(self, session: ProjectSession) -> None:
        """Delete a take, free it, and want it back."""
        takes = [view.take for view in session.list_views() if view.take is not None]
        if not takes:
            return
        delete = ops({"op": "delete_take", "take_id": takes[0].take_id})
        self._tried(lambda: session.edit(delete, IDA, session.rev))
        freed = reclaim_space(self._projects, trash=False)
        self.messages += [message for _, message in freed.failures]
        self._tried(lambda: session.undo(IDA, session.rev))
        self._render(session)

    def _render(self, session: ProjectSession) -> None:
        """Render all lines; where the disk stays full, until the render waits for it."""
        self._tried(lambda: session.render(None))
        until(lambda: session.save() or self._is_over(session))
        self.messages += [view.message for view in session.list_views() if view.message]
        if session.busy:
            self.messages.append(session.storage_message)
            self._tried(session.cancel)

    def _is_over(self, session: ProjectSession) -> bool:
        return not session.busy or (self._for_good and session.waits_for_room)

    def _note(self, session: ProjectSession) -> None:
        self.acknowledged[session.project_id] = words(session)

    def _tried(self, work):
        session = self._last
        before = session and (words(session), session.rev)
        self._disk.has_waited_in_vain = False
        try:
            done = work()
        except StorageFailed as error:
            self.messages.append(str(error))
            now = session and (words(session), session.rev)
            # What was written is in the journal, and so it stands, as the end of the day shows.
            assert self._disk.has_waited_in_vain or now == before, "refused, and yet done"
            return None
        self._last = done if isinstance(done, ProjectSession) else session
        return done


@pytest.mark.parametrize(
    "for_good", [False, True], ids=["one write fails", "all fail from then on"]
)
def test_a_disk_full_at_any_write_leaves_whole_projects_and_a_clear_message(
    studio: Studio, tmp_path: Path, for_good: bool
) -> None:
    for fails_at in range(1, MOST_WRITES):
        root = tmp_path / f"disk-{fails_at}"
        disk = FullDisk(fails_at, for_good=for_good)
        projects = projects_on(disk, root, studio.engine)
        day = Day(projects, disk, for_good=for_good)
        day.work()
        projects.close()
        if disk.writes < fails_at:
            break
        for message in day.messages:
            assert "No space left on device" in message
            assert "Free some space" in message
        check_whole(day, root, studio.engine)
    else:
        pytest.fail("the day's work writes more often than is tried")
    print(f"{fails_at - 1} writes, each failed once")
    assert fails_at > 20


def check_whole(day: Day, root: Path, engine: Engine) -> None:
    projects = projects_on(QuickDisk(), root, engine)
    listed = {card.project_id for card in projects.list_summaries()}
    for project_id, acknowledged in day.acknowledged.items():
        try:
            session = projects.open(project_id)
        except NotFound:
            # Removed, and deleted for good, unless that failed.
            assert project_id == day.removed
            continue
        assert project_id in listed
        assert words(session) == acknowledged
        assert session.folder.notices == []
        for take in session.take_store:
            assert (
                read_take_record(session.take_store.get_audio_path(take).with_suffix(".json"))
                == take
            )
        rendered(session)
        assert all(view.state == "ready" for view in session.list_views())
        shown = [take for one in session.document.order for take in session.list_takes(one)]
        made = [(take.line_id, take.key, take.seed) for take in shown]
        assert len(set(made)) == len(made)
    assert not list((root / "projects").glob(".new-*"))
    projects.close()
