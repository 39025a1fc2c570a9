"""The decoding core: chance that follows the line, marks at the end, slots that are used again."""

from __future__ import annotations

import weakref
from dataclasses import replace

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_speakers import loaded_model
from runner_lines import (
    GREEDY,
    LIVELY,
    Scripted,
    admission,
    codes_of,
    decoded,
    lines_of,
    made_core,
    reference_codes,
    refilled,
    run_out,
    tokens_of,
    voice_of,
)

from studio.backends.batching.model_runner import bucket_sizes
from studio.backends.batching.runner_contract import SlotProgress, StopReason
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.talker import TalkerRunner
from studio.errors import ModelUnavailable, SpeechFailed

pytestmark = pytest.mark.models

LINES = lines_of("base")
NARROW = SamplingParams(temperature=0.7, top_k=20, top_p=0.8, repetition_penalty=1.3)
WIDE = SamplingParams(temperature=1.2, top_k=200, top_p=0.95, repetition_penalty=1.0)


@pytest.fixture(scope="module")
def core() -> TalkerRunner:
    return made_core()


@pytest.fixture(autouse=True)
def all_free(request):
    yield
    if "core" in request.fixturenames:
        request.getfixturevalue("core").reset()


def alone(core: TalkerRunner, line: Scripted, sampling: SamplingParams, seed: int) -> torch.Tensor:
    return decoded(core, 1, [admission(core, 0, line, sampling, seed=seed)])[0]


def test_it_is_a_core(core):
    assert core.layout.slots == 8
    assert core._slots.size_bytes > 0


@pytest.mark.parametrize("sampling", [LIVELY, NARROW, WIDE], ids=["usual", "narrow", "wide"])
def test_a_seed_gives_the_same_codes_alone_and_among_eight(core, sampling):
    lines = [admission(core, n, line, sampling, seed=n) for n, line in enumerate(LINES)]
    together = decoded(core, 8, lines)
    for seed, line in enumerate(LINES):
        assert torch.equal(together[seed], alone(core, line, sampling, seed)), line


def test_a_seed_gives_the_same_codes_in_a_used_slot(core):
    made = refilled(made_core(slots=3), 3, LINES, sampling=LIVELY, seed=5)
    for line in LINES:
        assert torch.equal(made[line], alone(core, line, LIVELY, 5)), line


def test_a_seed_gives_the_same_codes_in_any_slot_and_bucket(core):
    expected = alone(core, LINES[1], LIVELY, 3)
    for slot, bucket in ((1, 2), (3, 4), (6, 8), (0, 8)):
        made = decoded(core, bucket, [admission(core, slot, LINES[1], LIVELY, seed=3)])
        assert torch.equal(made[slot], expected)


def test_every_line_has_sampling_of_its_own(core):
    ways = [GREEDY, LIVELY, NARROW, WIDE]
    lines = [admission(core, n, LINES[1], how, seed=9) for n, how in enumerate(ways)]
    together = decoded(core, 4, lines)
    for slot, how in enumerate(ways):
        assert torch.equal(together[slot], alone(core, LINES[1], how, 9))
    assert len({tuple(codes.flatten().tolist()) for codes in together.values()}) == len(ways)


def test_other_seeds_give_other_codes(core):
    first, second = (alone(core, LINES[1], LIVELY, seed) for seed in (1, 2))
    assert not torch.equal(first[:3], second[:3])


def test_rest_codes_have_sampling_of_their_own(core):
    line = admission(core, 0, LINES[1], LIVELY, seed=1)
    [plain] = decoded(core, 1, [line]).values()
    [firm] = decoded(core, 1, [replace(line, rest=GREEDY)]).values()
    assert firm[0, 0] == plain[0, 0]
    assert not torch.equal(firm[0], plain[0])


def test_a_line_that_does_not_stop_is_marked_at_its_bound(core):
    core.admit([admission(core, 0, LINES[1], max_frames=3)])
    run_out(core, 1)
    assert core.progress()[0] == SlotProgress(3, StopReason.BOUND)


