"""Speaker embeddings by sherpa-onnx, with a small model in the form of the catalogue's.

It takes the mean of each band, so that it tells voices apart as far as their colour does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spoken_lines import VoiceReader

from studio.audio.clip import Clip
from studio.backends.espeak.backend import DraftBackend
from studio.backends.sherpa.catalogue import HubSource
from studio.errors import ModelUnavailable
from studio.hearing.take_check import TakeCheck
from studio.hearing.voice_embedding import (
    EMBEDDING_MODELS,
    EmbeddingModel,
    VoiceEmbedder,
    pack_voiceprint,
)
from studio.quality.checks import ExpectedSpeech
from studio.quality.voice_drift import build_baseline, find_outliers

pytest.importorskip("sherpa_onnx")

from sherpa_models import Graph

METADATA = {
    "framework": "3d-speaker",
    "language": "English",
    "url": "",
    "comment": "",
    "sample_rate": 16_000,
    "output_dim": 80,
    "normalize_samples": 1,
    "feature_normalize_type": "",
}


def build_embedding_model() -> bytes:
    """The mean of each of 80 bands over time, less the mean of all: [N, 80]."""
    graph = Graph(3)
    bands = graph.add("ReduceMean", "x", axes=[1], keepdims=0)
    middle = graph.add("ReduceMean", bands, axes=[1], keepdims=1)
    graph.add("Sub", bands, middle, outputs="embedding")
    return graph.finish({"x": (np.float32, ["N", "T", 80])}, ["embedding"], METADATA)


def write_model(folder: Path, data: bytes | None = None) -> EmbeddingModel:
    folder.mkdir(parents=True)
    (folder / "voices.onnx").write_bytes(build_embedding_model() if data is None else data)
    source = HubSource(str(folder), {"model": "voices.onnx"})
    return EmbeddingModel("small", "A small model", "For tests.", "MIT", "MIT", 1_000, (source,))


@pytest.fixture(scope="module")
def reader():
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    try:
        yield VoiceReader(backend)
    finally:
        backend.unload()


def test_a_line_of_another_voice_is_marked_by_its_embedding(reader, tmp_path: Path) -> None:
    embedder = VoiceEmbedder(write_model(tmp_path / "model"))
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


def test_without_its_weights_nothing_is_embedded(tmp_path: Path) -> None:
    model = write_model(tmp_path / "gone")
    (tmp_path / "gone" / "voices.onnx").unlink()
    embedder = VoiceEmbedder(model)
    assert embedder.to_fetch() is not None
    assert embedder.embed(Clip.silence(2.0)) is None


def test_a_broken_model_is_named_once_and_no_take_fails(tmp_path: Path, caplog) -> None:
    embedder = VoiceEmbedder(write_model(tmp_path / "broken", b"no model"))
    assert embedder.embed(Clip.silence(2.0)) is None
    assert embedder.embed(Clip.silence(2.0)) is None
    assert caplog.text.count("voices aren't compared by their embeddings") == 1
    with pytest.raises(ModelUnavailable, match="A small model"):
        embedder.load(lambda _: None)


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.1, 2.0])
def test_a_clip_may_be_short_or_silent(tmp_path: Path, seconds: float) -> None:
    embedder = VoiceEmbedder(write_model(tmp_path / "model"))
    voiceprint = embedder.embed(Clip.silence(seconds))
    assert voiceprint is None or voiceprint.startswith("small:")


@pytest.mark.parametrize("embedding", [[], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_what_has_no_direction_is_no_voiceprint(embedding) -> None:
    assert pack_voiceprint("small", np.array(embedding)) is None


def test_the_catalogue_names_the_file_and_its_licence() -> None:
    model = EMBEDDING_MODELS["campplus"]
    [source] = model.sources
    assert source.model == "csukuangfj/speaker-embedding-models"
    assert dict(source.files) == {"model": "3dspeaker_speech_campplus_sv_en_voxceleb_16k.onnx"}
    assert (model.code_licence, model.size_bytes) == ("Apache-2.0", 29_600_000)
