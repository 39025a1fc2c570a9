"""Matrices in 8 bits for a CPU: a quarter of the bytes, and each row the same in any company."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

# A matrix has one scale per output channel. Each row is divided by its own largest value, so that
# one constant scale suits all of them: a scale per tensor, as torch's own dynamic layers take it,
# would let the other rows decide how a row is rounded. The sums are whole numbers, which no order
# of adding changes; so nothing of a row depends on how many there are, and none need be added.
#
# Source: `qlinear_dynamic.cpp` of torch 2.11, the FBGEMM kernels.


@dataclass(frozen=True, slots=True, eq=False)
class Int8Matrix:
    """A matrix, [out, in], rounded to 8 bits by output channel.

    Attributes:
        packed: As FBGEMM reads it.
        channels: Of the output.
        levels: Steps between 0 and a row's largest value.
    """

    packed: Any
    channels: int
    levels: int

    @classmethod
    def of(cls, weight: torch.Tensor, *, levels: int | None = None) -> Int8Matrix:
        """Round a matrix, float32 [out, in]; `levels` are by default what this CPU can add up."""
        scales = weight.abs().amax(dim=1).clamp(min=_TINY).double() / _WEIGHT_LEVELS
        zeros = torch.zeros(len(weight), dtype=torch.long)
        rounded = torch.quantize_per_channel(weight.detach(), scales, zeros, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(rounded, None)
        return cls(packed, len(weight), levels or _row_levels())

    def __len__(self) -> int:
        """Channels of the output, as of a tensor."""
        return self.channels

    def multiply(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Multiply rows, float32 [rows, in]; the product is the two results', multiplied.

        Returns:
            [rows, out], and each row's scale: [rows, 1].
        """
        scales = torch.linalg.vector_norm(x, torch.inf, dim=1, keepdim=True).clamp_(min=_TINY)
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / scales, 1 / self.levels, self.levels + 1, self.packed
        )
        return product, scales


_TINY = 1e-30  # the scale of a row of zeros
_WEIGHT_LEVELS = 127


@cache
def _row_levels() -> int:
    """Without VNNI two products are added in 16 bits, which hold those of 7 bits and 8."""
    return 127 if torch.cpu._is_vnni_supported() else 63


def can_multiply_int8(device_type: str) -> bool:
    """Whether a device has these kernels: an x86 CPU with torch's FBGEMM."""
    return device_type == "cpu" and torch.backends.quantized.engine in ("x86", "fbgemm")
