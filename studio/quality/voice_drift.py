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

from studio.quality.checks import QUIET_DB, IssueKind, QualityIssue, TakeMetrics

_MIN_BASELINE_TAKES = 8  # with fewer, a median and its spread say little
# Of the median absolute deviation, scaled to a standard deviation: false alarms of a normal measure
# stay about one in a hundred for 8 takes and below that for more (20,000 simulated voices).
_SPREADS, _SPREADS_FEW = 3.0, 12.0

# One voice whispers and shouts: only more than that is a fault.
_LEVEL_DB = 9.0
# By letters, a text's duration is known to a fifth; by the draft voice's reading, to a fiftieth.
_PACE = math.log(1.6)
_TEMPO = math.log(1.22)  # hardly anybody hears less
_SEMITONES = 1.4
_TIMBRE_DB = 3.5
_SAMPLE_SEMITONES = 7.0
_MIN_SPEECH_S = 2.0  # a shorter line is one word's melody and pace
_LIKENESS = 0.15

_STEADY_BACKENDS = frozenset({"draft"})  # its voices are the same in each line: none drifts

_MOST = 1_000.0  # decibels, semitones or a logarithm: no sound is that far from another
_FEW_TIMES = 1.5  # below, a percentage says more
_MIN_TILT_DB = 1.5
_OCTAVES = 5.0  # from the lowest band to the highest
_SLOPE_PRIOR = 0.1  # semitones squared: readings that hardly differ say nothing of a slope

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Usual:
    """The median of a measure over a voice's takes, and how far from it a take stands out."""

    middle: float
    margin: float

    def measure_apart(self, value: float | None) -> float | None:
        """How far a value is from the middle, if that is too far; None if it isn't.

        None also for impossible values, because records may come from imported files.
        """
        if value is None or not self.margin < abs(value - self.middle) < _MOST:
            return None
        return value - self.middle


@dataclass(frozen=True, slots=True)
class Melody:
    """How a voice's pitch follows that of the draft voice's reading: questions and the like.

    Attributes:
        reading_pitch: Median of the readings, semitones.
        slope: Semitones that the voice rises for each that a reading does, 0 to 1.
    """

    reading_pitch: float
    slope: float

    def level(self, metrics: TakeMetrics) -> float | None:
        """A take's pitch as it would be for a text of the usual melody."""
        if metrics.pitch is None or metrics.reading_pitch is None:
            return metrics.pitch
        return metrics.pitch - self.slope * (metrics.reading_pitch - self.reading_pitch)


@dataclass(frozen=True, slots=True)
class VoiceBaseline:
    """What is usual for one voice; a measure that too few takes have is None.

    Attributes:
        who: The voice's name in messages.
        melody: How its pitch follows that of the draft voice's readings.
        bands_db: Its long-term average spectrum, of which `timbre` is the distance.
        voiceprint: The middle of its speaker embeddings, of which `likeness` is the cosine.
    """

    who: str
    level_db: Usual
    pace: Usual | None = None
    tempo: Usual | None = None
    pitch: Usual | None = None
    melody: Melody | None = None
    timbre: Usual | None = None
    bands_db: tuple[float, ...] | None = None
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
    level_db = _find_usual([one.level_db for one in others], _LEVEL_DB)
    if level_db is None:
        return None
    melody = _fit_melody(others)
    bands_db = _find_middle_bands(others)
    voiceprint = _find_middle_voiceprint(others)
    return VoiceBaseline(
        who,
        # Not wider for a voice of changing level, as each line of a scene has to be understood.
        Usual(level_db.middle, _LEVEL_DB),
        _find_usual([one.pace for one in others], _PACE),
        _find_usual([one.tempo for one in others], _TEMPO),
        _find_usual([melody.level(one) for one in others], _SEMITONES),
        melody,
        _find_usual([_measure_timbre(one, bands_db) for one in others], _TIMBRE_DB),
        bands_db,
        _find_usual([_measure_likeness(one, voiceprint) for one in others], _LIKENESS),
        voiceprint,
    )


def find_outliers(
    metrics: TakeMetrics, usual: VoiceBaseline | None, backend_name: str = ""
) -> tuple[QualityIssue, ...]:
    """Find where a take of a backend differs too much from its sample and its voice's others."""
    if not metrics.level_db >= QUIET_DB:
        return ()
    is_long = metrics.speech_s >= _MIN_SPEECH_S
    found = [_find_other_pitch(metrics)] if is_long else []
    if usual is not None:
        found.append(_find_level(metrics, usual))
        if is_long and backend_name not in _STEADY_BACKENDS:
            found += [find(metrics, usual) for find in (_find_pace, _find_pitch, _find_timbre)]
    return tuple(issue for issue in found if issue is not None)


