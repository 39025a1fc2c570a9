"""`render`: a script in, a finished scene out."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.cli.arguments import parse_voice
from studio.dialog.formats.importing import Imported, import_dialog
from studio.dialog.model import MAX_SCRIPT_BYTES, Notice
from studio.engine.job import FINAL_STATES, Job
from studio.engine.scene import check_export_name, export_job
from studio.errors import BadInput, Conflict, SettingError
from studio.service import RenderOptions, Studio

EXIT_ALL_RENDERED = 0
EXIT_SOME_FAILED = 1


@dataclass(frozen=True, slots=True)
class RenderArguments:
    """The command's arguments, checked."""

    script: Path
    output: Path
    voices: dict[str, Path]
    seed: int | None
    as_json: bool

    @classmethod
    def check(cls, arguments: argparse.Namespace) -> RenderArguments:
        """Check all that can be checked before anything is read.

        Raises:
            BadInput: An argument can't be used.
        """
        output: Path = arguments.output
        check_export_name(output)
        if output.is_dir() or not output.absolute().parent.is_dir():
            raise SettingError(
                f"-o {output} can't be used: it must be a file in a folder there is."
            )
        voices = dict(parse_voice(voice) for voice in arguments.voice)
        return cls(arguments.script, output, voices, arguments.seed, arguments.json)


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
    parsed = _read(arguments.script)
    _tell(parsed.notices)
    with open_studio() as studio, tempfile.TemporaryDirectory(prefix="tableread-") as folder:
        options = RenderOptions(
            seed=arguments.seed,
            voices=arguments.voices,
            audio_root=arguments.script.absolute().parent,
            folder=Path(folder),
        )
        studio.watch_load(lambda progress: print(progress.message, file=sys.stderr))
        job = studio.render(parsed.dialog, options)
        _tell(job.order.plan.notices)
        _watch(job, studio)
        written = _write(job, arguments.output)
    out = arguments.output if written else None
    _report(job, parsed, out, as_json=arguments.as_json)
    return EXIT_SOME_FAILED if job.failures() else EXIT_ALL_RENDERED


def _read(script: Path) -> Imported:
    try:
        if script.stat().st_size > MAX_SCRIPT_BYTES:
            limit_mb = MAX_SCRIPT_BYTES / 1e6
            raise BadInput(f"{script} is larger than {limit_mb:.0f} MB; cut it into scenes.")
        content = script.read_bytes()
    except OSError as error:
        raise BadInput(f"{script} can't be read: {error.strerror}.") from error
    try:
        return import_dialog(content, script.name)
    except BadInput as error:
        raise BadInput(f"{script}: {error}") from error


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
        studio.cancel(job)
        raise


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} segments", end=end, file=sys.stderr, flush=True)


def _write(job: Job, output: Path) -> bool:
    try:
        export_job(job, output)
    except Conflict:
        return False
    return True


def _report(job: Job, parsed: Imported, out: Path | None, *, as_json: bool) -> None:
    for failure in job.failures():
        print(f"Line {failure.line_number}: {failure.message}", file=sys.stderr)
    summary = job.summary()
    if as_json:
        print(json.dumps(_report_body(job, parsed, out)))
        return
    print(
        f"{out or 'Nothing was written'}: {summary.audio_s:.1f} s of audio in "
        f"{summary.wall_s:.2f} s, {summary.failed} of {len(job.records)} segments failed, "
        f"at most {summary.max_in_flight} in flight with {job.order.backend_name}"
    )


def _report_body(job: Job, parsed: Imported, out: Path | None) -> dict[str, Any]:
    summary = job.summary()
    return {
        "backend": job.order.backend_name,
        "lines": len(parsed.dialog),
        "segments": len(job.records),
        "failed": [
            {
                "segment_idx": failure.segment_idx,
                "line": failure.line_number,
                "message": failure.message,
            }
            for failure in job.failures()
        ],
        "audio_s": summary.audio_s,
        "wall_s": summary.wall_s,
        "first_audio_s": summary.first_audio_s,
        "max_in_flight": summary.max_in_flight,
        "out": str(out) if out else None,
    }


def _tell(notices: tuple[Notice, ...]) -> None:
    for notice in notices:
        place = f"Line {notice.line_number}: " if notice.line_number else ""
        print(f"{place}{notice.message}", file=sys.stderr)
