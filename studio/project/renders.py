"""Renders of a project: what is asked for, what the engine tells, and what becomes of it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.doubts import weight
from studio.errors import BadInput, StorageFailed
from studio.project import folder as places
from studio.project.core import STUDIO, Core
from studio.project.document import LineKind
from studio.project.history import Kind, Step
from studio.project.keeping import Keeping
from studio.project.making import Kitchen, Making, Recipe, keep
from studio.project.news import JobNews, LineNews
from studio.project.rendering import Rendering
from studio.project.take import Take
from studio.project.tries import is_further, next_seed
from studio.project.voices import stable_seed

log = logging.getLogger(__name__)

_KEPT = "What was spoken until then is among the line's takes."


class Renders:
    """Public methods are called under the session's lock."""

    def __init__(self, core: Core, keeping: Keeping, further: Callable[[Step], object]) -> None:
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
        self.rendering = Rendering(core, self._recipe, self._told)

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
        core.news.post(JobNews())

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
        self._core.news.post(JobNews())
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

    def _told(self, making: Making) -> None:
        """The engine has news of a line; called on its loop, which must not wait."""
        if not self._core.closed:
            self._core.tools.threads.submit(self._look_at, making)

    def _look_at(self, making: Making) -> None:
        try:
            self._take_note(making)
        # Nobody waits for this thread: a fault that it ends with would leave the line waiting.
        except Exception as error:
            log.exception("project %s line %s", self._core.folder.root.name, making.line_id)
            self._break_off(making, error)

    def _break_off(self, making: Making, error: Exception) -> None:
        core = self._core
        with core.lock:
            if core.closed or core.making.get(making.line_id) is not making:
                return
            reason = f"{type(error).__name__}: {error}"
            message = f"The studio failed on this line ({reason}). Read it again."
            self.rendering.fail(making.line_id, making.recipe.key, message)
            self.fill()
            core.news.post(LineNews(making.line_id))
            if not self.rendering.busy:
                core.news.post(JobNews())

    def _take_note(self, making: Making) -> None:
        with self._core.lock:
            if making.done:
                return
            making.done = making.job.events.closed
            is_needed = not (self._core.closed or making.dropped)
            if is_needed and not making.done and not making.begun:
                making.begun = True
                self._core.news.post(LineNews(making.line_id))
        if making.done and is_needed:
            self._finish(making)
        elif making.done:
            self._core.folder.disk.remove(making.job.order.folder)

    def _finish(self, making: Making) -> None:
        """A job ended by itself."""
        if making.job.gave_up is not None:
            self._give_up(making.job.gave_up)
        elif making.job.cancelled:
            # Nobody here cancelled it: somebody stopped the model's load.
            self._stop("The model's load was stopped.")
        else:
            self._keep(making)

    def _keep(self, making: Making) -> None:
        """Keep a line's take, or say why there is none. Writes without the lock."""
        take, message = None, making.message
        if message is None or making.is_cut:
            try:
                take = keep(making, self._core.shelf, self._core.folder.disk)
            except StorageFailed as error:
                message = f"{message or ''} {error}".strip()
            else:
                message = f"{message} {_KEPT}" if message else None
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
            self._core.news.post(LineNews(making.line_id))
            if not self.rendering.busy:
                self._core.post_lines(self._core.lines.company.settle())
                self._core.news.post(JobNews())

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
        if is_ready and is_further(take, core.lines.takes(line.line_id, core.document)):
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
        author = replace(STUDIO, group=request)
        step = core.record(after, author, Kind.EDIT if is_step else Kind.MADE)
        if step is not None and is_step:
            self._stepped |= {request} if request else set()
            self._further(step)

    def _weight(self, take: Take) -> float:
        return weight(self._core.lines.company.doubts(take))

    def _further_seed(self, take: Take) -> int | None:
        """The seed of one more try, where a take is doubtful and the project asks for that."""
        core = self._core
        line, most = core.document.lines.get(take.line_id), core.document.settings.tries
        if most == 1 or line is None or line.locked or line.seed is not None:
            return None
        if core.lines.key(line, core.ground()) != take.key or self._weight(take) == 0:
            return None
        return next_seed(take, core.shelf.of_line(line.line_id), most)

    def _is_covered(self, request: str | None) -> bool:
        """Whether somebody edited on top of a request's step: undo is to meet that edit first."""
        last = self._core.history.marks.last
        is_on_top = last is not None and last[:2] == (STUDIO.client, request)
        return request in self._stepped and not is_on_top

    def _recipe(self, line_id: str, seed: int | None) -> Recipe | None:
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
        settled = stable_seed(line, core.document.settings.seed) if seed is None else seed
        if seed is None and line.seed is None:
            # With the same seed it would be cut off as before.
            settled = (settled + core.lines.cut(line, core.document, ground)) % 2**31
        recipe = Recipe(
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

    def _kitchen(self) -> Kitchen:
        root = self._core.folder.root
        return Kitchen(
            self._core.tools.engine,
            self._core.surroundings.cast(self._core.document),
            root / places.MAKING,
            root / places.AUDIO,
            self._core.folder.disk,
        )
