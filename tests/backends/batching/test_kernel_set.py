"""What a frame is made of: as few kernels as are needed, compiled ones with the same codes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
import torch.nn.functional as F
from kernel_count import count_kernels
from qwen3_checkpoint import FEW_GROUPS, small_checkpoint
from runner_lines import GREEDY, LIVELY, admission, decoded, lines_of, made_core, moved

from benchmarks.synthetic_qwen3 import (
    SIZES,
    _codec_config,
    build_audible_codec,
    build_random_model,
)
from studio.backends.batching import decoder_stack, kernel_set
from studio.backends.batching.decoder_stack import PointwiseKernels
from studio.backends.batching.prefill import prefill
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.batching.sampling import SamplingBounds, SamplingTensors
from studio.backends.batching.slots import StepShape
from studio.backends.qwen3.prompt import PrefixedPrompt, Qwen3Voice
from studio.backends.qwen3.talker import TalkerRunner, TalkerStep
from studio.backends.qwen3.talker_slots import TalkerSlots
from studio.backends.qwen3.talker_weights import TalkerWeights, pack_talker

pytestmark = pytest.mark.models

ROWS = 4
MOST_KERNELS = 1_510
MOST_FUSED_KERNELS = 1_200


@cache
def weights_of(size_name: str) -> TalkerWeights:
    """Of the layers of a size, but narrow, and without values: kernels are what is counted."""
    size = SIZES[size_name]
    thin = replace(SIZES["tiny"], layers=size.layers, rest_layers=size.rest_layers, rest_hidden=64)
    return moved(pack_talker(build_random_model(thin).talker, 1_024), "meta")


def frame_of(weights: TalkerWeights) -> Counter[str]:
    """Kernels of one frame."""
    step = TalkerStep(
        weights.with_kernels(kernel_set.EAGER_CUDA_KERNELS),
        TalkerSlots.allocate(weights, SlotLayout(ROWS, 1_024, 64)),
    )
    return count_kernels(lambda: step(StepShape(ROWS, 512)))


def test_what_a_kernel_is():
    x = torch.zeros(2, 3, device="meta")
    assert not count_kernels(lambda: x.view(3, 2)[1:].t().expand(4, 2, 2))
    assert count_kernels(lambda: x.t().reshape(-1) + 1) == {"clone": 1, "add": 1}
    assert count_kernels(lambda: x.to(torch.float16).to(torch.float16)) == {"_to_copy": 1}
    assert count_kernels(lambda: F.rms_norm(x, (3,))) == {"rms_norm": 1}
    heads = torch.zeros(2, 4, 1, 8, device="meta")
    assert count_kernels(lambda: F.scaled_dot_product_attention(heads, heads, heads)) == {
        "scaled_dot_product_attention": 1
    }


def a_choice() -> int:
    """Kernels of one choice, of chance that is there."""
    scores = torch.zeros(ROWS, 2_048, device="meta")
    column = torch.zeros(ROWS, 1, device="meta")
    rules = SamplingTensors(column, column, column.long(), column[:, 0].bool())
    noise = torch.zeros(ROWS, 3_072, device="meta")
    return count_kernels(
        lambda: kernel_set.EAGER_CUDA_KERNELS.sample(scores, noise, rules, SamplingBounds())
    ).total()


def test_a_frame_at_full_depth_launches_few_kernels():
    weights = weights_of("0.6B")
    talker, predictor = weights.talker, weights.predictor
    made, passes = len(talker.layers), len(predictor.layers) * (weights.groups - 1)
    frame = frame_of(weights)
    shorter = replace(talker, layers=talker.layers[:-1])
    flatter = replace(predictor, layers=predictor.layers[:-1])
    of_talker = (frame - frame_of(replace(weights, talker=shorter))).total()
    of_predictor = (frame - frame_of(replace(weights, predictor=flatter))).total()
    counts = {
        f"a layer of the talker, of {made}": of_talker,
        f"the {weights.groups - 1} passes through a layer of the predictor": of_predictor,
        f"a choice, of {weights.groups}": a_choice(),
        "a frame": frame.total(),
    }
    for what, kernels in counts.items():
        print(f"{kernels:6,}  {what}")
    print(frame.most_common(8))
    assert frame["scaled_dot_product_attention"] == made + passes
    assert list(counts.values()) == [13, 12 * (weights.groups - 1) + 1, 7, frame.total()]
    assert frame.total() <= MOST_KERNELS


def test_in_16_bits_states_are_as_near_to_float32_as_the_packages_own():
    """Norms and rotation round less often than the package does, and nowhere more."""
    ours, theirs = [], []
    for seed in range(12):  # of three the ratio is 0.91 to 1.10, of twelve 0.95 to 1.00
        model = build_random_model(replace(SIZES["tiny"], layers=12), seed=seed)
        torch.manual_seed(seed)
        for name, weight in model.talker.named_parameters():
            if weight.dim() == 2:
                torch.nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
            elif "norm" in name:
                torch.nn.init.uniform_(weight, 0.5, 1.5)
        model = model.to(torch.bfloat16).float()  # of weights that 16 bits hold
        prompt = torch.randn(1, 40, SIZES["tiny"].hidden).to(torch.bfloat16)
        exact = _last_state(model.talker, prompt.float())
        model.to(torch.bfloat16)
        with torch.inference_mode():
            packages = model.talker.model(inputs_embeds=prompt).last_hidden_state[0, -1]
        ours.append(float((_last_state(model.talker, prompt).float() - exact).norm()))
        theirs.append(float((packages.float() - exact).norm()))
    assert sum(ours) < 1.1 * sum(theirs)


def _last_state(talker, prompt: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        weights = pack_talker(talker, 64)
        slots = TalkerSlots.allocate(weights, SlotLayout(1, 64, 16))
        pad = prompt[:, :1]
        line = admission_of(PrefixedPrompt(prompt, pad, pad, Qwen3Voice(), 0, 0))
        prefill(weights.talker, slots, [line])
        return slots.hidden[0]


def admission_of(prompt: PrefixedPrompt):
    from studio.backends.qwen3.talker_slots import TalkerAdmission

    return TalkerAdmission(0, prompt, GREEDY, 0, 8)


def test_the_fewest_kernels_make_the_same_codes():
    made = []
    for chosen in (decoder_stack.EAGER_KERNELS, kernel_set.EAGER_CUDA_KERNELS):
        core = made_core(slots=8, kernels=chosen)
        ways = [(GREEDY, LIVELY)[n % 2] for n in range(8)]
        lines = [
            admission(core, n, line, ways[n], seed=n) for n, line in enumerate(lines_of("base"))
        ]
        made.append(decoded(core, 8, lines))
    assert all(torch.equal(made[0][slot], made[1][slot]) for slot in range(8))


def test_fused_kernels_imitated_on_a_cpu_make_what_plain_parts_make():
    """In a process of its own: Triton is told at its import that there is no card."""
    pytest.importorskip("triton", reason="Triton is not installed")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "triton_checks.py")],
        env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "the same"


def test_fused_kernels_take_the_place_of_three_and_of_two(monkeypatch):
    """What a frame would launch with them, each counted as the one kernel that it is."""
    one = torch.zeros(1, device="meta")
    pointwise = PointwiseKernels(
        norm_rope=lambda _layer, _plain, _turn, into: into.add_(1),
        silu_and_mul=lambda gate_up: gate_up.chunk(2, dim=1)[0] + one,
    )
    standing_in = replace(
        kernel_set.EAGER_CUDA_KERNELS,
        qkv_rope=partial(decoder_stack.qkv_rope, pointwise=pointwise),
        attn_out_mlp_qkv=partial(decoder_stack.attn_out_mlp_qkv, pointwise=pointwise),
        attn_out_mlp=partial(decoder_stack.attn_out_mlp, pointwise=pointwise),
    )
    weights = weights_of("0.6B")
    plain = frame_of(weights).total()
    monkeypatch.setattr(kernel_set, "EAGER_CUDA_KERNELS", standing_in)
    fused = frame_of(weights).total()
    print(f"kernels of a frame: {plain:,}, with fused ones {fused:,}")
    assert plain - fused == 3 * 103
    assert fused <= MOST_FUSED_KERNELS


def test_without_a_card_fused_kernels_are_not_used_and_it_is_told_once(caplog):
    kernel_set.can_run_triton.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert kernel_set.select_kernels("cuda") is kernel_set.EAGER_CUDA_KERNELS
        assert kernel_set.select_kernels("cuda") is kernel_set.EAGER_CUDA_KERNELS
    kernel_set.can_run_triton.cache_clear()
    assert [record.name for record in caplog.records] == [kernel_set.__name__]


class Compiling:
    """Compiles what would be launched on a card; see `JITFunction.run`."""

    POINTERS: ClassVar = {
        **{torch.float32: "*fp32", torch.bfloat16: "*bf16"},
        **{torch.int64: "*i64", torch.int32: "*i32", torch.bool: "*i1"},
    }

    def __init__(self, capability: int) -> None:
        self.capability = capability
        self.compiled: Counter[str] = Counter()
        self._done: set[tuple[object, ...]] = set()

    def run(self, kernel, *args, grid, warmup, num_warps=4, **named):
        """Compile a kernel for these arguments, down to what the card executes."""
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        assert not warmup
        assert grid
        given = dict(zip(kernel.arg_names, args, strict=False)) | named
        kinds = {
            one.name: "constexpr" if one.is_constexpr else self._kind(given[one.name])
            for one in kernel.params
        }
        known = {
            (at,): given[name]
            for at, name in enumerate(kernel.arg_names)
            if kinds[name] == "constexpr"
        }
        form = (kernel.__name__, *kinds.values(), *known.values(), num_warps)
        if form not in self._done:
            made = triton.compile(
                ASTSource(kernel, kinds, known),
                target=GPUTarget("cuda", self.capability, 32),
                options={"num_warps": num_warps},
            )
            assert made.asm["cubin"]
            self._done.add(form)
        if "codes" in given:
            given["codes"].zero_()  # what follows looks them up
        self.compiled[kernel.__name__] += 1

    def _kind(self, value: object) -> str:
        if isinstance(value, torch.Tensor):
            return self.POINTERS[value.dtype]
        return "fp32" if isinstance(value, float) else "i32"


@pytest.mark.parametrize("capability", [75, 90])
def test_each_triton_kernel_compiles_for_a_card(capability, monkeypatch, tmp_path):
    """Triton's interpreter takes more than its compiler, which needs no card."""
    jit = pytest.importorskip("triton.runtime.jit", reason="Triton is not installed")
    from studio.backends.batching.triton_attention import attend_triton
    from studio.backends.batching.triton_kernels import norm_rope_triton
    from studio.backends.qwen3.codec import CodecDecoder
    from studio.backends.qwen3.qwen3_model import load_model
    from studio.backends.qwen3.triton_codec import FusedWaveDecoder

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    compiling = Compiling(capability)
    monkeypatch.setattr(
        jit.JITFunction, "run", lambda kernel, *args, **named: compiling.run(kernel, *args, **named)
    )
    kernels = kernel_set.build_triton()
    dtype = torch.bfloat16 if capability >= 80 else torch.float32
    attend_triton(
        torch.zeros(ROWS, 8, 2, 128, dtype=dtype),
        torch.zeros(ROWS, 2, 8, 1_024, 128, dtype=dtype),
        torch.zeros(ROWS, dtype=torch.int64),
    )
    attend_triton(  # Chatterbox's T3, which stays in float32
        torch.zeros(ROWS, 16, 1, 64),
        torch.zeros(ROWS, 2, 16, 1_024, 64),
        torch.zeros(ROWS, dtype=torch.int64),
    )
    plain = torch.zeros(ROWS, 16 * 3 * 64)
    layer = SimpleNamespace(shape=(16, 3, 64), eps=1e-5, norms_heads=False)
    norm_rope_triton(layer, plain, torch.zeros(ROWS, 1, 1, 1, 2, 2, 32), torch.zeros_like(plain))
    package = load_model(small_checkpoint("base", groups=FEW_GROUPS), "cpu").package.to(dtype)
    TalkerRunner(package, SlotLayout(1, 256, 64), kernels=kernels).step(1)
    codec = build_audible_codec(_codec_config(SIZES["tiny"]))
    with torch.inference_mode():
        decoder = CodecDecoder(codec.model.decoder, waves=FusedWaveDecoder)
        decoder(torch.zeros(1, 1, decoder.groups, dtype=torch.int64), decoder.new_state(1))
    assert len(compiling.compiled) == 7


def test_a_sampler_for_all_makes_the_same_codes_in_steps_of_one_kind(monkeypatch):
    ways = (GREEDY, LIVELY, replace(LIVELY, top_p=0.8), replace(LIVELY, top_k=200))
    made, bounds = [], []
    for samples_all in (False, True):
        core = made_core(
            slots=8, kernels=replace(kernel_set.EAGER_CUDA_KERNELS, samples_all=samples_all)
        )
        met: set[SamplingBounds] = set()
        run = core._graphs.run
        monkeypatch.setattr(
            core._graphs, "run", lambda shape, run=run, met=met: (met.add(shape.bounds), run(shape))
        )
        alone = [
            decoded(core, 1, [admission(core, 0, line, ways[n % 4], seed=n)])[0]
            for n, line in enumerate(lines_of("base")[:4])
        ]
        lines = [
            admission(core, n, line, ways[n % 4], seed=n) for n, line in enumerate(lines_of("base"))
        ]
        made.append([*alone, *decoded(core, 8, lines).values()])
        bounds.append(met)
    assert len(bounds[0]) > 3
    assert bounds[1] == {SamplingBounds(256, any_top_p=True, any_greedy=True)}
    assert all(torch.equal(*pair) for pair in zip(*made, strict=True))
