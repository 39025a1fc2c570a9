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
from studio.backends.batching.codec_worker import CodecFrames
from studio.backends.batching.sequence import SequenceEnd, TtsSequence
from studio.backends.chatterbox.flow import RequestNoise, UndecodedTokens
from studio.backends.chatterbox.s3gen import Vocoder
from studio.backends.chatterbox.s3gen_worker import S3GenWorker
from studio.backends.chatterbox.t3_slots import T3Request, T3SamplingParams
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


def unsounded(desk: Desk, number: int, **fields: object) -> UndecodedTokens:
    given = {"cancelled": lambda: False} | fields
    return UndecodedTokens(
        desk.model.sound_tokens(tokens_of(number)),
        desk.voices[number % 3],
        RequestNoise(number),
        **given,
    )


@pytest.fixture(scope="module")
def alone(desk) -> list[Samples]:
    return [desk.decode([unsounded(desk, number)])[0] for number in range(len(LENGTHS))]


def assert_same(samples: Samples, expected: Samples) -> None:
    assert samples.shape == expected.shape
    assert np.abs(samples - expected).max() < WITHIN


@pytest.mark.parametrize("numbers", [(0, 1, 2, 3, 4), (2, 1), (4, 4, 0)])
def test_lines_sounded_together_are_as_if_alone(desk, alone, numbers):
    together = desk.decode([unsounded(desk, number) for number in numbers])
    for number, samples in zip(numbers, together, strict=True):
        assert_same(samples, alone[number])
        assert np.abs(samples).max() > 100 * WITHIN


@pytest.mark.parametrize("numbers", [(2,), (0, 1, 4), (2,) * 9], ids=["alone", "three", "nine"])
def test_lines_padded_to_the_shape_of_a_graph_are_as_if_alone(desk, alone, numbers):
    """A card pads lines, and their number up to eight; nine are decoded as they are."""
    decoder = desk.model.graphed_decoder()
    lines = [unsounded(desk, number) for number in numbers]
    for _ in range(2 if len(numbers) < 3 else 1):  # what the last batch left behind isn't heard
        waves = desk.model.decode_waves(lines, decoder)
        lines = [unsounded(desk, number) for number in numbers]
    decoder.close()
    for number, wave in zip(numbers, waves, strict=True):
        assert_same(desk.model.watermark(wave), alone[number])


def test_padding_would_be_heard_without_the_mask(desk, alone, monkeypatch):
    """The check above sees what it should: an encoder that reads padding gives another sound."""
    from studio.backends.chatterbox import flow

    monkeypatch.setattr(
        flow, "_padding_mask", lambda lengths, longest: torch.ones(len(lengths), 1, longest).bool()
    )
    together = desk.decode([unsounded(desk, 2), unsounded(desk, 1)])
    assert np.abs(together[0] - alone[2]).max() > WITHIN


def test_padding_would_be_heard_in_the_wave_too(desk, alone, monkeypatch):
    """A vocoder whose layers read each other's padding gives another sound at a line's end."""
    from studio.backends.chatterbox import s3gen

    monkeypatch.setattr(s3gen._SilenceMask, "apply", lambda _, x: x)
    together = desk.decode([unsounded(desk, 2), unsounded(desk, 1)])
    assert np.abs(together[0] - alone[2]).max() > WITHIN


def test_waves_are_those_of_the_packages_vocoder():
    """Of full-size layers, whose receptive fields are longer; each line against the package's."""
    from chatterbox.models.s3gen.f0_predictor import ConvRNNF0Predictor
    from chatterbox.models.s3gen.hifigan import HiFTGenerator

    with torch.random.fork_rng():
        torch.manual_seed(2)
        generator = HiFTGenerator(
            sampling_rate=24_000,
            upsample_rates=[8, 5, 3],
            upsample_kernel_sizes=[16, 11, 7],
            source_resblock_kernel_sizes=[7, 7, 11],
            source_resblock_dilation_sizes=[[1, 3, 5]] * 3,
            f0_predictor=ConvRNNF0Predictor(),
        ).eval()
        mels = [torch.randn(80, frames) for frames in (8, 40, 23)]
    with torch.inference_mode():
        # Hardly heard with fresh weights; louder, nothing goes unheard.
        generator.conv_pre.parametrizations.weight.original0.mul_(30)
        made = Vocoder(generator).waves(mels, [RequestNoise(number) for number in range(3)])
        for number, mel in enumerate(mels):
            with RequestNoise(number).route():
                wave, _ = generator.inference(mel[None])
            assert made[number].shape == wave[0].shape
            assert (made[number] - wave[0]).abs().max() < WITHIN
            assert wave.abs().max() > 100 * WITHIN


