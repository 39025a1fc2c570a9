"""Fused kernels beside the plain functions that say what they do; also run as a program, in which
Triton imitates a card: python triton_checks.py"""

from __future__ import annotations

from types import SimpleNamespace

import torch

NEAR = {torch.float32: 1e-5, torch.bfloat16: 2e-2}  # of numbers about 1 in size


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


def near(made: torch.Tensor, expected: torch.Tensor) -> None:
    assert made.dtype is expected.dtype
    far = (made.float() - expected.float()).abs() / (1 + expected.float().abs())
    assert far.max() < NEAR[made.dtype], float(far.max())


def main() -> None:
    """Compare both precisions, then the codes of a line."""
    for dtype in NEAR:
        chains_agree("cpu", dtype, rows=2, shape=(2, 4, 16), width=1_100)
    from runner_lines import admission, decoded, lines_of, made_core

    from studio.backends.batching.kernel_set import EAGER_CUDA_KERNELS, build_triton

    made = []
    for parts in (EAGER_CUDA_KERNELS, build_triton()):
        core = made_core(slots=1, kernels=parts)
        line = admission(core, 0, lines_of("base")[1], max_frames=2)
        made.append(decoded(core, 1, [line])[0])
    assert len(made[0]) == 2
    assert torch.equal(*made)
    print("the same")


if __name__ == "__main__":
    main()
