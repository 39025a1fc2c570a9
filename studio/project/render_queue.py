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
        self._engine = core.tools.engine
        self._recipe_of = recipe_of
        self._notify = notify
        self._wanted, self._making = core.wanted, core.making
        self._failures = core.lines.failures
        self.run: RenderProgress | None = None
        self._play_head: str | None = None

    @property
    def busy(self) -> bool:
        """Whether anything is still to be made."""
        return bool(self._wanted)

    def want(self, lines: Mapping[str, int | None]) -> None:
        """Ask for lines, each with a new seed or its own; those wanted already stay as they are."""
        fresh = {line_id: seed for line_id, seed in lines.items() if line_id not in self._wanted}
        if fresh and (self.run is None or self.run.ended_s is not None):
            self.run = RenderProgress()
            log.info("project %s: a render of %d lines begins", self._project_id, len(fresh))
        if self.run is not None:
            self.run.total += len(fresh)
        for line_id in fresh:
            self._failures.pop(line_id, None)
        self._wanted.update(fresh)

    def listen_at(self, line_id: str) -> None:
        """Somebody listens there: that line and what follows go first."""
        self._play_head = line_id
        making = self._making.get(line_id)
        if making is not None:
            self._engine.focus(making.job, 0)

    def fill(self, order: Iterable[str], kitchen: Callable[[], RenderDeps]) -> list[str]:
        """Give the engine as many lines as it can take.

        Args:
            order: Line ids as they are heard.
            kitchen: With what lines are made.

        Returns:
            Lines that turned out not to need making.
        """
        needless = []
        for line_id in self._next_lines(order):
            recipe = self._recipe_of(line_id, self._wanted[line_id])
            is_heard = line_id == self._play_head
            if recipe is not None and len(self._making) >= self._room(recipe) and not is_heard:
                break
            if recipe is None:
                self.settle(line_id)
                needless.append(line_id)
                continue
            try:
                self._making[line_id] = start_line_job(
                    recipe, kitchen(), self._notify, listen=is_heard
                )
            except LimitReached as error:
                # The lines behind this one would be refused, too, each for itself.
                return needless + self.cancel(str(error))
            except StudioError as error:
                self.fail(line_id, recipe.key, str(error))
                needless.append(line_id)
        self._end_if_idle()
        return needless

    def settle(
        self, line_id: str, audio_s: float | None = None, further_seed: int | None = None
    ) -> None:
        """A line has its take, or needs none; it is wanted no more, or once more with a seed."""
        self._wanted.pop(line_id, None)
        self._making.pop(line_id, None)
        if further_seed is not None:
            self._wanted[line_id] = further_seed
        if self.run is not None:
            self.run.total += further_seed is not None
            self.run.done += audio_s is not None
            self.run.total -= audio_s is None
            self.run.audio_s += audio_s or 0.0
        self._end_if_idle()

    def fail(self, line_id: str, key: str, message: str) -> None:
        """A line can't be made; says why as long as the line has this key."""
        self._failures[line_id] = LineFailure(key, message)
        self._wanted.pop(line_id, None)
        self._making.pop(line_id, None)
        if self.run is not None:
            self.run.failed += 1
        self._end_if_idle()

    def heard(self, making: LineJob) -> None:
        """A line ended; the first of a render tells when its first sound was there."""
        first_chunk_s = making.job.records[0].first_chunk_s
        if self.run is None or self.run.first_audio_s is not None or first_chunk_s is None:
            return
        since_s = making.job.elapsed_s() - first_chunk_s
        self.run.first_audio_s = max(0.0, self.run.wall_s - since_s)

    def drop(self, line_id: str) -> None:
        """Stop making a line that was changed; it stays wanted."""
        making = self._making.pop(line_id, None)
        if making is not None:
            making.dropped = True
            self._engine.cancel(making.job)

    def cancel(self, message: str | None = None) -> list[str]:
        """Want nothing more; returns the lines that were wanted."""
        dropped = list(self._wanted)
        for line_id in dropped:
            self.drop(line_id)
        self._wanted.clear()
        if self.run is not None and self.run.ended_s is None:
            self.run.cancelled, self.run.message = True, message
            self._end_if_idle()
        return dropped

    def _next_lines(self, order: Iterable[str]) -> list[str]:
        """Wanted lines that nobody makes yet, the play-head's first."""
        waiting = self._wanted.keys() - self._making.keys()
        if not waiting:
            return []
        order = list(order)
        start = order.index(self._play_head) if self._play_head in order else 0
        ahead = [line_id for line_id in order[start:] + order[:start] if line_id in waiting]
        gone = waiting.difference(ahead)
        return ahead + [line_id for line_id in self._wanted if line_id in gone]

    def _room(self, recipe: LineJobSpec) -> int:
        slots = self._engine.models.manager(recipe.backend).backend.capabilities.slots
        return _LINES_PER_SLOT * (slots or self._engine.max_concurrency)

    def _end_if_idle(self) -> None:
        if not self._wanted and self.run is not None and self.run.ended_s is None:
            self.run.ended_s = time.monotonic()
            self._tell_end(self.run)

    def _tell_end(self, run: RenderProgress) -> None:
        self._engine.count_render(run.wall_s, run.first_audio_s)
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
        self._core = core
        self._keeping = keeping
        self._further = further
        # By line, the request for further takes that it is in; and those that made a step already.
        self._requests: dict[str, str] = {}
        self._stepped: set[str] = set()
        self.rendering = RenderQueue(core, self._recipe, self._told)

    def want(self, line_ids: Iterable[str] | None, *, again: bool, listen_from: str | None) -> None:
        """Make what is missing or stale; what fits already is chosen.

        Raises:
            NotFound: A line was deleted.
            BadInput: `again` without lines.
            StorageFailed: What is wanted can't be kept; nothing is begun then.
        """
        if again and line_ids is None:
            raise BadInput("Say which lines are to be spoken again.")
        core = self._core
        ids = [core.line(one).line_id for one in core.document.order if line_ids is None]
        ids += [core.line(one).line_id for one in line_ids or ()]
        if not again:
            core.choose_fitting(ids)
        wanted = {
            one: secrets.randbelow(2**31) if again else None
            for one in ids
            if self._is_to_make(one, again=again)
        }
        self._note_request(wanted)
        self._keeping.keep_pending({**wanted, **core.wanted})
        self.rendering.want(wanted)
        if listen_from is not None and listen_from in core.document.lines:
            self.rendering.listen_at(listen_from)
        self.fill()
        core.post_lines(wanted)
        core.news.post(RenderEvent())

    def resume(self) -> None:
        """Go on with what a render had left to do when the studio ended."""
        core = self._core
        pending = self._keeping.pending.items()
        wanted = {one: seed for one, seed in pending if one in core.document.lines}
        self._note_request(wanted)
        self.rendering.want(wanted)
        self.fill()

    def cancel(self, message: str | None = None) -> None:
        """Stop the render; what was made stays.

        Raises:
            StorageFailed: The disk still says that it is to go on.
        """
        self._core.post_lines(self.rendering.cancel(message))
        self._core.news.post(RenderEvent())
        self._keeping.keep_pending({})

    def focus(self, line_id: str) -> None:
        """Somebody listens there: it goes first.

        Raises:
            NotFound: The line was deleted.
        """
        self.rendering.listen_at(self._core.line(line_id).line_id)
        self.fill()

    def _note_request(self, wanted: Mapping[str, int | None]) -> None:
        """Further takes that are asked for together are one step of undo."""
        request = secrets.token_hex(6)
        self._requests |= {one: request for one, seed in wanted.items() if seed is not None}

    def recheck(self, line_ids: Iterable[str]) -> None:
        """Lines that are being made and were changed are made of what they say now."""
        core = self._core
        for line_id in line_ids:
            making, line = core.making.get(line_id), core.document.lines.get(line_id)
            if making and (
                line is None or making.recipe.key != core.lines.key(line, core.ground())
            ):
                self.rendering.drop(line_id)
        self.fill()

    def fill(self) -> None:
        """Give the engine what it can take."""
        self._core.post_lines(self.rendering.fill(self._core.document.order, self._kitchen))

    def _told(self, making: LineJob) -> None:
        """The engine has news of a line; called on its loop, which must not wait."""
        if not self._core.closed:
            self._core.tools.threads.submit(self._look_at, making)

    def _look_at(self, making: LineJob) -> None:
        try:
            self._take_note(making)
        # Nobody waits for this thread: a fault that it ends with would leave the line waiting.
        except Exception as error:
            log.exception("project %s line %s", self._core.folder.root.name, making.line_id)
            self._break_off(making, error)

    def _break_off(self, making: LineJob, error: Exception) -> None:
        core = self._core
        with core.lock:
            if core.closed or core.making.get(making.line_id) is not making:
                return
            reason = f"{type(error).__name__}: {error}"
            message = f"The studio failed on this line ({reason}). Read it again."
            self.rendering.fail(making.line_id, making.recipe.key, message)
            self.fill()
            core.news.post(LineEvent(making.line_id))
            if not self.rendering.busy:
                core.news.post(RenderEvent())

    def _take_note(self, making: LineJob) -> None:
        with self._core.lock:
            if making.done:
                return
            making.done = making.job.events.closed
            is_needed = not (self._core.closed or making.dropped)
            if is_needed and not making.done and not making.begun:
                making.begun = True
                self._core.news.post(LineEvent(making.line_id))
        if making.done and is_needed:
            self._finish(making)
        elif making.done:
            self._core.folder.disk.remove(making.job.order.folder)

    def _finish(self, making: LineJob) -> None:
        """A job ended by itself."""
        if making.job.gave_up is not None:
            self._give_up(making.job.gave_up)
        elif making.job.cancelled:
            # Nobody here cancelled it: somebody stopped the model's load.
            self._stop("The model's load was stopped.")
        else:
            self._keep(making)

    def _keep(self, making: LineJob) -> None:
        """Keep a line's take, or say why there is none. Writes without the lock."""
        take, message = None, making.message
        if message is None or making.is_cut:
            try:
                take = save_take(making, self._core.shelf, self._core.folder.disk)
            except StorageFailed as error:
                message = f"{message or ''} {error}".strip()
            else:
                message = f"{message} {_PARTIAL_TAKE_MESSAGE}" if message else None
        if take is None:
            self._core.folder.disk.remove(making.job.order.folder)
        with self._core.lock:
            if self._core.closed:
                return
            if take is not None and not take.cut:
                self._try_to_choose(take, again=making.recipe.again)
            if self._core.making.get(making.line_id) is making:
                self.rendering.heard(making)
                if take is not None and not take.cut:
                    audio_s = take.samples / STUDIO_RATE_HZ
                    self.rendering.settle(making.line_id, audio_s, self._further_seed(take))
                else:
                    self.rendering.fail(making.line_id, making.recipe.key, message or "")
            self.fill()
            self._core.news.post(LineEvent(making.line_id))
            if not self.rendering.busy:
                self._core.post_lines(self._core.lines.company.settle())
                self._core.news.post(RenderEvent())

    def _give_up(self, message: str) -> None:
        """Without a model every line would fail for itself: they fail together."""
        core = self._core
        with core.lock:
            lines = [core.document.lines[one] for one in core.wanted if one in core.document.lines]
            self._stop(message)
            for line in lines:
                self.rendering.fail(line.line_id, core.lines.key(line, core.ground()), message)
            core.post_lines(line.line_id for line in lines)

    def _stop(self, message: str) -> None:
        with self._core.lock:
            try:
                self.cancel(message)
            except StorageFailed as error:
                self._keeping.say(str(error))

    def _try_to_choose(self, take: Take, *, again: bool) -> None:
        """A take that can't be chosen now, since the disk is full, is there nevertheless."""
        try:
            self._choose(take, again=again)
        except StorageFailed as error:
            self._keeping.say(str(error))

    def _choose(self, take: Take, *, again: bool) -> None:
        """Let a take be heard, unless the line went away or was locked meanwhile."""
        core = self._core
        line = core.document.lines.get(take.line_id)
        if line is None or line.locked:
            return
        is_ready = core.lines.is_ready(line, core.document, core.ground())
        if is_ready and core.lines.key(line, core.ground()) != take.key:
            return
        if is_ready and is_retry(take, core.lines.takes(line.line_id, core.document)):
            former = core.lines.chosen(line, core.document)
            if former is not None and self._weight(take) >= self._weight(former):
                return
            again = False
        chosen = replace(line, chosen=take.take_id)
        if line.seed is not None:
            chosen = replace(chosen, seed=take.seed)
        after = replace(core.document, lines={**core.document.lines, line.line_id: chosen})
        # A further take stands in for one that was good: that is a step one can take back.
        request = self._requests.pop(line.line_id, None) if again else None
        is_step = again and is_ready and not self._is_covered(request)
        author = replace(STUDIO_AUTHOR, group=request)
        step = core.record(after, author, EntryKind.EDIT if is_step else EntryKind.MADE)
        if step is not None and is_step:
            self._stepped |= {request} if request else set()
            self._further(step)

    def _weight(self, take: Take) -> float:
        return score_issues(self._core.lines.company.doubts(take))

    def _further_seed(self, take: Take) -> int | None:
        """The seed of one more try, where a take is doubtful and the project asks for that."""
        core = self._core
        line, most = core.document.lines.get(take.line_id), core.document.settings.tries
        if most == 1 or line is None or line.locked or line.seed is not None:
            return None
        if core.lines.key(line, core.ground()) != take.key or self._weight(take) == 0:
            return None
        return choose_retry_seed(take, core.shelf.of_line(line.line_id), most)

    def _is_covered(self, request: str | None) -> bool:
        """Whether somebody edited on top of a request's step: undo is to meet that edit first."""
        last = self._core.history.marks.last
        is_on_top = last is not None and last[:2] == (STUDIO_AUTHOR.client, request)
        return request in self._stepped and not is_on_top

    def _recipe(self, line_id: str, seed: int | None) -> LineJobSpec | None:
        """How a line is made; None where there is nothing to make, also since a take fits."""
        core = self._core
        line = core.document.lines.get(line_id)
        if line is None or not self._is_to_make(line_id, again=seed is not None):
            return None
        ground = core.ground()
        again = seed is not None
        gone = None if again else core.lines.gone(line, core.document, ground)
        fitting = core.lines.fitting(line, core.document, ground, seed)
        if fitting is not None and gone is None:
            self._try_to_choose(fitting, again=again)
            return None
        settled = choose_stable_seed(line, core.document.settings.seed) if seed is None else seed
        if seed is None and line.seed is None:
            # With the same seed it would be cut off as before.
            settled = (settled + core.lines.cut(line, core.document, ground)) % 2**31
        recipe = LineJobSpec(
            line,
            core.lines.key(line, ground),
            settled,
            ground.voice_label(line),
            ground.backend[0],
            again,
            ground.language(line),
            ground.pronouncing.spoken,
        )
        gone = gone or core.lines.gone(line, core.document, ground, settled)
        return replace(recipe, seed=gone.seed, take_id=gone.take_id) if gone else recipe

    def _is_to_make(self, line_id: str, *, again: bool) -> bool:
        core = self._core
        line, ground = core.line(line_id), core.ground()
        if line.kind is LineKind.SILENCE:
            return False
        if line.locked:
            # Nothing but the very take it was locked with, should that be gone.
            return not again and core.lines.gone(line, core.document, ground) is not None
        return again or not core.lines.is_ready(line, core.document, ground)

    def _kitchen(self) -> RenderDeps:
        root = self._core.folder.root
        return RenderDeps(
            self._core.tools.engine,
            self._core.surroundings.cast(self._core.document),
            root / layout.SEGMENTS_FOLDER,
            root / layout.AUDIO_FOLDER,
            self._core.folder.disk,
        )
