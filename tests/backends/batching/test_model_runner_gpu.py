"""The decoding core on CUDA: replayed graphs, news a frame late, and no waiting in between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_checkpoint import small_checkpoint
from runner_lines import (
    GREEDY,
    LIVELY,
    admission,
    decoded,
    lines_of,
    reference_codes,
    run_out,
)
from triton_checks import attention_agrees, chains_agree, codec_agrees, sampling_agrees

from studio.backends.batching.decoder_stack import EAGER_KERNELS
from studio.backends.batching.kernel_set import select_eager, select_kernels
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.device import prepare
from studio.backends.qwen3.talker import TalkerRunner

pytestmark = [
    pytest.mark.models,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; there is none"),
]

LINES = lines_of("base")


def core_on_cuda(
    dtype: torch.dtype = torch.float32, *, graphs: bool = True, **options: Any
) -> TalkerRunner:
    from qwen_tts import Qwen3TTSModel

    prepare("cuda")
    package = Qwen3TTSModel.from_pretrained(
        str(small_checkpoint("base")), dtype=dtype, device_map="cuda"
    )
    core = TalkerRunner(package.model, SlotLayout(8, 256, 64), **options)
    core._graphs._captures = graphs
    return core


@pytest.mark.parametrize("sampling", [GREEDY, LIVELY], ids=["greedy", "sampled"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_replayed_frames_are_those_of_the_plain_step(dtype, sampling):
    made = []
    for graphs in (False, True):
        core = core_on_cuda(dtype, graphs=graphs)
        lines = [admission(core, n, line, sampling, seed=n) for n, line in enumerate(LINES)]
        made.append(decoded(core, 8, lines))
        assert (core._graphs.captured > 0) is graphs
    for slot in range(8):
        assert torch.equal(made[0][slot], made[1][slot])


def test_greedy_codes_in_float32_are_those_of_the_package():
    core = core_on_cuda()
    lines = [admission(core, n, line) for n, line in enumerate(LINES)]
    for slot, codes in decoded(core, 8, lines).items():
        assert torch.equal(codes.cpu(), reference_codes(LINES[slot]))


def test_the_fewest_kernels_make_the_codes_of_the_plain_step():
    made = []
    for chosen in (EAGER_KERNELS, select_eager("cuda")):
        core = core_on_cuda(kernels=chosen)
        lines = [admission(core, n, line, LIVELY, seed=n) for n, line in enumerate(LINES)]
        made.append(decoded(core, 8, lines))
    assert all(torch.equal(made[0][slot], made[1][slot]) for slot in range(8))


@pytest.mark.parametrize("sampling", [GREEDY, LIVELY], ids=["greedy", "sampled"])
def test_fused_kernels_make_the_codes_of_plain_ones_and_are_captured(sampling):
    assert select_kernels("cuda") is not select_eager("cuda")
    made = []
    for wanted in (select_eager("cuda"), select_kernels("cuda")):
        core = core_on_cuda(kernels=wanted)
        lines = [admission(core, n, line, sampling, seed=n) for n, line in enumerate(LINES)]
        made.append(decoded(core, 8, lines))
        assert core._graphs.captured > 0
    assert all(torch.equal(made[0][slot], made[1][slot]) for slot in range(8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_fused_chains_are_the_plain_ones_at_full_width(dtype, rows):
    chains_agree("cuda", dtype, rows=rows, shape=(8, 4, 128), width=3_072)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_sampling_and_attention_are_the_plain_ones_at_full_width(dtype):
    sampling_agrees("cuda", dtype, rows=64, codes=3_072)
    lengths = tuple(range(1, 600, 10))
    attention_agrees("cuda", dtype, lengths=lengths, shape=(8, 4, 128))


def test_the_fused_codec_is_the_plain_one_at_full_width():
    prepare("cuda", tf32=False)
    codec_agrees("cuda", "0.6B", rows=3)


def test_lines_of_any_sampling_capture_nothing_once_it_is_warm():
    core = core_on_cuda(kernels=select_kernels("cuda"))
    core.warm([8])
    captured = core._graphs.captured
    ways = (GREEDY, LIVELY, replace(LIVELY, top_p=0.8), replace(LIVELY, top_k=200))
    decoded(core, 8, [admission(core, n, line, ways[n % 4]) for n, line in enumerate(LINES)])
    assert core._graphs.captured == captured


def test_prompts_read_by_a_graph_make_the_codes_of_those_read_plainly():
    made = []
    for captures in (False, True):
        core = core_on_cuda(captures_prefill=captures)
        lines = [admission(core, n, line, LIVELY, seed=n) for n, line in enumerate(LINES)]
        alone = [replace(line, slot=0) for line in lines]
        for _ in range(3):  # plain, captured, replayed
            together = decoded(core, 8, lines)
            one_by_one = [decoded(core, 1, [line])[0] for line in alone]
        made.append([*together.values(), *one_by_one])
    assert core._prefill.captured > 1
    assert all(torch.equal(*pair) for pair in zip(*made, strict=True))


def test_beginnings_that_are_kept_make_the_codes_of_those_that_are_read():
    core = core_on_cuda()
    lines = [admission(core, n, line) for n, line in enumerate(LINES)]
    read, kept = decoded(core, 8, lines), decoded(core, 8, lines)
    assert core.prefix_cache.computed == len({line.prompt.part for line in lines})
    assert all(torch.equal(read[slot], kept[slot]) for slot in range(8))


def test_nobody_waits_for_a_replayed_frame():
    core = core_on_cuda(torch.bfloat16)
    core.warm([8])
    core.admit([admission(core, n, line, LIVELY, seed=n) for n, line in enumerate(LINES)])
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            core.step(8)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    late, latest = core.progress(), core.progress(latest=True)
    assert all(late[slot].frames in (latest[slot].frames, latest[slot].frames - 1) for slot in late)


def test_news_is_of_the_line_that_has_the_slot_now():
    core = core_on_cuda()
    core.admit([admission(core, 0, LINES[0])])
    run_out(core, 1)
    core.free(0)
    core.admit([replace(admission(core, 0, LINES[1]), max_frames=64)])
    assert core.progress()[0].frames == 0
    core.step(1)
    assert core.progress()[0].frames == 0
    core.step(1)
    assert core.progress()[0].frames == 1
    assert core.progress(latest=True)[0].frames == 2
