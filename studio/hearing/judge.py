"""How good the checks are on somebody's own takes: faults are planted, and what is found counted.

A take lends itself once to each kind of fault, so that the trials of one kind are independent and
their share has a binomial interval. A take as it is counts as good: what is marked in it is a false
alarm.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from studio.audio.clip import Clip
from studio.errors import BadInput, Cancelled
from studio.hearing.fault_planting import Fault, PlantableTake, plant_fault
from studio.hearing.word_times import WordTime
from studio.quality.checks import CheckTake, IssueKind, QualityReport
from studio.quality.voice_drift import VoiceBaseline, build_baseline, find_outliers

MIN_TAKES = 8
"""With fewer of a voice and language nothing is judged: no share of seven says much."""

MAX_TAKES = 40
"""Of each voice and language; more would narrow the interval by little and take long."""

_Z = 1.96  # of a normal distribution, for intervals of 95 %

_RECOGNISED = frozenset(
    {
        *(IssueKind.MISSING, IssueKind.EXTRA, IssueKind.REPEATED),
        *(IssueKind.REPLACED, IssueKind.UNLIKE),
    }
)
_WORD_KINDS = _RECOGNISED | {IssueKind.SHORT, IssueKind.LONG, IssueKind.LOOP}
FOUND_BY: Mapping[Fault, frozenset[IssueKind]] = {
    Fault.WORD_CUT: _WORD_KINDS,
    Fault.WORD_DOUBLED: _WORD_KINDS,
    Fault.WORD_EXCHANGED: _WORD_KINDS,
    Fault.END_CUT: _RECOGNISED | {IssueKind.END, IssueKind.SHORT},
    Fault.TAIL: _WORD_KINDS | {IssueKind.TAIL},
    Fault.OTHER_SPEAKER: frozenset({IssueKind.PITCH, IssueKind.TIMBRE}),
    Fault.PITCH: frozenset({IssueKind.PITCH}),
}
"""The kinds of issues of which each fault should be one."""

_WORD_FAULTS = (Fault.WORD_CUT, Fault.WORD_DOUBLED, Fault.WORD_EXCHANGED, Fault.TAIL)
_CHECKS: Mapping[str, tuple[frozenset[IssueKind], tuple[Fault, ...]]] = {
    "words": (_RECOGNISED, _WORD_FAULTS),
    "end": (frozenset({IssueKind.END}), (Fault.END_CUT,)),
    "pitch": (frozenset({IssueKind.PITCH}), (Fault.PITCH,)),
    "timbre": (frozenset({IssueKind.TIMBRE}), (Fault.OTHER_SPEAKER,)),
}
"""The checks that may be switched off: their kinds of issues, and the faults that they are for.

