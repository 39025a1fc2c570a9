"""What a frame is made of: plain, or compiled where that is wanted and can be.

A compiler makes one kernel of what stands between two multiplications, and of a choice. Each part
is compiled once for a number of rows and serves all layers, since weights are its arguments.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from studio.backends.batched import choice, transformer

log = logging.getLogger(__name__)

_SHAPES = 64  # of one part: numbers of rows, of both transformers


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Functions of a step, as they are or compiled; each is described where it is written.

    Attributes:
        heads: `transformer.heads`.
        between: `transformer.between`.
        fed: `transformer.fed`.
        choose: `choice.choose`.
    """

    heads: Callable[..., Any] = transformer.heads
    between: Callable[..., Any] = transformer.between
    fed: Callable[..., Any] = transformer.fed
    choose: Callable[..., torch.Tensor] = choice.choose


PLAIN = Parts()


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
        return PLAIN
    limits = torch._dynamo.config
    limits.recompile_limit = max(limits.recompile_limit, _SHAPES)
    return Parts(
        _compiled(transformer.heads),
        _compiled(transformer.between),
        _compiled(transformer.fed),
        _compiled(choice.choose),
    )


def _tried(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).cos().sum(dim=1)


def _compiled(plain: Callable[..., Any]) -> Callable[..., Any]:
    # Rounding stays where the plain parts round.
    how = {"emulate_precision_casts": True}
    made: Callable[..., Any] = torch.compile(plain, fullgraph=True, dynamic=False, options=how)
    return made
