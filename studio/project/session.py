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
        self._state = core = ProjectState(folder, tools)
        self._editor = DocumentEditor(core)
        self._autosave = Autosave(core, self._editor)
        self._renderer = ProjectRenderer(core, self._autosave, self._editor.publish_step)
        self._editor.on_change = self._renderer.restart_changed

    @property
    def lock(self) -> threading.RLock:
        """Held while several things are read that have to fit each other."""
        return self._state.lock

    @property
    def events(self) -> EventLog[ProjectEvent]:
        """What happens."""
        return self._state.events

    @property
    def take_store(self) -> TakeStore:
        """All its takes."""
        return self._state.take_store

    @property
    def document(self) -> Document:
        """The document as it is now."""
        return self._state.document

    @property
    def rev(self) -> int:
        """Rises with each edit."""
        return self._state.rev

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to take back."""
        return self._state.history.marks.undo is not None

    @property
    def can_redo(self) -> bool:
        """Whether there is an undo to take back."""
        return self._state.history.marks.redo is not None

    @property
    def busy(self) -> bool:
        """Whether a render has anything left to make."""
        return bool(self._state.queued)

    @property
    def in_use(self) -> bool:
        """Whether somebody looks at it or something is made."""
        return self.busy or self.events.subscriber_count > 0

    @property
    def render_progress(self) -> RenderProgress | None:
        """The render under way, or the last one."""
        return self._renderer.queue.progress

    @property
    def storage_message(self) -> str | None:
        """Why it can't be kept on the disk; None while it can."""
        return self._autosave.message

    @property
    def render_context(self) -> RenderContext:
        """What all lines depend on, as it was seen last."""
        with self.lock:
            return self._state.get_render_context()

    def summarize(self) -> ProjectSummary:
        """The project in brief."""
        with self.lock:
            document, at_s = self.document, self._state.history.marks.at_s
            audio_s = self._state.line_states.measure_audio_s(document)
            return ProjectSummary(
                self.project_id, document.name, at_s, len(document.order), audio_s
            )

    def get_view(self, line_id: str) -> LineView | None:
        """A line as it is now; None when it was deleted."""
        with self.lock:
            line = self.document.lines.get(line_id)
            if line is None:
                return None
            return self._state.line_states.build_view(
                line, self.document, self._state.get_render_context()
            )

    def list_views(self) -> list[LineView]:
        """All lines in order."""
        with self.lock:
            self._refresh_context()
            document, ground = self.document, self._state.get_render_context()
            return [self._state.line_states.build_view(line, document, ground) for line in document]

    def list_takes(self, line_id: str) -> list[Take]:
        """A line's takes, the oldest first."""
        with self.lock:
            return self._state.line_states.list_takes(line_id, self.document)

    def find_issues(self, take: Take) -> tuple[QualityIssue, ...]:
        """What may not be right about a take."""
        with self.lock:
            return self._state.line_states.outliers.find_issues(take)

    def get_line_job(self, line_id: str) -> LineJob | None:
        """A line on its way; None when nobody makes it now."""
        with self.lock:
            return self._state.line_jobs.get(line_id)

    def list_colours(self) -> list[str]:
        """The colours that the library's speakers have."""
        return [speaker.colour for speaker in self._state.deps.library.list()]

    def format_script(self) -> tuple[int, str, tuple[Notice, ...]]:
        """The revision, its lines as a script, and what the voices would make of it.

        Raises:
            StorageFailed: The library of voices can't be read.
        """
        with self.lock:
            rev, text = self.rev, write_script(self.document.to_dialog())
            return rev, text, self._collect_notices(read_dialog_text(text) if text else None)

    def edit(self, edits: Sequence[Op], author: Author, base_rev: int) -> EditEvent:
        """Apply edits, as `DocumentEditor.edit`."""
        with self._lock_for_change():
            return self._editor.edit(edits, author, base_rev)

    def merge_script(
        self, text: str, author: Author, base_rev: int
    ) -> tuple[EditEvent, tuple[Notice, ...]]:
        """Let the lines be those of a script; those that stay keep their takes.

        Raises:
            ScriptError: It can't be read; nothing changed then.
            EditConflict: Others changed the project since `base_rev`.
            StorageFailed: It can't be kept; nothing changed then.
        """
        parsed = read_dialog_text(text)
        with self._lock_for_change():
            news = self._editor.merge_script(parsed.dialog, author, base_rev)
            return news, self._collect_notices(parsed)

    def _collect_notices(self, parsed: ParsedScript | None) -> tuple[Notice, ...]:
        if parsed is None:
            return ()
        found = self._state.voice_resolver.find_notices(self.document, parsed.dialog)
        return parsed.notices + found

    def rename(self, name: str) -> EditEvent:
        """Give the project another name, as `DocumentEditor.rename`."""
        with self._lock_for_change():
            return self._editor.rename(name)

    def undo(self, author: Author, base_rev: int, *, own: bool = False) -> EditEvent:
        """Take the latest step back, as `DocumentEditor.undo`."""
        with self._lock_for_change():
            return self._editor.undo(author, base_rev, own=own)

    def redo(self, author: Author) -> EditEvent:
        """Take the latest undo back, as `DocumentEditor.redo`."""
        with self._lock_for_change():
            return self._editor.redo(author)

    def render(
        self, line_ids: Iterable[str] | None, *, again: bool = False, listen_from: str | None = None
    ) -> None:
        """Make lines, as `ProjectRenderer.want`.

        Args:
            line_ids: None for all.
            again: Make a further take of these lines, with a new seed.
            listen_from: Where somebody listens.
        """
        with self._lock_for_change():
            self._refresh_context()
            self._renderer.render(line_ids, again=again, listen_from=listen_from)

    def resume(self) -> None:
        """Go on with what a render had left to do when the studio ended."""
        with self.lock:
            self._renderer.resume()

    def cancel(self) -> None:
        """Stop the render, as `ProjectRenderer.cancel`."""
        with self.lock:
            self._renderer.cancel()

    def focus(self, line_id: str) -> None:
        """Somebody listens there, as `ProjectRenderer.focus`."""
        with self._lock_for_change():
            self._renderer.focus(line_id)

    def freeze(self) -> FrozenFolder:
        """Its files as they are now, to be packed or copied while others go on working.

        Raises:
            StorageFailed: They can't be read.
        """
        self.save(now=True)
        root = self.folder.root
        with self.lock, storage_errors(root):
            # The journal may be ahead of the snapshot, never behind it.
            snapshot = (root / layout.SNAPSHOT_FILE).read_bytes()
            return FrozenFolder(root, snapshot, self._state.journal.size_bytes, self.document)

    def export_voices(self) -> Iterator[tuple[str, IO[bytes]]]:
        """The voices of its cast, as `export_voices`."""
        return export_voices(self.document, self._state.deps.library)

    def import_voices(self, folder: Path) -> None:
        """Bring the voices that came with it into the library, and let its cast have them.

        Raises:
            StorageFailed: They can't be kept.
        """
        cast, found = import_voices(folder, self.document, self._state.deps.library)
        with self._lock_for_change():
            self._state.record(replace(self.document, cast=cast), STUDIO_AUTHOR, EntryKind.MADE)
            self.folder.notices += found
            self._refresh_context()

    def add_audio(self, name: str, file: BinaryIO) -> str:
        """Bring a recording into the project; returns the path that audio lines name it by.

        Raises:
            BadInput: No file can have that name.
            AudioRejected: It can't be decoded or is too large; nothing is kept then.
            StorageFailed: It can't be written.
        """
        with self._lock_for_change():
            pass
        # Without the lock: a file of that very content is the same whoever brings it.
        return import_audio(self.folder, name, file)

    def free_unused_audio(self) -> DiskUsage:
        """Free the recordings that no line plays.

        Raises:
            StorageFailed: The disk doesn't know of the latest edit, or a file can't be removed.
        """
        with self._lock_for_change():
            self._autosave.sync()
            found = find_unused_audio(self.folder.root / layout.AUDIO_FOLDER, self.document)
            held = measure_files(found)
            for path in found:
                self.folder.disk.remove(path)
            return held

    def free_unused_takes(self) -> DiskUsage:
        """Free the audio of what was deleted; its records stay, for undo.

        Raises:
            StorageFailed: The disk doesn't know of the latest deletion, or a file can't be removed.
        """
        with self._lock_for_change():
            self._autosave.sync()
            return free_unused_takes(self.take_store, self.document)

    def save(self, *, now: bool = False) -> None:
        """Bring to the disk what isn't there yet, and see whether voices changed.

        Args:
            now: The snapshot too, however young the last one is.
        """
        with self.lock:
            if self._state.closed:
                return
            chore = self._autosave.create_task(now=now)
            is_time = (
                time.monotonic() - self._state.voice_resolver.refreshed_at_s > _REFRESH_INTERVAL_S
            )
            if self.events.subscriber_count and is_time:
                self._refresh_context()
        # Without the lock: nobody who types waits for the disk.
        self._autosave.flush(chore)

    def close(self) -> None:
        """Keep everything and let go of the folder; what was wanted is gone on with later."""
        with self.lock:
            if self._state.closed:
                return
            self._autosave.flush(self._autosave.create_task(now=True))
            self._state.closed = True
            for line_id in list(self._state.queued):
                self._renderer.queue.cancel_line(line_id)
            self._autosave.close()
            self.folder.close()
            self.events.close()

    @contextmanager
    def _lock_for_change(self) -> Iterator[None]:
        """Hold the lock for a change.

        Raises:
            EngineBusy: The project was closed since it was asked for.
        """
        with self.lock:
            if self._state.closed:
                raise build_closed_error()
            yield

    def _refresh_context(self) -> None:
        """See which voices there are now; tells of lines that changed by that."""
        previous, ground = self._state.voice_resolver.refresh(self.document)
        if previous is None or previous is ground:
            return
        changed = [line.line_id for line in self.document if not previous.is_same_for(ground, line)]
        self._renderer.restart_changed(changed)
        for line_id in changed:
            self.events.publish(LineEvent(line_id))
