"""The codec's graphs on CUDA: replays are the plain step, beside the frames' graphs too."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from codec_memory import full_size_decoder
from qwen3_checkpoint import small_checkpoint
from runner_lines import LIVELY, admission, decoded, lines_of

from studio.backends.batching.cuda_graphs import synchronize
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.device import give_back, prepare
from studio.backends.qwen3.batched_codec import BatchedCodec, CodecInput
from studio.backends.qwen3.qwen3_memory import MAX_STREAMED_LINES, STREAM_CHUNK_FRAMES, codec_bytes
from studio.backends.qwen3.talker import TalkerRunner

pytestmark = [
    pytest.mark.models,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; there is none"),
]

CUDA = torch.device("cuda", 0)
FRAMES = 180
SAMPLES_PER_FRAME = 1_920
SAME = 1e-5
WITHIN = 1e-4


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """Full float32; cuDNN otherwise rounds to 10 bits before it multiplies."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    prepare("cuda")
    yield
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


@pytest.fixture(scope="module")
def package():
    from qwen_tts import Qwen3TTSModel

    return Qwen3TTSModel.from_pretrained(
        str(small_checkpoint("base")), dtype=torch.float32, device_map="cuda"
    )


@pytest.fixture(scope="module")
def decoder(package):
    return package.model.speech_tokenizer.model.decoder


def codes_of(seed: int, frames: int = FRAMES) -> torch.Tensor:
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2_048, (frames, 16), generator=chance).to(CUDA)


def whole(decoder, codes: torch.Tensor) -> np.ndarray:
    with torch.inference_mode():
        return decoder(codes.T[None])[0, 0].cpu().numpy()


def codec_of(decoder, at_once: int = 64, *, captures: bool = True) -> BatchedCodec:
    codec = BatchedCodec(decoder, convolved_at_once=at_once)
    for rows in (codec._buffers, codec._streamed._rows):
        rows._graphs._captures = captures
    codec.prepare()
    synchronize(CUDA)
    return codec


LINES = [(seed, 7 * (seed % 3), 5 + 13 * seed) for seed in range(12)]


def lines_on_cuda() -> list[CodecInput]:
    made = []
    for seed, skipped, frames in LINES:
        codes = codes_of(seed)
        made.append(
            CodecInput(codes[skipped : skipped + frames], codes[:skipped] if skipped else None)
        )
    return made


def heard_in_chunks(codec: BatchedCodec, line: CodecInput) -> np.ndarray:
    stream, sizes, start, made = codec.stream(line.sample), [1, 1, 2, 4, 8, 16, 31], 0, []
    while start < len(line.codes):
        size = sizes[min(len(made), len(sizes) - 1)]
        made += codec.decode_chunks([(stream, line.codes[start : start + size])])
        start += size
    return np.concatenate(made)


def test_every_shape_is_captured_and_none_more_is_met(decoder, caplog):
    codec = codec_of(decoder)
    prepared = codec.captured
    assert prepared == len(codec._sizes) + MAX_STREAMED_LINES * len(STREAM_CHUNK_FRAMES)
    with caplog.at_level(logging.WARNING):
        codec.decode(lines_on_cuda())
        for line in lines_on_cuda()[:3]:
            heard_in_chunks(codec, line)
    assert codec.captured == prepared
    assert not caplog.records
    codec.close()


def test_replays_are_the_plain_step_and_the_package(decoder):
    lines, made = lines_on_cuda(), {}
    for captures in (False, True):
        codec = codec_of(decoder, captures=captures)
        assert (codec.captured > 0) is captures
        made[captures] = [*codec.decode(lines), *(heard_in_chunks(codec, line) for line in lines)]
        codec.close()
    for plain, replayed in zip(made[False], made[True], strict=True):
        assert np.abs(plain - replayed).max() < SAME
    expected = [
        whole(decoder, codes_of(seed))[skipped * SAMPLES_PER_FRAME :][: frames * SAMPLES_PER_FRAME]
        for seed, skipped, frames in LINES
    ]
    for samples, reference in zip(made[True], expected * 2, strict=True):
        assert np.abs(samples - reference).max() < WITHIN


def test_frames_and_sound_replayed_side_by_side_are_as_if_alone(package, decoder):
    """Graphs of two threads on two streams at the same time must share no memory."""
    core = TalkerRunner(package.model, SlotLayout(8, 256, 64))
    core.warm([8])
    codec = codec_of(decoder)
    lines, said = lines_on_cuda(), lines_of("base")

    def frames() -> list[torch.Tensor]:
        with torch.cuda.stream(torch.cuda.Stream()):
            core.reset()
            asked = [admission(core, n, line, LIVELY, seed=n) for n, line in enumerate(said)]
            return [codes.cpu() for codes in decoded(core, 8, asked).values()]

    def sounds() -> list[np.ndarray]:
        with torch.cuda.stream(torch.cuda.Stream()):
            return codec.decode(lines)

    alone = frames(), sounds()
    with ThreadPoolExecutor(2) as pool:
        for _ in range(10):
            both = pool.submit(frames), pool.submit(sounds)
            assert all(map(torch.equal, both[0].result(), alone[0]))
            # A transposed convolution may add in any order.
            pairs = zip(both[1].result(), alone[1], strict=True)
            assert max(np.abs(one - other).max() for one, other in pairs) < SAME
    codec.close()
    core.close()


