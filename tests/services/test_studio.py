from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from gated import GatedDraft
from scenes import OpenStudio, dialog_of, finish
from tiny_hub import TinyHub

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


KITTEN = {
    "model.fp32.onnx": bytes(range(256)) * 400,
    "voices.bin": b"voices" * 100,
    "tokens.txt": b"a 0\n",
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TinyHub]:
    hub = TinyHub(dict(KITTEN))
    with hub.serving(monkeypatch, tmp_path / "cache"):
        yield hub


@pytest.fixture
def on_draft(hub: TinyHub, tmp_path: Path) -> Iterator[Studio]:
    """`auto` found nothing but the draft voice."""
    if create("kitten").unavailable():
        pytest.skip("what runs the small voices isn't installed")
    better = "There are better voices: Kitten."
    options = StudioOptions(tmp_path / "workspace", "draft", ("kitten", "draft"), better)
    with Studio.open(options, create) as studio:
        yield studio


def wait_for(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def test_a_natural_voice_comes_in_the_background_and_speaks(on_draft: Studio) -> None:
    on_draft.bring_voice()
    assert on_draft.engine.downloads.list()["kitten"].chooses
    wait_for(lambda: on_draft.backend_name == "kitten")
    assert on_draft.backend_reason is None
    assert on_draft.list_first_voices() == []


def test_who_has_chosen_a_voice_meanwhile_keeps_it(on_draft: Studio, hub: TinyHub) -> None:
    hub.hold_after["model.fp32.onnx"] = 1_000
    on_draft.bring_voice()
    on_draft.choose_backend("draft")
    hub.hold_after.clear()
    wait_for(lambda: not on_draft.engine.downloads.list())
    assert create("kitten").to_fetch() is None
    assert on_draft.backend_name == "draft"


def test_nothing_comes_where_somebody_has_chosen_the_draft_voice(
    on_draft: Studio, hub: TinyHub
) -> None:
    on_draft.choose_backend("draft")
    on_draft.bring_voice()
    assert on_draft.engine.downloads.list() == {}
    assert hub.requests == 0


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
