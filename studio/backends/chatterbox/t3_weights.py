"""T3 with packed weights: the Llama stack with guidance, and turbo's GPT-2 stack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from chatterbox.models.t3.inference.alignment_stream_analyzer import LLAMA_ALIGNED_HEADS

from studio.backends.batching.decoder_stack import (
    AttentionFn,
    DecoderBackbone,
    DecoderStack,
    KernelSet,
    linear,
    pack_stack,
)
from studio.backends.batching.runner_contract import BatchingUnavailable

# The transformer of the turbo T3, packed like the others for the common core.
#
# Source: `GPT2Model` of the transformers package 5.15.


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """A matrix or a norm's scale, and its bias."""

    weight: torch.Tensor
    bias: torch.Tensor

    def norm(self, x: torch.Tensor, eps: float) -> torch.Tensor:
        """Layer norm over the last dimension, with scale and bias."""
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, eps)

    def times(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply rows by the matrix and add the bias: [rows, in] to [rows, out]."""
        return linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True, eq=False)
class Gpt2Layer:
    """One layer; `heads` makes query, key and value of a head side by side."""

    input_norm: Affine
    qkv: Affine
    attn_out: Affine
    post_attn_norm: Affine
    up: Affine
    down: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Gpt2Stack:
    """The layers; see `studio.backends.batching.decoder_stack.DecoderBackbone`.

    Attributes:
        places: Learned, one a position: [positions, hidden].
    """

    layers: tuple[Gpt2Layer, ...]
    norm: Affine
    places: torch.Tensor
    eps: float
    kv_heads: int
    head_dim: int
    group: int = 1

    def forward(self, x: torch.Tensor, at: torch.Tensor, attend: AttentionFn) -> torch.Tensor:
        """Run rows at positions through all layers: [rows, hidden]."""
        x = x + self.places[at]
        for index, layer in enumerate(self.layers):
            heads = layer.qkv.times(layer.input_norm.norm(x, self.eps))
            heads = heads.view(-1, self.kv_heads, self.group + 2, self.head_dim)
            x = x + layer.attn_out.times(attend(index, heads.expand(2, *heads.shape)))
            up = layer.up.times(layer.post_attn_norm.norm(x, self.eps))
            x = x + layer.down.times(F.gelu(up, approximate="tanh"))
        return self.norm.norm(x, self.eps)


def pack_gpt2_stack(model: Any, positions: int, *, release: bool) -> Gpt2Stack:
    """Pack the transformers package's `GPT2Model`; `release` takes each packed layer away."""
    config, heads = model.config, model.config.n_head
    layers = []
    for index, module in enumerate(model.h):
        layers.append(_pack_gpt2_layer(module, heads))
        if release:
            model.h[index] = torch.nn.Identity()
    return Gpt2Stack(
        layers=tuple(layers),
        norm=_pack_norm(model.ln_f),
        places=model.wpe.weight[:positions].detach(),
        eps=float(config.layer_norm_epsilon),
        kv_heads=heads,
        head_dim=config.n_embd // heads,
    )


def _pack_gpt2_layer(module: Any, heads: int) -> Gpt2Layer:
    return Gpt2Layer(
        input_norm=_pack_norm(module.ln_1),
        qkv=_group_by_head(_pack_matrix(module.attn.c_attn), heads),
        attn_out=_pack_matrix(module.attn.c_proj),
        post_attn_norm=_pack_norm(module.ln_2),
        up=_pack_matrix(module.mlp.c_fc),
        down=_pack_matrix(module.mlp.c_proj),
    )


def _pack_norm(module: Any) -> Affine:
    return Affine(module.weight.detach(), module.bias.detach())


def _pack_matrix(module: Any) -> Affine:
    """Pack a `Conv1D`, whose matrix is stored as [in, out]."""
    return Affine(module.weight.detach().t().contiguous(), module.bias.detach())


def _group_by_head(three: Affine, heads: int) -> Affine:
    """Reorder all queries, keys and values to query, key and value of each head."""
    weight = three.weight.unflatten(0, (3, heads, -1)).transpose(0, 1).flatten(0, 2)
    bias = three.bias.unflatten(0, (3, heads, -1)).transpose(0, 1).flatten()
    return Affine(weight.contiguous(), bias.contiguous())


# A T3 with its weights packed: those with two rows of guidance, and turbo.
#
# Source: `T3` of chatterbox-tts 0.1.7.


@dataclass(frozen=True, slots=True, eq=False)
class T3Weights:
    """The weights of a checkpoint that a decode step needs.

    Attributes:
        head: Scores of a token: [vocabulary, hidden].
        head_bias: Added to them: [vocabulary]; None where there is none.
        tokens: Embeddings: [vocabulary, hidden].
        places: Learned, one a speech token from the start on: [tokens, hidden]; None where the
            transformer has its own.
        rows: 2 with guidance, whose second row sees no text; else 1.
        shortest: Tokens that a line has before one can be its end.
        penalty_first: Whether repetition is weighed before temperature and filters, and the start
            counts as said; else after them, and it counts before the first token only.
        watched: Layer and head of each head whose attention decides about a line's end.
    """

    stack: DecoderBackbone
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

    def with_kernels(self, kernels: KernelSet) -> T3Weights:
        """The same weights with other kernels, where the transformer takes some."""
        if not isinstance(self.stack, DecoderStack):
            return self
        return replace(self, stack=replace(self.stack, kernels=kernels))


def pack_t3(t3: Any, positions: int, dtype: torch.dtype, *, release: bool = False) -> T3Weights:
    """Pack a T3.

    `release` takes its layers away one by one, so that they aren't held twice; prompts can still be
    laid out with it.
    """
    _check_supported(t3)
    with torch.no_grad():
        if dtype is not torch.float32:
            t3.tfmr.to(dtype)
        bias = t3.speech_head.bias
        return T3Weights(
            stack=pack_gpt2_stack(t3.tfmr, positions, release=release)
            if t3.is_gpt
            else pack_stack(t3.tfmr, t3.cfg, positions, release=release),
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


def _check_supported(t3: Any) -> None:
    """Refuse features that no released checkpoint has, which would be computed wrongly.

    The line-by-line runner takes over, which is the package's own.
    """
    config = t3.cfg
    if t3.is_gpt:
        known = config.activation_function == "gelu_new" and config.scale_attn_weights
        known = known and not config.scale_attn_by_inverse_layer_idx
    else:
        known = config.hidden_act == "silu" and not config.attention_bias and not config.mlp_bias
    if not known:
        raise BatchingUnavailable(
            "This Chatterbox checkpoint has layers that the batched T3 doesn't know."
        )
