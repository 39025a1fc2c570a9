"""Matrices as whole numbers for a CPU: half the bytes, and each row the same in any company."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

# A matrix is whole numbers of 16 bits, kept as two matrices of 8; a row is three of 8 bits, of
# which the last one meets the matrix' upper half alone. Their product differs from the exact one by
# a hundred-thousandth, where that of 8 times 8 bits differs by a hundredth; and it reads half the
# bytes.
#
# A matrix has one scale per output channel: a power of two where its weights are bfloat16, as all
# released ones are, since 16 bits then hold all but the smallest of them exactly. Each row is
# divided by its own largest value, so that one constant scale suits all of them: a scale per
# tensor, as torch's own dynamic layers take it, would let the other rows decide how a row is
# rounded. The sums are whole numbers, which no order of adding changes; so nothing of a row depends
# on how many there are, and none need be added.
#
# Source: `qlinear_dynamic.cpp` of torch 2.11, the FBGEMM kernels.


@dataclass(frozen=True, slots=True, eq=False)
class Int8Matrix:
    """A matrix, [out, in], as two of 8 bits.

    Attributes:
        coarse: The upper half of the matrix' whole numbers, as FBGEMM reads it.
        fine: Their lower half, from -128 on, likewise.
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
        if torch.equal(weight, weight.bfloat16().to(weight.dtype)):
            scales = scales.log2().ceil().exp2()
        whole = (weight / scales[:, None]).round_()  # float64 [out, in]
        upper = (whole / _HALF).add_(0.5).floor_()
        coarse, fine = _pack(upper, scales * _HALF), _pack(whole.sub_(upper * _HALF), scales)
        return cls(coarse, fine, len(weight), levels or _row_levels())

    def __len__(self) -> int:
        return self.channels

    def multiply(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Multiply rows, float32 [rows, in]; the product is the two results', multiplied.

        Returns:
            [rows, out], and each row's scale: [rows, 1].
        """
        rows = len(x)
        scales = torch.linalg.vector_norm(x, torch.inf, dim=1, keepdim=True).clamp_(min=_TINY)
        left, parts = x / scales, []
        for _ in range(_ROW_PARTS):
            parts.append(torch.round(left * self.levels).div_(self.levels))
            left = (left - parts[-1]).mul_(2 * self.levels)  # within [-1, 1] again
        product = self._multiply(torch.cat(parts), self.coarse)
        product[: 2 * rows] += self._multiply(torch.cat(parts[:2]), self.fine)
        first, *rest = product.split(rows)
        for power, part in enumerate(rest, start=1):
            first = first.add_(part, alpha=(2 * self.levels) ** -power)
        return first, scales

    def _multiply(self, x: torch.Tensor, packed: Any) -> torch.Tensor:
        product: torch.Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x, 1 / self.levels, self.levels + 1, packed
        )
        return product


def _pack(whole: torch.Tensor, scales: torch.Tensor) -> Any:
    """Whole numbers of 8 bits with the scales of their rows, as FBGEMM reads them."""
    zeros = torch.zeros(len(whole), dtype=torch.long)
    values = (whole * scales[:, None]).float()
    rounded = torch.quantize_per_channel(values, scales, zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(rounded, None)


_TINY = 1e-30  # the scale of a row of zeros
_HALF = 256
_WEIGHT_LEVELS = 127 * _HALF + 127  # in two halves from -128 to 127
_ROW_PARTS = 3


@cache
def _row_levels() -> int:
    """Without VNNI two products are added in 16 bits, which hold those of 7 bits and 8."""
    return 127 if torch.cpu._is_vnni_supported() else 63


def can_multiply_int8(device_type: str) -> bool:
    """Whether a device has these kernels: an x86 CPU with torch's FBGEMM."""
    return device_type == "cpu" and torch.backends.quantized.engine in ("x86", "fbgemm")
