"""Lines decoded together, in rounds or chunk by chunk, sound as if decoded whole and alone."""

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
from studio.backends.batched.codec_rounds import padded_share, rounds
from studio.backends.batched.memory import CODEC_FRAMES, CODEC_ROW_FRAMES, KEPT_SAMPLES
from studio.cli.bench_engines import timed_lines

pytestmark = pytest.mark.models

SAMPLES_PER_FRAME = 1_920
WITHIN = 1e-4
FRAMES = 180  # more than two attention windows
SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64)


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
    convolved_at_once=st.sampled_from([1, 24, 400]),
    graphs=st.booleans(),
)
def test_lines_decoded_together_are_as_if_alone(lines, convolved_at_once, graphs):
    codec = BatchedCodec(decoder(), convolved_at_once=convolved_at_once, graphs=graphs)
    made = [line_of(*line) for line in lines]
    decoded = codec.decode([line for line, _ in made])
    for samples, (_, expected) in zip(decoded, made, strict=True):
        assert_same(samples, expected)


@settings(max_examples=12, deadline=None)
@given(data=st.data(), skipped=st.sampled_from([0, 1, 7, 60]))
def test_a_line_decoded_while_it_is_made_is_the_same(data, skipped):
    line, expected = line_of(0, skipped, FRAMES - skipped)
    stream = BatchedCodec(decoder()).stream(line.sample)
    chunks, place = [stream.decode(line.codes[:1])], 1
    while place < len(line.codes):
        size = data.draw(st.integers(1, 80))
        chunks.append(stream.decode(line.codes[place : place + size]))
        place += size
    assert len(chunks[0]) == SAMPLES_PER_FRAME
    assert_same(np.concatenate(chunks), expected)


def test_two_lines_are_heard_in_turns_while_others_are_decoded_together():
    codec = BatchedCodec(decoder(), convolved_at_once=24)
    heard = [line_of(0, 60, 48), line_of(1, 0, 48)]
    streams = [codec.stream(line.sample) for line, _ in heard]
    chunks: list[list[Samples]] = [[], []]

    def between() -> None:
        for (line, _), stream, made in zip(heard, streams, chunks, strict=True):
            if 3 * len(made) < len(line.codes):
                made.append(stream.decode(line.codes[3 * len(made) : 3 * len(made) + 3]))

    finished = [line_of(seed, 7, 10 + 30 * seed) for seed in range(3)] * 3
    decoded = dict(codec.decoded([line for line, _ in finished], between=between))
    while 3 * len(chunks[0]) < 48:
        between()
    for number, (_, expected) in enumerate(finished):
        assert_same(decoded[number], expected)
    for made, (_, expected) in zip(chunks, heard, strict=True):
        assert_same(np.concatenate(made), expected)


def test_each_line_is_given_out_when_it_is_done():
    codec, rounds_made = BatchedCodec(decoder(), convolved_at_once=16), 0

    def count() -> None:
        nonlocal rounds_made
        rounds_made += 1

    lines = [line_of(seed, 0, frames)[0] for seed, frames in enumerate((16, 64, 8))]
    done = {n: rounds_made for n, _ in codec.decoded(lines, between=count)}
    assert done == {0: 2, 1: 8, 2: 3}


def test_a_sample_is_heard_once():
    codec = BatchedCodec(decoder())
    line, expected = line_of(0, 60, 20)
    for samples in codec.decode([line] * 5):
        assert_same(samples, expected)
    assert_same(codec.stream(line.sample).decode(line.codes), expected)
    assert codec.computed == 1
    for seed in range(KEPT_SAMPLES):
        codec.stream(torch.full((3, 16), seed))
    codec.stream(line.sample)
    assert codec.computed == KEPT_SAMPLES + 2


def test_nothing_to_decode():
    codec = BatchedCodec(decoder())
    empty = CodedLine(torch.zeros(0, 16).long())
    assert codec.decode([]) == []
    assert [len(samples) for samples in codec.decode([empty])] == [0]
    line, expected = line_of(0, 0, 3)
    decoded = codec.decode([empty, line])
    assert len(decoded[0]) == 0
    assert_same(decoded[1], expected)


@given(
    lengths=st.lists(st.integers(1, 200), max_size=30),
    sizes=st.sampled_from([(1,), (1, 2, 3), (5,), SIZES]),
    frames=st.integers(1, 16),
)
def test_rounds_hold_every_frame_once_and_a_lines_in_order(lengths, sizes, frames):
    found: list[list[int]] = [[] for _ in lengths]
    row_of: dict[int, int] = {}
    for one in rounds(lengths, sizes, frames):
        assert len(one.pieces) <= one.rows
        assert one.rows in sizes
        for row, piece in enumerate(one.pieces):
            assert 0 < piece.end - piece.start <= frames
            assert row_of.setdefault(piece.line, row) == row
            assert piece.last == (piece.end == lengths[piece.line])
            found[piece.line] += range(piece.start, piece.end)
    assert found == [list(range(length)) for length in lengths]


@pytest.mark.parametrize(("lines", "most"), [(200, 0.08), (64, 0.10), (20, 0.15), (5, 0.20)])
def test_little_of_what_is_decoded_is_padding(lines, most):
    """Lengths of the sample dialogs' lines, in the shapes that are captured on CUDA."""
    lengths = [line.frames for line in timed_lines(lines)]
    sizes = [size for size in SIZES if size <= CODEC_FRAMES["cuda"][1] // CODEC_ROW_FRAMES]
    way = rounds(lengths, sizes, CODEC_ROW_FRAMES)
    share = padded_share(lengths, way)
    print(f"{lines} lines, {sum(lengths)} frames: {len(way)} rounds, {share:.1%} padded")
    assert share < most


def test_rounds_beside_a_listener_are_small_and_make_the_same(monkeypatch):
    codec = BatchedCodec(decoder(), convolved_at_once=64)
    lines = [CodedLine(spoken(seed % 3)[0][: 5 + 9 * seed]) for seed in range(6)]
    whole = codec.decode(lines)
    blocks: list[int] = []
    run = codec._places.run
    monkeypatch.setattr(codec._places, "run", lambda block: blocks.append(block.rows) or run(block))
    made = dict(codec.decoded(lines, most_rows=2))
    assert set(blocks) <= {1, 2}
    assert all(np.abs(made[n] - whole[n]).max() < WITHIN for n in range(6))
