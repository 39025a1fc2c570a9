"""Exports a project: its scene as audio, also in the background, and its script."""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np

from studio.audio.analysis import find_runs
from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.export import Caption
from studio.audio.file_tags import FileTags, find_common_language, list_names
from studio.audio.loudness import Loudness
from studio.audio.scene_file import ExportOptions, Scene
from studio.audio.timeline import (
    MAX_PACE,
    FailedPart,
    SilencePart,
    TakePart,
    Timeline,
    TimelineEntry,
    TimelinePart,
    lay_out,
    lay_out_part,
)
from studio.backends.base import canonical_name
from studio.dialog.formats.caption_writer import PauseSpan, estimate_pauses
from studio.dialog.formats.dialog_file import TIMED, Format, export_dialog, export_notices
from studio.dialog.gaps import add_gaps, read_start
from studio.dialog.model import (
    Dialog,
    Line,
    Notice,
    Silence,
    Unspoken,
    UnspokenKind,
    name_key,
)
from studio.errors import Cancelled, Conflict, NotFound, StorageFailed, StudioError
from studio.hearing.timing_files import TimedLine, place_in_scene, write_scene_captions
from studio.hearing.word_times import Alignment
from studio.project.characters import PLAIN, Character
from studio.project.cover import read_project_cover
from studio.project.document import LineKind, number_lines
from studio.project.line_states import LineState, LineView
from studio.project.render_context import RenderContext
from studio.project.session import ProjectSession
from studio.project.takes import Take, TakeStore
from studio.project.word_timing import read_words
from studio.storage.workspace import ensure_writable


def build_scene(session: ProjectSession, section: str | None = None) -> Scene:
    """Chosen takes and silences in order; lines without a take, or a damaged one, are skipped.

    Args:
        session: The project.
        section: The id of a heading; only what stands below it, up to the next one.

    Raises:
        Conflict: Nothing was spoken yet.
        NotFound: There is no such heading.
    """
    session.check_chosen_takes()
    with session.lock:
        numbered = list(enumerate(session.list_views()))
        numbers, context = number_lines(session.document), session.render_context
        accepted, name = session.document.accepted_takes, session.document.name
        language = session.document.settings.language
        if section is not None:
            numbered, name = _select_section(numbered, section)
        views = [view for _, view in numbered]
        timeline = _lay_out(session, numbered, is_part=section is not None)
    if not any(entry.source for entry in timeline.entries):
        damaged = next((view.message for view in views if view.take is None and view.message), "")
        reason = damaged or "Nothing has been spoken yet, so there is nothing to save."
        raise Conflict(f"{reason} Press Generate all first.")
    lines = [(view.line, view.take) for view in views if view.take is not None]
    spoken = [(line.speaker, take) for line, take in lines if line.speaker is not None]
    tags = FileTags(
        title=name,
        speakers=list_names(name for name, _ in spoken),
        language=language or find_common_language(take.language for _, take in spoken),
        engines=tuple(
            dict.fromkeys(canonical_name(take.backend) for _, take in spoken if take.backend)
        ),
        cover=read_project_cover(session.folder.root),
    )
    return Scene(
        timeline,
        {
            idx: replace(
                _build_caption(idx, view, accepted, context), number=numbers.get(view.line.line_id)
            )
            for idx, view in numbered
            if view.line.unspoken is None
        },
        tuple(
            (idx, view.line.text)
            for idx, view in numbered
            if view.line.unspoken is UnspokenKind.HEADING
        ),
        tags,
        lambda: write_scene_captions(
            _time_entries(session, timeline, dict(numbered))[0], timeline.duration_s
        ),
        wav_tags=session.has_wav_tags,
    )


def _lay_out(
    session: ProjectSession, numbered: Sequence[tuple[int, LineView]], *, is_part: bool = False
) -> Timeline:
    """The timeline of lines; that of a part of the scene begins with the first start in it."""
    lines = [view.line.to_dialog_line() for _, view in numbered]
    store, find_character = session.take_store, session.document.find_character
    gaps_s, starts_s = session.document.gaps.find(lines), list(map(read_start, lines))
    if is_part and (first_s := next((one for one in starts_s if one is not None), None)):
        starts_s = [None if one is None else max(0.0, one - first_s) for one in starts_s]
    return lay_out(
        _build_part(store, idx, view, find_character(view.line.speaker), gap_s, start_s)
        for (idx, view), gap_s, start_s in zip(numbered, gaps_s, starts_s, strict=True)
        if view.line.unspoken is None
    )


