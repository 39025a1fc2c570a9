"""Patches of a take: some of its words spoken again, laid into it and nothing else changed.

The words come from another reading of the same text, the donor. Both are cut near the same two word
boundaries, where the two sound most alike and are quiet, the donor's level is matched by the words
that both have, and each seam is a crossfade of a few milliseconds in phase. What lies outside of
the seams is the take's own, bit for bit.

The choice of a join by its cost in level and spectrum is that of unit selection: Hunt and Black,
"Unit selection in a concatenative speech synthesis system using a large speech database" (1996);
the alignment in phase is that of WSOLA: Verhelst and Roelands (1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from studio.audio.clip import Clip, Samples
from studio.errors import BadInput, SpeechFailed
from studio.hearing.word_times import WordTime

_OUTSIDE_S, _INSIDE_S = 0.08, 0.05
"""How far a seam may lie from its word boundary; an aligner's error is hardly ever more."""
_INSIDE_SHARE = 0.25
"""Of the word there: what is left of a short one would be the old one, and not said again."""
_PAUSE_S = 0.15
"""The same in a pause, at the ends of the clip too: the take's own goes on beyond it."""
_FADE_S = 0.006
_PHASE_S = 0.006  # one period of a voice of 170 Hz; that of a deeper one has its half within it
_STEP_S = 0.002
_RISE_S = 0.012
_RISE_WEIGHT = 1.0
_NEAR_S = 0.02
_WINDOW_SAMPLES = 512
_BANDS = 18
_LOUDNESS_WEIGHT = 0.25
_FLOOR_DB = -70.0  # of the loudest frame: what is softer isn't heard beside it
_MAX_GAIN_DB = 12.0

_MIN_WORD_S = 0.03
_MAX_WORD_S = 3.0
_MAX_CHAR_S = 0.6  # of a longer word, as a number is
_MIN_LIKENESS = 0.4
"""Of the same words in both; readings of a voice have 0.74 and more, other texts half of that."""
_MIN_COMMON_WORDS = 4  # fewer may be alike, or not, by chance
_WORD_STEP_S = 0.01
_MIN_PHRASE_DB = -40.0  # of the speech around it

_Array = npt.NDArray[np.float64]
_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class AlignedClip:
    """A clip that reads a text, and its words in order; `clip` is mono."""

    clip: Clip
    words: Sequence[WordTime]

    def find_words(self, start: int, end: int) -> _Span:
        """The words of a part of the text: index of the first, and of the one after the last.

        Raises:
            SpeechFailed: The aligner found none of them.
        """
        hits = [at for at, one in enumerate(self.words) if one.start < end and one.end > start]
        if not hits:
            raise _doubtful("the marked words aren't found in it")
        return hits[0], hits[-1] + 1


@dataclass(frozen=True, slots=True)
class Patch:
    """A take with some new samples.

    Attributes:
        clip: All of it.
        start: The first new sample.
        end: The one after the last new one.
        resumes: Where in the old take that one is.
    """

    clip: Clip
    start: int
    end: int
    resumes: int


def lay_patch(
    take: AlignedClip, donor: AlignedClip, start: int, end: int, *, offset: int = 0
) -> Patch:
    """Lay words of another reading into a take.

    Args:
        take: The take; its samples outside of the patch come back as they are.
        donor: Another reading of the same text, or of a part of it; at the same rate.
        start: The first character of the words in the take's text.
        end: The character after their last.
        offset: Where in the take's text that of the donor begins.

    Raises:
        BadInput: There is no word between `start` and `end`.
        SpeechFailed: The donor is silent, or it isn't sure enough where the words are.
    """
    if end <= start:
        raise BadInput("Mark the words that are to be said again.")
    assert take.clip.rate_hz == donor.clip.rate_hz, "both are at the studio's rate"
    if not np.any(donor.clip.samples):
        raise SpeechFailed("The voice said nothing this time. Say it again.")
    old, new = take.find_words(start, end), donor.find_words(start - offset, end - offset)
    _check_alignment(take, old, donor, new)
    if _measure_likeness(take, donor, old, offset) < _MIN_LIKENESS:
        raise _doubtful("the words around them sound different in both")
    donor = AlignedClip(_match_level(take, old, donor, new), donor.words)
    left = _Seam(take, donor, old[0], new[0], is_end=False).choose()
    right = _Seam(take, donor, old[1], new[1], is_end=True).choose()
    if left[0] >= right[0] or left[1] >= right[1]:
        raise _doubtful("their beginning and end fall together")
    return _splice(take.clip, donor.clip, left, right)


