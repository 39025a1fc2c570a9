"""A finished scene as a file: export options, how it is written, and what it then holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.audio.encode import STUDIO_MP3, AudioFormat, parse_format
from studio.audio.export import (
    Caption,
    OnProgress,
    check_size,
    export_audio,
    export_zip,
    report_progress,
)
from studio.audio.loudness import Loudness, find_acx_faults, measure_file_loudness, measure_loudness
from studio.audio.mastering import LevelScale, Mastering, plan_master
from studio.audio.timeline import Timeline
from studio.audio.tracks import export_tracks
from studio.dialog.names import name_key
from studio.errors import BadInput

_LOUDNESS_TOLERANCE_DB = 0.5
_PASS_SHARE = 0.45  # of what is left to do: how many passes there will be isn't known beforehand


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How a scene is wished.

    Attributes:
        mastering: What becomes of its level.
        tracks: One track for each speaker; takes a zip.
        is_measured: Whether the finished file is measured, which reads it once more.
    """

    mastering: Mastering = field(default_factory=Mastering)
    tracks: bool = False
    is_measured: bool = False


def check_export_options(path: Path, choice: ExportOptions) -> None:
    """See that a file's suffix and a wish go together.

    Raises:
        BadInput: The suffix is none of .wav, .flac, .mp3 and .zip, or tracks are no zip.
    """
    if not _is_zip(path):
        parse_format(path)
        if choice.tracks:
            raise BadInput("Tracks are several files. End the name in .zip.")


def write_scene(
    path: Path,
    timeline: Timeline,
    captions: Mapping[int, Caption],
    choice: ExportOptions,
    *,
    on_progress: OnProgress | None = None,
) -> Loudness | None:
    """Write a scene as its file's suffix says.

    Args:
        path: Whole or not there; what was there before stays after any error.
        timeline: The scene.
        captions: By `segment_idx`.
        choice: How it is wished.
        on_progress: Told a share that grows to 1 over all that has to be read and written.

    Returns:
        What the file holds, decoded again, or of a zip what goes into it; None where that wasn't
            wished.

    Raises:
        BadInput: The suffix is no format, or there is no audio, or too little to have a loudness.
        StorageFailed: It can't be read or written, or there is no room.
    """
    check_export_options(path, choice)
    check_size(timeline, path, 0)  # before it is read through for its level
    passes = _PassProgress(on_progress)
    target = choice.mastering.target
    mp3 = target.mp3 if target else STUDIO_MP3

    def watch(blocks: Iterable[Samples], rate_hz: int = STUDIO_RATE_HZ) -> Iterator[Samples]:
        return report_progress(blocks, timeline, passes.begin(), rate_hz=rate_hz)

    master = plan_master(timeline, list_speakers(captions), choice.mastering, watch)
    if choice.tracks:
        export_tracks(path, timeline, captions, master=master, on_progress=passes.begin())
    elif _is_zip(path):
        export_zip(path, timeline, captions, master=master, on_progress=passes.begin())
    else:
        export_audio(path, timeline, master=master, mp3=mp3, on_progress=passes.begin())
    found = None
    if choice.is_measured and _is_zip(path):
        found = measure_loudness(watch(master.blocks(timeline)))
    elif choice.is_measured:
        is_mp3 = parse_format(path) is AudioFormat.MP3
        rate_hz = mp3.rate_hz if is_mp3 else STUDIO_RATE_HZ
        found = measure_file_loudness(path, partial(watch, rate_hz=rate_hz))
    passes.end()
    return found


def list_speakers(captions: Mapping[int, Caption]) -> dict[int, str]:
    """Who speaks, by `segment_idx`; names that differ only in case are one speaker."""
    captioned = captions.items()
    return {idx: name_key(one.speaker) for idx, one in captioned if one.speaker}


def describe_result(loudness: Loudness, choice: ExportOptions) -> tuple[str, ...]:
    """What a person should know of a finished file beside its figures; often nothing."""
    target = choice.mastering.target
    if target is None:
        return ()
    if target.scale is LevelScale.RMS:
        faults = find_acx_faults(loudness)
        return faults or ("It keeps ACX’s limits of level, peak and noise.",)
    if loudness.lufs is None or abs(loudness.lufs - target.level_db) <= _LOUDNESS_TOLERANCE_DB:
        return ()
    return (
        f"It stays at {loudness.lufs:.1f} LUFS instead of {target.level_db:g}: the loudest moments"
        " leave no more room. Even out the voices, or choose a lower loudness.",
    )


class _PassProgress:
    """Tells one growing share for passes that each go from 0 to 1."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._reported = 0.0

    def begin(self) -> OnProgress | None:
        """What is told of the next pass."""
        if self._on_progress is None:
            return None
        base, left = self._reported, (1 - self._reported) * _PASS_SHARE
        return lambda share: self._tell(base + left * share)

    def end(self) -> None:
        self._tell(1.0)

    def _tell(self, share: float) -> None:
        self._reported = share
        if self._on_progress is not None:
            self._on_progress(share)


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"
