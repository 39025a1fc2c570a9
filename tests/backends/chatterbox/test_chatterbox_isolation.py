"""Lines in flight together never hear each other; from the package's own threads they do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import soundfile
from chatterbox_checkpoint import (
    BY_NAME,
    checkpoint,
    one_thread,
    opened,
    request,
    small_architecture,
    voice_of,
    whole,
)
from scenes import OpenStudio, finish

from studio.audio.clip import Samples
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.dialog.model import Dialog, Speech
from studio.services.studio import RenderOptions
from studio.voices.speaker import Voice

pytestmark = pytest.mark.models
torch = pytest.importorskip("torch", reason="the model packages are not installed")
pytest.importorskip("chatterbox", reason="the model packages are not installed")

SPEAKERS = {"Ida": None, "Tom": 100, "Ann": 170, "Ben": 240}  # pitch in Hz; Ida has no sample


@pytest.fixture
def backend(request, tmp_path_factory) -> Iterator[ChatterboxBackend]:
    with opened(request.param, checkpoint(request.param, tmp_path_factory)) as backend:
        yield backend


def voice(speaker: str, variant: str) -> Voice:
    pitch_hz = SPEAKERS[speaker]
    return Voice(speaker) if pitch_hz is None else voice_of(speaker, pitch_hz, variant)


def samples_of(speakers: dict[str, float | None], variant: str, folder: Path) -> dict[str, Path]:
    paths = {name: folder / f"{name}.wav" for name, pitch in speakers.items() if pitch}
    for name, path in paths.items():
        clip = voice(name, variant).sample.clip
        soundfile.write(path, clip.samples, clip.rate_hz, subtype="FLOAT")
    return paths


def lines_of(count: int) -> list[Speech]:
    """Lines of several lengths, so that they end in another order than they begin."""
    return [
        Speech(list(SPEAKERS)[idx % 4], f"Line {chr(97 + idx)}{' on' * (idx % 3)}.", seed=idx)
        for idx in range(count)
    ]


@pytest.mark.parametrize(
    ("backend", "count"),
    [
        ("chatterbox", 5),
        ("chatterbox-multilingual", 5),
        ("chatterbox-turbo", 5),
        pytest.param("chatterbox", 24, marks=pytest.mark.campaign),
        pytest.param("chatterbox-multilingual", 24, marks=pytest.mark.campaign),
        pytest.param("chatterbox-turbo", 24, marks=pytest.mark.campaign),
    ],
    indirect=["backend"],
)
def test_each_line_sounds_as_it_does_alone(
    backend: ChatterboxBackend, count: int, open_studio: OpenStudio, tmp_path: Path
) -> None:
    lines = lines_of(count)
    in_flight = min(count - 1, 8)
    studio = open_studio(backend, max_concurrency=in_flight)
    voices = samples_of(SPEAKERS, backend.name, tmp_path)
    job = studio.render(Dialog(tuple(lines)), RenderOptions(voices=voices))
    studio.engine.focus(job, count // 2)
    finish(job)
    assert [record.message for record in job.records] == [None] * count
    assert job.summarize().max_in_flight == in_flight
    conditioning = {name: backend.condition(voice(name, backend.name)) for name in SPEAKERS}
    alone = [
        whole(backend.speak(request(line.text, conditioning[line.speaker], seed=line.seed)))
        for line in lines
    ]
    for record, expected in zip(job.records, alone, strict=True):
        heard, _ = soundfile.read(record.path, dtype="float32")
        np.testing.assert_allclose(heard, expected, atol=1e-4)
    for one, other in itertools.pairwise(alone):
        assert len(one) != len(other) or np.abs(one - other).max() > 0.01


def test_the_packages_own_generate_mixes_lines_up(tmp_path_factory, tmp_path: Path) -> None:
    """Why the backend has loops of its own: this is the same check on `generate` in threads."""
    from studio.backends.chatterbox.chatterbox_model import load_package

    folder = checkpoint("chatterbox", tmp_path_factory)
    with small_architecture("chatterbox"):
        package = load_package(BY_NAME["chatterbox"], folder, "cpu")
    voices = list(samples_of(SPEAKERS, "chatterbox", tmp_path).values())
    together = Barrier(len(voices))

    def speak(idx: int) -> Samples:
        torch.manual_seed(idx)
        return package.generate("Who is it?", audio_prompt_path=voices[idx])[0].numpy()

    def speak_at_once(idx: int) -> Samples | None:
        together.wait()
        try:
            return speak(idx)
        except (RuntimeError, IndexError):
            return None  # another line's tensors met this one's

    with one_thread():
        alone = [speak(idx) for idx in range(len(voices))]
        again = speak(0)
    assert np.array_equal(alone[0], again)
    with one_thread(), ThreadPoolExecutor(len(voices)) as threads:
        at_once = list(threads.map(speak_at_once, range(len(voices))))
    assert not all(
        mixed is not None and np.array_equal(mixed, own)
        for mixed, own in zip(at_once, alone, strict=True)
    )
