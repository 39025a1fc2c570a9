"""An open project's state and its saving; each line's state: its take, its age, its issues."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import canonical_name
from studio.engine.event_log import EventLog
from studio.errors import NotFound, StorageFailed
from studio.project import folder as layout
from studio.project.cover import check_project_cover
from studio.project.document import Document, LineKind, ProjectLine, change_line, number_lines
from studio.project.folder import ProjectFolder
from studio.project.history import EVEN_LINES, Author, EntryKind, HistoryStep
from studio.project.render_context import ProjectDeps, RenderContext, VoiceResolver
from studio.project.render_queue import RenderQueue
from studio.project.snapshot import ProjectSnapshot
from studio.project.takes import Take, TakeStore, VoiceKey, build_voice_key
from studio.project.word_timing import WordTiming
from studio.quality.checks import IssueKind, QualityIssue, check_max_duration
from studio.quality.voice_drift import (
    VoiceBaseline,
    build_baseline,
    describe_distance,
    find_outliers,
)

_REFRESH_GROWTH = 1.1
"""Growth of a voice's takes after which its outliers are computed again."""
_SHOWN_SPOKEN_CHARS = 300
"""Limit of a line's spoken text, because the page gets all lines of a project at once."""


class VoiceOutliers:
    """Finds outliers among the takes of each voice of a project. Under the session's lock.

    Attributes:
        checks_off: Kinds of issues that aren't marked, each with its voice and language.
    """

    def __init__(
        self,
        take_store: TakeStore,
        find_line: Callable[[str], ProjectLine | None] = lambda _: None,
    ) -> None:
        self._take_store = take_store
        self._find_line = find_line
        self._baselines: dict[VoiceKey, tuple[int, VoiceBaseline | None]] = {}
        self._refreshed_counts: dict[VoiceKey, int] = {}
        self._known_outliers: set[str] = set()
        self.checks_off: frozenset[tuple[str, str | None, str]] = frozenset()

    def find_issues(self, take: Take) -> tuple[QualityIssue, ...]:
        """The quality issues of a take, by itself, compared with others, and for its line."""
        return self.find_own_issues(take, self._find_outliers(take))

    def find_own_issues(
        self, take: Take, outlying: tuple[QualityIssue, ...] = ()
    ) -> tuple[QualityIssue, ...]:
        """Those of a take by itself and for its line, with others that are known."""
        found = take.issues + outlying
        if take.samples == 0:
            found = (*found, QualityIssue(IssueKind.SILENT, 0.0, "This line has no sound."))
        if self.checks_off:
            of_voice = take.voice, take.language
            found = tuple(one for one in found if (*of_voice, one.kind) not in self.checks_off)
        if (line := self._find_line(take.line_id)) is None:
            return found
        return found + check_max_duration(take.samples / STUDIO_RATE_HZ, line.params)

    def describe_distance(self, take: Take) -> str:
        """How far a take is from its voice's other takes and from its sample; "" if unknown."""
        usual = self._baselines.get(build_voice_key(take), (0, None))[1]
        return "" if take.figures is None else describe_distance(take.figures, usual)

    def refresh(self) -> list[str]:
        """Update the baselines of voices with new takes, after a render.

        Returns:
            Lines with a take that is or was an outlier.
        """
        lines: set[str] = set()
        for voice in list(self._baselines):
            takes = self._take_store.list_for_voice(voice)
            if len(takes) == self._refreshed_counts.get(voice):
                continue
            self._refreshed_counts[voice] = len(takes)
            self._build_baseline(voice)
            before = frozenset(self._known_outliers)
            lines |= {
                one.line_id for one in takes if self._find_outliers(one) or one.take_id in before
            }
        return sorted(lines)

    def _find_outliers(self, take: Take) -> tuple[QualityIssue, ...]:
        if take.figures is None or take.cut:
            return ()
        voice = build_voice_key(take)
        n_known, usual = self._baselines.get(voice, (0, None))
        if self._take_store.count_for_voice(voice) > _REFRESH_GROWTH * n_known:
            usual = self._build_baseline(voice)
        found = find_outliers(take.figures, usual, canonical_name(take.backend))
        if found:
            self._known_outliers.add(take.take_id)
        return found

    def _build_baseline(self, voice: VoiceKey) -> VoiceBaseline | None:
        takes = self._take_store.list_for_voice(voice)
        usual = build_baseline(
            [take.figures for take in takes if take.figures is not None],
            takes[0].voice if takes and takes[0].voice else "this voice",
        )
        self._baselines[voice] = (len(takes), usual)
        return usual


