"""The codec's thread: who listens goes first, even between the rounds of finished lines."""

from __future__ import annotations

import gc
import queue
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_speakers import loaded_package, use_one_core

from studio.audio.clip import Samples
from studio.backends.batched.codec import BatchedCodec
from studio.backends.batched.codec_rows import CodecRows
from studio.backends.batched.codec_thread import CodecThread
from studio.backends.batched.line import End, Line, LineTask
from studio.backends.batched.sound_thread import Frames
from studio.backends.qwen3.request import Sampling
from studio.backends.qwen3.voice import Qwen3Voice

pytestmark = pytest.mark.models

PATIENCE_S = 120
WITHIN = 1e-4


@pytest.fixture(scope="module")
def decoder():
    use_one_core()
    return loaded_package().model.speech_tokenizer.model.decoder


@contextmanager
def thread_on(decoder, at_once: int) -> Iterator[CodecThread]:
    with closing(CodecThread(decoder, title="Paper", convolved_at_once=at_once)) as thread:
        yield thread


def codes_of(frames: int) -> torch.Tensor:
    return torch.randint(0, 2_048, (frames, 16), generator=torch.Generator().manual_seed(frames))


class Told:
    """What lines gave out, in order, by name."""

    def __init__(self) -> None:
        self._given: queue.SimpleQueue[tuple[str, Samples | End]] = queue.SimpleQueue()
        self.then: dict[str, Callable[[], None]] = {}

    def line(self, name: str) -> Line:
        def deliver(given: Samples | End) -> None:
            self._given.put((name, given))
            if name in self.then:
                self.then.pop(name)()  # in the codec's thread, which is amid its rounds

        nothing = torch.zeros(1, dtype=torch.long)
        return Line(LineTask(nothing, Qwen3Voice(), None, Sampling(), 0, 200, 200), deliver)

    def until_ended(self, lines: int) -> list[tuple[str, Samples]]:
        audio, ended = [], 0
        while ended < lines:
            name, given = self._given.get(timeout=PATIENCE_S)
            if isinstance(given, End):
                assert given.error is None
                ended += 1
            else:
                audio.append((name, given))
        return audio


def test_a_heard_line_is_sounded_between_two_rounds(decoder):
    told = Told()
    heard = told.line("heard")
    with thread_on(decoder, 16) as thread:
        told.then["short"] = lambda: thread.submit(Frames(heard, codes_of(1), heard=True))
        first = told.line("first")
        told.then["first"] = lambda: [
            thread.submit(Frames(told.line(name), codes_of(frames)))
            for name, frames in (("long", 90), ("short", 9), ("middle", 40))
        ]
        thread.submit(Frames(first, codes_of(3)))
        given = told.until_ended(5)
    assert [name for name, _ in given] == ["first", "middle", "short", "heard", "long"]
    alone = BatchedCodec(decoder)
    for (name, samples), frames in zip(given, (3, 40, 9, 1, 90), strict=True):
        expected = alone.stream().decode(codes_of(frames))
        assert np.abs(samples - expected).max() < WITHIN, name


def test_fewer_frames_at_once_where_the_memory_does_not_suffice(decoder, monkeypatch):
    tried: list[int] = []

    def prepare(self: CodecRows, block) -> None:
        tried.append(block.rows)
        if block.rows > 2:
            raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(CodecRows, "prepare", prepare)
    with thread_on(decoder, 64) as thread:
        assert thread._codec.rows == 2
    assert tried[:4] == [8, 4, 2, 1]


def test_closing_gives_up_all_memory_without_a_collector(decoder):
    with thread_on(decoder, 16) as thread:
        rows = thread._codec._places
        step = weakref.ref(thread._codec._step)
    assert not rows.state.numel() + rows.codes.numel()
    del rows
    thread.close()
    gc.disable()
    try:
        del thread._codec
        assert step() is None
    finally:
        gc.enable()
