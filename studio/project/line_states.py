"""The state of each line: its take, whether that is current, and its quality issues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from studio.audio.clip import STUDIO_RATE_HZ
from studio.project.document import Document, LineKind, ProjectLine
from studio.project.line_job import LineJob
from studio.project.render_context import RenderContext
from studio.project.takes import Take, TakeStore, VoiceKey, build_voice_key
from studio.quality.checks import QualityIssue, VoiceBaseline, build_baseline, find_outliers

_REFRESH_GROWTH = 1.1
"""By how many times the takes of a voice may grow before they are looked at again."""


class VoiceOutliers:
    """Knows what is usual for each voice of a project. Under the session's lock."""

    def __init__(self, shelf: TakeStore) -> None:
        """Nothing was looked at yet."""
        self._take_store = shelf
        self._baselines: dict[VoiceKey, tuple[int, VoiceBaseline | None]] = {}
        self._refreshed_counts: dict[VoiceKey, int] = {}
        self._known_outliers: set[str] = set()

    def find_issues(self, take: Take) -> tuple[QualityIssue, ...]:
        """What may not be right about a take, by itself and beside the others."""
        return take.doubts + self._find_outliers(take)

    def refresh(self) -> list[str]:
        """After a render: look at the voices that have more takes than before.

        Returns:
            Lines with a take that stands out now, or did when it was asked about.
        """
        lines: set[str] = set()
        for voice in list(self._baselines):
            takes = self._take_store.list_for_voice(voice)
            if len(takes) == self._refreshed_counts.get(voice):
                continue
            self._refreshed_counts[voice] = len(takes)
            self._build_baseline(voice)
            before = frozenset(self._known_outliers)
            lines |= {
                one.line_id for one in takes if self._find_outliers(one) or one.take_id in before
            }
        return sorted(lines)

    def _find_outliers(self, take: Take) -> tuple[QualityIssue, ...]:
        if take.figures is None or take.cut:
            return ()
        voice = build_voice_key(take)
        n_known, usual = self._baselines.get(voice, (0, None))
        if self._take_store.count_for_voice(voice) > _REFRESH_GROWTH * n_known:
            usual = self._build_baseline(voice)
        found = find_outliers(take.figures, usual)
        if found:
            self._known_outliers.add(take.take_id)
        return found

    def _build_baseline(self, voice: VoiceKey) -> VoiceBaseline | None:
        takes = self._take_store.list_for_voice(voice)
        usual = build_baseline([take.figures for take in takes if take.figures is not None])
        self._baselines[voice] = (len(takes), usual)
        return usual


class LineState(StrEnum):
    """How far a line is; `stale` when its take was made of something else than it says now."""

    NONE = "none"
    QUEUED = "queued"
    GENERATING = "generating"
    READY = "ready"
    STALE = "stale"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LineView:
    """A line as people see it.

    Attributes:
        message: Why it failed.
        take: The chosen one.
        n_takes: Without the deleted ones.
        samples: Length of the chosen take, or of a silence; None when there is nothing to hear.
        generating_take_id: The id of the take that is being spoken; None when none is.
        issues: What may not be right about the chosen take.
        spoken_text: What a voice hears, where pronunciations make that another text.
    """

    line: ProjectLine
    state: LineState
    message: str | None
    take: Take | None
    n_takes: int
    samples: int | None
    generating_take_id: str | None = None
    issues: tuple[QualityIssue, ...] = ()
    spoken_text: str | None = None


@dataclass(frozen=True, slots=True)
class LineFailure:
    """Why a line has no take for its key."""

    key: str
    message: str


