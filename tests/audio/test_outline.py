import numpy as np
import pytest

from studio.audio.clip import Clip
from studio.audio.outline import outline


def test_each_column_has_its_highest_level():
    samples = np.zeros(1_000, np.float32)
    samples[[5, 250, 999]] = [0.5, -1.0, 0.001]
    assert outline(Clip(samples), 4) == [50, 100, 0, 1]


@pytest.mark.parametrize("samples", [0, 1, 3, 599, 600, 601, 100_003])
def test_every_sample_belongs_to_a_column(samples):
    levels = outline(Clip(np.ones(samples, np.float32)), 600)
    assert levels == [100] * min(600, samples)
