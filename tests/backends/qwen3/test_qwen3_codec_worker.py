"""The codec's threads: who listens waits for no finished line, and two who listen share a call."""

from __future__ import annotations

import gc
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_speakers import loaded_package, use_one_core

from studio.audio.clip import Samples
from studio.backends.batching.codec_worker import CodecFrames
from studio.backends.batching.sequence import SequenceEnd, TtsSequence
from studio.backends.qwen3.batched_codec import BatchedCodec, Qwen3CodecWorker
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.codec_batch import CodecGraphBuffers, RowBlock
from studio.backends.qwen3.prompt import Qwen3Voice
from studio.backends.qwen3.talker_slots import TalkerRequest

pytestmark = pytest.mark.models

PATIENCE_S = 120
WITHIN = 1e-4
NOBODY = Qwen3Voice()


@pytest.fixture(scope="module")
def decoder():
    use_one_core()
    return loaded_package().model.speech_tokenizer.model.decoder


@contextmanager
def thread_on(decoder, at_once: int) -> Iterator[Qwen3CodecWorker]:
    with closing(Qwen3CodecWorker(decoder, title="Paper", convolved_at_once=at_once)) as thread:
        yield thread


def codes_of(frames: int) -> torch.Tensor:
    return torch.randint(0, 2_048, (frames, 16), generator=torch.Generator().manual_seed(frames))


class Told:
    """What lines gave out, in order, by name."""

    def __init__(self) -> None:
        self._given: queue.SimpleQueue[tuple[str, Samples | SequenceEnd]] = queue.SimpleQueue()
        self.then: dict[str, Callable[[], None]] = {}

    def line(self, name: str, voice: Qwen3Voice = NOBODY) -> TtsSequence:
        def deliver(given: Samples | SequenceEnd) -> None:
            self._given.put((name, given))
            if name in self.then:
                self.then.pop(name)()  # in the codec's thread, which is amid its work

        nothing = torch.zeros(1, dtype=torch.long)
        task = TalkerRequest(
            tokens=nothing,
            voice=voice,
            language=None,
            sampling=SamplingParams(),
            seed=0,
            max_frames=200,
        )
        return TtsSequence(task, deliver)

    def until_ended(self, lines: int, *, failing: str = "") -> list[tuple[str, Samples]]:
        audio, ended = [], 0
        while ended < lines:
            name, given = self._given.get(timeout=PATIENCE_S)
            if isinstance(given, SequenceEnd):
                assert (given.error is not None) is (name == failing), given.error
                ended += 1
            else:
                audio.append((name, given))
        return audio


def test_a_heard_line_waits_for_no_round_of_finished_ones(decoder, monkeypatch):
    """The finished lines' thread is held amid its work until the heard line has been given out."""
    told = Told()
    heard, finished = told.line("heard"), told.line("finished")
    begun, given = threading.Event(), threading.Event()
    told.then["heard"] = given.set
    with thread_on(decoder, 16) as thread:
        rounds = thread._codec._buffers
        run = rounds.run

        def held(block: RowBlock) -> Samples:
            begun.set()
            assert given.wait(PATIENCE_S)
            return run(block)

        monkeypatch.setattr(rounds, "run", held)
        thread.submit(CodecFrames(finished, codes_of(40)))
        assert begun.wait(PATIENCE_S)
        thread.submit(CodecFrames(heard, codes_of(1), streamed=True))
        audio = told.until_ended(2)
    assert [name for name, _ in audio] == ["heard", "finished"]
    alone = BatchedCodec(decoder)
    for (name, samples), frames in zip(audio, (1, 40), strict=True):
        [expected] = alone.decode_chunks([(alone.stream(), codes_of(frames))])
        assert np.abs(samples - expected).max() < WITHIN, name


def test_chunks_of_two_lines_that_wait_are_decoded_in_one_go(decoder, monkeypatch):
    told = Told()
    first, second, third = (told.line(name) for name in ("first", "second", "third"))
    with thread_on(decoder, 16) as thread:
        rows = thread._codec._streamed._rows
        blocks: list[RowBlock] = []
        run = rows.run
        monkeypatch.setattr(rows, "run", lambda block: blocks.append(block) or run(block))
        told.then["first"] = lambda: [  # in the thread that decodes chunks: they wait together
            thread.submit(CodecFrames(line, codes_of(frames), streamed=True, last=last))
            for line, frames, last in (
                *((second, 8, False), (second, 4, True), (third, 8, True)),
                (first, 2, True),
            )
        ]
        thread.submit(CodecFrames(first, codes_of(1), streamed=True, last=False))
        told.until_ended(3)
    assert blocks == [RowBlock(0, 1, 1), RowBlock(0, 2, 8), RowBlock(0, 1, 4), RowBlock(0, 1, 2)]


def test_a_line_that_will_be_heard_has_its_sample_heard_before_its_first_frame(decoder):
    told, sample = Told(), codes_of(30)
    line = told.line("heard", Qwen3Voice(ref_codes=sample))
    with thread_on(decoder, 16) as thread:
        thread.submit(CodecFrames(line, codes_of(0), streamed=True, last=False))
        thread.submit(CodecFrames(line, codes_of(3), streamed=True))
        [(_, samples)] = told.until_ended(1)
        assert thread._codec.computed == 1
    alone = BatchedCodec(decoder)
    [expected] = alone.decode_chunks([(alone.stream(sample), codes_of(3))])
    assert np.abs(samples - expected).max() < WITHIN


@pytest.mark.parametrize("streamed", [False, True])
def test_a_line_that_cannot_be_decoded_fails_alone(decoder, streamed):
    told = Told()
    first, bad, good = (told.line(name) for name in ("first", "bad", "good"))
    unknown = torch.full((8, 16), 9_999)  # no codebook has such a code
    with thread_on(decoder, 64) as thread:
        told.then["first"] = lambda: [  # in the thread that decodes: they wait together
            thread.submit(CodecFrames(line, codes, streamed=streamed))
            for line, codes in ((bad, unknown), (good, codes_of(8)))
        ]
        thread.submit(CodecFrames(first, codes_of(1), streamed=streamed))
        audio = dict(told.until_ended(3, failing="bad"))
    assert audio.keys() == {"first", "good"}
    alone = BatchedCodec(decoder)
    [expected] = alone.decode_chunks([(alone.stream(), codes_of(8))])
    assert np.abs(audio["good"] - expected).max() < WITHIN


def test_fewer_frames_at_once_where_the_memory_does_not_suffice(decoder, monkeypatch):
    tried: list[int] = []

    def prepare(self: CodecGraphBuffers, block) -> None:
        tried.append(block.rows)
        if block.rows > 2:
            raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(CodecGraphBuffers, "prepare", prepare)
    with thread_on(decoder, 64) as thread:
        assert thread._codec.rows == 2
    assert tried[:4] == [8, 4, 2, 1]


def test_closing_gives_up_all_memory_without_a_collector(decoder):
    with thread_on(decoder, 16) as thread:
        both = thread._codec._buffers, thread._codec._streamed._rows
        step = weakref.ref(thread._codec._step)
    assert not any(rows.state.numel() + rows.codes.numel() for rows in both)
    del both
    thread.close()
    gc.disable()
    try:
        del thread._codec
        assert step() is None
    finally:
        gc.enable()
