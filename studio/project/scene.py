"""A project as finished audio, or as a file that others read."""

from __future__ import annotations

from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.encode import format_of
from studio.audio.export import Caption, export_audio, export_zip
from studio.audio.timeline import FailedPart, Part, SilencePart, TakePart, Timeline, lay_out
from studio.dialog.formats.exporting import export_dialog
from studio.dialog.formats.file_format import Format
from studio.errors import Conflict
from studio.project.document import Line, LineKind
from studio.project.lines import LineView
from studio.project.session import Session


def timeline_of(session: Session) -> Timeline:
    """Chosen takes and silences in order; lines without a take are skipped and named."""
    with session.lock:
        return lay_out(_part(session, idx, view) for idx, view in enumerate(session.views()))


def export_scene(session: Session, path: Path) -> None:
    """Write what can be heard to a file: .wav, .flac or .mp3, or .zip with every line in it.

    Raises:
        BadInput: The suffix is another one.
        Conflict: Nothing was spoken yet.
        StorageFailed: It can't be written; what was there before is untouched.
    """
    with session.lock:
        timeline = timeline_of(session)
        lines = list(session.document)
    if not any(entry.source for entry in timeline.entries):
        raise Conflict("Nothing has been spoken yet, so there is nothing to save.")
    if path.suffix.lower() == ".zip":
        captions = {idx: _caption(idx, line) for idx, line in enumerate(lines)}
        export_zip(path, timeline, captions)
    else:
        format_of(path)
        export_audio(path, timeline)


def export_script(session: Session, script_format: Format) -> bytes:
    """The lines in one of the formats of scripts; subtitles have the times of the takes.

    Raises:
        ScriptError: There are no lines.
    """
    with session.lock:
        dialog = session.document.dialog()
        lengths = [view.samples for view in session.views()]
    known = [samples / STUDIO_RATE_HZ for samples in lengths if samples is not None]
    durations_s = known if len(known) == len(lengths) else None
    return export_dialog(dialog, script_format, durations_s=durations_s)


def _part(session: Session, idx: int, view: LineView) -> Part:
    if view.line.kind is LineKind.SILENCE:
        return SilencePart(idx, view.line.duration_s or 0.0)
    if view.take is None:
        return FailedPart(idx, view.message or "Nothing was made of this line yet.")
    return TakePart(idx, session.shelf.audio(view.take))


def _caption(idx: int, line: Line) -> Caption:
    return Caption(idx + 1, line.speaker, line.text if line.kind is LineKind.SPEECH else None)
