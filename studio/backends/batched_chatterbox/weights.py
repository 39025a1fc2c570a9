"""A T3 with its weights packed: those with two rows of guidance, and turbo.

Source: `T3` of chatterbox-tts 0.1.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from chatterbox.models.t3.inference.alignment_stream_analyzer import LLAMA_ALIGNED_HEADS

from studio.backends.batched.transformer import Backbone
from studio.backends.batched.weights import stack_of
from studio.backends.batched_chatterbox.gpt2 import gpt2_stack_of
from studio.errors import ModelUnavailable


@dataclass(frozen=True, slots=True, eq=False)
class T3Weights:
    """Everything a speech token needs of a checkpoint.

    Attributes:
        stack: The transformer.
        head: Scores of a token: [vocabulary, hidden].
        head_bias: Added to them: [vocabulary]; None where there is none.
        tokens: Embeddings: [vocabulary, hidden].
        places: Learned, one a speech token from the start on: [tokens, hidden]; None where the
            transformer has its own.
        start: The token that speech begins with.
        end: The token that ends it.
        rows: 2 with guidance, whose second row sees no text; else 1.
        shortest: Tokens that a line has before one can be its end.
        penalty_first: Whether repetition is weighed before temperature and filters, and the start
            counts as said; else after them, and it counts before the first token only.
        watched: Layer and head of each head whose attention decides about a line's end.
    """

    stack: Backbone
    head: torch.Tensor
    head_bias: torch.Tensor | None
    tokens: torch.Tensor
    places: torch.Tensor | None
    start: int
    end: int
    rows: int
    shortest: int
    penalty_first: bool
    watched: tuple[tuple[int, int], ...] = ()


def pack(t3: Any, positions: int, dtype: torch.dtype, *, release: bool = False) -> T3Weights:
    """Pack a T3.

    Args:
        t3: The package's; its device holds.
        positions: How far the cache reaches.
        dtype: Of all weights.
        release: Take its layers away, layer by layer, so that they aren't held twice. Prompts
            can still be laid out with it.

    Raises:
        ModelUnavailable: The checkpoint has a part that this way of running it doesn't know.
    """
    with torch.no_grad():
        if dtype is not torch.float32:
            t3.tfmr.to(dtype)
        bias = t3.speech_head.bias
        return T3Weights(
            stack=_stack(t3, positions, release=release),
            head=t3.speech_head.weight.detach().to(dtype),
            head_bias=None if bias is None else bias.detach().to(dtype),
            tokens=t3.speech_emb.weight.detach().to(dtype),
            places=None if t3.is_gpt else t3.speech_pos_emb.emb.weight.detach().to(dtype),
            start=t3.hp.start_speech_token,
            end=t3.hp.stop_speech_token,
            rows=1 if t3.is_gpt else 2,
            shortest=1 if t3.is_gpt else 0,
            penalty_first=not t3.is_gpt,
            watched=tuple(LLAMA_ALIGNED_HEADS) if t3.hp.is_multilingual else (),
        )


def _stack(t3: Any, positions: int, *, release: bool) -> Backbone:
    config = t3.cfg
    if t3.is_gpt:
        known = config.activation_function == "gelu_new" and config.scale_attn_weights
        known = known and not config.scale_attn_by_inverse_layer_idx
    else:
        known = config.hidden_act == "silu" and not config.attention_bias and not config.mlp_bias
    if not known:
        raise ModelUnavailable(
            "This Chatterbox checkpoint can't be decoded many lines at once. Choose the backend of "
            "the same name without “-batched”."
        )
    if t3.is_gpt:
        return gpt2_stack_of(t3.tfmr, positions, release=release)
    return stack_of(t3.tfmr, config, positions, release=release)
