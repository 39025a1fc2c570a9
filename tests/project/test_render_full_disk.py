"""A render on a disk that runs full: it waits, says so, loses nothing, and goes on by itself."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from project_scenes import IDA, QuickDisk, ops, text_edit, until
from scenes import OpenStudio, dialog_of

from studio.audio.clip import Clip, write_wav
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.spoken import say
from studio.engine.engine import Engine
from studio.project.projects import Projects
from studio.project.session import ProjectSession
from studio.server.route_table import service_routes, studio_routes
from studio.setup.models_install import NothingToSetUp
from studio.storage.disk import storage_errors
from studio.storage.workspace import ASSETS
from studio.voices.library import SpeakerLibrary


class Platter(QuickDisk):
    """A disk without room for audio, or for anything, while it is `full`.

    Attributes:
        refused: Writes that found no room.
    """

    def __init__(self) -> None:
        self.full: str | None = None
        self.refused: list[str] = []

    def _refuse(self, name: str) -> None:
        if self.full == "all" or (self.full == "takes" and not name.endswith(".jsonl")):
            self.refused.append(name)
            raise OSError(errno.ENOSPC, "No space left on device")

    def _write(self, file: BinaryIO, data: bytes) -> None:
        self._refuse(Path(file.name).name)
        super()._write(file, data)

    def _rename(self, source: Path, target: Path) -> None:
        self._refuse(target.name)
        super()._rename(source, target)

    def make_folder(self, path: Path) -> None:
        if not path.exists():
            with storage_errors(path):
                self._refuse(path.name)
        super().make_folder(path)


class Counting(DraftBackend):
    """Notes what it speaks; calls `before` first."""

    def __init__(self) -> None:
        super().__init__(workers=1)
        self.spoken: list[str] = []
        self.before = lambda: None

    def speak(self, request: SpeechRequest) -> Iterator[object]:
        self.spoken.append(request.text)
        self.before()
        return super().speak(request)


class Scene:
    """A project of so many lines on a disk of its own, on a counting voice."""

    def __init__(self, open_studio: OpenStudio, root: Path, lines: int) -> None:
        self.voice, self.disk = Counting(), Platter()
        self.studio = open_studio(self.voice, save=self._save)
        self.projects = projects_on(self.disk, root, self.studio.engine)
        self.session = self.projects.create("Scene", dialog_of(lines))

    def _save(self, path: Path, clip: Clip) -> None:
        with storage_errors(path):
            self.disk._refuse(path.name)
        write_wav(path, clip)

    def fill_after(self, lines: int, what: str = "takes") -> None:
        """Let the disk run full when so many lines are begun."""

        def fill() -> None:
            if len(self.voice.spoken) == lines:
                self.disk.full = what

        self.voice.before = fill

    def states(self) -> list[str]:
        return [view.state for view in self.session.list_views()]


def projects_on(disk: Platter, root: Path, engine: Engine) -> Projects:
    library = SpeakerLibrary(root / "speakers")
    return Projects(root / "projects", engine, library, lambda: "draft", disk=disk)


@pytest.fixture
def scene(open_studio: OpenStudio, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(open_studio, tmp_path / "own", 24)
    yield made
    made.projects.close()


def until_it_waits(session: ProjectSession) -> None:
    until(lambda: session.waits_for_room and not any_being_made(session))


def any_being_made(session: ProjectSession) -> bool:
    return any(view.state == "generating" for view in session.list_views())


@pytest.mark.parametrize("what", ["takes", "all"])
def test_a_render_waits_for_room_and_goes_on_by_itself_and_speaks_no_line_twice(
    scene: Scene, what: str
) -> None:
    scene.fill_after(6, what)
    scene.session.render(None)
    until_it_waits(scene.session)
    assert "failed" not in scene.states()
    assert scene.states().count("queued") >= 14
    assert 6 <= len(scene.voice.spoken) <= 16, "it stopped at the first write"
    assert scene.session.busy
    message = scene.session.storage_message
    assert "No space left on device. Free some space" in message
    assert "goes on by itself" in message
    assert "/" not in message

    scene.disk.full = None
    until(lambda: not scene.session.busy)
    assert scene.states() == ["ready"] * 24
    said = [say(line.text, "en").text for line in scene.session.document]
    assert sorted(scene.voice.spoken) == sorted(said)
    assert scene.session.storage_message is None
    assert scene.session.render_progress.failed == 0
    assert scene.session.render_progress.done == 24


def test_while_it_waits_hardly_anything_is_written_and_nothing_is_spoken(scene: Scene) -> None:
    scene.fill_after(6)
    scene.session.render(None)
    until_it_waits(scene.session)
    spoken, refused = len(scene.voice.spoken), len(scene.disk.refused)
    for _ in range(5):
        scene.session.save()
    assert len(scene.voice.spoken) == spoken
    assert len(scene.disk.refused) - refused <= 15


def test_a_press_while_it_waits_tries_at_once(scene: Scene) -> None:
    scene.fill_after(3)
    scene.session.render(None)
    until_it_waits(scene.session)
    scene.disk.full = None
    scene.session.render(None)
    until(lambda: not scene.session.busy)
    assert scene.states() == ["ready"] * 24
    assert len(scene.voice.spoken) == 24


def test_edits_and_a_stop_take_effect_while_it_waits(scene: Scene) -> None:
    scene.fill_after(3)
    scene.session.render(None)
    until_it_waits(scene.session)
    first = scene.session.document.order[0]
    scene.session.edit(ops(text_edit(first, "Another.")), IDA, scene.session.rev)
    scene.session.cancel()
    assert not scene.session.busy
    assert not scene.session.waits_for_room
    scene.disk.full = None
    scene.session.render(None)
    until(lambda: not scene.session.busy)
    assert scene.states() == ["ready"] * 24
    assert scene.session.get_view(first).take.text == "Another."
    assert not list((scene.session.folder.root / ".making").glob("*/*"))


def test_a_take_whose_record_finds_no_room_is_not_spoken_again(scene: Scene) -> None:
    def refuse(name: str) -> None:
        if scene.disk.full and re.fullmatch(r"[0-9a-f]{16}\.json", name):
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

    scene.disk._refuse = refuse
    scene.disk.full = "records"
    scene.session.render([scene.session.document.order[0]])
    until_it_waits(scene.session)
    assert "Disk quota exceeded" in scene.session.storage_message
    assert not list(scene.session.folder.root.glob("takes/*/*.wav")), "no audio without a record"
    scene.disk.full = None
    until(lambda: not scene.session.busy)
    assert scene.states()[0] == "ready"
    assert len(scene.voice.spoken) == 1


def test_a_line_of_several_segments_waits_whole(open_studio: OpenStudio, tmp_path: Path) -> None:
    scene = Scene(open_studio, tmp_path / "own", 1)
    first = scene.session.document.order[0]
    long = "This sentence is read aloud. [pause 0.5s] " * 60
    scene.session.edit(ops(text_edit(first, long)), IDA, scene.session.rev)
    scene.fill_after(2)
    scene.session.render(None)
    until_it_waits(scene.session)
    spoken = len(scene.voice.spoken)
    assert spoken > 2
    scene.disk.full = None
    until(lambda: not scene.session.busy)
    waited = scene.session.get_view(first).take
    assert len(scene.voice.spoken) == spoken
    gone = {"op": "delete_take", "take_id": waited.take_id}
    scene.session.edit(ops(gone), IDA, scene.session.rev)
    scene.session.render([first])
    until(lambda: not scene.session.busy)
    assert scene.session.get_view(first).take.samples == waited.samples
    scene.projects.close()


def test_the_page_and_healthz_say_that_a_render_waits(
    open_studio: OpenStudio, tmp_path: Path
) -> None:
    voice, disk = Counting(), Platter()
    studio = open_studio(voice)
    studio.projects._disk = disk
    routes = [
        *service_routes(studio, lambda _: studio, guard=lambda: None),
        *studio_routes(lambda _: studio, NothingToSetUp(), guard=lambda: None),
    ]
    with TestClient(FastAPI(routes=routes)) as client:
        session = studio.projects.create("Scene", dialog_of(20))
        assert client.get("/healthz").json()["storage"] is None

        def fill() -> None:
            disk.full = "takes"

        voice.before = fill
        session.render(None)
        until_it_waits(session)
        body = client.get(f"/studio/projects/{session.project_id}").json()
        assert body["job"]["state"] == "waiting"
        assert "No space left on device" in body["storage"]
        health = client.get("/healthz")
        assert (health.status_code, health.json()["ready"]) == (200, True)
        assert "wait" in health.json()["storage"]
        voice.before = lambda: None
        disk.full = None
        until(lambda: not session.busy)
        body = client.get(f"/studio/projects/{session.project_id}").json()
        assert (body["job"]["state"], body["storage"]) == ("done", None)
        assert client.get("/healthz").json()["storage"] is None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk of its own")
def test_on_a_disk_that_is_really_full_speech_goes_on_and_the_render_later(tmp_path: Path) -> None:
    driver = Path(__file__).with_name("full_disk_driver.py")
    mount = 'mount -t tmpfs -o size=8m none "$0" && exec "$@"'
    mounted = ["unshare", "-rm", "sh", "-c", mount, str(tmp_path)]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*mounted, "true"], check=False).returncode
    ):
        pytest.skip("no mount namespace may be made here")
    run = subprocess.run(
        [*mounted, sys.executable, str(driver), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ASSETS.parent,
        env={**os.environ, "PYTHONPATH": str(ASSETS.parent)},
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    print(found)
    assert "No space left on device" in found["message"]
    assert set(found["states"]) <= {"ready", "queued"}
    assert found["spoken"] < 40, "it stopped"
    assert (found["ready"], found["spoken in all"]) == (40, 40), "no line was spoken twice"
    assert found["speech"] == [200, found["speech later"]]
    assert found["storage"] is None
    assert found["recording"].startswith("DiskFull: “bell.wav” can't be written: No space left")
