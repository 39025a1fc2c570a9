"""The codec's transformer, going on from the keys and values of the frames before.

Each layer looks back on one window of frames, so that many are kept, oldest first; fresh ones are
put behind them and the oldest fall off. Which of them a line has yet heard is told by its count of
frames, on the device.

Source: `Qwen3TTSTokenizerV2DecoderTransformerModel` of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from studio.backends.qwen3.codec_state import Ledger


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """What all layers of a pass have in common.

    Attributes:
        cos: [rows, 1, frames, head_dim].
        sin: The same.
        mask: Whom a frame may see: bool [rows, 1, frames, before + frames].
    """

    cos: torch.Tensor
    sin: torch.Tensor
    mask: torch.Tensor


class CodecTransformer:
    """Reads frames behind those that were read before."""

    def __init__(self, model: Any, ledger: Ledger) -> None:
        """Take the package's model; it is only read."""
        config, attention = model.config, model.layers[0].self_attn
        self._model = model
        self._head_dim = int(attention.head_dim)
        self._grouped = attention.num_key_value_groups > 1
        self._window = int(config.sliding_window)
        rates = model.rotary_emb.inv_freq.float()
        self._rates = torch.cat([rates, rates])
        self._scale = float(model.rotary_emb.attention_scaling)
        self._heard = ledger.place(1)
        self._kept = ledger.place(
            *(len(model.layers), 2, config.num_key_value_heads, self._window - 1, self._head_dim)
        )

    def __call__(self, hidden: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Read the next frames of some lines.

        Args:
            hidden: [rows, frames, width].
            state: Of these rows; is moved on.

        Returns:
            [rows, frames, width].
        """
        model, heard = self._model, self._heard.of(state)
        kept = self._kept.of(state)  # [rows, layers, 2, heads, before, head_dim]
        x = model.input_proj(hidden)
        view = self._view(heard, hidden.shape[1])
        for index, layer in enumerate(model.layers):
            mixed = self._attended(
                layer.self_attn, _normed(layer.input_layernorm, x), view, kept[:, index]
            )
            x = x + layer.self_attn_layer_scale(mixed)
            fed = layer.mlp(_normed(layer.post_attention_layernorm, x))
            x = x + layer.mlp_layer_scale(fed)
        heard.add_(hidden.shape[1])
        return model.output_proj(_normed(model.norm, x))

    def _view(self, heard: torch.Tensor, frames: int) -> _View:
        """Where the frames are, and whom they see; `heard` is float [rows, 1]."""
        fresh = torch.arange(frames, device=heard.device)
        angles = (heard + fresh)[:, None, :, None] * self._rates
        before = self._window - 1
        key = torch.arange(before + frames, device=heard.device)
        near = (key >= fresh[:, None]) & (key <= fresh[:, None] + before)  # [frames, keys]
        begun = key >= before - heard  # [rows, keys]
        return _View(
            angles.cos() * self._scale, angles.sin() * self._scale, (near & begun[:, None])[:, None]
        )

    def _attended(
        self, attention: Any, x: torch.Tensor, view: _View, kept: torch.Tensor
    ) -> torch.Tensor:
        """One layer's attention; `kept`, [rows, 2, heads, before, head_dim], is moved on."""
        rows, frames, _ = x.shape

        def heads(projection: Any) -> torch.Tensor:
            return projection(x).view(rows, frames, -1, self._head_dim).transpose(1, 2)

        query = _turned(heads(attention.q_proj), view)
        fresh = torch.stack([_turned(heads(attention.k_proj), view), heads(attention.v_proj)], 1)
        seen = torch.cat([kept, fresh], dim=3)
        kept.copy_(seen[:, :, :, frames:])
        keys, values = seen.unbind(1)
        mixed = F.scaled_dot_product_attention(
            query, keys, values, attn_mask=view.mask, enable_gqa=self._grouped
        )
        return attention.o_proj(mixed.transpose(1, 2).reshape(rows, frames, -1))


def _turned(heads: torch.Tensor, view: _View) -> torch.Tensor:
    """Rotate by position."""
    left, right = heads.chunk(2, dim=-1)
    return heads * view.cos + torch.cat([-right, left], dim=-1) * view.sin


def _normed(norm: Any, x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, x.shape[-1:], norm.weight, norm.variance_epsilon)
