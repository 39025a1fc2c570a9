"""Renders the lines of a project: submits them to the engine, and saves the results as takes."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import VARIED_SEEDS
from studio.dialog.model import Dialog
from studio.dialog.planning import plan
from studio.engine.engine import Render, generate_job_id
from studio.engine.job import JobEvent, JobSpec, SegmentState
from studio.engine.renderer import derive_quality_retry_seed
from studio.errors import (
    AudioRejected,
    BadInput,
    DiskFull,
    LimitReached,
    StorageFailed,
    StudioError,
    hide_folders,
)
from studio.project import folder as layout
from studio.project.disk_wait import DiskWait
from studio.project.document import LineKind, ProjectLine, check_audio_name
from studio.project.document_editor import DocumentEditor
from studio.project.history import EntryKind
from studio.project.line_states import (
    STUDIO_AUTHOR,
    Autosave,
    LineEvent,
    ProjectState,
    RenderEvent,
    StorageEvent,
)
from studio.project.render_context import choose_stable_seed
from studio.project.render_queue import LineJob, LineJobSpec, RenderProgress, write_take
from studio.project.take_recognition import TakeRecognition
from studio.project.takes import Take, describe_same
from studio.quality.checks import score_issues

log = logging.getLogger(__name__)

_SEGMENTS_PER_SLOT = 3
"""Segments of lines submitted for each slot of the engine, so that no slot is ever idle.

