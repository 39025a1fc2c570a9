"""What the lines of a voice begin with is read once, and changes no code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from runner_lines import (
    GREEDY,
    LIVELY,
    VOICES,
    Scripted,
    admission,
    decoded,
    lines_of,
    made_core,
    refilled,
    tokens_of,
    voice_of,
)

from studio.backends.batching.decoder_stack import DecoderStack
from studio.backends.batching.runner_contract import PREFIX_CACHE_BYTES
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.prompt import ROLE_TOKENS
from studio.backends.qwen3.talker import TalkerRunner
from studio.backends.qwen3.talker_slots import TalkerAdmission

pytestmark = pytest.mark.models

KINDS = ("base", "custom_voice", "voice_design")
WAYS = pytest.mark.parametrize("sampling", [GREEDY, LIVELY], ids=["greedy", "seeded"])


def in_full(line: TalkerAdmission) -> TalkerAdmission:
    """The same line with nothing that is shared."""
    return replace(line, prompt=replace(line.prompt, shared=0))


def admissions(core: TalkerRunner, kind: str, sampling: SamplingParams) -> list[TalkerAdmission]:
    lines = enumerate(lines_of(kind))
    return [admission(core, slot, line, sampling, seed=slot) for slot, line in lines]


@pytest.mark.parametrize(
    ("kind", "sampling"),
    [
        ("base", GREEDY),
        ("base", LIVELY),
        *(pytest.param(kind, GREEDY, marks=pytest.mark.campaign) for kind in KINDS[1:]),
        *((kind, LIVELY) for kind in KINDS[1:]),
    ],
    ids=lambda one: {GREEDY: "greedy", LIVELY: "seeded"}.get(one, one),
)
def test_codes_are_those_of_prompts_read_in_full(kind, sampling):
    core = made_core(kind)
    lines = admissions(core, kind, sampling)
    whole = decoded(core, 8, [in_full(line) for line in lines])
    assert core.prefix_cache.computed == 0
    for _ in range(2):  # beginnings that are read, then those that are kept
        shared = decoded(core, 8, lines)
        assert all(torch.equal(shared[slot], whole[slot]) for slot in whole)
    assert core.prefix_cache.computed == len({line.prompt.part for line in lines})


@WAYS
def test_prompts_of_several_voices_are_read_in_one_pass(sampling):
    core = made_core(prefill_positions=100_000)
    lines = admissions(core, "base", sampling)
    whole = decoded(made_core(), 8, [in_full(line) for line in lines])
    for _ in range(2):
        shared = decoded(core, 8, lines)
        assert all(torch.equal(shared[slot], whole[slot]) for slot in whole)


def test_a_line_reads_only_what_is_its_own(monkeypatch):
    core = made_core()
    read = []
    plain = DecoderStack.forward

    def counted(stack: DecoderStack, x: torch.Tensor, *how: Any) -> torch.Tensor:
        read.append(len(x))
        return plain(stack, x, *how)

    monkeypatch.setattr(DecoderStack, "forward", counted)
    line = admission(core, 0, Scripted("full reference", "The door is open."))
    core.admit([line])
    assert read == [line.prompt.shared, line.prompt.embeds.shape[1] - line.prompt.shared]
    core.admit([replace(line, slot=1)])
    assert read[2:] == read[1:2]


@pytest.mark.parametrize("name", VOICES)
def test_all_that_is_equal_is_shared_and_nothing_else(name):
    core = made_core(VOICES[name][0], slots=1)
    line = tokens_of(Scripted(name, "The door is open."))
    another = line.clone()
    another[ROLE_TOKENS] += 1  # a line whose very first word is another
    one, other = (core.prompt(of, voice_of(name), "english") for of in (line, another))
    differs = (one.embeds != other.embeds).any(dim=-1)[0].tolist()
    # A line always reads its last position, even where its words come after the prompt.
    equal = differs.index(True) if True in differs else len(differs) - 1
    assert one.part == other.part
    assert one.shared == other.shared == equal


def test_a_transcript_longer_than_its_sample_leaves_one_position_to_read():
    core = made_core(slots=1)
    name = "another full reference"
    prompt = core.prompt(tokens_of(Scripted(name, "Yes.")), voice_of(name), "english")
    assert prompt.embeds.shape[1] - prompt.shared == 1


@pytest.mark.parametrize("room", [0, 3])
def test_what_is_kept_is_bounded_in_bytes_and_codes_are_the_same(room):
    lines = lines_of("base")
    probe = made_core(slots=1)
    probe.admit([admission(probe, 0, lines[0])])
    bound = room * probe.prefix_cache.size_bytes
    core = made_core(slots=3, kept_bytes=bound)
    made = refilled(core, 3, lines, sampling=LIVELY, seed=5)
    assert core.prefix_cache.size_bytes <= bound
    assert bool(core.prefix_cache.size_bytes) == bool(bound)
    assert core.prefix_cache.computed > len({admission(core, 0, one).prompt.part for one in lines})
    usual = refilled(made_core(slots=3), 3, lines, sampling=LIVELY, seed=5)
    assert all(torch.equal(made[line], usual[line]) for line in lines)


def test_padding_behind_a_long_beginning_does_not_outlive_its_line():
    """A sick line's padding reaches beyond every prompt; the next line there is well."""
    core = made_core(slots=2, prefill_positions=100_000)
    long, short = (
        admission(core, slot, Scripted(name, text))
        for slot, name, text in ((0, "another full reference", "Yes."), (1, "timbre only", "No."))
    )
    embeds = long.prompt.embeds[:, -1:].repeat(1, 60, 1)
    sick = replace(short, prompt=replace(short.prompt, embeds=embeds, shared=50, part="sick"))
    sick = replace(sick, prompt=replace(sick.prompt, embeds=embeds * torch.nan))
    other = replace(long, prompt=replace(long.prompt, embeds=embeds, shared=1, part="long"))
    core.admit([sick, other])
    core.step(2)
    core.free(1)
    assert core._slots.keys[:, 1, :, 61:].isnan().any()
    core.admit([replace(short)])
    assert not core._slots.keys[:, 1].isnan().any()


def test_the_usual_bound_is_told_for_every_device():
    assert PREFIX_CACHE_BYTES == {"cuda": 512_000_000, "mps": 128_000_000, "cpu": 128_000_000}
    line = Scripted("full reference", "Yes.")
    core = made_core(slots=1)
    core.admit([admission(core, 0, line)])
    assert 0 < core.prefix_cache.size_bytes <= 128_000_000


def test_after_a_fault_nothing_is_kept():
    core = made_core(slots=1)
    line = admission(core, 0, lines_of("base")[0])
    core.admit([line])
    core.reset()
    assert core.prefix_cache.size_bytes == 0
    core.admit([line])
    assert core.prefix_cache.computed == 2