def test_two_threads_capture_in_turns(package, decoder, caplog):
    core = TalkerRunner(package.model, SlotLayout(8, 256, 64))
    started = threading.Barrier(2)

    def frames() -> int:
        with torch.cuda.stream(torch.cuda.Stream()):
            started.wait(60)
            core.warm(core.buckets)
            return core._graphs.captured

    def sounds() -> BatchedCodec:
        with torch.cuda.stream(torch.cuda.Stream()):
            started.wait(60)
            return codec_of(decoder)

    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(2) as pool:
        one, other = pool.submit(frames), pool.submit(sounds)
        assert one.result() >= len(core.buckets)
        codec = other.result()
    assert not caplog.records
    line = lines_on_cuda()[3]
    seed, skipped, frames_of = LINES[3]
    expected = whole(decoder, codes_of(seed))[skipped * SAMPLES_PER_FRAME :]
    made = codec.decode([line])[0]
    assert np.abs(made - expected[: frames_of * SAMPLES_PER_FRAME]).max() < WITHIN
    codec.close()
    core.close()


FAILING = """
import logging, torch
from studio.backends.batching.cuda_graphs import CudaGraphRunner
from studio.backends.device import give_back, prepare

logging.basicConfig(format="LOGGED %(message)s")
device, number = torch.device("cuda", 0), torch.zeros(1, device="cuda")

def waits(shape):
    number.add_(1)
    if shape == 2:
        number.item()  # which no capture bears

before = torch.cuda.current_stream()
failing = CudaGraphRunner(waits, device, product="samples")
for shape in (1, 1, 1, 2, 2, 2, 1):
    failing.run(shape)
assert torch.cuda.current_stream() == before
assert failing.captured == 1, "the shape captured before is gone"
working = CudaGraphRunner(lambda shape: number.add_(shape), device)
for _ in range(4):
    working.run(10)
assert working.captured == 1
assert working._pool != failing._pool
assert torch.rand(1, device="cuda").item() < 1, "the source of chance is still captured"
give_back("cuda")
held = torch.cuda.memory_reserved()
large = torch.empty(2**30, dtype=torch.uint8, device="cuda")
del large
give_back("cuda")
assert torch.cuda.memory_reserved() <= held, "the allocator releases nothing any more"
print(number.item())
"""


def test_a_capture_that_fails_falls_back_and_others_go_on():
    """In a process of its own: what it would spoil is the process's."""
    done = subprocess.run(
        [sys.executable, "-c", FAILING], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.stdout.strip() == "47.0", done.stderr
    told = "LOGGED no graph can be captured here; samples are made step by step"
    assert done.stderr.count("LOGGED") == done.stderr.count(told) == 1


def test_closing_gives_graphs_and_pools_back(decoder):
    give_back("cuda")
    before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    for _ in range(2):
        codec = codec_of(decoder, 256)
        codec.decode(lines_on_cuda())
        held_bytes = torch.cuda.memory_reserved()
        codec.close()
        del codec
        give_back("cuda")
        assert torch.cuda.memory_reserved() < held_bytes
        assert torch.cuda.memory_allocated() - before[0] < 5_000_000
        assert torch.cuda.memory_reserved() - before[1] < 60_000_000


def test_the_full_size_codec_stays_within_what_was_reckoned():
    prepare("cuda", tf32=True)  # the default, and what takes more
    decoder = full_size_decoder("cuda")
    give_back("cuda")
    before_bytes = torch.cuda.memory_reserved()
    codec = codec_of(decoder, 512)
    lines = [CodecInput(codes_of(seed, 20 + seed), codes_of(seed % 4, 60)) for seed in range(80)]
    codec.decode(lines)
    taken_bytes = torch.cuda.memory_reserved() - before_bytes
    print(f"{taken_bytes / 1e9:.2f} GB reserved, {codec_bytes(512, 'cuda') / 1e9:.2f} GB reckoned")
    assert taken_bytes < 2 * codec_bytes(512, "cuda")  # the reserve bears the rest
    codec.close()


def test_rounding_in_convolutions_is_far_below_the_sound(decoder):
    """As cuDNN rounds unless it is told otherwise; the small decoder is as deep as the full one."""
    codes = codes_of(1)
    codec = codec_of(decoder)
    exactly = codec.decode([CodecInput(codes)])[0]
    codec.close()
    torch.backends.cudnn.allow_tf32 = True
    codec = codec_of(decoder)
    rounded = codec.decode([CodecInput(codes)])[0]
    codec.close()
    error_db = 20 * np.log10(np.std(rounded - exactly) / np.std(exactly) + 1e-12)
    print(f"rounded convolutions differ by {error_db:.0f} dB")
    assert error_db < -45
