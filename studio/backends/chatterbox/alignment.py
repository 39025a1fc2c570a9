"""The alignment monitor of the multilingual T3: when a line may end, and when it must."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

import torch
from chatterbox.models.t3.inference.alignment_stream_analyzer import LLAMA_ALIGNED_HEADS
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from studio.backends.batching.decoder_stack import AttentionFn

# The alignment monitor of the multilingual model decides when a line may end, and when it must.
#
# Three attention heads show which token of the text is being spoken. The monitor is one row of
# numbers per line, batched for lines decoded together, and needs no host synchronization.
#
# Two rules read it. The package's forces an end as soon as a token comes twice, and at the end of
# the text after 200 ms, which may be its last syllable: trained weights lose words and half
# sentences to it, and the package's later source has done without. The studio's own rule,
# `StopRule.SPOKEN`, forbids an end until the text was spoken once, and forces one only after that:
# where the line dwells on what follows the last word, or goes back in the text.
#
# Source: `AlignmentStreamAnalyzer` of chatterbox-tts 0.1.7; what it reckons without deciding by it,
# such as a false start, is left out.

UNMONITORED_TEXT_TOKENS = 5
"""Up to here the package's analyzer has nothing to say, and fails once the text is spoken."""

_CERTAIN = 2.0**15  # the package's score of what must be or must not be
_END_TOKENS = 3  # of text; the end is near from the first of them on
_NEXT_TO_END = 5  # tokens of text that a line may return to after its end
_BACK, _AHEAD = -4, 7  # bounds of a move in the text, in tokens, both exclusive
_MAX_TAIL = 5.0  # sum of attention to one of the last tokens: 200 ms
_MAX_AFTER_LAST_WORD = 12.5  # the same of what follows the last word: half a second
_SETTLED = 3.0  # sum of attention to the last tokens from which the text's end counts as reached
_MAX_REPEATED = 5.0  # sum of attention to what was spoken before


class StopRule(Enum):
    """The rule that decides about a line's end."""

    SPOKEN = "spoken"
    PACKAGE = "package"


class MonitorColumn(IntEnum):
    """Columns of a line's monitor state; integers except for the sums."""

    TEXT_AT = 0  # position of the text's first token in the prompt
    TEXT_TOKENS = 1  # 0 if the line isn't monitored
    PLACE = 2  # token of the text that is spoken
    DONE = 3  # whether the text was spoken, 0 or 1
    RULING = 4  # on the next token, a `StopDecision`
    AGAIN = 5  # attention to text before its end, summed since the text was spoken
    TAIL = 6  # attention to each of the text's last tokens since then; three columns


MONITOR_WIDTH = MonitorColumn.TAIL + _END_TOKENS


class StopDecision(IntEnum):
    """The monitor's decision about a line's end at the next token."""

    FORBIDDEN = -1
    OPEN = 0
    FORCED = 1


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentStep:
    """Attention and tokens of a step.

    Attributes:
        attention: Mean of the watched heads over all positions: float32 [rows, window].
        frame: Number of the token that comes next: int64 [rows].
        twice: Whether the last two tokens are the same: bool [rows].
    """

    attention: torch.Tensor
    frame: torch.Tensor
    twice: torch.Tensor


def init_monitor(text_at: int, text_tokens: int) -> list[float]:
    """The monitor state before a line's first token, which can't be its end.

    A text of up to `UNMONITORED_TEXT_TOKENS`, start and stop included, isn't monitored.
    """
    watch = [0.0] * MONITOR_WIDTH
    if text_tokens > UNMONITORED_TEXT_TOKENS:
        watch[MonitorColumn.TEXT_AT], watch[MonitorColumn.TEXT_TOKENS] = text_at, text_tokens
        watch[MonitorColumn.RULING] = StopDecision.FORBIDDEN
    return watch


def apply_decision(scores: torch.Tensor, watch: torch.Tensor, end: int) -> torch.Tensor:
    """Scores, [rows, vocabulary], with the end token forbidden or forced by the monitor."""
    ruling = watch[:, MonitorColumn.RULING, None]
    is_end = torch.arange(scores.shape[1], device=scores.device) == end
    forced = torch.where(is_end, _CERTAIN, -_CERTAIN).to(scores.dtype)
    scores = scores.masked_fill(is_end & (ruling == StopDecision.FORBIDDEN), -_CERTAIN)
    return torch.where(ruling == StopDecision.FORCED, forced, scores)


