"""Many lines decoded together give, code for code, what the package makes of each alone."""

from __future__ import annotations

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from runner_lines import (
    FRAMES,
    Scripted,
    admission,
    codes_of,
    decoded,
    lines_of,
    made_core,
    reference_codes,
    refilled,
    run_out,
)

pytestmark = pytest.mark.models

KINDS = ("base", "custom_voice", "voice_design")


def assert_reference(made: dict[Scripted, torch.Tensor]) -> None:
    wrong = [line for line, codes in made.items() if not torch.equal(codes, reference_codes(line))]
    assert not wrong


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_codes_are_those_of_the_package(kind, batch):
    core = made_core(kind)
    lines = lines_of(kind)[: max(4, batch)]
    made = {}
    for start in range(0, len(lines), batch):
        batched = lines[start : start + batch]
        codes = decoded(
            core,
            core.buckets[-1] if batch > 4 else 4,
            [admission(core, slot, line) for slot, line in enumerate(batched)],
        )
        made |= {line: codes[slot] for slot, line in enumerate(batched)}
    assert_reference(made)


def test_the_lines_compared_are_ragged_and_end_in_both_ways():
    core = made_core()
    lines = lines_of("base")
    prompts = {admission(core, 0, line).prompt.embeds.shape[1] for line in lines}
    frames = {len(reference_codes(line)) for kind in KINDS for line in lines_of(kind)}
    assert len(prompts) > 4
    assert FRAMES in frames
    assert len(frames) > 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_used_slot_gives_the_same_codes_while_others_go_on(kind):
    assert_reference(refilled(made_core(kind, slots=3), 3, lines_of(kind)))


@pytest.mark.parametrize("positions", [150, 100_000])
def test_prompts_padded_and_read_together_give_the_same_codes(positions):
    core = made_core(prefill_positions=positions)
    lines = lines_of("base")
    codes = decoded(core, 8, [admission(core, slot, line) for slot, line in enumerate(lines)])
    assert_reference({line: codes[slot] for slot, line in enumerate(lines)})


def test_a_prompt_longer_than_what_was_decoded_so_far_joins_the_others():
    core = made_core(slots=2)
    short, long = sorted(
        lines_of("base")[1:3], key=lambda line: admission(core, 0, line).prompt.embeds.shape[1]
    )
    core.admit([admission(core, 0, short)])
    core.step(2)
    core.admit([admission(core, 1, long)])
    run_out(core, 2)
    assert_reference({short: codes_of(core, 0), long: codes_of(core, 1)})


def test_a_line_carried_to_another_slot_goes_on_as_if_it_had_stayed():
    core = made_core()
    line = lines_of("base")[3]
    core.admit([admission(core, 5, line)])
    for _ in range(4):
        core.step(8)
    core.move(5, 0)
    run_out(core, 1)
    assert_reference({line: codes_of(core, 0)})


def test_without_the_packages_own_layers_the_codes_are_the_same():
    from qwen3_checkpoint import small_checkpoint

    from studio.backends.batching.runner_contract import SlotLayout
    from studio.backends.qwen3.qwen3_model import load_model
    from studio.backends.qwen3.talker import TalkerRunner

    model = load_model(small_checkpoint("base"), "cpu").package
    core = TalkerRunner(model, SlotLayout(1, 256, 64), release=True)
    line = lines_of("base")[1]
    assert_reference({line: decoded(core, 1, [admission(core, 0, line)])[0]})
    assert not list(model.talker.model.layers.parameters())
