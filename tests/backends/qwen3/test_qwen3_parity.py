"""The same codes and the same audio as the package's own `generate`, at temperature 0."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_checkpoint import FEW_GROUPS, GROUPS
from qwen3_reference import CASES, FRAMES, spoken_twice
from qwen3_speakers import loaded_model, loaded_package

pytestmark = pytest.mark.models

LONGER = "The kettle is on, and the door is open to the garden."


@pytest.mark.parametrize(("text", "ends"), [(LONGER, False), ("Yes.", True)])
@pytest.mark.parametrize("case", CASES)
def test_greedy_codes_and_audio_are_those_of_the_package(case, text, ends):
    kind = CASES[case][0]
    whole_frames = case == "full reference" and not ends  # the others' are of fewer groups
    chosen = {"ends": ends, "groups": GROUPS if whole_frames else FEW_GROUPS}
    pair = spoken_twice(case, text, loaded_package(kind, **chosen), loaded_model(kind, **chosen))
    audio, frames = pair.our_audio, len(pair.our_codes)
    assert frames == FRAMES or ends
    assert torch.equal(pair.our_codes, pair.their_codes)
    assert len(audio) == frames * 1_920
    assert np.abs(audio - pair.their_audio[-len(audio) :]).max() < 1e-4
    assert abs(len(pair.their_audio) - len(audio)) <= 1  # it cuts the sample off by proportion
