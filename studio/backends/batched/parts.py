"""What a frame is made of: plain, or compiled where that is wanted and can be.

A compiler makes one kernel of what stands between two multiplications, and of a choice. Each part
is compiled once for a number of rows and serves all layers, since weights are its arguments.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch

from studio.backends.batched import choice, noise, transformer

log = logging.getLogger(__name__)

_SHAPES = 64  # of one part: numbers of rows, of both transformers


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Functions of a step, as they are or compiled; each is described where it is written.

    Attributes:
        heads: `transformer.heads`.
        between: `transformer.between`.
        fed: `transformer.fed`.
        chance: What `choose` gets of a frame's chance: `noise.frame_keys`, or `frame_noise`.
        choose: `choice.choose`, or `choice.choose_of_all`.
    """

    heads: Callable[..., Any] = transformer.heads
    between: Callable[..., Any] = transformer.between
    fed: Callable[..., Any] = transformer.fed
    chance: Callable[..., torch.Tensor] = noise.frame_keys
    choose: Callable[..., torch.Tensor] = choice.choose


PLAIN = Parts()

FEWEST = Parts(chance=noise.frame_noise, choose=choice.choose_of_all)
"""As few operations as there can be without a compiler: for a card, where each is a launch."""


def plain(device_type: str) -> Parts:
    """The parts that suit a kind of device, none of them compiled."""
    return FEWEST if device_type == "cuda" else PLAIN


def chosen(device_type: str, *, compiles: bool = False, fuses: bool = False) -> Parts:
    """The parts for a kind of device, as they are wanted and can be; fused goes before compiled."""
    if fuses:
        return fused(device_type)
    return compiled(device_type) if compiles else plain(device_type)


@cache
def fused(device_type: str) -> Parts:
    """Parts whose chains are kernels of Triton's; plain ones where those can't run, logged once."""
    if device_type != "cuda":
        log.warning("fused kernels need a CUDA device; frames are made of plain parts")
        return plain(device_type)
    try:
        return of_triton()
    except ImportError as error:
        log.warning("Triton can't be had (%s); frames are made of plain parts", error)
        return plain(device_type)


def of_triton() -> Parts:
    """The same wherever Triton runs, also where it only imitates a card.

    Raises:
        ImportError: It isn't here.
    """
    from studio.backends.batched import fused

    chains = transformer.Chains(fused.rotated, fused.gated)
    return replace(
        FEWEST,
        heads=partial(transformer.heads, chains=chains),
        between=partial(transformer.between, chains=chains),
        fed=partial(transformer.fed, chains=chains),
    )


@cache
def compiled(device_type: str) -> Parts:
    """The parts for a kind of device, compiled; plain ones where no compiler works, logged once."""
    try:
        _compiled(_tried)(torch.ones(4, 4, device=device_type))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - compilers are missing in many ways
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        log.warning("nothing can be compiled here (%s); frames are made of plain parts", reason)
        return plain(device_type)
    limits = torch._dynamo.config
    limits.recompile_limit = max(limits.recompile_limit, _SHAPES)
    return Parts(
        _compiled(transformer.heads),
        _compiled(transformer.between),
        _compiled(transformer.fed),
        choose=_compiled(choice.choose),
    )


def _tried(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).cos().sum(dim=1)


def _compiled(plain: Callable[..., Any]) -> Callable[..., Any]:
    # Rounding stays where the plain parts round.
    how = {"emulate_precision_casts": True}
    made: Callable[..., Any] = torch.compile(plain, fullgraph=True, dynamic=False, options=how)
    return made
