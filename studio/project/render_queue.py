"""The renders of a project: the queue of wanted lines, their jobs, and their takes."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from studio.audio.clip import STUDIO_RATE_HZ
from studio.errors import BadInput, LimitReached, StorageFailed, StudioError
from studio.project import folder as layout
from studio.project.autosave import Autosave
from studio.project.document import LineKind
from studio.project.event_log import LineEvent, RenderEvent
from studio.project.history import EntryKind, HistoryStep
from studio.project.line_job import (
    LineJob,
    LineJobSpec,
    RenderDeps,
    choose_retry_seed,
    is_retry,
    save_take,
    start_line_job,
)
from studio.project.line_states import LineFailure
from studio.project.project_state import STUDIO_AUTHOR, ProjectState
from studio.project.render_context import choose_stable_seed
from studio.project.takes import Take
from studio.quality.checks import score_issues

# The render of a project: which lines are wanted, which are on their way, and which failed.
#
# Lines are given to the engine a few at a time, so that what waits can still be edited, left out or
# moved to the front. All methods are called under the session's lock.

log = logging.getLogger(__name__)

_LINES_PER_SLOT = 3
"""Lines that wait in the engine for each that is spoken, so that no slot is ever idle."""


@dataclass(slots=True)
class RenderProgress:
    """A render in figures, from its first line to its last; later requests join it."""

    total: int = 0
    done: int = 0
    failed: int = 0
    audio_s: float = 0.0
    began_s: float = field(default_factory=time.monotonic)
    first_audio_s: float | None = None
    ended_s: float | None = None
    cancelled: bool = False
    message: str | None = None

    @property
    def wall_s(self) -> float:
        """Seconds since it began, or that it took."""
        return (self.ended_s if self.ended_s is not None else time.monotonic()) - self.began_s


class RenderQueue:
    """What a project still has to make."""

    def __init__(
        self,
        core: ProjectState,
        recipe_of: Callable[[str, int | None], LineJobSpec | None],
        notify: Callable[[LineJob], None],
    ) -> None:
        """Nothing is wanted yet.

        Args:
            core: The project; what is wanted and made is written there.
            recipe_of: How a line is made, with a new seed or its own; None when it needn't be.
            notify: Told on the engine's loop when a line begins to speak and when it ends.
        """
        self._project_id = core.folder.root.name
        self._engine = core.deps.engine
        self._build_spec = recipe_of
        self._notify = notify
        self._queued, self._line_jobs = core.queued, core.line_jobs
        self._failures = core.line_states.failures
        self.progress: RenderProgress | None = None
        self._play_head: str | None = None

    @property
    def busy(self) -> bool:
        """Whether anything is still to be made."""
        return bool(self._queued)

    def enqueue(self, lines: Mapping[str, int | None]) -> None:
        """Ask for lines, each with a new seed or its own; those wanted already stay as they are."""
        fresh = {line_id: seed for line_id, seed in lines.items() if line_id not in self._queued}
        if fresh and (self.progress is None or self.progress.ended_s is not None):
            self.progress = RenderProgress()
            log.info("project %s: a render of %d lines begins", self._project_id, len(fresh))
        if self.progress is not None:
            self.progress.total += len(fresh)
        for line_id in fresh:
            self._failures.pop(line_id, None)
        self._queued.update(fresh)

    def set_play_head(self, line_id: str) -> None:
        """Somebody listens there: that line and what follows go first."""
        self._play_head = line_id
        making = self._line_jobs.get(line_id)
        if making is not None:
            self._engine.focus(making.job, 0)

    def submit_lines(self, order: Iterable[str], build_deps: Callable[[], RenderDeps]) -> list[str]:
        """Give the engine as many lines as it can take.

        Args:
            order: Line ids as they are heard.
            build_deps: With what lines are made.

        Returns:
            Lines that turned out not to need making.
        """
        needless = []
        for line_id in self._next_lines(order):
            recipe = self._build_spec(line_id, self._queued[line_id])
            is_at_play_head = line_id == self._play_head
            if (
                recipe is not None
                and len(self._line_jobs) >= self._count_places(recipe)
                and not is_at_play_head
            ):
                break
            if recipe is None:
                self.complete(line_id)
                needless.append(line_id)
                continue
            try:
                self._line_jobs[line_id] = start_line_job(
                    recipe, build_deps(), self._notify, listen=is_at_play_head
                )
            except LimitReached as error:
                # The lines behind this one would be refused, too, each for itself.
                return needless + self.cancel(str(error))
            except StudioError as error:
                self.fail(line_id, recipe.key, str(error))
                needless.append(line_id)
        self._end_if_idle()
        return needless

    def complete(
        self, line_id: str, audio_s: float | None = None, further_seed: int | None = None
    ) -> None:
        """A line has its take, or needs none; it is wanted no more, or once more with a seed."""
        self._queued.pop(line_id, None)
        self._line_jobs.pop(line_id, None)
        if further_seed is not None:
            self._queued[line_id] = further_seed
        if self.progress is not None:
            self.progress.total += further_seed is not None
            self.progress.done += audio_s is not None
            self.progress.total -= audio_s is None
            self.progress.audio_s += audio_s or 0.0
        self._end_if_idle()

    def fail(self, line_id: str, key: str, message: str) -> None:
        """A line can't be made; says why as long as the line has this key."""
        self._failures[line_id] = LineFailure(key, message)
        self._queued.pop(line_id, None)
        self._line_jobs.pop(line_id, None)
        if self.progress is not None:
            self.progress.failed += 1
        self._end_if_idle()

    def record_first_audio(self, making: LineJob) -> None:
        """A line ended; the first of a render tells when its first sound was there."""
        first_chunk_s = making.job.records[0].first_chunk_s
        if (
            self.progress is None
            or self.progress.first_audio_s is not None
            or first_chunk_s is None
        ):
            return
        since_s = making.job.measure_elapsed_s() - first_chunk_s
        self.progress.first_audio_s = max(0.0, self.progress.wall_s - since_s)

    def cancel_line(self, line_id: str) -> None:
        """Stop making a line that was changed; it stays wanted."""
        making = self._line_jobs.pop(line_id, None)
        if making is not None:
            making.is_dropped = True
            self._engine.cancel(making.job)

    def cancel(self, message: str | None = None) -> list[str]:
        """Want nothing more; returns the lines that were wanted."""
        dropped = list(self._queued)
        for line_id in dropped:
            self.cancel_line(line_id)
        self._queued.clear()
        if self.progress is not None and self.progress.ended_s is None:
            self.progress.cancelled, self.progress.message = True, message
            self._end_if_idle()
        return dropped

    def _next_lines(self, order: Iterable[str]) -> list[str]:
        """Wanted lines that nobody makes yet, the play-head's first."""
        waiting = self._queued.keys() - self._line_jobs.keys()
        if not waiting:
            return []
        order = list(order)
        start = order.index(self._play_head) if self._play_head in order else 0
        ahead = [line_id for line_id in order[start:] + order[:start] if line_id in waiting]
        gone = waiting.difference(ahead)
        return ahead + [line_id for line_id in self._queued if line_id in gone]

    def _count_places(self, recipe: LineJobSpec) -> int:
        slots = self._engine.models.get_manager(recipe.backend).backend.capabilities.slots
        return _LINES_PER_SLOT * (slots or self._engine.max_concurrency)

    def _end_if_idle(self) -> None:
        if not self._queued and self.progress is not None and self.progress.ended_s is None:
            self.progress.ended_s = time.monotonic()
            self._report_end(self.progress)

    def _report_end(self, run: RenderProgress) -> None:
        self._engine.report_render(run.wall_s, run.first_audio_s)
        log.info(
            "project %s: the render %s: %d of %d lines, %.1f s of audio in %.2f s, first after "
            "%.3f s, %d failed%s",
            self._project_id,
            "was stopped" if run.cancelled else "is done",
            run.done,
            run.total,
            run.audio_s,
            run.wall_s,
            run.first_audio_s or 0.0,
            run.failed,
            f" ({run.message})" if run.message else "",
        )


