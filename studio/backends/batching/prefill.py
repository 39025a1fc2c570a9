"""Prefill: prompts read into slots in few passes, and the caches of shared prefixes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch
import torch.nn.functional as F
from cachetools import LRUCache
from torch.nn.utils.rnn import pad_sequence

from studio.backends.batching.cuda_graphs import CudaGraphRunner
from studio.backends.batching.decoder_stack import DecoderBackbone, split_kv
from studio.backends.batching.runner_contract import SlotAdmission
from studio.backends.batching.slots import SlotTensors, to_device

AdmissionT = TypeVar("AdmissionT", bound=SlotAdmission)

CUDA_PREFILL_POSITIONS = 16_384
"""Positions, padding included, of prompts read in one pass."""

CUDA_PREFILL_MULTIPLE = 16
"""Prompts there are as long as a multiple of these: for each new shape a library searches again."""


def group_by_length(lines: Sequence[AdmissionT], positions: int) -> Iterator[list[AdmissionT]]:
    """Group lines by length, so that little is padded.

    Args:
        lines: Any number of them.
        positions: The most of one group; a single line may have more. 0 reads each by itself,
            which on a CPU is as fast, and keeps a line's numbers free of others'.
    """
    group: list[AdmissionT] = []
    for line in sorted(lines, key=_own_positions):
        if group and _own_positions(line) * (len(group) + 1) > positions:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def prefill(
    stack: DecoderBackbone,
    slots: SlotTensors,
    lines: Sequence[SlotAdmission],
    *,
    begun: int | Sequence[int] = 0,
    ends: Sequence[int] | None = None,
    lengths: int = 1,
) -> None:
    """Read prompts in one pass, leaving each one's last hidden state and cache in its slot.

    `begun` positions of each prompt are in its slot's cache already; it is read up to its `ends`,
    or to its own end. The length of a pass is a multiple of `lengths`.

    Prompts are padded on the right, where causal attention never looks; a frame overwrites its
    padded position before it is seen.
    """
    starts = [begun] * len(lines) if isinstance(begun, int) else list(begun)
    batch = _lay_out(lines, starts, ends, lengths)
    at, first, last = to_device(batch.where, batch.prompts.device)
    until = max(starts) + batch.prompts.shape[1] if any(starts) else 0
    until = -(-until // lengths) * lengths  # CUDA's kernels read masks of a multiple of 8
    _read_prompts(stack, slots, batch.prompts, at, first=first, last=last, until=until)


@dataclass(frozen=True, slots=True, eq=False)
class _PromptBatch:
    """What a pass reads.

    Attributes:
        prompts: Padded on the right: [lines * rows of a line, positions, hidden].
        where: Of each line its slot, where it goes on, and where its last position is in
            `prompts`: int64 [3, lines], on the host.
    """

    prompts: torch.Tensor
    where: torch.Tensor


def _lay_out(
    lines: Sequence[SlotAdmission], starts: Sequence[int], ends: Sequence[int] | None, lengths: int
) -> _PromptBatch:
    ends = [line.prompt.embeds.shape[1] for line in lines] if ends is None else ends
    spans = list(zip(lines, starts, ends, strict=True))
    rows = [row[start:end] for line, start, end in spans for row in line.prompt.embeds]
    prompts = pad_sequence(rows, batch_first=True)
    if lengths > 1:
        prompts = F.pad(prompts, (0, 0, 0, -prompts.shape[1] % lengths))
    where = torch.tensor([[line.slot, start, end - start - 1] for line, start, end in spans])
    return _PromptBatch(prompts, where.t().contiguous())


def _read_prompts(  # noqa: PLR0913 - all are tensors of one pass
    stack: DecoderBackbone,
    slots: SlotTensors,
    prompts: torch.Tensor,
    at: torch.Tensor,
    *,
    first: torch.Tensor,
    last: torch.Tensor,
    until: int,
) -> None:
    """Read prompts that are laid out; no shape depends on a value, so that it can be captured.

    Args:
        stack: Reads them.
        slots: Are written to.
        prompts: As in `_PromptBatch`.
        at: Slots: int64 [lines].
        first: Where each goes on: int64 [lines].
        last: Of each in `prompts`: int64 [lines].
        until: Positions of the slots that are looked at, beyond all of these; 0 where every slot
            is empty.
    """
    lines, rows = len(at), len(prompts)
    places = first[:, None] + torch.arange(prompts.shape[1], device=prompts.device)
    places = places.clamp(max=slots.kv_cache.shape[4] - 1)  # only padding reaches so far
    reading = _PrefillAttention(stack, slots, at, places, until=until)
    attend = reading.attend_after_prefix if until else reading.attend_from_start
    each = places.repeat_interleave(rows // lines, dim=0)
    x = stack.forward(prompts.flatten(0, 1), each.flatten(), attend)
    x = x.view(lines, -1, prompts.shape[1], x.shape[1])
    slots.hidden[at] = x[torch.arange(lines, device=x.device), :, last].flatten(1)


@dataclass(frozen=True, slots=True)
class PrefillShape:
    """What distinguishes two captures of a pass; known on the host.

    Attributes:
        lines: A power of two.
        positions: Of each.
        until: As for `_read_prompts`.
    """

    lines: int
    positions: int
    until: int


MAX_CAPTURED_POSITIONS = 4_096
"""Positions of a pass that is captured, all lines' together. A longer one takes the card longer
than its kernels take to launch."""

_LEAST_UNTIL = 64  # positions, doubled as far as needed: each number is a graph of its own
_WARM_LINES = (1, 2, 4)


class CapturedPrefill:
    """Reads prompts from tensors that stay where they are, by a graph for each of few shapes.

    A pass launches about 430 kernels, which halts all frames meanwhile; a graph is one launch. On a
    device without graphs the same pass runs at once. For models whose prompts have one row a line.
    """

    def __init__(
        self, stack: DecoderBackbone, slots: SlotTensors, *, most_lines: int, lengths: int
    ) -> None:
        """Capture nothing yet; the first two are used, not copied.

        Positions of a pass are a multiple of `lengths`.
        """
        self._stack = stack
        self._slots = slots
        self._lengths = lengths
        like = slots.hidden
        self._where = torch.zeros(3, _power_of_two(most_lines), dtype=torch.int64).to(like.device)
        self._prompts = like.new_zeros(MAX_CAPTURED_POSITIONS, like.shape[1])
        self._graphs: CudaGraphRunner[PrefillShape] = CudaGraphRunner(
            self._read, like.device, product="prompts"
        )

    @property
    def captured(self) -> int:
        return self._graphs.captured

    def read(self, lines: Sequence[SlotAdmission], begun: Sequence[int]) -> bool:
        """Read prompts as `prefill` does; False where they are too long to be worth it."""
        # The last line fills the pass up: it writes the same to the same place again.
        lacking = _power_of_two(len(lines)) - len(lines)
        lines, begun = [*lines, *[lines[-1]] * lacking], [*begun, *[begun[-1]] * lacking]
        batch = _lay_out(lines, begun, None, self._lengths)
        positions = batch.prompts.shape[1]
        if len(lines) * positions > MAX_CAPTURED_POSITIONS:
            return False
        self._prompts[: len(lines) * positions] = batch.prompts.flatten(0, 1)
        self._where[:, : len(lines)] = to_device(batch.where, self._where.device)
        needed = _power_of_two(max(begun) + positions)
        until = max(_LEAST_UNTIL, needed) if any(begun) else 0
        self._graphs.run(PrefillShape(len(lines), positions, until))
        return True

    def warm(self) -> None:
        """Capture what short prompts need, which writes to the first slots; all must be free."""
        self._where.zero_()
        for lines in _WARM_LINES:
            if lines <= self._where.shape[1]:
                self._where[0, :lines] = torch.arange(lines)
                self._graphs.prepare(PrefillShape(lines, self._lengths, _LEAST_UNTIL))

    def close(self) -> None:
        """Release the graphs."""
        self._graphs.close()

    def _read(self, shape: PrefillShape) -> None:
        prompts = self._prompts[: shape.lines * shape.positions]
        at, first, last = self._where[:, : shape.lines]
        _read_prompts(
            self._stack,
            self._slots,
            prompts.view(shape.lines, shape.positions, -1),
            at,
            first=first,
            last=last,
            until=shape.until,
        )


def _power_of_two(count: int) -> int:
    """The next power of two from a count on."""
    return 1 << (count - 1).bit_length()


class _PrefillAttention:
    """Attention of a prefill, which also stores keys and values in the slots."""

    def __init__(
        self,
        stack: DecoderBackbone,
        slots: SlotTensors,
        at: torch.Tensor,
        places: torch.Tensor,
        *,
        until: int,
    ) -> None:
        """Prepare indices and masks; `at` is int64 [lines], `places` [lines, positions]."""
        self._stack = stack
        self._slots = slots
        self._at = at
        self._places = places
        self._until = min(until, slots.kv_cache.shape[4])
        heads = torch.arange(slots.kv_cache.shape[3], device=at.device)
        kinds = torch.arange(2, device=at.device)
        self._where = (
            *(at[:, None, None, None], kinds[:, None, None], heads[:, None]),
            places[:, None, None],
        )

    def attend_from_start(self, index: int, heads: torch.Tensor) -> torch.Tensor:
        """Attend with empty slots; see `AttentionFn`."""
        queries, keys, values = self._store_kv(index, heads)
        by_head = queries.transpose(2, 3).flatten(1, 2)  # [rows, heads, positions, head_dim]
        mixed = F.scaled_dot_product_attention(
            by_head, keys, values, is_causal=True, enable_gqa=True
        )
        mixed = mixed.unflatten(1, queries.shape[1:4:2])
        return mixed.permute(0, 3, 2, 1, 4).flatten(0, 1).flatten(1)

    def attend_after_prefix(self, index: int, heads: torch.Tensor) -> torch.Tensor:
        """Attend where some slots hold a cached prefix."""
        queries, keys, _ = self._store_kv(index, heads)
        shape = (*keys.shape[:2], self._until, keys.shape[3])
        seen = self._slots.kv_cache[index, self._at, :, :, : self._until]
        # The queries of a group as positions: with a mask, few kernels know groups.
        mixed = F.scaled_dot_product_attention(
            queries.flatten(2, 3),
            seen[:, 0].reshape(shape),
            seen[:, 1].reshape(shape),
            attn_mask=self._mask,
        )
        mixed = mixed.unflatten(2, queries.shape[2:4])
        return mixed.permute(0, 2, 3, 1, 4).flatten(0, 1).flatten(1)

    def _store_kv(
        self, index: int, heads: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Store a layer's keys and values.

        Returns:
            Queries, [rows, kv_heads, positions, group, head_dim]; keys and values, the same
            without the group.
        """
        lines, positions = self._places.shape
        heads = heads.unflatten(1, (-1, positions)).transpose(2, 3)
        both = split_kv(heads)  # [rows, 2, kv_heads, positions, head_dim]
        by_line = both.unflatten(0, (lines, -1)).transpose(1, 2).flatten(2, 3)
        self._slots.kv_cache[index].index_put_(self._where, by_line)
        return heads[0][:, :, :, : self._stack.group], both[:, 0], both[:, 1]

    @cached_property
    def _mask(self) -> torch.Tensor:
        """The attention mask, 0 or minus infinity: [rows, 1, positions * group, until]."""
        slots, stack = self._slots, self._stack
        beyond = torch.arange(self._until, device=self._at.device) > self._places[..., None]
        mask = torch.zeros(beyond.shape, dtype=slots.kv_cache.dtype, device=self._at.device)
        mask = mask.masked_fill_(beyond, -torch.inf).repeat_interleave(stack.group, dim=1)
        return mask.repeat_interleave(slots.kv_cache.shape[3] // stack.kv_heads, dim=0)[:, None]


def count_written_positions(lines: Sequence[SlotAdmission], lengths: int = 1) -> int:
    """Positions of a slot that prefilling these lines may write, padding included."""
    shared = max((line.prompt.shared for line in lines), default=0)
    own = max((_own_positions(line) for line in lines), default=0)
    return sum(-(-part // lengths) * lengths for part in (shared, own))


def _own_positions(line: SlotAdmission) -> int:
    """Positions of a prompt after its shared prefix."""
    return line.prompt.embeds.shape[1] - line.prompt.shared


# What many prompts begin with, read once and kept as it stands in the cache.
#
# Attention looks back only, so the cache of a beginning is the same whatever follows it.


@dataclass(frozen=True, slots=True, eq=False)
class _PrefixEntry:
    """A cached prefix; holds its owner, so that the `id` in its key isn't reused."""

    owner: object
    cached: torch.Tensor  # [layers, keys and values, heads, positions, head_dim]


class PrefixCache:
    """Caches the prefixes of prompts; evicts the least recently used.

    A prefix is read by itself even for the first line that has it, so that a line's values are
    the same whether others came before it or not.
    """

    def __init__(
        self, stack: DecoderBackbone, slots: SlotTensors, most_bytes: int, *, lengths: int = 1
    ) -> None:
        self._stack = stack
        self._slots = slots
        self._lengths = lengths
        self._kept: LRUCache[Hashable, _PrefixEntry] = LRUCache(
            most_bytes, getsizeof=lambda one: one.cached.nbytes
        )
        self.computed = 0

    @property
    def size_bytes(self) -> int:
        return int(self._kept.currsize)

    def fill(self, lines: Sequence[SlotAdmission]) -> None:
        """Write each line's prefix into its slot; read those not cached in one pass."""
        begun = [line for line in lines if line.prompt.shared]
        firsts = {line.prompt.part: line for line in reversed(begun)}
        at_hand = {part: self._kept[part] for part in firsts if part in self._kept}
        missing = [line for part, line in firsts.items() if part not in at_hand]
        if missing:
            ends = [line.prompt.shared for line in missing]
            prefill(self._stack, self._slots, missing, ends=ends, lengths=self._lengths)
        for line in missing:
            at_hand[line.prompt.part] = self._keep(line)
        for line in begun:
            self._slots.write_kv(line.slot, at_hand[line.prompt.part].cached)

    def clear(self) -> None:
        """Evict everything."""
        self._kept.clear()

    def _keep(self, line: SlotAdmission) -> _PrefixEntry:
        prompt = line.prompt
        made = _PrefixEntry(prompt.voice, self._slots.read_kv(line.slot, prompt.shared))
        self.computed += 1
        if made.cached.nbytes <= self._kept.maxsize:
            self._kept[prompt.part] = made
        return made


class EmbeddingCache:
    """Caches computed parts of prompts; evicts the least recently used."""

    def __init__(self, most: int) -> None:
        self._parts: LRUCache[Hashable, tuple[object, torch.Tensor]] = LRUCache(most)
        self._lock = threading.Lock()  # guards the parts, which several threads may ask for
        self.computed = 0

    def __len__(self) -> int:
        return len(self._parts)

    def get_or_compute(
        self, key: Hashable, owner: object, make: Callable[[], torch.Tensor]
    ) -> torch.Tensor:
        """A part, computed if not cached; its owner is held, so that its `id` isn't reused."""
        with self._lock:
            if key in self._parts:
                return self._parts[key][1]
        part = make()  # without the lock: others find theirs meanwhile
        with self._lock:
            self._parts[key] = (owner, part)
            self.computed += 1
        return part
