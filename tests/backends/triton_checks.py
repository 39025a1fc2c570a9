"""Fused kernels beside the plain functions that say what they do; also run as a program, in which
Triton imitates a card: python triton_checks.py"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import torch
import torch.nn.functional as F

NEAR = {torch.float32: 1e-5, torch.bfloat16: 3e-2}  # of numbers about 1 in size


def chains_agree(
    device: str, dtype: torch.dtype, *, rows: int, shape: tuple[int, int, int], width: int
) -> None:
    """Compare them on heads of this shape: kv_heads, group + 2, head_dim."""
    from studio.backends.batching import decoder_stack, triton_kernels

    chance = torch.Generator().manual_seed(rows)

    def drawn(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=chance).to(device, dtype)

    kv_heads, kinds, head_dim = shape
    gate_up = drawn(rows, 2 * width)
    near(triton_kernels.silu_and_mul_triton(gate_up), decoder_stack.silu_and_mul(gate_up))
    for blocks in {1, rows}:
        for norms, turned in ((True, kinds), (False, 1)):
            layer = SimpleNamespace(shape=shape, eps=1e-6, norms_heads=norms)
            plain = drawn(rows, kv_heads * kinds * head_dim)
            turn = drawn(blocks, 1, 1, turned, 2, 2, head_dim // 2)
            made, expected = torch.zeros_like(plain), torch.zeros_like(plain)
            triton_kernels.norm_rope_triton(layer, plain, turn, made)
            decoder_stack.norm_rope(layer, plain, turn, expected)
            near(*(heads.unflatten(1, shape)[:, :, :-1] for heads in (made, expected)))


def sampling_agrees(device: str, dtype: torch.dtype, *, rows: int, codes: int) -> None:
    """Compare the codes of the kernel with those that sorting finds."""
    from studio.backends.batching import sampling, triton_sampler

    chance = torch.Generator().manual_seed(codes)
    scores = (torch.randn(rows, codes, generator=chance) * 3).to(device, dtype)
    scores[:, -3:] = -torch.inf  # commands that are no sounds
    scores[:, 7] = scores[:, 5]  # equal ones compete together
    lines = torch.arange(rows, device=device) * 7_919
    noise = sampling.draw_frame_noise(lines, lines * 0 + 3, torch.arange(2, device=device), 3_072)
    for top_k, top_p, temperature in (
        (50, 2.0, 0.9),
        (1, 2.0, 1.0),
        (256, 0.8, 1.3),
        (50, 0.5, 0.7),
    ):
        rules = sampling.SamplingTensors(
            temperature=torch.full((rows, 1), temperature, device=device),
            top_p=torch.full((rows, 1), top_p, device=device),
            last=torch.full((rows, 1), top_k - 1, device=device),
            greedy=torch.arange(rows, device=device) % 3 == 1,
        )
        bounds = sampling.SamplingBounds(256, any_top_p=True, any_greedy=True)
        expected = sampling.sample_codes_dense(scores, noise[1], rules, bounds)
        made = triton_sampler.sample_codes_triton(scores, noise[1], rules, bounds)
        assert torch.equal(made, expected), (top_k, top_p, made, expected)


def attention_agrees(
    device: str, dtype: torch.dtype, *, lengths: tuple[int, ...], shape: tuple[int, int, int]
) -> None:
    """Compare lines of these lengths in slots of 600 positions; shape as of `chains_agree`."""
    from studio.backends.batching import triton_attention

    rows, positions, (kv_heads, kinds, head_dim) = len(lengths), 600, shape
    chance = torch.Generator().manual_seed(rows)

    def drawn(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=chance).to(device, dtype)

    queries = drawn(rows, kv_heads, kinds, head_dim)[:, :, :-2]
    cache = drawn(rows + 1, 2, kv_heads, positions, head_dim)
    at = torch.tensor(lengths, device=device) - 1
    made = triton_attention.attend_triton(queries, cache, at)
    for row, length in enumerate(lengths):
        keys, values = cache[row, :, :, :length].float()
        expected = F.scaled_dot_product_attention(queries[row].float(), keys, values)
        near(made[row], expected.to(dtype))


def codec_agrees(device: str, size: str, *, rows: int) -> None:
    """Compare the audio of two chunks, and what is kept behind them."""
    from benchmarks.synthetic_qwen3 import SIZES, _codec_config, build_audible_codec
    from studio.backends.qwen3.codec import CodecDecoder, WaveDecoder
    from studio.backends.qwen3.triton_codec import FusedWaveDecoder

    dimensions = SIZES[size]
    if device == "cpu":  # an imitated card goes through its programs one by one
        dimensions = replace(dimensions, codec_width=16)
    decoder = build_audible_codec(_codec_config(dimensions)).model.decoder.to(device).eval()
    made: list[list[torch.Tensor]] = []
    for waves in (FusedWaveDecoder, WaveDecoder):
        chance = torch.Generator().manual_seed(rows)
        with torch.inference_mode():
            step = CodecDecoder(decoder, waves=waves)
            state = step.new_state(rows)
            made.append([])
            for frames in (1, 1 if device == "cpu" else 2):
                codes = torch.randint(0, 2_048, (rows, frames, step.groups), generator=chance)
                made[-1].append(step(codes.to(device), state))
            made[-1].append(state)
    for one, other in zip(*made, strict=True):
        near(one, other)
    assert made[0][0].abs().max() > 0.01


def codes_of_two_lines() -> list[dict[int, torch.Tensor]]:
    """Two frames of each, by plain parts and by fused ones; of a few groups, which are alike."""
    from qwen3_checkpoint import FEW_GROUPS
    from qwen3_speakers import VOICES, loaded_backend, loaded_model
    from runner_driver import decoded
    from runner_lines import GREEDY, LIVELY, lines_of, tokens_of

    from studio.backends.batching.kernel_set import EAGER_CUDA_KERNELS, build_triton
    from studio.backends.batching.runner_contract import SlotLayout
    from studio.backends.qwen3.talker import TalkerRunner
    from studio.backends.qwen3.talker_slots import TalkerAdmission

    kind = "voice_design"
    package = loaded_model(kind, groups=FEW_GROUPS).package
    voice = loaded_backend(kind, groups=FEW_GROUPS).condition(VOICES[kind]).payload
    text = tokens_of(lines_of(kind)[1])
    made = []
    for parts in (EAGER_CUDA_KERNELS, build_triton()):
        core = TalkerRunner(package, SlotLayout(2, 256, 64), kernels=parts)
        lines = [
            TalkerAdmission(slot, core.prompt(text, voice, "english"), way, seed=0, max_frames=2)
            for slot, way in enumerate((GREEDY, replace(LIVELY, top_p=0.8)))
        ]
        made.append(decoded(core, 2, lines))
    return made


def near(made: torch.Tensor, expected: torch.Tensor) -> None:
    assert made.dtype is expected.dtype
    far = (made.float() - expected.float()).abs() / (1 + expected.float().abs())
    assert far.max() < NEAR[made.dtype], float(far.max())


def main() -> None:
    """Compare both precisions, then the codes of a line."""
    for dtype in NEAR:
        chains_agree("cpu", dtype, rows=2, shape=(2, 4, 16), width=1_100)
        sampling_agrees("cpu", dtype, rows=4, codes=2_048)
        attention_agrees("cpu", dtype, lengths=(1, 257, 600), shape=(2, 4, 16))
    codec_agrees("cpu", "tiny", rows=2)
    made = codes_of_two_lines()
    for slot in range(2):
        assert len(made[0][slot]) == 2
        assert torch.equal(made[0][slot], made[1][slot])
    print("the same")


if __name__ == "__main__":
    main()
