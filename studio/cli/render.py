"""`render`: renders a script to an audio file, and reports on standard error."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.audio.loudness import Loudness
from studio.audio.mastering import Mastering, parse_target
from studio.audio.scene_file import ExportOptions, check_export_options, describe_result
from studio.cli.arguments import parse_voice
from studio.dialog.formats.dialog_file import Imported, ImportOptions, import_dialog
from studio.dialog.formats.pronunciation_lists import read_pronunciations
from studio.dialog.model import MAX_SCRIPT_BYTES, Notice
from studio.dialog.pronunciation import PronunciationRules
from studio.engine.job import (
    FINAL_STATES,
    Job,
    SegmentFailure,
    SegmentIssues,
    build_scene,
    find_segment_issues,
)
from studio.errors import BadInput, Conflict, SettingError, StorageFailed
from studio.services.studio import RenderOptions, Studio

_CUT = "What was made of it isn't whole and is left out."
_RESPOKEN = "It was begun again with another seed, and came to its end."
_RETRIED = "It was spoken again with another seed, and the better one is kept."


@dataclass(frozen=True, slots=True)
class Written:
    """The file that was written, its measured loudness, and the options that were asked for."""

    out: Path
    loudness: Loudness
    sound: ExportOptions


def report(job: Job, lines: int, written: Written | None, *, as_json: bool) -> None:
    """Report failed, cut and doubtful lines on standard error, and a summary on standard output.

    Args:
        job: One that has ended.
        lines: How many lines the script has.
        written: The file; None if none was written.
        as_json: Whether the summary is a JSON object, for a program.
    """
    for failure in job.list_failures():
        _say(failure, _CUT if failure.cut else "")
    for again in job.list_retries():
        _say(again, _RETRIED if job.spec.tries > 1 else _RESPOKEN)
    for one in find_segment_issues(job):
        print(f"Line {one.line_number} may not be right: {one.message}", file=sys.stderr)
    for remark in describe_result(written.loudness, written.sound) if written else ():
        print(remark, file=sys.stderr)
    print(json.dumps(_body(job, lines, written)) if as_json else _sum(job, written))


def print_report(notices: Iterable[Notice]) -> None:
    """Print the notices about a script on standard error."""
    for notice in notices:
        place = f"Line {notice.line_number}: " if notice.line_number else ""
        print(f"{place}{notice.message}", file=sys.stderr)


def _say(failure: SegmentFailure, more: str) -> None:
    print(f"Line {failure.line_number}: {failure.message} {more}".rstrip(), file=sys.stderr)


def _sum(job: Job, written: Written | None) -> str:
    summary = job.summarize()
    text = (
        f"{written.out if written else 'Nothing was written'}: {summary.audio_s:.1f} s of audio in "
        f"{summary.wall_s:.2f} s, {summary.failed} of {len(job.records)} segments failed, "
        f"at most {summary.max_in_flight} in flight with {job.spec.backend_name}"
    )
    return f"{text}, {written.loudness}" if written else text


def _body(job: Job, lines: int, written: Written | None) -> dict[str, Any]:
    summary = job.summarize()
    return {
        "backend": job.spec.backend_name,
        "lines": lines,
        "segments": len(job.records),
        "failed": [_entry(failure) | {"cut": failure.cut} for failure in job.list_failures()],
        "second_tries": [_entry(again) for again in job.list_retries()],
        "doubtful": [
            _entry(one) | {"kinds": [issue.kind for issue in one.issues]}
            for one in find_segment_issues(job)
        ],
        "audio_s": summary.audio_s,
        "wall_s": summary.wall_s,
        "first_audio_s": summary.first_audio_s,
        "max_in_flight": summary.max_in_flight,
        "timestamps": [
            {
                "segment_idx": record.segment.segment_idx,
                "line": record.segment.line_number,
                "at_s": record.timestamps_s,
            }
            for record in job.records
        ],
        "out": str(written.out) if written else None,
        "loudness_lufs": _rounded(written.loudness.lufs) if written else None,
        "true_peak_db": _rounded(written.loudness.true_peak_db) if written else None,
    }


def _rounded(level_db: float | None) -> float | None:
    return None if level_db is None else round(level_db, 2)


def _entry(one: SegmentFailure | SegmentIssues) -> dict[str, Any]:
    return {"segment_idx": one.segment_idx, "line": one.line_number, "message": one.message}


EXIT_ALL_RENDERED = 0
EXIT_SOME_FAILED = 1


@dataclass(frozen=True, slots=True)
class RenderArguments:
    """The command's arguments, checked."""

    script: Path
    output: Path
    voices: dict[str, Path]
    seed: int | None
    sound: ExportOptions
    tries: int
    as_json: bool
    pronunciations: Path | None = None
    narrator: str | None = None

    @classmethod
    def check(cls, arguments: argparse.Namespace) -> RenderArguments:
        """Check the arguments before anything is read.

        Raises:
            BadInput: An argument can't be used.
        """
        output: Path = arguments.output
        mastering = Mastering(parse_target(arguments.loudness), arguments.even)
        sound = ExportOptions(mastering, tracks=arguments.tracks, is_measured=True)
        check_export_options(output, sound)
        if output.is_dir() or not output.absolute().parent.is_dir():
            raise SettingError(
                f"-o {output} can't be used: it must be a file in a folder there is."
            )
        _check_writable(output)
        voices = dict(parse_voice(voice) for voice in arguments.voice)
        seed, tries, as_json = arguments.seed, arguments.tries, arguments.json
        lists, narrator = arguments.pronunciations, arguments.narrator
        return cls(arguments.script, output, voices, seed, sound, tries, as_json, lists, narrator)


