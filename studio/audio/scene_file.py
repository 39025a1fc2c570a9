"""A scene: its timeline and captions, how it is written to a file, and what that then holds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.audio.encode import STUDIO_MP3, parse_format
from studio.audio.export import (
    FILE_NAMES,
    Caption,
    FileForm,
    OnProgress,
    check_names,
    check_size,
    describe_names,
    export_audio,
    export_zip,
    report_progress,
)
from studio.audio.file_tags import Chapter, FileTags
from studio.audio.formats import BIT_RATES_KBPS
from studio.audio.kept_loudness import LoudnessStore, Measurement, identify_scene
from studio.audio.loudness import Loudness, find_acx_faults, measure_file_loudness, measure_loudness
from studio.audio.mastering import BlockObserver, LevelScale, Master, Mastering, plan_master
from studio.audio.podcast_files import write_podcast_files
from studio.audio.timeline import Timeline
from studio.audio.tracks import export_tracks
from studio.dialog.model import name_key
from studio.errors import BadInput, Conflict, about

log = logging.getLogger(__name__)

Watch = Callable[..., Iterator[Samples]]
"""Passes blocks on and reports progress, at a rate that it may be given."""

_LOUDNESS_TOLERANCE_DB = 0.5
_PASS_SHARE = 0.45  # of the remaining work: the number of passes isn't known beforehand


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How a scene is exported.

    Attributes:
        mastering: What becomes of its level.
        tracks: One track for each speaker, in a zip.
        kbps: Bit rate of MP3, AAC and Opus, one of `BIT_RATES_KBPS`; None for the usual one.
        names: How the files of lines in a zip are named, with the fields of `check_names`.
        podcast: Whether a zip has chapters and transcript as podcasts have them.
        captions: Whether a zip has captions of the whole scene, `scene.srt` and `scene.vtt`.
        is_measured: Whether the finished file's loudness is measured, which reads it once more.
    """

    mastering: Mastering = field(default_factory=Mastering)
    tracks: bool = False
    is_measured: bool = False
    kbps: int | None = None
    names: str = FILE_NAMES
    podcast: bool = False
    captions: bool = False


AS_RENDERED = ExportOptions()


def check_export_options(path: Path, options: ExportOptions) -> None:
    """Check that a file's suffix and the options go together.

    Raises:
        BadInput: The suffix is unknown, tracks are no zip, or the bit rate or a name isn't one.
    """
    with about("names"):
        check_names(options.names)
    if options.kbps is not None and options.kbps not in BIT_RATES_KBPS:
        known = ", ".join(map(str, BIT_RATES_KBPS))
        with about("bitrate"):
            raise BadInput(f"The bit rate is one of {known} kbit/s; {options.kbps} can't be used.")
    if not _is_zip(path):
        parse_format(path)
        if options.tracks:
            raise BadInput("Tracks are several files. End the name in .zip.")


