"""The codec's step never asks the host: nothing is read, nothing moves, no shape is a value's."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from codec_memory import Living
from no_host_sync import NoReading
from qwen3_speakers import loaded_package, use_one_core

from studio.backends.qwen3.codec import CodecDecoder, WaveDecoder
from studio.backends.qwen3.packed_codec import PackedWaveDecoder, can_pack

pytestmark = pytest.mark.models

SHAPES = [(1, 1), (1, 16), (5, 8)]  # rows and frames
MARGIN = 1e-5


@pytest.fixture(scope="module")
def decoder():
    use_one_core()
    return loaded_package().model.speech_tokenizer.model.decoder


@pytest.fixture(scope="module", params=[WaveDecoder, PackedWaveDecoder])
def step(decoder, request) -> CodecDecoder:
    """As for graphics cards, and as for an x86 CPU."""
    if request.param is PackedWaveDecoder and not can_pack(decoder.device):
        pytest.skip("torch has no oneDNN here, or not at its speed")
    return CodecDecoder(decoder, waves=request.param)


def codes_of(rows: int, frames: int, seed: int = 1) -> torch.Tensor:
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2_048, (rows, frames, 16), generator=chance)


@pytest.mark.parametrize(("rows", "frames"), SHAPES)
def test_a_chunk_reads_no_value_and_moves_no_tensor(step, rows, frames):
    codes, state = codes_of(rows, frames), step.new_state(rows)
    with torch.inference_mode(), NoReading() as mode:
        made = step(codes, state)
    assert made.shape == (rows, frames * step.samples_per_frame)
    assert mode.operations > 100


@pytest.mark.parametrize(("rows", "frames"), SHAPES)
def test_a_chunk_needs_no_values_at_all(decoder, rows, frames):
    """On a device that has shapes only, whatever asked for a value would fail."""
    elsewhere = CodecDecoder(copy.deepcopy(decoder).to("meta"))
    codes = torch.zeros(rows, frames, 16, dtype=torch.int64, device="meta")
    with torch.inference_mode():
        made = elsewhere(codes, elsewhere.new_state(rows))
    assert made.shape == (rows, frames * elsewhere.samples_per_frame)


def test_a_chunk_is_one_graph(step):
    """Traced without a break, the traced step makes the same sound and state."""
    plain, traced = step.new_state(2), step.new_state(2)
    torch._dynamo.reset()
    compiled = torch.compile(step, backend="eager", fullgraph=True)
    with torch.no_grad():
        for seed in range(3):
            codes = codes_of(2, 4, seed)
            assert torch.equal(compiled(codes, traced), step(codes, plain))
    assert torch.equal(traced, plain)
    assert plain.any()


def test_a_row_is_the_same_in_any_company(step):
    alone, among = step.new_state(1), step.new_state(5)
    with torch.inference_mode():
        for seed in range(12):
            codes = codes_of(5, 8, seed)
            together, single = step(codes, among)[2], step(codes[2:3], alone)[0]
            assert (single - together).abs().max() < MARGIN
            # Without AVX-512 a lone row's products are added in another order: 4e-7 on an EPYC.
            if isinstance(step._waves, PackedWaveDecoder) and torch.cpu._is_avx512_supported():
                assert torch.equal(single, together)
    assert torch.allclose(alone[0], among[2], rtol=MARGIN, atol=10 * MARGIN)


def test_a_state_put_aside_goes_on_where_it_was(step):
    state, other = step.new_state(1), step.new_state(1)
    with torch.inference_mode():
        step(codes_of(1, 80), state)
        aside = state.clone()
        expected = step(codes_of(1, 3, 2), state)
        step(codes_of(1, 90, 3), other)
        other.copy_(aside)
        assert torch.equal(step(codes_of(1, 3, 2), other), expected)


def test_a_fresh_state_is_a_line_that_has_not_begun(step, decoder):
    codes = codes_of(1, 5)
    with torch.inference_mode():
        expected = decoder(codes.transpose(1, 2))[:, 0]
        assert (step(codes, step.new_state(1)) - expected).abs().max() < MARGIN


def test_what_lives_at_once_grows_with_the_frames(step):
    with torch.inference_mode():
        few, many = (Living.most_bytes(step, rows=rows, frames=8) for rows in (2, 8))
    assert 2.5 * few < many < 4.5 * few
