"""Export of a timeline: one audio file, or a zip with every segment and a manifest."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import unicodedata
import wave
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Samples, resample
from studio.audio.encode import STUDIO_MP3, AudioFormat, Mp3Settings, encode_blocks, parse_format
from studio.audio.mastering import NO_MASTERING, Master, open_mixdown
from studio.audio.timeline import FailedPart, Timeline, TimelineEntry
from studio.errors import BadInput, StorageFailed
from studio.storage.disk import open_atomic, storage_errors

_MAX_WAV_BYTES = 0xFFFF_FF00  # its header counts in 32 bits


def add_file(archive: zipfile.ZipFile, name: str, source: BinaryIO) -> None:
    """Copy a file from its beginning, stored as it is."""
    info = _build_zip_info(name)
    info.file_size = source.seek(0, 2)  # known beforehand, so a file above 2 GB gets large fields
    source.seek(0)
    with archive.open(info, "w") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def add_wav(
    archive: zipfile.ZipFile,
    name: str,
    pieces: Iterable[bytes],
    n_samples: int,
    *,
    deflated: bool = False,
) -> None:
    """Write mono 16-bit WAV at the studio's rate.

    Args:
        archive: The zip.
        name: Of the member.
        pieces: s16le, together `n_samples`.
        n_samples: Known beforehand, since nothing can be completed in a zip.
        deflated: Worth its time where most of it is silence.

    Raises:
        BadInput: It is longer than a WAV can be.
    """
    if 2 * n_samples > _MAX_WAV_BYTES:
        raise BadInput("The scene is too long for a WAV file. Save it as FLAC, or in parts.")
    info = _build_zip_info(name)
    info.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    info.file_size = 2 * n_samples
    with archive.open(info, "w") as target, wave.open(target, "wb") as sound:
        sound.setparams((1, 2, STUDIO_RATE_HZ, n_samples, "NONE", ""))
        for piece in pieces:
            sound.writeframesraw(piece)


def _build_zip_info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=time.localtime()[:6])
    info.external_attr = 0o644 << 16
    return info


MANIFEST_VERSION = 1

MAX_SILENCE_S = 24 * 3600.0
"""More pauses are a mistake or malice: a few kilobytes of script can ask for weeks of them."""

_MIN_BYTES_PER_SAMPLE = {AudioFormat.WAV: 2.0, AudioFormat.FLAC: 0.2, AudioFormat.MP3: 0.2}
"""So that what can't fit is told before, and not after half an hour of writing."""

_MAX_LABEL_CHARS = 40  # of at most 4 bytes: with number and suffix below every system's limit

OnProgress = Callable[[float], None]
"""Called with the share written so far, 0 to 1; an error it raises ends the export, traceless."""


@dataclass(frozen=True, slots=True)
class Caption:
    """What the manifest says of a segment beside its place.

    Attributes:
        line_number: 1-based place in the script.
        speaker: None for a silence or reused audio.
        text: What is said, None likewise.
        doubtful: What may not be right about its sound, in sentences.
    """

    line_number: int
    speaker: str | None = None
    text: str | None = None
    doubtful: tuple[str, ...] = ()


def export_audio(
    path: Path,
    timeline: Timeline,
    *,
    master: Master = NO_MASTERING,
    mp3: Mp3Settings = STUDIO_MP3,
    on_progress: OnProgress | None = None,
) -> None:
    """Write the joined audio; the suffix chooses .wav, .flac or .mp3, of which `mp3` says how.

    The file is whole or not there; an earlier one stays as it was after any error.

    Raises:
        BadInput: The suffix is another one, or the timeline holds no audio, or pauses without end.
        StorageFailed: A take can't be read, or the file can't be written, or has no room.
    """
    audio_format = parse_format(path)
    check_size(timeline, path, _MIN_BYTES_PER_SAMPLE[audio_format])
    blocks = report_progress(master.blocks(timeline), timeline, on_progress)
    with open_atomic(path) as file:
        if audio_format is not AudioFormat.MP3:
            encode_blocks(file, blocks, audio_format)
            return
        if mp3.rate_hz != STUDIO_RATE_HZ:
            blocks = resample(blocks, STUDIO_RATE_HZ, mp3.rate_hz)
        if master != NO_MASTERING:
            scale = np.float32(mp3.scale)
            blocks = (block / scale for block in blocks)
        encode_blocks(
            file, blocks, audio_format, rate_hz=mp3.rate_hz, mp3_compression=mp3.compression
        )


def export_zip(
    path: Path,
    timeline: Timeline,
    captions: Mapping[int, Caption],
    *,
    joined_format: AudioFormat = AudioFormat.WAV,
    master: Master = NO_MASTERING,
    on_progress: OnProgress | None = None,
) -> None:
    """Write a zip: a WAV for every take, the joined audio as `scene.*`, and `manifest.json`.

    File names are made of the segment's place and the speaker's letters, so they are safe on every
    system. Silences are in the joined audio and the manifest only. Memory holds one block. Takes
    are copied as they are; where the scene is mastered, they are cut out of it.

    Args:
        path: The zip; whole or not there, as in `export_audio`.
        timeline: What is exported.
        captions: By `segment_idx`, for taken and skipped segments alike.
        joined_format: Of the joined audio.
        master: What becomes of the level.
        on_progress: Told while the joined audio is written, which takes nearly all the time.

    Raises:
        BadInput: The timeline holds no audio, or pauses without end.
        StorageFailed: A take can't be read, or there is no room, or the zip can't be written.
    """
    copies = 2 if master == NO_MASTERING else 4
    check_size(timeline, path, copies * _MIN_BYTES_PER_SAMPLE[joined_format])
    folder, watch = (
        path.parent,
        partial(report_progress, timeline=timeline, on_progress=on_progress),
    )
    with open_atomic(path) as file, zipfile.ZipFile(file, "w", strict_timestamps=False) as archive:
        if master == NO_MASTERING:
            _add_joined(archive, watch(timeline.blocks()), joined_format, folder)
            _add_takes(archive, timeline, captions)
        else:
            with open_mixdown(timeline, master, folder, watch) as mix:
                _add_joined(archive, mix.blocks(), joined_format, folder)
                for entry in iter_audible_entries(timeline):
                    name = _build_segment_name(entry, captions)
                    add_wav(archive, name, mix.part(entry), entry.n_samples)
        manifest = _build_manifest(timeline, captions, build_scene_name(joined_format))
        written = json.dumps(manifest, ensure_ascii=False, indent=2)
        archive.writestr("manifest.json", written, zipfile.ZIP_DEFLATED)


