"""A model runner with static slots: admission, steps over a bucket, status readback."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic

import torch

from studio.backends.batching.cuda_graphs import CudaGraphRunner
from studio.backends.batching.decoder_stack import DecoderBackbone
from studio.backends.batching.prefill import (
    CUDA_PREFILL_MULTIPLE,
    CUDA_PREFILL_POSITIONS,
    AdmissionT,
    CapturedPrefill,
    PrefixCache,
    count_written_positions,
    group_by_length,
    prefill,
)
from studio.backends.batching.runner_contract import (
    BUCKETS,
    PREFIX_CACHE_BYTES,
    SlotAdmission,
    SlotLayout,
    SlotProgress,
    StopReason,
)
from studio.backends.batching.sampling import SamplingBounds
from studio.backends.batching.slots import IntColumn, SlotPhase, SlotTensors, StepShape
from studio.errors import SpeechFailed


@dataclass(frozen=True, slots=True)
class SlotStatus:
    """The status of an admitted line.

    Attributes:
        epoch: Which admission it is, or which move.
        own_bound: Whether that is the line's own bound rather than the cache's.
        steps: Since it was admitted; never fewer than its frames.
    """

    epoch: int
    prompt: int
    limit: int
    own_bound: bool
    bounds: SamplingBounds
    steps: int = 0
    frames: int = 0

    @classmethod
    def admit(
        cls, line: SlotAdmission, epoch: int, positions: int, bounds: SamplingBounds
    ) -> SlotStatus:
        """A line that is being admitted under an `epoch` that no line had before."""
        prompt = line.prompt.embeds.shape[1]
        room = positions - prompt
        limit, own_bound = min(line.max_frames, room), line.max_frames <= room
        return cls(epoch, prompt, limit, own_bound, bounds)

    @property
    def positions(self) -> int:
        """Upper bound of its cache's length, in positions."""
        return self.prompt + min(self.steps, self.limit)

    def progress(self, row: Sequence[int]) -> SlotProgress:
        """Its progress by its slot's status, which may still be that of an earlier admission."""
        if row[IntColumn.EPOCH] != self.epoch:
            return SlotProgress(self.frames)
        frames = row[IntColumn.FRAME]
        match SlotPhase(row[IntColumn.STATE]):
            case SlotPhase.ENDED:
                return SlotProgress(frames, StopReason.ENDED)
            case SlotPhase.BOUND:
                return SlotProgress(frames, StopReason.BOUND if self.own_bound else StopReason.FULL)
            case _:
                return SlotProgress(frames)


class StatusReadback:
    """Copies of the slots' status to the host, one for each of the last two steps."""

    def __init__(self, whole: torch.Tensor, *, late: bool | None = None) -> None:
        """Copy nothing yet.

        Args:
            whole: What is copied: int64 [slots, columns]; used.
            late: Whether to report the step before the last one; None for what suits the device.
        """
        self._whole = whole
        self._cuda = whole.is_cuda
        self._late = self._cuda if late is None else late
        self._copies = [torch.zeros(whole.shape, dtype=whole.dtype) for _ in range(2)]
        self._events: list[torch.cuda.Event] = []
        if self._cuda:
            self._copies = [copy.pin_memory() for copy in self._copies]
            self._events = [torch.cuda.Event() for _ in range(2)]
        self._sent = 0

    def send(self) -> None:
        """Queue a copy behind the step that was queued last."""
        at = self._sent % 2
        self._copies[at].copy_(self._whole, non_blocking=True)
        if self._cuda:
            self._events[at].record()
        self._sent += 1

    def read(self, *, latest: bool = False) -> list[list[int]]:
        """The status of all slots: one step late if set so, unless the latest is asked for.

        Before the first step they are all 0.
        """
        late = self._late and not latest
        at = (self._sent - (2 if late else 1)) % 2
        if self._cuda and self._sent >= (2 if late else 1):
            self._events[at].synchronize()
        rows: list[list[int]] = self._copies[at].tolist()
        return rows


