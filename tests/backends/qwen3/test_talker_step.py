"""The step never asks the host: nothing is read, nothing moves, no shape depends on a value."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from no_host_sync import NoReading
from qwen3_checkpoint import FEW_GROUPS
from qwen3_speakers import loaded_model
from runner_lines import LIVELY, admission, lines_of, made_core, moved

from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.batching.sampling import SamplingBounds
from studio.backends.batching.slots import StepShape
from studio.backends.qwen3.talker import TalkerStep
from studio.backends.qwen3.talker_slots import TalkerSlots
from studio.backends.qwen3.talker_weights import TalkerWeights, pack_talker

pytestmark = pytest.mark.models

LAYOUT = SlotLayout(slots=8, positions=128, max_frames=32)
SHAPES = [
    StepShape(1, 64),
    StepShape(8, 128),
    StepShape(8, 128, SamplingBounds(256, any_top_p=True)),
]


@pytest.fixture(scope="module")
def weights() -> TalkerWeights:
    return pack_talker(loaded_model("base").package.talker, LAYOUT.positions)


def test_the_mode_sees_what_it_forbids():
    numbers = torch.arange(3)
    for read in (
        lambda: numbers.sum().item(),
        lambda: bool(numbers[0]),
        lambda: numbers[numbers > 1],
        lambda: numbers.to("meta"),
    ):
        with pytest.raises(AssertionError), NoReading():
            read()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_frame_reads_no_value_and_moves_no_tensor(weights, shape):
    step = TalkerStep(weights, TalkerSlots.allocate(weights, LAYOUT))
    with torch.inference_mode(), NoReading() as mode:
        step(shape)
    assert mode.operations > 500


def test_a_running_core_reads_no_value_in_its_step():
    core = made_core()
    core.admit([admission(core, n, line, LIVELY) for n, line in enumerate(lines_of("base"))])
    with NoReading():
        for _ in range(3):
            core.step(8)
    assert all(progress.frames for progress in core.progress(latest=True).values())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_frame_needs_no_values_at_all(weights, shape):
    """On a device that has shapes only, whatever asked for a value would fail."""
    elsewhere = moved(weights, "meta")
    with pytest.raises(RuntimeError):
        elsewhere.head.tolist()
    TalkerStep(elsewhere, TalkerSlots.allocate(elsewhere, LAYOUT))(shape)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_the_whole_frame_is_one_graph(shape):
    """Traced without a break, and the traced frame writes what the plain one writes."""
    talker = loaded_model("base", groups=FEW_GROUPS).package.talker  # each is traced by itself
    weights = pack_talker(talker, LAYOUT.positions)
    plain, traced = (TalkerSlots.allocate(weights, LAYOUT) for _ in range(2))
    core = made_core(positions=LAYOUT.positions)
    for slots in (plain, traced):
        lines = [admission(core, n, line, LIVELY) for n, line in enumerate(lines_of("base")[:8])]
        lines = [replace(line, max_frames=8) for line in lines]
        slots.put(lines, range(1, 9), [8] * 8)
        slots.hidden.copy_(torch.linspace(-1, 1, slots.hidden.numel()).view_as(slots.hidden))
    torch._dynamo.reset()
    compiled = torch.compile(TalkerStep(weights, traced), backend="eager", fullgraph=True)
    with torch.no_grad():
        TalkerStep(weights, plain)(shape)
        compiled(shape)
    assert torch.equal(traced.ints, plain.ints)
    assert torch.equal(traced.codes, plain.codes)
    assert plain.codes.any()


def test_nothing_stays_behind_a_frame_but_the_slots(weights):
    """A captured graph writes to fixed places: no tensor of the slots is replaced by another."""
    slots = TalkerSlots.allocate(weights, LAYOUT)
    before = {field.name: getattr(slots, field.name).data_ptr() for field in fields(slots)}
    step = TalkerStep(weights, slots)
    with torch.inference_mode():
        for shape in SHAPES:
            step(shape)
    assert before == {name: getattr(slots, name).data_ptr() for name in before}
