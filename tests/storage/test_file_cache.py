"""What is computed from a file is computed once for each state of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from studio.storage.disk import FileCache


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