def _select_section(
    numbered: list[tuple[int, LineView]], line_id: str
) -> tuple[list[tuple[int, LineView]], str]:
    """The rows of a section, and its title."""
    headings = [
        place
        for place, (_, view) in enumerate(numbered)
        if view.line.unspoken is UnspokenKind.HEADING
    ]
    for place, following in pairwise([*headings, len(numbered)]):
        line = numbered[place][1].line
        if line.line_id == line_id:
            return numbered[place:following], line.text
    raise NotFound("This section isn't there any more.")


_MAX_NAMED_LINES = 20


def describe_left_out(scene: Scene) -> list[str]:
    """The lines that an export leaves out, and why, and how many end too late."""
    skipped = scene.timeline.skipped
    named = [
        f"Line {scene.captions[one.segment_idx].number}: {one.message}"
        for one in skipped[:_MAX_NAMED_LINES]
    ]
    if more := len(skipped) - len(named):
        named.append(f"{more} further lines are left out.")
    late = sorted(scene.timeline.late_s.items(), key=itemgetter(1), reverse=True)
    return named + [
        f"Line {scene.captions[idx].number} ends {late_s:.1f} s too late, though it is spoken "
        f"{MAX_PACE:g} times as fast."
        for idx, late_s in late[:_MAX_NAMED_LINES]
    ]


def export_script(
    session: ProjectSession, script_format: Format
) -> tuple[bytes, tuple[Notice, ...]]:
    """Write the lines in a script format; returns also notices of what it leaves out.

    Subtitles follow the exported audio, so lines without audio are left out. As long as no line has
    audio, times are estimated from the text.
    """
    if script_format in TIMED:
        session.check_chosen_takes()
    with session.lock:
        dialog = session.document.to_dialog()
        views = session.list_views() if script_format in TIMED else []
        gaps_s = list(session.document.gaps.find(dialog)) if views else []
        timeline = _lay_out(session, list(enumerate(views)))
    notices = export_notices(dialog, script_format)
    if not any(view.take for view in views):
        return export_dialog(add_gaps(dialog, gaps_s), script_format), notices
    silent = [number for number, view in enumerate(views, start=1) if view.samples is None]
    timed = list(_list_timed(dialog, timeline))
    pauses = {
        at: [(a / entry.pace, b / entry.pace) for a, b in _find_pauses(session.take_store, take)]
        for at, (_, _, entry) in enumerate(timed)
        if entry is not None and (take := views[entry.segment_idx].take) is not None
    }
    data = export_dialog(
        Dialog(tuple(line for line, _, _ in timed)),
        script_format,
        durations_s=[duration_s for _, duration_s, _ in timed],
        pauses=pauses,
    )
    if not silent:
        return data, notices
    message = f"{len(silent)} lines have no sound yet and are left out."
    if len(silent) == 1:
        message = "1 line has no sound yet and is left out."
    return data, (*notices, Notice(message, silent[0]))


def _list_timed(
    dialog: Dialog, timeline: Timeline
) -> Iterator[tuple[Line, float, TimelineEntry | None]]:
    """The lines that last, with their durations and places, and the gaps without one.

    What isn't spoken takes no time.
    """
    placed = {entry.segment_idx: entry for entry in timeline.entries}
    end_sample = 0
    for idx, line in enumerate(dialog):
        if entry := placed.get(idx):
            if gap_s := (entry.start_sample - end_sample) / STUDIO_RATE_HZ:
                yield Silence(gap_s), gap_s, None
            yield line, entry.duration_s, entry
            end_sample = entry.end_sample
        elif isinstance(line, Unspoken):
            yield line, 0.0, None


def time_lines(session: ProjectSession) -> tuple[list[TimedLine], float, list[str]]:
    """What is said when in a scene; words that aren't timed yet are timed now.

    Returns:
        The lines that are spoken, with times of the scene; its length in seconds; and why lines
        have no words, if any have none.

    Raises:
        Conflict: Nothing was spoken yet.
    """
    scene = build_scene(session)
    views = dict(enumerate(session.list_views()))
    lines, problems = _time_entries(session, scene.timeline, views)
    return lines, scene.timeline.duration_s, problems


