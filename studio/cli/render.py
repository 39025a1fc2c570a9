"""`render`: renders a script to files or standard output, and reports on standard error."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from studio.audio.export import check_names
from studio.audio.file_tags import Cover, read_cover
from studio.audio.kept_loudness import LoudnessStore
from studio.audio.loudness import Loudness
from studio.audio.mastering import Mastering, parse_target
from studio.audio.podcast_files import PODCAST_FILES
from studio.audio.scene_file import ExportOptions, Scene, check_export_options, describe_result
from studio.backends.base import Backend
from studio.cli.arguments import STANDARD, check_script, parse_voice
from studio.cli.character_option import (
    check_characters,
    list_voices,
    merge_params,
    parse_character,
)
from studio.cli.render_captions import write_captions
from studio.dialog.attributes import check_language
from studio.dialog.documents.reading import MAX_DOCUMENT_BYTES
from studio.dialog.formats.dialog_file import (
    DEFAULT_IMPORT,
    TIMED,
    Imported,
    ImportOptions,
    format_of_suffix,
    import_dialog,
)
from studio.dialog.formats.pronunciation_lists import read_pronunciations
from studio.dialog.gaps import check_gap
from studio.dialog.model import (
    MAX_SCRIPT_BYTES,
    Dialog,
    Notice,
    Speech,
    Unspoken,
    matching_language,
)
from studio.dialog.pronunciation import IN_WORDS, PronunciationRules
from studio.engine.job import (
    FINAL_STATES,
    Job,
    SegmentFailure,
    SegmentIssues,
    build_scene,
    find_segment_issues,
)
from studio.errors import BadInput, Conflict, SettingError, StorageFailed
from studio.hearing.timing_files import (
    TimedLine,
    timing_format_of,
    write_scene_captions,
    write_timing,
)
from studio.project.characters import Character
from studio.services.line_checks import check_settings
from studio.services.render_timings import time_render
from studio.services.studio import RenderOptions, Studio
from studio.storage.disk import open_atomic, storage_errors

_CUT = "What was made of it isn't whole and is left out."
_RESPOKEN = "It was begun again with another seed, and came to its end."
_RETRIED = "It was spoken again with another seed, and the better one is kept."


@dataclass(frozen=True, slots=True)
class Written:
    """The first file that was written, its loudness if it is sound, and how it was made."""

    out: Path
    loudness: Loudness | None
    sound: ExportOptions


def report(job: Job, lines: int, written: Written | None, arguments: RenderArguments) -> None:
    """Report failed, cut and doubtful lines on standard error, and a summary on standard output.

    Where the sound goes to standard output, the summary goes to standard error too.

    Args:
        job: One that has ended.
        lines: How many lines the script has.
        written: The first file; None if none was written.
        arguments: What was asked for.
    """
    for failure in job.list_failures():
        _say(failure, _CUT if failure.cut else "")
    if not arguments.quiet:
        for again in job.list_retries():
            _say(again, _RETRIED if job.spec.tries > 1 else _RESPOKEN)
        for one in find_segment_issues(job):
            print(f"Line {one.line_number} may not be right: {one.message}", file=sys.stderr)
        loudness = written.loudness if written else None
        for remark in describe_result(loudness, arguments.sound) if loudness else ():
            print(remark, file=sys.stderr)
    stream = sys.stderr if STANDARD in arguments.outputs else sys.stdout
    if arguments.as_json:
        print(json.dumps(_body(job, lines, written)), file=stream)
    elif not arguments.quiet:
        print(_sum(job, written), file=stream)


def print_report(notices: Iterable[Notice]) -> None:
    """Print the notices about a script on standard error."""
    for notice in notices:
        place = f"Line {notice.line_number}: " if notice.line_number else ""
        print(f"{place}{notice.message}", file=sys.stderr)


def _say(failure: SegmentFailure, more: str) -> None:
    print(f"Line {failure.line_number}: {failure.message} {more}".rstrip(), file=sys.stderr)


def _sum(job: Job, written: Written | None) -> str:
    summary = job.summarize()
    n_lines = len(job.spec.plan.number_lines())
    failed = {job.records[one.segment_idx].segment.line_idx for one in job.list_failures()}
    text = (
        f"{written.out if written else 'Nothing was written'}: {summary.audio_s:.1f} s of audio in "
        f"{summary.wall_s:.2f} s, {len(failed)} of {n_lines} lines failed, "
        f"at most {summary.max_in_flight} in flight with {job.spec.backend_name}"
    )
    return f"{text}, {written.loudness}" if written and written.loudness else text


def _body(job: Job, lines: int, written: Written | None) -> dict[str, Any]:
    summary = job.summarize()
    loudness = written.loudness if written else None
    return {
        "backend": job.spec.backend_name,
        "lines": lines,
        "segments": len(job.records),
        "failed": [_entry(failure) | {"cut": failure.cut} for failure in job.list_failures()],
        "second_tries": [_entry(again) for again in job.list_retries()],
        "tries": [
            {
                "segment_idx": record.segment.segment_idx,
                "line": record.segment.line_number,
                "seed": one.seed,
                "score": one.score,
                "kinds": [issue.kind for issue in one.issues],
                "message": one.message,
                "used": number == record.best_try,
            }
            for record in job.records
            if len(record.tries) > 1
            for number, one in enumerate(record.tries)
        ],
        "doubtful": [
            _entry(one) | {"kinds": [issue.kind for issue in one.issues]}
            for one in find_segment_issues(job)
        ],
        "audio_s": summary.audio_s,
        "wall_s": summary.wall_s,
        "first_audio_s": summary.first_audio_s,
        "max_in_flight": summary.max_in_flight,
        "device_busy_s": round(summary.device_busy_s, 6),
        "timestamps": [
            {
                "segment_idx": record.segment.segment_idx,
                "line": record.segment.line_number,
                "at_s": record.timestamps_s,
            }
            for record in job.records
        ],
        "out": str(written.out) if written else None,
        "loudness_lufs": _rounded(loudness.lufs) if loudness else None,
        "true_peak_db": _rounded(loudness.true_peak_db) if loudness else None,
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
    outputs: tuple[Path, ...]
    voices: dict[str, Path | str]
    seed: int | None
    sound: ExportOptions
    tries: int
    as_json: bool
    pronunciations: Path | None = None
    reading: ImportOptions = DEFAULT_IMPORT
    language: str | None = None
    speed: float | None = None
    audio_format: str = "wav"
    quiet: bool = False
    title: str | None = None
    cover: Cover | None = None
    keep_tries: Path | None = None
    characters: Mapping[str, Character] = field(default_factory=dict)
    gap_s: float = 0.0

    def describe(self, scene: Scene, output: Path, studio: Studio, title: str | None) -> Scene:
        """A scene with the tags that were asked for; `title` is that of the script."""
        if self.title is not None:
            title = self.title
        elif title is None:
            title = "" if output == STANDARD else output.stem
        described = studio.describe_scene(scene, title)
        return replace(described, tags=replace(described.tags, cover=self.cover))

    @classmethod
    def check(cls, arguments: argparse.Namespace) -> RenderArguments:
        """Check the arguments before anything is read.

        Raises:
            BadInput: An argument can't be used.
        """
        check_script(arguments)
        mastering = Mastering(parse_target(arguments.loudness), arguments.even)
        sound = ExportOptions(
            mastering,
            tracks=arguments.tracks,
            is_measured=True,
            kbps=arguments.bitrate,
            names=check_names(arguments.names),
            podcast=arguments.podcast,
            captions=arguments.captions,
        )
        outputs = tuple(dict.fromkeys(arguments.output))
        for output in outputs:
            if output == STANDARD:
                _check_standard_output(sound)
            else:
                _check_output(output, sound)
                _check_companions(output, outputs, sound)
        return cls(
            arguments.script,
            outputs,
            dict(parse_voice(voice) for voice in arguments.voice),
            arguments.seed,
            sound,
            arguments.tries,
            arguments.json,
            arguments.pronunciations,
            ImportOptions(arguments.narrator, arguments.fit),
            None if arguments.language is None else check_language(arguments.language),
            arguments.speed,
            arguments.format,
            arguments.quiet,
            arguments.title,
            None if arguments.cover is None else read_cover(arguments.cover),
            _check_tries_folder(arguments.keep_tries),
            dict(map(parse_character, arguments.character)),
            check_gap(arguments.gap),
        )

    def apply(self, dialog: Dialog, backend: Backend) -> Dialog:
        """A dialog with the language and the speed that were asked for, where lines name none.

        Raises:
            SettingError: The backend doesn't speak the language.
            BadInput: The speed is out of its range.
        """
        can = backend.capabilities
        language = self.language
        if language is not None and can.languages:
            language = matching_language(language, frozenset(can.languages))
            if language is None:
                raise SettingError(
                    f"--language {self.language} can't be used: {backend.title} speaks "
                    f"{', '.join(sorted(can.languages))}."
                )
        check_characters(self.characters.values(), backend)
        params = can.check_params(backend.title, {"speed": self.speed})
        if language is None and not params:
            return dialog
        return Dialog(
            tuple(
                replace(
                    line,
                    language=line.language or language,
                    params=merge_params(line, params, self.characters),
                )
                if isinstance(line, Speech)
                else line
                for line in dialog
            )
        )


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
    parsed = read_script(arguments.script, arguments.reading)
    notice = (lambda notices: None) if arguments.quiet else print_report
    notice(parsed.notices)
    pronouncing = _read_pronouncing(arguments.pronunciations, notice)
    with open_studio() as studio, _kept_if_needed() as folder:
        options = RenderOptions(
            seed=arguments.seed,
            voices={**list_voices(arguments.characters), **arguments.voices},
            audio_root=None if arguments.script == STANDARD else arguments.script.absolute().parent,
            folder=folder,
            tries=arguments.tries,
            rules=pronouncing,
            characters=arguments.characters,
            gap_s=arguments.gap_s,
        )
        manager = studio.engine.models.get_manager(studio.backend_name)
        check_settings(parsed.dialog, manager.backend, studio.backends().values())
        dialog = arguments.apply(parsed.dialog, manager.backend)
        if not arguments.quiet:
            manager.listeners.append(lambda progress: print(progress.message, file=sys.stderr))
        notice([Notice(one) for one in studio.speakers.list_problems()])
        notice(_explain_voices(arguments.voices, manager.backend))
        job = studio.render(dialog, options)
        notice(job.spec.plan.notices)
        _watch(job, studio, ProgressBar(sys.stderr, quiet=arguments.quiet))
        _check_saved(job, folder)
        if arguments.keep_tries is not None:
            _copy_tries(job, arguments.keep_tries)
        documents = _Documents(
            partial(write_captions, job, dialog, pronouncing.spoken),
            lambda: time_render(job, dialog, studio.aligner, pronouncing),
            notice,
        )
        describe = partial(arguments.describe, studio=studio, title=parsed.title)
        written = _write(job, arguments, folder, documents, describe)
        lines = sum(not isinstance(line, Unspoken) for line in parsed.dialog)
        report(job, lines, written, arguments)
    return EXIT_SOME_FAILED if job.list_failures() else EXIT_ALL_RENDERED


def _explain_voices(voices: Mapping[str, Path | str], backend: Backend) -> list[Notice]:
    """What becomes of `--voice` with a backend that can't clone."""
    can = backend.capabilities
    samples = [name for name, one in voices.items() if isinstance(one, Path)]
    if not samples or can.cloning:
        return []
    instead = (
        "it speaks in a voice of its own, at the recording's pitch"
        if can.builtin_voice
        else "it speaks in voices of its own only, which the speakers need"
    )
    names = ", ".join(samples)
    return [Notice(f"--voice ({names}): {backend.title} can't clone a recording; {instead}.")]


