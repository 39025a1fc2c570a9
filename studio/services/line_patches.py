"""Words of a ready line said again: spoken in their context, and laid into a take of their own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.timeline import read_take
from studio.dialog.model import Dialog, Speech
from studio.dialog.planning import Plan, Segment, SilenceSegment, SpeechSegment, plan
from studio.errors import BadInput, Conflict, NotFound, SpeechFailed
from studio.hearing.patching import AlignedClip, Patch, lay_patch
from studio.hearing.spoken_places import find_spoken_span
from studio.hearing.word_times import WordTime
from studio.project.document import LineKind, ProjectLine
from studio.project.history import Author
from studio.project.line_states import EditEvent, LineState
from studio.project.session import ProjectSession
from studio.project.takes import Take, TakePatch, describe_same, generate_take_id
from studio.quality.checks import ExpectedSpeech, QualityReport, build_expected_speech
from studio.services.pending_takes import PendingTakes
from studio.services.previews import VoicePreviews

Align = Callable[[Clip, str, str | None], Sequence[WordTime]]
"""Finds the words of a text, in a language if that is known, in a clip that reads it."""

Check = Callable[[Clip, ExpectedSpeech], QualityReport]

_MAX_SAMPLES = 600 * STUDIO_RATE_HZ


@dataclass(frozen=True, slots=True)
class _Phrase:
    """What is spoken for some marked words.

    Attributes:
        take: The take that they are laid into.
        segments: Of the whole line; those in the middle are spoken.
        spoken: Index of the first segment to speak, and of the one after the last.
        span: The words in the line's spoken text.
        language: Of the line, if anybody says.
    """

    take: Take
    segments: tuple[Segment, ...]
    spoken: tuple[int, int]
    span: tuple[int, int]
    seed: int
    language: str | None

    @property
    def text(self) -> str:
        return _join_texts(self.segments)

    @property
    def offset(self) -> int:
        before = _join_texts(self.segments[: self.spoken[0]])
        return len(before) + 1 if before else 0

    @property
    def plan(self) -> Plan:
        chosen = self.segments[slice(*self.spoken)]
        return Plan(tuple(replace(one, segment_idx=idx) for idx, one in enumerate(chosen)))


class LinePatches:
    """Says words of ready lines again; from any event loop, and cancelling the call stops it."""

    def __init__(
        self, previews: VoicePreviews, align: Align, check: Check, pending: PendingTakes
    ) -> None:
        """Speak as previews are spoken.

        Args:
            previews: Speak on the engine.
            align: Called in a thread.
            check: Checks the quality of the whole take, in a thread.
            pending: Where the takes can be withdrawn.
        """
        self._previews = previews
        self._align = align
        self._check = check
        self._pending = pending

    async def say_again(
        self, session: ProjectSession, line_id: str, marked: tuple[int, int], author: Author
    ) -> EditEvent:
        """Say words of a line again and lay them into a new take of it, which is chosen.

        Args:
            session: The project.
            line_id: A ready line.
            marked: The part of its text, in UTF-16 units; a word counts as a whole.
            author: Whose step of undo it is; with an `edit_id` it can be withdrawn.
        """
        pending = self._pending.find(author)
        with pending.unless_cancelled():
            pending.check_wanted()
            phrase = await asyncio.to_thread(_plan_phrase, session, line_id, marked)
            cast, backend = session.cast, phrase.take.backend
            donor = await self._previews.speak_plan(phrase.plan, cast, backend)
            take, clip = await asyncio.to_thread(self._lay, session, phrase, donor)
            same = session.take_store.find_same
            others = session.list_takes(line_id)
            if await asyncio.to_thread(same, take, clip, others) is not None:
                raise SpeechFailed(describe_same(session.backend.title))
            return await asyncio.to_thread(pending.add, session, take, clip, author)

    def _lay(self, session: ProjectSession, phrase: _Phrase, donor: Clip) -> tuple[Take, Clip]:
        clip = read_take(session.take_store.get_audio_path(phrase.take))
        take = AlignedClip(clip, self._align(clip, phrase.text, phrase.language))
        text = _join_texts(phrase.plan.segments)
        other = AlignedClip(donor, self._align(donor, text, phrase.language))
        patch = lay_patch(take, other, *phrase.span, offset=phrase.offset)
        report = self._report(phrase, patch.clip)
        return _describe(phrase, patch, report), patch.clip

    def _report(self, phrase: _Phrase, clip: Clip) -> QualityReport | None:
        """The quality of the whole; None where pauses inside would be taken for gaps."""
        if any(isinstance(one, SilenceSegment) for one in phrase.segments):
            return None
        said = build_expected_speech(phrase.segments[0])
        return self._check(clip, replace(said, text=phrase.text))


def _plan_phrase(session: ProjectSession, line_id: str, marked: tuple[int, int]) -> _Phrase:
    with session.lock:
        line, take = _find_ready(session, line_id)
        context = session.render_context
    session.check_audio(take)
    language = line.language or context.resolve_language(line)
    first, end = session.backend.capabilities.take_seeds
    seed = first + secrets.randbelow(end - first)
    spoken = replace(context.inherit(line), language=language, seed=None).to_dialog_line()
    assert isinstance(spoken, Speech)
    planned = plan(
        Dialog((spoken,)), context.limits, seed=seed, pronounce=partial(context.pronounce, line)
    )
    text = _join_texts(planned.segments)
    said = context.build_spoken_words(line, line.text)
    span = find_spoken_span(line.text, _from_utf16(line.text, marked), said, text)
    if span is None:
        raise BadInput("Mark the words that are to be said again.")
    spoken_segments = _find_segments(planned.segments, span)
    return _Phrase(take, planned.segments, spoken_segments, span, seed, language)


def _find_ready(session: ProjectSession, line_id: str) -> tuple[ProjectLine, Take]:
    view = session.get_view(line_id)
    if view is None:
        raise NotFound("This line was deleted.")
    if view.line.kind is not LineKind.SPEECH:
        raise BadInput("Only a line that is spoken has words to say again.")
    if view.line.locked:
        raise Conflict("This line is locked. Unlock it first.")
    chosen = session.take_store.get(view.line.chosen)
    if view.take is None and chosen is not None and session.take_store.is_freed(chosen):
        raise NotFound("The audio of this line's take was freed. Render the line first.")
    if view.state is not LineState.READY or view.take is None:
        raise Conflict("This line has no audio of its words as they are now. Render it first.")
    if view.take.samples > _MAX_SAMPLES:
        raise BadInput("Words can be said again in takes of up to 10 minutes. Divide this line.")
    if view.take.source is not None:
        raise BadInput(
            "Words of a recording can't be said again by an engine. Record the line again."
        )
    return view.line, view.take


def _from_utf16(text: str, span: tuple[int, int]) -> tuple[int, int]:
    units = text.encode("utf-16-le")
    start, end = (len(units[: 2 * at].decode("utf-16-le", "ignore")) for at in span)
    return start, end


def _join_texts(segments: Sequence[Segment]) -> str:
    return " ".join(one.text for one in segments if isinstance(one, SpeechSegment))


def _find_segments(segments: Sequence[Segment], span: tuple[int, int]) -> tuple[int, int]:
    """The segments that hold a part of their joined text: the first, and the one after the last."""
    start, found = 0, []
    for idx, one in enumerate(segments):
        if isinstance(one, SpeechSegment):
            if start < span[1] and start + len(one.text) > span[0]:
                found.append(idx)
            start += len(one.text) + 1
    return found[0], found[-1] + 1


def _describe(phrase: _Phrase, patch: Patch, report: QualityReport | None) -> Take:
    """The record of a patched take."""
    base = phrase.take
    return replace(
        base,
        take_id=generate_take_id(),
        seed=phrase.seed,
        samples=len(patch.clip),
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        doubts=report.issues if report else base.doubts,
        figures=report.metrics if report else base.figures,
        audio_crc32=None,
        pauses=_shift_pauses(base, patch),
        at_s={},
        words=None,
        phonemes=None,
        recognised=None,
        patch=TakePatch(base.take_id, patch.start, patch.end, patch.resumes),
    )


def _shift_pauses(base: Take, patch: Patch) -> tuple[tuple[int, int], ...] | None:
    """The pauses of a take, where they are now; None, not known, with one in the patch."""
    if base.pauses is None or any(
        start < patch.resumes and end > patch.start for start, end in base.pauses
    ):
        return None
    by = patch.end - patch.resumes
    return tuple(
        (start, end) if end <= patch.start else (start + by, end + by) for start, end in base.pauses
    )
