"""Chance from numbers alone, and choosing with it: fair, and by the package's own rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("transformers", reason="the neural voices' packages are not installed")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from studio.backends.batching.sampling import (
    SamplingBounds,
    SamplingTensors,
    derive_frame_keys,
    derive_line_key,
    draw_frame_noise,
    gumbel_noise,
    sample_codes,
    sample_codes_dense,
)

pytestmark = pytest.mark.models

DRAWS = 20_000
CODES = 96


def keys_of(seed: int, frames: int = DRAWS, group: int = 0) -> torch.Tensor:
    """A key for each frame of one line: [frames, 1]."""
    lines = torch.full((frames,), derive_line_key(seed))
    return derive_frame_keys(lines, torch.arange(frames), torch.arange(16))[group]


def rules_of(rows: int, temperature: float, top_k: int, top_p: float) -> SamplingTensors:
    return SamplingTensors(
        temperature=torch.full((rows, 1), temperature),
        top_p=torch.full((rows, 1), top_p if top_p < 1 else 2.0),
        last=torch.full((rows, 1), top_k - 1),
        greedy=torch.zeros(rows, dtype=torch.bool),
    )


def drawn(scores: torch.Tensor, keys: torch.Tensor, *way: float, candidates: int = 64):
    rows = len(keys)
    bounds = SamplingBounds(candidates, any_top_p=way[2] < 1)
    return sample_codes(scores.expand(rows, -1), keys, rules_of(rows, *way), bounds)


def likelihoods(scores: torch.Tensor, temperature: float, top_k: int, top_p: float):
    """What the package would draw from: [codes]."""
    scores = TemperatureLogitsWarper(temperature)(None, scores[None])
    scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p < 1:
        scores = TopPLogitsWarper(top_p)(None, scores)
    return scores.softmax(dim=-1)[0]


@pytest.mark.parametrize(
    "way", [(1.0, 50, 1.0), (0.9, 8, 1.0), (0.7, 50, 0.8), (1.4, 64, 0.95), (1.0, 1, 1.0)]
)
def test_codes_are_drawn_as_likely_as_the_package_would(way):
    scores = torch.randn(CODES, generator=torch.Generator().manual_seed(3)) * 2
    expected = likelihoods(scores, *way) * DRAWS
    counted = drawn(scores, keys_of(11), *way).bincount(minlength=CODES)
    assert not counted[expected == 0].any()
    far = (counted - expected).abs() / (expected + 1).sqrt()
    assert far.max() < 5  # standard deviations


@given(
    seed=st.integers(0, 10_000),
    temperature=st.floats(0.2, 1.5),
    top_k=st.integers(1, 64),
    top_p=st.floats(0.05, 1.0),
)
@settings(max_examples=40)
def test_nothing_is_drawn_that_the_package_would_not(seed, temperature, top_k, top_p):
    scores = torch.randn(CODES, generator=torch.Generator().manual_seed(seed)) * 3
    allowed = likelihoods(scores, temperature, top_k, top_p)
    # A share that is met to the last bit may be cut on either side of the code that meets it.
    near = likelihoods(scores, temperature, top_k, min(1.0, top_p + 1e-5))
    codes = drawn(scores, keys_of(seed, 200), temperature, top_k, top_p)
    assert ((allowed + near)[codes] > 0).all()


def test_what_the_host_knows_of_the_breadth_changes_no_draw():
    scores = torch.randn(512, generator=torch.Generator().manual_seed(1)) * 2
    narrow = drawn(scores, keys_of(2, 2_000), 0.9, 50, 1.0)
    wide = sample_codes(
        scores.expand(2_000, -1),
        keys_of(2, 2_000),
        rules_of(2_000, 0.9, 50, 1.0),
        SamplingBounds(256, True),
    )
    assert torch.equal(narrow, wide)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(
    "way",
    [
        (1.0, 50, 1.0),
        (0.9, 8, 1.0),
        (0.7, 50, 0.8),
        (1.4, 64, 0.95),
        (1.0, 1, 1.0),
        (1.3, 200, 0.9),
    ],
)
def test_codes_that_race_all_at_once_are_those_of_candidates_alone(way, dtype):
    rows, codes = 500, 2_048
    noise = torch.Generator().manual_seed(8)
    scores = (torch.randn(rows, codes, generator=noise) * 3).to(dtype)
    line, groups = torch.full((rows,), derive_line_key(4)), torch.arange(3)
    keys = derive_frame_keys(line, torch.arange(rows), groups)
    every = draw_frame_noise(line, torch.arange(rows), groups, codes)
    rules, bounds = rules_of(rows, *way), SamplingBounds(256, any_top_p=way[2] < 1)
    expected = sample_codes(scores, keys[2], rules, bounds)
    made = sample_codes_dense(scores, every[2], rules, bounds)
    if dtype is torch.float32:
        assert torch.equal(made, expected)
    else:  # a share that ends amid equal scores may take in more of them
        assert (made == expected).float().mean() > (0.98 if way[2] < 1 else 0.999)


def test_the_likeliest_code_is_taken_where_it_is_asked_for_whichever_way_codes_race():
    scores = torch.randn(6, 512, generator=torch.Generator().manual_seed(2))
    rules = replace(rules_of(6, 1.0, 50, 1.0), greedy=torch.tensor([0, 1, 0, 1, 1, 0]))
    line = torch.full((6,), derive_line_key(4))
    keys = derive_frame_keys(line, torch.arange(6), torch.arange(1))
    every = draw_frame_noise(line, torch.arange(6), torch.arange(1), 512)
    made = sample_codes_dense(scores, every[0], rules, SamplingBounds(any_greedy=True))
    assert torch.equal(made, sample_codes(scores, keys[0], rules, SamplingBounds(any_greedy=True)))
    likeliest = scores.argmax(dim=1)
    assert (made == likeliest)[[1, 3, 4]].all()


def test_noise_has_the_mean_and_spread_of_gumbels():
    noise = gumbel_noise(keys_of(5, 4_000), torch.arange(256).expand(4_000, -1))
    assert torch.isfinite(noise).all()
    assert abs(noise.mean().item() - 0.5772) < 0.01
    assert abs(noise.std().item() - 1.2825) < 0.01


@pytest.mark.parametrize("of", ["frames", "codes", "groups", "lines"])
def test_noise_of_neighbours_is_unrelated(of):
    every = torch.arange(200).expand(500, -1)
    first = gumbel_noise(keys_of(7, 500), every)
    second = {
        "frames": lambda: gumbel_noise(keys_of(7, 501)[1:], every),
        "codes": lambda: gumbel_noise(keys_of(7, 500), every + 1),
        "groups": lambda: gumbel_noise(keys_of(7, 500, group=1), every),
        "lines": lambda: gumbel_noise(keys_of(8, 500), every),
    }[of]()
    pair = torch.stack([first.flatten(), second.flatten()])
    assert abs(torch.corrcoef(pair)[0, 1].item()) < 0.015  # 5 standard deviations


def test_noise_is_that_of_its_line_in_any_row():
    keys = derive_frame_keys(
        torch.tensor([derive_line_key(1), derive_line_key(2), derive_line_key(1)]),
        torch.tensor([4, 4, 4]),
        torch.arange(3),
    )
    assert torch.equal(keys[:, 0], keys[:, 2])
    assert not torch.equal(keys[:, 0], keys[:, 1])
    alone = derive_frame_keys(
        torch.tensor([derive_line_key(1)]), torch.tensor([4]), torch.arange(3)
    )
    assert torch.equal(keys[:, :1], alone)


@given(st.integers(-(2**70), 2**70))
def test_any_integer_is_a_seed(seed):
    assert -(2**63) <= derive_line_key(seed) < 2**63


def test_a_seed_keeps_its_meaning():
    """Takes are kept by seed: these numbers may not change."""
    keys = derive_frame_keys(torch.tensor([derive_line_key(7)]), torch.tensor([3]), torch.arange(2))
    noise = gumbel_noise(keys[1], torch.tensor([[0, 1, 2047]]))
    assert derive_line_key(7) == 3_207_296_026_000_306_913
    assert keys.flatten().tolist() == [4_379_166_316_526_188_738, 3_955_939_237_941_909_151]
    assert torch.allclose(noise, torch.tensor([[1.011377, -0.109968, -0.847257]]), atol=1e-5)
