"""One segment of a render: how far it is, and what was heard of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from studio.audio.clip import Samples
from studio.audio.doubts import Checked
from studio.dialog.planning import Segment
from studio.engine.feed import Feed


class SegmentState(StrEnum):
    """How far a segment is. Silence and existing audio go from planned to saved.

    A segment that found no memory goes from started back to queued, once. One that was cut may be
    started again, with another seed and a message, also once.
    """

    PLANNED = "planned"
    QUEUED = "queued"
    STARTED = "started"
    GENERATED = "generated"
    SAVED = "saved"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_STATES = frozenset({SegmentState.SAVED, SegmentState.FAILED, SegmentState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a job; `segment_idx` None when it concerns the job as a whole."""

    state: str
    at_s: float
    segment_idx: int | None = None
    samples: int | None = None
    message: str | None = None


@dataclass(slots=True)
class SegmentRecord:
    """One segment's fate.

    Attributes:
        samples: Length at the studio's rate, known when generated.
        path: The saved WAV; None for silence, and until saved. That of a segment that failed holds
            what was made before it was cut.
        message: Why it failed.
        fault: What kind of error it was, by the name of its class.
        cut: Whether it failed by not coming to its end, so that its audio isn't whole.
        retried: Why a first try was thrown away; None when there was just one.
        live: Chunks of a speech segment as they are generated; closed when all are there. A second
            try with another seed has a new one, and the former is withdrawn.
        at_s: When each state was reached, in seconds since the job began.
        first_chunk_s: When the first audio was there.
        last_chunk_s: When the latest was.
        heard_samples: How much could be heard of it so far, at the studio's rate.
        seed: Of the latest try, where that isn't the segment's own.
        checked: What its samples tell; of speech that came to its end, known when saved.
    """

    segment: Segment
    state: SegmentState = SegmentState.PLANNED
    samples: int | None = None
    path: Path | None = None
    message: str | None = None
    fault: str | None = None
    cut: bool = False
    retried: str | None = None
    live: Feed[Samples] = field(default_factory=Feed)
    at_s: dict[SegmentState, float] = field(default_factory=dict)
    first_chunk_s: float | None = None
    last_chunk_s: float = 0.0
    heard_samples: int = 0
    seed: int | None = None
    checked: Checked | None = None

    @property
    def final(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in FINAL_STATES
