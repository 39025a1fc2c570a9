"""Matrices as whole numbers for a CPU: half the bytes, and each row the same in any company."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

# A matrix is the sum of two of 8 bits: itself rounded, and what the rounding left; so is a row.
# Their product differs from the exact one by a twenty-thousandth, where that of one times one of 8
# bits differs by a hundredth; and it still reads half the bytes.
#
# A matrix has one scale per output channel. Each row is divided by its own largest value, so that
# one constant scale suits all of them: a scale per tensor, as torch's own dynamic layers take it,
# would let the other rows decide how a row is rounded. The sums are whole numbers, which no order
# of adding changes; so nothing of a row depends on how many there are, and none need be added.
#
# Source: `qlinear_dynamic.cpp` of torch 2.11, the FBGEMM kernels.


@dataclass(frozen=True, slots=True, eq=False)
class Int8Matrix:
    """A matrix, [out, in], as two of 8 bits.

    Attributes:
        coarse: The matrix rounded by output channel, as FBGEMM reads it.
        fine: What that left, likewise.
        channels: Of the output.
        levels: Steps between 0 and a row's largest value.
    """

    coarse: Any
    fine: Any
    channels: int
    levels: int

    @classmethod
    def of(cls, weight: torch.Tensor, *, levels: int | None = None) -> Int8Matrix:
        """Round a matrix, float32 [out, in]; `levels` are by default what this CPU can add up."""
        weight = weight.detach()
        scales = weight.abs().amax(dim=1).clamp(min=_TINY).double() / _WEIGHT_LEVELS
        coarse = _round(weight, scales)
        left = weight - coarse.dequantize()
        fine = _round(left, scales / (2 * _WEIGHT_LEVELS))
        pack = torch.ops.quantized.linear_prepack
        return cls(pack(coarse, None), pack(fine, None), len(weight), levels or _row_levels())

    def __len__(self) -> int:
        """Channels of the output, as of a tensor."""
        return self.channels

    def multiply(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Multiply rows, float32 [rows, in]; the product is the two results', multiplied.

        Returns:
            [rows, out], and each row's scale: [rows, 1].
        """
        rows = len(x)
        scales = torch.linalg.vector_norm(x, torch.inf, dim=1, keepdim=True).clamp_(min=_TINY)
        x = x / scales
        coarse = torch.round(x * self.levels).div_(self.levels)
        fine = (x - coarse).mul_(2 * self.levels)  # within [-1, 1] again
        both = torch.cat([coarse, fine])
        product = self._multiply(both, self.coarse).add_(self._multiply(both, self.fine))
        return product[:rows].add_(product[rows:], alpha=1 / (2 * self.levels)), scales

    def _multiply(self, x: torch.Tensor, packed: Any) -> torch.Tensor:
        product: torch.Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x, 1 / self.levels, self.levels + 1, packed
        )
        return product


def _round(weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    zeros = torch.zeros(len(weight), dtype=torch.long)
    return torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)


_TINY = 1e-30  # the scale of a row of zeros
_WEIGHT_LEVELS = 127


@cache
def _row_levels() -> int:
    """Without VNNI two products are added in 16 bits, which hold those of 7 bits and 8."""
    return 127 if torch.cpu._is_vnni_supported() else 63


def can_multiply_int8(device_type: str) -> bool:
    """Whether a device has these kernels: an x86 CPU with torch's FBGEMM."""
    return device_type == "cpu" and torch.backends.quantized.engine in ("x86", "fbgemm")
