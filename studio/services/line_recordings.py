"""Takes that a person says: decoded apart, checked, and changed to the character's voice."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from studio.audio.analysis import Levels, measure_levels
from studio.audio.clip import STUDIO_RATE_HZ, Clip, resample
from studio.audio.decode import DEFAULT_LIMITS
from studio.audio.guarded_decode import decode_guarded
from studio.dialog.planning import MOOD
from studio.engine.engine import SpeechEngine
from studio.engine.voice_conversion import check_can_convert
from studio.errors import AudioRejected, BadInput, Conflict, NotFound
from studio.project.document import LineKind, ProjectLine
from studio.project.history import Author
from studio.project.line_states import EditEvent
from studio.project.session import ProjectSession
from studio.project.takes import Take, TakeSource, generate_take_id
from studio.quality.checks import IssueKind, QualityIssue
from studio.services.pending_takes import PendingTakes

MAX_RECORDED_S = 300.0
_LIMITS = replace(DEFAULT_LIMITS, max_duration_s=MAX_RECORDED_S)

_KEPT_SILENCE_S = 0.15
"""What stays of the silence before and after what is said, in which people breathe."""

_SILENT_PEAK_DB = -45.0
_CLIPPED_SHARE = 0.001
"""Of samples at full scale, from which on it is heard."""


@dataclass(frozen=True, slots=True)
class _Performance:
    """A recording as it becomes a take."""

    clip: Clip
    issues: tuple[QualityIssue, ...]


class LineRecordings:
    """Makes takes of recordings; from any event loop, and cancelling the call stops the work."""

    def __init__(self, engine: SpeechEngine, pending: PendingTakes) -> None:
        self._engine = engine
        self._pending = pending

    async def add(
        self, session: ProjectSession, line_id: str, path: Path, author: Author, *, acted: bool
    ) -> EditEvent:
        """Make a take of a recording of a line, and choose it as a step of undo.

        Args:
            session: The project.
            line_id: A line that is spoken.
            path: The recording, of any format that `decode` reads.
            author: Whose step of undo it is; with an `edit_id` it can be withdrawn.
            acted: Whether it is changed to the voice of the line's speaker.
        """
        pending = self._pending.find(author)

        def make() -> EditEvent:
            pending.check_wanted()
            is_stopped = pending.stopped.is_set if acted else None
            take, clip = self._perform(session, line_id, path, is_stopped)
            return pending.add(session, take, clip, author)

        with pending.unless_cancelled():
            return await asyncio.to_thread(make)

    def _perform(
        self,
        session: ProjectSession,
        line_id: str,
        path: Path,
        is_stopped: Callable[[], bool] | None,
    ) -> tuple[Take, Clip]:
        """The take and its sound, in the voice of the line's speaker if `is_stopped` is given."""
        line = _find_line(session, line_id)
        backend = session.backend
        if is_stopped is not None:
            check_can_convert(backend)  # before somebody waits for the decoder
        _, clip = decode_guarded(path, limits=_LIMITS, display_name="The recording")
        said = _check(clip)
        take, clip = _describe(line, said, session.render_context.voice_label(line)), said.clip
        if is_stopped is not None:
            mood = line.params.get(MOOD)
            voice = session.cast.load_voice(line.speaker or "", str(mood) if mood else None)
            clip = self._engine.convert(backend.name, clip, voice, is_stopped)
            clip = _at_studio_rate(clip)
            take = replace(take, source=TakeSource.ACTED, backend=backend.name)
        return replace(take, samples=len(clip)), clip


def _find_line(session: ProjectSession, line_id: str) -> ProjectLine:
    line = session.document.lines.get(line_id)
    if line is None:
        raise NotFound("This line was deleted.")
    if line.kind is not LineKind.SPEECH:
        raise BadInput("Only a line that is spoken can be recorded.")
    if line.locked:
        raise Conflict("This line is locked. Unlock it first.")
    return line


def _check(clip: Clip) -> _Performance:
    """Cut the silence around what is said.

    Raises:
        AudioRejected: Nothing is said in it.
    """
    levels = measure_levels(clip)
    if levels.peak_db < _SILENT_PEAK_DB or levels.speech_share == 0:
        raise AudioRejected(
            "Nothing can be heard in this recording. Check that the right microphone is chosen, "
            "that it isn't muted, and speak closer to it."
        )
    return _Performance(_trim(clip, levels), tuple(_find_issues(levels)))


def _trim(clip: Clip, levels: Levels) -> Clip:
    first = round(max(0.0, levels.leading_silence_s - _KEPT_SILENCE_S) * clip.rate_hz)
    last = round(max(0.0, levels.trailing_silence_s - _KEPT_SILENCE_S) * clip.rate_hz)
    return Clip(clip.samples[first : len(clip) - last], clip.rate_hz)


def _find_issues(levels: Levels) -> Iterator[QualityIssue]:
    share = levels.clipped_share
    if share > _CLIPPED_SHARE:
        message = (
            f"Clipping: {share:.1%} of the recording is at full scale. Record it again with less "
            "gain, or further from the microphone."
        )
        yield QualityIssue(IssueKind.CLIPPED, round(share, 4), message)


def _at_studio_rate(clip: Clip) -> Clip:
    if clip.rate_hz == STUDIO_RATE_HZ:
        return clip
    return Clip(np.concatenate(list(resample(iter([clip.samples]), clip.rate_hz, STUDIO_RATE_HZ))))


def _describe(line: ProjectLine, said: _Performance, voice: str) -> Take:
    """The record of a recorded take, whose key is like no other's: nothing renders it again."""
    take_id = generate_take_id()
    return Take(
        take_id=take_id,
        line_id=line.line_id,
        key=hashlib.sha256(f"recorded {take_id}".encode()).hexdigest()[:32],
        seed=0,
        backend="",
        text=line.text,
        voice=voice,
        samples=len(said.clip),
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        language=line.language,
        doubts=said.issues,
        source=TakeSource.RECORDING,
    )
