"""Reading prompts of different lengths into slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from studio.backends.batched.core_contract import Admission
from studio.backends.batched.sending import sent
from studio.backends.batched.slots import Slots
from studio.backends.batched.transformer import run
from studio.backends.batched.weights import Weights

TOGETHER_ON_CUDA = 16_384
"""Positions, padding included, of prompts read in one pass."""


def passes(lines: Sequence[Admission], positions: int) -> Iterator[list[Admission]]:
    """Group lines by length, so that little is padded.

    Args:
        lines: Any number of them.
        positions: The most of one group; a single line may have more. 0 reads each by itself,
            which on a CPU is as fast, and keeps a line's numbers free of its company.
    """
    group: list[Admission] = []
    for line in sorted(lines, key=_length):
        if group and _length(line) * (len(group) + 1) > positions:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def read(weights: Weights, slots: Slots, lines: Sequence[Admission]) -> None:
    """Read prompts in one pass, and leave each one's last state and cache in its slot.

    Prompts are padded on the right, where causal attention never looks; a frame overwrites its
    padded position before it is seen.
    """
    stack, group = weights.talker, weights.talker.group
    prompts = pad_sequence([line.prompt.embeds[0] for line in lines], batch_first=True)
    n, positions, _ = prompts.shape
    at = sent(torch.tensor([line.slot for line in lines]), prompts.device)

    def attend(index: int, turned: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
        heads = turned.unflatten(0, (n, positions)).transpose(1, 2)  # [n, kv_heads, positions, ...]
        keys = heads[:, :, :, group]
        values = plain.unflatten(0, (n, positions)).transpose(1, 2)[:, :, :, group + 1]
        slots.keys[index, at, :, :positions] = keys
        slots.values[index, at, :, :positions] = values
        queries = heads[:, :, :, :group].transpose(2, 3).flatten(1, 2)
        mixed = F.scaled_dot_product_attention(
            queries, keys, values, is_causal=True, enable_gqa=True
        )
        return mixed.transpose(1, 2).flatten(0, 1).flatten(1)

    turn = stack.cos[:positions].repeat(n, 1), stack.sin[:positions].repeat(n, 1)
    x = run(stack, prompts.flatten(0, 1), turn, attend).view(n, positions, -1)
    last = sent(torch.tensor([_length(line) - 1 for line in lines]), prompts.device)
    slots.hidden[at] = x[torch.arange(n, device=prompts.device), last]


def _length(line: Admission) -> int:
    return line.prompt.embeds.shape[1]