def build_scene_name(joined_format: AudioFormat) -> str:
    """What the joined audio is called inside a zip."""
    return f"scene.{joined_format.value}"


def iter_audible_entries(timeline: Timeline) -> Iterator[TimelineEntry]:
    """The entries that aren't silence."""
    return (entry for entry in timeline.entries if entry.source is not None)


def check_size(timeline: Timeline, path: Path, bytes_a_sample: float) -> None:
    """See that there is something to write, not without end, and room for it."""
    if timeline.n_samples == 0:
        raise BadInput("There is no audio to save yet. Render at least one line first.")
    silence_s = sum(entry.duration_s for entry in timeline.entries if entry.source is None)
    if silence_s > MAX_SILENCE_S:
        raise BadInput(
            f"The pauses last {silence_s / 3600:,.0f} hours; {MAX_SILENCE_S / 3600:.0f} are the "
            "most. Shorten them."
        )
    size_bytes = timeline.n_samples * bytes_a_sample
    with storage_errors(path):
        free_bytes = shutil.disk_usage(path.parent).free
    if size_bytes > free_bytes:
        raise StorageFailed(
            f"The audio takes {size_bytes / 1e6:,.0f} MB and the disk has {free_bytes / 1e6:,.0f} "
            "MB left. Free some space, then save it again."
        )


def report_progress(
    blocks: Iterable[Samples],
    timeline: Timeline,
    on_progress: OnProgress | None,
    *,
    rate_hz: int = STUDIO_RATE_HZ,
) -> Iterator[Samples]:
    """Pass a timeline's blocks on, brought to `rate_hz`, and tell how far they are."""
    whole = timeline.n_samples * rate_hz / STUDIO_RATE_HZ
    done = 0
    for block in blocks:
        yield block
        done += len(block)
        if on_progress is not None:
            on_progress(min(1.0, done / whole))


def _add_joined(
    archive: zipfile.ZipFile, blocks: Iterable[Samples], joined_format: AudioFormat, folder: Path
) -> None:
    with tempfile.TemporaryFile(dir=folder) as joined:
        encode_blocks(joined, blocks, joined_format)
        add_file(archive, build_scene_name(joined_format), joined)


def _add_takes(
    archive: zipfile.ZipFile, timeline: Timeline, captions: Mapping[int, Caption]
) -> None:
    for entry in iter_audible_entries(timeline):
        assert entry.source is not None
        with entry.source.open("rb") as take:
            add_file(archive, _build_segment_name(entry, captions), take)


def _build_segment_name(entry: TimelineEntry, captions: Mapping[int, Caption]) -> str:
    caption = captions.get(entry.segment_idx)
    label = build_file_label(caption.speaker if caption and caption.speaker else "audio")
    return f"{entry.segment_idx + 1:04d}-{label}.wav"


def build_file_label(speaker: str) -> str:
    """Letters, marks and digits of a name, everything else as one underscore."""
    kept = (
        char if unicodedata.category(char)[0] in "LMN" else " "
        for char in unicodedata.normalize("NFC", speaker)
    )
    return "_".join("".join(kept).split())[:_MAX_LABEL_CHARS].strip("_") or "speaker"


def _build_manifest(
    timeline: Timeline, captions: Mapping[int, Caption], scene: str
) -> dict[str, object]:
    records = {entry.segment_idx: _describe_entry(entry, captions) for entry in timeline.entries}
    records |= {
        part.segment_idx: _describe_failed_part(part, captions) for part in timeline.skipped
    }
    return {
        "version": MANIFEST_VERSION,
        "file": scene,
        "rate_hz": STUDIO_RATE_HZ,
        "duration_s": timeline.duration_s,
        "n_samples": timeline.n_samples,
        "failed": len(timeline.skipped),
        "segments": [records[segment_idx] for segment_idx in sorted(records)],
    }


def _describe_entry(entry: TimelineEntry, captions: Mapping[int, Caption]) -> dict[str, object]:
    is_silence = entry.source is None
    return {
        **_describe_caption(entry.segment_idx, captions),
        "type": "silence" if is_silence else "audio",
        "start_s": entry.start_s,
        "duration_s": entry.duration_s,
        "start_sample": entry.start_sample,
        "n_samples": entry.n_samples,
        "file": None if is_silence else _build_segment_name(entry, captions),
    }


def _describe_failed_part(part: FailedPart, captions: Mapping[int, Caption]) -> dict[str, object]:
    return {
        **_describe_caption(part.segment_idx, captions),
        "type": "failed",
        "message": part.message,
        "file": None,
    }


def _describe_caption(segment_idx: int, captions: Mapping[int, Caption]) -> dict[str, object]:
    caption = captions.get(segment_idx)
    return {
        "segment": segment_idx,
        "line": caption.line_number if caption else None,
        "speaker": caption.speaker if caption else None,
        "text": caption.text if caption else None,
        "doubtful": list(caption.doubtful) if caption else [],
    }
