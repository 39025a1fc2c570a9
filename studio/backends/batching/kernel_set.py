"""Selection of a step's kernels: eager, of whole numbers, or fused in Triton."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache, partial

import torch

from studio.backends.batching import decoder_stack, sampling
from studio.backends.batching.decoder_stack import EAGER_KERNELS, KernelSet
from studio.backends.batching.int8_matrix import Int8Matrix, can_multiply_int8

log = logging.getLogger(__name__)

EAGER_CUDA_KERNELS = KernelSet(noise=sampling.draw_frame_noise, sample=sampling.sample_codes_dense)
"""As few operations as there can be without a compiler: for a card, where each is a launch."""


INT8_KERNELS = replace(EAGER_KERNELS, pack=Int8Matrix.of)
"""For an x86 CPU, whose time goes into reading matrices."""


def select_eager(device_type: str) -> KernelSet:
    """The eager functions for a kind of device."""
    return EAGER_CUDA_KERNELS if device_type == "cuda" else EAGER_KERNELS


def select_kernels(device_type: str, *, float32: bool = False) -> KernelSet:
    """The functions for a kind of device: in Triton, with whole numbers or eager, as available.

    With Triton a frame launches 1,431 kernels instead of 1,783 and takes 0.76 to 0.82 of the time
    (H100, 64 slots and 1).
    """
    if device_type == "cuda" and can_run_triton():
        return build_triton()
    if can_multiply_int8(device_type) and not float32:
        return INT8_KERNELS
    return select_eager(device_type)


@cache
def can_run_triton() -> bool:
    """Whether Triton's kernels run on CUDA; why not is logged once.

    Triton compiles them when they are first needed, for which it looks for a C compiler.
    """
    try:
        from studio.backends.batching.triton_kernels import silu_and_mul_triton

        silu_and_mul_triton(torch.ones(1, 2, device="cuda"))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a compiler is missing in many ways
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        log.warning("Triton can't be used (%s); plain kernels are", reason)
        return False
    return True


def build_triton() -> KernelSet:
    """Triton kernels wherever Triton runs, its interpreter included.

    Raises:
        ImportError: It isn't here.
    """
    from studio.backends.batching.triton_attention import attend_triton
    from studio.backends.batching.triton_kernels import norm_rope_triton, silu_and_mul_triton
    from studio.backends.batching.triton_sampler import sample_codes_triton

    pointwise = decoder_stack.PointwiseKernels(norm_rope_triton, silu_and_mul_triton)
    return replace(
        EAGER_CUDA_KERNELS,
        qkv_rope=partial(decoder_stack.qkv_rope, pointwise=pointwise),
        attn_out_mlp_qkv=partial(decoder_stack.attn_out_mlp_qkv, pointwise=pointwise),
        attn_out_mlp=partial(decoder_stack.attn_out_mlp, pointwise=pointwise),
        sample=sample_codes_triton,
        samples_all=True,
        attend=attend_triton,
    )
