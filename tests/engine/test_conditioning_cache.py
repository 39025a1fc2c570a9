from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from studio.audio.clip import Clip
from studio.backends.base import Capabilities, Conditioning
from studio.engine.model_pool import ConditioningCache, ConditioningStore
from studio.errors import OutOfMemory, SampleRejected
from studio.voices.speaker import Sample, Voice


class Cloning:
    """A backend whose conditioning is the sample's name, padded to a size."""

    name = "cloning"
    revision = "weights 1"
    capabilities = Capabilities(24_000, 300)

    def __init__(self, *, file_bytes: int = 100, size_bytes: int = 10) -> None:
        self.file_bytes = file_bytes
        self.size_bytes = size_bytes
        self.conditioned = 0
        self.gate = threading.Event()
        self.gate.set()

    def condition(self, voice: Voice) -> Conditioning:
        self.conditioned += 1
        assert self.gate.wait(timeout=60)
        if voice.sample is not None and voice.sample.sha256 == "bad":
            raise SampleRejected("This sample can't serve; choose another.")
        return Conditioning(voice.sample.sha256 if voice.sample else voice.speaker, self.size_bytes)

    def write_conditioning(self, conditioning: Conditioning, path: Path) -> None:
        path.write_text(str(conditioning.payload).ljust(self.file_bytes))

    def read_conditioning(self, path: Path) -> Conditioning:
        text = path.read_text()
        if len(text) != self.file_bytes:
            raise ValueError("cut short")
        return Conditioning(text.strip(), 10)


def voice(sha256: str = "a", *, transcript: str | None = None) -> Voice:
    clip = Clip(np.zeros(10, np.float32))
    return Voice("Ida", Sample(clip, sha256=sha256, transcript=transcript))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_two_that_ask_at_once_share_one_computation() -> None:
    backend, cache = Cloning(), ConditioningCache()
    backend.gate.clear()
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(cache.get, backend, voice()) for _ in range(8)]
        backend.gate.set()
        assert len({id(one.result()) for one in asked}) == 1
    assert backend.conditioned == cache.n_computed == 1


def test_memory_is_bounded_and_forgotten_by_backend() -> None:
    backend, cache = Cloning(), ConditioningCache(max_bytes=25)
    for sha256 in ("a", "b", "c", "a"):
        cache.get(backend, voice(sha256))
    assert backend.conditioned == 4
    cache.forget("other")
    cache.get(backend, voice("a"))
    assert backend.conditioned == 4
    cache.forget("cloning")
    cache.get(backend, voice("a"))
    assert backend.conditioned == 5


def test_256_mb_are_held_unless_another_bound_is_given() -> None:
    large, cache = Cloning(size_bytes=64 * 1024 * 1024), ConditioningCache()
    for sha256 in ("a", "b", "c", "d", "a", "b", "c", "d"):
        cache.get(large, voice(sha256))
    assert large.conditioned == 4
    cache.get(Cloning(size_bytes=1), voice("e"))
    cache.get(large, voice("a"))
    assert large.conditioned == 5, "the one used longest ago made room"


def test_voices_without_conditioning_take_room_too() -> None:
    backend, cache = Cloning(size_bytes=0), ConditioningCache(max_bytes=2)
    for sha256 in ("a", "b", "c", "a"):
        cache.get(backend, voice(sha256))
    assert backend.conditioned == 4


def test_a_sample_that_cannot_serve_is_no_lasting_failure() -> None:
    backend, cache = Cloning(), ConditioningCache()
    for _ in range(2):
        with pytest.raises(SampleRejected):
            cache.get(backend, voice("bad"))
    assert backend.conditioned == 2


class TestOnDisk:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "conditioning"

    def cache(self, folder: Path, **bound: int) -> ConditioningCache:
        return ConditioningCache(ConditioningStore(folder, **bound))

    def test_a_restart_reads_what_was_computed(self, folder: Path) -> None:
        backend = Cloning()
        made = self.cache(folder).get(backend, voice())
        after = self.cache(folder)
        assert after.get(backend, voice()) == made
        assert (after.n_computed, after.n_read, backend.conditioned) == (0, 1, 1)
        assert after.get(backend, voice()) == made
        assert after.n_read == 1, "then it is in memory"
        (path,) = files(folder)
        assert path.parent == folder / "cloning"
        assert path.suffix == ".safetensors"

    def test_after_an_unload_it_is_read_not_computed(self, folder: Path) -> None:
        backend, cache = Cloning(), self.cache(folder)
        cache.get(backend, voice())
        cache.forget("cloning")
        cache.get(backend, voice())
        assert (cache.n_computed, cache.n_read) == (1, 1)

    def test_other_weights_or_transcripts_are_computed_anew(self, folder: Path) -> None:
        backend, cache = Cloning(), self.cache(folder)
        cache.get(backend, voice())
        cache.get(backend, voice(transcript="What it says."))
        backend.revision = "weights 2"
        cache.get(backend, voice())
        assert cache.n_computed == 3

    @pytest.mark.parametrize("left", [b"", b"half of it", b"b".ljust(100)])
    def test_a_broken_file_is_computed_again(self, folder: Path, left: bytes) -> None:
        backend = Cloning()
        made = self.cache(folder).get(backend, voice())
        files(folder)[0].write_bytes(left)
        cache = self.cache(folder)
        assert cache.get(backend, voice()) == made
        assert (cache.n_computed, cache.n_read) == (1, 0)
        assert self.cache(folder).get(backend, voice()) == made
        assert backend.conditioned == 2

    def test_no_memory_for_reading_leaves_the_file(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        backend = Cloning()
        self.cache(folder).get(backend, voice())

        def no_room(_: Path) -> Conditioning:
            raise OutOfMemory("The device is full.")

        monkeypatch.setattr(backend, "read_conditioning", no_room)
        with pytest.raises(OutOfMemory):
            self.cache(folder).get(backend, voice())
        assert len(files(folder)) == 1

    def test_the_disk_is_bounded_and_the_longest_unused_goes(self, folder: Path) -> None:
        backend = Cloning()
        for age, sha256 in enumerate("abcd"):
            self.cache(folder, max_bytes=350).get(backend, voice(sha256))
            for path in files(folder):
                os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9 * (age + 1)))
        assert len(files(folder)) == 3
        cache = self.cache(folder)
        for sha256 in "bcd":
            cache.get(backend, voice(sha256))
        assert (cache.n_read, cache.n_computed) == (3, 0)
        cache.get(backend, voice("a"))
        assert cache.n_computed == 1

    def test_a_disk_that_is_full_costs_no_line(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        backend = Cloning()

        def full(_: Conditioning, path: Path) -> None:
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(backend, "write_conditioning", full)
        assert self.cache(folder).get(backend, voice()).payload == "a"
        assert files(folder) == []

    def test_what_needs_no_sample_or_costs_nothing_is_not_kept(self, folder: Path) -> None:
        class Cheap:
            name = "cheap"
            revision = "1"

            def condition(self, _: Voice) -> Conditioning:
                return Conditioning("cheap", 10)

        cache = self.cache(folder)
        cache.get(Cheap(), voice())
        cache.get(Cloning(), Voice("Ida"))
        cache.get(Cloning(), Voice("Ida", preset="deep"))
        assert not folder.exists()