def test_one_that_nobody_wants_goes_on_for_the_others(desk, alone):
    lines = [unsounded(desk, 0, cancelled=lambda: True), unsounded(desk, 1)]
    assert_same(desk.decode(lines)[1], alone[1])
    with pytest.raises(Cancelled):
        desk.decode(lines[:1])


class Heard:
    """A line of given tokens, and what came of it."""

    def __init__(self, desk: Desk, number: int, tokens: torch.Tensor | None = None) -> None:
        self.given: list[Samples] = []
        self.error: Exception | None = None
        self.ended = threading.Event()
        task = T3Request(
            text=torch.zeros(1, 1),
            voice=desk.voices[number % 3],
            exaggeration=0.5,
            sampling=T3SamplingParams(),
            seed=number,
            max_frames=40,
        )
        codes = (tokens_of(number) if tokens is None else tokens)[:, None]
        self.frames = CodecFrames(TtsSequence(task, self._take), codes)

    def _take(self, given: Samples | SequenceEnd) -> None:
        if isinstance(given, SequenceEnd):
            self.error = given.error
            self.ended.set()
        else:
            self.given.append(given)


@pytest.mark.parametrize("markers", [0, 2])
def test_the_thread_gives_each_line_its_own_sound(desk, alone, markers):
    thread = S3GenWorker(desk.model, title="Test", max_batch=3, watermark_threads=markers)
    lines = [Heard(desk, number) for number in range(len(LENGTHS))]
    for line in lines:
        thread.submit(line.frames)
    thread.close()
    for number, line in enumerate(lines):
        assert line.ended.is_set()
        assert line.error is None
        assert_same(np.concatenate(line.given), alone[number])


def test_a_line_whose_watermark_fails_is_not_heard_and_fails_alone(desk, alone, monkeypatch):
    marked, failing = desk.model.watermark, iter([True])

    def fail_once(wave: Samples) -> Samples:
        if next(failing, False):
            raise RuntimeError("no mark")
        return marked(wave)

    monkeypatch.setattr(desk.model, "watermark", fail_once)
    thread = S3GenWorker(desk.model, title="Test", max_batch=2, watermark_threads=1)
    lines = [Heard(desk, number) for number in (1, 3)]
    for line in lines:
        thread.submit(line.frames)
    thread.close()
    assert not lines[0].given
    assert "no mark" in str(lines[0].error)
    assert_same(np.concatenate(lines[1].given), alone[3])


def test_a_line_without_a_sound_fails_alone(desk, alone):
    thread = S3GenWorker(desk.model, title="Test", max_batch=8)
    silent, spoken = Heard(desk, 1, torch.tensor([6_562] * 30)), Heard(desk, 1)
    for line in (silent, spoken):
        thread.submit(line.frames)
    thread.close()
    assert isinstance(silent.error, SpeechFailed)
    assert_same(np.concatenate(spoken.given), alone[1])


def test_those_of_about_the_same_length_go_together(desk):
    thread = S3GenWorker(desk.model, title="Test", max_batch=2)
    thread.close()
    short, long = torch.zeros(5, dtype=torch.long), torch.zeros(900, dtype=torch.long)
    waiting = deque(Heard(desk, 0, tokens).frames for tokens in (short, long, short, short, long))
    batches = []
    while waiting:
        batches.append([len(frames.codes) for frames in thread._batch(waiting)])
    assert batches == [[5, 5], [900, 900], [5]]