@dataclass(frozen=True, slots=True)
class Scene:
    """The audio of a job or project as it is now, ready to be written or streamed.

    Attributes:
        timeline: Its sound.
        captions: Who says what, by `segment_idx`, for taken and skipped segments alike.
        sections: Titles of sections, by the `segment_idx` of the first segment that may follow.
        tags: What a file says of it, without the chapters.
        write_captions: Times what is said, which may take a while, and writes captions by suffix.
        kept_loudness: Keeps what is measured; None measures each time.
        wav_tags: Whether a WAV of the scene carries them.
    """

    timeline: Timeline
    captions: Mapping[int, Caption]
    sections: tuple[tuple[int, str], ...] = ()
    tags: FileTags = field(default_factory=FileTags)
    write_captions: Callable[[], Mapping[str, bytes]] = field(default=dict, compare=False)
    kept_loudness: LoudnessStore | None = field(default=None, compare=False)
    wav_tags: bool = True

    def described(
        self, title: str, engine_titles: Mapping[str, str], revisions: Mapping[str, str]
    ) -> Scene:
        """The scene with a title, and its engines named for people, with their revisions."""
        engines = tuple(engine_titles.get(name, name) for name in self.tags.engines)
        captions = {
            idx: replace(
                one,
                engine=engine_titles.get(one.engine, one.engine),
                model=revisions.get(one.engine, "") if one.voice else "",
            )
            for idx, one in self.captions.items()
        }
        tags = replace(self.tags, title=title, engines=engines)
        return replace(self, tags=tags, captions=captions)

    def list_chapters(self) -> tuple[Chapter, ...]:
        """A chapter for each section with sound in it, up to the next one's beginning."""
        entries = self.timeline.entries
        starts: dict[int, str] = {}
        for segment_idx, title in self.sections:
            following = (one for one in entries if one.segment_idx >= segment_idx)
            if (first := next(following, None)) is not None:
                starts[first.start_sample] = title
        marks = [*starts, self.timeline.n_samples]
        return tuple(
            Chapter(starts[start], start / STUDIO_RATE_HZ, end / STUDIO_RATE_HZ)
            for start, end in pairwise(marks)
        )

    def write(
        self,
        path: Path,
        options: ExportOptions = AS_RENDERED,
        *,
        on_progress: OnProgress | None = None,
    ) -> Loudness | None:
        """Write the scene as the file's suffix says: one sound, or a zip with every line in it.

        Args:
            path: Whole or not there; what was there before stays after any error.
            options: How it is exported.
            on_progress: Called with a share that grows to 1 over all that is read and written.

        Returns:
            What the file holds, decoded again, or of a zip what goes into it; None where that
                wasn't wished.

        Raises:
            BadInput: The suffix is no format, or the scene is too quiet or short for a loudness.
            Conflict: It has no sound yet.
        """
        if self.timeline.n_samples == 0:
            raise Conflict("Nothing has been spoken yet, so there is nothing to save.")
        check_export_options(path, options)
        check_size(self.timeline, path, 0)  # before it is read through for its level
        passes = _PassProgress(self.timeline, on_progress)
        form = self._build_form(path, options)
        known = self._measure(options.mastering, passes.watch)
        self._write_file(path, options, known.master, form, passes.begin())
        found = None
        if options.is_measured:
            found = self._find_loudness(path, options, known, form, passes.watch)
        passes.end()
        return found

    def _build_form(self, path: Path, options: ExportOptions) -> FileForm:
        tags = replace(self.tags, chapters=self.list_chapters())
        target = options.mastering.target
        mp3 = target.mp3 if target else STUDIO_MP3
        documents: dict[str, bytes] = {}
        if options.captions and _is_zip(path):
            documents = {f"scene{suffix}": data for suffix, data in self.write_captions().items()}
        if options.podcast and _is_zip(path):
            documents |= self.write_podcast_files()
        return FileForm(tags, mp3, options.kbps, options.names, documents, self.wav_tags)

    def describe_names(self, suffix: str, options: ExportOptions) -> tuple[str, ...]:
        """Notices of a zip's files that are named otherwise than was asked for."""
        if suffix.lower() != ".zip" or options.tracks:
            return ()
        return describe_names(self.timeline, self.captions, options.names)

    def write_podcast_files(self) -> dict[str, bytes]:
        """Chapters, where there are any, and transcript by their names."""
        return write_podcast_files(self.timeline, self.captions, self.list_chapters())

    def _write_file(
        self,
        path: Path,
        options: ExportOptions,
        master: Master,
        form: FileForm,
        on_progress: OnProgress | None,
    ) -> None:
        if not _is_zip(path):
            export_audio(path, self.timeline, master=master, form=form, on_progress=on_progress)
            return
        export = export_tracks if options.tracks else export_zip
        export(
            path,
            self.timeline,
            self.captions,
            master=master,
            form=form,
            on_progress=on_progress,
        )

    def _find_loudness(
        self, path: Path, options: ExportOptions, known: Measurement, form: FileForm, watch: Watch
    ) -> Loudness:
        """What a finished file holds: as it was kept for one of its kind, or read once more."""
        name = f"{path.suffix.lower()} {options.kbps or ''}".strip()
        found = known.find_loudness(name)
        if found is None:
            found = self._measure_file(path, known.master, form, watch)
            self._keep(options.mastering, known.with_loudness(name, found))
        return found

    def _measure_file(self, path: Path, master: Master, form: FileForm, watch: Watch) -> Loudness:
        log.info("Measuring the loudness of %s.", path.name)
        if _is_zip(path):
            return measure_loudness(watch(master.blocks(self.timeline)))
        rate_hz = form.rate_hz(parse_format(path))
        return measure_file_loudness(path, partial(watch, rate_hz=rate_hz))

    def mastered_blocks(self, mastering: Mastering) -> Iterator[Samples]:
        """The mastered scene, block by block; float32 [samples] at the studio's rate."""
        return self._measure(mastering).master.blocks(self.timeline)

    def _measure(self, mastering: Mastering, watch: BlockObserver = iter) -> Measurement:
        """What is known of the scene's level; it is read through where that isn't kept."""
        kept = self._find_kept(mastering)
        if kept is not None:
            return kept
        if not mastering.is_none:
            log.info("Measuring the loudness of a scene of %.1f s.", self.timeline.duration_s)
        known = Measurement(plan_master(self.timeline, self._speakers, mastering, watch))
        if not mastering.is_none:
            self._keep(mastering, known)
        return known

    @property
    def _speakers(self) -> dict[int, str]:
        """Who speaks; names that differ only in case are one speaker."""
        captioned = self.captions.items()
        return {idx: name_key(one.speaker) for idx, one in captioned if one.speaker}

    def _find_kept(self, mastering: Mastering) -> Measurement | None:
        if self.kept_loudness is None:
            return None
        return self.kept_loudness.find(self._identify(mastering))

    def _keep(self, mastering: Mastering, known: Measurement) -> None:
        if self.kept_loudness is not None:
            self.kept_loudness.keep(self._identify(mastering), known)

    def _identify(self, mastering: Mastering) -> str:
        return identify_scene(self.timeline, self._speakers, mastering)