def test_a_line_at_the_end_of_its_cache_is_marked_and_loses_nothing():
    core = made_core(positions=64, slots=2)
    line = admission(core, 1, LINES[1])
    room = 64 - line.prompt.embeds.shape[1]
    core.admit([replace(line, max_frames=64)])
    run_out(core, 2)
    assert core.progress()[1] == SlotProgress(room, StopReason.FULL)
    longer = made_core(slots=2)
    assert torch.equal(codes_of(core, 1), decoded(longer, 2, [replace(line, max_frames=room)])[1])


def test_a_line_that_ends_by_itself_is_marked_as_such(core):
    core.admit([admission(core, 0, LINES[0])])
    run_out(core, 1)
    assert core.progress()[0].stop is StopReason.ENDED


def test_what_has_stopped_stays_as_it_is(core):
    core.admit([admission(core, 0, LINES[0]), admission(core, 1, LINES[1])])
    run_out(core, 2)
    before = {slot: codes_of(core, slot) for slot in (0, 1)}
    told = core.progress(latest=True)
    for _ in range(5):
        core.step(8)
    assert core.progress(latest=True) == told
    assert all(torch.equal(codes_of(core, slot), before[slot]) for slot in (0, 1))


def test_slots_beyond_the_bucket_rest(core):
    core.admit([admission(core, 0, LINES[1]), admission(core, 5, LINES[1])])
    core.step(2)
    assert core.progress(latest=True) == {0: SlotProgress(1), 5: SlotProgress(0)}


def test_a_freed_slot_says_nothing_and_takes_the_next_line(core):
    core.admit([admission(core, 0, LINES[1]), admission(core, 1, LINES[3])])
    core.step(2)
    core.free(0)
    core.free(0)
    core.step(2)
    assert core.progress(latest=True) == {1: SlotProgress(2)}
    core.admit([admission(core, 0, LINES[5], LIVELY, seed=4)])
    assert core.progress()[0] == SlotProgress(0)
    run_out(core, 2)
    made = codes_of(core, 0)
    core.reset()
    assert torch.equal(made, alone(core, LINES[5], LIVELY, 4))


def test_numbers_that_are_none_do_not_outlive_their_line(core):
    expected = alone(core, LINES[1], LIVELY, 1)
    line = admission(core, 0, LINES[3])
    sick = replace(
        line, prompt=replace(line.prompt, embeds=line.prompt.embeds * torch.nan, part="sick")
    )
    core.admit([sick])
    core.step(1)
    core.free(0)
    assert torch.equal(alone(core, LINES[1], LIVELY, 1), expected)


def test_a_carried_line_tells_its_frames_without_a_gap(core):
    core.admit([admission(core, 7, LINES[1])])
    core.step(8)
    core.step(8)
    assert core.progress(latest=True) == {7: SlotProgress(2)}
    core.move(7, 2)
    assert core.progress() == {2: SlotProgress(2)}
    core.step(4)
    assert core.progress(latest=True) == {2: SlotProgress(3)}


def test_what_a_core_is_asked_wrongly_is_refused(core):
    line = admission(core, 0, LINES[1])
    core.admit([line])
    wrong = [
        [line],
        [admission(core, 1, LINES[1]), admission(core, 1, LINES[2])],
        [replace(line, slot=8)],
        [replace(line, slot=1, max_frames=65)],
        [replace(line, slot=1, max_frames=0)],
        [replace(line, slot=1, sampling=SamplingParams(top_k=257))],
    ]
    for lines in wrong:
        with pytest.raises(ValueError, match=r"slot|range|free"):
            core.admit(lines)
    with pytest.raises(ValueError, match="bucket"):
        core.step(3)
    for source, target in ((3, 4), (0, 0)):
        with pytest.raises(ValueError, match="can't move"):
            core.move(source, target)
    assert core.progress() == {0: SlotProgress(0)}


def test_a_prompt_without_room_for_a_frame_is_refused_in_words():
    core = made_core(positions=64)
    line = admission(core, 0, Scripted("full reference", "word " * 60))
    long = replace(line, prompt=replace(line.prompt, embeds=line.prompt.embeds.repeat(1, 2, 1)))
    with pytest.raises(SpeechFailed, match="too long together"):
        core.admit([long])
    assert core.progress() == {}