def _splice(take: Clip, donor: Clip, left: _Span, right: _Span) -> Patch:
    """Replace what lies between two joins, each a sample of the take and one of the donor."""
    phrase = donor.samples[left[1] : right[1]].copy()
    fade = min(round(_FADE_S * take.rate_hz), len(phrase) // 2, right[0] - left[0])
    # Both fades lie inside of what is replaced, so that the joins bound the new samples.
    old = take.samples[left[0] : left[0] + fade]
    ramp = _build_ramp(len(old))
    phrase[: len(old)] = phrase[: len(old)] * ramp + old * ramp[::-1]
    old = take.samples[right[0] - fade : right[0]]
    phrase[len(phrase) - fade :] = phrase[len(phrase) - fade :] * ramp[::-1] + old * ramp
    samples = np.concatenate([take.samples[: left[0]], phrase, take.samples[right[0] :]])
    return Patch(Clip(samples, take.rate_hz), left[0], left[0] + len(phrase), right[0])


def _build_ramp(n: int) -> Samples:
    return (0.5 - 0.5 * np.cos(np.pi * (np.arange(n) + 0.5) / max(1, n))).astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Seam:
    """A join of a take and a donor before a word of each, where the phrase begins or ends."""

    take: AlignedClip
    donor: AlignedClip
    old: int
    new: int
    is_end: bool

    def choose(self) -> _Span:
        """The sample of the take and that of the donor at which the two are joined."""
        places = [
            _list_places(reading, at, is_end=self.is_end)
            for reading, at in ((self.take, self.old), (self.donor, self.new))
        ]
        old, new = (
            _measure_bands(reading.clip, where)
            for reading, where in zip((self.take, self.donor), places, strict=True)
        )
        # [places of the take, places of the donor]
        apart = np.abs(old[:, None] - new[None]).mean(axis=2)
        loudness = (_spread(old.max(axis=1))[:, None] + _spread(new.max(axis=1))[None]) / 2
        rise = (_spread(_measure_rise(old))[:, None] + _spread(_measure_rise(new))[None]) / 2
        cost = apart + _LOUDNESS_WEIGHT * loudness + _RISE_WEIGHT * rise
        row, column = np.unravel_index(int(cost.argmin()), cost.shape)
        joined = int(places[0][row]), int(places[1][column])
        return joined[0], self._align_phase(*joined)

    def _align_phase(self, old: int, new: int) -> int:
        """The sample near `new` from which the donor runs most in phase with the take at `old`."""
        rate_hz = self.take.clip.rate_hz
        half, reach = round(_PHASE_S * rate_hz), round(_PHASE_S * rate_hz)
        wanted = self.take.clip.samples[max(0, old - half) : old + half].astype(np.float64)
        first = new - min(half, old) - reach
        nearby = self.donor.clip.samples[max(0, first) : first + len(wanted) + 2 * reach]
        if len(nearby) <= len(wanted) or not np.any(wanted):
            return new
        nearby = nearby.astype(np.float64)
        product = np.correlate(nearby, wanted, "valid")
        power = np.convolve(np.square(nearby), np.ones(len(wanted)), "valid")
        likeness = product / np.sqrt(np.maximum(power, 1e-12))
        return max(0, first) + int(likeness.argmax()) + min(half, old)


def _list_places(reading: AlignedClip, at: int, *, is_end: bool) -> npt.NDArray[np.intp]:
    """Samples at which a reading may be cut before word `at`, where the phrase begins or ends."""
    words, clip = reading.words, reading.clip
    before = words[at - 1] if at > 0 else None
    after = words[at] if at < len(words) else None
    pause_s = (before.end_s if before else 0.0, after.start_s if after else clip.duration_s)
    middles_s = (_find_middle_s(before, 0.0), _find_middle_s(after, clip.duration_s))
    # Rather outside of the phrase, of which nothing old should be left.
    inside_s = _find_reach_s(before if is_end else after)
    if is_end:
        first_s, last_s = min(pause_s) - inside_s, max(pause_s) + _OUTSIDE_S
        last_s = min(last_s, pause_s[0] + _PAUSE_S)
    else:
        first_s, last_s = min(pause_s) - _OUTSIDE_S, max(pause_s) + inside_s
        first_s = max(first_s, pause_s[1] - _PAUSE_S)
    first_s = max(first_s, middles_s[0])
    last_s = max(first_s, min(last_s, middles_s[1]))
    places = np.rint(np.arange(first_s, last_s + _STEP_S / 2, _STEP_S) * clip.rate_hz)
    within: npt.NDArray[np.intp] = np.clip(places, 0, len(clip)).astype(np.intp)
    return within


def _find_reach_s(word: WordTime | None) -> float:
    """How far a seam may lie inside of a word of the phrase."""
    length_s = word.end_s - word.start_s if word else 0.0
    return min(_INSIDE_S, _INSIDE_SHARE * length_s)


def _find_middle_s(word: WordTime | None, otherwise_s: float) -> float:
    return (word.start_s + word.end_s) / 2 if word else otherwise_s


def _measure_rise(levels: _Array) -> _Array:
    """How far the bands rise around each place, in dB: [places]."""
    edge = round(_RISE_S / _STEP_S / 2)
    padded = np.pad(levels, ((edge, edge), (0, 0)), "edge")
    rise: _Array = np.maximum(padded[2 * edge :] - padded[: -2 * edge], 0.0).mean(axis=1)
    return rise


def _spread(levels: _Array) -> _Array:
    """The loudest level near each place: right before a burst, quiet as it is, a seam is none."""
    edge = round(_NEAR_S / _STEP_S)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(levels, edge, "edge"), 2 * edge + 1)
    loudest: _Array = windows.max(axis=1)
    return loudest


