"""Files of a scene's sound that are made in the background, told of and stopped."""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
import threading
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from studio.audio.loudness import Loudness
from studio.audio.scene_file import SoundChoice, write_scene
from studio.errors import Cancelled, Conflict, NotFound, StudioError
from studio.project.scene import Scene
from studio.workspace import writable

log = logging.getLogger(__name__)

MAX_RUNNING = 2
"""Exports of one workspace at the same time; a person waits for one."""

KEPT_FINISHED = 2
"""Finished files of one workspace that can be fetched; older ones make room."""

KEPT_S = 600.0
"""How long a finished file can be fetched."""

FAULT = "The studio failed at this, and its log says why. Try again."


class ExportState(StrEnum):
    """Where an export stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SoundOrder:
    """What is to be made of which project: the same twice is one export.

    Attributes:
        project_id: Whose scene.
        scene: What can be heard of it now.
        suffix: Of the file, with its dot.
        choice: How it is wished.
    """

    project_id: str
    scene: Scene
    suffix: str
    choice: SoundChoice


class SoundExport:
    """One file on its way.

    Attributes:
        export_id: Nobody can guess it.
        order: What is made.
        state: Where it stands.
        share: How much is done, 0 to 1.
        message: Why it failed.
        loudness: What the finished file holds.
    """

    def __init__(self, order: SoundOrder, folder: Path) -> None:
        """Nothing is made yet."""
        self.export_id = secrets.token_hex(8)
        self.order = order
        self.state = ExportState.RUNNING
        self.share = 0.0
        self.message: str | None = None
        self.loudness: Loudness | None = None
        self._folder = folder
        self._stopped = threading.Event()

    @property
    def path(self) -> Path:
        """Where the finished file is."""
        return self._folder / f"scene{self.order.suffix}"

    def run(self) -> None:
        """Make it, to the end or until it is stopped; never raises."""
        scene = self.order.scene
        try:
            self.loudness = write_scene(
                self.path,
                scene.timeline,
                scene.captions,
                self.order.choice,
                on_progress=self._look,
            )
        except Cancelled:
            self._end(ExportState.CANCELLED)
        except StudioError as error:
            self._end(ExportState.FAILED, str(error))
        except Exception:
            # Nobody is above this thread: the log has the fault, the page its end.
            log.exception("An export of %s failed.", self.order.project_id)
            self._end(ExportState.FAILED, FAULT)
        else:
            self._end(ExportState.DONE)

    def stop(self) -> None:
        """Let it end at its next block, or be gone when it is finished."""
        self._stopped.set()

    def linger(self, kept_s: float) -> None:
        """Keep the finished file for a while, or until it is stopped, then remove it."""
        if self.state is ExportState.DONE:
            self._stopped.wait(kept_s)
        self._remove()

    def _look(self, share: float) -> None:
        if self._stopped.is_set():
            raise Cancelled("The export was stopped.")
        self.share = share

    def _end(self, state: ExportState, message: str | None = None) -> None:
        if state is not ExportState.DONE:
            self._remove()
        self.message = message
        # Last: who sees the state finds the rest.
        self.state = state

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class SoundExports:
    """The exports of one workspace; any thread may ask."""

    def __init__(self, folder: Path, turns: threading.Semaphore) -> None:
        """Keep files in a folder, and take turns with other workspaces."""
        self._folder = folder
        self._turns = turns
        # Guards the table.
        self._lock = threading.Lock()
        self._exports: dict[str, SoundExport] = {}

    def begin(self, order: SoundOrder) -> SoundExport:
        """Begin to make a file; the one on its way where it is the same.

        Raises:
            Conflict: Enough are on their way.
            StorageFailed: There is no folder for it.
        """
        with self._lock:
            running = [one for one in self._exports.values() if one.state is ExportState.RUNNING]
            for one in running:
                if one.order == order:
                    return one
            if len(running) >= MAX_RUNNING:
                raise Conflict("Two files of sound are being made already. Wait, or cancel one.")
            export = SoundExport(order, _new_folder(self._folder))
            gone = self._make_room()
            self._exports[export.export_id] = export
        for one in gone:
            one.stop()
        threading.Thread(target=self._run, args=(export,), name="export", daemon=True).start()
        return export

    def find(self, project_id: str, export_id: str) -> SoundExport:
        """An export by its id.

        Raises:
            NotFound: It never was, was stopped, or is too old.
        """
        with self._lock:
            export = self._exports.get(export_id)
        if export is None or export.order.project_id != project_id:
            raise NotFound("This file isn't there any more. Save the sound again.")
        return export

    def drop(self, export: SoundExport) -> None:
        """Stop an export and forget it; its thread removes what it has made."""
        with self._lock:
            self._exports.pop(export.export_id, None)
        export.stop()

    def _run(self, export: SoundExport) -> None:
        with self._turns:
            export.run()
        export.linger(KEPT_S)
        if export.state is ExportState.DONE:
            self.drop(export)

    def _make_room(self) -> list[SoundExport]:
        over = [one for one in self._exports.values() if one.state is not ExportState.RUNNING]
        gone = over[: max(0, len(over) + 1 - KEPT_FINISHED)]
        for one in gone:
            del self._exports[one.export_id]
        return gone


def _new_folder(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix="export-", dir=writable(folder)))
