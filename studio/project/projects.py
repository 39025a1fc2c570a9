"""All projects of a workspace: created, opened once each, saved, listed and removed."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO
from weakref import WeakValueDictionary

from studio.dialog.gaps import check_gap
from studio.dialog.model import Dialog, name_key
from studio.engine.engine import SpeechEngine
from studio.errors import Conflict, NotFound, StorageFailed, StudioError
from studio.hearing.hearing_models import HearingModels
from studio.hearing.word_aligner import WordAligner
from studio.hearing.word_check import CheckQueue, WordChecker
from studio.project import folder as layout
from studio.project.document import (
    MAX_PROJECT_NAME_CHARS,
    Document,
    ProjectLine,
    ProjectSettings,
    clean_project_name,
)
from studio.project.draft import check_bounds
from studio.project.folder import (
    FrozenFolder,
    ProjectFolder,
    ProjectSummary,
    check_version,
)
from studio.project.history import build_closed_error
from studio.project.project_file import (
    count_voices,
    open_archive,
    unpack,
    validate_import,
)
from studio.project.project_lists import ProjectLists, ReclaimableProject
from studio.project.render_context import ProjectDeps, VoiceResolver
from studio.project.script_merge import create_lines
from studio.project.session import ProjectSession
from studio.project.word_timing import WordTimer
from studio.storage.disk import Disk, measure_folder
from studio.storage.trash import TRASH_RETENTION_S, TrashFolder
from studio.voices.library import SpeakerLibrary

MAX_IDLE_PROJECTS = 16
"""Most idle projects in memory, without a page or a render."""

IDLE_AFTER_S = 30.0
"""How long a project stays open after a request, which may still be using it."""

_SAVE_INTERVAL_S = 1.0
_SWEEP_INTERVAL_S = 3600.0


class OpenProjects:
    """The open projects by id; safe from any thread but the engine's own."""

    def __init__(
        self, start: Callable[[Path], ProjectSession], sweep: Callable[[], object]
    ) -> None:
        """Start with no project and no thread.

        Args:
            start: Opens a session on a project's folder.
            sweep: Called once an hour from the first project on, by the autosave thread.
        """
        self._start = start
        self._sweep = sweep
        # Guards the table; held only for as long as that is looked at or changed.
        self.lock = threading.RLock()
        # One for each project, so that it is opened only once, and others don't wait meanwhile.
        self._opening: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._sessions: dict[str, ProjectSession] = {}
        self._used_s: dict[str, float] = {}
        self._ended = threading.Event()
        self._saver: threading.Thread | None = None

    @property
    def is_closed(self) -> bool:
        """Whether all projects have been closed, so that none is opened any more."""
        return self._ended.is_set()

    def get(self, project_id: str) -> ProjectSession | None:
        """The project, if it is open, without extending the time that it stays open."""
        return self._sessions.get(project_id)

    def list(self) -> list[ProjectSession]:
        """All open projects."""
        with self.lock:
            return [*self._sessions.values()]

    def touch(self, project_id: str) -> ProjectSession | None:
        """The project, if it is open, without waiting; it stays open for a while longer."""
        if project_id in self._sessions:
            self._used_s[project_id] = time.monotonic()  # before the look-up, so that it stays open
        return self._sessions.get(project_id)

    def open(self, project_id: str, place: Callable[[], Path]) -> ProjectSession:
        """Open a project, or return it if it is open.

        Args:
            project_id: The project's id.
            place: Finds its folder; may raise if there is none.

        Raises:
            StorageFailed: It can't be read.
        """
        with self.only_one(project_id):
            with self.lock:
                if self.is_closed and project_id not in self._sessions:
                    raise build_closed_error()
                if (session := self.touch(project_id)) is not None:
                    return session
            session = self._start(place())
            with self.lock:
                if self.is_closed:
                    session.close()
                    raise build_closed_error()
                self._sessions[project_id] = session
                session.resume()
                self._start_saving()
                self._used_s[project_id] = time.monotonic()
            return session

    @contextmanager
    def only_one(self, project_id: str) -> Iterator[None]:
        """Let no other thread open, remove or restore a project meanwhile."""
        with self.lock:
            opening = self._opening.setdefault(project_id, threading.RLock())
        with opening:
            yield

    def close_project(self, project_id: str) -> None:
        """Stop a project's render and close it, if it is open."""
        with self.lock:
            session = self._sessions.get(project_id)
            if session is not None:
                session.cancel()
                session.close()
                self._forget(project_id)

    def close(self) -> None:
        """Save and close all projects."""
        self._ended.set()
        if self._saver is not None:
            self._saver.join()
        with self.lock:
            for session in self._sessions.values():
                session.close()
            self._sessions.clear()

    def _forget(self, project_id: str) -> None:
        self._sessions.pop(project_id, None)
        self._used_s.pop(project_id, None)

    def _start_saving(self) -> None:
        if self._saver is None:
            self._saver = threading.Thread(target=self._save_loop, name="projects", daemon=True)
            self._saver.start()

    def _save_loop(self) -> None:
        swept_s = -_SWEEP_INTERVAL_S
        while not self._ended.wait(_SAVE_INTERVAL_S):
            if time.monotonic() - swept_s >= _SWEEP_INTERVAL_S:
                swept_s = time.monotonic()
                self._sweep()
            for session in self.list():
                session.save()
            self._close_idle()

    def _close_idle(self) -> None:
        with self.lock:
            used_s = self._used_s
            longest = sorted(self._sessions.items(), key=lambda one: used_s.get(one[0], 0.0))
        idle = [one for one in longest if self._is_idle(*one)]
        for project_id, session in idle[: max(0, len(idle) - MAX_IDLE_PROJECTS)]:
            # Saved before the lock is taken, so that opening a project doesn't wait for that.
            session.save(now=True)
            with self.lock:
                if self._sessions.get(project_id) is session and self._is_idle(project_id, session):
                    session.close()
                    self._forget(project_id)

    def _is_idle(self, project_id: str, session: ProjectSession) -> bool:
        unused_s = time.monotonic() - self._used_s.get(project_id, 0.0)
        return unused_s >= IDLE_AFTER_S and not session.in_use


