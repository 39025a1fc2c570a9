"""Projects for tests: opened without a server, on a disk that can run full."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from studio.backends.registry import create
from studio.engine.engine import Engine
from studio.engine.model_manager import EvictionPolicy
from studio.project.document import Document, ProjectLine
from studio.project.folder import ProjectFolder
from studio.project.history import Author
from studio.project.ops import OPS_ADAPTER, Op
from studio.project.render_context import ProjectDeps
from studio.project.session import ProjectSession
from studio.storage.disk import Disk
from studio.voices.library import SpeakerLibrary

IDA = Author("ida")
TOM = Author("tom")


def ops(*edits: dict[str, object]) -> list[Op]:
    """Edits as a page sends them."""
    return OPS_ADAPTER.validate_python(list(edits))


def text_edit(line_id: str, text: str) -> dict[str, object]:
    return {"op": "set", "line_ids": [line_id], "fields": {"text": text}}


class QuickDisk(Disk):
    """Doesn't wait for the platters."""

    def _sync(self, file: BinaryIO) -> None:
        file.flush()

    def _sync_folder(self, folder: Path) -> None:
        pass


class FullDisk(QuickDisk):
    """Fails at one of its writes, once or from then on; a half of what it wrote is there.

    Attributes:
        writes: How many there were so far.
        has_waited_in_vain: Whether it failed when it was waited for; to be reset by who looks.
    """

    def __init__(self, fails_at: int, *, for_good: bool) -> None:
        self.fails_at = fails_at
        self.for_good = for_good
        self.writes = 0
        self.has_waited_in_vain = False

    def _step(self, *, waits: bool = False) -> None:
        self.writes += 1
        if self.writes == self.fails_at or (self.for_good and self.writes > self.fails_at):
            self.has_waited_in_vain |= waits
            raise OSError(errno.ENOSPC, "No space left on device")

    def _write(self, file: BinaryIO, data: bytes) -> None:
        try:
            self._step()
        except OSError:
            file.write(data[: len(data) // 2])
            raise
        super()._write(file, data)

    def _sync(self, file: BinaryIO) -> None:
        self._step(waits=True)
        super()._sync(file)

    def _rename(self, source: Path, target: Path) -> None:
        self._step()
        super()._rename(source, target)

    def make_folder(self, path: Path) -> None:
        if not path.exists():
            with self._told(path):
                self._step()
        super().make_folder(path)

    @contextmanager
    def _told(self, path: Path) -> Iterator[None]:
        from studio.storage.disk import storage_errors

        with storage_errors(path):
            yield


class Bench:
    """Opens projects on an engine that speaks nothing; their clock is the test's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.disk: Disk = QuickDisk()
        self.now_s = 1_000.0
        self._engine = Engine(create, EvictionPolicy(), conditioning_folder=root / "conditioning")
        self._threads = ThreadPoolExecutor(1)

    def make(self, document: Document, name: str = "abc") -> ProjectSession:
        ProjectFolder.create(self.root / name, document, self.now_s, self.disk)
        return self.open(name)

    def open(self, name: str = "abc") -> ProjectSession:
        library = SpeakerLibrary(self.root / "speakers")
        tools = ProjectDeps(
            self._engine, library, lambda: "draft", self._threads, lambda: self.now_s
        )
        return ProjectSession(ProjectFolder(self.root / name, self.disk), tools)

    def kill(self, session: ProjectSession) -> None:
        """What the end of a process does: nothing is written, the lock goes."""
        session._state.closed = True
        session._state.journal.close()
        session.folder.close()


def document_of(lines: int) -> Document:
    """Lines of Ida and Tom in turn, with ids from 0 up."""
    made = [
        ProjectLine(f"{idx:012x}", speaker=("Ida", "Tom")[idx % 2], text=f"This is line {idx}.")
        for idx in range(lines)
    ]
    return Document("Scene", {line.line_id: line for line in made}, tuple(x.line_id for x in made))


def until(what: Callable[[], bool], *, timeout_s: float = 240.0, every_s: float = 0.005) -> None:
    """Wait for a state; its time-out is for a machine that is stuck."""
    deadline_s = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline_s, "it never came to that"
        time.sleep(every_s)


def rendered(session: ProjectSession, **how: object) -> None:
    session.render(None, **how)
    until(lambda: not session.busy)


def settle(root: Path) -> None:
    """Wait until the last change is older than a tick of the file system's clock."""
    latest_s = max(one.stat().st_ctime for one in (root, *root.rglob("*")))
    while time.time() - latest_s < 0.15:
        root.stat()
