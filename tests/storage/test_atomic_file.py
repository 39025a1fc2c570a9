import os
import stat
from pathlib import Path

import pytest

from studio.errors import DiskFull, StorageFailed
from studio.storage.disk import Disk, open_atomic, storage_errors


def test_the_file_is_whole_or_as_before(tmp_path):
    path = tmp_path / "scene.txt"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        _write_half(path)
    assert path.read_bytes() == b"old"
    with open_atomic(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["scene.txt"]


def _write_half(path):
    with open_atomic(path) as file:
        file.write(b"half")
        raise ZeroDivisionError


@pytest.mark.skipif(os.name != "posix", reason="Windows can't sync a folder")
def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_name_after_it(tmp_path, monkeypatch):
    order = []
    sync, replace = os.fsync, Path.replace

    def note_sync(handle):
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        order.append("folder" if is_folder else f"file of {os.fstat(handle).st_size}")
        sync(handle)

    def note_name(path, target):
        order.append(target.name)
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_name)
    Disk().write_whole(tmp_path / "scene.txt", [b"two ", b"blocks"])
    assert order == ["file of 10", "scene.txt", "folder"]
    order.clear()
    Disk().write_whole(tmp_path / "scene.txt", b"", synced=False)
    assert order == ["scene.txt"]
    Disk().move(tmp_path / "scene.txt", tmp_path / "moved.txt")
    assert order == ["scene.txt", "moved.txt", "folder"]


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    with open_atomic(tmp_path / "new") as file:
        file.write(b"x")
    modes = {(tmp_path / name).stat().st_mode for name in ("usual", "new")}
    assert len(modes) == 1


def test_a_full_disk_is_told_with_the_path(tmp_path):
    path = tmp_path / "scene.txt"
    with pytest.raises(StorageFailed, match=r"scene\.txt.*No space left"), open_atomic(path):
        raise OSError(28, os.strerror(28))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["3f2a.part", ".3f2a.part", ".new-7c1b"])
def test_a_full_disk_is_told_without_the_name_of_a_working_file(tmp_path, name):
    with pytest.raises(DiskFull) as caught, storage_errors(tmp_path / name):
        raise OSError(28, os.strerror(28))
    assert str(caught.value) == (
        "This can't be saved: No space left on device. "
        "Free some space or choose a folder you may write to."
    )


def test_a_folder_that_is_missing_or_a_file_is_told(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for folder in ("missing", "file"):
        with (
            pytest.raises(StorageFailed, match=r"“a\.txt” can't be written") as caught,
            open_atomic(tmp_path / folder / "a.txt"),
        ):
            pass
        assert str(tmp_path) not in str(caught.value)
        assert "no such folder" in str(caught.value)
        assert "Free some space" not in str(caught.value)


def test_a_folder_that_is_moved_while_it_is_deleted_is_gone(tmp_path, monkeypatch):
    folder = tmp_path / "making"
    folder.mkdir()

    def remove(path):  # as of a project that goes to the trash meanwhile
        path.rename(tmp_path / "trash")
        raise FileNotFoundError(2, os.strerror(2), str(path))

    monkeypatch.setattr("studio.storage.disk.shutil.rmtree", remove)
    Disk().remove(folder)
    assert not folder.exists()


def test_a_folder_in_the_place_of_the_file_stays(tmp_path):
    (tmp_path / "scene.wav").mkdir()
    with pytest.raises(StorageFailed), open_atomic(tmp_path / "scene.wav") as file:
        file.write(b"x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["scene.wav"]
