"""The judge of growth lets linear work pass and refuses quadratic work."""

import pytest
from growth import assert_linear


def test_linear_work_passes():
    assert_linear(lambda size: sum(range(size)), 400_000)


def test_quadratic_work_is_refused():
    with pytest.raises(AssertionError, match=r"1,000 took .* a quarter of it"):
        assert_linear(lambda size: sum(range(size * size)), 1_000)
