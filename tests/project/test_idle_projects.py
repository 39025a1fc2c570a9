"""Projects that nobody uses are closed, and never under a request's hands."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from project_scenes import IDA, ops, text_edit

from studio.dialog.model import Dialog, Speech
from studio.errors import EngineBusy
from studio.project import projects as module
from studio.services.studio import Studio

CLOSED_WITHIN_S = 60


def _until(state: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + CLOSED_WITHIN_S
    while not state():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def none_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_IDLE_PROJECTS", 0)


def test_one_that_was_asked_for_a_moment_ago_stays_open(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = threading.Semaphore(0)
    look = module.OpenProjects._close_idle

    def counted(projects: module.OpenProjects) -> None:
        look(projects)
        looks.release()

    monkeypatch.setattr(module, "IDLE_AFTER_S", 3_600.0)  # a moment, however slow the machine is
    monkeypatch.setattr(module.OpenProjects, "_close_idle", counted)
    names = [studio.projects.create(name).folder.root.name for name in ("One", "Two", "Three")]
    kept = [studio.projects.get_open(name) for name in names]
    for _ in range(3):
        assert looks.acquire(timeout=CLOSED_WITHIN_S)
    assert [studio.projects.get_open(name) for name in names] == kept
    assert None not in kept


def test_an_edit_of_one_that_was_closed_meanwhile_is_to_be_tried_again(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_AFTER_S", 0.0)
    first = studio.projects.create("Scene", Dialog((Speech("Ida", "Good evening."),)))
    (line_id,) = first.document.order
    root: Path = first.folder.root
    _until(lambda: studio.projects.get_open(root.name) is None)
    monkeypatch.setattr(module, "IDLE_AFTER_S", 3_600.0)
    edit = ops(text_edit(line_id, "Good morning."))
    with pytest.raises(EngineBusy, match="put away"):
        first.edit(edit, IDA, first.rev)
    again = studio.projects.open(root.name)
    again.edit(edit, IDA, again.rev)
    assert again.document.lines[line_id].text == "Good morning."


def test_one_that_a_page_follows_stays_open(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_AFTER_S", 3_600.0)  # until somebody follows it
    followed = studio.projects.create("Followed")
    other = studio.projects.create("Other").folder.root.name

    async def follow() -> None:
        with followed.events.waking(asyncio.Event()):
            monkeypatch.setattr(module, "IDLE_AFTER_S", 0.0)
            await asyncio.to_thread(_until, lambda: studio.projects.get_open(other) is None)
            assert studio.projects.get_open(followed.folder.root.name) is followed

    asyncio.run(follow())
    _until(lambda: studio.projects.get_open(followed.folder.root.name) is None)
