"""What was removed waits in a folder, and is found by its name alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.errors import NotFound
from studio.storage.disk import Disk
from studio.storage.trash import TrashFolder


@pytest.fixture
def trash(tmp_path: Path) -> TrashFolder:
    return TrashFolder(tmp_path / ".trash", Disk(), "It is gone.")


def folder_of(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "file").write_text(name, "utf-8")
    return folder


def test_what_was_removed_gets_its_place_back(tmp_path: Path, trash: TrashFolder) -> None:
    folder = folder_of(tmp_path, "abc")
    trash.put(folder)
    assert not folder.exists()
    assert [path.name for path, _ in trash.list_removed()] == ["abc"]
    trash.restore("abc", folder)
    assert (folder / "file").read_text("utf-8") == "abc"
    with pytest.raises(NotFound, match="It is gone"):
        trash.restore("abc", folder)


@pytest.mark.parametrize("name", ["def", "../kept", "", ".", ".."])
def test_no_name_leads_outside(tmp_path: Path, trash: TrashFolder, name: str) -> None:
    kept = folder_of(tmp_path, "kept")
    trash.put(folder_of(tmp_path, "abc"))
    for act in (trash.get, trash.delete):
        with pytest.raises(NotFound):
            act(name)
    assert kept.is_dir()
    assert trash.measure().count == 1


def test_one_is_deleted_and_the_others_stay(tmp_path: Path, trash: TrashFolder) -> None:
    for name in ("abc", "def"):
        trash.put(folder_of(tmp_path, name))
    trash.delete("abc")
    assert [path.name for path in (tmp_path / ".trash").iterdir()] == ["def"]


def test_of_a_linked_folder_the_link_is_deleted(tmp_path: Path, trash: TrashFolder) -> None:
    elsewhere = folder_of(tmp_path, "elsewhere")
    (tmp_path / "abc").symlink_to(elsewhere)
    trash.put(tmp_path / "abc")
    assert trash.empty().count == 1
    assert list((tmp_path / ".trash").iterdir()) == []
    assert (elsewhere / "file").is_file()


def test_two_processes_empty_it_at_once(
    tmp_path: Path, trash: TrashFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = TrashFolder(tmp_path / ".trash", Disk(), "It is gone.")
    for name in ("one", "two"):
        trash.put(folder_of(tmp_path, name))

    def empty_meanwhile(one: TrashFolder, name: str) -> int:
        monkeypatch.undo()
        assert other.empty().count == 2
        return one._measure(name)

    monkeypatch.setattr(TrashFolder, "_measure", empty_meanwhile)
    trash.empty()
    assert trash.measure().count == 0
