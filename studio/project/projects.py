"""All projects of a workspace: made, opened, kept, listed and put away."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from studio.dialog.model import Dialog
from studio.engine.engine import Engine
from studio.errors import NotFound, StorageFailed, StudioError
from studio.project import folder as places
from studio.project.archive import unpack
from studio.project.arrival import check_arrival
from studio.project.checks import MAX_NAME_CHARS, checked_project_name
from studio.project.disk import Disk
from studio.project.document import Document, Line
from studio.project.folder import Card, ProjectFolder, read_card, read_kept
from studio.project.laying import lines_of
from studio.project.moment import Moment
from studio.project.open_projects import OpenProjects
from studio.project.session import Session
from studio.project.space import held_in
from studio.project.surroundings import Tools
from studio.project.trash import GONE_FOR_GOOD, KEPT_S, Trash
from studio.speakers.library import SpeakerLibrary

log = logging.getLogger(__name__)

_ABANDONED_S = 24 * 3600.0
_TRASH = ".trash"
_UNFINISHED = ".new-"
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, StorageFailed)
_ID_CHARS = frozenset("0123456789abcdef")
_MAX_ID_CHARS = 64


class Projects:
    """The projects in a folder; methods may be called from any thread but the engine's own."""

    def __init__(
        self,
        root: Path,
        engine: Engine,
        library: SpeakerLibrary,
        backend_name: Callable[[], str],
        *,
        disk: Disk | None = None,
    ) -> None:
        """Keep projects in `root`, which is made with the first one.

        Args:
            root: A folder each lies in.
            engine: Speaks their lines.
            library: Has their voices.
            backend_name: Who speaks where a project doesn't say.
            disk: Writes; another one in tests.
        """
        self._root = root
        self._disk = disk or Disk()
        self.trash = Trash(root / _TRASH, self._disk)
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="takes")
        self._tools = Tools(engine, library, backend_name, self._threads)
        self._open = OpenProjects(self._start, lambda: self._threads.submit(self._sweep))

    def resume(self) -> None:
        """Go on with the renders that the end of the server cut off, without being asked.

        A project that isn't resumed so goes on when it is opened.
        """
        for root in self._folders():
            if (root / places.PENDING).is_file():
                try:
                    self.open(root.name)
                except StudioError as error:
                    log.warning("project %s: %s", root.name, error)

    def close(self) -> None:
        """Keep and close all; what is being made is gone on with after the next start.

        The engine has to be running still.
        """
        self._open.close()
        # What the loop was just telling is told; from now on the sessions are deaf to it.
        self._tools.engine.catch_up()
        self._threads.shutdown()

    def cards(self) -> list[Card]:
        """All projects, the one edited last first; those that can't be read are left out."""
        cards = []
        for root in self._folders():
            session = self._open.get(root.name)
            try:
                cards.append(session.card() if session else read_card(root))
            except _UNREADABLE as error:
                log.warning("project %s can't be read: %s", root, error)
        return sorted(cards, key=lambda card: card.edited_at_s, reverse=True)

    def documents(self) -> Iterator[tuple[Path, Document]]:
        """Folder and document of every project that can be read; opens none.

        The document of one that isn't open is as it was kept last.
        """
        for root in self._folders():
            session = self._open.get(root.name)
            try:
                yield root, session.document if session else read_kept(root)
            except _UNREADABLE as error:
                log.warning("project %s can't be read: %s", root, error)

    def create(self, name: str, dialog: Dialog | None = None) -> Session:
        """Make a project.

        Raises:
            BadInput: The name can't be used.
            StorageFailed: It can't be written; there is no such project then.
        """
        return self._make(checked_project_name(name), lines_of(dialog or ()))

    def opened(self, project_id: str) -> Session | None:
        """A project that is open already, without waiting for anything; None when it isn't."""
        return self._open.used(project_id)

    def open(self, project_id: str) -> Session:
        """A project, opened when it isn't yet.

        Raises:
            NotFound: There is none.
            Conflict: Another studio has it open.
            StorageFailed: It can't be read.
        """
        return self._open.open(project_id, lambda: self._folder(project_id))

    def duplicate(self, project_id: str) -> Session:
        """A copy with takes and history, under a name of its own.

        Raises:
            NotFound, StorageFailed: As `open`.
        """
        source = self.open(project_id)
        moment = source.moment()
        name = f"{source.document.name[: MAX_NAME_CHARS - 10]} (copy)"
        copy = self._appear(lambda folder: self._copy(moment, folder))
        copy.rename(name)
        return copy

    def size_bytes(self, project_id: str) -> int:
        """What a project takes of the disk, and what a copy of it will.

        Raises:
            NotFound: There is none.
        """
        return held_in(self._folder(project_id)).size_bytes

    def bring_in(self, file: BinaryIO, *, max_bytes: int | None = None) -> Session:
        """Make a project of a file that another studio wrote, with the voices it carries.

        Args:
            file: Seekable.
            max_bytes: What all of it may take on the disk; None for as much as there is room for.

        Raises:
            BadInput: It is no such file, damaged, or too large.
            StorageFailed: It can't be written; there is no such project then.
        """

        def fill(folder: Path) -> None:
            unpack(file, folder, self._disk, max_bytes=max_bytes)
            check_arrival(folder)

        session = self._appear(fill)
        voices = session.folder.root / places.VOICES
        session.take_voices(voices)
        self._disk.remove(voices)
        return session

    @contextmanager
    def arriving(self) -> Iterator[Path]:
        """Where a file that may become a project is written; it is gone when the block ends.

        Raises:
            StorageFailed: It can't be.
        """
        path = self._root / f"{_UNFINISHED}{_new_id()}.part"
        self._disk.make_folder(self._root)
        try:
            yield path
        finally:
            self._disk.remove(path)

    def remove(self, project_id: str) -> None:
        """Put a project into the trash, from where it can be brought back by hand for a month.

        Raises:
            NotFound: There is none.
            StorageFailed: It can't be moved.
        """
        with self._open.lock:
            root = self._folder(project_id)
            self._open.put_away(project_id)
            self.trash.put(root)

    def removed(self) -> list[Card]:
        """Projects in the trash, the one removed last first; `edited_at_s` is when that was."""
        cards = []
        for root, removed_at_s in self.trash.waiting():
            try:
                cards.append(replace(read_card(root), edited_at_s=removed_at_s))
            except _UNREADABLE as error:
                log.warning("removed project %s can't be read: %s", root, error)
        return cards

    def restore(self, project_id: str) -> Session:
        """Bring a removed project back.

        Raises:
            NotFound: It was deleted for good.
            Conflict, StorageFailed: It can't be moved or read; it stays where it is then.
        """
        if not project_id or not _ID_CHARS.issuperset(project_id):
            raise NotFound(GONE_FOR_GOOD)
        with self._open.lock:
            self.trash.take(project_id, self._root / project_id)
            return self.open(project_id)

    def _appear(self, fill: Callable[[Path], None]) -> Session:
        """Make a project's folder elsewhere, and give it its place when it is whole."""
        project_id = _new_id()
        unfinished = self._root / f"{_UNFINISHED}{project_id}"
        self._disk.make_folder(unfinished)
        try:
            fill(unfinished)
            self._disk.move(unfinished, self._root / project_id)
        finally:
            self._disk.remove(unfinished)
        try:
            return self.open(project_id)
        except StudioError:
            self._disk.remove(self._root / project_id)
            raise

    def _copy(self, moment: Moment, folder: Path) -> None:
        self._disk.write_whole(folder / places.SNAPSHOT, moment.snapshot)
        self._disk.write_whole(folder / places.JOURNAL, moment.journal())
        for part in moment.files():
            target = folder / part.relative_to(moment.root)
            self._disk.make_folder(target.parent)
            self._disk.copy(part, target)

    def _make(self, name: str, lines: Iterable[Line]) -> Session:
        by_id = {line.line_id: line for line in lines}
        document = replace(Document(name), lines=by_id, order=tuple(by_id))
        project_id = _new_id()
        ProjectFolder.make(self._root / project_id, document, time.time(), self._disk)
        return self.open(project_id)

    def _start(self, root: Path) -> Session:
        folder = ProjectFolder(root, self._disk)
        try:
            return Session(folder, self._tools)
        except BaseException:
            folder.close()
            raise

    def _folder(self, project_id: str) -> Path:
        root = self._root / project_id
        is_id = 0 < len(project_id) <= _MAX_ID_CHARS and _ID_CHARS.issuperset(project_id)
        if not is_id or not root.is_dir():
            raise NotFound("This project isn't there any more.")
        return root

    def _folders(self) -> list[Path]:
        if not self._root.is_dir():
            return []
        return [one for one in self._root.iterdir() if _ID_CHARS.issuperset(one.name)]

    def _sweep(self) -> None:
        """Delete what was removed a month ago, and imports that the end of a process cut off."""
        try:
            self.trash.empty(older_than_s=KEPT_S)
            for unfinished in self._root.glob(f"{_UNFINISHED}*"):
                if time.time() - unfinished.stat().st_mtime >= _ABANDONED_S:
                    self._disk.remove(unfinished)
        except (StorageFailed, OSError) as error:
            log.warning("the trash can't be emptied: %s", error)


def _new_id() -> str:
    return secrets.token_hex(6)