def read_script(script: Path, options: ImportOptions = DEFAULT_IMPORT) -> Imported:
    """Read a script from a file or standard input.

    Raises:
        BadInput: It can't be read as a dialog; the message begins with the file.
    """
    content = read_content(script, "cut it into scenes", MAX_DOCUMENT_BYTES)
    name = "standard input" if script == STANDARD else script.name
    try:
        read = import_dialog(content, name, options)
    except BadInput as error:
        raise BadInput(f"{name if script == STANDARD else script}: {error}") from error
    if options.narrator is not None or not (read.unspoken or read.quoted):
        return read
    return replace(read, notices=(*read.notices, Notice("--narrator NAME adds a narrator.")))


def _read_pronouncing(
    path: Path | None, notice: Callable[[Iterable[Notice]], None]
) -> PronunciationRules:
    if path is None:
        return IN_WORDS
    content = read_content(path, "leave entries out")
    try:
        entries, notices = read_pronunciations(content, path.name)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    notice(notices)
    return PronunciationRules(entries, in_words=True)


def read_content(path: Path, remedy: str, most_bytes: int = MAX_SCRIPT_BYTES) -> bytes:
    """The bytes of a file or of standard input; `remedy` says what to do if it is too large."""
    name = "Standard input" if path == STANDARD else str(path)
    try:
        if path == STANDARD:
            content = sys.stdin.buffer.read(most_bytes + 1)
        else:
            with path.open("rb") as file:
                content = file.read(most_bytes + 1)
    except OSError as error:
        raise BadInput(f"{name} can't be read: {error.strerror}.") from error
    if len(content) > most_bytes:
        raise BadInput(f"{name} is larger than {most_bytes / 1e6:.0f} MB; {remedy}.")
    return content


