"""Lines decoded together, in rounds or chunk by chunk, sound as if decoded whole and alone."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen3_speakers import loaded_package, use_one_core

from benchmarks.qwen3_engines import build_timed_lines
from studio.audio.clip import Samples
from studio.backends.qwen3.batched_codec import BatchedCodec, CodecInput
from studio.backends.qwen3.codec_batch import CodecGraphBuffers, RowBlock, pack_rounds
from studio.backends.qwen3.qwen3_memory import CODEC_FRAMES, CODEC_ROW_FRAMES

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


def line_of(seed: int, skipped: int, frames: int) -> tuple[CodecInput, Samples]:
    """The first frames of a long line, some of them as the sample before it."""
    codes, whole = spoken(seed)
    sample = codes[:skipped] if skipped else None
    end = skipped + frames
    expected = whole[skipped * SAMPLES_PER_FRAME : end * SAMPLES_PER_FRAME]
    return CodecInput(codes[skipped:end], sample), expected


LINES = st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 7, 60]), st.integers(0, 120))


@settings(max_examples=8)
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


@settings(max_examples=8)
@given(data=st.data(), skipped=st.sampled_from([0, 1, 7, 60]))
def test_a_line_decoded_while_it_is_made_is_the_same(data, skipped):
    line, expected = line_of(0, skipped, FRAMES - skipped)
    codec = BatchedCodec(decoder())
    stream = codec.stream(line.sample)
    chunks, place = codec.decode_chunks([(stream, line.codes[:1])]), 1
    while place < len(line.codes):
        size = data.draw(st.integers(1, 80))
        chunks += codec.decode_chunks([(stream, line.codes[place : place + size])])
        place += size
    assert len(chunks[0]) == SAMPLES_PER_FRAME
    assert_same(np.concatenate(chunks), expected)


def counted_blocks(monkeypatch, rows: CodecGraphBuffers) -> list[RowBlock]:
    """What is decoded in these rows from now on."""
    blocks: list[RowBlock] = []
    run = rows.run
    monkeypatch.setattr(rows, "run", lambda block: blocks.append(block) or run(block))
    return blocks


SIZES_OF_CHUNKS = st.lists(st.integers(0, 40), min_size=2, max_size=3)


@settings(max_examples=8)
@given(rounds_of=st.lists(SIZES_OF_CHUNKS, min_size=1, max_size=4))
def test_lines_heard_together_are_as_if_alone(rounds_of):
    """Two or three lines of any lengths, chunks of any sizes, none among them."""
    codec = BatchedCodec(decoder())
    made = [line_of(seed, 7 * seed, 120) for seed in range(3)]
    streams = [codec.stream(line.sample) for line, _ in made]
    heard, places = [[np.zeros(0, np.float32)] for _ in made], [0, 0, 0]
    for sizes in rounds_of:
        ends = [min(120, place + size) for place, size in zip(places, sizes, strict=False)]
        chunks = [(streams[n], made[n][0].codes[places[n] : end]) for n, end in enumerate(ends)]
        for n, samples in enumerate(codec.decode_chunks(chunks)):
            heard[n].append(samples)
            places[n] = ends[n]
    for pieces, (_, expected), place in zip(heard, made, places, strict=True):
        assert_same(np.concatenate(pieces), expected[: place * SAMPLES_PER_FRAME])


def test_two_lines_are_heard_in_one_go(monkeypatch):
    codec = BatchedCodec(decoder())
    blocks = counted_blocks(monkeypatch, codec._streamed._rows)
    streams = [codec.stream() for _ in range(2)]
    codes = spoken(0)[0]
    codec.decode_chunks([(streams[0], codes[:16]), (streams[1], codes[:16])])
    assert blocks == [RowBlock(0, 2, 16)]
    blocks.clear()
    codec.decode_chunks([(streams[0], codes[16:32]), (streams[1], codes[16:36])])
    assert blocks == [RowBlock(0, 2, 16), RowBlock(0, 1, 4)]


def test_a_chunk_for_which_there_is_no_memory_leaves_the_line_as_it_was(monkeypatch):
    codec = BatchedCodec(decoder())
    line, expected = line_of(0, 7, 20)
    stream = codec.stream(line.sample)
    [first] = codec.decode_chunks([(stream, line.codes[:3])])

    def full(self, block):
        if block.frames == 1:
            raise torch.OutOfMemoryError("full")
        return run(self, block)

    run = CodecGraphBuffers.run
    with monkeypatch.context() as fault:
        fault.setattr(CodecGraphBuffers, "run", full)
        with pytest.raises(torch.OutOfMemoryError):
            codec.decode_chunks([(stream, line.codes[3:20])])
    [rest] = codec.decode_chunks([(stream, line.codes[3:20])])
    assert_same(np.concatenate([first, rest]), expected)


def test_chunks_of_heard_lines_never_meet_the_rows_of_finished_ones():
    """Between two rounds, and even while a round's samples are read."""
    codec = BatchedCodec(decoder(), convolved_at_once=24)
    heard = [line_of(0, 60, 48), line_of(1, 0, 48)]
    streams = [codec.stream(line.sample) for line, _ in heard]
    chunks: list[list[Samples]] = [[], []]
    finished = [line_of(seed, 7, 10 + 30 * seed) for seed in range(3)] * 3
    decoded = {}
    done = codec.decode_each([line for line, _ in finished])
    for place in range(0, 48, 3):
        for line, samples in itertools.islice(done, 1):
            decoded[line] = samples
        parts = [(stream, heard[n][0].codes[place : place + 3]) for n, stream in enumerate(streams)]
        for made, samples in zip(chunks, codec.decode_chunks(parts), strict=True):
            made.append(samples)
    decoded |= dict(done)
    for number, (_, expected) in enumerate(finished):
        assert_same(decoded[number], expected)
    for made, (_, expected) in zip(chunks, heard, strict=True):
        assert_same(np.concatenate(made), expected)