def compare_with_sample(metrics: TakeMetrics, sample: TakeMetrics) -> TakeMetrics:
    """A take's measurements with its distance from the sample that its voice is cloned from."""
    distance_db = _measure_timbre(metrics, sample.bands_db)
    return replace(
        metrics,
        sample_pitch=sample.pitch,
        sample_timbre_db=None if distance_db is None else round(distance_db, 1),
    )


def describe_distance(metrics: TakeMetrics, usual: VoiceBaseline | None) -> str:
    """How far a take is from its voice's other takes and from its sample; empty if unknown."""
    parts = []
    if usual is not None:
        pitch = usual.melody.level(metrics) if usual.melody else None
        measured = (
            _describe_apart(usual.pitch, pitch, "semitones"),
            _describe_apart(usual.tempo, metrics.tempo, "% in pace", 100),
            _describe_apart(usual.timbre, _measure_timbre(metrics, usual.bands_db), "dB in colour"),
        )
        if known := [one for one in measured if one]:
            parts.append(f"From {usual.others}: {', '.join(known)}.")
    if metrics.pitch is not None and metrics.sample_pitch is not None:
        parts.append(f"From its sample: {metrics.pitch - metrics.sample_pitch:+.1f} semitones.")
    return " ".join(parts)


def _describe_apart(
    usual: Usual | None, value: float | None, unit: str, scale: float = 1
) -> str | None:
    if usual is None or value is None:
        return None
    return f"{scale * (value - usual.middle):+.{0 if scale > 1 else 1}f} {unit}"


def _find_other_pitch(metrics: TakeMetrics) -> QualityIssue | None:
    """A take in quite another pitch than its sample; one voice hardly does that in reading."""
    if metrics.pitch is None or metrics.sample_pitch is None:
        return None
    apart = metrics.pitch - metrics.sample_pitch
    if not _SAMPLE_SEMITONES < abs(apart) < _MOST:
        return None
    how = "Higher" if apart > 0 else "Lower"
    message = f"{how} by {abs(apart):.0f} semitones than its sample."
    return QualityIssue(IssueKind.PITCH, round(apart, 1), message)


def _find_level(metrics: TakeMetrics, usual: VoiceBaseline) -> QualityIssue | None:
    apart_db = usual.level_db.measure_apart(metrics.level_db)
    if apart_db is None:
        return None
    how = "louder" if apart_db > 0 else "quieter"
    message = f"{abs(apart_db):.0f} dB {how} than {usual.others}."
    return QualityIssue(IssueKind.LEVEL, round(apart_db, 1), message)


def _find_pace(metrics: TakeMetrics, usual: VoiceBaseline) -> QualityIssue | None:
    apart = None
    if usual.tempo is not None and metrics.tempo is not None:
        apart = usual.tempo.measure_apart(metrics.tempo)
    elif usual.pace is not None:
        apart = usual.pace.measure_apart(metrics.pace)
    if apart is None:
        return None
    how, times = "slow" if apart > 0 else "fast", math.exp(abs(apart))
    message = f"{times:.1f} times as {how} as {usual.others}."
    if times < _FEW_TIMES:
        pace = "Slower" if apart > 0 else "Faster"
        message = f"{pace} by {times - 1:.0%} than {usual.others}."
    return QualityIssue(IssueKind.PACE, round(math.exp(apart), 2), message)


def _find_pitch(metrics: TakeMetrics, usual: VoiceBaseline) -> QualityIssue | None:
    if usual.pitch is None or usual.melody is None:
        return None
    apart = usual.pitch.measure_apart(usual.melody.level(metrics))
    if apart is None:
        return None
    how = "Higher" if apart > 0 else "Lower"
    unit = "a semitone" if round(abs(apart)) == 1 else f"{abs(apart):.0f} semitones"
    return QualityIssue(IssueKind.PITCH, round(apart, 1), f"{how} by {unit} than {usual.others}.")