def test_a_core_is_of_use_again_after_a_step_that_failed(core, monkeypatch):
    expected = alone(core, LINES[1], LIVELY, 1)

    def broken(*_args, **_kwargs):
        raise RuntimeError("out of order")

    core.admit([admission(core, 0, LINES[1], LIVELY, seed=1)])
    core.step(1)
    with monkeypatch.context() as fault:
        fault.setattr("studio.backends.qwen3.talker.TalkerStep._read_frame", broken)
        with pytest.raises(RuntimeError, match="out of order"):
            core.step(1)
    assert core.progress(latest=True) == {0: SlotProgress(1)}
    run_out(core, 1)  # the frame that failed is made again, as if nothing had been
    assert torch.equal(codes_of(core, 0), expected)
    core.reset()
    assert core.progress() == {}
    assert torch.equal(alone(core, LINES[1], LIVELY, 1), expected)


def test_what_the_lines_of_a_voice_share_is_laid_out_once():
    core = made_core()
    voice = voice_of("full reference")
    for line in LINES:
        core.prompt(tokens_of(line), voice, "english")
    assert core.prompts.computed == 4  # marks, start, transcript, sample
    core.prompt(tokens_of(LINES[0]), voice, None)
    assert core.prompts.computed == 5  # a start in another language
    core.prompt(tokens_of(LINES[0]), voice_of("timbre only"), "english")
    assert core.prompts.computed == 6


def test_shared_prompts_are_those_of_the_single_line_way():
    from qwen3_speakers import loaded_package
    from runner_lines import VOICES

    from studio.backends.qwen3.prompt import PromptBuilder

    cores = {}
    for name, (kind, _) in VOICES.items():
        core = cores.setdefault(kind, made_core(kind, slots=1))
        line = tokens_of(Scripted(name, "The door is open."))
        plain = PromptBuilder(loaded_package(kind).model).build(line, voice_of(name), "english")
        shared = core.prompt(line, voice_of(name), "english")
        for part in ("embeds", "trailing", "pad"):
            ours, theirs = getattr(shared, part), getattr(plain, part)
            assert ours.shape == theirs.shape
            assert (ours - theirs).abs().max() < 1e-5


def test_prompts_kept_are_bounded():
    from qwen3_speakers import loaded_package

    from studio.backends.qwen3.prompt import CachingPromptBuilder

    prompts = CachingPromptBuilder(loaded_package("base").model, kept=3)
    line = tokens_of(LINES[0])
    for _ in range(2):
        prompts.build(line, voice_of("full reference"), "english")
    assert prompts.computed == 8
    assert len(prompts._parts) == 3


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("talker", "attention_bias", True),
        ("talker", "sliding_window", 72),
        ("code_predictor", "hidden_act", "gelu"),
    ],
)
def test_attention_it_does_not_know_is_refused_in_words(monkeypatch, part, field, value):
    talker = loaded_model("base").package.talker
    config = talker.config if part == "talker" else talker.config.code_predictor_config
    monkeypatch.setattr(config, field, value)
    with pytest.raises(ModelUnavailable, match="attention that the batched talker"):
        made_core(slots=1)


def test_a_closed_core_holds_no_memory():
    core = made_core(slots=1)
    caches = weakref.ref(core._slots.kv_cache)
    core.close()
    assert caches() is None


def test_buckets_reach_just_to_the_slots():
    assert bucket_sizes(1) == (1,)
    assert bucket_sizes(5) == (1, 2, 4, 5)
    assert bucket_sizes(64) == (1, 2, 4, 8, 16, 24, 32, 48, 64)
    assert bucket_sizes(200) == (1, 2, 4, 8, 16, 24, 32, 48, 64, 128, 192, 200)


@pytest.mark.parametrize("kept_bytes", [None, 0], ids=["kept", "read anew"])
def test_prompts_padded_to_equal_lengths_make_the_same_codes(kept_bytes):
    """As on CUDA, where libraries choose anew for each length; slots are used twice."""
    core = made_core("base", 2, kept_bytes=kept_bytes)
    core._lengths = core.prefix_cache._lengths = 16
    made = refilled(core, 2, lines_of("base"))
    assert all(torch.equal(codes, reference_codes(line)) for line, codes in made.items())
