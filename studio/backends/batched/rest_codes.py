"""The codes of a frame after its first: 15 passes of the predictor over a cache of one frame.

Source: `Qwen3TTSTalkerCodePredictorModelForConditionalGeneration` of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from studio.backends.batched.choice import Breadth
from studio.backends.batched.slots import Slots
from studio.backends.batched.transformer import run, times
from studio.backends.batched.weights import Stack, Weights


class RestCodes:
    """Makes them for many lines at once; every pass is written out, so that all of it is fixed."""

    def __init__(self, weights: Weights, slots: Slots) -> None:
        """Both arguments are used, not copied."""
        self._weights = weights
        self._slots = slots
        self._choose = weights.talker.parts.choose
        self._pair_mask = _pair_mask(weights.predictor, weights.head)

    def __call__(self, first: torch.Tensor, keys: torch.Tensor, breadth: Breadth) -> torch.Tensor:
        """Make a frame's other codes, one after the other.

        Args:
            first: Of the first rows of the slots, whose states it came from: int64 [rows].
            keys: From `frame_keys`: int64 [groups, rows, 1].
            breadth: Of the choice.

        Returns:
            int64 [rows, groups], the first one with them.
        """
        weights, rows = self._weights, len(first)
        rules = self._slots.rest_rules(rows)
        codes = [first]
        x = self._read_pair(first, rows)  # [rows, hidden]
        for group, head in enumerate(weights.rest_heads, start=1):
            if group > 1:
                table = weights.rest_tables[group - 2]
                x = self._read_code(F.embedding(codes[-1], table), group)
            codes.append(self._choose(times(x, head), keys[group], rules, breadth))
        return torch.stack(codes, dim=1)

    def _read_pair(self, first: torch.Tensor, rows: int) -> torch.Tensor:
        """Read the talker's state and the first code; returns the state behind both."""
        weights = self._weights
        stack = weights.predictor
        hidden = self._slots.hidden[:rows]
        if weights.project is not None:
            hidden = times(hidden, *weights.project)
        pair = torch.stack([hidden, F.embedding(first, weights.rest_first)], dim=1)
        turn = stack.cos[:2].repeat(rows, 1), stack.sin[:2].repeat(rows, 1)
        x = run(stack, pair.flatten(0, 1), turn, self._attend_pair)
        return x.view(rows, 2, -1)[:, 1]

    def _attend_pair(self, index: int, turned: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
        """The first two positions of the predictor; the first doesn't see the second."""
        group, slots = self._weights.predictor.group, self._slots
        rows = len(turned) // 2
        turned = turned.unflatten(0, (rows, 2)).transpose(1, 2)  # [rows, kv_heads, 2, group + 2, d]
        values = plain.unflatten(0, (rows, 2)).transpose(1, 2)[..., group + 1, :]
        keys = turned[..., group, :]
        slots.rest_keys[index, :rows, :, :2] = keys
        slots.rest_values[index, :rows, :, :2] = values
        queries = turned[..., :group, :].flatten(2, 3)  # [rows, kv_heads, 2 * group, d]
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=self._pair_mask)
        return mixed.unflatten(2, (2, group)).permute(0, 2, 3, 1, 4).flatten(0, 1).flatten(1)

    def _read_code(self, x: torch.Tensor, position: int) -> torch.Tensor:
        stack, slots = self._weights.predictor, self._slots
        group, rows = stack.group, len(x)

        def attend(index: int, turned: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
            keys, values = slots.rest_keys[index, :rows], slots.rest_values[index, :rows]
            keys[:, :, position] = turned[:, :, group]
            values[:, :, position] = plain[:, :, group + 1]
            end = position + 1
            mixed = F.scaled_dot_product_attention(
                turned[:, :, :group], keys[:, :, :end], values[:, :, :end]
            )
            return mixed.transpose(1, 2).flatten(1)

        return run(stack, x, (stack.cos[position, None], stack.sin[position, None]), attend)


def _pair_mask(stack: Stack, like: torch.Tensor) -> torch.Tensor:
    """Who sees whom among two positions with a group of queries each: [2 * group, 2]."""
    mask = like.new_zeros(2 * stack.group, 2)
    mask[: stack.group, 1] = -torch.inf
    return mask
