"""Captions of a render: the written words, with the times of their segments."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.timeline import TimelineEntry
from studio.dialog.formats.caption_writer import PauseSpan
from studio.dialog.formats.dialog_file import export_dialog, format_of_suffix
from studio.dialog.model import MAX_PAUSE_S, Dialog, Line, Pronounce, Silence, Speech
from studio.dialog.planning import Segment, SpeechSegment
from studio.engine.job import Job, build_scene


def write_captions(job: Job, dialog: Dialog, pronounce: Pronounce, output: Path) -> bytes:
    """Captions of a render in the written words, timed by its audio.

    Args:
        job: One that has ended.
        dialog: What was rendered.
        pronounce: Gave the lines as they were spoken.
        output: Its suffix gives the format.
    """
    format_ = format_of_suffix(output.name)
    assert format_ is not None
    timed: list[tuple[Line, float]] = []
    pauses: dict[int, list[PauseSpan]] = {}
    entries = build_scene(job).timeline.entries
    end_sample = 0
    for line_idx, group in groupby(entries, lambda one: _segment(job, one).line_idx):
        line, of_line = dialog.lines[line_idx], list(group)
        segments = [_segment(job, one) for one in of_line]
        gap_s = (of_line[0].start_sample - end_sample) / STUDIO_RATE_HZ
        if gap_s:
            timed.append((Silence(gap_s), gap_s))
        end_sample = of_line[-1].end_sample
        said_in = next((one.said_in for one in segments if isinstance(one, SpeechSegment)), None)
        if isinstance(line, Speech) and pronounce(line.text, said_in) != line.text:
            # Its segments have the spoken forms; the words that are written have no times.
            pauses[len(timed)] = _list_pauses(of_line)
            timed.append((line, sum(one.duration_s for one in of_line)))
        else:
            timed += [(_caption_line(_segment(job, one), one), one.duration_s) for one in of_line]
    lines, durations_s = tuple(line for line, _ in timed), [duration_s for _, duration_s in timed]
    return export_dialog(Dialog(lines), format_, durations_s=durations_s, pauses=pauses)


def _segment(job: Job, entry: TimelineEntry) -> Segment:
    return job.records[entry.segment_idx].segment


def _caption_line(segment: Segment, entry: TimelineEntry) -> Line:
    if isinstance(segment, SpeechSegment):
        return Speech(segment.speaker, segment.text)
    return Silence(min(entry.duration_s, MAX_PAUSE_S))


def _list_pauses(entries: list[TimelineEntry]) -> list[PauseSpan]:
    """The silences among the segments of a line, from the line's beginning."""
    begin_s = entries[0].start_s
    silent = [one for one in entries if one.source is None]
    return [(one.start_s - begin_s, one.start_s - begin_s + one.duration_s) for one in silent]