A line of 100,000 characters has hundreds: others that are planned as well would only wait.
"""

_PARTIAL_TAKE_MESSAGE = "What was spoken until then is among the line's takes."


class ProjectRenderer:
    """The render of a project; public methods are called under the session's lock.

    A line waits in the project's queue until the engine has room for it. The engine reports its job
    on its own loop, which must not block; so a thread handles the event, saves the take without the
    lock, and submits the next lines.
    """

    def __init__(self, core: ProjectState, editor: DocumentEditor, autosave: Autosave) -> None:
        """Start with no render.

        Args:
            core: The project, whose queue only the renderer changes.
            editor: Publishes the step of undo that a further take makes.
            autosave: Saves the queue.
        """
        self._state = core
        self._queue = core.render_queue
        self._engine = core.deps.engine
        self._editor = editor
        self._autosave = autosave
        # By line, its request for further takes; and the requests that have made their step.
        self._requests: dict[str, str] = {}
        self._requests_in_history: set[str] = set()
        self.recognition = TakeRecognition(core, self._reconsider)
        self._disk_wait = DiskWait(
            core, save=self._save_take, drop=self._drop_job, submit=self.submit_lines
        )

    def render(
        self, line_ids: Iterable[str] | None, *, again: bool, listen_from: str | None
    ) -> None:
        """Render lines without a take or with a stale one; matching takes are chosen.

        Raises:
            BadInput: `again` without lines.
            StorageFailed: The queue can't be saved; nothing is started.
        """
        if again and line_ids is None:
            raise BadInput("Say which lines are to be spoken again.")
        core = self._state
        chosen = core.document.order if line_ids is None else line_ids
        ids = [core.line(one).line_id for one in chosen]
        if not again:
            core.choose_current_takes(ids)
        backend = self._engine.models.get_manager(core.line_states.context.backend[0]).backend
        first, end = backend.capabilities.take_seeds
        wanted = {
            one: first + secrets.randbelow(end - first) if again else None
            for one in ids
            if self._is_to_make(core.line(one), again=again)
        }
        self._autosave.save_pending({**wanted, **self._queue.queued})
        self._enqueue(wanted)
        if listen_from is not None and listen_from in core.document.lines:
            self._set_play_head(listen_from)
        if self._queue.shortage is not None:
            core.deps.threads.submit(self.save_waiting)
        self.submit_lines()
        core.publish_lines(wanted)
        core.events.append(RenderEvent())

    def resume(self) -> None:
        """Resume a render that the end of the studio interrupted."""
        pending = self._autosave.pending.items()
        self._enqueue({one: seed for one, seed in pending if one in self._state.document.lines})
        self.submit_lines()

    def cancel(self, message: str | None = None) -> None:
        """Stop the render; finished takes stay."""
        self._state.publish_lines(self._clear_queue(message))
        self._report_end()
        self._autosave.save_pending({})

    def close(self) -> None:
        """Stop the jobs in the engine; their lines stay queued."""
        for line_id in list(self._queue.line_jobs):
            self._drop_job(line_id)

    def save_waiting(self) -> None:
        """Go on with a render that waits for room, if there is some; without the lock."""
        self._disk_wait.save_waiting()

    def focus(self, line_id: str) -> None:
        """Move the play-head: that line goes first."""
        self._set_play_head(self._state.line(line_id).line_id)
        self.submit_lines()

    def restart_changed(self, line_ids: Iterable[str]) -> None:
        """Restart the jobs of lines that were changed."""
        core, line_jobs = self._state, self._queue.line_jobs
        for line_id in [one for one in line_ids if one in line_jobs]:
            line = core.document.lines.get(line_id)
            if line is None or line_jobs[line_id].spec.key != core.line_states.get_key(line):
                self._drop_job(line_id)
        self.submit_lines()
        if self._queue.queued and self._queue.estimate(core.document.lines):
            core.events.append(RenderEvent())

    def submit_lines(self) -> None:
        """Submit as many lines as the engine can take; none while the disk has no room."""
        core, queue = self._state, self._queue
        if queue.shortage is not None:
            return
        settled = []
        for line_id in queue.list_waiting(core.document.order):
            spec = self._build_spec(line_id, queue.queued[line_id])
            if spec is None:
                queue.complete(line_id)
                settled.append(line_id)
                continue
            listen = line_id == queue.play_head
            if not (listen or self._has_room(spec.backend)):
                break
            try:
                queue.line_jobs[line_id] = self._start(spec, listen=listen)
            except LimitReached as error:
                # The lines after this one would be refused, too, one by one.
                settled += self._clear_queue(str(error))
                break
            except DiskFull as error:
                self._disk_wait.set_shortage(error)
                break
            except StudioError as error:
                queue.fail(line_id, spec.key, str(error))
                settled.append(line_id)
        core.publish_lines(settled)
        self._report_end()

    def _enqueue(self, wanted: Mapping[str, int | None]) -> None:
        # Further takes that are requested together are one step of undo.
        request = secrets.token_hex(6)
        self._requests |= {one: request for one, seed in wanted.items() if seed is not None}
        if self._queue.enqueue(wanted):
            name, n_lines = self._state.folder.root.name, len(self._queue.queued)
            log.info("project %s: a render of %d lines begins", name, n_lines)

    def _set_play_head(self, line_id: str) -> None:
        self._queue.play_head = line_id
        line_job = self._queue.line_jobs.get(line_id)
        if line_job is not None:
            self._engine.focus(line_job.job, 0)

    def _drop_job(self, line_id: str) -> None:
        """Stop the job of a line, which stays queued."""
        line_job = self._queue.drop_job(line_id)
        if line_job is None:
            return
        line_job.is_dropped = True
        line_job.render.stop()
        if line_job in self._queue.unsaved:
            self._queue.unsaved.remove(line_job)
            line_job.remove_segments()

    def _clear_queue(self, message: str | None) -> list[str]:
        """Empty the queue; returns its lines."""
        self.close()
        had_room = self._queue.shortage is None
        dropped = self._queue.clear(message)
        if not had_room:
            self._state.events.append(StorageEvent())
        return dropped

    def _report_end(self) -> None:
        """Tell all, once nothing is left to make, whether lines were finished or deleted."""
        run = self._queue.end_if_idle()
        if run is None:
            return
        self._state.publish_lines(self._state.outliers.refresh())
        self._state.events.append(RenderEvent())
        self._state.word_timing.pump()
        self._engine.report_render(run.wall_s, run.first_audio_s)
        log.info(
            "project %s: the render %s: %d of %d lines, %.1f s of audio in %.2f s, device busy "
            "for %.2f s, first after %.3f s, %d failed%s",
            self._state.folder.root.name,
            "was stopped" if run.cancelled else "is done",
            run.done,
            run.total,
            run.audio_s,
            run.wall_s,
            run.busy.total_s,
            run.first_audio_s or 0.0,
            run.failed,
            f" ({run.message})" if run.message else "",
        )

    def _has_room(self, backend: str) -> bool:
        """Whether another line is submitted to the engine."""
        slots = self._engine.models.get_manager(backend).backend.capabilities.slots
        most = _SEGMENTS_PER_SLOT * (slots or self._engine.max_concurrency)
        return sum(max(1, one.job.n_open) for one in self._queue.line_jobs.values()) < most

    # Jobs

    def _build_spec(self, line_id: str, seed: int | None) -> LineJobSpec | None:
        """The spec of a line's job; None if there is nothing to make or a take matches."""
        core, again = self._state, seed is not None
        document, lines, context = core.document, core.line_states, core.line_states.context
        line = document.lines.get(line_id)
        if line is None or not self._is_to_make(line, again=again):
            return None
        freed = None if again else lines.find_freed(line)
        fitting = lines.find_current(line, seed)
        if fitting is not None and freed is None:
            self._try_to_choose(fitting, again=again)
            return None
        settled = choose_stable_seed(line, document.settings.seed) if seed is None else seed
        if seed is None and line.seed is None:
            # With the same seed it would be cut off again.
            settled = (settled + lines.count_cut(line)) % 2**31
        spec = LineJobSpec(
            context.inherit(line),
            lines.get_key(line),
            settled,
            context.voice_label(line),
            context.backend[0],
            again,
            context.resolve_language(line),
            partial(context.pronounce, line),
            partial(context.build_spoken_words, line),
        )
        freed = freed or lines.find_freed(line, settled)
        return replace(spec, seed=freed.seed, take_id=freed.take_id) if freed else spec

    def _is_to_make(self, line: ProjectLine, *, again: bool) -> bool:
        core = self._state
        if line.kind is LineKind.SILENCE:
            return False
        if not again and core.line_states.is_recorded(line):
            return False
        if line.locked:
            # Only the take that it was locked with, if that was freed.
            return not again and core.line_states.find_freed(line) is not None
        return again or not core.line_states.is_ready(line)

    def _start(self, spec: LineJobSpec, *, listen: bool) -> LineJob:
        """Submit a line to the engine.

        Raises:
            StorageFailed: The disk has no room for its files.
            LimitReached: The visitor's limits don't allow it for now.
        """
        core, line = self._state, spec.line
        # Not the take's id: a dropped job may still be writing when the next one starts.
        job_id = generate_job_id()
        folder = core.folder.root / layout.SEGMENTS_FOLDER / job_id
        core.folder.disk.make_folder(folder)
        limits = self._engine.models.get_manager(spec.backend).backend.capabilities.limits()
        # Only a seed that the line names is passed in the line, as that one is never retried.
        own = spec.seed if line.seed is not None else None
        line = replace(line, seed=own, language=line.language or spec.language)
        dialog = Dialog((line.to_dialog_line(),))

        def follow(event: JobEvent) -> None:
            # Called on the engine's loop, so it must not block.
            # What is saved late makes room when all segments have begun.
            steps = {SegmentState.STARTED, SegmentState.SAVED}
            is_news = event.segment_idx is None or event.state in steps
            if is_news and not core.closed:
                core.deps.threads.submit(self._handle_event, line_job)

        run = self._queue.progress or RenderProgress()
        cast = core.voice_resolver.build_cast(core.document)
        planned = plan(
            dialog, limits, seed=spec.seed, moods_of=cast.list_moods, pronounce=spec.pronounce
        )
        job_spec = JobSpec(
            planned,
            spec.backend,
            cast,
            folder,
            self._resolve_audio,
            notify=follow,
            is_part=True,
            survives_full_disk=True,
            busy=run.busy,
        )
        remove_folder = core.folder.disk.remove
        render = Render(self._engine, job_spec, job_id=job_id, remove_folder=remove_folder)
        line_job = LineJob(spec, render, began_s=run.wall_s - render.job.measure_elapsed_s())
        render.start(listen=listen)
        return line_job

    def _resolve_audio(self, written: str) -> Path:
        try:
            path = self._state.folder.root / layout.AUDIO_FOLDER / check_audio_name(written)
        except BadInput as error:
            raise AudioRejected(str(error)) from error
        layout.check_recording(path)
        return path

    def _handle_event(self, line_job: LineJob) -> None:
        try:
            self._update_job(line_job)
        # Broad, as nobody joins this thread: an unhandled fault would leave the line waiting.
        except Exception as error:
            log.exception("project %s line %s", self._state.folder.root.name, line_job.line_id)
            self._fail_unexpectedly(line_job, error)

    def _fail_unexpectedly(self, line_job: LineJob, error: Exception) -> None:
        core, line_id = self._state, line_job.line_id
        with core.lock:
            if core.closed or self._queue.line_jobs.get(line_id) is not line_job:
                return
            reason = f"{type(error).__name__}: {error}"
            message = f"The studio failed on this line ({reason}). Read it again."
            self._queue.fail(line_id, line_job.spec.key, hide_folders(message))
            core.events.append(LineEvent(line_id))
            self.submit_lines()

    def _update_job(self, line_job: LineJob) -> None:
        with self._state.lock:
            if line_job.is_finished:
                return
            line_job.is_finished = line_job.job.events.closed
            is_needed = not (self._state.closed or line_job.is_dropped)
            if is_needed and not line_job.is_finished and not line_job.has_started:
                line_job.has_started = True
                self._state.events.append(LineEvent(line_job.line_id))
            if is_needed and not line_job.is_finished and self._has_room(line_job.spec.backend):
                self.submit_lines()
        if line_job.is_finished and is_needed:
            self._finish(line_job)
        elif line_job.is_finished:
            line_job.remove_segments()

    def _finish(self, line_job: LineJob) -> None:
        """Handle a job that ended by itself."""
        if line_job.job.fatal_message is not None:
            self._fail_all(line_job.job.fatal_message)
        elif line_job.job.cancelled:
            # It wasn't cancelled here, so the model's load was stopped.
            self._stop("The model's load was stopped.")
        else:
            self._save_take(line_job)

    def _fail_all(self, message: str) -> None:
        """Fail all queued lines at once, as without a model each would fail by itself."""
        core = self._state
        with core.lock:
            queued = self._queue.queued
            lines = [core.document.lines[one] for one in queued if one in core.document.lines]
            self._stop(message)
            for line in lines:
                self._queue.fail(line.line_id, core.line_states.get_key(line), message)
            core.publish_lines(line.line_id for line in lines)

    def _stop(self, message: str) -> None:
        with self._state.lock:
            try:
                self.cancel(message)
            except StorageFailed as error:
                self._autosave.report(str(error))

    # Takes

    def _save_take(self, line_job: LineJob) -> None:
        """Save a line's take, or record why there is none. Writes without the lock."""
        core, message = self._state, line_job.message
        try:
            if line_job.take is None and (message is None or line_job.is_cut):
                is_extra = line_job.spec.is_extra_take  # else the line asks for this seed
                others = core.line_states.list_takes(line_job.line_id) if is_extra else ()
                line_job.take = write_take(line_job, core.take_store, others)
        except DiskFull as error:
            self._disk_wait.hold(line_job, error)
            return
        except StorageFailed as error:
            message = f"{message or ''} {error}".strip()
        if line_job.take is not None and message is not None:
            message = f"{message} {_PARTIAL_TAKE_MESSAGE}"
        line_job.remove_segments()
        self._finish_line(line_job, message)
        take, spec = line_job.take, line_job.spec
        if take is not None and spec.line.kind is LineKind.SPEECH:
            core.word_timing.add(take, spec.view(take.text), spec.language)
        core.word_timing.pump()

    def _finish_line(self, line_job: LineJob, message: str | None) -> None:
        """Take a line out of the queue, and go on with others."""
        core, line_id = self._state, line_job.line_id
        with core.lock:
            if core.closed or not self._choose_new(line_job):
                return
            if line_job.take is not None:
                self.recognition.add([line_job.take])
            if self._queue.line_jobs.get(line_id) is line_job:
                self._complete(line_job, message)
            core.events.append(LineEvent(line_id))
            if not self._queue.queued:
                self._reconsider_outliers()
            self.submit_lines()
            if self._queue.queued and self._queue.estimate(core.document.lines):
                core.events.append(RenderEvent())

    def _choose_new(self, line_job: LineJob) -> bool:
        """Choose a new take; False if that has to wait for room."""
        take = line_job.take
        if take is None or take.cut or line_job.is_same:
            return True
        try:
            self._choose(take, again=line_job.spec.is_extra_take)
        except DiskFull as error:
            self._disk_wait.hold(line_job, error)
            return False
        except StorageFailed as error:
            self._autosave.report(str(error))  # the take still exists
        return True

    def _complete(self, line_job: LineJob, message: str | None) -> None:
        """Take a line whose job has ended out of the queue."""
        take, line_id = line_job.take, line_job.line_id
        self._queue.record_first_audio(line_job)
        if take is not None and line_job.is_same:
            self._queue.complete(line_id, take.samples / STUDIO_RATE_HZ)
            backend = self._engine.models.get_manager(take.backend).backend
            if self._queue.progress is not None:
                self._queue.progress.message = describe_same(backend.title)
        elif take is not None and not take.cut:
            audio_s = take.samples / STUDIO_RATE_HZ
            self._queue.complete(line_id, audio_s, self._choose_retry_seed(take))
        else:
            self._queue.fail(line_id, line_job.spec.key, message or "")

    def _try_to_choose(self, take: Take, *, again: bool) -> None:
        """Choose a take; if the disk is full the take still exists."""
        try:
            self._choose(take, again=again)
        except StorageFailed as error:
            self._autosave.report(str(error))

    def _choose(self, take: Take, *, again: bool) -> None:
        """Choose a take for a line, unless the line was deleted or locked meanwhile."""
        core = self._state
        line = core.document.lines.get(take.line_id)
        if line is None or line.locked:
            return
        if not again and core.line_states.is_recorded(line):
            return
        is_ready = core.line_states.is_ready(line)
        if is_ready and core.line_states.get_key(line) != take.key:
            return
        if is_ready and is_retry(take, core.line_states.list_takes(line.line_id)):
            previous = core.line_states.find_chosen(line)
            if previous is not None and self._score(take) >= self._score(previous):
                return
            again = False
        seed = line.seed if line.seed is None else take.seed
        chosen = replace(line, chosen=take.take_id, seed=seed)
        after = replace(core.document, lines={**core.document.lines, line.line_id: chosen})
        # A further take replaces a good one, which can be undone.
        request = self._requests.get(line.line_id) if again else None
        is_step = again and is_ready and not self._has_later_edit(request)
        author = replace(STUDIO_AUTHOR, group=request)
        step = core.record(after, author, EntryKind.EDIT if is_step else EntryKind.MADE)
        if again:
            self._requests.pop(line.line_id, None)
        if step is not None and is_step:
            self._requests_in_history |= {request} if request else set()
            self._editor.publish_step(step)

    def _has_later_edit(self, request: str | None) -> bool:
        """Whether an edit follows a request's step, so that undo has to undo that edit first."""
        last = self._state.history.marks.last
        is_on_top = last is not None and last[:2] == (STUDIO_AUTHOR.client, request)
        return request in self._requests_in_history and not is_on_top

    def _reconsider_outliers(self) -> None:
        """Judge the lines that stand out, or seemed to, now that all are there."""
        core = self._state
        outlying = core.outliers.refresh()
        core.publish_lines(outlying)
        for line_id in outlying if core.document.settings.tries > 1 else ():
            line = core.document.lines.get(line_id)
            if line is not None and (take := core.line_states.find_chosen(line)) is not None:
                self._reconsider(take, all_are_there=True)

    def _reconsider(self, take: Take, *, all_are_there: bool = False) -> None:
        """Choose among a line's tries again, now that more is known of a take."""
        core = self._state
        line = core.document.lines.get(take.line_id)
        if line is None or line.locked or line.chosen in core.document.accepted_takes:
            return
        tries = list_tries(take, core.line_states.list_takes(take.line_id))
        playable = [one for one in tries if not one.cut and not core.take_store.is_freed(one)]
        chosen = next((one for one in playable if one.take_id == line.chosen), None)
        best = min(playable, key=self._score, default=None)
        if chosen is not None and best is not None and self._score(best) < self._score(chosen):
            self._try_to_choose(best, again=False)
        seed = self._choose_retry_seed(take, all_are_there=all_are_there)
        if seed is not None and take.line_id not in self._queue.queued:
            self._queue.enqueue({take.line_id: seed})
            self.submit_lines()
            core.publish_lines([take.line_id])
            core.events.append(RenderEvent())

    def _score(self, take: Take) -> float:
        return score_issues(self._state.outliers.find_issues(take))

    def _choose_retry_seed(self, take: Take, *, all_are_there: bool = False) -> int | None:
        """The seed of a retry, if a take has quality issues and the settings allow a retry.

        While others are being spoken, the lines of a voice say too little of what is usual for it.
        """
        core = self._state
        line, most = core.document.lines.get(take.line_id), core.document.settings.tries
        if most == 1 or line is None or line.locked or line.seed is not None:
            return None
        if core.line_states.is_recorded(line):
            return None
        if core.line_states.get_key(line) != take.key:
            return None
        find = core.outliers.find_issues if all_are_there else core.outliers.find_own_issues
        if score_issues(find(take)) == 0:
            return None
        takes = core.take_store.list_for_line(line.line_id)
        can = self._engine.models.get_manager(take.backend).backend.capabilities
        return choose_retry_seed(take, takes, most, can.take_seeds[0])


