"""A project as finished audio, or as a file that others read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.export import Caption, OnProgress
from studio.audio.loudness import Loudness
from studio.audio.scene_file import SoundChoice, write_scene
from studio.audio.timeline import FailedPart, Part, SilencePart, TakePart, Timeline, lay_out
from studio.dialog.formats.exporting import TIMED, export_dialog, export_notices
from studio.dialog.formats.file_format import Format
from studio.dialog.model import Dialog, Notice
from studio.errors import Conflict
from studio.project.document import LineKind
from studio.project.lines import LineView
from studio.project.session import Session

AS_RENDERED = SoundChoice()


@dataclass(frozen=True, slots=True)
class Scene:
    """What can be heard of a project at one moment, and who says it, by `segment_idx`."""

    timeline: Timeline
    captions: Mapping[int, Caption]


def timeline_of(session: Session) -> Timeline:
    """Chosen takes and silences in order; lines without a take are skipped and named."""
    with session.lock:
        return lay_out(_part(session, idx, view) for idx, view in enumerate(session.views()))


def export_scene(
    session: Session,
    path: Path,
    choice: SoundChoice = AS_RENDERED,
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
    scene = scene_of(session)
    return write_scene(path, scene.timeline, scene.captions, choice, on_progress=on_progress)


def scene_of(session: Session) -> Scene:
    """What can be heard now.

    Raises:
        Conflict: Nothing was spoken yet.
    """
    with session.lock:
        timeline = timeline_of(session)
        views, accepted = session.views(), session.document.accepted_takes
    if not any(entry.source for entry in timeline.entries):
        raise Conflict(
            "Nothing has been spoken yet, so there is nothing to save. Press Read the scene first."
        )
    return Scene(timeline, {idx: _caption(idx, view, accepted) for idx, view in enumerate(views)})


def export_script(session: Session, script_format: Format) -> tuple[bytes, tuple[Notice, ...]]:
    """The lines in one of the formats of scripts, and what it leaves out.

    Subtitles are of the sound as it is exported: a line that has none there has none in them. While
    nothing has been spoken at all, their times are judged by the text.

    Raises:
        ScriptError: There are no lines.
    """
    with session.lock:
        dialog = session.document.dialog()
        views = session.views() if script_format in TIMED else []
    told = export_notices(dialog, script_format)
    if not any(view.take for view in views):
        return export_dialog(dialog, script_format), told
    silent = [number for number, view in enumerate(views, start=1) if view.samples is None]
    heard = [line for line, view in zip(dialog, views, strict=True) if view.samples is not None]
    durations_s = [view.samples / STUDIO_RATE_HZ for view in views if view.samples is not None]
    data = export_dialog(Dialog(tuple(heard)), script_format, durations_s=durations_s)
    if not silent:
        return data, told
    n_silent = f"{len(silent)} line{'s have' if len(silent) > 1 else ' has'}"
    message = f"{n_silent} no sound yet and {'are' if len(silent) > 1 else 'is'} left out."
    return data, (*told, Notice(message, silent[0]))


def _part(session: Session, idx: int, view: LineView) -> Part:
    if view.line.kind is LineKind.SILENCE:
        return SilencePart(idx, view.line.duration_s or 0.0)
    if view.take is None:
        return FailedPart(idx, view.message or "Nothing was made of this line yet.")
    return TakePart(idx, session.shelf.audio(view.take))


def _caption(idx: int, view: LineView, accepted: Collection[str]) -> Caption:
    line = view.line
    is_accepted = view.take is not None and view.take.take_id in accepted
    doubtful = () if is_accepted else tuple(doubt.message for doubt in view.doubts)
    text = line.text if line.kind is LineKind.SPEECH else None
    return Caption(idx + 1, line.speaker, text, doubtful)
