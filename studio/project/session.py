"""One open project, shared by all pages that edit it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, BinaryIO

from studio.audio.clip import Clip
from studio.audio.file_tags import PRODUCT
from studio.backends.base import Backend
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.dialog.items import JSON_BEGINS
from studio.dialog.model import Dialog, Notice, spelling_notices
from studio.dialog.script import number_rows, parse_script, write_script
from studio.engine.event_log import EventLog
from studio.errors import Conflict, FileDamaged
from studio.project import folder as layout
from studio.project.document import Document, LineKind, count_numbered
from studio.project.document_editor import DocumentEditor
from studio.project.folder import (
    FrozenFolder,
    ProjectFolder,
    ProjectSummary,
    find_unused_audio,
    import_audio,
)
from studio.project.history import Author, EntryKind, build_closed_error
from studio.project.judgement import ProjectJudge
from studio.project.line_states import (
    STUDIO_AUTHOR,
    Autosave,
    EditEvent,
    LineEvent,
    LineView,
    PlayHead,
    ProjectState,
)
from studio.project.ops import Choose, Op
from studio.project.project_renderer import ProjectRenderer
from studio.project.render_context import ProjectDeps, RenderContext
from studio.project.render_queue import LineJob, RenderProgress
from studio.project.takes import Take, free_unused_takes
from studio.project.voice_transfer import export_voices, import_voices
from studio.quality.checks import QualityIssue
from studio.storage.disk import DiskUsage, measure_files, storage_errors
from studio.voices.cast import Cast
from studio.voices.speaker import SceneColours

log = logging.getLogger(__name__)

_REFRESH_INTERVAL_S = 2.0


class ProjectSession:
    """An open project; safe from any thread but the engine's own.

    What changes it returns once the disk has the change; others see it before.

    Attributes:
        lock: To be held while several values are read that must be consistent.
        events: The project's events.
        play_head: Where the play-head is; the latest only.
        take_store: The project's takes.
    """

    def __init__(self, folder: ProjectFolder, tools: ProjectDeps) -> None:
        self.project_id = folder.root.name
        self.folder = folder
        self._state = core = ProjectState(folder, tools)
        self.lock, self.events, self.take_store = core.lock, core.events, core.take_store
        self.play_head: EventLog[PlayHead] = EventLog(1)
        self.colours = SceneColours()
        self._editor = DocumentEditor(core)
        self._autosave = Autosave(core)
        self._renderer = ProjectRenderer(core, self._editor, self._autosave)
        self.judge = ProjectJudge(core)
        self._nesting = 0  # of `changing`, in the thread that holds the lock

    @property
    def document(self) -> Document:
        return self._state.document

    @property
    def rev(self) -> int:
        return self._state.rev

    @property
    def can_undo(self) -> bool:
        return self._state.history.marks.undo is not None

    @property
    def can_redo(self) -> bool:
        return self._state.history.marks.redo is not None

    @property
    def busy(self) -> bool:
        return bool(self._state.render_queue.queued)

    @property
    def in_use(self) -> bool:
        """Whether a page follows the project or a render is running."""
        return self.busy or self.events.subscriber_count > 0

    @property
    def render_progress(self) -> RenderProgress | None:
        return self._state.render_queue.progress

    @property
    def storage_message(self) -> str | None:
        """Why it or its takes can't be saved to disk; None while they can."""
        return self._state.render_queue.shortage or self._autosave.message

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the render is done; None if there is none, or too little is known."""
        return self._state.render_queue.remaining_s

    @property
    def waits_for_room(self) -> bool:
        return self._state.render_queue.shortage is not None

    @property
    def cast(self) -> Cast:
        with self.lock:
            return self._state.voice_resolver.build_cast(self.document)

    def build_audition_cast(
        self, name: str, engine: str | None, speaker_id: str | None, preset_id: str | None
    ) -> Cast:
        """Its cast with another voice for one name, as `VoiceResolver.build_audition_cast`."""
        with self.lock:
            document = self.document
        return self._state.voice_resolver.build_audition_cast(
            document, name, engine, speaker_id, preset_id
        )

    def name_automatic(self, name: str) -> str:
        """What the automatic voice of a name is called on its backend."""
        with self.lock:
            return self._state.voice_resolver.name_automatic(self.document, name)

    @property
    def backend(self) -> Backend:
        """The backend of its lines, as `VoiceResolver.find_backend`."""
        return self._state.voice_resolver.find_backend(self.document)

    @property
    def render_context(self) -> RenderContext:
        with self.lock:
            return self._state.line_states.context

    def summarize(self) -> ProjectSummary:
        """The project's summary."""
        with self.lock:
            document, at_s = self.document, self._state.history.marks.at_s
            audio_s = self._state.line_states.measure_audio_s()
            lines, numbered = len(document.order), count_numbered(document)
            about = (document.name, at_s, lines, audio_s, numbered, None)
            return ProjectSummary(self.project_id, *about, (*filter(None, document.cast.values()),))

    def get_view(self, line_id: str) -> LineView | None:
        """A line with its current state; None if it was deleted."""
        with self.lock:
            line = self.document.lines.get(line_id)
            return self._state.line_states.build_view(line) if line is not None else None

    def get_views(self, line_ids: Iterable[str]) -> dict[str, LineView | None]:
        """Lines with their current states, as `get_view`."""
        with self.lock:
            states, lines = self._state.line_states, self.document.lines
            found = {line_id: lines.get(line_id) for line_id in line_ids}
            return {
                line_id: states.build_view(line) if line is not None else None
                for line_id, line in found.items()
            }

    def list_views(self) -> list[LineView]:
        """All lines in order."""
        with self.lock:
            self._refresh_context()
            lines = self._state.line_states
            return [lines.build_view(line) for line in self.document]

    def list_takes(self, line_id: str) -> list[Take]:
        """A line's takes, the oldest first."""
        with self.lock:
            return self._state.line_states.list_takes(line_id)

    def check_audio(self, take: Take) -> None:
        """Compare a take's audio with its checksum; a damaged take isn't played any more.

        Raises:
            FileDamaged: It has changed since it was written.
        """
        was_damaged = self.take_store.is_damaged(take)
        try:
            self.take_store.check_audio(take)
        except FileDamaged:
            if not was_damaged:
                log.warning("project %s: take %s is damaged", self.project_id, take.take_id)
                with self.lock:
                    self._state.publish_lines([take.line_id])
            raise

    def check_chosen_takes(self) -> None:
        """Compare the audio of all chosen takes with their checksums, as before an export."""
        with self.lock:
            chosen = list(map(self._state.line_states.find_chosen, self.document))
        for take in filter(None, chosen):  # without the lock, as nobody should wait for the disk
            with suppress(FileDamaged):
                self.check_audio(take)

    def find_issues(self, take: Take) -> tuple[QualityIssue, ...]:
        """The quality issues of a take."""
        with self.lock:
            return self._state.outliers.find_issues(take)

    def time_words(self, take: Take) -> Take:
        """A take with the times of its words, which are found now if they aren't kept with it."""
        if take.words is not None:
            return take
        with self.lock:
            line = self.document.lines.get(take.line_id)
            if line is None or line.kind is not LineKind.SPEECH:
                return take
            context = self._state.line_states.context
            said = context.build_spoken_words(line, take.text)
            language = context.resolve_language(line)
        return self._state.word_timing.time_now(take, said, language)

    def describe_distance(self, take: Take) -> str:
        """How far a take is from its voice's other takes and from its sample; "" if unknown."""
        with self.lock:
            return self._state.outliers.describe_distance(take)

    def get_line_job(self, line_id: str) -> LineJob | None:
        """The running job of a line; None if there is none."""
        with self.lock:
            return self._state.render_queue.line_jobs.get(line_id)

    def format_script(self) -> tuple[int, str, tuple[Notice, ...]]:
        """The revision, its lines as a script, and notices about how the voices would speak it."""
        with self.lock:
            dialog = number_rows(self.document.to_dialog())
            notices = self._collect_notices(dialog, spelling_notices(dialog))
            return self.rev, write_script(dialog), notices

    def edit(self, edits: Sequence[Op], author: Author, base_rev: int) -> EditEvent:
        """Apply edits, as `DocumentEditor.edit`."""
        with self.changing():
            return self._follow(self._editor.edit(edits, author, base_rev))

    def add_take(
        self, take: Take, clip: Clip, author: Author, *, check: Callable[[], None] = lambda: None
    ) -> EditEvent:
        """Add a take that was made outside of the render, and choose it as a step of undo.

        Args:
            take: For the line as it is now.
            clip: Its audio, at the studio's rate.
            author: Who wanted it.
            check: Called last; nothing is added if it raises.

        Raises:
            Conflict: The line was changed or locked meanwhile; nothing is added.
        """
        with self.changing(waits=False):
            self._check_wants(take)
        self.take_store.add(take, clip)  # without the lock, as nobody should wait for the disk
        with ExitStack() as unless_chosen:
            unless_chosen.callback(self.take_store.discard, take)
            with self.changing():
                self._check_wants(take)
                check()
                choose = Choose(op="choose", line_id=take.line_id, take_id=take.take_id)
                news = self._follow(self._editor.edit([choose], author, self.rev))
                unless_chosen.pop_all()
                context = self._state.line_states.context
                line = self._state.line(take.line_id)
                said = context.build_spoken_words(line, take.text)
                language = take.language or context.resolve_language(line)
        self._renderer.recognition.add([take])
        self._state.word_timing.add(take, said, language)
        return news

    def _check_wants(self, take: Take) -> None:
        line = self._state.line(take.line_id)
        if line.locked:
            raise Conflict("This line is locked. Unlock it first.")
        if take.source is None and self._state.line_states.get_key(line) != take.key:
            raise Conflict("This line was changed meanwhile. Render it, and mark the words again.")
        chosen = self._state.line_states.find_chosen(line)
        if take.patch is not None and chosen and chosen.take_id != take.patch.take_id:
            raise Conflict("Another take of this line was chosen meanwhile. Mark the words again.")

    def merge_script(
        self,
        text: str,
        author: Author,
        base_rev: int,
        *,
        check: Callable[[Dialog], None] | None = None,
    ) -> tuple[EditEvent, tuple[Notice, ...]]:
        """Change the lines to those of a script; unchanged lines keep their takes.

        Args:
            text: The script, or JSON items, of which its grammar would make names.
            author: Who changes them.
            base_rev: The revision that it was written on.
            check: Is given what was read; an error that it raises passes, and nothing changes.
        """
        parsed = read_dialog_text(text) if JSON_BEGINS.match(text) else parse_script(text)
        if check is not None:
            check(parsed.dialog)
        with self.changing():
            news = self._follow(self._editor.merge_script(parsed.dialog, author, base_rev))
            return news, self._collect_notices(parsed.dialog, parsed.notices)

    def _follow(self, news: EditEvent) -> EditEvent:
        """Restart the jobs of lines that an edit changed."""
        self._renderer.restart_changed(news.line_ids)
        return news

    def _collect_notices(self, dialog: Dialog, read: tuple[Notice, ...]) -> tuple[Notice, ...]:
        return read + self._state.voice_resolver.find_notices(self.document, dialog)

    def rename(self, name: str) -> EditEvent:
        """Rename the project, as `DocumentEditor.rename`."""
        with self.changing():
            return self._editor.rename(name)

    def undo(self, author: Author, base_rev: int, *, own: bool = False) -> EditEvent:
        """Undo the latest step, as `DocumentEditor.undo`."""
        with self.changing():
            return self._follow(self._editor.undo(author, base_rev, own=own))

    def redo(self, author: Author) -> EditEvent:
        """Redo the last undone step, as `DocumentEditor.redo`."""
        with self.changing():
            return self._follow(self._editor.redo(author))

    def render(
        self, line_ids: Iterable[str] | None, *, again: bool = False, listen_from: str | None = None
    ) -> None:
        """Render lines, as `ProjectRenderer.render`.

        Args:
            line_ids: None for all.
            again: Whether to make a further take of these lines, with a new seed.
            listen_from: The line at the play-head.
        """
        with self.changing(waits=False):
            self._refresh_context()
            self._renderer.render(line_ids, again=again, listen_from=listen_from)

    def resume(self) -> None:
        """Resume a render that the end of the studio interrupted."""
        with self.lock:
            self._renderer.resume()
        self.check_words()

    def check_words(self) -> None:
        """Check the words of takes that haven't been, where there is a recogniser."""
        with self.lock:
            self._renderer.recognition.add_chosen()

    def cancel(self) -> None:
        """Stop the render, as `ProjectRenderer.cancel`."""
        with self.lock:
            self._renderer.cancel()

    def focus(self, line_id: str) -> None:
        """Move the play-head, as `ProjectRenderer.focus`."""
        with self.changing(waits=False):
            self._renderer.focus(line_id)

    @property
    def has_wav_tags(self) -> bool:
        """Whether its WAVs carry tags; since they do, a project's history names its studio."""
        with self.lock:
            return self._state.journal.maker.partition(" ")[0] == PRODUCT

    def freeze(self) -> FrozenFolder:
        """A consistent view of its files, to be packed or copied while others go on editing."""
        self.save(now=True)
        root = self.folder.root
        with self.lock, storage_errors(root):
            # The journal may be ahead of the snapshot, but never behind it.
            snapshot = (root / layout.SNAPSHOT_FILE).read_bytes()
            return FrozenFolder(root, snapshot, self._state.journal.size_bytes, self.document)

    def export_voices(self) -> Iterator[tuple[str, IO[bytes]]]:
        """The voices of its cast, as `export_voices`."""
        return export_voices(self.document, self._state.deps.library)

    def import_voices(self, folder: Path) -> None:
        """Import the voices in its file into the library, and use them in its cast."""
        cast, found = import_voices(folder, self.document, self._state.deps.library)
        with self.changing():
            self._state.record(replace(self.document, cast=cast), STUDIO_AUTHOR, EntryKind.MADE)
            self.folder.notices += found
            self._refresh_context()

    def add_audio(self, name: str, file: BinaryIO) -> str:
        """Add a recording to the project; returns the path by which audio lines name it."""
        with self.changing(waits=False):
            pass
        # Without the lock, as a file of the same content is the same for everybody.
        return import_audio(self.folder, name, file)

    def free_unused_audio(self) -> DiskUsage:
        """Delete the recordings that no line plays."""
        with self.changing(waits=False):
            self._state.journal.sync()
            found = find_unused_audio(self.folder.root / layout.AUDIO_FOLDER, self.document)
            held = measure_files(found)
            for path in found:
                self.folder.disk.remove(path)
            return held

    def free_unused_takes(self) -> tuple[DiskUsage, DiskUsage]:
        """Delete the audio of deleted takes; their records stay, for undo.

        Returns:
            What generated takes took, and what recorded ones took.
        """
        with self.changing(waits=False):
            self._state.journal.sync()
            return free_unused_takes(self.take_store, self.document)

    def save(self, *, now: bool = False) -> None:
        """Save unsaved changes, and check whether voices changed.

        Args:
            now: Whether to write a snapshot even if the last one is recent.
        """
        with self.lock:
            if self._state.closed:
                return
            task = self._autosave.create_task(now=now)
            is_time = (
                time.monotonic() - self._state.voice_resolver.refreshed_at_s > _REFRESH_INTERVAL_S
            )
            if self.events.subscriber_count and is_time:
                self._refresh_context()
        # Without the lock, so that typing never waits for the disk.
        self._autosave.flush(task)
        self._renderer.save_waiting()

    def close(self) -> None:
        """Save everything and release the folder; a render can be resumed later."""
        with self.lock:
            if self._state.closed:
                return
            self._autosave.flush(self._autosave.create_task(now=True))
            self._state.closed = True
            self.judge.stop()
            self._state.word_timing.close()
            self._renderer.close()
            self._autosave.close()
            self.folder.close()
            self.events.close()

    @contextmanager
    def changing(self, *, waits: bool = True) -> Iterator[None]:
        """Hold the lock for changes, and wait without it until the disk has them.

        Args:
            waits: Whether to wait; else they may be lost with the machine's power for a second.
        """
        with self.lock:
            if self._state.closed:
                raise build_closed_error()
            waits, self._nesting = waits and not self._nesting, self._nesting + 1
            try:
                yield
            finally:
                self._nesting -= 1
        if waits:
            self._state.journal.sync()

    def _refresh_context(self) -> None:
        """Refresh the voices, and publish the lines whose state changed."""
        previous, context = self._state.voice_resolver.refresh(self.document)
        if previous is None or previous is context:
            return
        changed = list(previous.find_changed(context, self.document))
        self._renderer.restart_changed(changed)
        for line_id in changed:
            self.events.append(LineEvent(line_id))
