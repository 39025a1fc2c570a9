"""The render of a project: which lines are wanted, which are on their way, and which failed.

Lines are given to the engine a few at a time, so that what waits can still be edited, left out or
moved to the front. All methods are called under the session's lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from studio.errors import LimitReached, StudioError
from studio.project.core import Core
from studio.project.lines import Failure
from studio.project.making import Kitchen, Making, Recipe, begin

log = logging.getLogger(__name__)

_AHEAD = 3
"""Lines that wait in the engine for each that is spoken, so that no slot is ever idle."""


@dataclass(slots=True)
class Run:
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


class Rendering:
    """What a project still has to make."""

    def __init__(
        self,
        core: Core,
        recipe_of: Callable[[str, int | None], Recipe | None],
        notify: Callable[[Making], None],
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
        self.run: Run | None = None
        self._play_head: str | None = None

    @property
    def busy(self) -> bool:
        """Whether anything is still to be made."""
        return bool(self._wanted)

    def want(self, lines: Mapping[str, int | None]) -> None:
        """Ask for lines, each with a new seed or its own; those wanted already stay as they are."""
        fresh = {line_id: seed for line_id, seed in lines.items() if line_id not in self._wanted}
        if fresh and (self.run is None or self.run.ended_s is not None):
            self.run = Run()
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

    def fill(self, order: Iterable[str], kitchen: Callable[[], Kitchen]) -> list[str]:
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
                self._making[line_id] = begin(recipe, kitchen(), self._notify, listen=is_heard)
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
        self._failures[line_id] = Failure(key, message)
        self._wanted.pop(line_id, None)
        self._making.pop(line_id, None)
        if self.run is not None:
            self.run.failed += 1
        self._end_if_idle()

    def heard(self, making: Making) -> None:
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

    def _room(self, recipe: Recipe) -> int:
        slots = self._engine.models.manager(recipe.backend).backend.capabilities.slots
        return _AHEAD * (slots or self._engine.max_concurrency)

    def _end_if_idle(self) -> None:
        if not self._wanted and self.run is not None and self.run.ended_s is None:
            self.run.ended_s = time.monotonic()
            self._tell_end(self.run)

    def _tell_end(self, run: Run) -> None:
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
