"""Reading prompts of different lengths into slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from studio.backends.batched.core_contract import Prompted
from studio.backends.batched.sending import sent
from studio.backends.batched.state import SlotState
from studio.backends.batched.transformer import Backbone

LineT = TypeVar("LineT", bound=Prompted)

TOGETHER_ON_CUDA = 16_384
"""Positions, padding included, of prompts read in one pass."""


def passes(lines: Sequence[LineT], positions: int) -> Iterator[list[LineT]]:
    """Group lines by length, so that little is padded.

    Args:
        lines: Any number of them.
        positions: The most of one group; a single line may have more. 0 reads each by itself,
            which on a CPU is as fast, and keeps a line's numbers free of its company.
    """
    group: list[LineT] = []
    for line in sorted(lines, key=_length):
        if group and _length(line) * (len(group) + 1) > positions:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def read(stack: Backbone, slots: SlotState, lines: Sequence[Prompted], *, begun: int = 0) -> None:
    """Read prompts in one pass, and leave each one's last state and cache in its slot.

    Prompts are padded on the right, where causal attention never looks; a frame overwrites its
    padded position before it is seen.

    Args:
        stack: Reads them.
        slots: Where they go.
        lines: Whose prompts.
        begun: Positions at each prompt's start that its slot's cache holds already.
    """
    group = stack.group
    rows = [row[begun:] for line in lines for row in line.prompt.embeds]
    prompts = pad_sequence(rows, batch_first=True)
    n, positions, _ = prompts.shape  # n is a multiple of the lines
    end = begun + positions
    at = sent(torch.tensor([line.slot for line in lines]), prompts.device)
    places = torch.arange(end, device=prompts.device)
    mask = None if begun == 0 else places <= places[begun:, None]  # [positions, end]

    def by_line(heads: torch.Tensor) -> torch.Tensor:
        return heads.unflatten(0, (len(lines), -1)).flatten(1, 2)

    def attend(index: int, turned: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
        heads = turned.unflatten(0, (n, positions)).transpose(1, 2)  # [n, kv_heads, positions, ...]
        keys = heads[:, :, :, group]
        values = plain.unflatten(0, (n, positions)).transpose(1, 2)[:, :, :, group + 1]
        slots.keys[index, at, :, begun:end] = by_line(keys)
        slots.values[index, at, :, begun:end] = by_line(values)
        if begun:
            shape = (n, stack.kv_heads, end, stack.head_dim)
            keys = slots.keys[index, at, :, :end].view(shape)
            values = slots.values[index, at, :, :end].view(shape)
        queries = heads[:, :, :, :group].transpose(2, 3).flatten(1, 2)
        mixed = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, is_causal=mask is None, enable_gqa=True
        )
        return mixed.transpose(1, 2).flatten(0, 1).flatten(1)

    x = stack.read(prompts.flatten(0, 1), places[begun:].repeat(n), attend)
    x = x.view(len(lines), -1, positions, x.shape[1])
    last = sent(torch.tensor([_length(line) - begun - 1 for line in lines]), prompts.device)
    slots.hidden[at] = x[torch.arange(len(lines), device=prompts.device), :, last].flatten(1)


def _length(line: Prompted) -> int:
    return line.prompt.embeds.shape[1]
