"""What is said when in a finished render: its segments are aligned one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

from studio.audio.timeline import TimelineEntry
from studio.dialog.model import Dialog, Speech, name_key
from studio.dialog.planning import SpeechSegment
from studio.dialog.pronunciation import PronunciationRules, build_spoken_words
from studio.engine.job import Job, build_scene
from studio.errors import StudioError
from studio.hearing.timing_files import TimedLine, place_in_scene
from studio.hearing.word_aligner import WordAligner
from studio.hearing.word_times import Alignment, PhonemeTime, WordTime
from studio.hearing.written_words import place_in_written


def time_render(
    job: Job, dialog: Dialog, aligner: WordAligner, rules: PronunciationRules
) -> tuple[list[TimedLine], float, list[str]]:
    """Time the words of a render.

    Args:
        job: One that has ended, and whose files are there.
        dialog: What was rendered.
        aligner: Times the words.
        rules: By which it was spoken.

    Returns:
        The lines that were spoken, with times of the scene; its length in seconds; and why lines
        have no words, if any have none.
    """
    timeline = build_scene(job).timeline
    lines: list[TimedLine] = []
    problems: list[str] = []
    names: dict[str, str] = {}
    for line_idx, group in groupby(timeline.entries, partial(_find_line, job)):
        line, entries = dialog.lines[line_idx], list(group)
        if not isinstance(line, Speech):
            continue
        start_s, end_s = entries[0].start_s, entries[-1].start_s + entries[-1].duration_s
        number = job.records[entries[0].segment_idx].segment.line_number
        speaker = names.setdefault(name_key(line.speaker), line.speaker)
        timed = TimedLine(number, speaker, line.text, start_s, end_s, language=line.language)
        try:
            timed = place_in_scene(timed, _align_line(job, entries, line.text, aligner, rules))
        except StudioError as error:
            problems.append(f"Line {number} has no words: {error}")
        lines.append(timed)
    return lines, timeline.duration_s, problems


def _find_line(job: Job, entry: TimelineEntry) -> int:
    return job.records[entry.segment_idx].segment.line_idx


def _align_line(
    job: Job,
    entries: Sequence[TimelineEntry],
    text: str,
    aligner: WordAligner,
    rules: PronunciationRules,
) -> Alignment:
    """The words of a line, in seconds of the line."""
    words: list[WordTime] = []
    said_in: str | None = None
    phonemes: list[PhonemeTime] = []
    for entry in entries:
        record = job.records[entry.segment_idx]
        segment = record.segment
        if isinstance(segment, SpeechSegment) and record.path is not None:
            found = aligner.align_file(record.path, segment.text, segment.language)
            found = found.moved(entry.start_s - entries[0].start_s, pace=entry.pace)
            words += found.words
            said_in = segment.said_in
            phonemes += found.phonemes
    said = build_spoken_words(text, rules, said_in)
    return Alignment(place_in_written(words, said, text), tuple(phonemes))
