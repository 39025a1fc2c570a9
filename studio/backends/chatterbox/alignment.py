"""The multilingual model's watch over its own alignment, kept per request.

The package's `AlignmentStreamAnalyzer` looks at three attention heads to see how far the text is
spoken, and forbids or forces the end of a line. It hangs hooks on the shared model to see them,
never removes them, and turns the model's attention to a slow kind for good. Here the heads are
handed to it through each call, so nothing of a line stays on the model.
"""

from __future__ import annotations

from typing import Any

import torch
from chatterbox.models.t3.inference.alignment_stream_analyzer import (
    LLAMA_ALIGNED_HEADS,
    AlignmentStreamAnalyzer,
)
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

WATCHED_ATTENTION = "sdpa_with_watched_heads"
"""Name of the attention that `use_watched_attention` gives a model."""

_HEAD_OF_LAYER = dict(LLAMA_ALIGNED_HEADS)
_PLACE_OF_LAYER = {layer: place for place, (layer, _head) in enumerate(LLAMA_ALIGNED_HEADS)}


class Alignment(AlignmentStreamAnalyzer):  # type: ignore[misc]
    """The package's analyzer for one line; it decides as the package's does."""

    def _add_attention_spy(self, _model: Any, _place: int, _layer: int, _head: int) -> None:
        """Leave the model alone: `see` brings what the package's hook would."""

    def see(self, layer: int, weights: torch.Tensor) -> None:
        """Take one step's weights of a layer's watched head.

        Args:
            layer: Index of a watched layer.
            weights: float32 [queries, keys], on any device.
        """
        self.last_aligned_attns[_PLACE_OF_LAYER[layer]] = weights.cpu()


def alignment_for(text: slice, stop_token: int) -> Alignment:
    """Begin to watch a line whose text stands at `text` in the prompt."""
    return Alignment(None, None, (text.start, text.stop), eos_idx=stop_token)


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
        alignment.see(module.layer_idx, _weights(query[0, head], key[0, head], scaling))
    return sdpa_attention_forward(
        module, query, key, value, attention_mask, scaling=scaling, **options
    )


def _weights(query: torch.Tensor, key: torch.Tensor, scaling: float) -> torch.Tensor:
    """Causal attention of one head: [queries, dim], [keys, dim] to float32 [queries, keys]."""
    scores = query @ key.T * scaling
    queries, keys = scores.shape
    future = torch.ones_like(scores, dtype=torch.bool).triu(keys - queries + 1)
    return scores.masked_fill(future, float("-inf")).softmax(-1, dtype=torch.float32)
