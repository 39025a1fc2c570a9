"""Lines in flight at once never hear each other, and the package's own `generate` would."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scenes import OpenStudio, finish

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_checkpoint import FEW_GROUPS
from qwen3_speakers import (
    loaded_backend,
    loaded_package,
    made_backend,
    recording,
    request_for,
    speaker,
    whole,
)

from studio.audio.clip import Samples, write_wav
from studio.dialog.model import Dialog, Speech
from studio.services.studio import RenderOptions

pytestmark = pytest.mark.models

CAST = {
    name: speaker(name, pitch_hz=pitch_hz)
    for name, pitch_hz in {"Ida": 120, "Bruno": 90, "Mia": 190, "Tom": 150}.items()
}
LINES = tuple((name, f"No. {number}, {name}.", number) for number in range(6) for name in CAST)


def spoken(line: tuple[str, str, int]) -> Samples:
    name, text, seed = line
    backend = loaded_backend()
    return whole(backend.speak(request_for(backend, CAST[name], text, seed=seed)))


@cache
def alone(line: tuple[str, str, int]) -> Samples:
    return spoken(line)


@pytest.mark.parametrize("lines", [8, pytest.param(24, marks=pytest.mark.campaign)])
def test_lines_of_4_speakers_8_in_flight_are_as_if_alone(lines):
    order = list(LINES[:lines])
    expected = [alone(line) for line in order]
    random.Random(3).shuffle(order)
    start = threading.Barrier(8)

    def made(position: int) -> Samples:
        if position < 8:
            start.wait(timeout=60)
        return spoken(order[position])

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(made, range(lines)))
    for line, samples in zip(order, together, strict=True):
        assert np.array_equal(samples, alone(line)), line
    assert len({samples.tobytes() for samples in expected}) == lines


@pytest.mark.parametrize(
    ("lines", "together"), [(5, 4), pytest.param(24, 8, marks=pytest.mark.campaign)]
)
def test_the_engine_gives_the_same_takes_for_1_and_many_in_flight(
    open_studio: OpenStudio, tmp_path: Path, lines: int, together: int
):
    voices = {name: tmp_path / f"{name}.wav" for name in CAST}
    for name, path in voices.items():
        write_wav(path, CAST[name].sample.clip)
    dialog = Dialog(tuple(Speech(name, text, seed=seed) for name, text, seed in LINES[:lines]))
    takes = []
    for bound in (1, together):
        studio = open_studio(made_backend(), max_concurrency=bound)
        job = studio.render(dialog, RenderOptions(voices=voices))
        finish(job)
        assert job.summarize().max_in_flight == bound
        takes.append([job.segment_path(record).read_bytes() for record in job.records])
    assert takes[0] == takes[1]
    assert studio.engine.conditioning.n_computed == 0  # the first studio left it on disk


def generate_together(speak: Callable[[int], Samples], lines: int) -> list[Samples]:
    start = threading.Barrier(lines)

    def one(number: int) -> Samples:
        start.wait(timeout=60)
        return speak(number)

    with ThreadPoolExecutor(lines) as pool:
        return list(pool.map(one, range(lines)))


def test_the_packages_own_generate_is_not_isolated():
    """The same seeds, set as the package has it, give other audio when lines are in flight."""
    package = loaded_package(groups=FEW_GROUPS)
    audio = (recording().samples, 24_000)
    prompt = package.create_voice_clone_prompt(audio, x_vector_only_mode=True)

    def speak(number: int) -> Samples:
        torch.manual_seed(number)
        [wave], _ = package.generate_voice_clone(
            f"Line {number}.", "english", voice_clone_prompt=prompt, max_new_tokens=12
        )
        return wave

    sequential = [speak(number) for number in range(4)]
    assert np.array_equal(sequential[0], speak(0))
    together = generate_together(speak, 4)
    assert not all(map(np.array_equal, sequential, together))
