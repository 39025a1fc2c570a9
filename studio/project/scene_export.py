"""Export of a project: its scene as audio, in the background too, and its script."""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.export import Caption, OnProgress
from studio.audio.loudness import Loudness
from studio.audio.scene_file import ExportOptions, write_scene
from studio.audio.timeline import FailedPart, SilencePart, TakePart, Timeline, TimelinePart, lay_out
from studio.dialog.formats.exporting import TIMED, export_dialog, export_notices
from studio.dialog.formats.file_format import Format
from studio.dialog.model import Dialog, Notice
from studio.errors import Cancelled, Conflict, NotFound, StudioError
from studio.project.document import LineKind
from studio.project.line_states import LineView
from studio.project.session import ProjectSession
from studio.storage.workspace import ensure_writable

SCENE_EXPORT_DEFAULTS = ExportOptions()


@dataclass(frozen=True, slots=True)
class Scene:
    """What can be heard of a project at one moment, and who says it, by `segment_idx`."""

    timeline: Timeline
    captions: Mapping[int, Caption]


def build_project_timeline(session: ProjectSession) -> Timeline:
    """Chosen takes and silences in order; lines without a take are skipped and named."""
    with session.lock:
        return lay_out(
            _build_part(session, idx, view) for idx, view in enumerate(session.list_views())
        )


def export_scene(
    session: ProjectSession,
    path: Path,
    choice: ExportOptions = SCENE_EXPORT_DEFAULTS,
    *,
    on_progress: OnProgress | None = None,
) -> Loudness | None:
    """Write what can be heard to a file: .wav, .flac or .mp3, or .zip with every line in it.

    Returns:
        What the file holds, where the choice has it measured.

    Raises:
        BadInput: The suffix is another one, or the scene is too quiet or short for a loudness.
        Conflict: Nothing was spoken yet.
        StorageFailed: It can't be written; what was there before is untouched.
    """
    scene = build_scene(session)
    return write_scene(path, scene.timeline, scene.captions, choice, on_progress=on_progress)


def build_scene(session: ProjectSession) -> Scene:
    """What can be heard now.

    Raises:
        Conflict: Nothing was spoken yet.
    """
    with session.lock:
        timeline = build_project_timeline(session)
        views, accepted = session.list_views(), session.document.accepted_takes
    if not any(entry.source for entry in timeline.entries):
        raise Conflict(
            "Nothing has been spoken yet, so there is nothing to save. Press Read the scene first."
        )
    return Scene(
        timeline, {idx: _build_caption(idx, view, accepted) for idx, view in enumerate(views)}
    )


def export_script(
    session: ProjectSession, script_format: Format
) -> tuple[bytes, tuple[Notice, ...]]:
    """The lines in one of the formats of scripts, and what it leaves out.

    Subtitles are of the sound as it is exported: a line that has none there has none in them. While
    nothing has been spoken at all, their times are judged by the text.

    Raises:
        ScriptError: There are no lines.
    """
    with session.lock:
        dialog = session.document.to_dialog()
        views = session.list_views() if script_format in TIMED else []
    notices = export_notices(dialog, script_format)
    if not any(view.take for view in views):
        return export_dialog(dialog, script_format), notices
    silent = [number for number, view in enumerate(views, start=1) if view.samples is None]
    audible = [line for line, view in zip(dialog, views, strict=True) if view.samples is not None]
    durations_s = [view.samples / STUDIO_RATE_HZ for view in views if view.samples is not None]
    data = export_dialog(Dialog(tuple(audible)), script_format, durations_s=durations_s)
    if not silent:
        return data, notices
    n_silent = f"{len(silent)} line{'s have' if len(silent) > 1 else ' has'}"
    message = f"{n_silent} no sound yet and {'are' if len(silent) > 1 else 'is'} left out."
    return data, (*notices, Notice(message, silent[0]))


def _build_part(session: ProjectSession, idx: int, view: LineView) -> TimelinePart:
    if view.line.kind is LineKind.SILENCE:
        return SilencePart(idx, view.line.duration_s or 0.0)
    if view.take is None:
        return FailedPart(idx, view.message or "Nothing was made of this line yet.")
    return TakePart(idx, session.take_store.get_audio_path(view.take))


def _build_caption(idx: int, view: LineView, accepted: Collection[str]) -> Caption:
    line = view.line
    is_accepted = view.take is not None and view.take.take_id in accepted
    doubtful = () if is_accepted else tuple(doubt.message for doubt in view.issues)
    text = line.text if line.kind is LineKind.SPEECH else None
    return Caption(idx + 1, line.speaker, text, doubtful)


log = logging.getLogger(__name__)

MAX_RUNNING = 2
"""Exports of one workspace at the same time; a person waits for one."""

MAX_FINISHED = 2
"""Finished files of one workspace that can be fetched; older ones make room."""

