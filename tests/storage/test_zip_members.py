"""Zip files: members counted before `zipfile` reads its directory, and any time of day."""

from __future__ import annotations

import io
import os
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from studio.storage.zip_members import ZipWriter, build_zip_info, count_members


def _pack(
    count: int, *, comment: bytes = b"", before: bytes = b"", each: bytes = b""
) -> io.BytesIO:
    file = io.BytesIO(before)
    file.seek(0, 2)
    with zipfile.ZipFile(file, "w") as packed:
        packed.comment = comment
        for number in range(count):
            info = zipfile.ZipInfo(f"takes/{number}.json")
            info.comment = each
            packed.writestr(info, b"{}")
    return file


@pytest.mark.parametrize("comment", [b"", b"made by hand"])
@pytest.mark.parametrize("before", [b"", b"#!/bin/sh\n" * 100])
def test_members_are_counted(comment: bytes, before: bytes) -> None:
    assert count_members(_pack(321, comment=comment, before=before)) == 321


def test_more_members_than_the_short_end_can_state_are_counted() -> None:
    assert count_members(_pack(70_000)) == 70_000


def test_an_end_that_lies_hides_none() -> None:
    data = bytearray(_pack(500).getvalue())
    data[-14:-10] = b"\1\0\1\0"  # both of its counts of members
    file = io.BytesIO(bytes(data))
    assert len(zipfile.ZipFile(file).filelist) == 500
    assert count_members(file) == 500


def test_a_directory_counts_by_its_length_too() -> None:
    file = _pack(100, each=b"x" * 60_000)
    assert count_members(file) > 10_000


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"Ida: Good evening.\n", b"PK\5\6", bytes(range(256)) * 20]
)
def test_another_file_has_none(data: bytes) -> None:
    assert count_members(io.BytesIO(data)) == 0


def test_the_file_is_back_at_its_start() -> None:
    file = _pack(3)
    count_members(file)
    assert file.tell() == 0


@pytest.mark.parametrize("year", [1970, 1979, 1980, 2040, 2107, 2150])
def test_a_zip_is_written_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    """A machine without a battery begins in 1970."""
    old = tmp_path / "old"
    old.write_bytes(b"old")
    at_s = datetime(year, 6, 1, tzinfo=UTC).timestamp()
    os.utime(old, (at_s, at_s))
    with monkeypatch.context() as patched:
        patched.setattr("studio.storage.zip_members.time.localtime", lambda *_: time.gmtime(at_s))
        with (tmp_path / "a.zip").open("wb") as file, ZipWriter(file) as archive:
            archive.writestr("text", b"text", zipfile.ZIP_DEFLATED)
            archive.write(old, "old")
            with archive.open(build_zip_info("opened"), "w") as member:
                member.write(b"opened")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["text", "old", "opened"]
        years = {one.date_time[0] for one in archive.infolist()}
        assert years == {min(max(year, 1980), 2107)}
