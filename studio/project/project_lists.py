"""What lists say of projects that needn't be open, read once for each state of their files."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path

from studio.errors import StorageFailed
from studio.project import folder as layout
from studio.project.document import Document
from studio.project.folder import (
    ProjectSummary,
    find_unplayed_audio,
    read_saved_document,
    read_summary,
    recover_summary,
    select_unused_audio,
)
from studio.project.session import ProjectSession
from studio.project.takes import find_unused_takes, is_recorded
from studio.storage.disk import DiskUsage, measure_files
from studio.storage.file_cache import FileState, StateCache, read_state
from studio.storage.records import LOST_ERRORS

log = logging.getLogger(__name__)

_DAMAGE_ERRORS = (FileNotFoundError, ValueError, LookupError, TypeError, StorageFailed)
"""What comes of a file's content, and of one that isn't there; other errors may pass."""


@dataclass(frozen=True, slots=True)
class ReclaimableProject:
    """The reclaimable files of one project."""

    project_id: str
    name: str
    takes: DiskUsage
    recordings: DiskUsage = field(default_factory=DiskUsage)

    @property
    def total(self) -> DiskUsage:
        return self.takes + self.recordings


@dataclass(frozen=True, slots=True)
class _UnusedFiles:
    """A project's unused takes, and the recordings that no line plays, however recent."""

    name: str
    takes: tuple[Path, ...]
    recorded_takes: tuple[Path, ...]
    recordings: tuple[Path, ...]


class ProjectLists:
    """Summaries and unused files of projects; safe from any thread.

    The files that decide are looked at each time, so that what another process changes is seen.
    """

    def __init__(self) -> None:
        self._summaries: StateCache[ProjectSummary | None] = StateCache()
        self._unused: StateCache[_UnusedFiles | None] = StateCache()

    def summarize(self, root: Path) -> ProjectSummary | None:
        """The summary of a project that isn't open; a damaged one's as far as its history goes.

        Returns:
            None if the folder isn't a project's, or is being removed.
        """
        try:
            state = _read_document_state(root)
            return self._summaries.get(str(root), state, lambda: _summarize(root))
        except OSError as error:
            log.warning("project %s can't be read: %s", root, error)
            return recover_summary(root, None if error.errno in LOST_ERRORS else error.strerror)

    def find_reclaimable(
        self, root: Path, session: ProjectSession | None
    ) -> ReclaimableProject | None:
        """The reclaimable files of a project, by the names and sizes of its files.

        Args:
            root: Its folder.
            session: The project, if it is open; otherwise its last saved document counts.

        Returns:
            None without such files, or if its last saved document can't be read.

        Raises:
            OSError: A file can't be looked at.
        """
        if session is None:
            state = _read_document_state(root, layout.LOCK_FILE, *_FOLDERS)
            unused = self._unused.get(str(root), state, lambda: _find_unused_of_closed(root))
        else:
            with session.lock:  # which an edit holds while it changes the journal and the document
                document, changes = session.document, session.take_store.changes
                state = _read_document_state(root, *_FOLDERS)
            state = replace(state, files=(*state.files, changes))
            unused = self._unused.get(str(root), state, lambda: _find_unused(root, document))
        if unused is None or not (unused.takes or unused.recorded_takes or unused.recordings):
            return None
        recordings = measure_files(
            [*unused.recorded_takes, *select_unused_audio(unused.recordings)]
        )
        return ReclaimableProject(root.name, unused.name, measure_files(unused.takes), recordings)


_DOCUMENT_FILES = (layout.SNAPSHOT_FILE, layout.JOURNAL_FILE)
_FOLDERS = (layout.TAKES_FOLDER, layout.AUDIO_FOLDER)


def _read_document_state(root: Path, *names: str) -> FileState:
    """The state of the files that decide a project's document, and of further ones."""
    at = str(root)
    return read_state(*[f"{at}/{name}" for name in (*_DOCUMENT_FILES, *names)])


def _summarize(root: Path) -> ProjectSummary | None:
    try:
        return read_summary(root)
    except _DAMAGE_ERRORS as error:
        log.warning("project %s can't be read: %s", root, error)
        return recover_summary(root)


def _find_unused_of_closed(root: Path) -> _UnusedFiles | None:
    try:
        return _find_unused(root, read_saved_document(root))
    except _DAMAGE_ERRORS as error:
        log.warning("project %s can't be read: %s", root, error)
        return None


def _find_unused(root: Path, document: Document) -> _UnusedFiles:
    unused = find_unused_takes(root / layout.TAKES_FOLDER, document)
    recorded = dict.fromkeys(filter(is_recorded, unused))
    takes = tuple(path for path in unused if path not in recorded)
    unplayed = find_unplayed_audio(root / layout.AUDIO_FOLDER, document)
    return _UnusedFiles(document.name, takes, tuple(recorded), tuple(unplayed))
