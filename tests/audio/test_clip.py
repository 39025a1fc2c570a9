import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.audio.clip import from_pcm16, to_pcm16


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