class LineStates:
    """Looks at lines; keys are computed once for each state of a line and of its ground."""

    def __init__(
        self,
        shelf: TakeStore,
        wanted: Mapping[str, int | None],
        making: Mapping[str, LineJob],
    ) -> None:
        """Look at the lines of one project, and at what a render does with them."""
        self._take_store = shelf
        self._queued = wanted
        self._line_jobs = making
        self.failures: dict[str, LineFailure] = {}
        self.outliers = VoiceOutliers(shelf)
        self._keys: dict[str, tuple[ProjectLine, RenderContext, str]] = {}

    def get_key(self, line: ProjectLine, ground: RenderContext) -> str:
        """A line's key now."""
        known = self._keys.get(line.line_id)
        if known is None or known[0] is not line or known[1] is not ground:
            known = self._keys[line.line_id] = (line, ground, ground.compute_key(line))
        return known[2]

    def build_view(self, line: ProjectLine, document: Document, ground: RenderContext) -> LineView:
        """A line as it is now."""
        take = self.find_chosen(line, document)
        state, message = self._state(line, take, ground)
        samples = take.samples if take is not None else None
        if line.kind is LineKind.SILENCE:
            samples = round((line.duration_s or 0.0) * STUDIO_RATE_HZ)
        n_takes = len(self.list_takes(line.line_id, document))
        making = self._line_jobs.get(line.line_id) if state is LineState.GENERATING else None
        making_id = making.take_id if making is not None else None
        doubts = self.outliers.find_issues(take) if take is not None else ()
        spoken = ground.find_changed_text(line)
        return LineView(line, state, message, take, n_takes, samples, making_id, doubts, spoken)

    def list_takes(self, line_id: str, document: Document) -> list[Take]:
        """A line's takes without the deleted ones, the oldest first; those that are gone too."""
        takes = self._take_store.list_for_line(line_id)
        if not document.deleted_takes:
            return list(takes)
        deleted = frozenset(document.deleted_takes)
        return [take for take in takes if take.take_id not in deleted]

    def find_chosen(self, line: ProjectLine, document: Document) -> Take | None:
        """The take that is heard; None when it has none, or it is gone."""
        take = self._take_store.get(line.chosen)
        if (
            take is None
            or take.take_id in document.deleted_takes
            or self._take_store.is_freed(take)
        ):
            return None
        return take

    def measure_audio_s(self, document: Document) -> float:
        """Length of all that can be heard, in seconds."""
        takes = (self.find_chosen(line, document) for line in document)
        silence_s = sum(line.duration_s or 0.0 for line in document)
        return silence_s + sum(take.samples for take in takes if take) / STUDIO_RATE_HZ

    def is_ready(self, line: ProjectLine, document: Document, ground: RenderContext) -> bool:
        """Whether its take is of what it says now."""
        take = self.find_chosen(line, document)
        return take is not None and self._is_current(line, take, ground)

    def find_current(
        self, line: ProjectLine, document: Document, ground: RenderContext, seed: int | None = None
    ) -> Take | None:
        """The newest take of what a line says now, of that seed; for None, of its own or any."""
        wanted = line.seed if seed is None else seed
        fits = [
            take
            for take in self.list_takes(line.line_id, document)
            if not take.cut
            and wanted in (None, take.seed)
            and self._matches_key(line, take, ground)
            and not self._take_store.is_freed(take)
        ]
        return fits[-1] if fits else None

    def count_cut(self, line: ProjectLine, document: Document, ground: RenderContext) -> int:
        """How many times a line was cut off as it says now."""
        takes = self.list_takes(line.line_id, document)
        return sum(take.cut and self._matches_key(line, take, ground) for take in takes)

    def find_freed(
        self, line: ProjectLine, document: Document, ground: RenderContext, seed: int | None = None
    ) -> Take | None:
        """The take that is gone and would fit: the one of a seed; for None, the chosen one."""
        for take in self.list_takes(line.line_id, document):
            is_meant = take.take_id == line.chosen if seed is None else take.seed == seed
            if (
                is_meant
                and not take.cut
                and self._take_store.is_freed(take)
                and self._is_current(line, take, ground)
            ):
                return take
        return None

    def choose_current(
        self, document: Document, ground: RenderContext, line_ids: Iterable[str]
    ) -> Document:
        """Choose, for lines whose take no longer fits, one that does, where there is one.

        A take that would fit if it weren't gone stays chosen: it is what the line waits for.
        """
        lines = dict(document.lines)
        for line_id in line_ids:
            line = lines.get(line_id)
            if line is None or line.locked or line.kind is LineKind.SILENCE:
                continue
            if self.is_ready(line, document, ground) or self.find_freed(line, document, ground):
                continue
            take = self.find_current(line, document, ground)
            if take is not None:
                lines[line_id] = replace(line, chosen=take.take_id)
        return replace(document, lines=lines)

    def _is_current(self, line: ProjectLine, take: Take, ground: RenderContext) -> bool:
        return line.seed in (None, take.seed) and self._matches_key(line, take, ground)

    def _matches_key(self, line: ProjectLine, take: Take, ground: RenderContext) -> bool:
        """Whether a take is of the words and the voice of a line."""
        if take.key == self.get_key(line, ground):
            return True
        return take.key in ground.compute_legacy_keys(line, take.voice, take.backend)

    def _state(
        self, line: ProjectLine, take: Take | None, ground: RenderContext
    ) -> tuple[LineState, str | None]:
        if line.kind is LineKind.SILENCE:
            return LineState.READY, None
        making = self._line_jobs.get(line.line_id)
        if making is not None and making.has_started:
            return LineState.GENERATING, None
        if line.line_id in self._queued:
            return LineState.QUEUED, None
        if take is not None and self._is_current(line, take, ground):
            return LineState.READY, None
        failure = self.failures.get(line.line_id)
        if failure is not None and failure.key == self.get_key(line, ground):
            return LineState.FAILED, failure.message
        return (LineState.NONE if take is None else LineState.STALE), None
