from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from gated import GatedDraft
from scenes import OpenStudio, dialog_of, finish

from studio.backends.base import Backend
from studio.backends.espeak.backend import DraftBackend
from studio.backends.registry import create
from studio.engine.model_manager import ModelState
from studio.errors import (
    ModelUnavailable,
    SettingError,
    StorageFailed,
)
from studio.project.project_file import write_archive
from studio.services.studio import Studio, StudioOptions


def test_old_renders_make_room_for_new_ones(studio: Studio) -> None:
    jobs = []
    for _ in range(23):
        jobs.append(studio.render(dialog_of(1)))
        finish(jobs[-1])
    assert [job.spec.folder.exists() for job in jobs] == [False] * 3 + [True] * 20


def test_a_render_under_way_keeps_its_folder(open_studio: OpenStudio) -> None:
    studio = open_studio(GatedDraft())
    slow = studio.render(dialog_of(1))
    for number in range(20):
        (studio.options.workspace / "renders" / f"earlier-{number}").mkdir()
    os.utime(slow.spec.folder, (0, 0))
    studio.render(dialog_of(1))
    assert slow.spec.folder.exists()
    assert len(list((studio.options.workspace / "renders").iterdir())) == 21


def test_a_render_under_way_in_another_process_keeps_its_folder(open_studio: OpenStudio) -> None:
    studio = open_studio()
    renders = studio.options.workspace / "renders"
    (renders / "another").mkdir()
    with FileLock(renders / "another" / ".lock"):
        os.utime(renders / "another", (0, 0))
        for number in range(20):
            (renders / f"earlier-{number}").mkdir()
        finish(studio.render(dialog_of(1)))
        assert (renders / "another").exists()
        assert len(list(renders.iterdir())) == 21


def test_renders_of_an_earlier_run_make_room_too(open_studio: OpenStudio) -> None:
    studio = open_studio()
    for number in range(25):
        (studio.options.workspace / "renders" / f"earlier-{number}").mkdir()
    finish(studio.render(dialog_of(1)))
    assert len(list((studio.options.workspace / "renders").iterdir())) == 20


def test_a_workspace_that_cannot_be_made_says_how_to_choose_another(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed, match="--workspace"):
        Studio.open(StudioOptions(tmp_path / "file", "draft"), lambda _: None)


class Second(DraftBackend):
    name = "second"


class Unable(DraftBackend):
    def unavailable(self) -> str:
        return "Its packages are missing; install them."


@pytest.fixture
def two_backends(tmp_path: Path) -> Iterator[Studio]:
    others = {"second": Second, "unable": Unable}
    options = StudioOptions(
        tmp_path / "workspace", "draft", ("second", "draft"), "Second: it was not there."
    )

    def create_one(name: str) -> Backend:
        return others[name]() if name in others else create(name)

    with Studio.open(options, create_one) as studio:
        yield studio


def test_another_backend_speaks_from_now_on_and_the_former_is_unloaded(
    two_backends: Studio,
) -> None:
    assert two_backends.backend_reason == "Second: it was not there."
    two_backends.engine.load(two_backends.backend_name)
    two_backends.choose_backend("second")
    assert (two_backends.backend_name, two_backends.backend_reason) == ("second", None)
    assert two_backends.engine.models.get_status("draft").state is ModelState.UNLOADED
    job = two_backends.render(dialog_of(1))
    finish(job)
    assert job.spec.backend_name == "second"
    two_backends.choose_backend("second")
    assert two_backends.engine.models.get_status("second").state is ModelState.LOADED


@pytest.mark.parametrize(("name", "error"), [("unable", ModelUnavailable), ("no", SettingError)])
def test_a_backend_that_cannot_speak_is_not_chosen(
    two_backends: Studio, name: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        two_backends.choose_backend(name)
    assert two_backends.backend_name == "draft"


@pytest.mark.skipif(os.name != "posix", reason="Windows syncs no folders")
def test_a_power_failure_takes_no_new_voice_and_no_imported_project(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_archive(studio.projects.create("Scene", dialog_of(2)), tmp_path / "scene.zip")
    synced, real = set(), os.fsync

    def note(handle: int) -> None:
        real(handle)
        synced.add(os.fstat(handle).st_ino)

    monkeypatch.setattr(os, "fsync", note)
    speaker = studio.speakers.add("Ida")
    folder = studio.speakers.folder(speaker.speaker_id)
    with (tmp_path / "scene.zip").open("rb") as file:
        root = studio.projects.import_file(file).folder.root
    kept = (folder / "speaker.json", folder, folder.parent)
    kept += (root / "project.json", root / "edits.jsonl", root, root.parent)
    assert [str(path) for path in kept if path.stat().st_ino not in synced] == []