class LineState(StrEnum):
    """The state of a line; `stale` if it has changed since its take was made."""

    NONE = "none"
    QUEUED = "queued"
    GENERATING = "generating"
    READY = "ready"
    STALE = "stale"
    FAILED = "failed"


class LineView(NamedTuple):
    """A line with its state, for the page.

    Attributes:
        message: Why it failed.
        take: The chosen take.
        n_takes: Number of takes, without deleted ones.
        samples: Length of the chosen take or of a silence; None without audio.
        generating_take_id: The id of the take that is being generated; None if none is.
        issues: The quality issues of the chosen take.
        spoken_text: The spoken text, if pronunciations change it, as far as it is shown.
    """

    line: ProjectLine
    state: LineState
    message: str | None
    take: Take | None
    n_takes: int
    samples: int | None
    generating_take_id: str | None = None
    issues: tuple[QualityIssue, ...] = ()
    spoken_text: str | None = None


class LineStates:
    """The states of a document's lines; created for each use. Under the session's lock."""

    def __init__(
        self, core: ProjectState, document: Document, context: RenderContext | None = None
    ) -> None:
        self._core = core
        self._document = document
        self._context = context

    @cached_property
    def _deleted(self) -> frozenset[str]:
        return frozenset(self._document.deleted_takes)

    @property
    def context(self) -> RenderContext:
        return self._context or self._core.voice_resolver.get_context(self._document)

    def get_key(self, line: ProjectLine) -> str:
        """A line's current key; cached for each state of the line and its context."""
        context, keys = self.context, self._core.keys
        known = keys.get(line.line_id)
        if known is None or known[0] is not line or known[1] is not context:
            if len(keys) > 2 * len(self._document.lines) + _SPARE_KEYS:
                keys.clear()  # of lines that were deleted, which keep contexts in memory
            known = keys[line.line_id] = (line, context, context.compute_key(line))
        return known[2]

    def build_view(self, line: ProjectLine) -> LineView:
        """A line with its current state."""
        take = self.find_chosen(line)
        state, message = self._state(line, take)
        samples = take.samples if take is not None else None
        if line.kind is LineKind.SILENCE:
            samples = round((line.duration_s or 0.0) * STUDIO_RATE_HZ)
        n_takes = len(self.list_takes(line.line_id))
        generating_id = None
        if state is LineState.GENERATING:
            generating_id = self._core.render_queue.line_jobs[line.line_id].spec.take_id
        issues = self._core.outliers.find_issues(take) if take is not None else ()
        spoken = self.context.find_changed_text(line, most_chars=_SHOWN_SPOKEN_CHARS)
        return LineView(line, state, message, take, n_takes, samples, generating_id, issues, spoken)

    def list_takes(self, line_id: str) -> list[Take]:
        """A line's takes except deleted ones, the oldest first; freed ones are included."""
        takes = self._core.take_store.list_for_line(line_id)
        return [take for take in takes if take.take_id not in self._deleted]

    def find_chosen(self, line: ProjectLine) -> Take | None:
        """The take that is played; None if there is none, or its audio was freed."""
        if line.chosen is None:
            return None
        take = self._core.take_store.get(line.chosen)
        if take is None or take.take_id in self._deleted or self._is_freed(take):
            return None
        return take

    def measure_audio_s(self) -> float:
        """Total duration of what can be played, with the gaps between."""
        lines = list(self._document)
        takes = [self.find_chosen(line) for line in lines]
        silence_s = sum((line.duration_s or 0.0 for line in lines), start=0.0)
        if not any(takes):
            return silence_s
        gaps_s = self._document.gaps.find(line.to_dialog_line() for line in lines)
        sounding_s = [gap_s for take, gap_s in zip(takes, gaps_s, strict=True) if take]
        silence_s += sum(sounding_s[1:])
        return silence_s + sum(take.samples for take in takes if take) / STUDIO_RATE_HZ

    def is_ready(self, line: ProjectLine) -> bool:
        """Whether its take matches its current text and voice."""
        take = self.find_chosen(line)
        return take is not None and self._is_current(line, take)

    def is_recorded(self, line: ProjectLine) -> bool:
        """Whether a person said its chosen take, so that only a person takes another one.

        A damaged one counts, too; one whose audio a person freed doesn't.
        """
        take, store = self._core.take_store.get(line.chosen), self._core.take_store
        if take is None or take.source is None or take.take_id in self._deleted:
            return False
        return store.is_damaged(take) or not store.is_freed(take)

    def find_current(self, line: ProjectLine, seed: int | None = None) -> Take | None:
        """The newest take that matches a line and a seed; with None, the line's own seed or any."""
        wanted = line.seed if seed is None else seed
        fits = [
            take
            for take in self.list_takes(line.line_id)
            if not take.cut
            and wanted in (None, take.seed)
            and self._matches_key(line, take)
            and not self._is_freed(take)
        ]
        return fits[-1] if fits else None

    def count_cut(self, line: ProjectLine) -> int:
        """How many matching takes of a line were cut off."""
        takes = self.list_takes(line.line_id)
        return sum(take.cut and self._matches_key(line, take) for take in takes)

    def find_freed(self, line: ProjectLine, seed: int | None = None) -> Take | None:
        """A freed take that matches: that of a seed, or with None the chosen one."""
        for take in self.list_takes(line.line_id):
            is_meant = take.take_id == line.chosen if seed is None else take.seed == seed
            is_meant = is_meant and take.source is None
            if is_meant and not take.cut and self._is_freed(take) and self._is_current(line, take):
                return take
        return None

    def choose_current(self, line_ids: Iterable[str]) -> Document:
        """Choose a matching take for lines whose chosen one doesn't match, if there is one.

        A matching take that was freed stays chosen, as the line waits for it to be rendered again.
        """
        lines = dict(self._document.lines)
        for line_id in line_ids:
            line = lines.get(line_id)
            if line is None or line.locked or line.kind is LineKind.SILENCE:
                continue
            if not self._core.take_store.list_for_line(line_id):
                continue
            if self.is_recorded(line) or self.is_ready(line) or self.find_freed(line):
                continue
            take = self.find_current(line)
            if take is not None:
                lines[line_id] = change_line(line, chosen=take.take_id)
        return replace(self._document, lines=lines)

    def _is_freed(self, take: Take) -> bool:
        return self._core.take_store.is_freed(take)

    def _is_current(self, line: ProjectLine, take: Take) -> bool:
        if take.source is not None:  # another engine or seed makes no other recording
            return take.text == line.text
        return line.seed in (None, take.seed) and self._matches_key(line, take)

    def _matches_key(self, line: ProjectLine, take: Take) -> bool:
        """Whether a take has a line's text and voice."""
        if take.key == self.get_key(line):
            return True
        return take.key in self.context.compute_legacy_keys(line, take.voice, take.backend)

    def _state(self, line: ProjectLine, take: Take | None) -> tuple[LineState, str | None]:
        if line.kind is LineKind.SILENCE:
            return LineState.READY, None
        queue = self._core.render_queue
        line_job = queue.line_jobs.get(line.line_id)
        if line_job is not None and line_job.has_started and line_job not in queue.unsaved:
            return LineState.GENERATING, None
        if line.line_id in queue.queued:
            return LineState.QUEUED, None
        if take is not None and self._is_current(line, take):
            return LineState.READY, None
        failure = queue.failures.get(line.line_id)
        if failure is not None and failure.key == self.get_key(line):
            return LineState.FAILED, failure.message
        chosen = self._core.take_store.get(line.chosen) if line.chosen is not None else None
        if chosen is not None and self._core.take_store.is_damaged(chosen):
            return LineState.FAILED, self._core.take_store.describe_damage(chosen)
        return (LineState.NONE if take is None else LineState.STALE), None


