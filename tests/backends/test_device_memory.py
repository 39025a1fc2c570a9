"""Models that the machine's memory can't hold are refused before they are read."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from studio.backends.chatterbox.variants import ENGLISH
from studio.backends.device import check_room
from studio.backends.options import BackendOptions
from studio.backends.qwen3.checkpoint import NEEDS as CHECKPOINT_NEEDS
from studio.backends.registry import create
from studio.errors import ModelUnavailable

GB = 1_000_000_000


@pytest.fixture(autouse=True)
def four_gb_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free = SimpleNamespace(available=4 * GB)
    monkeypatch.setattr("psutil.virtual_memory", lambda: free)


@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_what_does_not_fit_is_refused_with_both_numbers(device: str) -> None:
    with pytest.raises(ModelUnavailable, match=r"needs about 5\.5 GB of memory, and 4\.0 GB"):
        check_room("Qwen3-TTS", 5 * GB, device)


def test_what_fits_is_let_through() -> None:
    check_room("Qwen3-TTS", int(3.6 * GB), "cpu")


def test_a_card_has_memory_of_its_own() -> None:
    check_room("Qwen3-TTS", 50 * GB, "cuda")


def write_weights(path: Path, numbers: int) -> None:
    """Weights of zeros, as a file that takes no room on the disk."""
    entry = {"dtype": "F32", "shape": [numbers], "data_offsets": [0, 4 * numbers]}
    header = json.dumps({"weight": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(path, 8 + len(header) + 4 * numbers)


@pytest.mark.models
@pytest.mark.parametrize("name", ["qwen3", "chatterbox"])
def test_a_model_too_large_is_refused_before_it_is_read(name: str, tmp_path: Path) -> None:
    options = BackendOptions(str(tmp_path), qwen3_model=str(tmp_path), device="cpu")
    backend = create(name, options)
    if backend.unavailable() is not None:
        pytest.skip("the model packages are not installed")
    needs = CHECKPOINT_NEEDS if name.startswith("qwen3") else ENGLISH.needs
    for need in needs:
        path = tmp_path / need.partition("|")[0].replace("*", "")
        path = path / "model.safetensors" if need.endswith("/*") else path
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    if name.startswith("qwen3"):
        config = {"tts_model_type": "base", "talker_config": {"codec_language_id": {}}}
        (tmp_path / "config.json").write_text(json.dumps(config))
    for path in tmp_path.rglob("*.safetensors"):
        write_weights(path, GB)
    with pytest.raises(ModelUnavailable, match=r"GB of memory, and 4\.0 GB are free"):
        backend.load(lambda _: None)
