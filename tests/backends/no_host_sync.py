"""A mode that fails on whatever would make the host wait for the device."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

READS = (
    *("_local_scalar_dense", "item", "is_nonzero", "equal", "nonzero", "nonzero_static"),
    *("masked_select", "_unique2", "unique_dim", "bincount", "repeat_interleave.Tensor"),
)


class NoReading(TorchDispatchMode):
    """Forbids what makes the host wait for a tensor's value, or moves one between devices."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.name().removeprefix("aten::")
        assert name not in READS, f"{name} reads a tensor's value"
        assert name != "_to_copy" or kwargs.get("device") is None, "a tensor is moved"
        assert not (name.startswith("index") and _by_mask(args)), "a shape depends on values"
        self.operations += 1
        return func(*args, **kwargs)


def _by_mask(args: tuple[Any, ...]) -> bool:
    indices = args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else ()
    return any(torch.is_tensor(one) and one.dtype is torch.bool for one in indices)