def describe_result(loudness: Loudness, options: ExportOptions) -> tuple[str, ...]:
    """Notices about a finished file besides its figures; often none."""
    target = options.mastering.target
    if target is None:
        return ()
    if target.scale is LevelScale.RMS:
        faults = find_acx_faults(loudness)
        return faults or ("It keeps ACX’s limits of level, peak and noise.",)
    if loudness.lufs is None or abs(loudness.lufs - target.level_db) <= _LOUDNESS_TOLERANCE_DB:
        return ()
    return (
        f"It stays at {loudness.lufs:.1f} LUFS instead of {target.level_db:g}: the loudest moments"
        " leave no more room. Match speaker loudness, or choose a lower loudness.",
    )


class _PassProgress:
    """Reports one growing share for passes that each go from 0 to 1."""

    def __init__(self, timeline: Timeline, on_progress: OnProgress | None) -> None:
        self._timeline = timeline
        self._on_progress = on_progress
        self._reported = 0.0

    def begin(self) -> OnProgress | None:
        """Begin a pass; returns where it reports its progress."""
        if self._on_progress is None:
            return None
        base, left = self._reported, (1 - self._reported) * _PASS_SHARE
        return lambda share: self._report(base + left * share)

    def watch(self, blocks: Iterable[Samples], rate_hz: int = STUDIO_RATE_HZ) -> Iterator[Samples]:
        """Pass on the scene's blocks, in a pass of their own."""
        return report_progress(blocks, self._timeline, self.begin(), rate_hz=rate_hz)

    def end(self) -> None:
        self._report(1.0)

    def _report(self, share: float) -> None:
        self._reported = share
        if self._on_progress is not None:
            self._on_progress(share)


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"
