"""Which language is spoken, by a small model in the form of Whisper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from voice_like import voice_like

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.errors import Cancelled, ModelUnavailable
from studio.hearing.hearing_models import HearingModels

pytest.importorskip("sherpa_onnx")

from whisper_model import METADATA, write_whisper

HISS = Clip(
    np.diff(np.random.default_rng(3).normal(size=2 * STUDIO_RATE_HZ + 1) * 0.1).astype(np.float32)
)


def test_the_language_is_named(tmp_path: Path) -> None:
    model = write_whisper(tmp_path)
    recognisers = HearingModels(catalogue={model.name: model})
    low = voice_like(3.0, pitch_hz=100)
    assert recognisers.identify_language(low) == "en"
    assert recognisers.identify_language(HISS) == "de"
    long = Clip(np.tile(low.samples, 15))
    assert recognisers.identify_language(long) == "en"
    recognisers.close()
    with pytest.raises(Cancelled):
        recognisers.identify_language(low)


def test_without_whisper_nobody_can_tell() -> None:
    recognisers = HearingModels(catalogue={})
    assert recognisers.identify_language(HISS) is None
    recognisers.close()


def test_a_whisper_of_one_language_is_refused(tmp_path: Path) -> None:
    model = write_whisper(tmp_path, {**METADATA, "is_multilingual": 0})
    recognisers = HearingModels(catalogue={model.name: model})
    with pytest.raises(ModelUnavailable, match="Whisper of the tests"):
        recognisers.identify_language(HISS)
    recognisers.close()