def is_premature_stop(watch: torch.Tensor) -> torch.Tensor:
    """Whether the end is forced at the next token before the text was spoken: bool [rows]."""
    return (watch[:, MonitorColumn.RULING] == StopDecision.FORCED) & (
        watch[:, MonitorColumn.DONE] == 0
    )


def update_monitor(watch: torch.Tensor, seen: AlignmentStep, ends: StopRule) -> torch.Tensor:
    """The monitor state after a step: a new [rows, WIDTH]."""
    text_at, text = _column(watch, MonitorColumn.TEXT_AT), _column(watch, MonitorColumn.TEXT_TOKENS)
    token = torch.arange(seen.attention.shape[1], device=watch.device) - text_at  # [rows, window]
    # As in the package, text token n counts only after n speech tokens.
    weight = seen.attention.masked_fill(token > seen.frame[:, None], 0.0)
    weight = weight.masked_fill((token < 0) | (token >= text), -1.0)
    spoken = weight.argmax(dim=1, keepdim=True) - text_at  # [rows, 1]
    place = _move_place(_column(watch, MonitorColumn.PLACE), spoken)
    before = _column(watch, MonitorColumn.DONE)
    done = torch.maximum(before, (place >= text - _END_TOKENS).float())
    again = weight.masked_fill(token >= text - _NEXT_TO_END, 0.0).amax(dim=1, keepdim=True)
    tail = watch[:, MonitorColumn.TAIL :]  # [rows, 3]
    settled = (tail.sum(dim=1, keepdim=True) >= _SETTLED).float()
    counts = before if ends is StopRule.PACKAGE else settled
    again = _column(watch, MonitorColumn.AGAIN) + counts * again
    tail = tail + before * _tail_attention(weight, text_at + text)
    early = spoken < text - _END_TOKENS
    if ends is StopRule.PACKAGE:
        forced = (tail.amax(dim=1, keepdim=True) >= _MAX_TAIL) | seen.twice[:, None]
    else:
        # The first of the last tokens belongs to the last word, the others are its stop and end.
        forced = tail[:, 1:].amax(dim=1, keepdim=True) >= _MAX_AFTER_LAST_WORD
        early = early & (done == 0)  # a line that went back in the text may end there
    forced = forced | (again > _MAX_REPEATED)
    ruling = (forced.float() - (early & ~forced).float()) * (text > 0)
    return torch.cat([text_at, text, place, done, ruling, again, tail], dim=1)


def _column(watch: torch.Tensor, name: MonitorColumn) -> torch.Tensor:
    return watch[:, name, None]  # [rows, 1]


def _move_place(place: torch.Tensor, spoken: torch.Tensor) -> torch.Tensor:
    """The position in the text: as attended to, unless that is too far away."""
    by = spoken - place
    return torch.where((by > _BACK) & (by < _AHEAD), spoken, place)