def choose_retry_seed(take: Take, takes: Sequence[Take], most: int, least: int = 0) -> int | None:
    """The seed of the next try after a take.

    Args:
        take: A new take with quality issues.
        takes: All takes of its line.
        most: Most tries, the first included.
        least: As in `derive_quality_retry_seed`.

    Returns:
        None if there were as many already, or a take with that seed exists.
    """
    seeds = {one.seed for one in takes if one.key == take.key}
    follows = derive_quality_retry_seed(take.seed, least)
    if follows in seeds or len(_list_try_seeds(take, takes)) >= most:
        return None
    return follows


def list_tries(take: Take, takes: Sequence[Take]) -> list[Take]:
    """The takes of a line that are tries of the same request as this one, in order."""
    seeds = _list_try_seeds(take, takes)
    alike = [one for one in takes if one.key == take.key and one.seed in seeds]
    return sorted(alike, key=lambda one: seeds.index(one.seed))


def is_retry(take: Take, takes: Sequence[Take]) -> bool:
    """Whether a take is a retry of one with quality issues."""
    return _count_attempts(take, takes) > 1


def _count_attempts(take: Take, takes: Sequence[Take]) -> int:
    """The number of a take's try, from 1."""
    return _list_try_seeds(take, takes).index(take.seed) + 1


def _list_try_seeds(take: Take, takes: Sequence[Take]) -> list[int]:
    """The seeds of a take's request, each of which follows from the one before."""
    seeds = {take.seed} | {one.seed for one in takes if one.key == take.key}
    leasts = (0, VARIED_SEEDS[0])
    before = {derive_quality_retry_seed(seed, one): seed for seed in seeds for one in leasts}
    after = {seed: follows for follows, seed in before.items() if follows in seeds}
    chain = [take.seed]
    while (earlier := before.get(chain[0])) is not None and earlier not in chain:
        chain.insert(0, earlier)
    while (later := after.get(chain[-1])) is not None and later not in chain:
        chain.append(later)
    return chain
