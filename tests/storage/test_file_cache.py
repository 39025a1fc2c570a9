"""What is computed from a file is computed once for each state of it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from studio.storage.file_cache import FileCache, StateCache, join_states


def test_a_file_is_read_again_when_it_was_changed(tmp_path: Path) -> None:
    path, asked = tmp_path / "file", []

    def compute(one: Path) -> str:
        asked.append(one)
        return one.read_text("utf-8")

    cache: FileCache[str] = FileCache()
    path.write_text("one", "utf-8")
    assert [cache.get(path, compute) for _ in range(3)] == ["one"] * 3
    path.write_text("three", "utf-8")
    assert cache.get(path, compute) == "three"
    os.utime(path, ns=(1, 1))
    assert cache.get(path, compute) == "three"
    assert asked == [path] * 3


def test_a_file_that_is_gone_has_no_value(tmp_path: Path) -> None:
    path = tmp_path / "file"
    cache: FileCache[int] = FileCache()
    path.write_bytes(b"1")
    assert cache.get(path, lambda _: 1) == 1
    path.unlink()
    with pytest.raises(FileNotFoundError):
        cache.get(path, lambda _: 2)


class SlowClockPath(type(Path())):
    """A file on a file system whose clock ticks every 20 ms."""

    def stat(self, **options):
        status = super().stat(**options)
        times = {
            name: getattr(status, name) // 20_000_000 * 20_000_000 + 1
            for name in ("st_mtime_ns", "st_ctime_ns")
        }
        return SimpleNamespace(st_ino=status.st_ino, st_size=status.st_size, **times)


def test_a_change_within_a_tick_of_the_clock_is_seen(tmp_path: Path) -> None:
    path = SlowClockPath(tmp_path / "file")
    cache: FileCache[str] = FileCache()
    for number in range(100, 200):  # in place, of one size, mostly within one tick of the last
        path.write_text(str(number), "utf-8")
        assert cache.get(path, lambda one: one.read_text("utf-8")) == str(number)


def test_a_change_that_hides_its_time_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "file"
    cache: FileCache[str] = FileCache()
    path.write_text("one", "utf-8")
    os.utime(path, ns=(5, 5))
    assert cache.get(path, lambda one: one.read_text("utf-8")) == "one"
    path.write_text("two", "utf-8")
    os.utime(path, ns=(5, 5))
    assert cache.get(path, lambda one: one.read_text("utf-8")) == "two"


def test_only_a_settled_state_is_believed(tmp_path: Path) -> None:
    path, second_ns = tmp_path / "file", 1_000_000_000
    path.touch()
    changed_ns = path.stat().st_ctime_ns

    def is_settled(mtime_ns: int, after_ns: int) -> bool:
        os.utime(path, ns=(mtime_ns, mtime_ns))
        status = path.stat()
        now_ns = max(mtime_ns, status.st_ctime_ns) + after_ns
        return join_states([status], now_ns=lambda: now_ns).is_settled

    fine_ns = changed_ns - changed_ns % second_ns + 60 * second_ns + 1
    assert not is_settled(fine_ns, 50_000_000)
    assert is_settled(fine_ns, 200_000_000)
    assert not is_settled(fine_ns - 1, 200_000_000), "times in whole seconds have longer ticks"
    assert is_settled(fine_ns - 1, 3 * second_ns)


def test_after_the_clock_was_set_back_by_a_day_files_are_not_read_each_time(tmp_path: Path) -> None:
    path, day_ns = tmp_path / "file", 24 * 3600 * 1_000_000_000
    path.touch()
    status = path.stat()
    assert join_states([status], now_ns=lambda: status.st_ctime_ns - day_ns).is_settled
    assert not join_states([status], now_ns=lambda: status.st_ctime_ns - 5_000_000).is_settled


def test_a_cache_is_bounded(tmp_path: Path) -> None:
    computed: list[int] = []
    cache: StateCache[None] = StateCache(max_values=3)
    state = join_states([None])
    for number in (1, 2, 3, 1, 4, 4, 1):
        cache.get(number, state, partial(computed.append, number))
    assert computed == [1, 2, 3, 4, 1], "the oldest made room"
