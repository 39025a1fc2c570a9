"""Speaker embeddings by sherpa-onnx, with a small model in the form of the catalogue's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spoken_lines import VoiceReader

from studio.audio.clip import Clip
from studio.backends.espeak.backend import DraftBackend
from studio.errors import ModelUnavailable
from studio.hearing.listeners import VoiceEmbedder, pack_voiceprint
from studio.hearing.model_catalogue import HEARING_MODELS, HearingModel
from studio.hearing.take_check import TakeCheck
from studio.quality.checks import ExpectedSpeech
from studio.quality.voice_drift import build_baseline, find_outliers

pytest.importorskip("sherpa_onnx")

from voiceprint_model import write_voiceprints


def loaded(model: HearingModel) -> VoiceEmbedder:
    found = VoiceEmbedder(model)
    found.load(lambda _: None)
    return found


@pytest.fixture(scope="module")
def reader():
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    try:
        yield VoiceReader(backend)
    finally:
        backend.unload()


def test_a_line_of_another_voice_is_marked_by_its_embedding(reader, tmp_path: Path) -> None:
    embedder = loaded(write_voiceprints(tmp_path / "model"))
    check = TakeCheck(lambda text, language: None, embedder.embed)
    lines = reader.lines("m3", "en", 12)
    metrics = [check(line.clip, ExpectedSpeech(line.text)).metrics for line in lines]
    assert all(one.voiceprint.startswith("small:") for one in metrics)
    assert len({len(one.voiceprint) for one in metrics}) == 1
    usual = build_baseline(metrics, "Maud")
    marked = [issue for one in metrics for issue in find_outliers(one, usual)]
    assert [issue.kind for issue in marked if issue.kind == "timbre"] == []
    text = lines[0].text
    other = check(reader.read(text, "en", "Annie"), ExpectedSpeech(text)).metrics
    found = {issue.kind: issue.message for issue in find_outliers(other, usual)}
    assert found["timbre"].startswith("It sounds like another voice than Maud’s other lines: like")


def test_a_model_that_isnt_there_or_is_broken_is_named(tmp_path: Path) -> None:
    model = write_voiceprints(tmp_path / "gone")
    (tmp_path / "gone" / "voices.onnx").unlink()
    with pytest.raises(ModelUnavailable, match="not loaded"):
        VoiceEmbedder(model).embed(Clip.silence(2.0))
    with pytest.raises(ModelUnavailable):
        loaded(model)
    with pytest.raises(ModelUnavailable, match="A small model"):
        loaded(write_voiceprints(tmp_path / "broken", b"no model"))


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.1, 2.0])
def test_a_clip_may_be_short_or_silent(tmp_path: Path, seconds: float) -> None:
    embedder = loaded(write_voiceprints(tmp_path / "model"))
    voiceprint = embedder.embed(Clip.silence(seconds))
    assert voiceprint is None or voiceprint.startswith("small:")


@pytest.mark.parametrize("embedding", [[], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_what_has_no_direction_is_no_voiceprint(embedding) -> None:
    assert pack_voiceprint("small", np.array(embedding)) is None


def test_the_catalogue_names_the_file_and_its_licence() -> None:
    model = HEARING_MODELS["campplus"]
    [source] = model.sources
    assert source.source == "csukuangfj/speaker-embedding-models"
    assert source.needs == ("3dspeaker_speech_campplus_sv_en_voxceleb_16k.onnx",)
    assert (model.code_licence, model.size_bytes) == ("Apache-2.0", 29_596_978)