@dataclass(frozen=True, slots=True)
class EditEvent:
    """The document changed.

    Attributes:
        rev: The new revision.
        client: The client that changed it.
        line_ids: Lines that were added, deleted or changed, or whose state changed.
        order: Whether the order of lines changed.
        fields: Other fields of the document that changed.
        speakers: Whether the speakers or their voices may have changed.
    """

    rev: int
    client: str
    line_ids: tuple[str, ...] = ()
    order: bool = False
    fields: tuple[str, ...] = ()
    speakers: bool = False


@dataclass(frozen=True, slots=True)
class LineEvent:
    """A line's state changed."""

    line_id: str


@dataclass(frozen=True, slots=True)
class RenderEvent:
    """The render's state changed."""


@dataclass(frozen=True, slots=True)
class StorageEvent:
    """The project can't be saved to disk, or can be again."""


@dataclass(frozen=True, slots=True)
class PlayHead:
    """Where the play-head of the page is that said so last; it is kept in memory only."""

    line_id: str | None
    playing: bool


ProjectEvent = EditEvent | LineEvent | RenderEvent | StorageEvent

_MAX_EVENTS = 500
"""A page that lags behind by more events has to read the project again."""


STUDIO_AUTHOR = Author()
"""The author of changes that the studio makes by itself."""


