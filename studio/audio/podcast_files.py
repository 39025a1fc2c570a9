"""Chapters and transcript as the podcast namespace has them, in JSON.

Source: `podcast:chapters`, version 1.2.0, and the transcript formats of podcastindex.org.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.file_tags import Chapter
from studio.audio.timeline import Timeline

CHAPTERS = "chapters.json"
TRANSCRIPT = "transcript.json"
PODCAST_FILES = (CHAPTERS, TRANSCRIPT)
"""Names of both files; beside a sound they are the ends of their names."""

Said = tuple[str | None, str]
"""A speaker, and what is heard of the text."""


def write_podcast_files(
    timeline: Timeline, said: Mapping[int, Said], chapters: Sequence[Chapter]
) -> dict[str, bytes]:
    """Write both files by their names; chapters only where there are some.

    Args:
        timeline: The scene.
        said: By `segment_idx`.
        chapters: In order.
    """
    found = {TRANSCRIPT: {"version": "1.0.0", "segments": list(_list_segments(timeline, said))}}
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


def _list_segments(timeline: Timeline, said: Mapping[int, Said]) -> Iterator[dict[str, object]]:
    for entry in timeline.entries:
        speaker, text = said.get(entry.segment_idx, (None, ""))
        if entry.source is not None and text:
            yield {
                "speaker": speaker,
                "startTime": round(entry.start_s, 3),
                "endTime": round(entry.end_sample / STUDIO_RATE_HZ, 3),
                "body": text,
            }
