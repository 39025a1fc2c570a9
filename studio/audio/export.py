"""Export of a scene: one audio file, a zip of its segments, or a zip of one track per speaker."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import unicodedata
import wave
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from studio.audio.clip import BLOCK_SAMPLES, STUDIO_RATE_HZ, Samples, resample
from studio.audio.encode import STUDIO_MP3, AudioFormat, Mp3Settings, encode_blocks, parse_format
from studio.audio.mastering import NO_MASTERING, Master, Mixdown, open_mixdown
from studio.audio.timeline import FailedPart, Timeline, TimelineEntry
from studio.dialog.model import name_key
from studio.errors import BadInput, StorageFailed
from studio.storage.disk import open_atomic, storage_errors

_MAX_WAV_BYTES = 0xFFFF_FF00  # its header counts in 32 bits


def _add_file(archive: zipfile.ZipFile, name: str, source: BinaryIO) -> None:
    """Copy a file from its beginning, stored as it is."""
    info = _build_zip_info(name)
    info.file_size = source.seek(0, 2)  # known beforehand, so a file above 2 GB gets large fields
    source.seek(0)
    with archive.open(info, "w") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _add_wav(
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

_SCENE_FILE = "scene.wav"
"""The name of the joined audio inside a zip."""

MAX_SILENCE_S = 24 * 3600.0
"""More pauses are a mistake or malice: a few kilobytes of script can ask for weeks of them."""

_MIN_BYTES_PER_SAMPLE = {AudioFormat.WAV: 2.0, AudioFormat.FLAC: 0.2, AudioFormat.MP3: 0.2}
"""Lower bounds of a file's size: an export that can't fit is refused before it begins."""

_MAX_LABEL_CHARS = 40  # of at most 4 bytes: with number and suffix below every system's limit

OnProgress = Callable[[float], None]
"""Called with the share written so far, 0 to 1; an error it raises ends the export cleanly."""


@dataclass(frozen=True, slots=True)
class Caption:
    """What the manifest says of a segment besides its position.

    Attributes:
        line_number: 1-based place in the script, when known.
        speaker: None for a silence or reused audio.
        text: What is said, None likewise.
        issues: What may not be right about its sound, in sentences.
        at_s: When each step of its render was reached, by name, in seconds since the render
            started; empty when unknown.
    """

    line_number: int | None = None
    speaker: str | None = None
    text: str | None = None
    issues: tuple[str, ...] = ()
    at_s: Mapping[str, float] = field(default_factory=dict)


_NO_CAPTION = Caption()


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
    master: Master = NO_MASTERING,
    on_progress: OnProgress | None = None,
) -> None:
    """Write a zip: a WAV for every take, the joined audio as `scene.wav`, and `manifest.json`.

    File names are made of the segment's place and the speaker's letters, so they are safe on every
    system. Silences are in the joined audio and the manifest only. Memory holds one block. Takes
    are copied as they are; where the scene is mastered, they are cut out of it.

    Args:
        path: The zip; whole or not there, as in `export_audio`.
        timeline: What is exported.
        captions: By `segment_idx`, for taken and skipped segments alike.
        master: What becomes of the level.
        on_progress: Told while the joined audio is written, which takes nearly all the time.

    Raises:
        BadInput: The timeline holds no audio, or pauses without end.
        StorageFailed: A take can't be read, or there is no room, or the zip can't be written.
    """
    copies = 2 if master == NO_MASTERING else 4
    check_size(timeline, path, copies * _MIN_BYTES_PER_SAMPLE[AudioFormat.WAV])
    folder = path.parent
    watch = partial(report_progress, timeline=timeline, on_progress=on_progress)
    with open_atomic(path) as file, zipfile.ZipFile(file, "w", strict_timestamps=False) as archive:
        if master == NO_MASTERING:
            _add_joined(archive, watch(timeline.blocks()), folder)
            _add_takes(archive, timeline, captions)
        else:
            with open_mixdown(timeline, master, folder, watch) as mix:
                _add_joined(archive, mix.blocks(), folder)
                for entry in _iter_audible(timeline):
                    name = _build_segment_name(entry, captions)
                    _add_wav(archive, name, mix.part(entry), entry.n_samples)
        manifest = _build_manifest(timeline, captions, _SCENE_FILE)
        written = json.dumps(manifest, ensure_ascii=False, indent=2)
        archive.writestr("manifest.json", written, zipfile.ZIP_DEFLATED)


def _iter_audible(timeline: Timeline) -> Iterator[TimelineEntry]:
    """The entries that aren't silence."""
    return (entry for entry in timeline.entries if entry.source is not None)


