"""Matrices as twice 8 bits: near the full ones, and every row the same in any company."""

from __future__ import annotations

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from runner_lines import GREEDY, LIVELY, admission, decoded, lines_of, made_core, refilled

from studio.backends.batching.decoder_stack import EAGER_KERNELS, add_linear, linear, linear_into
from studio.backends.batching.int8_matrix import Int8Matrix, can_multiply_int8
from studio.backends.batching.kernel_set import select_kernels

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not can_multiply_int8("cpu"), reason="torch has no FBGEMM here"),
]

WITH_VNNI = pytest.mark.skipif(
    not torch.cpu._is_vnni_supported(), reason="two products of 8 bits overflow here"
)
"""Where two products are added in 16 bits, the studio takes 63 levels."""

LINES = lines_of("base")
INT8 = select_kernels("cpu")


def rows(count: int = 9, width: int = 96) -> torch.Tensor:
    """Rows of very different size, which one scale for all would round to nothing."""
    return torch.randn(count, width, generator=torch.manual_seed(3)) * torch.logspace(
        -3, 3, count
    ).unsqueeze(1)


def weight(out: int = 80, width: int = 96) -> torch.Tensor:
    return torch.randn(out, width, generator=torch.manual_seed(4)) * 0.02


@pytest.mark.parametrize("levels", [pytest.param(127, marks=WITH_VNNI), 63])
def test_each_row_is_near_its_product_in_full(levels):
    plain = rows() @ weight().t()
    made = linear(rows(), Int8Matrix.of(weight(), levels=levels))
    lacking = (made - plain).norm(dim=1) / plain.norm(dim=1)
    assert lacking.max() < 2.5 / levels**2


@pytest.mark.parametrize("levels", [pytest.param(127, marks=WITH_VNNI), 63])
def test_weights_of_16_bits_lose_next_to_nothing(levels):
    """A checkpoint's are bfloat16, whose scale can be one at which most of them are whole."""
    released = weight(width=1024).bfloat16().float()
    x = rows(width=1024)
    plain = x.double() @ released.double().t()
    made = linear(x, Int8Matrix.of(released, levels=levels)).double()
    assert ((made - plain).norm(dim=1) / plain.norm(dim=1)).max() < 2e-5


@pytest.mark.parametrize("levels", [127, 63])
def test_a_row_is_the_same_alone_and_in_any_company(levels):
    matrix = Int8Matrix.of(weight(), levels=levels)
    together = linear(rows(), matrix)
    for first in range(9):
        for last in range(first + 1, 10):
            assert torch.equal(linear(rows()[first:last], matrix), together[first:last])


def test_all_three_multiplications_agree():
    matrix, x = Int8Matrix.of(weight(96)), rows()
    into = torch.empty(9, 96)
    linear_into(into, x, matrix)
    assert torch.equal(into, linear(x, matrix))
    torch.testing.assert_close(add_linear(x.clone(), x, matrix), x + into)
    bias = torch.arange(96.0)
    torch.testing.assert_close(linear(x, matrix, bias), into + bias)


def test_a_processor_takes_whole_numbers_unless_told_otherwise():
    assert isinstance(select_kernels("cpu").pack(weight()), Int8Matrix)
    assert select_kernels("cpu", float32=True) is EAGER_KERNELS
    assert select_kernels("mps") is EAGER_KERNELS


def test_rows_and_channels_of_zeros_stay_zeros():
    made = linear(torch.zeros(2, 96), Int8Matrix.of(weight()))
    assert torch.equal(made, torch.zeros(2, 80))
    assert torch.equal(linear(rows(), Int8Matrix.of(torch.zeros(80, 96))), torch.zeros(9, 80))


@pytest.mark.parametrize("sampling", [GREEDY, LIVELY], ids=["greedy", "drawn"])
def test_lines_have_the_same_codes_alone_and_among_eight(sampling):
    core = made_core(kernels=INT8)
    lines = [admission(core, n, line, sampling, seed=n) for n, line in enumerate(LINES)]
    together = decoded(core, 8, lines)
    for seed, line in enumerate(LINES):
        core.reset()
        alone = decoded(core, 1, [admission(core, 0, line, sampling, seed=seed)])[0]
        assert torch.equal(together[seed], alone), line


def test_lines_have_the_same_codes_in_used_slots():
    few, many = (refilled(made_core(slots=n, kernels=INT8), n, LINES) for n in (3, 8))
    for line in LINES:
        assert torch.equal(few[line], many[line]), line