def _time_entries(
    session: ProjectSession, timeline: Timeline, views: Mapping[int, LineView]
) -> tuple[list[TimedLine], list[str]]:
    numbers = number_lines(session.document)
    found, problems = [], []
    names: dict[str, str] = {}  # as each is written first
    for entry in timeline.entries:
        view = views.get(entry.segment_idx)
        if view is None or view.take is None or view.line.kind is not LineKind.SPEECH:
            continue
        said = Alignment()
        try:
            said = read_words(session.time_words(view.take))
        except StudioError as error:
            number = numbers.get(view.line.line_id, entry.segment_idx + 1)
            problems.append(f"Line {number} has no words: {error}")
        line = TimedLine(
            entry.segment_idx + 1,
            names.setdefault(name_key(view.line.speaker or ""), view.line.speaker or ""),
            view.take.text,
            entry.start_s,
            entry.start_s + entry.duration_s,
            language=view.take.language,
        )
        found.append(place_in_scene(line, said, pace=entry.pace))
    return found, problems


def _find_pauses(take_store: TakeStore, take: Take) -> list[PauseSpan]:
    """The pauses inside a take; searched for in its audio if its record has none.

    A pause is digital silence at least as long as its tag says; the words that a backend speaks
    may begin and end with more of it. Where there are several, it is the one nearest to the place
    that the text suggests.
    """
    duration_s = take.samples / STUDIO_RATE_HZ
    if take.pauses is not None:
        return [(a / STUDIO_RATE_HZ, b / STUDIO_RATE_HZ) for a, b in take.pauses]
    expected = estimate_pauses(take.text, duration_s)
    if not expected:
        return expected
    try:
        timeline = lay_out_part(TakePart(0, take_store.get_audio_path(take)))
        samples = np.concatenate(list(timeline.blocks()))
    except StorageFailed:
        return expected
    silences = [(a / STUDIO_RATE_HZ, b / STUDIO_RATE_HZ) for a, b in find_runs(samples == 0)]
    return list(_match_silences(expected, silences))


def _match_silences(expected: list[PauseSpan], silences: list[PauseSpan]) -> Iterator[PauseSpan]:
    """For each pause, the nearest silence that is as long, after those before it."""
    free_from_s = 0.0
    for begin_s, end_s in expected:
        shortest_s = end_s - begin_s - 1 / STUDIO_RATE_HZ  # a pause is rounded to a sample
        fitting = [(a, b) for a, b in silences if a >= free_from_s and b - a >= shortest_s]
        middle_s = (begin_s + end_s) / 2
        found = min(fitting, key=lambda span: abs(sum(span) / 2 - middle_s), default=None)
        span = found or (max(begin_s, free_from_s), max(end_s, free_from_s))
        free_from_s = span[1]
        yield span


def _build_part(
    take_store: TakeStore,
    idx: int,
    view: LineView,
    character: Character = PLAIN,
    gap_s: float = 0.0,
    start_s: float | None = None,
) -> TimelinePart:
    if view.line.kind is LineKind.SILENCE:
        return SilencePart(idx, view.line.duration_s or 0.0)
    if view.take is None:
        return FailedPart(idx, view.message or "Nothing was made of this line yet.")
    path = take_store.get_audio_path(view.take)
    return TakePart(idx, path, character.level_db, gap_s, character.pan, start_s)


def _build_caption(
    idx: int, view: LineView, accepted: Collection[str], context: RenderContext
) -> Caption:
    line = view.line
    is_accepted = view.take is not None and view.take.take_id in accepted
    doubtful = () if is_accepted else tuple(doubt.message for doubt in view.issues)
    text = line.text if line.kind is LineKind.SPEECH else None
    at_s: Mapping[str, float] = {}
    engine = voice = ""
    if view.take is not None:
        at_s, engine = view.take.at_s, canonical_name(view.take.backend)
        found = context.find_voice(line.speaker or "")
        if engine and found is not None and view.state is LineState.READY:
            voice = found.title or found.label
    return Caption(
        idx + 1,
        line.speaker,
        text,
        doubtful,
        at_s,
        line.line_id,
        params=line.params,
        engine=engine,
        voice=voice,
    )


log = logging.getLogger(__name__)

MAX_RUNNING = 2
"""Most exports of one workspace at once."""

MAX_FINISHED = 2
"""Most finished files of one workspace; a new one evicts the oldest."""

FINISHED_RETENTION_S = 600.0
"""How long a finished file can be fetched."""

FAULT_MESSAGE = "The studio failed at this, and its log says why. Try again."