def check_silence(silence_s: float) -> None:
    """Check that the pauses of a scene aren't absurdly long.

    Raises:
        BadInput: They are more than `MAX_SILENCE_S` together.
    """
    if silence_s > MAX_SILENCE_S:
        raise BadInput(
            f"The pauses last {silence_s / 3600:,.0f} hours; {MAX_SILENCE_S / 3600:.0f} are the "
            "most. Shorten them."
        )


def check_size(timeline: Timeline, path: Path, bytes_a_sample: float) -> None:
    """Check that there is audio to write, that it isn't too long, and that it fits on the disk."""
    if timeline.n_samples == 0:
        raise BadInput("There is no audio to save yet. Render at least one line first.")
    check_silence(sum(entry.duration_s for entry in timeline.entries if entry.source is None))
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
    """Yield a timeline's blocks, resampled to `rate_hz`, and report the progress."""
    whole = timeline.n_samples * rate_hz / STUDIO_RATE_HZ
    done = 0
    for block in blocks:
        yield block
        done += len(block)
        if on_progress is not None:
            on_progress(min(1.0, done / whole))


def _add_joined(archive: zipfile.ZipFile, blocks: Iterable[Samples], folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as joined:
        encode_blocks(joined, blocks, AudioFormat.WAV)
        _add_file(archive, _SCENE_FILE, joined)


def _add_takes(
    archive: zipfile.ZipFile, timeline: Timeline, captions: Mapping[int, Caption]
) -> None:
    for entry in _iter_audible(timeline):
        assert entry.source is not None
        with entry.source.open("rb") as take:
            _add_file(archive, _build_segment_name(entry, captions), take)


def _build_segment_name(entry: TimelineEntry, captions: Mapping[int, Caption]) -> str:
    label = _build_file_label(captions.get(entry.segment_idx, _NO_CAPTION).speaker or "audio")
    return f"{entry.segment_idx + 1:04d}-{label}.wav"


def _build_file_label(speaker: str) -> str:
    """A name's letters, marks and digits; every run of other characters is one underscore."""
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
    caption = captions.get(segment_idx, _NO_CAPTION)
    return {
        "segment": segment_idx,
        "line": caption.line_number,
        "speaker": caption.speaker,
        "text": caption.text,
        "doubtful": list(caption.issues),
    } | ({"at_s": dict(caption.at_s)} if caption.at_s else {})


RECORDINGS = "Recordings"

_BYTES_PER_SAMPLE = 4.0  # the mixdown, and the most that all tracks take together
_SILENT_BLOCK = bytes(2 * BLOCK_SAMPLES)


@dataclass(frozen=True, slots=True)
class Track:
    """The track of one speaker, or of all recordings.

    Attributes:
        name: As the script has it.
        file_name: Safe on every system, and of this track alone.
        entries: In the order of the scene.
    """

    name: str
    file_name: str
    entries: tuple[TimelineEntry, ...]


def export_tracks(
    path: Path,
    timeline: Timeline,
    captions: Mapping[int, Caption],
    *,
    master: Master = NO_MASTERING,
    on_progress: OnProgress | None = None,
) -> None:
    """Write a zip: a WAV for each speaker, one for recordings, `labels.txt` and `scene.rpp`.

    Each WAV is as long as the scene and silent where others speak; added up they are the scene to
    the last bit. The labels are Audacity's, the other file is a project of Reaper's.

    Args:
        path: The zip; whole or not there.
        timeline: What is exported.
        captions: By `segment_idx`.
        master: What becomes of the level.
        on_progress: Told while the scene is laid out, and then while the tracks are written.

    Raises:
        BadInput: There is no audio, too much of it, or there are pauses without end.
        StorageFailed: A take can't be read, or there is no room, or the zip can't be written.
    """
    check_size(timeline, path, _BYTES_PER_SAMPLE)
    tracks = _group_tracks(timeline, captions)

    def halfway(share: float) -> None:
        if on_progress is not None:
            on_progress(share / 2)

    with (
        open_atomic(path) as file,
        zipfile.ZipFile(file, "w", strict_timestamps=False) as archive,
        open_mixdown(
            timeline, master, path.parent, lambda blocks: report_progress(blocks, timeline, halfway)
        ) as mix,
    ):
        for done, track in enumerate(tracks, start=1):
            _add_wav(
                archive, track.file_name, _read_track(mix, track), timeline.n_samples, deflated=True
            )
            if on_progress is not None:
                on_progress(0.5 + 0.5 * done / len(tracks))
        archive.writestr("labels.txt", _write_labels(timeline, captions), zipfile.ZIP_DEFLATED)
        archive.writestr("scene.rpp", _write_reaper_project(tracks, timeline), zipfile.ZIP_DEFLATED)


def _group_tracks(timeline: Timeline, captions: Mapping[int, Caption]) -> list[Track]:
    """One track per speaker in the order of their first lines, then one for the recordings."""
    grouped: dict[str, list[TimelineEntry]] = {}
    names: dict[str, str] = {}
    for entry in _iter_audible(timeline):
        speaker = captions.get(entry.segment_idx, _NO_CAPTION).speaker or ""
        key = name_key(speaker)
        names.setdefault(key, speaker or RECORDINGS)
        grouped.setdefault(key, []).append(entry)
    keys = sorted(grouped, key=lambda key: key == "")
    return [
        Track(names[key], f"{number:02d}-{_build_file_label(names[key])}.wav", tuple(grouped[key]))
        for number, key in enumerate(keys, start=1)
    ]


def _read_track(mix: Mixdown, track: Track) -> Iterator[bytes]:
    at_sample = 0
    for entry in track.entries:
        yield from _iter_silence(entry.start_sample - at_sample)
        yield from mix.part(entry)
        at_sample = entry.end_sample
    yield from _iter_silence(mix.n_samples - at_sample)


def _iter_silence(n_samples: int) -> Iterator[bytes]:
    for start in range(0, n_samples, BLOCK_SAMPLES):
        yield _SILENT_BLOCK[: 2 * (n_samples - start)]


def _write_labels(timeline: Timeline, captions: Mapping[int, Caption]) -> str:
    """Audacity's label track: start, end and name, with tabs between them."""
    rows = [
        f"{entry.start_s:.6f}\t{entry.end_sample / STUDIO_RATE_HZ:.6f}\t"
        f"{_format_label(entry, captions)}\n"
        for entry in _iter_audible(timeline)
    ]
    return "".join(rows)


def _format_label(entry: TimelineEntry, captions: Mapping[int, Caption]) -> str:
    caption = captions.get(entry.segment_idx, _NO_CAPTION)
    if caption.speaker is None:
        return RECORDINGS
    return " ".join(f"{caption.speaker}: {caption.text or ''}".split())


def _write_reaper_project(tracks: Iterable[Track], timeline: Timeline) -> str:
    """A minimal Reaper project: every track with its file, from time 0."""
    rows = ['<REAPER_PROJECT 0.1 "6.0" 0', f"  SAMPLERATE {STUDIO_RATE_HZ} 1 0"]
    for track in tracks:
        rows += [
            "  <TRACK",
            f"    NAME {_quote(track.name)}",
            "    <ITEM",
            "      POSITION 0",
            f"      LENGTH {timeline.duration_s:.9f}",
            f"      NAME {_quote(track.name)}",
            "      <SOURCE WAVE",
            f"        FILE {_quote(track.file_name)}",
            "      >",
            "    >",
            "  >",
        ]
    return "\n".join([*rows, ">", ""])


def _quote(text: str) -> str:
    """In whichever of Reaper's three quotes it doesn't hold; a name with all three loses one."""
    line = " ".join(text.split())
    quote = next((sign for sign in "\"'`" if sign not in line), None)
    return f"{quote}{line}{quote}" if quote else f"`{line.replace('`', chr(39))}`"