_WARM_POSITIONS = (256, 512)  # of most lines with their prompts; what warming prepares
_MIN_CUDA_WINDOW = 256
_CPU_WINDOW_STEP = 64  # of a CPU, which captures nothing


class SlotModelRunner(ABC, Generic[AdmissionT]):
    """Decodes many lines of one checkpoint as a batch, by the same step on CUDA and CPU.

    Attributes:
        layout: Sizes of the slots.
        prefix_cache: Of what prompts begin with.
        prompts: Lays prompts out, and keeps what they share; the model's own.
        _too_long: Why a line is refused whose prompt fills a slot's cache, with the remedy.
    """

    prompts: Any
    _too_long: ClassVar[str]

    def __init__(  # noqa: PLR0913 - all but the first four have defaults
        self,
        layout: SlotLayout,
        stack: DecoderBackbone,
        slots: SlotTensors,
        step: Callable[[StepShape], None],
        *,
        prefill_positions: int | None = None,
        usual: SamplingBounds | None = None,
        always: SamplingBounds | None = None,
        own_attention: bool = False,
        captures_prefill: bool = False,
    ) -> None:
        """Begin with free slots; `stack` reads prompts into them, and `step` advances them.

        For `prefill_positions` see `group_by_length`; None is the device's. `usual` is what is
        asked of the choice while no line asks for more; with `always` every step is of it, warming
        captures every window, and no line needs a graph of its own. `own_attention` says that the
        step reads each line's own positions, whatever the window; for `captures_prefill` see
        `CapturedPrefill`.
        """
        device = slots.ints.device
        together = CUDA_PREFILL_POSITIONS if device.type == "cuda" else 0
        self.layout = layout
        self._together = together if prefill_positions is None else prefill_positions
        padded = captures_prefill or device.type == "cuda"
        self._lengths = CUDA_PREFILL_MULTIPLE if padded else 1
        self._usual = always or usual or SamplingBounds()
        self._always = always
        self._stack = stack
        self._slots = slots
        self._has_own_attention = own_attention
        usual_bytes = PREFIX_CACHE_BYTES[device.type]
        kept_bytes = usual_bytes if layout.kept_bytes is None else layout.kept_bytes
        self.prefix_cache = PrefixCache(stack, slots, kept_bytes, lengths=self._lengths)
        self._graphs = CudaGraphRunner(step, device)
        self._prefill: CapturedPrefill | None = None
        if captures_prefill:
            self._prefill = CapturedPrefill(
                stack, slots, most_lines=layout.slots, lengths=self._lengths
            )
        self._readback = StatusReadback(slots.ints)
        self._statuses: dict[int, SlotStatus] = {}
        self._dirty = [0] * layout.slots  # positions of each cache that were ever written
        self._epochs = 0

    @property
    def device(self) -> torch.device:
        return self._slots.ints.device

    @property
    def buckets(self) -> tuple[int, ...]:
        """Batch sizes that a step supports, ascending; the last one is all slots."""
        return bucket_sizes(self.layout.slots)

    def admit(self, lines: Sequence[AdmissionT]) -> None:
        """Prefill the prompts, batched where that pays, and put the lines into their slots.

        What was in the slots before is forgotten. On an error none of the lines is admitted.

        Raises:
            SpeechFailed: A prompt leaves no room for a frame.
            ValueError: A slot isn't free or named twice; a bound, or a limit of the model's own,
                is out of range.
            torch.OutOfMemoryError: Reading them takes more than there is; admit fewer.
        """
        self._check(lines)
        taken = {
            line.slot: SlotStatus.admit(
                line, self._epochs + n, self.layout.positions, self._bounds(line)
            )
            for n, line in enumerate(lines, start=1)
        }
        with torch.inference_mode():
            for line in lines:
                self._slots.clear_kv(line.slot, self._dirty[line.slot])
                self._dirty[line.slot] = self.layout.positions
            # On a CPU each prompt is read by itself: padding would change the last bits.
            for group in group_by_length(lines, self._together):
                self._read(group)
            epochs = [entry.epoch for entry in taken.values()]
            self._put(lines, epochs, [entry.limit for entry in taken.values()])
        self._epochs += len(lines)
        written = min(count_written_positions(lines, self._lengths), self.layout.positions)
        for slot, entry in taken.items():
            self._statuses[slot] = entry
            self._dirty[slot] = written

    def step(self, bucket: int) -> None:
        """Make one frame of every running line in slots [0, bucket); others rest.

        Returns as soon as the work is queued. On CUDA it is one replay of a graph, captured when
        a bucket is needed for the second time; elsewhere the same step runs at once.

        Raises:
            torch.OutOfMemoryError: This bucket takes more than there is. No frame was made, no
                line is lost, and a smaller bucket may do.
        """
        if bucket not in self.buckets:
            raise ValueError(f"{bucket} slots are no bucket; there are {self.buckets}.")
        running = {slot: entry for slot, entry in self._statuses.items() if slot < bucket}
        with torch.inference_mode():
            self._graphs.run(self._shape(bucket, running))
            self._readback.send()
        for slot, entry in running.items():
            self._statuses[slot] = replace(entry, steps=entry.steps + 1)
            self._dirty[slot] = max(self._dirty[slot], self._statuses[slot].positions)

    def progress(self, *, latest: bool = False) -> dict[int, SlotProgress]:
        """Progress of the line of every taken slot.

        On CUDA this is as of the step before the last one, so that nobody waits, unless the
        `latest` is asked for; elsewhere it is as of the last one. A line that has stopped stays as
        it is, whatever steps follow.
        """
        rows = self._readback.read(latest=latest)
        progress_of = {slot: entry.progress(rows[slot]) for slot, entry in self._statuses.items()}
        for slot, progress in progress_of.items():
            self._statuses[slot] = replace(self._statuses[slot], frames=progress.frames)
        return progress_of

    def codes(self, slot: int, start: int, end: int) -> torch.Tensor:
        """Frames [start, end) of a slot's line: int64 [end - start, groups].

        A copy on the device, made in the order of the current stream: a consumer on another stream
        waits for an event of this one first. `end` is at most the `frames` of `progress`.
        """
        return self._slots.codes[slot, start:end].clone()

    def free(self, slot: int) -> None:
        """Free a slot before the next step; does nothing on a free slot."""
        if self._statuses.pop(slot, None) is not None:
            with torch.inference_mode():
                self._slots.free_slot(slot)

    def move(self, source: int, target: int) -> None:
        """Move a running line to a free slot, so that a smaller bucket suffices.

        Raises:
            ValueError: `source` is free, or `target` isn't.
        """
        if source not in self._statuses or target in self._statuses:
            raise ValueError(f"Slot {source} can't move to {target}: it is free, or that isn't.")
        entry = self._statuses[source]
        self._epochs += 1
        with torch.inference_mode():
            self._slots.clear_kv(target, self._dirty[target])
            self._slots.copy_slot(source, target, self._dirty[source])
            self._slots.ints[target, IntColumn.EPOCH] = self._epochs
        self._dirty[target] = self._dirty[source]
        self.free(source)
        self._statuses[target] = replace(entry, epoch=self._epochs)

    def reset(self) -> None:
        """Free all slots and discard their state, also after an error inside a step."""
        self._statuses.clear()
        self._dirty = [0] * self.layout.slots
        self.prefix_cache.clear()  # the fault may have been that memory is short
        with torch.inference_mode():
            self._slots.reset()

    def warm(self, buckets: Sequence[int]) -> None:
        """Capture the graphs that a line of usual length needs; all slots must be free."""
        assert not self._statuses, "warming would advance the lines in the slots"
        lengths = range(1, self.layout.positions + 1, _CPU_WINDOW_STEP)
        windows = {self._window(positions) for positions in (lengths if self._always else ())}
        windows |= {self._window(positions) for positions in _WARM_POSITIONS}
        with torch.inference_mode():
            for bucket, window in itertools.product(buckets, sorted(windows)):
                self._graphs.prepare(StepShape(bucket, window, self._usual))
            if self._prefill is not None:
                self._prefill.warm()

    def close(self) -> None:
        """Release graphs and state; the runner can't be used afterwards."""
        self._statuses.clear()
        self._graphs.close()
        if self._prefill is not None:
            self._prefill.close()
        del self.prompts, self._prefill
        del self._graphs, self._slots, self._stack, self._readback, self.prefix_cache

    def _read(self, lines: Sequence[AdmissionT]) -> None:
        """Prefill prompts of similar length into their slots, a shared prefix once."""
        self.prefix_cache.fill(lines)
        begun = [line.prompt.shared for line in lines]
        if self._prefill is None or not self._prefill.read(lines, begun):
            prefill(self._stack, self._slots, lines, begun=begun, lengths=self._lengths)

    @abstractmethod
    def _put(
        self, lines: Sequence[AdmissionT], epochs: Sequence[int], limits: Sequence[int]
    ) -> None:
        """Write the lines' sampling parameters into their slots, after the prefill."""

    @abstractmethod
    def _bounds(self, line: AdmissionT) -> SamplingBounds:
        """The limits of a line's frames and positions."""

    def _check_line(self, line: AdmissionT) -> None:
        """Raise `ValueError` for parameters that this model's step doesn't support."""

    def _check(self, lines: Sequence[AdmissionT]) -> None:
        wanted = [line.slot for line in lines]
        if len(set(wanted)) < len(wanted) or not self._statuses.keys().isdisjoint(wanted):
            raise ValueError(f"Slots {wanted} are not all free and different.")
        for line in lines:
            if not 0 <= line.slot < self.layout.slots:
                raise ValueError(f"There is no slot {line.slot}.")
            if not 1 <= line.max_frames <= self.layout.max_frames:
                raise ValueError(f"A bound of {line.max_frames} frames is out of range.")
            self._check_line(line)
            if line.prompt.embeds.shape[1] >= self.layout.positions:
                raise SpeechFailed(self._too_long)

    def _shape(self, bucket: int, running: dict[int, SlotStatus]) -> StepShape:
        """The smallest shape that suffices for these lines."""
        entries = running.values()
        needed = 1 + max((entry.positions for entry in entries), default=0)
        window = self._window(min(needed, self.layout.positions))
        asked = [entry.bounds for entry in entries]
        return StepShape(bucket, window, self._always or self._widest(asked))

    def _widest(self, asked: Sequence[SamplingBounds]) -> SamplingBounds:
        """The narrowest bounds that suffice for all of these."""
        most = (bounds.max_candidates for bounds in asked)
        return SamplingBounds(
            max(most, default=self._usual.max_candidates),
            any(bounds.any_top_p for bounds in asked),
            any(bounds.any_greedy for bounds in asked),
        )

    def _window(self, needed: int) -> int:
        """Positions to attend to, rounded up to few values on CUDA, as each is captured."""
        if self._has_own_attention:
            return self.layout.positions
        if self._slots.ints.is_cuda:
            window = _MIN_CUDA_WINDOW
            while window < needed:
                window *= 2
        else:
            window = -(-needed // _CPU_WINDOW_STEP) * _CPU_WINDOW_STEP
        return min(window, self.layout.positions)


def bucket_sizes(slots: int) -> tuple[int, ...]:
    """The batch sizes of a runner with this many slots."""
    beyond = range(BUCKETS[-1] * 2, slots, BUCKETS[-1])
    return (*(n for n in (*BUCKETS, *beyond) if n < slots), slots)
