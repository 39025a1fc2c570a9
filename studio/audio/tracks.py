"""Export of a scene as a zip of one track per speaker, for Audacity and Reaper."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from studio.audio.clip import BLOCK_SAMPLES, STUDIO_RATE_HZ
from studio.audio.export import (
    NO_CAPTION,
    NO_FORM,
    Caption,
    FileForm,
    OnProgress,
    add_documents,
    add_wav,
    build_file_label,
    check_size,
    iter_audible,
    report_progress,
    scale_progress,
)
from studio.audio.file_tags import Chapter
from studio.audio.mastering import NO_MASTERING, Master, Mixdown, open_mixdown
from studio.audio.timeline import Timeline, TimelineEntry
from studio.dialog.model import name_key
from studio.storage.disk import open_atomic
from studio.storage.zip_members import ZipWriter

RECORDINGS = "Recordings"

_BYTES_PER_SAMPLE = 4.0  # the mixdown, and the most that all tracks take together
_PAN_LAW = 0.70710678
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
    form: FileForm = NO_FORM,
    on_progress: OnProgress | None = None,
) -> None:
    """Write a zip: a WAV for each speaker, one for recordings, `labels.txt` and `scene.rpp`.

    Each WAV is mono, as long as the scene and silent where others speak; added up they are the
    scene before panning to the last bit. The labels are Audacity's; the other file is a project of
    Reaper's with an item for each line, a marker for each chapter and each track's pan.

    Args:
        path: The zip; whole or not there.
        timeline: What is exported.
        captions: By `segment_idx`.
        master: What becomes of the level.
        form: Its chapters and title.
        on_progress: Told while the scene is laid out, and then while the tracks are written.
    """
    check_size(timeline, path, _BYTES_PER_SAMPLE)
    tracks = _group_tracks(timeline, captions)

    halfway = scale_progress(on_progress, 0.0, 0.5)
    with (
        open_atomic(path) as file,
        ZipWriter(file) as archive,
        open_mixdown(
            timeline, master, path.parent, lambda blocks: report_progress(blocks, timeline, halfway)
        ) as mix,
    ):
        for done, track in enumerate(tracks, start=1):
            said = (captions.get(one.segment_idx, NO_CAPTION) for one in track.entries)
            sound = _read_track(mix, track), timeline.n_samples, form.encode_part_tags(*said)
            add_wav(archive, track.file_name, *sound, deflated=True)
            if on_progress is not None:
                on_progress(0.5 + 0.5 * done / len(tracks))
        archive.writestr("labels.txt", _write_labels(timeline, captions), zipfile.ZIP_DEFLATED)
        project = _write_reaper_project(
            tracks, captions, form.tags.chapters, is_stereo=timeline.n_channels == 2
        )
        archive.writestr("scene.rpp", project, zipfile.ZIP_DEFLATED)
        add_documents(archive, form)


def _group_tracks(timeline: Timeline, captions: Mapping[int, Caption]) -> list[Track]:
    """One track per speaker in the order of their first lines, then one for the recordings."""
    grouped: dict[str, list[TimelineEntry]] = {}
    names: dict[str, str] = {}
    for entry in iter_audible(timeline):
        speaker = captions.get(entry.segment_idx, NO_CAPTION).speaker or ""
        key = name_key(speaker)
        names.setdefault(key, speaker or RECORDINGS)
        grouped.setdefault(key, []).append(entry)
    keys = sorted(grouped, key=lambda key: key == "")
    return [
        Track(names[key], f"{number:02d}-{build_file_label(names[key])}.wav", tuple(grouped[key]))
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
        for entry in iter_audible(timeline)
    ]
    return "".join(rows)


def _format_label(entry: TimelineEntry, captions: Mapping[int, Caption]) -> str:
    caption = captions.get(entry.segment_idx, NO_CAPTION)
    if caption.speaker is None:
        return RECORDINGS
    return " ".join(f"{caption.speaker}: {caption.shown}".split())


def _name_item(entry: TimelineEntry, captions: Mapping[int, Caption]) -> str:
    caption = captions.get(entry.segment_idx, NO_CAPTION)
    return RECORDINGS if caption.speaker is None else f"{caption.speaker}: {caption.said}"


def _write_reaper_project(
    tracks: Iterable[Track],
    captions: Mapping[int, Caption],
    chapters: Iterable[Chapter],
    *,
    is_stereo: bool,
) -> str:
    """A minimal Reaper project: an item for each line, cut out of its speaker's file."""
    rows = ['<REAPER_PROJECT 0.1 "6.0" 0', f"  SAMPLERATE {STUDIO_RATE_HZ} 1 0"]
    rows += [
        f"  MARKER {number} {chapter.start_s:.9f} {_quote(chapter.title)} 0"
        for number, chapter in enumerate(chapters, start=1)
    ]
    for track in tracks:
        rows += ["  <TRACK", f"    NAME {_quote(track.name)}"]
        if is_stereo:
            # Volume, pan, pan law (-3 dB in the middle), and two of its other pan modes.
            rows.append(f"    VOLPAN 1 {track.entries[0].pan:g} {_PAN_LAW} -1 1")
        for entry in track.entries:
            rows += [
                "    <ITEM",
                f"      POSITION {entry.start_s:.9f}",
                f"      LENGTH {entry.duration_s:.9f}",
                f"      NAME {_quote(_name_item(entry, captions))}",
                f"      SOFFS {entry.start_s:.9f}",
                "      <SOURCE WAVE",
                f"        FILE {_quote(track.file_name)}",
                "      >",
                "    >",
            ]
        rows.append("  >")
    return "\n".join([*rows, ">", ""])


def _quote(text: str) -> str:
    """In whichever of Reaper's three quotes it doesn't hold; a name with all three loses one."""
    line = " ".join(text.split())
    quote = next((sign for sign in "\"'`" if sign not in line), None)
    return f"{quote}{line}{quote}" if quote else f"`{line.replace('`', chr(39))}`"