def test_each_line_is_given_out_when_it_is_done(monkeypatch):
    codec = BatchedCodec(decoder(), convolved_at_once=16)
    blocks = counted_blocks(monkeypatch, codec._buffers)
    lines = [line_of(seed, 0, frames)[0] for seed, frames in enumerate((16, 64, 8))]
    done = {n: len(blocks) for n, _ in codec.decode_each(lines)}
    assert done == {0: 2, 1: 8, 2: 3}


def test_a_sample_is_heard_once():
    codec = BatchedCodec(decoder())
    line, expected = line_of(0, 60, 20)
    for samples in codec.decode([line] * 5):
        assert_same(samples, expected)
    [chunk] = codec.decode_chunks([(codec.stream(line.sample), line.codes)])
    assert_same(chunk, expected)
    assert codec.computed == 1
    for seed in range(16):
        codec.stream(torch.full((3, 16), seed))
    codec.stream(line.sample)
    assert codec.computed == 18


def test_nothing_to_decode():
    codec = BatchedCodec(decoder())
    empty = CodecInput(torch.zeros(0, 16).long())
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
    for one in pack_rounds(lengths, sizes, frames):
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
    lengths = [line.frames for line in build_timed_lines(lines)]
    sizes = [size for size in SIZES if size <= CODEC_FRAMES["cuda"][1] // CODEC_ROW_FRAMES]
    way = pack_rounds(lengths, sizes, CODEC_ROW_FRAMES)
    share = 1 - sum(lengths) / sum(one.rows * one.frames for one in way)
    print(f"{lines} lines, {sum(lengths)} frames: {len(way)} rounds, {share:.1%} padded")
    assert share < most


def test_rounds_beside_a_listener_are_small_and_make_the_same(monkeypatch):
    codec = BatchedCodec(decoder(), convolved_at_once=64)
    lines = [CodecInput(spoken(seed % 3)[0][: 5 + 9 * seed]) for seed in range(6)]
    whole = codec.decode(lines)
    blocks = counted_blocks(monkeypatch, codec._buffers)
    made = dict(codec.decode_each(lines, most_rows=2))
    assert {block.rows for block in blocks} <= {1, 2}
    assert all(np.abs(made[n] - whole[n]).max() < WITHIN for n in range(6))
