"""Chapters and transcript as the podcast namespace has them, in JSON.

Source: `podcast:chapters`, version 1.2.0, and the transcript formats of podcastindex.org.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.export import Caption
from studio.audio.file_tags import Chapter
from studio.audio.timeline import Timeline
from studio.dialog.directions import find_said

CHAPTERS = "chapters.json"
TRANSCRIPT = "transcript.json"
PODCAST_FILES = (CHAPTERS, TRANSCRIPT)
"""Names of both files; beside a sound they are the ends of their names."""


def write_podcast_files(
    timeline: Timeline, captions: Mapping[int, Caption], chapters: Sequence[Chapter]
) -> dict[str, bytes]:
    """Write both files by their names; chapters only where there are some.

    Args:
        timeline: The scene.
        captions: By `segment_idx`.
        chapters: In order.
    """
    found = {TRANSCRIPT: {"version": "1.0.0", "segments": list(_list_lines(timeline, captions))}}
    if chapters:
        marks = [
            {"startTime": round(one.start_s, 3), "endTime": round(one.end_s, 3), "title": one.title}
            for one in chapters
        ]
        found[CHAPTERS] = {"version": "1.2.0", "chapters": marks}
    return {
        name: json.dumps(content, ensure_ascii=False, indent=2).encode()
        for name, content in found.items()
    }


def _list_lines(timeline: Timeline, captions: Mapping[int, Caption]) -> Iterator[dict[str, object]]:
    """What is said, line by line; a line of several segments is one."""
    spoken = (
        (captions[one.segment_idx], one)
        for one in timeline.entries
        if one.source is not None and one.segment_idx in captions
    )
    for _, group in groupby(spoken, lambda pair: pair[0].line_number or pair[1].segment_idx):
        parts = list(group)
        first, text = parts[0][0], " ".join(caption.said for caption, _ in parts)
        if first.written is not None:
            text = find_said(first.written).text
        if text:
            yield {
                "speaker": first.speaker,
                "startTime": round(parts[0][1].start_s, 3),
                "endTime": round(parts[-1][1].end_sample / STUDIO_RATE_HZ, 3),
                "body": text,
            }
