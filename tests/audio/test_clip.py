import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.audio.clip import from_pcm16, join_chunks, split_blocks, to_pcm16


def test_every_16_bit_value_comes_back():
    values = np.arange(-32_768, 32_768, dtype=np.int16)
    assert np.array_equal(to_pcm16(from_pcm16(values)), values)


@given(st.lists(st.floats(-4, 4, width=32)))
def test_values_are_rounded_and_held_at_the_ends(values):
    pcm = to_pcm16(np.array(values, dtype=np.float32))
    wanted = np.clip(np.array(values, dtype=np.float64), -1, 32_767 / 32_768) * 32_768
    assert pcm.dtype == np.int16
    assert np.abs(pcm - wanted).max(initial=0) <= 0.5


@pytest.mark.parametrize(("value", "pcm"), [(1.0, 32_767), (-1.0, -32_768), (2.0, 32_767)])
def test_full_scale_does_not_wrap_round(value, pcm):
    assert to_pcm16(np.array([value], dtype=np.float32))[0] == pcm


def test_chunks_of_one_array_are_joined_without_a_copy() -> None:
    whole = np.arange(10, dtype=np.float32)
    blocks = list(split_blocks(whole, 4))
    assert np.shares_memory(join_chunks(blocks), whole)
    assert join_chunks(blocks).tolist() == list(range(10))
    assert np.shares_memory(join_chunks(blocks[1:]), whole)
    for fewer in (blocks[2:], blocks[:1]):  # they would hold all of it
        assert not np.shares_memory(join_chunks(fewer), whole)


@pytest.mark.parametrize(
    "pick",
    [
        lambda whole: [whole[5:], whole[:5]],
        lambda whole: [whole[:5], whole[:5]],
        lambda whole: [whole[:5], whole[6:]],
        lambda whole: [whole[:4:2], whole[2:]],
        lambda whole: [whole[:5]],
        lambda whole: [whole[5:]],
        lambda whole: [whole[3:6], whole[6:9]],
        lambda whole: [whole[3:6], whole[6:6], whole[6:]],
        lambda whole: [whole[10:], whole],
        lambda whole: [whole[:5], whole[5:].copy()],
        lambda whole: [whole.copy(), whole[:0]],
        lambda whole: [whole[::-1]],
    ],
)
def test_any_chunks_are_joined(pick) -> None:
    chunks = pick(np.arange(10, dtype=np.float32))
    joined = join_chunks(chunks)
    assert joined.dtype == np.float32
    assert joined.tolist() == [one for chunk in chunks for one in chunk.tolist()]