class ExportState(StrEnum):
    """The state of an export."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SceneExportSpec:
    """What to export; a repeated request joins the export that is running.

    Attributes:
        project_id: The project.
        scene: Its audio at the time of the request.
        suffix: The file's suffix, with its dot.
        options: The export options.
    """

    project_id: str
    scene: Scene
    suffix: str
    options: ExportOptions


class SceneExport:
    """One export.

    Attributes:
        export_id: Can't be guessed.
        spec: What to export.
        state: Its state.
        progress: From 0 to 1.
        message: Why it failed.
        loudness: The measured loudness of the finished file.
    """

    def __init__(self, order: SceneExportSpec, folder: Path, on_change: Callable[[], None]) -> None:
        self.export_id = secrets.token_hex(8)
        self.spec = order
        self.state = ExportState.RUNNING
        self.progress = 0.0
        self.message: str | None = None
        self.loudness: Loudness | None = None
        self._folder = folder
        self._on_change = on_change
        self._stopped = threading.Event()

    @property
    def path(self) -> Path:
        return self._folder / f"scene{self.spec.suffix}"

    def run(self) -> None:
        """Write the file until it is finished or stopped; never raises."""
        spec = self.spec
        try:
            self.loudness = spec.scene.write(
                self.path, spec.options, on_progress=self._report_progress
            )
        except Cancelled:
            self._end(ExportState.CANCELLED)
        except StudioError as error:
            self._end(ExportState.FAILED, str(error))
        except Exception:
            # Broad, as this is the top of a thread: the log gets the fault, and the page a message.
            log.exception("An export of %s failed.", self.spec.project_id)
            self._end(ExportState.FAILED, FAULT_MESSAGE)
        else:
            self._end(ExportState.DONE)

    def stop(self) -> None:
        """Stop it at its next block, or delete the finished file."""
        self._stopped.set()

    def keep_available(self, kept_s: float) -> None:
        """Keep the finished file for a while or until it is stopped, then delete it."""
        if self.state is ExportState.DONE:
            self._stopped.wait(kept_s)
        self._remove()

    def _report_progress(self, share: float) -> None:
        if self._stopped.is_set():
            raise Cancelled("The export was stopped.")
        is_news = int(100 * share) > int(100 * self.progress)  # written in thousands of blocks
        self.progress = share
        if is_news:
            self._on_change()

    def _end(self, state: ExportState, message: str | None = None) -> None:
        if state is not ExportState.DONE:
            self._remove()
        self.message = message
        # Last, so that a reader of the state finds the rest set.
        self.state = state
        self._on_change()

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class SceneExports:
    """The exports of one workspace; safe from any thread."""

    def __init__(
        self, folder: Path, turns: threading.Semaphore, on_change: Callable[[], None]
    ) -> None:
        """Write files to a folder, taking turns with other workspaces.

        `on_change` is called from any thread when one is begun, gets further, ends or goes.
        """
        self._folder = folder
        self._slots = turns
        self._on_change = on_change
        # Guards the table.
        self._lock = threading.Lock()
        self._exports: dict[str, SceneExport] = {}

    def begin(self, order: SceneExportSpec) -> SceneExport:
        """Start an export, or return a running one of the same spec.

        Raises:
            Conflict: Too many are running.
        """
        with self._lock:
            running = [one for one in self._exports.values() if one.state is ExportState.RUNNING]
            for one in running:
                if one.spec == order:
                    return one
            if len(running) >= MAX_RUNNING:
                raise Conflict("Two files of sound are being made already. Wait, or cancel one.")
            folder = tempfile.mkdtemp(prefix="export-", dir=ensure_writable(self._folder))
            export = SceneExport(order, Path(folder), self._on_change)
            gone = self._make_room()
            self._exports[export.export_id] = export
        for one in gone:
            one.stop()
        self._on_change()
        threading.Thread(target=self._run, args=(export,), name="export", daemon=True).start()
        return export

    def list_all(self) -> tuple[SceneExport, ...]:
        """Those that run, and those whose file can be fetched or that failed, oldest first."""
        with self._lock:
            return tuple(self._exports.values())

    def find(self, project_id: str, export_id: str) -> SceneExport:
        """An export by its id.

        Raises:
            NotFound: It never existed, was stopped, or is too old.
        """
        with self._lock:
            export = self._exports.get(export_id)
        if export is None or export.spec.project_id != project_id:
            raise NotFound("This file isn't there any more. Export the audio again.")
        return export

    def drop(self, export: SceneExport) -> None:
        """Stop an export and remove it; its thread deletes its file."""
        with self._lock:
            self._exports.pop(export.export_id, None)
        export.stop()
        self._on_change()

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
