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

# A compiler makes one kernel of what stands between two multiplications, and of a choice. Each part
# is compiled once for a number of rows and serves all layers, since weights are its arguments.

log = logging.getLogger(__name__)

_MAX_RECOMPILES = 64  # of one part: numbers of rows, of both transformers

EAGER_CUDA_KERNELS = KernelSet(noise=sampling.draw_frame_noise, sample=sampling.sample_codes_dense)
"""As few operations as there can be without a compiler: for a card, where each is a launch."""


def select_eager(device_type: str) -> KernelSet:
    """The eager functions for a kind of device."""
    return EAGER_CUDA_KERNELS if device_type == "cuda" else EAGER_KERNELS


def select_kernels(device_type: str, *, compiles: bool = False, fuses: bool = False) -> KernelSet:
    """The functions for a kind of device: fused, compiled or eager, as set and available.

    Both are off by default, as neither has been measured on a card. With fused ones a frame
    launches 1,192 kernels instead of 1,501.
    """
    if fuses:
        return select_triton(device_type)
    return select_compiled(device_type) if compiles else select_eager(device_type)


@cache
def select_triton(device_type: str) -> KernelSet:
    """Functions with fused Triton kernels; eager ones where those can't run, logged once."""
    if device_type != "cuda":
        log.warning("fused kernels need a CUDA device; frames are made of plain parts")
        return select_eager(device_type)
    try:
        return build_triton()
    except ImportError as error:
        log.warning("Triton can't be had (%s); frames are made of plain parts", error)
        return select_eager(device_type)


def build_triton() -> KernelSet:
    """Triton kernels wherever Triton runs, its interpreter included.

    Raises:
        ImportError: It isn't here.
    """
    from studio.backends.batching import triton_kernels

    pointwise = decoder_stack.PointwiseKernels(
        triton_kernels.norm_rope_triton, triton_kernels.silu_and_mul_triton
    )
    return replace(
        EAGER_CUDA_KERNELS,
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
