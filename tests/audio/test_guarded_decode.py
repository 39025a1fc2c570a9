from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import av
import av.error
import numpy as np
import psutil
import pytest
import soundfile

from studio.audio import guarded_decode
from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.decode import DecodeLimits, decode
from studio.audio.encode import encode_stream
from studio.audio.formats import AudioFormat
from studio.audio.guarded_decode import decode_guarded
from studio.errors import AudioRejected, Cancelled
from studio.storage import guarded_child
from studio.storage.guarded_child import ProcessLimits, is_abandoned

pytestmark = pytest.mark.slow

BOMB_S = 600.0
"""As long as anything that is taken."""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "tone.flac"
    tone = 0.3 * np.sin(2 * np.pi * 220 * np.arange(3 * 16_000) / 16_000)
    soundfile.write(path, tone, 16_000)
    return path


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file that decodes to a long silence; only read it."""
    path = tmp_path_factory.mktemp("bomb") / "bomb.flac"
    block = np.zeros((480_000, 8), dtype=np.int16)
    with soundfile.SoundFile(path, "w", 48_000, 8, subtype="PCM_16") as file:
        for _ in range(int(BOMB_S) // 10):
            file.write(block)
    assert path.stat().st_size < 2_000_000
    return path


class LargestChild:
    """The most memory that any child of this process had in a block."""

    def __enter__(self) -> LargestChild:
        self.rss_bytes = 0
        self._others = {*psutil.Process().children(recursive=True)}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        own = me.cmdline()
        while not self._over.is_set():
            for child in {*me.children(recursive=True)} - self._others:
                try:
                    # Between fork and exec a child still shows its parent's memory.
                    if child.cmdline() != own:
                        self.rss_bytes = max(self.rss_bytes, child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            time.sleep(0.005)


def test_the_child_hears_what_the_decoder_hears(recording: Path) -> None:
    info, clip = decode_guarded(recording)
    assert (clip.samples == decode(recording).samples).all()
    assert (info.rate_hz, info.channels, clip.rate_hz) == (16_000, 1, STUDIO_RATE_HZ)


def test_a_rejection_keeps_its_words_and_the_given_name(tmp_path: Path) -> None:
    path = tmp_path / "upload-17"
    path.write_text("no sound at all")
    with pytest.raises(AudioRejected, match=r"“ida\.wav” is not a recording"):
        decode_guarded(path, display_name="ida.wav")


def test_a_bomb_is_refused_by_its_header_or_by_what_comes_out(bomb: Path) -> None:
    with LargestChild() as child, pytest.raises(AudioRejected, match="longer than"):
        decode_guarded(bomb, limits=DecodeLimits(max_duration_s=60.0))
    assert child.rss_bytes < 300_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child's memory this way")
def test_the_longest_that_is_taken_stays_below_300_mb(bomb: Path) -> None:
    with LargestChild() as child:
        _, clip = decode_guarded(bomb, limits=DecodeLimits(max_duration_s=BOMB_S))
    assert clip.duration_s == pytest.approx(BOMB_S, abs=0.1)
    assert 0 < child.rss_bytes < 300_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="the bound on memory holds on Linux")
@pytest.mark.parametrize("address_mb", [1, 50, 200])
def test_a_child_that_passes_its_memory_is_a_rejection(bomb: Path, address_mb: int) -> None:
    with pytest.raises(AudioRejected, match="memory and time"):
        decode_guarded(bomb, bounds=ProcessLimits(address_bytes=address_mb * 1_000_000))


@pytest.mark.skipif(sys.platform != "linux", reason="the bound on memory holds on Linux")
@pytest.mark.parametrize("fault", [av.error.MemoryError, av.error.InvalidDataError])
def test_a_decoder_without_memory_does_not_call_the_file_broken(
    bomb: Path, tmp_path: Path, monkeypatch, fault: type[Exception]
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise fault(1, "refused")

    monkeypatch.setattr(av, "open", refused)
    monkeypatch.setattr(guarded_decode, "_SPARE_MEMORY_BYTES", 1 << 60)
    order = {"path": str(bomb), "name": "ida.flac", "limits": {}}
    assert "memory and time" in guarded_decode._decode_to_folder(order, tmp_path)["rejected"]


def test_a_child_that_nobody_waits_for_is_ended(bomb: Path) -> None:
    me, asked = psutil.Process(), []
    before = {*me.children()}

    def is_gone() -> bool:
        asked.extend({*me.children()} - before)
        return True

    token = is_abandoned.set(is_gone)
    with pytest.raises(Cancelled):
        decode_guarded(bomb)
    is_abandoned.reset(token)
    (child,) = asked
    assert not child.is_running()


@pytest.mark.skipif(sys.platform != "linux", reason="the bound on files holds on Linux")
def test_a_child_that_fills_the_disk_is_a_rejection(bomb: Path) -> None:
    with pytest.raises(AudioRejected, match="memory and time"):
        decode_guarded(bomb, bounds=ProcessLimits(file_bytes=1_000_000))


def test_the_child_sees_no_secret(monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    monkeypatch.setenv("TABLEREAD_API_KEY", "canary")
    assert "canary" not in str(guarded_child.build_child_environment())
    assert os.environ["HF_TOKEN"] == "hf_canary"


def _mutants(seed_bytes: bytes, count: int) -> list[bytes]:
    """Recordings with wrong bytes, wrong lengths and torn ends, the same in every run."""
    random = np.random.default_rng(7)
    made = []
    for number in range(count):
        data = bytearray(seed_bytes)
        for _ in range(int(random.integers(1, 40))):
            place = int(random.integers(0, min(len(data), 400 if number % 2 else len(data))))
            data[place] = int(random.integers(0, 256))
        if number % 3 == 0:
            data = data[: int(random.integers(1, len(data)))]
        made.append(bytes(data))
    return made


def _survive(tmp_path: Path, count: int) -> None:
    tone = 0.3 * np.sin(2 * np.pi * 220 * np.arange(2 * 24_000) / 24_000).astype(np.float32)
    outcomes = {"heard": 0, "refused": 0}
    with LargestChild() as child:
        for audio_format in ("flac", "mp3", "opus", "wav", "aac"):
            whole = b"".join(encode_stream(iter([tone]), AudioFormat(audio_format)))
            for data in _mutants(whole, count):
                path = tmp_path / "mutant"
                path.write_bytes(data)
                try:
                    decode_guarded(path)
                    outcomes["heard"] += 1
                except AudioRejected:
                    outcomes["refused"] += 1
    print(outcomes, f"largest child {child.rss_bytes / 1e6:.0f} MB")
    assert outcomes["refused"]
    assert child.rss_bytes < 300_000_000


def test_broken_recordings_are_heard_or_refused(tmp_path: Path) -> None:
    _survive(tmp_path, 2)


@pytest.mark.campaign
@pytest.mark.timeout(3_600)
def test_many_broken_recordings_are_heard_or_refused(tmp_path: Path) -> None:
    _survive(tmp_path, 200)