def _tail_attention(weight: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """Attention to the text's last tokens: [rows, 3]."""
    places = end - _END_TOKENS + torch.arange(_END_TOKENS, device=weight.device)
    # That of a free slot is arbitrary.
    return weight.gather(1, places.long().clamp(0, weight.shape[1] - 1))


# The package's `AlignmentStreamAnalyzer` hangs hooks on the shared model to see three attention
# heads, never removes them, and turns the model's attention to a slow kind for good. Here each call
# hands the heads over, so nothing of a line stays on the model; `update_monitor` decides by them.

TAPPED_ATTENTION = "sdpa_with_watched_heads"
"""Name of the attention that `install_attention_tap` gives a model."""

_HEAD_OF_LAYER = dict(LLAMA_ALIGNED_HEADS)


class LineAlignmentMonitor:
    """Monitors one line; `see` takes its attention weights, `apply_rules` changes its logits."""

    def __init__(self, text: slice, stop_token: int, ends: StopRule) -> None:
        self._watch = torch.tensor([init_monitor(text.start, text.stop - text.start)])
        self._stop_token = stop_token
        self._ends = ends
        self._seen: list[torch.Tensor] = []
        self._cuts: list[torch.Tensor] = []
        self._before: torch.Tensor | None = None

    def see(self, weights: torch.Tensor) -> None:
        """Take one step's attention weights of a monitored head: float32 [queries, keys]."""
        self._seen.append(weights[-1:])

    def apply_rules(self, logits: torch.Tensor, token: torch.Tensor, frame: int) -> torch.Tensor:
        """Logits with the end token forbidden or forced.

        Args:
            logits: [1, vocabulary], of the token that comes next.
            token: The one that was read, [1, 1]; before the first one the start of speech.
            frame: Number of the one that comes next.
        """
        watch = self._watch.to(logits.device)
        attention = torch.stack(self._seen).mean(dim=0)
        self._seen.clear()
        if frame:
            next_frame = torch.full((1,), frame, device=watch.device)
            seen = AlignmentStep(attention, next_frame, self._twice(token))
            watch = update_monitor(watch, seen, self._ends)
            self._before = token
        self._watch = watch
        self._cuts.append(is_premature_stop(watch))
        return apply_decision(logits, watch, self._stop_token)

    def cut(self, frame: int) -> bool:
        """Whether the token of this number was an end forced before the text was spoken."""
        return bool(self._cuts[frame])

    def _twice(self, token: torch.Tensor) -> torch.Tensor:
        """Whether a token equals the previous one: bool [1]."""
        if self._before is None:
            return torch.zeros_like(token[0], dtype=torch.bool)
        return (token == self._before)[0]


def install_attention_tap(model: Any) -> None:
    """Let calls of a transformers model take `alignment=`; without it nothing changes."""
    AttentionInterface.register(TAPPED_ATTENTION, _tapped_attention)
    AttentionMaskInterface.register(TAPPED_ATTENTION, sdpa_mask)
    model.set_attn_implementation(TAPPED_ATTENTION)


def _tapped_attention(  # noqa: PLR0913 - the library's signature
    module: Any,
    query: torch.Tensor,  # [rows, heads, queries, dim]
    key: torch.Tensor,  # [rows, heads, keys, dim]
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    alignment: LineAlignmentMonitor | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    head = _HEAD_OF_LAYER.get(module.layer_idx)
    if alignment is not None and head is not None:
        alignment.see(_attention_weights(query[0, head], key[0, head], scaling))
    return sdpa_attention_forward(
        module, query, key, value, attention_mask, scaling=scaling, **options
    )


def _attention_weights(query: torch.Tensor, key: torch.Tensor, scaling: float) -> torch.Tensor:
    """Causal attention of one head: [queries, dim], [keys, dim] to float32 [queries, keys]."""
    scores = query @ key.T * scaling
    queries, keys = scores.shape
    future = torch.ones_like(scores, dtype=torch.bool).triu(keys - queries + 1)
    return scores.masked_fill(future, float("-inf")).softmax(-1, dtype=torch.float32)


class AttentionTap:
    """An attention function that also records the weights of monitored heads."""

    def __init__(
        self,
        attend: AttentionFn,
        keys: torch.Tensor,
        mask: torch.Tensor,
        heads: tuple[tuple[int, int], ...],
    ) -> None:
        """Begin with nothing recorded.

        Args:
            attend: The attention function to wrap.
            keys: The slots' cache, from the first row's heads on:
                [layers, slots, heads, positions, head_dim].
            mask: 0 or minus infinity: [rows, 1, window].
            heads: Layer and query head of each that is watched.
        """
        self._attend = attend
        self._keys = keys
        self._mask = mask
        self._heads = dict(heads)
        self._weights: list[torch.Tensor] = []

    def __call__(self, index: int, heads: torch.Tensor) -> torch.Tensor:
        """Attend, and record the weights; see `AttentionFn`."""
        mixed = self._attend(index, heads)
        head = self._heads.get(index)
        if head is not None:
            self._weights.append(self._mean_attention(index, head, heads[0]))
        return mixed

    @property
    def attention(self) -> torch.Tensor:
        """Mean over the monitored heads: float32 [rows, window]."""
        return torch.stack(self._weights).mean(dim=0)

    def _mean_attention(self, index: int, head: int, turned: torch.Tensor) -> torch.Tensor:
        rows, _, window = self._mask.shape
        group = turned.shape[2] - 2
        shared, own = divmod(head, group)
        query = turned.unflatten(0, (rows, -1))[:, 0, shared, own, None]  # [rows, 1, head_dim]
        keys = self._keys[index, :rows, shared, :window]
        scores = query @ keys.transpose(1, 2) * query.shape[-1] ** -0.5 + self._mask
        return scores.softmax(dim=-1, dtype=torch.float32)[:, 0]