class ProgressBar:
    """One line of a terminal that is written over; nothing where there is no terminal.

    It has no colour, so there is nothing for NO_COLOR to take away.
    """

    def __init__(
        self, stream: TextIO, *, quiet: bool = False, width: int = 30, of: str = "segments"
    ) -> None:
        self._of = of
        self._stream = stream
        self._shown = stream.isatty() and not quiet
        self._width = width

    def show(self, done: int, total: int, remaining_s: float | None) -> None:
        """Show how many segments are done, and how long the rest takes if that is known."""
        if not self._shown:
            return
        filled = "#" * (self._width * done // total)
        rest = "" if not remaining_s else f", {describe_duration(remaining_s)} left"
        text = f"[{filled:.<{self._width}}] {done} of {total} {self._of}{rest}"
        end = "\n" if done == total else ""
        self._stream.write(f"\r{text:<{self._width + 60}}{end}")
        self._stream.flush()


def describe_duration(duration_s: float) -> str:
    """A duration as people say it: "40 s", "3 min", "1 h 20 min"."""
    if duration_s < 90:
        return f"{max(1, round(duration_s))} s"
    hours, minutes = divmod(round(duration_s / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _watch(job: Job, studio: Studio, bar: ProgressBar) -> None:
    """Show progress until the job ends; Ctrl+C cancels it."""
    total = len(job.records)
    final = 0
    try:
        for event in job.events.follow():
            if event.segment_idx is not None and event.state in FINAL_STATES:
                final += 1
                bar.show(final, total, job.estimate_remaining_s())
    except KeyboardInterrupt:
        print("Stopping: the lines being spoken end at their next step.", file=sys.stderr)
        studio.engine.cancel(job)
        raise


def _check_saved(job: Job, folder: Path) -> None:
    """Check that the render wasn't stopped for lack of room."""
    saved = sum(record.path is not None for record in job.records)
    if job.fatal_message is not None and any(one.fault == "DiskFull" for one in job.records):
        raise _Kept(
            f"The render was stopped after {saved} of {len(job.records)} segments: "
            f"{job.fatal_message} Those that were made are in {folder}."
        )


def _copy_tries(job: Job, folder: Path) -> None:
    """Copy the tries of lines that were spoken several times, named by line and number."""
    for record in job.records:
        for number, one in enumerate(record.tries if len(record.tries) > 1 else (), start=1):
            if one.path is not None:
                segment = record.segment
                name = f"{segment.line_number:04d}-{segment.segment_idx:05d}-try{number}.wav"
                with storage_errors(folder):
                    shutil.copyfile(one.path, folder / name)


def _check_tries_folder(folder: Path | None) -> Path | None:
    if folder is not None and not folder.is_dir():
        raise SettingError(f"--keep-tries {folder} can't be used: it must be a folder there is.")
    return folder


def _write(
    job: Job,
    arguments: RenderArguments,
    folder: Path,
    documents: _Documents,
    describe: Callable[[Scene, Path], Scene],
) -> Written | None:
    """Write all files; None if no line was spoken, so that there is nothing to write."""
    loudness = None
    try:
        scene = replace(
            build_scene(job),
            kept_loudness=LoudnessStore(),
            write_captions=documents.write_scene_captions,
        )
        for output in arguments.outputs:
            if output == STANDARD:
                path = folder / f"scene.{arguments.audio_format}"
                loudness = describe(scene, output).write(path, arguments.sound)
                with path.open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.buffer.flush()
            elif _is_document(output):
                data = documents.build(output)
                with open_atomic(output) as file:
                    file.write(data)
            else:
                loudness = describe(scene, output).write(output, arguments.sound)
                documents.notice(map(Notice, scene.describe_names(output.suffix, arguments.sound)))
                if output.suffix.lower() != ".zip":
                    _write_companions(output, scene, arguments.sound)
        return Written(arguments.outputs[0], loudness, arguments.sound)
    except Conflict:
        return None
    except (StorageFailed, BadInput) as error:
        raise _Kept(
            f"{error} Nothing is lost: the lines that were made are in {folder}."
        ) from error


def _write_companions(output: Path, scene: Scene, sound: ExportOptions) -> None:
    """Write captions and podcast files beside a sound, with its name."""
    files = {".srt": scene.write_captions()[".srt"]} if sound.captions else {}
    if sound.podcast:
        files |= {f".{name}": data for name, data in scene.write_podcast_files().items()}
    for suffix, data in files.items():
        with open_atomic(output.with_suffix(suffix)) as file:
            file.write(data)


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


def _is_document(output: Path) -> bool:
    is_captions = format_of_suffix(output.name) in TIMED
    return is_captions or timing_format_of(output.name) is not None


@dataclass(slots=True)
class _Documents:
    """Files that say what is said when; the words are timed once for all of them."""

    write_captions: Callable[[Path], bytes]
    time_lines: Callable[[], tuple[list[TimedLine], float, list[str]]]
    notice: Callable[[Iterable[Notice]], None]
    timed: tuple[list[TimedLine], float] | None = None

    def build(self, output: Path) -> bytes:
        """The content of a file by its suffix."""
        format_ = timing_format_of(output.name)
        if format_ is None:
            return self.write_captions(output)
        lines, duration_s = self._time()
        return write_timing(lines, format_, duration_s)

    def write_scene_captions(self) -> dict[str, bytes]:
        """The captions that lie beside the sound, by suffix."""
        return write_scene_captions(*self._time())

    def _time(self) -> tuple[list[TimedLine], float]:
        if self.timed is None:
            lines, duration_s, problems = self.time_lines()
            self.timed = lines, duration_s
            self.notice([Notice(problem) for problem in problems])
        return self.timed


def _check_standard_output(sound: ExportOptions) -> None:
    if sound.tracks:
        raise SettingError("Tracks are several files: -o - can't be used with --tracks.")
    if sys.stdout.isatty():
        raise SettingError("-o - would write sound to the terminal. Send it to a file or program.")


def _check_output(output: Path, sound: ExportOptions) -> None:
    if not _is_document(output):
        check_export_options(output, sound)
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise SettingError(f"-o {output} can't be used: it must be a file in a folder there is.")
    _check_writable(output)


def _check_companions(output: Path, outputs: Collection[Path], sound: ExportOptions) -> None:
    """Check that no other output has the name of what `_write_companions` puts beside a sound."""
    suffixes = [".srt"] * sound.captions + [f".{name}" for name in PODCAST_FILES] * sound.podcast
    clash = next((one for one in map(output.with_suffix, suffixes) if one in outputs), None)
    if clash is not None and not _is_document(output) and output.suffix.lower() != ".zip":
        raise SettingError(
            f"-o {clash} can't be used: what comes beside {output} has that name. Choose another."
        )


def _check_writable(output: Path) -> None:
    """Check before the render, not an hour later, that the output folder can be written to."""
    try:
        with tempfile.NamedTemporaryFile(dir=output.absolute().parent, prefix=".tableread-"):
            pass
    except OSError as error:
        raise SettingError(
            f"-o {output} can't be written: {error.strerror}. Choose a folder you may write to."
        ) from error
