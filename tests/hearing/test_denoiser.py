"""Noise is taken out of recordings by sherpa-onnx, with a small model in the form of GTCRN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from voice_like import voice_like

from studio.audio.analysis import measure_levels
from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.errors import ModelUnavailable
from studio.hearing.listeners import Denoiser
from studio.hearing.model_catalogue import HEARING_MODELS, HearingModel

pytest.importorskip("sherpa_onnx")

from gtcrn_model import METADATA, build_gtcrn, write_gtcrn


@pytest.fixture
def denoiser(tmp_path: Path) -> Denoiser:
    return loaded(write_gtcrn(tmp_path / "model"))


def loaded(model: HearingModel) -> Denoiser:
    found = Denoiser(model)
    found.load(lambda _: None)
    return found


def in_hiss(clip: Clip) -> Clip:
    hiss = np.random.default_rng(4).normal(size=len(clip)) * 0.01
    return Clip((clip.samples + hiss).astype(np.float32), clip.rate_hz)


@pytest.mark.parametrize("rate_hz", [STUDIO_RATE_HZ, 16_000, 44_100])
def test_the_noise_goes_and_the_speech_stays(denoiser: Denoiser, rate_hz: int) -> None:
    noisy = in_hiss(voice_like(3.0, rate_hz=rate_hz))
    clean = denoiser.denoise(noisy)
    assert (len(clean), clean.rate_hz) == (len(noisy), rate_hz)
    before, after = measure_levels(noisy), measure_levels(clean)
    assert after.noise_db < before.noise_db - 15
    assert after.speech_db == pytest.approx(before.speech_db, abs=2.5)


def test_speech_stays_where_it_was(denoiser: Denoiser) -> None:
    voice = voice_like(2.0)
    clean = denoiser.denoise(in_hiss(voice))
    shifts = range(-240, 241, 8)
    likeness = [float(np.dot(voice.samples, np.roll(clean.samples, one))) for one in shifts]
    assert abs(shifts[int(np.argmax(likeness))]) <= 8  # a third of a millisecond


def test_a_moment_and_nothing_are_denoised(denoiser: Denoiser) -> None:
    for samples in (0, 1, 100):
        clip = Clip(np.zeros(samples, dtype=np.float32))
        assert len(denoiser.denoise(clip)) == samples


def test_a_model_that_isnt_there_or_is_another_one_is_refused(tmp_path: Path) -> None:
    model = write_gtcrn(tmp_path / "gone")
    (tmp_path / "gone" / "gtcrn.onnx").unlink()
    with pytest.raises(ModelUnavailable, match="not loaded"):
        Denoiser(model).denoise(voice_like(1.0))
    with pytest.raises(ModelUnavailable):
        loaded(model)
    other = build_gtcrn(metadata={**METADATA, "model_type": "another"})
    with pytest.raises(ModelUnavailable, match="small denoiser"):
        loaded(write_gtcrn(tmp_path / "other", other))
    with pytest.raises(ModelUnavailable):
        loaded(write_gtcrn(tmp_path / "broken", b"no model"))


def test_the_catalogue_names_the_file_and_its_licence() -> None:
    gtcrn = HEARING_MODELS["gtcrn"]
    [source] = gtcrn.sources
    assert source.source == "csukuangfj/speech-enhancement-models"
    assert source.needs == ("gtcrn_simple.onnx",)
    assert (gtcrn.code_licence, gtcrn.size_bytes) == ("MIT", 535_638)
