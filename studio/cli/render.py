"""`render`: a script in, a finished scene out."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from studio.audio.loudness import Loudness
from studio.audio.mastering import Mastering, target_of
from studio.audio.scene_file import SoundChoice, check_choice
from studio.cli.arguments import parse_voice
from studio.cli.render_report import Written, report, tell
from studio.dialog.formats.importing import Imported, ImportOptions, import_dialog
from studio.dialog.formats.pronunciation_files import read_pronunciations
from studio.dialog.model import MAX_SCRIPT_BYTES
from studio.dialog.pronouncing import Pronouncing
from studio.engine.job import Job
from studio.engine.record import FINAL_STATES
from studio.engine.scene import export_job
from studio.errors import BadInput, Conflict, SettingError, StorageFailed
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
    sound: SoundChoice
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
        mastering = Mastering(target_of(arguments.loudness), arguments.even)
        sound = SoundChoice(mastering, tracks=arguments.tracks, measured=True)
        check_choice(output, sound)
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
    tell(parsed.notices)
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
        tell(job.order.plan.notices)
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


def _read_pronouncing(path: Path | None) -> Pronouncing:
    if path is None:
        return Pronouncing()
    content = _content(path, "leave entries out")
    try:
        entries, notices = read_pronunciations(content, path.name)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    tell(notices)
    return Pronouncing(entries)


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
