"""A project is opened once, and while that takes long, others are opened and edited."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from growth import count_calls
from project_scenes import IDA, Bench, document_of, ops, text_edit
from scenes import OpenStudio

from studio.dialog.model import Dialog, Speech
from studio.project import projects as module
from studio.project.takes import TakeStore
from studio.storage.disk import Disk

ENOUGH_S = 60


class SlowOpening:
    """Opens one project only when it is let go on."""

    def __init__(self, start: Callable[..., Any]) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self.opened: list[str] = []
        self.project_id = ""
        self._start = start

    def __call__(self, projects: module.Projects, root: Path) -> Any:
        self.opened.append(root.name)
        if root.name == self.project_id:
            self.begun.set()
            assert self.goes_on.wait(ENOUGH_S)
        return self._start(projects, root)


def test_others_are_opened_and_edited_while_a_large_one_is_opened(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowOpening(module.Projects._open_session)
    monkeypatch.setattr(module.Projects, "_open_session", lambda *given: slow(*given))
    studio = open_studio()
    large, small = (
        studio.projects.create(name, Dialog((Speech("Ida", "Good evening."),))).project_id
        for name in ("Large", "Small")
    )
    studio.projects.remove(large)
    studio.projects.remove(small)
    slow.project_id, slow.opened = large, []
    with ThreadPoolExecutor(4) as threads:
        try:
            first = threads.submit(studio.projects.restore, large)
            assert slow.begun.wait(ENOUGH_S)
            second = threads.submit(studio.projects.open, large)
            session = threads.submit(studio.projects.restore, small).result(ENOUGH_S)
            (line_id,) = session.document.order
            session.edit(ops(text_edit(line_id, "Good night.")), IDA, session.rev)
            assert {card.name for card in studio.projects.list_summaries()} == {"Large", "Small"}
            assert not studio.projects.waits_for_room
            assert not first.done()
            assert not second.done()
        finally:
            slow.goes_on.set()
        assert first.result(ENOUGH_S) is second.result(ENOUGH_S)
    assert slow.opened == [large, small]


def test_what_was_being_written_when_the_process_ended_is_gone(bench: Bench) -> None:
    session = bench.make(document_of(2))
    root, document = session.folder.root, session.document
    bench.kill(session)
    torn = [unfinished_of(root / "project.json"), unfinished_of(root / "audio" / "rain.wav")]
    session = bench.open()
    assert not any(path.exists() for path in torn)
    assert session.document == document
    session.close()


def unfinished_of(path: Path) -> Path:
    """What is left where the process ends while a file is written."""
    path.parent.mkdir(exist_ok=True)
    before = path.read_bytes() if path.exists() else b""
    with Disk().replacing(path, synced=False) as file:
        file.write(before)
        [unfinished] = path.parent.glob("*.part")
    unfinished.write_bytes(b"torn")
    return unfinished


def test_many_takes_of_one_line_are_read_in_proportion(tmp_path: Path) -> None:
    line_id, calls = "0" * 12, []
    folder = tmp_path / line_id
    folder.mkdir()
    for number in range(800):
        take = {"take_id": f"{number:016x}", "line_id": line_id, "key": "0" * 32, "seed": 1}
        take |= {"backend": "draft", "text": "Hello.", "voice": "Ida", "samples": 100}
        take |= {"created_at": f"2026-01-01T00:00:{number:06}Z"}
        (folder / f"{number:016x}.json").write_text(json.dumps(take), encoding="utf-8")
        if number in (399, 799):
            calls.append(count_calls(lambda: list(TakeStore(tmp_path, Disk()))))
    assert calls[1] < 2.2 * calls[0]
    store = TakeStore(tmp_path, Disk())
    assert [one.take_id for one in store.list_for_line(line_id)] == [
        f"{number:016x}" for number in range(800)
    ]
