"""The transformer of the turbo T3, packed like the others for the common core.

Source: `GPT2Model` of the transformers package 5.15.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from studio.backends.batched.transformer import Attention, times


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """A matrix or a norm's scale, and what is added after it."""

    weight: torch.Tensor
    bias: torch.Tensor

    def norm(self, x: torch.Tensor, eps: float) -> torch.Tensor:
        """Norm of the last dimension, scaled and moved."""
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, eps)

    def times(self, x: torch.Tensor) -> torch.Tensor:
        """Rows times the matrix: [rows, in] to [rows, out]."""
        return times(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True, eq=False)
class Gpt2Layer:
    """One layer; `heads` makes query, key and value of a head side by side."""

    before: Affine
    heads: Affine
    out: Affine
    between: Affine
    up: Affine
    down: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Gpt2Stack:
    """The layers; see `studio.backends.batched.transformer.Backbone`.

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

    def read(self, x: torch.Tensor, at: torch.Tensor, attend: Attention) -> torch.Tensor:
        """Pass rows at positions through all layers: [rows, hidden]."""
        x = x + self.places[at]
        for index, layer in enumerate(self.layers):
            heads = layer.heads.times(layer.before.norm(x, self.eps))
            heads = heads.view(-1, self.kv_heads, self.group + 2, self.head_dim)
            x = x + layer.out.times(attend(index, heads.expand(2, *heads.shape)))
            up = layer.up.times(layer.between.norm(x, self.eps))
            x = x + layer.down.times(F.gelu(up, approximate="tanh"))
        return self.norm.norm(x, self.eps)


def gpt2_stack_of(model: Any, positions: int, *, release: bool) -> Gpt2Stack:
    """Pack a `GPT2Model`.

    Args:
        model: The transformers package's.
        positions: How far its cache reaches; at most as far as its own positions.
        release: Take each layer away when it is packed.
    """
    config, heads = model.config, model.config.n_head
    layers = []
    for index, module in enumerate(model.h):
        layers.append(_layer(module, heads))
        if release:
            model.h[index] = torch.nn.Identity()
    return Gpt2Stack(
        layers=tuple(layers),
        norm=_norm(model.ln_f),
        places=model.wpe.weight[:positions].detach(),
        eps=float(config.layer_norm_epsilon),
        kv_heads=heads,
        head_dim=config.n_embd // heads,
    )


def _layer(module: Any, heads: int) -> Gpt2Layer:
    return Gpt2Layer(
        before=_norm(module.ln_1),
        heads=_by_head(_matrix(module.attn.c_attn), heads),
        out=_matrix(module.attn.c_proj),
        between=_norm(module.ln_2),
        up=_matrix(module.mlp.c_fc),
        down=_matrix(module.mlp.c_proj),
    )


def _norm(module: Any) -> Affine:
    return Affine(module.weight.detach(), module.bias.detach())


def _matrix(module: Any) -> Affine:
    """A `Conv1D`, which keeps its matrix as [in, out]."""
    return Affine(module.weight.detach().t().contiguous(), module.bias.detach())


def _by_head(three: Affine, heads: int) -> Affine:
    """From all queries, all keys, all values to query, key and value of each head."""
    weight = three.weight.unflatten(0, (3, heads, -1)).transpose(0, 1).flatten(0, 2)
    bias = three.bias.unflatten(0, (3, heads, -1)).transpose(0, 1).flatten()
    return Affine(weight.contiguous(), bias.contiguous())
