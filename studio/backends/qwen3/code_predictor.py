"""The code predictor: a frame's codes after its first, in 15 passes over a cache of one frame."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from studio.backends.batching.decoder_stack import DecoderStack, linear, run_layers, split_kv
from studio.backends.batching.sampling import SamplingBounds
from studio.backends.qwen3.talker_slots import TalkerSlots
from studio.backends.qwen3.talker_weights import PREDICTOR_POSITIONS, TalkerWeights


class CodePredictor:
    """Makes them for many lines at once; every pass is written out, so that all of it is fixed.

    A line's sampling is for a frame's first code; these are drawn as the checkpoint asks for.
    """

    def __init__(self, weights: TalkerWeights, slots: TalkerSlots) -> None:
        """Both arguments are used, not copied."""
        self._weights = weights
        self._slots = slots
        self._sample = weights.talker.kernels.sample
        self._pair_mask = _pair_mask(weights.predictor, weights.head)
        positions = torch.arange(PREDICTOR_POSITIONS, device=weights.head.device)
        self._turns = weights.predictor.turns(positions)

    def __call__(
        self, first: torch.Tensor, noise: torch.Tensor, bounds: SamplingBounds
    ) -> torch.Tensor:
        """Make a frame's other codes, one after the other.

        Args:
            first: Of the first rows of the slots, whose states it came from: int64 [rows].
            noise: Of the frame, by `KernelSet.noise`: [groups, rows, …].
            bounds: Of the choice.

        Returns:
            int64 [rows, groups], the first one with them.
        """
        weights, rows = self._weights, len(first)
        rules = self._slots.rest_rules(rows)
        codes = [first]
        kept = self._slots.rest_heads(rows, weights.predictor.layers[0].shape)
        x = self._forward_pair(first, kept)  # [rows, hidden]
        for group, head in enumerate(weights.rest_heads, start=1):
            if group > 1:
                table = weights.rest_tables[group - 2]
                x = self._forward_code(F.embedding(codes[-1], table), group, kept)
            codes.append(self._sample(linear(x, head), noise[group], rules, bounds))
        return torch.stack(codes, dim=1)

    def _forward_pair(self, first: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        """Read the talker's state and the first code; returns the state behind both.

        Args:
            first: int64 [rows].
            kept: From `TalkerSlots.rest_heads`; the heads of both positions go there.
        """
        weights, rows = self._weights, len(first)
        hidden = self._slots.hidden[:rows]
        if weights.project is not None:
            hidden = linear(hidden, *weights.project)
        pair = torch.cat([hidden, F.embedding(first, weights.rest_first)])
        turns = [turn[:2] for turn in self._turns]
        places = kept[:, :, :2].flatten(2, 3).flatten(3)  # [layers, 2, 2 * rows, heads]
        x = run_layers(
            weights.predictor, pair, turns, self._attend_pair, lambda index: places[index]
        )
        return x[rows:]

    def _attend_pair(self, _index: int, heads: torch.Tensor) -> torch.Tensor:
        """The first two positions of the predictor; the first doesn't see the second."""
        group = self._weights.predictor.group
        each = heads.unflatten(1, (2, -1)).movedim(1, 3)  # [2, rows, kv_heads, 2, group + 2, d]
        keys, values = split_kv(each).unbind(1)
        queries = each[0][..., :group, :].flatten(2, 3)  # [rows, kv_heads, 2 * group, d]
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=self._pair_mask)
        return mixed.unflatten(2, (2, group)).permute(2, 0, 3, 1, 4).flatten(0, 1).flatten(1)

    def _forward_code(self, x: torch.Tensor, position: int, kept: torch.Tensor) -> torch.Tensor:
        stack = self._weights.predictor
        seen = kept[:, :, : position + 1].movedim(2, 4)  # [layers, 2, rows, kv_heads, positions, …]
        places = kept[:, :, position].flatten(3)  # [layers, 2, rows, heads]
        turns = [turn[position, None] for turn in self._turns]

        def attend(index: int, heads: torch.Tensor) -> torch.Tensor:
            keys, values = split_kv(seen[index]).unbind(1)
            mixed = F.scaled_dot_product_attention(heads[0][:, :, : stack.group], keys, values)
            return mixed.transpose(1, 2).flatten(1)

        return run_layers(stack, x, turns, attend, lambda index: places[index])


def _pair_mask(stack: DecoderStack, like: torch.Tensor) -> torch.Tensor:
    """Who sees whom among two positions with a group of queries each: [2 * group, 2]."""
    mask = like.new_zeros(2 * stack.group, 2)
    mask[: stack.group, 1] = -torch.inf
    return mask
