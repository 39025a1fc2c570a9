"""The multilingual model's watch over its own alignment, kept per request.

The package's `AlignmentStreamAnalyzer` hangs hooks on the shared model to see three attention
heads, never removes them, and turns the model's attention to a slow kind for good. Here the heads
are handed over through each call, so nothing of a line stays on the model; what they decide is
`watch`'s.
"""

from __future__ import annotations

from typing import Any

import torch
from chatterbox.models.t3.inference.alignment_stream_analyzer import LLAMA_ALIGNED_HEADS
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from studio.backends.chatterbox.watch import Ends, Seen, begun, cuts, ruled, watched

WATCHED_ATTENTION = "sdpa_with_watched_heads"
"""Name of the attention that `use_watched_attention` gives a model."""

_HEAD_OF_LAYER = dict(LLAMA_ALIGNED_HEADS)


class Alignment:
    """The watch over one line; `see` brings what its heads attend to, `ruled` what follows."""

    def __init__(self, text: slice, stop_token: int, ends: Ends) -> None:
        """Begin with a line whose text stands at `text` in the prompt."""
        self._watch = torch.tensor([begun(text.start, text.stop - text.start)])
        self._stop_token = stop_token
        self._ends = ends
        self._seen: list[torch.Tensor] = []
        self._cuts: list[torch.Tensor] = []
        self._before: torch.Tensor | None = None

    def see(self, weights: torch.Tensor) -> None:
        """Take one step's weights of a watched head: float32 [queries, keys]."""
        self._seen.append(weights[-1:])

    def ruled(self, logits: torch.Tensor, token: torch.Tensor, frame: int) -> torch.Tensor:
        """Logits with the end forbidden or forced.

        Args:
            logits: [1, vocabulary], of the token that comes next.
            token: The one that was read, [1, 1]; before the first one the start of speech.
            frame: Number of the one that comes next.
        """
        watch = self._watch.to(logits.device)
        attention = torch.stack(self._seen).mean(dim=0)
        self._seen.clear()
        if frame:
            seen = Seen(attention, _number(frame, watch), self._twice(token))
            watch = watched(watch, seen, self._ends)
            self._before = token
        self._watch = watch
        self._cuts.append(cuts(watch))
        return ruled(logits, watch, self._stop_token)

    def cut(self, frame: int) -> bool:
        """Whether the token of a number was an end that was forced before the text's."""
        return bool(self._cuts[frame])

    def _twice(self, token: torch.Tensor) -> torch.Tensor:
        """Whether a token is the one before it: bool [1]."""
        if self._before is None:
            return torch.zeros_like(token[0], dtype=torch.bool)
        return (token == self._before)[0]


def _number(number: int, like: torch.Tensor) -> torch.Tensor:
    return torch.full((1,), number, device=like.device)


def use_watched_attention(model: Any) -> None:
    """Let a transformers model take `alignment=` in its calls; without it nothing changes."""
    AttentionInterface.register(WATCHED_ATTENTION, _watched_attention)
    AttentionMaskInterface.register(WATCHED_ATTENTION, sdpa_mask)
    model.set_attn_implementation(WATCHED_ATTENTION)


def _watched_attention(  # noqa: PLR0913 - the library's signature
    module: Any,
    query: torch.Tensor,  # [rows, heads, queries, dim]
    key: torch.Tensor,  # [rows, heads, keys, dim]
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    alignment: Alignment | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    head = _HEAD_OF_LAYER.get(module.layer_idx)
    if alignment is not None and head is not None:
        alignment.see(_weights(query[0, head], key[0, head], scaling))
    return sdpa_attention_forward(
        module, query, key, value, attention_mask, scaling=scaling, **options
    )


def _weights(query: torch.Tensor, key: torch.Tensor, scaling: float) -> torch.Tensor:
    """Causal attention of one head: [queries, dim], [keys, dim] to float32 [queries, keys]."""
    scores = query @ key.T * scaling
    queries, keys = scores.shape
    future = torch.ones_like(scores, dtype=torch.bool).triu(keys - queries + 1)
    return scores.masked_fill(future, float("-inf")).softmax(-1, dtype=torch.float32)
