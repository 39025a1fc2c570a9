"""Lines decoded together, in windows or chunk by chunk, sound as if decoded whole and alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen3_speakers import loaded_package, use_one_core

from studio.audio.clip import Samples
from studio.backends.batched.codec import BatchedCodec, CodedLine
from studio.backends.qwen3.codec import CodecStream

pytestmark = pytest.mark.models

SAMPLES_PER_FRAME = 1_920
WITHIN = 1e-4
FRAMES = 180  # more than two attention windows


@cache
def decoder():
    use_one_core()
    return loaded_package().model.speech_tokenizer.model.decoder


@cache
def spoken(seed: int) -> tuple[torch.Tensor, Samples]:
    """Codes of a long line, and what the package makes of it in one piece."""
    codes = torch.randint(0, 2_048, (FRAMES, 16), generator=torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        return codes, decoder()(codes.T[None])[0, 0].numpy()


def assert_same(samples: Samples, expected: Samples) -> None:
    assert samples.dtype == np.float32
    assert samples.shape == expected.shape
    assert not len(samples) or np.abs(samples - expected).max() < WITHIN


def line_of(seed: int, skipped: int, frames: int) -> tuple[CodedLine, Samples]:
    """The first frames of a long line, some of them as the sample before it."""
    codes, whole = spoken(seed)
    sample = codes[:skipped] if skipped else None
    end = skipped + frames
    expected = whole[skipped * SAMPLES_PER_FRAME : end * SAMPLES_PER_FRAME]
    return CodedLine(codes[skipped:end], sample), expected


LINES = st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 7, 60]), st.integers(0, 120))


@settings(max_examples=12, deadline=None)
@given(
    lines=st.lists(LINES, min_size=1, max_size=5),
    window_frames=st.integers(8, 90),
    convolved_at_once=st.sampled_from([1, 100, 400]),
)
def test_lines_decoded_together_are_as_if_alone(lines, window_frames, convolved_at_once):
    codec = BatchedCodec(
        decoder(), window_frames=window_frames, convolved_at_once=convolved_at_once
    )
    made = [line_of(*line) for line in lines]
    decoded = codec.decode([line for line, _ in made])
    for samples, (_, expected) in zip(decoded, made, strict=True):
        assert_same(samples, expected)


@settings(max_examples=12, deadline=None)
@given(data=st.data(), skipped=st.sampled_from([0, 1, 7, 60]))
def test_a_line_decoded_while_it_is_made_is_the_same(data, skipped):
    line, expected = line_of(0, skipped, FRAMES - skipped)
    stream = CodecStream(decoder())
    if line.sample is not None:
        stream.skip(line.sample)
    chunks, place = [stream.decode(line.codes[:1])], 1
    while place < len(line.codes):
        size = data.draw(st.integers(1, 80))
        chunks.append(stream.decode(line.codes[place : place + size]))
        place += size
    assert len(chunks[0]) == SAMPLES_PER_FRAME
    assert_same(np.concatenate(chunks), expected)


def test_the_default_windows_are_shorter_than_a_long_line():
    lines = [line_of(seed, 10, 165) for seed in range(3)]
    for samples, (_, expected) in zip(
        BatchedCodec(decoder()).decode([line for line, _ in lines]), lines, strict=True
    ):
        assert_same(samples, expected)


def test_nothing_to_decode():
    codec = BatchedCodec(decoder())
    assert codec.decode([]) == []
    assert [len(samples) for samples in codec.decode([CodedLine(torch.zeros(0, 16).long())])] == [0]