log = logging.getLogger(__name__)

_ABANDONED_AFTER_S = 24 * 3600.0
_TRASH_FOLDER = ".trash"
_DELETED = "This project was deleted for good, so it can't be brought back."
_UNFINISHED_PREFIX = ".new-"
_ID_CHARS = frozenset("0123456789abcdef")
_MAX_ID_CHARS = 64


class Projects:
    """The projects in a folder; safe from any thread but the engine's own."""

    def __init__(  # noqa: PLR0913 - what all projects of a workspace share
        self,
        root: Path,
        engine: SpeechEngine,
        library: SpeakerLibrary,
        backend_name: Callable[[], str],
        *,
        disk: Disk | None = None,
        aligner: WordAligner | None = None,
        recognisers: HearingModels | None = None,
    ) -> None:
        """Store projects in `root`, which is created with the first one.

        Args:
            root: Folder of the projects' folders.
            engine: Renders their lines.
            library: Has their voices.
            backend_name: The backend of a project that doesn't name one.
            disk: Writes files; replaced in tests.
            aligner: Times the words of takes; None times none.
            recognisers: Check the words of takes; closed with the projects. None checks nothing.
        """
        self._root = root
        self._disk = disk or Disk()
        self.trash = TrashFolder(root / _TRASH_FOLDER, self._disk, _DELETED)
        self._lists = ProjectLists()
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="takes")
        self._timer = WordTimer(aligner) if aligner is not None else None
        self._checks = CheckQueue()
        self._checker = WordChecker(recognisers) if recognisers else None
        self._deps = ProjectDeps(
            engine,
            library,
            backend_name,
            self._threads,
            word_timer=self._timer,
            checker=self._checker,
            checks=self._checks,
        )
        if self._checker is not None:
            engine.renderer.find_word_issues = self._checker.find_issues
        self._open = OpenProjects(self._open_session, lambda: self._threads.submit(self._sweep))

    def start_resuming(self) -> None:
        """Begin `resume` in a thread, as opening large projects takes a while."""
        threading.Thread(target=self.resume, name="resume", daemon=True).start()

    def resume(self) -> None:
        """Resume the renders that the end of the server interrupted; stops when all are closed.

        Any other render is resumed when its project is opened.
        """
        for root in self._folders():
            if (root / layout.PENDING_FILE).is_file():
                try:
                    self.open(root.name)
                except StudioError as error:
                    if self._open.is_closed:
                        return
                    log.warning("project %s: %s", root.name, error)

    def check_words(self) -> None:
        """Check the takes of open projects, as a recogniser has come."""
        for session in self._open.list():
            session.check_words()

    def close(self) -> None:
        """Save and close all projects; their renders are resumed after the next start.

        To be called while the engine is still running.
        """
        self._open.close()
        self._checks.close()
        if self._checker is not None:
            self._checker.close()
        # The loop has delivered its last events; closed sessions ignore any further ones.
        self._deps.engine.drain()
        self._threads.shutdown()
        if self._timer is not None:
            self._timer.close()

    def list_summaries(self) -> list[ProjectSummary]:
        """All projects, the last edited first; a damaged one as far as its history goes."""
        cards: list[ProjectSummary] = []
        for root in self._folders():
            session = self._open.get(root.name)
            card = session.summarize() if session else self._lists.summarize(root)
            cards += [card] if card else []
        return sorted(cards, key=lambda card: card.edited_at_s, reverse=True)

    def list_reclaimable(self) -> list[ReclaimableProject]:
        """The reclaimable files of every readable project; opens none."""
        found: list[ReclaimableProject] = []
        for root in self._folders():
            try:
                one = self._lists.find_reclaimable(root, self._open.get(root.name))
            except OSError as error:
                log.warning("project %s can't be read: %s", root, error)
                continue
            found += [one] if one else []
        return found

    def create(
        self, name: str, dialog: Dialog | None = None, *, gap_s: float = 0.0
    ) -> ProjectSession:
        """Create a project with lines and the usual gap between them."""
        lines = create_lines(dialog or ())
        return self._create_from_lines(clean_project_name(name), lines, check_gap(gap_s))

    @property
    def waits_for_room(self) -> bool:
        return any(session.waits_for_room for session in self._open.list())

    def find_colour(self, name: str) -> str | None:
        """The colour that a speaker without a voice has in an open scene; None if in none."""
        key = name_key(name)
        return next(filter(None, (one.colours.get(key) for one in self._open.list())), None)

    def get_open(self, project_id: str) -> ProjectSession | None:
        """A project that is open already, without waiting; None if it isn't."""
        return self._open.touch(project_id)

    def open(self, project_id: str) -> ProjectSession:
        """Open a project, or return it if it is open."""
        return self._open.open(project_id, lambda: self._folder(project_id))

    def duplicate(self, project_id: str) -> ProjectSession:
        """Copy a project with its takes and history, under a new name.

        Raises:
            NotFound, StorageFailed: As `open`.
        """
        source = self.open(project_id)
        frozen = source.freeze()
        name = f"{source.document.name[: MAX_PROJECT_NAME_CHARS - 10]} (copy)"
        copy = self._create_from(lambda folder: self._copy(frozen, folder))
        copy.rename(name)
        return copy

    def size_bytes(self, project_id: str) -> int:
        """The disk space of a project, which a copy will take as well."""
        return measure_folder(self._folder(project_id)).size_bytes

    def import_file(
        self,
        file: BinaryIO,
        *,
        max_bytes: int | None = None,
        charge_voices: Callable[[int], None] = lambda _: None,
    ) -> ProjectSession | None:
        """Import a project's file from another studio, with its voices; None if it is none.

        Args:
            file: Seekable.
            max_bytes: Limit of the unpacked size; None for as much as there is room for.
            charge_voices: Called with how many voices it has, whose recordings are decoded; may
                refuse them by raising.
        """
        archive = open_archive(file)
        if archive is None:
            return None

        if voices_in_it := count_voices(archive):
            charge_voices(voices_in_it)

        def fill(folder: Path) -> None:
            unpack(archive, folder, self._disk, max_bytes=max_bytes)
            validate_import(folder)

        session = self._create_from(fill)
        voices = session.folder.root / layout.VOICES_FOLDER
        session.import_voices(voices)
        self._disk.remove(voices)
        return session

    @contextmanager
    def open_upload(self) -> Iterator[Path]:
        """A temporary path for an upload that may become a project; deleted when the block ends."""
        path = self._root / f"{_UNFINISHED_PREFIX}{_generate_id()}.part"
        self._disk.make_folder(self._root)
        try:
            yield path
        finally:
            self._disk.remove(path)

    def remove(self, project_id: str) -> None:
        """Move a project to the trash, from which it can be restored for a month."""
        with self._open.only_one(project_id):
            root = self._folder(project_id)
            self._open.close_project(project_id)
            folder = ProjectFolder(root, self._disk)
            try:
                if os.name == "nt":  # where a folder with an open file can't be moved
                    folder.close()
                self.trash.put(root)
            finally:
                folder.close()

    def list_removed(self) -> list[ProjectSummary]:
        """Projects in the trash, the last removed first; `edited_at_s` is the time of removal."""
        cards = []
        for root, removed_at_s in self.trash.list_removed():
            card = self._lists.summarize(root)
            cards += [replace(card, edited_at_s=removed_at_s)] if card else []
        return cards

    def restore(self, project_id: str) -> ProjectSession:
        """Restore a removed project.

        Raises:
            NotFound: It was deleted for good.
            Conflict: Somebody has restored it already, or another studio has it open.
            StorageFailed: It can't be moved or read; it stays in the trash.
        """
        if not project_id or not _ID_CHARS.issuperset(project_id):
            raise NotFound(_DELETED)
        with self._open.only_one(project_id):
            root = self._root / project_id
            try:
                self.trash.restore(project_id, root)
            except NotFound as error:
                if root.is_dir():
                    raise Conflict("This project is back already. Open it in the list.") from error
                raise
            try:
                return self.open(project_id)
            except StorageFailed:
                self.trash.put(root)
                raise

    def _create_from(self, fill: Callable[[Path], None]) -> ProjectSession:
        """Create a project's folder elsewhere, and move it into place when it is complete."""
        project_id = _generate_id()
        unfinished = self._root / f"{_UNFINISHED_PREFIX}{project_id}"
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

    def _copy(self, frozen: FrozenFolder, folder: Path) -> None:
        self._disk.write_whole(folder / layout.SNAPSHOT_FILE, frozen.snapshot)
        self._disk.write_whole(folder / layout.JOURNAL_FILE, frozen.read_journal())
        for part in frozen.iter_files():
            target = folder / part.relative_to(frozen.root)
            self._disk.make_folder(target.parent)
            self._disk.copy(part, target)

    def _create_from_lines(
        self, name: str, lines: Iterable[ProjectLine], gap_s: float
    ) -> ProjectSession:
        by_id = {line.line_id: line for line in lines}
        settings = ProjectSettings(gap_s=gap_s, says_words=True)
        document = Document(name, lines=by_id, order=tuple(by_id), settings=settings)
        check_bounds(Document(), document)
        document = VoiceResolver(self._deps).cast_new_names(document, Document())
        return self._create_from(
            lambda folder: ProjectFolder.create(folder, document, time.time(), self._disk)
        )

    def _open_session(self, root: Path) -> ProjectSession:
        check_version(root)
        folder = ProjectFolder(root, self._disk)
        try:
            return ProjectSession(folder, self._deps)
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
        """Delete projects that were removed a month ago, and remains of interrupted imports."""
        try:
            self.trash.empty(older_than_s=TRASH_RETENTION_S)
            for unfinished in self._root.glob(f"{_UNFINISHED_PREFIX}*"):
                if time.time() - unfinished.stat().st_mtime >= _ABANDONED_AFTER_S:
                    self._disk.remove(unfinished)
        except (StorageFailed, OSError) as error:
            log.warning("the trash can't be emptied: %s", error)


def _generate_id() -> str:
    return secrets.token_hex(6)