class ProjectState:
    """A project's folder, history, takes and events. Its lock guards all but takes and events.

    Attributes:
        edit_ids: Ids of recent edits that took effect, the latest last.
        is_saved: Whether the snapshot on disk was complete when the project was opened.
    """

    def __init__(self, folder: ProjectFolder, tools: ProjectDeps) -> None:
        """Open a project's folder.

        Raises:
            StorageFailed: It can't be read.
        """
        self.folder = folder
        self.deps = tools
        self.lock = threading.RLock()
        opened = folder.open_history()
        self.history, self.journal = opened.history, opened.journal
        self.edit_ids = dict.fromkeys(opened.edit_ids)
        self.is_saved = opened.is_saved
        self.take_store = TakeStore(folder.root / layout.TAKES_FOLDER, folder.disk)
        lost = self.take_store.find_lost(self.document)
        folder.notices += list(_describe_problems(self.document, self.take_store, lost))
        check_project_cover(folder)
        with suppress(StorageFailed):  # the library can't be read, which each of its users says
            folder.notices += tools.library.list_unreadable()[:_MAX_VOICE_NOTICES]
        # Numbers rise over restarts, so that a page's old one is recognised.
        self.events: EventLog[ProjectEvent] = EventLog(_MAX_EVENTS, time.time_ns() // 1_000_000)
        self.voice_resolver = VoiceResolver(
            tools, evens_lines=self.journal.maker.endswith(EVEN_LINES)
        )
        self.render_queue = RenderQueue()
        self.word_timing = WordTiming(tools.word_timer, self.take_store, self.render_queue)
        self.outliers = VoiceOutliers(self.take_store, lambda one: self.document.lines.get(one))
        # The cached key of each line, with the line and the context that it is for.
        self.keys: dict[str, tuple[ProjectLine, RenderContext, str]] = {}
        self.closed = False

    @property
    def document(self) -> Document:
        return self.history.document

    @property
    def rev(self) -> int:
        return self.history.marks.rev

    @property
    def line_states(self) -> LineStates:
        return LineStates(self, self.document)

    def line(self, line_id: str) -> ProjectLine:
        """A line by its id.

        Raises:
            NotFound: It was deleted, or never existed.
        """
        line = self.document.lines.get(line_id)
        if line is None:
            raise NotFound("This line isn't there any more.")
        return line

    def record(
        self, after: Document, author: Author, kind: EntryKind = EntryKind.EDIT
    ) -> HistoryStep | None:
        """Record a document; None if it is the same as before."""
        return self.history.record(after, author, self.deps.now_s(), kind)

    def choose_current_takes(self, line_ids: Iterable[str]) -> None:
        """Choose matching takes for lines, where there are any."""
        after = self.line_states.choose_current(line_ids)
        step = self.record(after, STUDIO_AUTHOR, EntryKind.MADE)
        if step is not None:
            self.publish_lines(step.delta.lines)

    def publish_lines(self, line_ids: Iterable[str]) -> None:
        """Publish that the state of lines changed."""
        for line_id in line_ids:
            self.events.append(LineEvent(line_id))


_MAX_TAKE_NOTICES = 20
_MAX_VOICE_NOTICES = 5
_SPARE_KEYS = 100


def _describe_problems(
    document: Document, take_store: TakeStore, lost: Iterable[Take]
) -> Iterator[str]:
    """Notices of takes that are left out or have no audio, with the numbers of their lines."""
    problems = [
        (line_id, f"{problem} The take is left out; its files are kept.")
        for line_id, problem in take_store.problems
    ]
    known = {line_id for line_id, _ in problems}
    problems += [
        (line.line_id, "The record of its take isn't there any more.")
        for line in document
        if line.chosen is not None
        and line.line_id not in known
        and take_store.get(line.chosen) is None
    ]
    problems += [(take.line_id, take_store.describe_damage(take)) for take in lost]
    numbers = number_lines(document) if problems else {}
    for line_id, problem in problems[:_MAX_TAKE_NOTICES]:
        place = f"Line {numbers[line_id]}: " if line_id in numbers else ""
        yield f"{place}{problem}"
    more = len(problems) - _MAX_TAKE_NOTICES
    if more > 0:
        yield f"{more} further takes are left out for such reasons."


SNAPSHOT_INTERVAL_S = 15.0
"""Age at which a snapshot is written again; newer changes are in the journal."""


@dataclass(frozen=True, slots=True)
class FlushTask:
    """A consistent state to write to disk.

    Attributes:
        sequence: Order of the tasks; one that is older than the last written is dropped.
        queued: The lines that a render still has to make.
        snapshot: None if the one on disk is recent enough.
    """

    sequence: int
    queued: Mapping[str, int | None]
    snapshot: ProjectSnapshot | None = None


class Autosave:
    """Creates tasks under the session's lock, and writes them without it.

    Attributes:
        message: Why the project can't be saved; None while it can.
    """

    def __init__(self, core: ProjectState) -> None:
        self._state = core
        # Guards the fields below and the files. Taken after the session's lock, never before it.
        self._write_lock = threading.Lock()
        self._last_sequence = 0
        self._flushed_sequence = 0
        self._marks = core.history.marks if core.is_saved else None
        self._kept_s = time.monotonic() if core.is_saved else -math.inf
        self._pending: Mapping[str, int | None] | None = core.folder.read_pending()
        self._closed = False
        self.message: str | None = None

    @property
    def pending(self) -> Mapping[str, int | None]:
        """The lines still to be made, as saved on disk."""
        return self._pending or {}

    def create_task(self, *, now: bool) -> FlushTask:
        """Create a task; with a snapshot if one is due, or with `now`."""
        self._last_sequence += 1
        wanted = dict(self._state.render_queue.queued)
        history = self._state.history
        is_time = now or time.monotonic() - self._kept_s > SNAPSHOT_INTERVAL_S
        if not is_time or history.marks == self._marks:
            return FlushTask(self._last_sequence, wanted)
        size_bytes = self._state.journal.size_bytes
        audio_s = self._state.line_states.measure_audio_s()
        seen = tuple(self._state.edit_ids)
        snapshot = ProjectSnapshot(history.document, history.marks, size_bytes, seen, audio_s)
        return FlushTask(self._last_sequence, wanted, snapshot)

    def flush(self, task: FlushTask) -> None:
        """Write a task to disk; a failure is published to all pages and retried later."""
        with self._write_lock:
            if self._closed or task.sequence < self._flushed_sequence:
                return
            try:
                self._state.journal.sync()
                self._write_pending(task.sequence, task.queued)
                if task.snapshot is not None:
                    self._state.folder.save_snapshot(task.snapshot)
                    self._marks, self._kept_s = task.snapshot.marks, time.monotonic()
            except StorageFailed as error:
                self.report(str(error))
            else:
                self.report(None)

    def save_pending(self, wanted: Mapping[str, int | None]) -> None:
        """Save the lines that a render still has to make at once; under the session's lock."""
        self._last_sequence += 1
        with self._write_lock:
            self._write_pending(self._last_sequence, dict(wanted))

    def report(self, message: str | None) -> None:
        """Publish that the project can't be saved, or can be again."""
        if message != self.message:
            self.message = message
            self._state.events.append(StorageEvent())

    def close(self) -> None:
        """Stop writing, and close the journal."""
        with self._write_lock:
            self._closed = True
            self._state.journal.close()

    def _write_pending(self, turn: int, wanted: Mapping[str, int | None]) -> None:
        self._flushed_sequence = turn
        if wanted == self._pending:
            return
        self._pending = None  # unknown if the next line fails
        self._state.folder.write_pending(wanted)
        self._pending = wanted
