"""`render`: a script in, a finished scene out."""

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
from studio.dialog.formats.importing import Imported, ImportOptions, import_dialog
from studio.dialog.formats.pronunciation_lists import read_pronunciations
from studio.dialog.model import MAX_SCRIPT_BYTES, Notice
from studio.dialog.pronunciation import PronunciationRules
from studio.engine.job import FINAL_STATES, Job, SegmentFailure
from studio.engine.job_results import SegmentIssues, export_job, find_segment_issues
from studio.errors import BadInput, Conflict, SettingError, StorageFailed
from studio.services.studio import RenderOptions, Studio

_CUT = "What was made of it isn't whole and is left out."
_RESPOKEN = "It was begun again with another seed, and came to its end."
_RETRIED = "It was spoken again with another seed, and the better one is kept."


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written, what it holds, and how it was wished."""

    out: Path
    loudness: Loudness
    sound: ExportOptions


def report(job: Job, lines: int, written: Written | None, *, as_json: bool) -> None:
    """Name the lines that failed or were cut on standard error; the sum goes to standard output.

    Args:
        job: One that is over.
        lines: Lines of the script.
        written: The file; None when there is none.
        as_json: Whether a program reads the sum.
    """
    for failure in job.failures():
        _say(failure, _CUT if failure.cut else "")
    for again in job.second_tries():
        _say(again, _RETRIED if job.order.tries > 1 else _RESPOKEN)
    for one in find_segment_issues(job):
        print(f"Line {one.line_number} may not be right: {one.message}", file=sys.stderr)
    for remark in describe_result(written.loudness, written.sound) if written else ():
        print(remark, file=sys.stderr)
    print(json.dumps(_body(job, lines, written)) if as_json else _sum(job, written))


def print_report(notices: Iterable[Notice]) -> None:
    """Show what a script may not mean, on standard error."""
    for notice in notices:
        place = f"Line {notice.line_number}: " if notice.line_number else ""
        print(f"{place}{notice.message}", file=sys.stderr)


def _say(failure: SegmentFailure, more: str) -> None:
    print(f"Line {failure.line_number}: {failure.message} {more}".rstrip(), file=sys.stderr)


def _sum(job: Job, written: Written | None) -> str:
    summary = job.summary()
    told = (
        f"{written.out if written else 'Nothing was written'}: {summary.audio_s:.1f} s of audio in "
        f"{summary.wall_s:.2f} s, {summary.failed} of {len(job.records)} segments failed, "
        f"at most {summary.max_in_flight} in flight with {job.order.backend_name}"
    )
    return f"{told}, {written.loudness}" if written else told


def _body(job: Job, lines: int, written: Written | None) -> dict[str, Any]:
    summary = job.summary()
    return {
        "backend": job.order.backend_name,
        "lines": lines,
        "segments": len(job.records),
        "failed": [_entry(failure) | {"cut": failure.cut} for failure in job.failures()],
        "second_tries": [_entry(again) for again in job.second_tries()],
        "doubtful": [_doubtful_entry(one) for one in find_segment_issues(job)],
        "audio_s": summary.audio_s,
        "wall_s": summary.wall_s,
        "first_audio_s": summary.first_audio_s,
        "max_in_flight": summary.max_in_flight,
        "out": str(written.out) if written else None,
        "loudness_lufs": _rounded(written.loudness.lufs) if written else None,
        "true_peak_db": _rounded(written.loudness.true_peak_db) if written else None,
    }


def _rounded(level_db: float | None) -> float | None:
    return None if level_db is None else round(level_db, 2)


def _doubtful_entry(one: SegmentIssues) -> dict[str, Any]:
    kinds = [doubt.kind for doubt in one.doubts]
    place = {"segment_idx": one.segment_idx, "line": one.line_number}
    return {**place, "kinds": kinds, "message": one.message}


def _entry(failure: SegmentFailure) -> dict[str, Any]:
    return {
        "segment_idx": failure.segment_idx,
        "line": failure.line_number,
        "message": failure.message,
    }


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
        """Check all that can be checked before anything is read.

        Raises:
            BadInput: An argument can't be used.
        """
        output: Path = arguments.output
        mastering = Mastering(parse_target(arguments.loudness), arguments.even)
        sound = ExportOptions(mastering, tracks=arguments.tracks, measured=True)
        check_export_options(output, sound)
        if output.is_dir() or not output.absolute().parent.is_dir():
            raise SettingError(
                f"-o {output} can't be used: it must be a file in a folder there is."
            )
        _check_writable(output)
        voices = dict(parse_voice(voice) for voice in arguments.voice)
        return cls(
            arguments.script,
            output,
            voices,
            arguments.seed,
            sound,
            arguments.tries,
            arguments.json,
            arguments.pronunciations,
            arguments.narrator,
        )


def run_render(arguments: RenderArguments, open_studio: Callable[[], Studio]) -> int:
    """Render a script to a file.

    Args:
        arguments: What to render, and where to.
        open_studio: Makes the studio; called only when the script could be read.

    Returns:
        0 when every line was rendered, 1 when some failed and the rest was written.

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
        studio.watch_load(lambda progress: print(progress.message, file=sys.stderr))
        job = studio.render(parsed.dialog, options)
        print_report(job.order.plan.notices)
        _watch(job, studio)
        loudness = _write(job, arguments, folder)
    written = Written(arguments.output, loudness, arguments.sound) if loudness else None
    report(job, len(parsed.dialog), written, as_json=arguments.as_json)
    return EXIT_SOME_FAILED if job.failures() else EXIT_ALL_RENDERED


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
        studio.cancel(job)
        raise


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} segments", end=end, file=sys.stderr, flush=True)


def _write(job: Job, arguments: RenderArguments, folder: Path) -> Loudness | None:
    try:
        return export_job(job, arguments.output, arguments.sound)
    except Conflict:
        return None
    except (StorageFailed, BadInput) as error:
        raise _Kept(
            f"{error} Nothing is lost: the lines that were made are in {folder}."
        ) from error


class _Kept(StorageFailed):
    """The scene couldn't be written after all was made; the folder of its segments stays."""


@contextmanager
def _kept_if_needed() -> Iterator[Path]:
    """A folder that is gone at the end, unless what it holds is all that there is."""
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
    """See that a file can be made where the scene goes: an hour later it would be too late."""
    try:
        with tempfile.NamedTemporaryFile(dir=output.absolute().parent, prefix=".tableread-"):
            pass
    except OSError as error:
        raise SettingError(
            f"-o {output} can't be written: {error.strerror}. Choose a folder you may write to."
        ) from error
