"""Which segments of a job are doubtful: by themselves, and beside others of the same voice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

from studio.audio.doubts import Doubt, Figures, Usual, stands_out, usual_of
from studio.audio.spoken_length import Said
from studio.dialog.names import name_key
from studio.dialog.planning import Segment, SpeechSegment
from studio.engine.job import Job
from studio.engine.record import SegmentRecord


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A segment that was spoken and is to be heard before it is used, with the script's line."""

    segment_idx: int
    line_number: int
    doubts: tuple[Doubt, ...]

    @property
    def message(self) -> str:
        """All doubts in one piece."""
        return " ".join(doubt.message for doubt in self.doubts)


def said_of(segment: Segment) -> Said:
    """What a segment was to say."""
    assert isinstance(segment, SpeechSegment)
    speed = segment.params.get("speed", 1.0)
    is_number = isinstance(speed, int | float) and not isinstance(speed, bool) and speed > 0
    return Said(segment.text, float(speed) if is_number else 1.0)


def doubtful(job: Job) -> tuple[Doubtful, ...]:
    """Segments of a job that are doubtful as far as it has come, in order.

    A voice's segments are compared with each other once there are eight of them.
    """
    usual = _usual(job)
    found = []
    for record in job.records:
        if record.checked is None:
            continue
        others = stands_out(record.checked.figures, usual.get(_voice(record)))
        if doubts := record.checked.doubts + others:
            segment = record.segment
            found.append(Doubtful(segment.segment_idx, segment.line_number, doubts))
    return tuple(found)


def _usual(job: Job) -> dict[Hashable, Usual | None]:
    figures: dict[Hashable, list[Figures]] = defaultdict(list)
    for record in job.records:
        if record.checked is not None:
            figures[_voice(record)].append(record.checked.figures)
    return {voice: usual_of(others) for voice, others in figures.items()}


def _voice(record: SegmentRecord) -> Hashable:
    """What segments have in common that are to sound alike."""
    segment = record.segment
    assert isinstance(segment, SpeechSegment)
    params = tuple(sorted(segment.params.items()))
    how = (segment.mood, segment.instruct, segment.language)
    return (name_key(segment.speaker), *how, params)
