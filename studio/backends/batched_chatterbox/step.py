"""One speech token of all lines in flight, with everything that decides on the device.

Source: `T3.inference` and `T3.inference_turbo` of chatterbox-tts 0.1.7.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from studio.backends.batched.noise import frame_keys
from studio.backends.batched.slot_step import Shape, SlotStep
from studio.backends.batched.state import State, Whole
from studio.backends.batched.transformer import times
from studio.backends.batched_chatterbox.alignment import HeadSpy
from studio.backends.batched_chatterbox.choice import choose_token
from studio.backends.batched_chatterbox.token_slots import Setting, TokenSlots
from studio.backends.batched_chatterbox.weights import T3Weights
from studio.backends.chatterbox.watch import Ends, Seen, cuts, ruled, watched


class TokenStep(SlotStep):
    """Advances slots by a token."""

    def __init__(self, weights: T3Weights, slots: TokenSlots, ends: Ends = Ends.SPOKEN) -> None:
        """Hold the constants that a token needs; weights and slots are used, not copied."""
        super().__init__(slots)
        self._ends = ends
        self._weights = weights
        self._slots = slots
        self._groups = torch.arange(1, device=weights.head.device)

    def __call__(self, shape: Shape) -> None:
        """Make a token in every slot of the first `shape.rows` that runs."""
        slots, weights, rows = self._slots, self._weights, shape.rows
        place = slots.column(Whole.FRAME, rows)
        token = choose_token(
            self._scores(rows),
            frame_keys(slots.column(Whole.KEY, rows), place, self._groups)[0],
            slots.rules(rows),
            shape.breadth,
            penalty_first=weights.penalty_first,
        )
        running = slots.column(Whole.STATE, rows) == State.RUNNING
        goes = self._decided((token == weights.end) & (place >= weights.shortest))
        if weights.watched:
            self._mark_cut(running)
        self._keep(token[:, None], goes)
        hidden, watch = self._advanced(token, shape)
        if watch is not None:
            slots.watch[:rows] = watch
        if not weights.penalty_first:
            slots.said[:rows, weights.start].logical_and_(place > 0)
        self._finish(token, hidden, goes)

    def _mark_cut(self, running: torch.Tensor) -> None:
        """A line whose end was forced before its text's didn't end by itself.

        Args:
            running: Which ran before this token: bool [rows].
        """
        rows = len(running)
        state = self._slots.column(Whole.STATE, rows)
        cut = running & (state == State.ENDED) & cuts(self._slots.watch[:rows])
        state.masked_fill_(cut, int(State.BOUND))

    def _scores(self, rows: int) -> torch.Tensor:
        """float32 [rows, vocabulary], guidance applied."""
        slots, weights = self._slots, self._weights
        hidden = slots.hidden[:rows].view(rows * weights.rows, -1)
        scores = times(hidden, weights.head, weights.head_bias).float()
        if weights.rows == 1:
            return scores
        seen, blind = scores.unflatten(0, (rows, 2)).unbind(1)
        scores = seen + slots.setting(Setting.CFG_WEIGHT, rows) * (seen - blind)
        return ruled(scores, slots.watch[:rows], weights.end) if weights.watched else scores

    def _advanced(
        self, token: torch.Tensor, shape: Shape
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Read the token; the next one's states: [rows, states of a slot], and the new watch."""
        weights, rows = self._weights, shape.rows
        read = F.embedding(token, weights.tokens)
        if weights.places is not None:
            read = read + weights.places[self._slots.column(Whole.FRAME, rows) + 1]
        at = self._places(shape)
        attend = self._attention(at, shape, weights.stack.group)
        if not weights.watched:
            states = weights.stack.read(self._each(read), self._each(at), attend)
            return states.view(rows, -1), None
        mask = self._mask(at, shape.window)[:, 0]
        spy = HeadSpy(attend, self._slots.keys, mask, weights.watched)
        states = weights.stack.read(self._each(read), self._each(at), spy)
        return states.view(rows, -1), self._watched(token, spy.attention)

    def _watched(self, token: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        """The watch after a token whose reading went with this attention: [rows, WIDTH]."""
        slots, rows = self._slots, len(token)
        place = slots.column(Whole.FRAME, rows)
        before = slots.codes[self._rows[:rows], (place - 1).clamp(min=0), 0]
        twice = (token == before) & (place > 0)
        return watched(slots.watch[:rows], Seen(attention, place + 1, twice), self._ends)

    def _each(self, of_slots: torch.Tensor) -> torch.Tensor:
        """For every row of guidance what its slot has: [rows, ...] to [rows * rows a slot, ...]."""
        return of_slots.repeat_interleave(self._weights.rows, dim=0)
