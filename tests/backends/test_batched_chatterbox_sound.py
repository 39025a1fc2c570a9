"""S3Gen for lines of several voices and lengths at once gives what it gives each alone."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np
import pytest

pytest.importorskip("chatterbox", reason="the neural voices' packages are not installed")

import torch
from chatterbox_checkpoint import checkpoint, one_thread
from chatterbox_lines import ENGLISH, TURBO, Desk

from studio.audio.clip import Samples
from studio.backends.batched.line import End, Line
from studio.backends.batched.sound_thread import Frames
from studio.backends.batched_chatterbox.sound_thread import S3GenThread
from studio.backends.batched_chatterbox.token_line import TokenSampling, TokenTask
from studio.backends.chatterbox.noise import Noise
from studio.backends.chatterbox.sound import Unsounded
from studio.errors import Cancelled, SpeechFailed

pytestmark = pytest.mark.models

WITHIN = 1e-4
LENGTHS = (11, 30, 4, 26, 30)
PATIENCE_S = 120


@pytest.fixture(scope="module", params=[TURBO, ENGLISH])
def desk(request, tmp_path_factory):
    with one_thread():
        yield Desk(request.param, checkpoint(request.param, tmp_path_factory))


def tokens_of(number: int) -> torch.Tensor:
    chance = torch.Generator().manual_seed(number)
    return torch.randint(0, 6_561, (LENGTHS[number],), generator=chance)


def unsounded(desk: Desk, number: int, **fields: object) -> Unsounded:
    given = {"cancelled": lambda: False} | fields
    return Unsounded(
        desk.model.sounds_of(tokens_of(number)), desk.voices[number % 3], Noise(number), **given
    )


@pytest.fixture(scope="module")
def alone(desk) -> list[Samples]:
    return [desk.model.sounded([unsounded(desk, number)])[0] for number in range(len(LENGTHS))]


def assert_same(samples: Samples, expected: Samples) -> None:
    assert samples.shape == expected.shape
    assert np.abs(samples - expected).max() < WITHIN


@pytest.mark.parametrize("numbers", [(0, 1, 2, 3, 4), (2, 1), (4, 4, 0)])
def test_lines_sounded_together_are_as_if_alone(desk, alone, numbers):
    together = desk.model.sounded([unsounded(desk, number) for number in numbers])
    for number, samples in zip(numbers, together, strict=True):
        assert_same(samples, alone[number])
        assert np.abs(samples).max() > 100 * WITHIN


def test_padding_would_be_heard_without_the_mask(desk, alone, monkeypatch):
    """The check above sees what it should: an encoder that reads padding gives another sound."""
    from studio.backends.chatterbox import sound

    monkeypatch.setattr(
        sound, "_mask", lambda lengths, longest: torch.ones(len(lengths), 1, longest).bool()
    )
    together = desk.model.sounded([unsounded(desk, 2), unsounded(desk, 1)])
    assert np.abs(together[0] - alone[2]).max() > WITHIN


def test_one_that_nobody_wants_goes_on_for_the_others(desk, alone):
    lines = [unsounded(desk, 0, cancelled=lambda: True), unsounded(desk, 1)]
    assert_same(desk.model.sounded(lines)[1], alone[1])
    with pytest.raises(Cancelled):
        desk.model.sounded(lines[:1])


class Heard:
    """A line of given tokens, and what came of it."""

    def __init__(self, desk: Desk, number: int, tokens: torch.Tensor | None = None) -> None:
        self.given: list[Samples] = []
        self.error: Exception | None = None
        self.ended = threading.Event()
        task = TokenTask(
            torch.zeros(1, 1), desk.voices[number % 3], 0.5, TokenSampling(), number, 40, 40
        )
        codes = (tokens_of(number) if tokens is None else tokens)[:, None]
        self.frames = Frames(Line(task, self._take), codes)

    def _take(self, given: Samples | End) -> None:
        if isinstance(given, End):
            self.error = given.error
            self.ended.set()
        else:
            self.given.append(given)


def test_the_thread_gives_each_line_its_own_sound(desk, alone):
    thread = S3GenThread(desk.model, title="Test", together=3)
    lines = [Heard(desk, number) for number in range(len(LENGTHS))]
    for line in lines:
        thread.submit(line.frames)
    thread.close()
    for number, line in enumerate(lines):
        assert line.ended.is_set()
        assert line.error is None
        assert_same(np.concatenate(line.given), alone[number])


def test_a_line_without_a_sound_fails_alone(desk, alone):
    thread = S3GenThread(desk.model, title="Test", together=8)
    silent, spoken = Heard(desk, 1, torch.tensor([6_562] * 30)), Heard(desk, 1)
    for line in (silent, spoken):
        thread.submit(line.frames)
    thread.close()
    assert isinstance(silent.error, SpeechFailed)
    assert_same(np.concatenate(spoken.given), alone[1])


def test_those_of_about_the_same_length_go_together(desk):
    thread = S3GenThread(desk.model, title="Test", together=2)
    thread.close()
    short, long = torch.zeros(5, dtype=torch.long), torch.zeros(900, dtype=torch.long)
    waiting = deque(Heard(desk, 0, tokens).frames for tokens in (short, long, short, short, long))
    batches = []
    while waiting:
        batches.append([len(frames.codes) for frames in thread._batch(waiting)])
    assert batches == [[5, 5], [900, 900], [5]]
