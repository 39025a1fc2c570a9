"""One open project, shared by everybody who edits it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, BinaryIO

from studio.dialog.formats.importing import read_dialog_text
from studio.dialog.model import Notice, ParsedScript
from studio.dialog.script import write_script
from studio.project import folder as layout
from studio.project.audio_files import find_unused_audio, import_audio
from studio.project.autosave import Autosave
from studio.project.document import Document
from studio.project.document_editor import DocumentEditor
from studio.project.event_log import EditEvent, EventLog, LineEvent, ProjectEvent
from studio.project.folder import FrozenFolder, ProjectFolder, ProjectSummary
from studio.project.history import Author, EntryKind
from studio.project.journal import build_closed_error
from studio.project.line_job import LineJob
from studio.project.line_states import LineView
from studio.project.ops import Op
from studio.project.project_state import STUDIO_AUTHOR, ProjectState
from studio.project.render_context import ProjectDeps, RenderContext
from studio.project.render_queue import ProjectRenderer, RenderProgress
from studio.project.takes import Take, TakeStore, free_unused_takes
from studio.project.voice_transfer import export_voices, import_voices
from studio.quality.checks import QualityIssue
from studio.storage.disk import DiskUsage, measure_files, storage_errors

_REFRESH_INTERVAL_S = 2.0


class ProjectSession:
    """All methods may be called from any thread but the engine's own."""

    def __init__(self, folder: ProjectFolder, tools: ProjectDeps) -> None:
        """Open a project; what a render had left to do is gone on with by `resume`.

        Raises:
            StorageFailed: It can't be read.
        """
        self.project_id = folder.root.name
        self.folder = folder
        self._core = core = ProjectState(folder, tools)
        self._revising = DocumentEditor(core)
        self._keeping = Autosave(core, self._revising)
        self._renders = ProjectRenderer(core, self._keeping, self._revising.tell)
        self._revising.changed = self._renders.recheck

    @property
    def lock(self) -> threading.RLock:
        """Held while several things are read that have to fit each other."""
        return self._core.lock

    @property
    def news(self) -> EventLog[ProjectEvent]:
        """What happens."""
        return self._core.news

    @property
    def shelf(self) -> TakeStore:
        """All its takes."""
        return self._core.shelf

    @property
    def document(self) -> Document:
        """The document as it is now."""
        return self._core.document

    @property
    def rev(self) -> int:
        """Rises with each edit."""
        return self._core.rev

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to take back."""
        return self._core.history.marks.undo is not None

    @property
    def can_redo(self) -> bool:
        """Whether there is an undo to take back."""
        return self._core.history.marks.redo is not None

    @property
    def busy(self) -> bool:
        """Whether a render has anything left to make."""
        return bool(self._core.wanted)

    @property
    def in_use(self) -> bool:
        """Whether somebody looks at it or something is made."""
        return self.busy or self.news.followers > 0

    @property
    def run(self) -> RenderProgress | None:
        """The render under way, or the last one."""
        return self._renders.rendering.run

    @property
    def storage_message(self) -> str | None:
        """Why it can't be kept on the disk; None while it can."""
        return self._keeping.message

    @property
    def ground(self) -> RenderContext:
        """What all lines depend on, as it was seen last."""
        with self.lock:
            return self._core.ground()

    def card(self) -> ProjectSummary:
        """The project in brief."""
        with self.lock:
            document, at_s = self.document, self._core.history.marks.at_s
            audio_s = self._core.lines.audio_s(document)
            return ProjectSummary(
                self.project_id, document.name, at_s, len(document.order), audio_s
            )

    def view(self, line_id: str) -> LineView | None:
        """A line as it is now; None when it was deleted."""
        with self.lock:
            line = self.document.lines.get(line_id)
            if line is None:
                return None
            return self._core.lines.view(line, self.document, self._core.ground())

    def views(self) -> list[LineView]:
        """All lines in order."""
        with self.lock:
            self._look_around()
            document, ground = self.document, self._core.ground()
            return [self._core.lines.view(line, document, ground) for line in document]

    def takes(self, line_id: str) -> list[Take]:
        """A line's takes, the oldest first."""
        with self.lock:
            return self._core.lines.takes(line_id, self.document)

    def doubts(self, take: Take) -> tuple[QualityIssue, ...]:
        """What may not be right about a take."""
        with self.lock:
            return self._core.lines.company.doubts(take)

    def making(self, line_id: str) -> LineJob | None:
        """A line on its way; None when nobody makes it now."""
        with self.lock:
            return self._core.making.get(line_id)

    def colours(self) -> list[str]:
        """The colours that the library's speakers have."""
        return [speaker.colour for speaker in self._core.tools.library.list()]

    def script(self) -> tuple[int, str, tuple[Notice, ...]]:
        """The revision, its lines as a script, and what the voices would make of it.

        Raises:
            StorageFailed: The library of voices can't be read.
        """
        with self.lock:
            rev, text = self.rev, write_script(self.document.dialog())
            return rev, text, self._noticed(read_dialog_text(text) if text else None)

    def edit(self, edits: Sequence[Op], author: Author, base_rev: int) -> EditEvent:
        """Apply edits, as `DocumentEditor.edit`."""
        with self._working():
            return self._revising.edit(edits, author, base_rev)

    def lay_script(
        self, text: str, author: Author, base_rev: int
    ) -> tuple[EditEvent, tuple[Notice, ...]]:
        """Let the lines be those of a script; those that stay keep their takes.

        Raises:
            ScriptError: It can't be read; nothing changed then.
            EditConflict: Others changed the project since `base_rev`.
            StorageFailed: It can't be kept; nothing changed then.
        """
        parsed = read_dialog_text(text)
        with self._working():
            news = self._revising.lay(parsed.dialog, author, base_rev)
            return news, self._noticed(parsed)

    def _noticed(self, parsed: ParsedScript | None) -> tuple[Notice, ...]:
        if parsed is None:
            return ()
        told = self._core.surroundings.notices(self.document, parsed.dialog)
        return parsed.notices + told

    def rename(self, name: str) -> EditEvent:
        """Give the project another name, as `DocumentEditor.rename`."""
        with self._working():
            return self._revising.rename(name)

    def undo(self, author: Author, base_rev: int, *, own: bool = False) -> EditEvent:
        """Take the latest step back, as `DocumentEditor.undo`."""
        with self._working():
            return self._revising.undo(author, base_rev, own=own)

    def redo(self, author: Author) -> EditEvent:
        """Take the latest undo back, as `DocumentEditor.redo`."""
        with self._working():
            return self._revising.redo(author)

    def render(
        self, line_ids: Iterable[str] | None, *, again: bool = False, listen_from: str | None = None
    ) -> None:
        """Make lines, as `ProjectRenderer.want`.

        Args:
            line_ids: None for all.
            again: Make a further take of these lines, with a new seed.
            listen_from: Where somebody listens.
        """
        with self._working():
            self._look_around()
            self._renders.want(line_ids, again=again, listen_from=listen_from)

    def resume(self) -> None:
        """Go on with what a render had left to do when the studio ended."""
        with self.lock:
            self._renders.resume()

    def cancel(self) -> None:
        """Stop the render, as `ProjectRenderer.cancel`."""
        with self.lock:
            self._renders.cancel()

    def focus(self, line_id: str) -> None:
        """Somebody listens there, as `ProjectRenderer.focus`."""
        with self._working():
            self._renders.focus(line_id)

    def moment(self) -> FrozenFolder:
        """Its files as they are now, to be packed or copied while others go on working.

        Raises:
            StorageFailed: They can't be read.
        """
        self.tidy(now=True)
        root = self.folder.root
        with self.lock, storage_errors(root):
            # The journal may be ahead of the snapshot, never behind it.
            snapshot = (root / layout.SNAPSHOT_FILE).read_bytes()
            return FrozenFolder(root, snapshot, self._core.journal.size_bytes, self.document)

    def voice_packs(self) -> Iterator[tuple[str, IO[bytes]]]:
        """The voices of its cast, as `export_voices`."""
        return export_voices(self.document, self._core.tools.library)

    def take_voices(self, folder: Path) -> None:
        """Bring the voices that came with it into the library, and let its cast have them.

        Raises:
            StorageFailed: They can't be kept.
        """
        cast, told = import_voices(folder, self.document, self._core.tools.library)
        with self._working():
            self._core.record(replace(self.document, cast=cast), STUDIO_AUTHOR, EntryKind.MADE)
            self.folder.notices += told
            self._look_around()

    def add_audio(self, name: str, file: BinaryIO) -> str:
        """Bring a recording into the project; returns the path that audio lines name it by.

        Raises:
            BadInput: No file can have that name.
            AudioRejected: It can't be decoded or is too large; nothing is kept then.
            StorageFailed: It can't be written.
        """
        with self._working():
            pass
        # Without the lock: a file of that very content is the same whoever brings it.
        return import_audio(self.folder, name, file)

    def free_recordings(self) -> DiskUsage:
        """Free the recordings that no line plays.

        Raises:
            StorageFailed: The disk doesn't know of the latest edit, or a file can't be removed.
        """
        with self._working():
            self._keeping.sync()
            found = find_unused_audio(self.folder.root / layout.AUDIO_FOLDER, self.document)
            held = measure_files(found)
            for path in found:
                self.folder.disk.remove(path)
            return held

    def free(self) -> DiskUsage:
        """Free the audio of what was deleted; its records stay, for undo.

        Raises:
            StorageFailed: The disk doesn't know of the latest deletion, or a file can't be removed.
        """
        with self._working():
            self._keeping.sync()
            return free_unused_takes(self.shelf, self.document)

    def tidy(self, *, now: bool = False) -> None:
        """Bring to the disk what isn't there yet, and see whether voices changed.

        Args:
            now: The snapshot too, however young the last one is.
        """
        with self.lock:
            if self._core.closed:
                return
            chore = self._keeping.chore(now=now)
            is_time = time.monotonic() - self._core.surroundings.seen_s > _REFRESH_INTERVAL_S
            if self.news.followers and is_time:
                self._look_around()
        # Without the lock: nobody who types waits for the disk.
        self._keeping.do(chore)

    def close(self) -> None:
        """Keep everything and let go of the folder; what was wanted is gone on with later."""
        with self.lock:
            if self._core.closed:
                return
            self._keeping.do(self._keeping.chore(now=True))
            self._core.closed = True
            for line_id in list(self._core.wanted):
                self._renders.rendering.drop(line_id)
            self._keeping.close()
            self.folder.close()
            self.news.close()

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Hold the lock for a change.

        Raises:
            EngineBusy: The project was closed since it was asked for.
        """
        with self.lock:
            if self._core.closed:
                raise build_closed_error()
            yield

    def _look_around(self) -> None:
        """See which voices there are now; tells of lines that changed by that."""
        former, ground = self._core.surroundings.look(self.document)
        if former is None or former is ground:
            return
        changed = [line.line_id for line in self.document if not former.agrees(ground, line)]
        self._renders.recheck(changed)
        for line_id in changed:
            self.news.post(LineEvent(line_id))
