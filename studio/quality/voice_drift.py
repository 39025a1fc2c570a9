"""Voice drift: where a take sounds unlike the other takes of its voice, and by how much.

Each measure is compared with the median of the voice's takes; what is beyond a margin, and beyond
what this voice varies by, is an issue. Takes with a mood, an instruction, a stage direction
or other settings are compared among themselves, so that a whisper that was asked for is none.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from studio.quality.checks import MIN_VOICE_S, QUIET_DB, IssueKind, QualityIssue, TakeMetrics

_MIN_BASELINE_TAKES = 8  # with fewer, a median and its spread say little
# Of the median absolute deviation, scaled to a standard deviation: trained voices vary with thicker
# tails than a normal measure, and of few takes the spread itself isn't well known.
_SPREADS, _SPREADS_FEW = 3.0, 8.0
_LONGEST_S = 4.0  # of longer lines a mean gets hardly surer
_RIDGE = 0.05  # for each take: few lines, or lines that hardly differ, say nothing of a slope

# One voice whispers and shouts: only more than that is a fault.
_LEVEL_DB = 9.0
_SEMITONES = 1.0
_LIKENESS = 0.18
_SAMPLE_SEMITONES = 7.0
_MIN_SAMPLE_SPEECH_S = 2.0  # a shorter line is one word's melody

_STEADY_BACKENDS = frozenset({"draft"})  # its voices are the same in each line: none drifts

_MOST = 1_000.0  # decibels, semitones or a logarithm: no sound is that far from another

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Usual:
    """The median of a measure over a voice's takes, and how far from it a take stands out.

    Attributes:
        middle: The median.
        margin: For a second of speech. A mean over a longer line varies less, by the root of its
            length: so it does in trained voices.
        least: The margin of a voice that varies less.
    """

    middle: float
    margin: float
    least: float

    def measure_apart(self, value: float | None, speech_s: float) -> float | None:
        """How far a take's value is from the middle, if that is too far; None if it isn't.

        None also for impossible values, because records may come from imported files.
        """
        if value is None or not 0 < speech_s < math.inf:
            return None
        margin = max(self.least, self.margin / math.sqrt(min(speech_s, _LONGEST_S)))
        return value - self.middle if margin < abs(value - self.middle) < _MOST else None


@dataclass(frozen=True, slots=True)
class Melody:
    """A voice's usual pitch: short lines, exclamations and questions may be higher, by regression.

    Attributes:
        line: Means of what `_describe_line` says of its takes.
        slopes: Semitones for one more of each.
        pitch: Of a usual line.
    """

    line: _Array
    slopes: _Array
    pitch: Usual

    def level(self, metrics: TakeMetrics) -> float | None:
        """A take's pitch as it would be for a usual line."""
        if metrics.mean_pitch is None:
            return None
        return metrics.mean_pitch - float((_describe_line(metrics) - self.line) @ self.slopes)


@dataclass(frozen=True, slots=True)
class VoiceBaseline:
    """What is usual for one voice; a measure that too few takes have is None.

    Attributes:
        who: The voice's name in messages.
        voiceprint: The middle of its speaker embeddings, of which `likeness` is the cosine.
    """

    who: str
    level_db: Usual
    melody: Melody | None = None
    likeness: Usual | None = None
    voiceprint: _Array | None = None

    @property
    def others(self) -> str:
        return f"{self.who}’s other lines"


def build_baseline(others: Sequence[TakeMetrics], who: str = "this voice") -> VoiceBaseline | None:
    """Compute a voice's baseline from its takes; None if there are fewer than 8.

    Args:
        others: Its takes' measurements.
        who: The voice's name, for messages.
    """
    level_db = _find_usual([(one.level_db, 1.0) for one in others], _LEVEL_DB)
    if level_db is None:
        return None
    voiceprint = _find_middle_voiceprint(others)
    likenesses = [(_measure_likeness(one, voiceprint), one.speech_s) for one in others]
    return VoiceBaseline(
        who,
        # Not wider for a voice of changing level, as each line of a scene has to be understood.
        replace(level_db, margin=0.0),
        _fit_melody(others),
        _find_usual(likenesses, _LIKENESS),
        voiceprint,
    )


def find_outliers(
    metrics: TakeMetrics, usual: VoiceBaseline | None, backend_name: str = ""
) -> tuple[QualityIssue, ...]:
    """Find where a take of a backend differs too much from its sample and its voice's others."""
    if not metrics.level_db >= QUIET_DB:
        return ()
    found = [_find_other_pitch(metrics)]
    if usual is not None:
        found.append(_find_level(metrics, usual))
        if backend_name not in _STEADY_BACKENDS:
            found += [find(metrics, usual) for find in (_find_pitch, _find_timbre)]
    return tuple(issue for issue in found if issue is not None)


def describe_distance(metrics: TakeMetrics, usual: VoiceBaseline | None) -> str:
    """How far a take is from its voice's other takes and from its sample; empty if unknown."""
    parts = []
    if usual is not None and usual.melody and (pitch := usual.melody.level(metrics)) is not None:
        apart = pitch - usual.melody.pitch.middle
        parts.append(f"From {usual.others}: {apart:+.1f} semitones.")
    if metrics.mean_pitch is not None and metrics.sample_mean_pitch is not None:
        apart = metrics.mean_pitch - metrics.sample_mean_pitch
        parts.append(f"From its sample: {apart:+.1f} semitones.")
    return " ".join(parts)


