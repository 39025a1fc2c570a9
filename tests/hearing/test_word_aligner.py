"""The aligner's process: it answers, ends when idle, and is replaced when it dies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from aligned_speech import KnownVoice
from aligner_process import find_aligner

from studio.audio.clip import Clip, write_wav
from studio.errors import SpeechFailed, StorageFailed
from studio.hearing.draft_reading import DraftReader
from studio.hearing.word_aligner import WordAligner
from studio.hearing.word_times import Alignment, align

TEXT = "The old postman asked twice for a cup of tea, or so they say."


@pytest.fixture(scope="module")
def clip() -> Clip:
    voice = KnownVoice()
    try:
        return voice.speak(TEXT, "en", "f4").clip
    finally:
        voice.close()


@pytest.fixture
def aligner() -> Iterator[WordAligner]:
    found = WordAligner()
    yield found
    found.close()


def wait_until_gone(child: psutil.Process) -> None:
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running()


def test_another_process_finds_the_same(aligner: WordAligner, clip: Clip, tmp_path: Path) -> None:
    write_wav(tmp_path / "take.wav", clip)
    found = aligner.align_file(tmp_path / "take.wav", TEXT, "en")
    reader = DraftReader()
    try:
        here = align(clip, TEXT, reader.read(TEXT, "en"))
    finally:
        reader.close()
    assert [word.word for word in found.words][:3] == ["The", "old", "postman"]
    assert np.allclose(times(found), times(here), atol=0.011)
    assert aligner.align_words(clip, TEXT, "en") == found.words


def make_long(clip: Clip) -> Clip:
    """A take that takes a second of processor time."""
    return Clip(np.tile(clip.samples, 40))


def wait_until_busy(child: psutil.Process) -> None:
    before = child.cpu_times().user
    while child.cpu_times().user < before + 0.05:
        time.sleep(0.002)


def times(found: Alignment) -> list[float]:
    return [edge for word in found.words for edge in (word.start_s, word.end_s)]


@pytest.mark.skipif(not hasattr(os, "nice"), reason="no priorities here")
def test_it_gives_way_to_everything_else(aligner: WordAligner, clip: Clip) -> None:
    aligner.align(clip, TEXT)
    assert find_aligner().nice() >= 15


def test_it_ends_when_idle_and_starts_again(clip: Clip) -> None:
    aligner = WordAligner(idle_s=0.01)
    try:
        first = aligner.align(clip, TEXT)
        while aligner.is_running:
            time.sleep(0.005)
        assert aligner.align(clip, TEXT) == first
    finally:
        aligner.close()


def test_a_process_that_was_killed_is_replaced(aligner: WordAligner, clip: Clip) -> None:
    first = aligner.align(clip, TEXT)
    child = find_aligner()
    child.kill()
    wait_until_gone(child)
    assert aligner.align(clip, TEXT) == first


def test_killed_while_it_works(aligner: WordAligner, clip: Clip) -> None:
    """One clear message, and the next take is aligned."""
    aligner.align(clip, TEXT)
    child = find_aligner()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(aligner.align, make_long(clip), 40 * TEXT)
        wait_until_busy(child)
        child.kill()
        with pytest.raises(SpeechFailed, match="can't be timed"):
            waiting.result()
    assert aligner.align(clip, TEXT).words


def test_close_while_it_works(aligner: WordAligner, clip: Clip) -> None:
    aligner.align(clip, TEXT)
    child = find_aligner()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(aligner.align, make_long(clip), 40 * TEXT)
        wait_until_busy(child)
        aligner.close()
        with pytest.raises(SpeechFailed):
            waiting.result()
    wait_until_gone(child)


@pytest.mark.parametrize("content", [None, b"", b"RIFF1234WAVE"])
def test_what_is_no_take(aligner: WordAligner, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "take.wav"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StorageFailed, match=r"“take\.wav”"):
        aligner.align_file(path, TEXT)


def test_an_empty_take(aligner: WordAligner) -> None:
    assert aligner.align(Clip.silence(0), TEXT) == Alignment()