FINISHED_RETENTION_S = 600.0
"""How long a finished file can be fetched."""

FAULT_MESSAGE = "The studio failed at this, and its log says why. Try again."


class ExportState(StrEnum):
    """Where an export stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SceneExportSpec:
    """What is to be made of which project: the same twice is one export.

    Attributes:
        project_id: Whose scene.
        scene: What can be heard of it now.
        suffix: Of the file, with its dot.
        options: How it is wished.
    """

    project_id: str
    scene: Scene
    suffix: str
    options: ExportOptions


class SceneExport:
    """One file on its way.

    Attributes:
        export_id: Nobody can guess it.
        spec: What is made.
        state: Where it stands.
        progress: How much is done, 0 to 1.
        message: Why it failed.
        loudness: What the finished file holds.
    """

    def __init__(self, order: SceneExportSpec, folder: Path) -> None:
        """Nothing is made yet."""
        self.export_id = secrets.token_hex(8)
        self.spec = order
        self.state = ExportState.RUNNING
        self.progress = 0.0
        self.message: str | None = None
        self.loudness: Loudness | None = None
        self._folder = folder
        self._stopped = threading.Event()

    @property
    def path(self) -> Path:
        """Where the finished file is."""
        return self._folder / f"scene{self.spec.suffix}"

    def run(self) -> None:
        """Make it, to the end or until it is stopped; never raises."""
        scene = self.spec.scene
        try:
            self.loudness = write_scene(
                self.path,
                scene.timeline,
                scene.captions,
                self.spec.options,
                on_progress=self._report_progress,
            )
        except Cancelled:
            self._end(ExportState.CANCELLED)
        except StudioError as error:
            self._end(ExportState.FAILED, str(error))
        except Exception:
            # Nobody is above this thread: the log has the fault, the page its end.
            log.exception("An export of %s failed.", self.spec.project_id)
            self._end(ExportState.FAILED, FAULT_MESSAGE)
        else:
            self._end(ExportState.DONE)

    def stop(self) -> None:
        """Let it end at its next block, or be gone when it is finished."""
        self._stopped.set()

    def keep_available(self, kept_s: float) -> None:
        """Keep the finished file for a while, or until it is stopped, then remove it."""
        if self.state is ExportState.DONE:
            self._stopped.wait(kept_s)
        self._remove()

    def _report_progress(self, share: float) -> None:
        if self._stopped.is_set():
            raise Cancelled("The export was stopped.")
        self.progress = share

    def _end(self, state: ExportState, message: str | None = None) -> None:
        if state is not ExportState.DONE:
            self._remove()
        self.message = message
        # Last: who sees the state finds the rest.
        self.state = state

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class SceneExports:
    """The exports of one workspace; any thread may ask."""

    def __init__(self, folder: Path, turns: threading.Semaphore) -> None:
        """Keep files in a folder, and take turns with other workspaces."""
        self._folder = folder
        self._slots = turns
        # Guards the table.
        self._lock = threading.Lock()
        self._exports: dict[str, SceneExport] = {}

    def begin(self, order: SceneExportSpec) -> SceneExport:
        """Begin to make a file; the one on its way where it is the same.

        Raises:
            Conflict: Enough are on their way.
            StorageFailed: There is no folder for it.
        """
        with self._lock:
            running = [one for one in self._exports.values() if one.state is ExportState.RUNNING]
            for one in running:
                if one.spec == order:
                    return one
            if len(running) >= MAX_RUNNING:
                raise Conflict("Two files of sound are being made already. Wait, or cancel one.")
            export = SceneExport(order, _make_folder(self._folder))
            gone = self._make_room()
            self._exports[export.export_id] = export
        for one in gone:
            one.stop()
        threading.Thread(target=self._run, args=(export,), name="export", daemon=True).start()
        return export

    def find(self, project_id: str, export_id: str) -> SceneExport:
        """An export by its id.

        Raises:
            NotFound: It never was, was stopped, or is too old.
        """
        with self._lock:
            export = self._exports.get(export_id)
        if export is None or export.spec.project_id != project_id:
            raise NotFound("This file isn't there any more. Save the sound again.")
        return export

    def drop(self, export: SceneExport) -> None:
        """Stop an export and forget it; its thread removes what it has made."""
        with self._lock:
            self._exports.pop(export.export_id, None)
        export.stop()

    def _run(self, export: SceneExport) -> None:
        with self._slots:
            export.run()
        export.keep_available(FINISHED_RETENTION_S)
        if export.state is ExportState.DONE:
            self.drop(export)

    def _make_room(self) -> list[SceneExport]:
        over = [one for one in self._exports.values() if one.state is not ExportState.RUNNING]
        gone = over[: max(0, len(over) + 1 - MAX_FINISHED)]
        for one in gone:
            del self._exports[one.export_id]
        return gone


def _make_folder(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix="export-", dir=ensure_writable(folder)))
