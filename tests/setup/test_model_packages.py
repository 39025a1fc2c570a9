"""The pins of the models part, proved by importing what they pin."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest
from tiny_index import REPO

from studio.setup.requirements import read_parts

pytestmark = pytest.mark.models

_MODULES = (
    "torch",
    "torchaudio",
    "transformers",
    "chatterbox.tts",
    "chatterbox.mtl_tts",
    "chatterbox.tts_turbo",
    "chatterbox.vc",
    "qwen_tts",
    "faster_qwen3_tts",
)


@pytest.fixture(scope="module")
def parts():
    found = read_parts(REPO / "requirements.txt")
    absent = found["models"].missing()
    if absent:
        pytest.skip(f"the model packages are not installed: {', '.join(map(str, absent[:3]))} …")
    return found


def test_all_model_packages_import_together(parts):
    code = f"import importlib\nfor name in {_MODULES!r}: importlib.import_module(name)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_models_left_the_studios_packages_as_they_are(parts):
    assert parts["studio"].missing() == ()


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        ("faster-qwen3-tts", "huggingface-hub<2.0,>=1.5.0"),
        ("qwen-tts-hf", "accelerate==1.12.0"),
        ("torch", "setuptools<82"),
    ],
)
def test_what_holds_a_pin_back_still_does(parts, package, reason):
    assert reason in (metadata.requires(package) or ()), f"{reason} can move: see requirements.txt"
