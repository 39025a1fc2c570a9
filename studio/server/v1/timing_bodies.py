"""What is said when, in the shape that OpenAI's speech-to-text gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from studio.hearing.timing_files import TimedLine, list_sentences, show_line

Granularity = Literal["word", "segment"]
"""As OpenAI's speech-to-text names them."""


class WordStamp(BaseModel):
    """When a word is said, in seconds."""

    word: str
    start: float
    end: float


class SegmentStamp(BaseModel):
    """When a sentence is said, in seconds, and by whom."""

    id: int
    start: float
    end: float
    text: str
    speaker: str


class DialogTimings(BaseModel):
    """What is said when, in the shape of OpenAI's verbose_json."""

    task: Literal["align"] = "align"
    duration: float
    text: str
    words: list[WordStamp] | None = None
    segments: list[SegmentStamp] | None = None


def describe_timings(
    lines: Sequence[TimedLine], duration_s: float, granularities: Sequence[Granularity]
) -> DialogTimings:
    """The times of words and sentences; without granularities those of sentences."""
    wanted = granularities or ("segment",)
    said = [word for line in lines for word in line.words]
    words = [WordStamp(word=one.word, start=one.start_s, end=one.end_s) for one in said]
    sentences = [
        SegmentStamp(id=at, start=one.start_s, end=one.end_s, text=one.text, speaker=one.speaker)
        for at, one in enumerate(list_sentences(lines))
    ]
    return DialogTimings(
        duration=round(duration_s, 3),
        text="\n".join(show_line(line).text for line in lines),
        words=words if "word" in wanted else None,
        segments=sentences if "segment" in wanted else None,
    )
