"""The check of the words of a project's takes: what was recognised is kept with each take."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from studio.audio.timeline import read_take
from studio.errors import Cancelled, ModelUnavailable, StorageFailed
from studio.hearing.word_check import ExpectedText
from studio.project.document import LineKind
from studio.project.line_states import LineEvent, ProjectState
from studio.project.takes import Take

log = logging.getLogger(__name__)

_MAX_TRIES = 2  # a recogniser may be unloaded while it is at work


class TakeRecognition:
    """The takes of a project that are to be checked. Safe from any thread.

    A take is checked once, whatever else changes; again only if no recogniser knew its language.
    None is while the line at the play-head is still to be rendered, and then the takes from the
    play-head on go first.
    """

    def __init__(self, core: ProjectState, on_checked: Callable[[Take], None]) -> None:
        self._state = core
        self._on_checked = on_checked
        self._queue = core.deps.checks
        self._checker = core.deps.checker
        self._tries: dict[str, int] = {}  # by take, of those that are to be checked

    @property
    def is_waiting(self) -> bool:
        return bool(self._tries) and not self._state.closed

    def add(self, takes: Iterable[Take]) -> None:
        """Check takes that haven't been; does nothing where there is no recogniser."""
        if self._queue is None or self._checker is None or not self._checker.is_able:
            return
        with self._state.lock:
            fresh = [take for take in takes if self._is_to_check(take)]
            self._tries |= {take.take_id: 0 for take in fresh}
        if fresh:
            self._queue.wake(self)

    def add_chosen(self) -> None:
        """Check the takes of a project that was opened."""
        if self._checker is None or not self._checker.is_able:
            return
        with self._state.lock:
            lines = self._state.line_states
            ready = filter(lines.is_ready, self._state.document)
            chosen = [lines.find_chosen(line) for line in ready]
        self.add(take for take in chosen if take is not None)

    def pick(self) -> Callable[[], None] | None:
        """Take the next check out of the list; None while the play-head's line isn't rendered."""
        with self._state.lock:
            queue = self._state.render_queue
            if not self.is_waiting or queue.play_head in queue.queued:
                return None
            order = self._state.document.order
            start = order.index(queue.play_head) if queue.play_head in order else 0
            places = {line_id: at for at, line_id in enumerate([*order[start:], *order[:start]])}
            found = (self._state.take_store.get(take_id) for take_id in self._tries)
            line_ids = {take.take_id: take.line_id for take in found if take is not None}
            take_id = min(
                self._tries, key=lambda one: places.get(line_ids.get(one, ""), len(places))
            )
            return partial(self._check, take_id, self._tries.pop(take_id) + 1)

    def _is_to_check(self, take: Take) -> bool:
        line = self._state.document.lines.get(take.line_id)
        return (
            line is not None
            and line.kind is LineKind.SPEECH
            and self._is_unheard(take)
            and not take.cut
            and not self._state.take_store.is_freed(take)
        )

    def _is_unheard(self, take: Take) -> bool:
        """Whether nobody has listened to a take, who could now."""
        known, checker = take.recognised, self._checker
        if known is None or known.by or checker is None:
            return known is None
        return checker.can_check(self._build_expected_text(take))

    def _check(self, take_id: str, tries: int) -> None:
        core = self._state
        with core.lock:
            take = core.take_store.get(take_id)
            if core.closed or take is None or not self._is_to_check(take):
                return
            spoken = self._build_expected_text(take)
        assert self._checker is not None
        try:
            clip = read_take(core.take_store.get_audio_path(take))
            found = self._checker.check(clip, spoken, self._is_stopped)
        except StorageFailed as error:
            log.warning("take %s can't be read to check its words: %s", take_id, error)
            return
        except (Cancelled, ModelUnavailable) as error:
            log.warning("the words of take %s weren't checked: %s", take_id, error)
            if tries < _MAX_TRIES and not self._is_stopped():
                with core.lock:
                    self._tries[take_id] = tries
            return
        with core.lock:
            current = core.take_store.get(take_id)
            if core.closed or current is None:
                return
            checked = replace(current, recognised=found)
            try:
                core.take_store.update(checked)
            except StorageFailed as error:  # it is checked again when the project is opened
                log.warning("what was recognised in take %s can't be saved: %s", take_id, error)
                return
            core.events.append(LineEvent(take.line_id))
            self._on_checked(checked)

    def _is_stopped(self) -> bool:
        return self._state.closed or self._queue is None or self._queue.is_closed

    def _build_expected_text(self, take: Take) -> ExpectedText:
        line, context = self._state.line(take.line_id), self._state.line_states.context
        language = take.language or context.resolve_language(line)
        return ExpectedText(take.text, language, partial(context.build_spoken_words, line))
