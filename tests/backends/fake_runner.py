"""A core without a model: it keeps the contract, and what it "decodes" is known beforehand.

For tests of what stands around the core: a frame costs nothing, and errors come when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from studio.backends.base import Priority
from studio.backends.batching.runner_contract import SlotLayout, SlotProgress, StopReason
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.prompt import Qwen3Voice, TalkerPrompt
from studio.backends.qwen3.talker_slots import TalkerAdmission, TalkerRequest

GROUPS = 16
FOREVER = 10_000


def codes_of(seed: int, frames: int) -> torch.Tensor:
    """What a line with this seed is made of, of any length the same: int64 [frames, groups]."""
    noise = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2_048, (frames, GROUPS), generator=noise)


def paper_task(
    seed: int, frames: int, *, max_frames: int = FOREVER, **fields: object
) -> TalkerRequest:
    """A line that stops by itself after so many frames; the longest goes first."""
    fields.setdefault("priority", lambda: Priority(order=(-frames,)))
    return TalkerRequest(
        tokens=torch.tensor([frames]),
        voice=fields.pop("voice", Qwen3Voice(preset="paper")),
        language=None,
        sampling=SamplingParams(),
        seed=seed,
        max_frames=max_frames,
        **fields,
    )


@dataclass
class _Slot:
    """A line in the making; `frames_in` is how many it ends after."""

    admission: TalkerAdmission
    frames_in: int
    codes: torch.Tensor
    made: int = 0

    def progress(self) -> SlotProgress:
        if self.made >= self.frames_in:
            return SlotProgress(self.frames_in, StopReason.ENDED)
        if self.made >= self.admission.max_frames:
            return SlotProgress(self.made, StopReason.BOUND)
        return SlotProgress(self.made)


class PaperCore:
    """Keeps `Core`. Progress is told a step late, as on CUDA.

    Attributes:
        before_step: Called with the bucket; may raise.
        before_admit: Called with the admissions; may raise.
        steps: Buckets of all steps so far.
        codes_of: What a line with a seed is made of.
    """

    def __init__(self, slots: int = 8, *, late: bool = True) -> None:
        self.layout = SlotLayout(slots, 2_048, FOREVER)
        self.buckets = (*(size for size in (1, 2, 4, 8) if size < slots), slots)
        self.before_step: Callable[[int], None] = lambda _bucket: None
        self.before_admit: Callable[[Sequence[TalkerAdmission]], None] = lambda _lines: None
        self.steps: list[int] = []
        self.codes_of = codes_of
        self.closed = False
        self._late = late
        self._slots: dict[int, _Slot] = {}
        self._told: dict[int, tuple[_Slot, SlotProgress]] = {}

    @property
    def taken(self) -> set[int]:
        return set(self._slots)

    def prompt(self, line: torch.Tensor, voice: Qwen3Voice, language: str | None) -> TalkerPrompt:
        embeds = torch.zeros(1, 1, 1)
        return TalkerPrompt(embeds, line.view(1, 1, 1).float(), embeds)

    def admit(self, lines: Sequence[TalkerAdmission]) -> None:
        self.before_admit(lines)
        if any(line.slot in self._slots for line in lines):
            raise ValueError("a slot isn't free")
        for line in lines:
            frames = round(float(line.prompt.trailing.item()))
            self._slots[line.slot] = _Slot(line, frames, self.codes_of(line.seed, frames))

    def step(self, bucket: int) -> None:
        assert bucket in self.buckets
        self.before_step(bucket)
        self.steps.append(bucket)
        self._tell()
        for number, slot in self._slots.items():
            assert number < bucket, "a running line was left out"
            if slot.progress().stop is None:
                slot.made += 1

    def _tell(self) -> None:
        self._told = {number: (slot, slot.progress()) for number, slot in self._slots.items()}

    def progress(self, *, latest: bool = False) -> dict[int, SlotProgress]:
        if latest or not self._late:
            self._tell()
        return {
            number: told
            for number, (slot, told) in self._told.items()
            if self._slots.get(number) is slot
        }

    def codes(self, slot: int, start: int, end: int) -> torch.Tensor:
        assert start <= end <= self.progress()[slot].frames
        return self._slots[slot].codes[start:end].clone()

    def free(self, slot: int) -> None:
        self._slots.pop(slot, None)

    def move(self, source: int, target: int) -> None:
        if source not in self._slots or target in self._slots:
            raise ValueError("can't be moved")
        self._slots[target] = self._slots.pop(source)
        if source in self._told:
            self._told[target] = self._told.pop(source)

    def reset(self) -> None:
        self._slots.clear()

    def warm(self, buckets: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        self.closed = True