No other is: the faults for which those are, such as noise or a loop, aren't planted.
"""

AlignWords = Callable[[Clip, str, str | None], Sequence[WordTime]]
"""When each word of a text in a language is said in a clip, as `align_words`."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many.

    Attributes:
        hits: 0 to `trials`.
    """

    hits: int
    trials: int

    @property
    def rate(self) -> float:
        """0 to 1; 0 without trials."""
        return self.hits / self.trials if self.trials else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true rate is, with 95 % confidence.

        Source: Wilson, "Probable inference, the law of succession, and statistical inference"
        (1927).
        """
        n = self.trials
        if not n:
            return 0.0, 1.0
        middle = (self.rate + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        spread = self.rate * (1 - self.rate) / n + (_Z / (2 * n)) ** 2
        half = _Z * math.sqrt(spread) / (1 + _Z**2 / n)
        return max(0.0, middle - half), min(1.0, middle + half)

    def __add__(self, other: Share) -> Share:
        return Share(self.hits + other.hits, self.trials + other.trials)

    def exceeds(self, other: Share) -> bool:
        """Whether the true rate is higher than another one, with 95 % confidence.

        Source: Newcombe, "Interval estimation for the difference between independent proportions"
        (1998), method 10.
        """
        below, above = self.rate - self.interval[0], other.interval[1] - other.rate
        return self.rate - other.rate > math.hypot(below, above)


@dataclass(frozen=True, slots=True)
class FaultFigures:
    """How many faults of one kind were found in the takes of one voice and language.

    Attributes:
        found: Of the planted ones.
        alarms: Good takes with an issue of the kinds that this fault should be.
    """

    voice: str
    language: str | None
    fault: Fault
    found: Share
    alarms: Share


@dataclass(frozen=True, slots=True)
class CheckFigures:
    """What one check is worth for one voice and language.

    Attributes:
        check: Its name.
        kinds: The kinds of issues that it finds.
        found: Of all planted faults that it is for.
        alarms: Good takes with such an issue.
    """

    voice: str
    language: str | None
    check: str
    kinds: tuple[IssueKind, ...]
    found: Share
    alarms: Share

    @property
    def is_off(self) -> bool:
        """Whether it is switched off: it marks good takes, and planted faults hardly more often.

        One that marks no good take stays on, as it costs nobody anything, and one whose faults
        couldn't be planted.
        """
        is_judged = self.alarms.hits > 0 and self.found.trials > 0
        return is_judged and not self.found.exceeds(self.alarms)

    def describe_off(self) -> str:
        """Why it is switched off, as a sentence."""
        place = f" in {self.language}" if self.language else ""
        return (
            f"The check of “{self.check}” is switched off for {self.voice}{place}: it found "
            f"{self.found.hits} of {self.found.trials} planted faults, and marked "
            f"{self.alarms.hits} of {self.alarms.trials} good takes."
        )


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What the checks are worth on these takes.

    Attributes:
        faults: By voice, language and fault.
        checks: By voice, language and check; those that marked anything.
        too_few: Voices and languages with fewer than `MIN_TAKES` takes, and how many those have.
    """

    faults: tuple[FaultFigures, ...]
    checks: tuple[CheckFigures, ...]
    too_few: tuple[tuple[str, str | None, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Trial:
    """What a take was found to be, with a fault or as it is."""

    voice: str
    language: str | None
    fault: Fault | None
    kinds: frozenset[str]


class Judge:
    """Plants faults into takes and counts what is found; one judgement at a time."""

    def __init__(
        self,
        check: CheckTake,
        align: AlignWords | None = None,
        *,
        seed: int = 0,
        progress: Callable[[int, int], None] = lambda done, total: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Prepare.

        Args:
            check: As the studio checks takes.
            align: Finds the words, into which most faults are planted; None leaves those out.
            seed: Chooses the takes and the places.
            progress: Gets how many checks are done, of how many.
            cancelled: Asked before each check.
        """
        self._check, self._align = check, align
        self._seed, self._progress, self._cancelled = seed, progress, cancelled

    def judge(self, takes: Sequence[PlantableTake]) -> JudgeReport:
        """Judge the checks on these takes.

        Raises:
            BadInput: No voice has enough takes in a language.
            Cancelled: `cancelled` became true.
        """
        chosen, too_few = _choose_takes(takes, random.Random(self._seed))  # noqa: S311
        if not chosen:
            raise BadInput(
                f"There are too few takes to judge by: at least {MIN_TAKES} ready lines of one "
                "voice in one language are needed, without tags. Render more lines first."
            )
        self._total, self._done = len(chosen) * (1 + len(FOUND_BY)), 0
        known = [replace(take, words=self._find_words(take)) for take in chosen]
        reports = [self._run(take.load(), take) for take in known]
        baselines = _build_baselines(known, reports)
        trials = [
            _build_trial(take, None, report, baselines)
            for take, report in zip(known, reports, strict=True)
        ]
        trials += self._plant(known, baselines)
        return JudgeReport(tuple(_sum_faults(trials)), tuple(_sum_checks(trials)), too_few)

    def _plant(self, takes: Sequence[PlantableTake], baselines: _Baselines) -> Iterator[_Trial]:
        for number, take in enumerate(takes):
            for fault in FOUND_BY:
                rng = random.Random(f"{self._seed} {number} {fault}")  # noqa: S311
                clip = plant_fault(fault, take, takes, rng)
                if clip is None:
                    self._step()
                else:
                    yield _build_trial(take, fault, self._run(clip, take), baselines)

    def _find_words(self, take: PlantableTake) -> Sequence[WordTime]:
        if self._align is None or take.words:
            return take.words
        self._stop_if_cancelled()
        return self._align(take.load(), take.said.text, take.said.language)

    def _run(self, clip: Clip, take: PlantableTake) -> QualityReport:
        self._stop_if_cancelled()
        report = self._check(clip, take.said)
        self._step()
        return report

    def _step(self) -> None:
        self._done += 1
        self._progress(self._done, self._total)

    def _stop_if_cancelled(self) -> None:
        if self._cancelled():
            raise Cancelled("The judgement was stopped; what was known before stays.")


_Baselines = Mapping[Hashable, VoiceBaseline | None]


def _choose_takes(
    takes: Sequence[PlantableTake], rng: random.Random
) -> tuple[list[PlantableTake], tuple[tuple[str, str | None, int], ...]]:
    """Some takes of each voice and language, and of which there are too few."""
    grouped: dict[tuple[str, str | None], list[PlantableTake]] = defaultdict(list)
    for take in takes:
        grouped[take.voice, take.language].append(take)
    chosen, too_few = [], []
    for (voice, language), ones in grouped.items():
        if len(ones) < MIN_TAKES:
            too_few.append((voice, language, len(ones)))
        else:
            chosen += rng.sample(ones, min(MAX_TAKES, len(ones)))
    return chosen, tuple(too_few)


def _build_baselines(
    takes: Sequence[PlantableTake], reports: Sequence[QualityReport]
) -> _Baselines:
    grouped = defaultdict(list)
    for take, report in zip(takes, reports, strict=True):
        grouped[take.voice, take.group].append(report.metrics)
    return {key: build_baseline(metrics, key[0]) for key, metrics in grouped.items()}


def _build_trial(
    take: PlantableTake, fault: Fault | None, report: QualityReport, baselines: _Baselines
) -> _Trial:
    drifts = find_outliers(report.metrics, baselines[take.voice, take.group])
    kinds = frozenset(issue.kind for issue in report.issues + drifts)
    return _Trial(take.voice, take.language, fault, kinds)


def _group_trials(
    trials: Sequence[_Trial],
) -> Iterator[tuple[str, str | None, list[_Trial], list[_Trial]]]:
    """Voice, language, the trials of takes as they are, and those of planted faults."""
    grouped: dict[tuple[str, str | None], list[_Trial]] = defaultdict(list)
    for one in trials:
        grouped[one.voice, one.language].append(one)
    for (voice, language), ones in grouped.items():
        clean = [one for one in ones if one.fault is None]
        yield voice, language, clean, [one for one in ones if one.fault is not None]


def _count(trials: Sequence[_Trial], kinds: frozenset[IssueKind]) -> Share:
    return Share(sum(bool(one.kinds & kinds) for one in trials), len(trials))


def _sum_faults(trials: Sequence[_Trial]) -> Iterator[FaultFigures]:
    for voice, language, clean, planted in _group_trials(trials):
        for fault, kinds in FOUND_BY.items():
            own = [one for one in planted if one.fault is fault]
            if own:
                found, alarms = _count(own, kinds), _count(clean, kinds)
                yield FaultFigures(voice, language, fault, found, alarms)


def _sum_checks(trials: Sequence[_Trial]) -> Iterator[CheckFigures]:
    for voice, language, clean, planted in _group_trials(trials):
        for name, (kinds, faults) in _CHECKS.items():
            own = [one for one in planted if one.fault in faults]
            found, alarms = _count(own, kinds), _count(clean, kinds)
            if found.hits or alarms.hits:
                yield CheckFigures(voice, language, name, tuple(sorted(kinds)), found, alarms)
