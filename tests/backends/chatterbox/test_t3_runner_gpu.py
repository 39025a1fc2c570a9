"""Many Chatterbox lines on CUDA: replayed graphs, and no waiting in between."""

from __future__ import annotations

import pytest

pytest.importorskip("chatterbox", reason="the neural voices' packages are not installed")

import numpy as np
import torch
from chatterbox_checkpoint import VARIANTS, checkpoint
from chatterbox_lines import Desk, lines_of, tokens_together

from studio.backends.batching.kernel_set import select_kernels
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.chatterbox.flow import RequestNoise, UndecodedTokens
from studio.backends.chatterbox.t3_runner import T3Runner
from studio.backends.device import prepare

pytestmark = [
    pytest.mark.models,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; there is none"),
]

LIVELY = 0.8


@pytest.fixture(params=VARIANTS)
def desk(request, tmp_path_factory) -> Desk:
    return Desk(request.param, checkpoint(request.param, tmp_path_factory), "cuda")


def core_of(desk: Desk, dtype: torch.dtype = torch.float32, *, graphs: bool = True) -> T3Runner:
    kernels = select_kernels("cuda", float32=True)
    layout = SlotLayout(8, 512, 64)
    core = T3Runner(desk.model.t3, layout, dtype=dtype, ends=desk.ends, kernels=kernels)
    core._graphs._captures = graphs
    return core


def admissions(desk: Desk, core: T3Runner, *temperature: float) -> list:
    return [
        desk.admission(core, slot, line, seed=slot)
        for slot, line in enumerate(lines_of(desk.variant, *temperature))
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_replayed_tokens_are_those_of_the_plain_step(desk, dtype):
    made = []
    for graphs in (False, True):
        core = core_of(desk, dtype, graphs=graphs)
        made.append(tokens_together(core, 8, admissions(desk, core, LIVELY)))
        assert (core._graphs.captured > 0) is graphs
    for slot in range(8):
        assert torch.equal(made[0][slot], made[1][slot])


def test_the_likeliest_tokens_in_float32_are_those_of_the_package(desk):
    torch.backends.cuda.matmul.allow_tf32 = False
    core = core_of(desk)
    lines = lines_of(desk.variant)
    for slot, tokens in tokens_together(core, 8, admissions(desk, core)).items():
        assert torch.equal(tokens.cpu(), desk.of_package(lines[slot]).cpu())


def test_nobody_waits_for_a_replayed_token(desk):
    core = core_of(desk, torch.bfloat16)
    core.warm([8])
    core.admit(admissions(desk, core, LIVELY))
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            core.step(8)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(progress.frames for progress in core.progress(latest=True).values())


def test_lines_sounded_together_are_about_as_if_alone(desk):
    tokens = [torch.arange(length, device="cuda") * 97 % 6_561 for length in (30, 11, 26)]

    def unsounded(number: int) -> UndecodedTokens:
        return UndecodedTokens(
            tokens[number], desk.voices[number], RequestNoise(number), lambda: False
        )

    together = desk.decode([unsounded(number) for number in range(3)])
    for number, samples in enumerate(together):
        [alone] = desk.decode([unsounded(number)])
        assert samples.shape == alone.shape
        assert np.abs(samples - alone).mean() < 0.01


def test_lines_sounded_by_graphs_are_about_as_if_alone(desk):
    prepare("cuda", tf32=True)  # the default
    tokens = [torch.arange(length, device="cuda") * 97 % 6_561 for length in (30, 11, 26)]

    def unsounded(number: int) -> UndecodedTokens:
        return UndecodedTokens(
            tokens[number], desk.voices[number], RequestNoise(number), lambda: False
        )

    decoder = desk.model.graphed_decoder()
    made = [
        desk.model.decode_waves([unsounded(number) for number in range(3)], decoder)
        for _ in range(3)  # plain, captured, replayed
    ]
    prepare("cuda", tf32=False)
    for number in range(3):
        [alone] = desk.model.decode_waves([unsounded(number)])
        for waves in made:
            assert np.square(waves[number] - alone).mean() < 1e-4 * np.square(alone).mean()
    decoder.close()
