"""Speaker embeddings by sherpa-onnx, with a small model in the form of the catalogue's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soxr
from spoken_lines import VoiceReader

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.base import WeightFile, WeightSource
from studio.backends.espeak.backend import DraftBackend
from studio.errors import ModelUnavailable
from studio.hearing.listeners import VoiceEmbedder, pack_voiceprint
from studio.hearing.model_catalogue import HEARING_MODELS, HearingModel
from studio.hearing.voice_encoder import VoiceEncoder
from studio.quality.checks import ExpectedSpeech, check_take
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
    check = partial(check_take, embed=embedder.embed)
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


def write_encoder(folder: Path, seed: int = 4) -> HearingModel:
    """The catalogue's encoder that comes as a package, with weights of a seed."""
    folder.mkdir()
    weights = np.random.default_rng(seed).standard_normal(1_430_000).astype("<f4") * 0.05
    (folder / "pretrained.pt").write_bytes(bytes(3) + weights.tobytes())
    source = WeightSource(str(folder), ("pretrained.pt",), {"model": WeightFile("pretrained.pt")})
    return replace(HEARING_MODELS["ge2e"], sources=(source,))


def test_the_encoder_needs_no_other_package_and_hears_the_same_as_torch(reader, tmp_path) -> None:
    torch = pytest.importorskip("torch")
    librosa = pytest.importorskip("librosa")
    model = write_encoder(tmp_path / "model")
    data = (tmp_path / "model" / "pretrained.pt").read_bytes()
    lstm, linear = torch.nn.LSTM(40, 256, 3, batch_first=True), torch.nn.Linear(256, 256)
    at = 269_883
    for kind in ("weight_ih", "weight_hh"), ("bias_ih", "bias_hh"):
        for layer in range(3):
            for name in kind:
                held = getattr(lstm, f"{name}_l{layer}")
                held.data = torch.tensor(
                    np.frombuffer(data, "<f4", held.numel(), at).reshape(held.shape).copy()
                )
                at += 4 * held.numel()
    for held, place in ((linear.weight, 7_731), (linear.bias, 6_699)):
        held.data = torch.tensor(
            np.frombuffer(data, "<f4", held.numel(), place).reshape(held.shape).copy()
        )
    sound = reader.read("The children were hiding upstairs.", "en").samples
    low = soxr.resample(sound, STUDIO_RATE_HZ, 16_000)[8_000 : 8_000 + 25_440]
    mel = librosa.feature.melspectrogram(
        y=low * max(1.0, 10 ** (-30 / 20) / np.sqrt(np.mean(low**2))),
        sr=16_000, n_fft=400, hop_length=160, n_mels=40,
    )  # fmt: skip
    with torch.no_grad():
        _, (hidden, _) = lstm(torch.tensor(mel.T[None].astype(np.float32)))
        wanted = torch.relu(linear(hidden[-1]))[0].numpy()
    found = VoiceEncoder(tmp_path / "model" / "pretrained.pt").embed(low.astype(np.float32))
    assert found @ wanted / np.linalg.norm(wanted) > 0.999
    assert loaded(model).embed(Clip(sound)).startswith("ge2e:")
    assert loaded(model).embed(Clip.silence(2.0)) is None


def test_the_catalogue_names_the_file_and_its_licence() -> None:
    model = HEARING_MODELS["campplus"]
    [source] = model.sources
    assert source.source == "csukuangfj/speaker-embedding-models"
    assert source.needs == ("3dspeaker_speech_campplus_sv_en_voxceleb_16k.onnx",)
    assert (model.code_licence, model.size_bytes) == ("Apache-2.0", 29_596_978)
    [packed] = HEARING_MODELS["ge2e"].sources
    assert (packed.source, packed.needs) == ("resemble-ai/Resemblyzer@0.1.4", ("pretrained.pt",))
    assert HEARING_MODELS["ge2e"].size_bytes == 15_747_704