def _find_timbre(metrics: TakeMetrics, usual: VoiceBaseline) -> QualityIssue | None:
    """A take that sounds like another voice: by its embedding, where there is one."""
    likeness = _measure_likeness(metrics, usual.voiceprint)
    if usual.likeness is not None and likeness is not None:
        if (usual.likeness.measure_apart(likeness) or 0.0) >= 0:
            return None
        message = (
            f"It sounds like another voice than {usual.others}: likeness {likeness:.2f}, where "
            f"{usual.likeness.middle:.2f} is usual."
        )
        return QualityIssue(IssueKind.TIMBRE, round(likeness, 2), message)
    distance_db = _measure_timbre(metrics, usual.bands_db)
    if usual.timbre is None or (usual.timbre.measure_apart(distance_db) or 0.0) <= 0:
        return None
    assert distance_db is not None
    message = f"It sounds like another voice: {distance_db:.0f} dB from {usual.others} in colour."
    if abs(tilt_db := _measure_tilt_db(metrics, usual)) > _MIN_TILT_DB:
        how = "Brighter" if tilt_db > 0 else "Duller"
        message = f"{how} by {abs(tilt_db):.0f} dB an octave than {usual.others}."
    return QualityIssue(IssueKind.TIMBRE, round(distance_db, 1), message)


def _find_usual(values: Iterable[float | None], least_margin: float) -> Usual | None:
    """The usual of a measure; None if fewer than 8 takes have it."""
    known = np.array([one for one in values if one is not None and abs(one) < _MOST])
    if len(known) < _MIN_BASELINE_TAKES:
        return None
    spreads = _SPREADS + _SPREADS_FEW / len(known)
    return Usual(float(np.median(known)), max(least_margin, spreads * _measure_spread(known)))


def _measure_spread(values: _Array) -> float:
    """Standard deviation of normal values, by the median, so that outliers don't count."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _fit_melody(others: Sequence[TakeMetrics]) -> Melody:
    pairs = [
        (one.pitch, one.reading_pitch)
        for one in others
        if one.pitch is not None and one.reading_pitch is not None
    ]
    values = np.array([pair for pair in pairs if max(map(abs, pair)) < _MOST])
    if len(values) < _MIN_BASELINE_TAKES:
        return Melody(0.0, 0.0)
    middle = np.median(values, axis=0)
    pitch, reading = (values - middle).T
    most = 2 * _measure_spread(pitch)  # a take that is far off says nothing about melodies
    pitch = np.clip(pitch, -most, most)
    slope = float(pitch @ reading) / (float(reading @ reading) + _SLOPE_PRIOR * len(values))
    return Melody(float(middle[1]), min(1.0, max(0.0, slope)))


def _find_middle_bands(others: Sequence[TakeMetrics]) -> tuple[float, ...] | None:
    bands = [one.bands_db for one in others if one.bands_db is not None]
    widths = {len(one) for one in bands}
    if len(bands) < _MIN_BASELINE_TAKES or len(widths) > 1:
        return None
    return tuple(float(level) for level in np.median(np.array(bands), axis=0))


def _measure_timbre(metrics: TakeMetrics, bands_db: tuple[float, ...] | None) -> float | None:
    """Distance of a take's long-term average spectrum, decibels RMS over its bands."""
    own = metrics.bands_db
    if not own or bands_db is None or len(own) != len(bands_db):
        return None
    # Not by NumPy, which takes four times as long for so few: a page gets 20,000 lines at once.
    return math.dist(own, bands_db) / math.sqrt(len(own))


def _find_middle_voiceprint(others: Sequence[TakeMetrics]) -> _Array | None:
    directions = [one for metrics in others if (one := _unpack_voiceprint(metrics)) is not None]
    if len(directions) < _MIN_BASELINE_TAKES or len({len(one) for one in directions}) > 1:
        return None
    middle = np.median(np.array(directions), axis=0)
    length = float(np.linalg.norm(middle))
    return middle / length if length else None


def _measure_likeness(metrics: TakeMetrics, voiceprint: _Array | None) -> float | None:
    """Cosine of a take's speaker embedding with another one, -1 to 1."""
    own = _unpack_voiceprint(metrics)
    if own is None or voiceprint is None or len(own) != len(voiceprint):
        return None
    return float(own @ voiceprint)


def _unpack_voiceprint(metrics: TakeMetrics) -> _Array | None:
    """The direction of a speaker embedding, of length 1; the reverse of `pack_voiceprint`."""
    if metrics.voiceprint is None:
        return None
    try:
        data = base64.b64decode(metrics.voiceprint.partition(":")[2], validate=True)
    except ValueError:
        return None
    steps = np.frombuffer(data, dtype=np.int8).astype(np.float64)
    length = float(np.linalg.norm(steps))
    return steps / length if length else None


def _measure_tilt_db(metrics: TakeMetrics, usual: VoiceBaseline) -> float:
    """How much more a take's spectrum rises, decibels an octave."""
    apart = np.subtract(metrics.bands_db or (), usual.bands_db or ())
    octaves = np.linspace(0.0, _OCTAVES, len(apart))
    return float(np.polyfit(octaves, apart, 1)[0])