def _find_other_pitch(metrics: TakeMetrics) -> QualityIssue | None:
    """A take in quite another pitch than its sample; one voice hardly does that in reading."""
    if metrics.mean_pitch is None or metrics.sample_mean_pitch is None:
        return None
    apart = metrics.mean_pitch - metrics.sample_mean_pitch
    is_long = metrics.speech_s >= _MIN_SAMPLE_SPEECH_S
    if not is_long or not _SAMPLE_SEMITONES < abs(apart) < _MOST:
        return None
    how = "Higher" if apart > 0 else "Lower"
    message = f"{how} by {abs(apart):.0f} semitones than its sample."
    return QualityIssue(IssueKind.PITCH, round(apart, 1), message)


def _find_level(metrics: TakeMetrics, usual: VoiceBaseline) -> QualityIssue | None:
    apart_db = usual.level_db.measure_apart(metrics.level_db, metrics.speech_s)
    if apart_db is None:
        return None
    how = "louder" if apart_db > 0 else "quieter"
    message = f"{abs(apart_db):.0f} dB {how} than {usual.others}."
    return QualityIssue(IssueKind.LEVEL, round(apart_db, 1), message)


def _find_pitch(metrics: TakeMetrics, usual: VoiceBaseline) -> QualityIssue | None:
    if (melody := usual.melody) is None:
        return None
    apart = melody.pitch.measure_apart(melody.level(metrics), metrics.speech_s)
    if apart is None:
        return None
    how = "Higher" if apart > 0 else "Lower"
    unit = "a semitone" if round(abs(apart)) == 1 else f"{abs(apart):.0f} semitones"
    return QualityIssue(IssueKind.PITCH, round(apart, 1), f"{how} by {unit} than {usual.others}.")


def _find_timbre(metrics: TakeMetrics, usual: VoiceBaseline) -> QualityIssue | None:
    """A take that sounds like another voice, by its speaker embedding."""
    likeness = _measure_likeness(metrics, usual.voiceprint)
    if usual.likeness is None or likeness is None:
        return None
    if (usual.likeness.measure_apart(likeness, metrics.speech_s) or 0.0) >= 0:
        return None
    message = (
        f"It sounds like another voice than {usual.others}: likeness {likeness:.2f}, where "
        f"{usual.likeness.middle:.2f} is usual."
    )
    return QualityIssue(IssueKind.TIMBRE, round(likeness, 2), message)


def _find_usual(values: Iterable[tuple[float | None, float]], least: float) -> Usual | None:
    """The usual of a measure, of values with seconds of speech; None if under 8 takes have it."""
    known = np.array(
        [(one, s) for one, s in values if one is not None and abs(one) < _MOST and 0 < s < _MOST]
    )
    if len(known) < _MIN_BASELINE_TAKES:
        return None
    middle = float(np.median(known[:, 0]))
    apart = np.abs(known[:, 0] - middle) * np.sqrt(np.minimum(known[:, 1], _LONGEST_S))
    spreads = _SPREADS + _SPREADS_FEW / len(known)
    return Usual(middle, spreads * 1.4826 * float(np.median(apart)), least)


def _describe_line(metrics: TakeMetrics) -> _Array:
    """What a voice's pitch may follow: a line's shortness, exclamation, question: [3]."""
    shortness = 1 / max(MIN_VOICE_S, metrics.speech_s)
    return np.array((shortness, metrics.mark == "!", metrics.mark == "?"), dtype=np.float64)


def _fit_melody(others: Sequence[TakeMetrics]) -> Melody | None:
    pitched = ((one, one.mean_pitch) for one in others if one.mean_pitch is not None)
    known = [(one, pitch) for one, pitch in pitched if abs(pitch) < _MOST]
    if len(known) < _MIN_BASELINE_TAKES:
        return None
    lines = np.array([_describe_line(one) for one, _ in known])
    pitches = np.array([pitch for _, pitch in known])
    line, apart = lines.mean(axis=0), pitches - np.median(pitches)
    lines -= line
    most = 2 * 1.4826 * float(np.median(np.abs(apart)))  # one far off says nothing of melodies
    square = lines.T @ lines + _RIDGE * len(known) * np.eye(len(line))
    slopes = np.linalg.solve(square, lines.T @ np.clip(apart, -most, most))
    levels = pitches - lines @ slopes
    seconds = (one.speech_s for one, _ in known)
    pitch = _find_usual(zip(levels, seconds, strict=True), _SEMITONES)
    return None if pitch is None else Melody(line, slopes, pitch)


def _find_middle_voiceprint(others: Sequence[TakeMetrics]) -> _Array | None:
    unpacked = (unpack_voiceprint(one.voiceprint) for one in others)
    directions = [one for one in unpacked if one is not None]
    if len(directions) < _MIN_BASELINE_TAKES or len({len(one) for one in directions}) > 1:
        return None
    middle = np.median(np.array(directions), axis=0)
    length = float(np.linalg.norm(middle))
    return middle / length if length else None


def _measure_likeness(metrics: TakeMetrics, voiceprint: _Array | None) -> float | None:
    """Cosine of a take's speaker embedding with another one, -1 to 1."""
    own = unpack_voiceprint(metrics.voiceprint)
    if own is None or voiceprint is None or len(own) != len(voiceprint):
        return None
    return float(own @ voiceprint)


def unpack_voiceprint(voiceprint: str | None) -> _Array | None:
    """The direction of a speaker embedding, of length 1; the reverse of `pack_voiceprint`."""
    if voiceprint is None:
        return None
    try:
        data = base64.b64decode(voiceprint.partition(":")[2], validate=True)
    except ValueError:
        return None
    steps = np.frombuffer(data, dtype=np.int8).astype(np.float64)
    length = float(np.linalg.norm(steps))
    return steps / length if length else None
