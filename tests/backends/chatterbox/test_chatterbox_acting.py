"""A line acted for a speaker of the library, on the real package with a small checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from chatterbox_checkpoint import (
    checkpoint,
    one_thread,
    sample_clip,
    small_architecture,
    voice_of,
)

from studio.backends.options import BackendOptions
from studio.backends.registry import create
from studio.services.studio import Studio, StudioOptions

pytestmark = pytest.mark.models
pytest.importorskip("torch", reason="the model packages are not installed")
pytest.importorskip("chatterbox", reason="the model packages are not installed")


async def test_a_line_is_acted_in_the_voice_of_each_mood(tmp_path_factory, tmp_path: Path) -> None:
    folder = checkpoint("chatterbox", tmp_path_factory)
    options = BackendOptions(device="cpu", chatterbox_model=str(folder))
    said = sample_clip(300, 0.8)
    soundfile.write(tmp_path / "said.wav", said.samples, said.rate_hz)
    with (
        small_architecture("chatterbox"),
        one_thread(),
        Studio.open(
            StudioOptions(tmp_path / "workspace", "chatterbox"),
            lambda name: create(name, options),
        ) as studio,
    ):
        ida = studio.speakers.add("Ida", sample=voice_of("Ida", 200).sample.clip)
        studio.speakers.add_mood("Ida", "low", voice_of("Ida", 90).sample.clip)
        made = [
            await studio.booth.act(ida.speaker_id, tmp_path / "said.wav", "chatterbox", mood)
            for mood in (None, "low")
        ]
        assert studio.engine.conditioning.computed == 2
    for clip in made:
        assert clip.duration_s == pytest.approx(said.duration_s, abs=0.04)
    assert np.abs(made[0].samples - made[1].samples).max() > 0.01