def run_render(arguments: RenderArguments, open_studio: Callable[[], Studio]) -> int:
    """Render a script to a file.

    Args:
        arguments: What to render, and to which file.
        open_studio: Opens the studio; called only once the script has been read.

    Returns:
        0 if every line was rendered, 1 if some failed and the rest was written.

    Raises:
        StudioError: Nothing was written.
    """
    parsed = _read(arguments.script, arguments.narrator)
    print_report(parsed.notices)
    pronouncing = _read_pronouncing(arguments.pronunciations)
    with open_studio() as studio, _kept_if_needed() as folder:
        options = RenderOptions(
            seed=arguments.seed,
            voices=arguments.voices,
            audio_root=arguments.script.absolute().parent,
            folder=folder,
            tries=arguments.tries,
            pronounce=pronouncing.spoken,
        )
        loads = studio.engine.models.get_manager(studio.backend_name).listeners
        loads.append(lambda progress: print(progress.message, file=sys.stderr))
        job = studio.render(parsed.dialog, options)
        print_report(job.spec.plan.notices)
        _watch(job, studio)
        loudness = _write(job, arguments, folder)
    written = Written(arguments.output, loudness, arguments.sound) if loudness else None
    report(job, len(parsed.dialog), written, as_json=arguments.as_json)
    return EXIT_SOME_FAILED if job.list_failures() else EXIT_ALL_RENDERED


def _read(script: Path, narrator: str | None) -> Imported:
    content = _content(script, "cut it into scenes")
    try:
        return import_dialog(content, script.name, ImportOptions(narrator=narrator))
    except BadInput as error:
        raise BadInput(f"{script}: {error}") from error


def _read_pronouncing(path: Path | None) -> PronunciationRules:
    if path is None:
        return PronunciationRules()
    content = _content(path, "leave entries out")
    try:
        entries, notices = read_pronunciations(content, path.name)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    print_report(notices)
    return PronunciationRules(entries)


def _content(path: Path, remedy: str) -> bytes:
    try:
        if path.stat().st_size > MAX_SCRIPT_BYTES:
            limit_mb = MAX_SCRIPT_BYTES / 1e6
            raise BadInput(f"{path} is larger than {limit_mb:.0f} MB; {remedy}.")
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}.") from error


def _watch(job: Job, studio: Studio) -> None:
    """Show progress on standard error until the job ends; Ctrl+C cancels it."""
    total = len(job.records)
    final = 0
    try:
        for event in job.events.follow():
            if event.segment_idx is not None and event.state in FINAL_STATES:
                final += 1
                _show_progress(final, total)
    except KeyboardInterrupt:
        print("Stopping: the lines being spoken end at their next step.", file=sys.stderr)
        studio.engine.cancel(job)
        raise


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} segments", end=end, file=sys.stderr, flush=True)


def _write(job: Job, arguments: RenderArguments, folder: Path) -> Loudness | None:
    try:
        return build_scene(job).write(arguments.output, arguments.sound)
    except Conflict:
        return None
    except (StorageFailed, BadInput) as error:
        raise _Kept(
            f"{error} Nothing is lost: the lines that were made are in {folder}."
        ) from error


class _Kept(StorageFailed):
    """The rendered scene couldn't be written; the folder of its segments stays."""


@contextmanager
def _kept_if_needed() -> Iterator[Path]:
    """A temporary folder, kept if the rendered segments in it could not be written elsewhere."""
    folder = Path(tempfile.mkdtemp(prefix="tableread-"))
    try:
        yield folder
    except _Kept:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder)


def _check_writable(output: Path) -> None:
    """Check before the render, not an hour later, that the output folder can be written to."""
    try:
        with tempfile.NamedTemporaryFile(dir=output.absolute().parent, prefix=".tableread-"):
            pass
    except OSError as error:
        raise SettingError(
            f"-o {output} can't be written: {error.strerror}. Choose a folder you may write to."
        ) from error
