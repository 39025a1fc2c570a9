"""The state that the parts of an open project share."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from studio.errors import NotFound
from studio.project import folder as layout
from studio.project.document import Document, ProjectLine
from studio.project.event_log import EventLog, LineEvent, ProjectEvent
from studio.project.folder import ProjectFolder
from studio.project.history import Author, EntryKind, HistoryStep
from studio.project.line_job import LineJob
from studio.project.line_states import LineStates
from studio.project.render_context import ProjectDeps, RenderContext, VoiceResolver
from studio.project.takes import TakeStore

STUDIO_AUTHOR = Author()
"""The author of what nobody did by hand."""


class ProjectState:
    """A project's folder, history, takes and news. Its lock guards all but the shelf and the news.

    Attributes:
        making: Lines that were given to the engine, by id.
        wanted: Lines a render still has to make, with a new seed where one was asked for.
    """

    def __init__(self, folder: ProjectFolder, tools: ProjectDeps) -> None:
        """Open a project's folder.

        Raises:
            StorageFailed: It can't be read.
        """
        self.folder = folder
        self.tools = tools
        self.lock = threading.RLock()
        opened = folder.open_history()
        self.history, self.journal, self.seen = opened.history, opened.journal, opened.seen
        self.shelf = TakeStore(folder.root / layout.TAKES_FOLDER, folder.disk)
        self.news: EventLog[ProjectEvent] = EventLog()
        self.surroundings = VoiceResolver(tools)
        self.wanted: dict[str, int | None] = {}
        self.making: dict[str, LineJob] = {}
        self.lines = LineStates(self.shelf, self.wanted, self.making)
        self.closed = False

    @property
    def document(self) -> Document:
        """The document as it is now."""
        return self.history.document

    @property
    def rev(self) -> int:
        """Rises with each edit."""
        return self.history.marks.rev

    def ground(self) -> RenderContext:
        """What holds for all lines, as it was seen last."""
        return self.surroundings.ground(self.document)

    def line(self, line_id: str) -> ProjectLine:
        """A line by its id.

        Raises:
            NotFound: It was deleted, or never was.
        """
        line = self.document.lines.get(line_id)
        if line is None:
            raise NotFound("This line isn't there any more.")
        return line

    def record(
        self, after: Document, author: Author, kind: EntryKind = EntryKind.EDIT
    ) -> HistoryStep | None:
        """Make a document the latest; None when it is the same.

        Raises:
            StorageFailed: It can't be kept; nothing changed then.
        """
        return self.history.record(after, author, self.tools.now_s(), kind)

    def choose_fitting(self, line_ids: Iterable[str]) -> None:
        """Let lines have a take of what they say now, where there is one.

        Raises:
            StorageFailed: It can't be kept.
        """
        after = self.lines.follow(self.document, self.ground(), line_ids)
        step = self.record(after, STUDIO_AUTHOR, EntryKind.MADE)
        if step is not None:
            self.post_lines(step.delta.lines)

    def post_lines(self, line_ids: Iterable[str]) -> None:
        """Tell that lines are in another state."""
        for line_id in line_ids:
            self.news.post(LineEvent(line_id))
