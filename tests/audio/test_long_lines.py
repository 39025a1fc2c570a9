"""A line of a minute takes little more memory than its sound, wherever it is worked on."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from studio.audio.clip import Clip, Samples, write_wav
from studio.audio.encode import StreamEncoder
from studio.audio.formats import AudioFormat
from studio.backends.espeak.backend import finish_clip
from studio.backends.espeak.espeak_voices import find_package
from studio.backends.espeak.worker_pool import EspeakWorker, Utterance
from studio.quality.checks import ExpectedSpeech, check_take

MINUTE_BYTES = 60 * 24_000 * 4


def a_minute() -> Samples:
    noise = np.random.default_rng(3).standard_normal(60 * 24_000).astype(np.float32)
    noise *= np.float32(0.05)
    noise[::3] *= np.repeat(np.array([1, 0.2, 0.6, 0.1], dtype=np.float32), 120_000)
    return noise


def peak_of(work: Callable[[], object]) -> int:
    """The most bytes that it allocates at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_checking_a_take(tmp_path: Path) -> None:
    clip = Clip(a_minute())
    peak = peak_of(lambda: check_take(clip, ExpectedSpeech("One two three. " * 60, 1.0)))
    assert peak < 2.5 * MINUTE_BYTES


def test_saving_a_take(tmp_path: Path) -> None:
    clip = Clip(a_minute())
    assert peak_of(lambda: write_wav(tmp_path / "take.wav", clip)) < 0.5 * MINUTE_BYTES


def test_finishing_a_line_of_the_draft_voice() -> None:
    pcm = (a_minute()[: 60 * 22_050] * 32_767).clip(-32_768, 32_767).astype(np.int16)
    assert peak_of(lambda: finish_clip(pcm, 22_050)) < 3.5 * MINUTE_BYTES


def test_flac_is_compressed_as_it_comes() -> None:
    minute = a_minute()
    encoder = StreamEncoder(AudioFormat.FLAC)

    def ten_minutes() -> None:
        for _ in range(10):
            for start in range(0, len(minute), 12_000):
                encoder.push(minute[start : start + 12_000].copy())

    assert peak_of(ten_minutes) < 5 * MINUTE_BYTES
    assert encoder.finish()[:4] == b"fLaC"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_of_the_draft_voice_keeps_no_sound() -> None:
    worker = EspeakWorker(find_package())
    try:
        grown = []
        for _ in range(12):
            spoken = worker.speak(
                Utterance("All is quiet by the river. " * 36, "gmw/en-US"), timeout_s=60
            )
            status = Path(f"/proc/{worker._process.pid}/status").read_text("ascii")
            grown.append(int(status.partition("RssAnon:")[2].split()[0]) * 1024)
        assert grown[-1] - grown[1] < 3 * spoken.nbytes
    finally:
        worker.close()
