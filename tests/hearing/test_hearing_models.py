"""The models that tell voices apart and take noise out: loaded when needed, unloaded when idle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from voice_like import voice_like

from studio.audio.clip import Clip
from studio.engine.model_manager import EvictionPolicy, ModelState
from studio.errors import Cancelled
from studio.hearing.hearing_models import HearingModels
from studio.hearing.model_catalogue import HearingModel

pytest.importorskip("sherpa_onnx")

from gtcrn_model import write_gtcrn
from voiceprint_model import build_embedding_model, write_voiceprints

VOICE = voice_like(2.0)
USES: Mapping[str, Callable[[HearingModels], object]] = {
    "small": lambda found: found.embed(VOICE),
    "small-denoiser": lambda found: found.denoise(VOICE),
}


@pytest.fixture
def catalogue(tmp_path: Path) -> dict[str, HearingModel]:
    models = (write_voiceprints(tmp_path / "voices"), write_gtcrn(tmp_path / "noise"))
    return {one.name: one for one in models}


@pytest.mark.parametrize("name", USES)
def test_each_is_loaded_when_it_is_needed_and_unloaded_when_idle(catalogue, name) -> None:
    changed = threading.Event()
    policy = EvictionPolicy(idle_timeout_s=0.1, check_interval_s=0.05)
    found = HearingModels(policy, catalogue=catalogue, notify=lambda _: changed.set())
    assert not found.models.list_statuses()
    for _ in range(2):
        assert USES[name](found) is not None
        while found.models.get_status(name).state is not ModelState.UNLOADED:
            assert changed.wait(60)
            changed.clear()
    assert [one.counters.loads for one in found.models.list_statuses()] == [2]
    found.close()


def test_without_models_nothing_is_told_apart_or_denoised(tmp_path: Path) -> None:
    found = HearingModels(catalogue={})
    assert not found.denoises
    assert found.embed(VOICE) is None
    found.close()
    gone = write_voiceprints(tmp_path / "voices")
    (tmp_path / "voices" / "voices.onnx").unlink()
    found = HearingModels(catalogue={gone.name: gone})
    assert found.embed(VOICE) is None, "and nothing is fetched for it"
    found.close()


def test_a_broken_model_is_tried_once_until_another_comes(tmp_path: Path, caplog) -> None:
    model = write_voiceprints(tmp_path / "voices", b"no model")
    found = HearingModels(catalogue={model.name: model})
    for _ in range(3):
        assert found.embed(VOICE) is None
    assert caplog.text.count("voices aren't compared by their embeddings") == 1
    (tmp_path / "voices" / "voices.onnx").write_bytes(build_embedding_model())
    assert found.embed(VOICE) is None
    found.downloads.start(model.name)
    while found.embed(VOICE) is None:
        pass
    found.close()


def test_whoever_comes_late_is_told(catalogue) -> None:
    found = HearingModels(catalogue=catalogue)
    assert found.embed(VOICE) is not None
    found.close()
    assert found.embed(Clip.silence(1.0)) is None
    with pytest.raises(Cancelled):
        found.denoise(VOICE)
