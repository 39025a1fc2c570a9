"""A change that was answered is on the disk; one wait for the disk serves all who wait for it."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
from project_scenes import IDA, TOM, Bench, QuickDisk, document_of, ops, text_edit, until

from studio.errors import StorageFailed
from studio.project.history import Journal
from studio.project.session import ProjectSession
from studio.services.proposals import Proposals, WantedChange

FIRST, SECOND = "000000000000", "000000000001"


class Platters(QuickDisk):
    """Knows what a power cut would leave of the journal, and may wait or fail.

    Attributes:
        cache: What was written and isn't on the platters.
        kept: What is.
        waits: How often the disk was waited for.
        gate: No wait ends before it is set.
        fails: Whether waits fail. As in Linux, what couldn't be written then is dropped.
    """

    def __init__(self) -> None:
        self.cache = self.kept = b""
        self.waits = 0
        self.gate = threading.Event()
        self.gate.set()
        self.fails = False

    def append(self, file: BinaryIO, data: bytes, path: Path) -> None:
        super().append(file, data, path)
        self.cache += data

    def _sync(self, file: BinaryIO) -> None:
        if not file.name.endswith("edits.jsonl"):
            return
        self.waits += 1
        going, self.cache = self.cache, b""
        assert self.gate.wait(60)
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")
        self.kept += going


@pytest.fixture
def platters(bench: Bench) -> Platters:
    bench.disk = Platters()
    return bench.disk


@pytest.fixture
def session(bench: Bench, platters: Platters) -> ProjectSession:
    session = bench.make(document_of(3))
    session.save(now=True)
    platters.waits = 0
    return session


def set_text(session: ProjectSession, line_id: str, text: str, **how: object) -> None:
    session.edit(ops(text_edit(line_id, text)), replace(IDA, **how), session.rev)


def accept(session: ProjectSession) -> None:
    first, proposals = session.document.order[0], Proposals(lambda: None)
    made = proposals.propose(session, [WantedChange("change", first, text="Proposed.")], "")
    proposals.accept(session, made.proposal_id, TOM)


CHANGES: dict[str, Callable[[ProjectSession], object]] = {
    "edit": lambda session: set_text(session, FIRST, "Edited."),
    "undo": lambda session: session.undo(IDA, session.rev),
    "redo": lambda session: session.redo(IDA),
    "rename": lambda session: session.rename("Renamed"),
    "script": lambda session: session.merge_script("Ida: Merged.", IDA, session.rev),
    "proposal": accept,
}


def test_what_was_answered_a_power_cut_leaves(session: ProjectSession, platters: Platters) -> None:
    for name, change in CHANGES.items():
        if name == "script":
            set_text(session, FIRST, "As it was.")
        waits = platters.waits
        change(session)
        assert platters.cache == b"", name
        assert platters.waits == waits + 1, name
    session.close()
    entries = (session.folder.root / "edits.jsonl").read_bytes()
    assert entries.endswith(platters.kept)
    assert platters.kept.count(b"\n") >= len(CHANGES)


def test_one_wait_serves_all_who_came_during_the_wait_before(
    tmp_path: Path, platters: Platters
) -> None:
    journal = Journal(tmp_path / "edits.jsonl", platters)
    journal.append({"rev": 0})
    platters.gate.clear()
    with ThreadPoolExecutor(6) as threads:
        waiting = [threads.submit(journal.sync)]
        until(lambda: platters.waits == 1)
        for rev in range(1, 6):
            journal.append({"rev": rev})
        waiting += [threads.submit(journal.sync) for _ in range(5)]
        assert not any(one.done() for one in waiting)
        platters.gate.set()
        for one in waiting:
            one.result(60)
    assert platters.waits == 2
    journal.sync()
    assert platters.waits == 2, "nothing came since"
    journal.close()


def test_others_read_and_edit_while_somebody_waits_for_the_disk(
    session: ProjectSession, platters: Platters
) -> None:
    platters.gate.clear()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(set_text, session, FIRST, "From Ida.")
        until(lambda: platters.waits == 1)
        second = threads.submit(set_text, session, SECOND, "From Tom.")
        until(lambda: session.document.lines[SECOND].text == "From Tom.")
        assert session.get_view(FIRST).line.text == "From Ida."
        session.focus(SECOND)
        session.render([])
        assert not first.done()
        assert not second.done()
        platters.gate.set()
        first.result(60)
        second.result(60)
    session.close()


def test_a_proposal_is_accepted_once_and_nobody_waits_for_its_disk(
    session: ProjectSession, platters: Platters
) -> None:
    platters.gate.clear()
    with ThreadPoolExecutor(1) as threads:
        accepting = threads.submit(accept, session)
        until(lambda: platters.waits == 1)
        assert session.list_views()[0].line.text == "Proposed."
        platters.gate.set()
        accepting.result(60)
    session.close()


def test_a_change_that_the_disk_refuses_stands_is_told_and_is_written_again(
    session: ProjectSession, platters: Platters
) -> None:
    platters.fails = True
    for _ in range(2):  # the page sends it again
        with pytest.raises(StorageFailed, match="Input/output error"):
            set_text(session, FIRST, "Not there yet.", edit_id="once")
    assert session.rev == 1
    assert session.document.lines[FIRST].text == "Not there yet."
    session.save()
    assert "Input/output error" in session.storage_message
    platters.fails = False
    set_text(session, FIRST, "Not there yet.", edit_id="once")
    assert session.rev == 1
    assert b"Not there yet." in platters.kept
    session.save()
    assert session.storage_message is None
    document = session.document
    session.close()
    assert b"Not there yet." in (session.folder.root / "edits.jsonl").read_bytes()
    assert session.document == document


def test_what_a_killed_studio_wrote_is_waited_for_before_it_is_answered(
    bench: Bench, platters: Platters, session: ProjectSession
) -> None:
    platters.fails = True
    with pytest.raises(StorageFailed):
        set_text(session, FIRST, "Written.", edit_id="once")
    bench.kill(session)
    platters.fails = False
    session = bench.open()
    platters.waits = 0
    set_text(session, FIRST, "Written.", edit_id="once")
    assert (session.rev, platters.waits) == (1, 1)
    session.close()