def _measure_bands(clip: Clip, places: npt.NDArray[np.intp]) -> _Array:
    """Level of each band around some samples, dB, as far as it is audible: [places, bands]."""
    half = _WINDOW_SAMPLES // 2
    padded = np.pad(clip.samples, half).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW_SAMPLES)[places]
    power = np.abs(np.fft.rfft(windows * np.hanning(_WINDOW_SAMPLES), axis=1)) ** 2
    bands = np.add.reduceat(power, _BAND_EDGES, axis=1)[:, :_BANDS]
    loudest = float(np.abs(clip.samples).max(initial=0.0)) ** 2 * _WINDOW_SAMPLES
    floor = max(loudest, 1e-12) * 10 ** (_FLOOR_DB / 10)
    levels: _Array = 10 * np.log10(bands + floor)
    return levels


_BAND_EDGES = np.unique(np.geomspace(2, _WINDOW_SAMPLES // 2, _BANDS + 1).round().astype(np.intp))


def _match_level(take: AlignedClip, old: _Span, donor: AlignedClip, new: _Span) -> Clip:
    """The donor at the take's level, by the words around the phrase; by all if there are none."""
    gain_db = _level_db(take, old) - _level_db(donor, new)
    gain = 10 ** (max(-_MAX_GAIN_DB, min(_MAX_GAIN_DB, gain_db)) / 20)
    peak = float(np.abs(donor.clip.samples).max(initial=0.0))
    return Clip(donor.clip.samples * np.float32(min(gain, 1 / max(peak, 1e-6))), donor.clip.rate_hz)


def _level_db(reading: AlignedClip, span: _Span) -> float:
    around = [*reading.words[: span[0]], *reading.words[span[1] :]]
    return _measure_db(reading.clip, around or reading.words)


def _measure_db(clip: Clip, words: Sequence[WordTime]) -> float:
    parts = [
        clip.samples[round(one.start_s * clip.rate_hz) : round(one.end_s * clip.rate_hz)]
        for one in words
    ]
    power = float(np.square(np.concatenate(parts), dtype=np.float64).mean()) if parts else 0.0
    return 10 * float(np.log10(max(power, 1e-12)))


def _check_alignment(take: AlignedClip, old: _Span, donor: AlignedClip, new: _Span) -> None:
    """Refuse what no reading sounds like: then the words aren't where the aligner says.

    Raises:
        SpeechFailed: The phrase is silent, or far quicker or slower than the rest.
    """
    for reading, span in ((take, old), (donor, new)):
        phrase = reading.words[span[0] : span[1]]
        if any(not _MIN_WORD_S <= one.end_s - one.start_s <= _find_most_s(one) for one in phrase):
            raise _doubtful("one of the words would be too short or too long")
    phrase, around = donor.words[new[0] : new[1]], donor.words
    if _measure_db(donor.clip, phrase) < _measure_db(donor.clip, around) + _MIN_PHRASE_DB:
        raise SpeechFailed("The voice left these words out this time. Say it again.")


def _find_most_s(word: WordTime) -> float:
    return max(_MAX_WORD_S, _MAX_CHAR_S * len(word.word))


def _measure_likeness(take: AlignedClip, donor: AlignedClip, old: _Span, offset: int) -> float:
    """How alike the words around the phrase are in both: the correlation of their spectra, to 1.

    Where the text isn't said in one of them, or something else, the aligner's words hold anything.
    """
    places = {one.start + offset: one for one in donor.words}
    around = (*take.words[: old[0]], *take.words[old[1] :])
    common = [(one, places[one.start]) for one in around if one.start in places]
    if len(common) < _MIN_COMMON_WORDS:
        return 1.0
    own, other = (
        _measure_words(reading.clip, words)
        for reading, words in zip((take, donor), zip(*common, strict=True), strict=True)
    )
    return float((own * other).sum() / np.sqrt(max(1e-9, (own**2).sum() * (other**2).sum())))


def _measure_words(clip: Clip, words: Sequence[WordTime]) -> _Array:
    """Mean level of each word's bands, less the mean of all words: [words, bands]."""
    means = []
    for word in words:
        end_s = max(word.end_s, word.start_s + _WORD_STEP_S)
        places = np.rint(np.arange(word.start_s, end_s, _WORD_STEP_S) * clip.rate_hz)
        within = np.clip(places, 0, len(clip)).astype(np.intp)
        means.append(_measure_bands(clip, within).mean(axis=0))
    levels = np.array(means)
    centred: _Array = levels - levels.mean(axis=0)
    return centred


def _doubtful(why: str) -> SpeechFailed:
    return SpeechFailed(
        f"It isn't sure enough where these words are said: {why}. Mark some more words, or make "
        "another take of the line."
    )
