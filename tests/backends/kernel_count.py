"""How many kernels a frame launches, counted without a device.

A frame of few lines takes as long as its kernels take to start, some two microseconds each on a
current card, so that their number tells what a frame can cost. What only looks at a tensor in
another way launches nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

_FUSED_FUNCTIONS = {F.scaled_dot_product_attention, F.rms_norm, F.layer_norm}
"""One kernel each on CUDA, where other devices take them apart."""

_KERNELS_OF = {"topk": 2}
"""Operations that launch more than one kernel: candidates are gathered, then sorted."""

_NO_KERNEL = {"empty", "empty_like", "new_empty", "empty_strided", "_unsafe_view"}


class KernelCounter(TorchDispatchMode):  # type: ignore[misc]
    """Counts kernels while it is entered."""

    def __init__(self) -> None:
        """Begin at none."""
        super().__init__()
        self.counted: Counter[str] = Counter()
        self._inside = False
        self._whole = _FusedFunctions(self)

    def __enter__(self) -> KernelCounter:
        """Count from now on."""
        self._whole.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        """Count no more."""
        super().__exit__(*failure)
        self._whole.__exit__(*failure)

    @contextmanager
    def as_one(self, name: str) -> Iterator[None]:
        """Count all that is done within as one kernel of this name."""
        self.counted[name] += 1
        self._inside = True
        try:
            yield
        finally:
            self._inside = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Count an operation and do it."""
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        looks = func.is_view and _is_view_of(made, args[0])
        if not (self._inside or looks or name in _NO_KERNEL):
            self.counted[name] += _KERNELS_OF.get(name, 1)
        return made


class _FusedFunctions(TorchFunctionMode):  # type: ignore[misc]
    """Sees functions before they are taken apart."""

    def __init__(self, operations: KernelCounter) -> None:
        super().__init__()
        self._operations = operations

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func not in _FUSED_FUNCTIONS:
            return func(*args, **(kwargs or {}))
        with self._operations.as_one(func.__name__):
            made = func(*args, **(kwargs or {}))
            if func is F.scaled_dot_product_attention:  # as CUDA's kernels lay it out
                made = made.transpose(1, 2).contiguous().transpose(1, 2)
            return made


def _is_view_of(made: Any, of: Any) -> bool:
    """Whether all that was made are views of a tensor; reshaping may have copied it."""
    all_made = made if isinstance(made, tuple | list) else (made,)
    return all(torch._C._is_alias_of(one, of) for one in all_made)


def count_kernels(work: Callable[[], object]) -> Counter[str]:
    """Kernels that `work` launches, by operation."""
    with KernelCounter() as operations:
        work()
    return operations.counted
