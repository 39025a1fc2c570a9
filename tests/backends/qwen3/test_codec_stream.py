"""Joined chunks are the whole line, whatever their size."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_speakers import loaded_package

from studio.audio.clip import Samples
from studio.backends.qwen3.codec import CodecStream, count_lookback_frames

pytestmark = pytest.mark.models

SAMPLES_PER_FRAME = 1_920
WITHIN = 1e-4
FRAMES = 180  # more than two attention windows


@pytest.fixture(scope="module")
def decoder():
    return loaded_package().model.speech_tokenizer.model.decoder


@pytest.fixture(scope="module")
def codes() -> torch.Tensor:
    return torch.randint(0, 2_048, (FRAMES, 16), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def whole(decoder, codes) -> Samples:
    with torch.inference_mode():
        return decoder(codes.T[None])[0, 0].numpy()


@pytest.mark.parametrize("chunk_frames", [3, 16, 75])
def test_joined_chunks_equal_the_whole(decoder, codes, whole, chunk_frames):
    stream = CodecStream(decoder)
    chunks = [stream.decode(chunk) for chunk in codes.split(chunk_frames)]
    assert [len(chunk) for chunk in chunks[:-1]] == [chunk_frames * SAMPLES_PER_FRAME] * (
        len(chunks) - 1
    )
    assert np.abs(np.concatenate(chunks) - whole).max() < WITHIN


@pytest.mark.parametrize("skipped", [1, 5, 100])
def test_a_sample_before_the_line_is_heard_and_trimmed_by_exact_count(
    decoder, codes, whole, skipped
):
    stream = CodecStream(decoder)
    stream.skip(codes[:skipped])
    line = np.concatenate([stream.decode(chunk) for chunk in codes[skipped:].split(16)])
    assert len(line) == (FRAMES - skipped) * SAMPLES_PER_FRAME
    assert np.abs(line - whole[skipped * SAMPLES_PER_FRAME :]).max() < WITHIN


def test_the_packages_shorter_context_is_another_sound(decoder, codes, whole):
    with torch.inference_mode():
        theirs = decoder.chunked_decode(codes.T[None], chunk_size=16, left_context_size=25)
    assert np.abs(theirs[0, 0].numpy() - whole).max() > 100 * WITHIN


def test_no_frame_less_would_do(decoder, codes, whole, monkeypatch):
    too_few = count_lookback_frames(decoder) - 1
    monkeypatch.setattr("studio.backends.qwen3.codec.count_lookback_frames", lambda _: too_few)
    stream = CodecStream(decoder)
    stream.skip(codes[:100])
    line = np.concatenate([stream.decode(chunk) for chunk in codes[100:].split(16)])
    assert np.abs(line - whole[100 * SAMPLES_PER_FRAME :]).max() > WITHIN / 10


def test_two_lines_at_once_share_nothing(decoder, codes, whole):
    one, other = CodecStream(decoder), CodecStream(decoder)
    backwards = codes.flip(0)
    heard = []
    for chunk, noise in zip(codes.split(16), backwards.split(16), strict=True):
        heard.append(one.decode(chunk))
        other.decode(noise)
    assert np.abs(np.concatenate(heard) - whole).max() < WITHIN
