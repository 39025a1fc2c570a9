"""Prompts read several at a time, and as a graph: the codes of prompts read one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from runner_lines import GREEDY, LIVELY, Scripted, admission, decoded, lines_of, made_core
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from studio.backends.base import Priority
from studio.backends.batching import prefill
from studio.backends.batching.cuda_graphs import CudaGraphRunner
from studio.backends.batching.prefill import CUDA_PREFILL_MULTIPLE, PrefillShape
from studio.backends.batching.slot_scheduler import SlotScheduler
from studio.backends.qwen3.talker import TalkerRunner

pytestmark = pytest.mark.models

KINDS = ("base", "custom_voice", "voice_design")
# Cloned voices, whose beginning is a sample's codes, and one way of the others.
SHORT_KINDS = ("base", pytest.param("custom_voice", marks=pytest.mark.campaign), "voice_design")
SAMPLINGS = (GREEDY, LIVELY)
TOGETHER = 16_384  # positions, as on CUDA


@dataclass(eq=False)
class Waiting:
    """A line for the scheduler."""

    number: int
    line: Scripted
    has_delivered: bool = False

    def priority(self) -> Priority:
        return Priority()


def decoded_by_scheduler(
    core: TalkerRunner, lines: tuple[Scripted, ...]
) -> tuple[dict[int, torch.Tensor], list[int]]:
    """Codes by number, and how many lines were admitted at once while others ran.

    One alone is not admitted while two wait: of a pass of one line `make_fx` takes the numbers with
    it by value, as it holds every tensor of one number for a constant.
    """
    scheduler = SlotScheduler[Waiting](core.layout.slots, max_wait_s=0.0)
    for number, line in enumerate(lines):
        scheduler.submit(Waiting(number, line))
    made: dict[int, torch.Tensor] = {}
    refills: list[int] = []
    while scheduler.waiting or scheduler.running:
        others = len(scheduler.running)
        free = core.layout.slots - others
        if free >= min(2, len(scheduler.waiting)) and (taken := scheduler.admit()):
            core.admit([asked(core, slot, one.number, one.line) for slot, one in taken])
            refills += [len(taken)] if others else []
        core.step(core.buckets[-1])
        for slot, progress in core.progress(latest=True).items():
            if progress.stop:
                made[scheduler.running[slot].number] = core.codes(slot, 0, progress.frames)
                core.free(slot)
                scheduler.free(slot)
    return made, refills


def asked(core: TalkerRunner, slot: int, number: int, line: Scripted):
    """Lines of different lengths, so that slots become free one by one."""
    sampling = SAMPLINGS[number % 2]
    return admission(core, slot, line, sampling, seed=number, max_frames=4 + 3 * (number % 3))


def alone(lines: tuple[Scripted, ...]) -> dict[int, torch.Tensor]:
    core = made_core(lines[0].kind, 1)
    return {
        number: decoded(core, 1, [asked(core, 0, number, line)])[0]
        for number, line in enumerate(lines)
    }


@pytest.mark.parametrize("kind", SHORT_KINDS)
@pytest.mark.parametrize("captures", [False, True], ids=["plain", "captured"])
def test_slots_refilled_several_at_a_time_make_the_codes_of_lines_alone(kind, captures):
    lines = lines_of(kind)
    core = made_core(kind, 4, prefill_positions=TOGETHER, captures_prefill=captures)
    made, refills = decoded_by_scheduler(core, lines)
    assert refills == [2, 2]
    expected = alone(lines)
    assert made.keys() == expected.keys()
    assert all(torch.equal(made[number], codes) for number, codes in expected.items())


class Recorded:
    """A captured pass: its operations on the tensors that it met, without a line of Python."""

    def __init__(self, step: Callable[[PrefillShape], None], shape: PrefillShape) -> None:
        self.replays = 0
        self._operations = make_fx(lambda: step(shape))()

    def replay(self) -> None:
        self.replays += 1
        self._operations()

    def reset(self) -> None:
        pass


@pytest.mark.parametrize("kind", SHORT_KINDS)
def test_a_recorded_pass_reads_later_prompts_as_a_plain_one(kind, monkeypatch):
    monkeypatch.setattr(
        CudaGraphRunner, "_record", lambda runner, shape, _pool: Recorded(runner._step, shape)
    )
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 0))
    lines = lines_of(kind)
    core = made_core(kind, 4, prefill_positions=TOGETHER, captures_prefill=True)
    reading = core._prefill
    reading._graphs._captures = True
    for _ in range(2):  # each shape is captured when it is needed for the second time
        decoded_by_scheduler(core, lines)
    captured = dict(reading._graphs._graphs)
    assert captured
    # Whatever the recorded pass took with it by value would be that of the lines before.
    turned = lines[::-1]
    made, _ = decoded_by_scheduler(core, turned)
    assert sum(graph.replays for graph in captured.values()) > len(captured)
    expected = alone(turned)
    assert all(torch.equal(made[number], codes) for number, codes in expected.items())


def test_three_prompts_are_read_as_four_and_long_ones_plainly(monkeypatch):
    core = made_core("base", 4, prefill_positions=TOGETHER, captures_prefill=True)
    lines = [admission(core, slot, line) for slot, line in enumerate(lines_of("base")[:3])]
    shapes: list[PrefillShape] = []
    reading = core._prefill
    monkeypatch.setattr(reading, "_graphs", SimpleNamespace(run=shapes.append))
    assert reading.read(lines, [line.prompt.shared for line in lines])
    assert shapes == [PrefillShape(lines=4, positions=32, until=64)]
    monkeypatch.setattr(prefill, "MAX_CAPTURED_POSITIONS", 64)
    assert not reading.read(lines, [line.prompt.shared for line in lines])
    assert len(shapes) == 1


def test_what_short_prompts_need_is_captured_while_loading(monkeypatch):
    core = made_core("base", 2, captures_prefill=True)
    shapes: list[PrefillShape] = []
    monkeypatch.setattr(core._prefill._graphs, "prepare", shapes.append)
    core.warm([2])
    assert shapes == [PrefillShape(lines=n, positions=16, until=64) for n in (1, 2)]


class Masks(TorchFunctionMode):
    """Widths of the masks that attention gets."""

    def __init__(self) -> None:
        self.widths: set[int] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        mask = (kwargs or {}).get("attn_mask")
        if func is torch.nn.functional.scaled_dot_product_attention and mask is not None:
            self.widths.add(mask.shape[-1])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", KINDS)
def test_masks_are_of_widths_that_a_card_reads_as_they_are(kind):
    """Of others it makes a copy for every layer, or falls back to plain operations."""
    core = made_core(kind, 4, prefill_positions=TOGETHER)
    core._lengths = core.prefix_cache._lengths = CUDA_PREFILL_MULTIPLE
    with Masks() as masks:
        decoded_by_scheduler(core, lines_of(kind)[:4])
    assert masks.widths
    assert [width for width in masks.widths if width % 8] == []
