"""Many Chatterbox lines decoded together give, token for token, what the package makes of each."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

pytest.importorskip("chatterbox", reason="the neural voices' packages are not installed")

import torch
from chatterbox_checkpoint import VARIANTS, checkpoint, one_thread, short_form
from chatterbox_lines import (
    ENGLISH,
    MULTILINGUAL,
    TURBO,
    Desk,
    Said,
    lines_of,
    refilled,
    settings,
    tokens_in,
    tokens_together,
)
from no_host_sync import NoReading
from runner_driver import run_out

from studio.backends.batching.runner_contract import SlotLayout, StopReason
from studio.backends.batching.sampling import SamplingBounds
from studio.backends.batching.slots import StepShape
from studio.backends.chatterbox.t3_runner import T3Runner, T3Step
from studio.backends.chatterbox.t3_slots import (
    ALL_TOKENS,
    NO_TOP_P,
    T3SamplingTensors,
    T3Slots,
    weigh_tokens,
)
from studio.backends.chatterbox.t3_weights import pack_t3

pytestmark = pytest.mark.models

LIVELY = 0.8


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def desk(variant, tmp_path_factory):
    with one_thread():
        yield Desk(variant, checkpoint(variant, tmp_path_factory))


@pytest.fixture(scope="module")
def expected(desk, variant) -> dict[Said, torch.Tensor]:
    return {line: desk.of_package(line) for line in lines_of(variant)}


def assert_same(made: dict[Said, torch.Tensor], expected: dict[Said, torch.Tensor]) -> None:
    wrong = [line.text for line, tokens in made.items() if not torch.equal(tokens, expected[line])]
    assert not wrong


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_the_likeliest_tokens_are_those_of_the_package(desk, variant, expected, batch):
    core, lines, made = desk.core(), lines_of(variant)[: max(4, batch)], {}
    for start in range(0, len(lines), batch):
        batched = lines[start : start + batch]
        bucket = next(size for size in core.buckets if size >= len(batched))
        tokens = tokens_together(
            core, bucket, [desk.admission(core, slot, line) for slot, line in enumerate(batched)]
        )
        made |= {line: tokens[slot] for slot, line in enumerate(batched)}
    assert_same(made, expected)


def test_the_lines_compared_are_ragged_and_end_in_both_ways(desk, variant, expected):
    core = desk.core()
    prompts = {desk.admission(core, 0, line).prompt.embeds.shape for line in lines_of(variant)}
    assert len(prompts) > 4
    ended = [len(tokens) < line.bound for line, tokens in expected.items()]
    assert any(ended)
    assert not all(ended)
    assert sum(len(set(tokens.tolist())) > 3 for tokens in expected.values()) >= 4


def test_a_used_slot_gives_the_same_tokens_while_others_go_on(desk, variant, expected):
    made = refilled(desk, desk.core(slots=3), 3, [(line, 0) for line in lines_of(variant)[:6]])
    assert_same(made, expected)


@pytest.mark.parametrize("positions", [1_500, 100_000])
def test_prompts_padded_and_read_together_give_the_same_tokens(desk, variant, expected, positions):
    core, lines = desk.core(prefill_positions=positions), lines_of(variant)
    tokens = tokens_together(
        core, 8, [desk.admission(core, slot, line) for slot, line in enumerate(lines)]
    )
    assert_same({line: tokens[slot] for slot, line in enumerate(lines)}, expected)


def test_a_line_carried_to_another_slot_goes_on_as_if_it_had_stayed(desk, variant, expected):
    core, line = desk.core(), lines_of(variant)[1]
    core.admit([desk.admission(core, 5, line)])
    for _ in range(4):
        core.step(8)
    core.move(5, 0)
    run_out(core, 1)
    assert_same({line: tokens_in(core, 0)}, expected)


def test_lively_lines_with_a_seed_are_the_same_alone_among_others_and_in_used_slots(desk, variant):
    core, lines = desk.core(), lines_of(variant, LIVELY)[:5]
    alone = {
        line: tokens_together(core, 1, [desk.admission(core, 0, line, seed=seed)])[0]
        for seed, line in enumerate(lines)
    }
    together = tokens_together(
        core, 8, [desk.admission(core, seed, line, seed=seed) for seed, line in enumerate(lines)]
    )
    assert_same({line: together[seed] for seed, line in enumerate(lines)}, alone)
    order = list(enumerate(lines))[::-1]
    assert_same(refilled(desk, core, 3, [(line, seed) for seed, line in order]), alone)


def test_another_seed_gives_other_tokens(desk, variant):
    core, line = desk.core(), lines_of(variant, LIVELY)[1]
    one, other = (
        tokens_together(core, 1, [desk.admission(core, 0, line, seed=seed)])[0] for seed in (1, 2)
    )
    assert not torch.equal(one, other)


def test_a_line_without_room_stops_at_the_end_of_its_cache(desk, variant):
    line = replace(lines_of(variant)[0], bound=60)
    needed = desk.admission(desk.core(), 0, line).prompt.embeds.shape[1]
    core = desk.core(slots=1, positions=needed + 3)
    core.admit([desk.admission(core, 0, line)])
    run_out(core, 1)
    assert core.progress(latest=True)[0].stop is StopReason.FULL
    assert len(tokens_in(core, 0)) == 3


def test_a_voice_is_laid_out_and_read_once_for_all_its_lines(desk, variant):
    core = desk.core()
    for _ in range(2):
        core.admit(
            [desk.admission(core, slot, line) for slot, line in enumerate(lines_of(variant))]
        )
        for slot in range(8):
            core.free(slot)
    kinds = {(line.voice, line.exaggeration) for line in lines_of(variant)}
    assert core.prompts.computed == core.prefix_cache.computed == len(kinds)


@pytest.mark.parametrize("variant", short_form(ENGLISH, TURBO), indirect=True)
def test_without_the_packages_own_layers_the_tokens_are_the_same(
    variant, expected, tmp_path_factory
):
    desk, line = Desk(variant, checkpoint(variant, tmp_path_factory)), lines_of(variant)[1]
    core = T3Runner(desk.model.t3, SlotLayout(1, 512, 64), ends=desk.ends, release=True)
    assert_same({line: tokens_together(core, 1, [desk.admission(core, 0, line)])[0]}, expected)
    layers = desk.model.t3.tfmr.h if variant == TURBO else desk.model.t3.tfmr.layers
    assert not list(layers.parameters())


@pytest.mark.parametrize("variant", short_form(MULTILINGUAL, TURBO), indirect=True)
def test_in_16_bits_a_line_is_made_too(variant, tmp_path_factory):
    desk = Desk(variant, checkpoint(variant, tmp_path_factory))
    core = T3Runner(desk.model.t3, SlotLayout(2, 512, 64), dtype=torch.bfloat16, release=True)
    lines = [desk.admission(core, slot, lines_of(variant, LIVELY)[slot]) for slot in range(2)]
    assert all(len(tokens) for tokens in tokens_together(core, 2, lines).values())
    assert core._slots.kv_cache.dtype is torch.bfloat16


def shapes(variant: str) -> list[StepShape]:
    wide = (
        SamplingBounds(1_000, any_top_p=True)
        if variant == TURBO
        else SamplingBounds(ALL_TOKENS, any_top_p=True)
    )
    usual = wide if variant == TURBO else SamplingBounds(ALL_TOKENS)
    return [StepShape(1, 256, usual), StepShape(8, 512, wide)]


def test_a_token_reads_no_value_and_moves_no_tensor(desk, variant):
    core = desk.core()
    lines = lines_of(variant, LIVELY)
    core.admit([desk.admission(core, slot, line) for slot, line in enumerate(lines)])
    with NoReading() as mode:
        for _ in range(3):
            core.step(8)
    assert mode.operations > 100
    assert all(progress.frames for progress in core.progress(latest=True).values())


def test_the_whole_step_is_one_graph(desk, variant):
    """Traced without a break, and the traced step writes what the plain one writes."""
    layout = SlotLayout(8, 512, 64)
    weights = pack_t3(desk.model.t3, layout.positions, torch.float32)
    plain, traced = (T3Slots.allocate(weights, layout) for _ in range(2))
    core = desk.core()
    lines = [
        desk.admission(core, slot, line) for slot, line in enumerate(lines_of(variant, LIVELY))
    ]
    for slots in (plain, traced):
        slots.put(lines, range(1, 9), [8] * 8, start=weights.start)
        slots.hidden.copy_(torch.linspace(-1, 1, slots.hidden.numel()).view_as(slots.hidden))
    torch._dynamo.reset()
    compiled = torch.compile(T3Step(weights, traced), backend="eager", fullgraph=True)
    with torch.no_grad():
        for shape in shapes(variant)[1:] * 2:
            T3Step(weights, plain)(shape)
            compiled(shape)
    assert torch.equal(traced.ints, plain.ints)
    assert torch.equal(traced.codes, plain.codes)
    assert plain.codes.any()


def test_nothing_stays_behind_a_step_but_the_slots(desk, variant):
    """A captured graph writes to fixed places: no tensor of the slots is replaced by another."""
    layout = SlotLayout(8, 512, 64)
    weights = pack_t3(desk.model.t3, layout.positions, torch.float32)
    slots = T3Slots.allocate(weights, layout)
    before = {field.name: getattr(slots, field.name).data_ptr() for field in fields(slots)}
    with torch.inference_mode():
        for shape in shapes(variant):
            T3Step(weights, slots)(shape)
    assert before == {name: getattr(slots, name).data_ptr() for name in before}


@pytest.mark.parametrize("number", range(8))
def test_what_competes_and_how_strongly_is_as_in_the_package(desk, variant, number):
    """The package's own processors over random scores, some of whose tokens were said."""
    how = settings(variant, number, temperature=(0.8, 1.0, 1.6)[number % 3])
    noise = torch.Generator().manual_seed(number)
    vocabulary = desk.model.t3.speech_head.weight.shape[0]
    scores = 4 * torch.randn(1, vocabulary, generator=noise)
    history = torch.randint(0, vocabulary, (1, 300), generator=noise)
    said = torch.zeros(1, vocabulary, dtype=torch.bool).scatter_(1, history, True)
    rules = T3SamplingTensors(
        temperature=torch.tensor([[how.temperature]]),
        top_p=torch.tensor([[how.top_p if how.top_p < 1 else NO_TOP_P]]),
        min_p=torch.tensor([[how.min_p]]),
        penalty=torch.tensor([[how.repetition_penalty]]),
        last=torch.tensor([[how.top_k - 1]]),
        seen_codes=said,
    )
    bounds = shapes(variant)[how.top_p < 1].bounds
    weighed, tokens = weigh_tokens(scores, rules, bounds, penalty_first=variant != TURBO)
    mine = torch.zeros_like(scores).scatter_(1, tokens, weighed.softmax(dim=-1))
    theirs = desk.weighed_by_package(scores, history, how).softmax(dim=-1)
    torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-4)