_PARTIAL_TAKE_MESSAGE = "What was spoken until then is among the line's takes."


class ProjectRenderer:
    """Public methods are called under the session's lock."""

    def __init__(
        self, core: ProjectState, keeping: Autosave, further: Callable[[HistoryStep], object]
    ) -> None:
        """Nothing is rendered yet.

        Args:
            core: The project.
            keeping: Keeps on disk what is wanted.
            further: Told when a further take of a line was chosen, which is a step of undo.
        """
        self._state = core
        self._autosave = keeping
        self._on_step = further
        # By line, the request for further takes that it is in; and those that made a step already.
        self._requests: dict[str, str] = {}
        self._requests_in_history: set[str] = set()
        self.queue = RenderQueue(core, self._build_spec, self._on_job_event)

    def render(
        self, line_ids: Iterable[str] | None, *, again: bool, listen_from: str | None
    ) -> None:
        """Make what is missing or stale; what fits already is chosen.

        Raises:
            NotFound: A line was deleted.
            BadInput: `again` without lines.
            StorageFailed: What is wanted can't be kept; nothing is begun then.
        """
        if again and line_ids is None:
            raise BadInput("Say which lines are to be spoken again.")
        core = self._state
        ids = [core.line(one).line_id for one in core.document.order if line_ids is None]
        ids += [core.line(one).line_id for one in line_ids or ()]
        if not again:
            core.choose_current_takes(ids)
        wanted = {
            one: secrets.randbelow(2**31) if again else None
            for one in ids
            if self._is_to_make(one, again=again)
        }
        self._group_requests(wanted)
        self._autosave.save_pending({**wanted, **core.queued})
        self.queue.enqueue(wanted)
        if listen_from is not None and listen_from in core.document.lines:
            self.queue.set_play_head(listen_from)
        self.submit_lines()
        core.publish_lines(wanted)
        core.events.publish(RenderEvent())

    def resume(self) -> None:
        """Go on with what a render had left to do when the studio ended."""
        core = self._state
        pending = self._autosave.pending.items()
        wanted = {one: seed for one, seed in pending if one in core.document.lines}
        self._group_requests(wanted)
        self.queue.enqueue(wanted)
        self.submit_lines()

    def cancel(self, message: str | None = None) -> None:
        """Stop the render; what was made stays.

        Raises:
            StorageFailed: The disk still says that it is to go on.
        """
        self._state.publish_lines(self.queue.cancel(message))
        self._state.events.publish(RenderEvent())
        self._autosave.save_pending({})

    def focus(self, line_id: str) -> None:
        """Somebody listens there: it goes first.

        Raises:
            NotFound: The line was deleted.
        """
        self.queue.set_play_head(self._state.line(line_id).line_id)
        self.submit_lines()

    def _group_requests(self, wanted: Mapping[str, int | None]) -> None:
        """Further takes that are asked for together are one step of undo."""
        request = secrets.token_hex(6)
        self._requests |= {one: request for one, seed in wanted.items() if seed is not None}

    def restart_changed(self, line_ids: Iterable[str]) -> None:
        """Lines that are being made and were changed are made of what they say now."""
        core = self._state
        for line_id in line_ids:
            making, line = core.line_jobs.get(line_id), core.document.lines.get(line_id)
            if making and (
                line is None
                or making.spec.key != core.line_states.get_key(line, core.get_render_context())
            ):
                self.queue.cancel_line(line_id)
        self.submit_lines()

    def submit_lines(self) -> None:
        """Give the engine what it can take."""
        self._state.publish_lines(
            self.queue.submit_lines(self._state.document.order, self._build_deps)
        )

    def _on_job_event(self, making: LineJob) -> None:
        """The engine has news of a line; called on its loop, which must not wait."""
        if not self._state.closed:
            self._state.deps.threads.submit(self._handle_event, making)

    def _handle_event(self, making: LineJob) -> None:
        try:
            self._update_job(making)
        # Nobody waits for this thread: a fault that it ends with would leave the line waiting.
        except Exception as error:
            log.exception("project %s line %s", self._state.folder.root.name, making.line_id)
            self._fail_unexpectedly(making, error)

    def _fail_unexpectedly(self, making: LineJob, error: Exception) -> None:
        core = self._state
        with core.lock:
            if core.closed or core.line_jobs.get(making.line_id) is not making:
                return
            reason = f"{type(error).__name__}: {error}"
            message = f"The studio failed on this line ({reason}). Read it again."
            self.queue.fail(making.line_id, making.spec.key, message)
            self.submit_lines()
            core.events.publish(LineEvent(making.line_id))
            if not self.queue.busy:
                core.events.publish(RenderEvent())

    def _update_job(self, making: LineJob) -> None:
        with self._state.lock:
            if making.is_finished:
                return
            making.is_finished = making.job.events.closed
            is_needed = not (self._state.closed or making.is_dropped)
            if is_needed and not making.is_finished and not making.has_started:
                making.has_started = True
                self._state.events.publish(LineEvent(making.line_id))
        if making.is_finished and is_needed:
            self._finish(making)
        elif making.is_finished:
            self._state.folder.disk.remove(making.job.spec.folder)

    def _finish(self, making: LineJob) -> None:
        """A job ended by itself."""
        if making.job.fatal_message is not None:
            self._fail_all(making.job.fatal_message)
        elif making.job.cancelled:
            # Nobody here cancelled it: somebody stopped the model's load.
            self._stop("The model's load was stopped.")
        else:
            self._save_take(making)

    def _save_take(self, making: LineJob) -> None:
        """Keep a line's take, or say why there is none. Writes without the lock."""
        take, message = None, making.message
        if message is None or making.is_cut:
            try:
                take = save_take(making, self._state.take_store, self._state.folder.disk)
            except StorageFailed as error:
                message = f"{message or ''} {error}".strip()
            else:
                message = f"{message} {_PARTIAL_TAKE_MESSAGE}" if message else None
        if take is None:
            self._state.folder.disk.remove(making.job.spec.folder)
        with self._state.lock:
            if self._state.closed:
                return
            if take is not None and not take.cut:
                self._try_to_choose(take, again=making.spec.is_extra_take)
            if self._state.line_jobs.get(making.line_id) is making:
                self.queue.record_first_audio(making)
                if take is not None and not take.cut:
                    audio_s = take.samples / STUDIO_RATE_HZ
                    self.queue.complete(making.line_id, audio_s, self._choose_retry_seed(take))
                else:
                    self.queue.fail(making.line_id, making.spec.key, message or "")
            self.submit_lines()
            self._state.events.publish(LineEvent(making.line_id))
            if not self.queue.busy:
                self._state.publish_lines(self._state.line_states.outliers.refresh())
                self._state.events.publish(RenderEvent())

    def _fail_all(self, message: str) -> None:
        """Without a model every line would fail for itself: they fail together."""
        core = self._state
        with core.lock:
            lines = [core.document.lines[one] for one in core.queued if one in core.document.lines]
            self._stop(message)
            for line in lines:
                self.queue.fail(
                    line.line_id, core.line_states.get_key(line, core.get_render_context()), message
                )
            core.publish_lines(line.line_id for line in lines)

    def _stop(self, message: str) -> None:
        with self._state.lock:
            try:
                self.cancel(message)
            except StorageFailed as error:
                self._autosave.report(str(error))

    def _try_to_choose(self, take: Take, *, again: bool) -> None:
        """A take that can't be chosen now, since the disk is full, is there nevertheless."""
        try:
            self._choose(take, again=again)
        except StorageFailed as error:
            self._autosave.report(str(error))

    def _choose(self, take: Take, *, again: bool) -> None:
        """Let a take be heard, unless the line went away or was locked meanwhile."""
        core = self._state
        line = core.document.lines.get(take.line_id)
        if line is None or line.locked:
            return
        is_ready = core.line_states.is_ready(line, core.document, core.get_render_context())
        if is_ready and core.line_states.get_key(line, core.get_render_context()) != take.key:
            return
        if is_ready and is_retry(take, core.line_states.list_takes(line.line_id, core.document)):
            previous = core.line_states.find_chosen(line, core.document)
            if previous is not None and self._score(take) >= self._score(previous):
                return
            again = False
        chosen = replace(line, chosen=take.take_id)
        if line.seed is not None:
            chosen = replace(chosen, seed=take.seed)
        after = replace(core.document, lines={**core.document.lines, line.line_id: chosen})
        # A further take stands in for one that was good: that is a step one can take back.
        request = self._requests.pop(line.line_id, None) if again else None
        is_step = again and is_ready and not self._has_later_edit(request)
        author = replace(STUDIO_AUTHOR, group=request)
        step = core.record(after, author, EntryKind.EDIT if is_step else EntryKind.MADE)
        if step is not None and is_step:
            self._requests_in_history |= {request} if request else set()
            self._on_step(step)

    def _score(self, take: Take) -> float:
        return score_issues(self._state.line_states.outliers.find_issues(take))

    def _choose_retry_seed(self, take: Take) -> int | None:
        """The seed of one more try, where a take is doubtful and the project asks for that."""
        core = self._state
        line, most = core.document.lines.get(take.line_id), core.document.settings.tries
        if most == 1 or line is None or line.locked or line.seed is not None:
            return None
        if (
            core.line_states.get_key(line, core.get_render_context()) != take.key
            or self._score(take) == 0
        ):
            return None
        return choose_retry_seed(take, core.take_store.list_for_line(line.line_id), most)

    def _has_later_edit(self, request: str | None) -> bool:
        """Whether somebody edited on top of a request's step: undo is to meet that edit first."""
        last = self._state.history.marks.last
        is_on_top = last is not None and last[:2] == (STUDIO_AUTHOR.client, request)
        return request in self._requests_in_history and not is_on_top

    def _build_spec(self, line_id: str, seed: int | None) -> LineJobSpec | None:
        """How a line is made; None where there is nothing to make, also since a take fits."""
        core = self._state
        line = core.document.lines.get(line_id)
        if line is None or not self._is_to_make(line_id, again=seed is not None):
            return None
        ground = core.get_render_context()
        again = seed is not None
        gone = None if again else core.line_states.find_freed(line, core.document, ground)
        fitting = core.line_states.find_current(line, core.document, ground, seed)
        if fitting is not None and gone is None:
            self._try_to_choose(fitting, again=again)
            return None
        settled = choose_stable_seed(line, core.document.settings.seed) if seed is None else seed
        if seed is None and line.seed is None:
            # With the same seed it would be cut off as before.
            settled = (settled + core.line_states.count_cut(line, core.document, ground)) % 2**31
        recipe = LineJobSpec(
            line,
            core.line_states.get_key(line, ground),
            settled,
            ground.voice_label(line),
            ground.backend[0],
            again,
            ground.resolve_language(line),
            ground.pronouncing.spoken,
        )
        gone = gone or core.line_states.find_freed(line, core.document, ground, settled)
        return replace(recipe, seed=gone.seed, take_id=gone.take_id) if gone else recipe

    def _is_to_make(self, line_id: str, *, again: bool) -> bool:
        core = self._state
        line, ground = core.line(line_id), core.get_render_context()
        if line.kind is LineKind.SILENCE:
            return False
        if line.locked:
            # Nothing but the very take it was locked with, should that be gone.
            return (
                not again and core.line_states.find_freed(line, core.document, ground) is not None
            )
        return again or not core.line_states.is_ready(line, core.document, ground)

    def _build_deps(self) -> RenderDeps:
        root = self._state.folder.root
        return RenderDeps(
            self._state.deps.engine,
            self._state.voice_resolver.build_cast(self._state.document),
            root / layout.SEGMENTS_FOLDER,
            root / layout.AUDIO_FOLDER,
            self._state.folder.disk,
        )
