"""Selection of a step's kernels: eager, compiled, or fused in Triton."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch

from studio.backends.batching import decoder_stack, sampling
from studio.backends.batching.decoder_stack import EAGER_KERNELS, KernelSet
from studio.backends.batching.int8_matrix import Int8Matrix, can_multiply_int8
from studio.backends.options import Tuning

# A compiler makes one kernel of what stands between two multiplications, and of a choice. Each part
# is compiled once for a number of rows and serves all layers, since weights are its arguments.

log = logging.getLogger(__name__)

_MAX_RECOMPILES = 64  # of one part: numbers of rows, of both transformers

EAGER_CUDA_KERNELS = KernelSet(noise=sampling.draw_frame_noise, sample=sampling.sample_codes_dense)
"""As few operations as there can be without a compiler: for a card, where each is a launch."""


INT8_KERNELS = replace(EAGER_KERNELS, pack=Int8Matrix.of)
"""For an x86 CPU, whose time goes into reading matrices."""


def select_eager(device_type: str) -> KernelSet:
    """The eager functions for a kind of device."""
    return EAGER_CUDA_KERNELS if device_type == "cuda" else EAGER_KERNELS


_TRITON = frozenset((Tuning.FUSED, Tuning.FUSED_SAMPLER, Tuning.FLASH_DECODING))


def select_kernels(device_type: str, tuning: frozenset[Tuning] = frozenset()) -> KernelSet:
    """The functions for a kind of device: in Triton, compiled or eager, as set and available.

    All but whole numbers on a CPU are off by default, as none has been measured on a card. With
    `FUSED` a frame launches 1,187 kernels instead of 1,496.
    """
    if tuning & _TRITON:
        return select_triton(device_type, tuning & _TRITON)
    if can_multiply_int8(device_type) and not tuning & {Tuning.FLOAT32, Tuning.COMPILED}:
        return INT8_KERNELS
    return select_compiled(device_type) if Tuning.COMPILED in tuning else select_eager(device_type)


@cache
def select_triton(
    device_type: str, tuning: frozenset[Tuning] = frozenset((Tuning.FUSED,))
) -> KernelSet:
    """Functions with Triton kernels; eager ones where those can't run, logged once."""
    if device_type != "cuda":
        log.warning("fused kernels need a CUDA device; frames are made of plain parts")
        return select_eager(device_type)
    try:
        return build_triton(tuning)
    except ImportError as error:
        log.warning("Triton can't be had (%s); frames are made of plain parts", error)
        return select_eager(device_type)


def build_triton(tuning: frozenset[Tuning] = frozenset((Tuning.FUSED,))) -> KernelSet:
    """Triton kernels wherever Triton runs, its interpreter included.

    Raises:
        ImportError: It isn't here.
    """
    kernels = EAGER_CUDA_KERNELS
    if Tuning.FUSED in tuning:
        kernels = _fuse_pointwise(kernels)
    if Tuning.FUSED_SAMPLER in tuning:
        from studio.backends.batching.triton_sampler import sample_codes_triton

        kernels = replace(kernels, sample=sample_codes_triton, samples_all=True)
    if Tuning.FLASH_DECODING in tuning:
        from studio.backends.batching.triton_attention import attend_triton

        kernels = replace(kernels, attend=attend_triton)
    return kernels


def _fuse_pointwise(kernels: KernelSet) -> KernelSet:
    from studio.backends.batching import triton_kernels

    pointwise = decoder_stack.PointwiseKernels(
        triton_kernels.norm_rope_triton, triton_kernels.silu_and_mul_triton
    )
    return replace(
        kernels,
        qkv_rope=partial(decoder_stack.qkv_rope, pointwise=pointwise),
        attn_out_mlp_qkv=partial(decoder_stack.attn_out_mlp_qkv, pointwise=pointwise),
        attn_out_mlp=partial(decoder_stack.attn_out_mlp, pointwise=pointwise),
    )


@cache
def select_compiled(device_type: str) -> KernelSet:
    """Compiled functions for a kind of device; eager ones where no compiler works, logged once."""
    try:
        _compile(_probe)(torch.ones(4, 4, device=device_type))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - compilers are missing in many ways
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        log.warning("nothing can be compiled here (%s); frames are made of plain parts", reason)
        return select_eager(device_type)
    limits = torch._dynamo.config
    limits.recompile_limit = max(limits.recompile_limit, _MAX_RECOMPILES)
    return KernelSet(
        _compile(decoder_stack.qkv_rope),
        _compile(decoder_stack.attn_out_mlp_qkv),
        _compile(decoder_stack.attn_out_mlp),
        sample=_compile(sampling.sample_codes),
    )


def _probe(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).cos().sum(dim=1)


def _compile(plain: Callable[..., Any]) -> Callable[..., Any]:
    # Rounding stays where the plain parts round.
    how = {"emulate_precision_casts": True}
    made: Callable[..., Any] = torch.compile(plain, fullgraph=True, dynamic=False, options=how)
    return made
