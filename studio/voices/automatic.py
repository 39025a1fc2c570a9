"""Automatic voices: those that names choose, and how those of one cast are kept apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from studio.dialog.attributes import ABOUT
from studio.dialog.given_names import usual_age, usual_gender
from studio.dialog.model import Dialog, ParamValue, Speech, name_key
from studio.voices.library import SpeakerLibrary, SpeakerSnapshot

APART_SEMITONES = 3.99
"""Between the stated pitches of two voices, so that those measured in speech are 3 apart."""

_TRIES = 200
"""How many voices a name may choose from before it takes the one that is least like the others."""

_MOST_COMPARED = 24
"""A larger cast has more characters than voices that a listener tells apart."""

_MOST_CHOSEN = 500
"""In a larger cast the others have the voice of their own name, whatever it is."""

_SOUNDS_THE_SAME = 1.0
_MOSTLY_BY_TIMBRE = 0.1
_MAIN_WEIGHT = 1000.0
_AGAINST_THE_EAR = _MOST_COMPARED + 1.0
"""Of a voice of another gender than the name's: more than if it sounded like the whole cast."""


@dataclass(frozen=True, slots=True)
class VoiceTraits:
    """How an automatic voice sounds.

    Attributes:
        label: Its name for people.
        pitch_hz: The usual pitch; None if unknown, when labels tell voices apart.
        timbre: Where it lies among voices of the same pitch; 1 apart is another timbre.
        gender: "woman", "man" or "child" as it sounds, "either" if that isn't clear; empty where
            nobody knows.
        reluctance: How much rather another voice of the engine is taken, as a number of voices that
            sound the same: below 1 it still goes before the same voice twice.
    """

    label: str
    pitch_hz: float | None = None
    timbre: tuple[float, ...] = ()
    gender: str = ""
    reluctance: float = 0.0

    def measure_likeness(self, other: VoiceTraits) -> float:
        """How alike two voices are: 0 for those that anybody tells apart, at most 1."""
        if self.pitch_hz is None or other.pitch_hz is None:
            return _SOUNDS_THE_SAME if self.label == other.label else 0.0
        semitones = abs(12 * math.log2(self.pitch_hz / other.pitch_hz)) / APART_SEMITONES
        if semitones >= 1:
            return 0.0
        if math.dist(self.timbre, other.timbre) >= 1:
            return _MOSTLY_BY_TIMBRE * (1 - semitones)
        return 1 - semitones / 2

    def measure_misfit(self, gender: str, age: str = "") -> float:
        """How ill it fits a name's gender and age, as a number of voices that sound the same.

        A child's is high, and one of old people low, as far as there are such voices.
        """
        if gender and self.gender and self.gender not in _FITTING[gender]:
            return _AGAINST_THE_EAR
        wanted_hz = _WANTED_HZ.get((age, gender if age == "old" else ""))
        if wanted_hz is None or self.pitch_hz is None:
            return self.reluctance
        off = 12 * math.log2(self.pitch_hz / wanted_hz)
        return self.reluctance + _BY_AGE * max(0.0, off if age == "old" else -off)


_WANTED_HZ = {("child", ""): 260.0, ("old", "man"): 90.0, ("old", "woman"): 150.0}
_BY_AGE = 0.15  # a semitone: seven of them count as much as the same voice twice

_FITTING = {"woman": ("woman",), "man": ("man",), "child": ("child", "woman")}

_PITCH_WORDS = {"woman": (176, "low", 195, "high"), "man": (105, "low", 130, "high")}
_OTHER_WORDS = ((4.4, "slow", 5.1, "quick"), (-23, "soft", None, ""), (None, "", -12, "bright"))


def describe_sound(gender: str, pitch_hz: float | None, *others: float | None) -> tuple[str, ...]:
    """Words for how a voice sounds beside others of its gender.

    Args:
        gender: As in `VoiceTraits`.
        pitch_hz: The usual one; here and below None where it isn't known.
        others: Syllables a second, loudness in LUFS, and what lies above 3 kHz in dB of all.
    """
    found = []
    bounds = (_PITCH_WORDS.get(gender, (None, "", None, "")), *_OTHER_WORDS)
    for value, (least, below, most, above) in zip((pitch_hz, *others), bounds, strict=False):
        if value is not None and least is not None and value <= least:
            found.append(below)
        elif value is not None and most is not None and value >= most:
            found.append(above)
    return tuple(found)


DescribeVoice = Callable[[str], VoiceTraits]
"""How the voice sounds that a name chooses on one engine."""


def choose_voice_names(
    names: Iterable[str],
    kept: Mapping[str, str],
    engines: Sequence[DescribeVoice],
    language: str | None = None,
    about: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The names by which new characters of a cast choose automatic voices unlike the others'.

    A character chooses by its own name, as in every other cast, unless that voice is of another
    gender than people mean by the name, or somebody sounds like that already: then by its name
    with a number.

    Args:
        names: Of the new characters, in the order of the scene.
        kept: The names by which those before them have chosen, by their own.
        engines: On which the voices are kept apart, that of the scene first: it counts most.
        language: Of the scene, where it is known; some names are a woman's in one language only.
        about: What the script says of characters, such as "CHILD, 8", by the keys of their names.

    Returns:
        By the character's name; without those who choose by their own.
    """
    known = {name_key(name): chosen for name, chosen in kept.items()}
    others = list(islice(known.values(), _MOST_COMPARED))
    found: dict[str, str] = {}
    for name in names:
        key = name_key(name)
        if key in known:
            continue
        chosen = name
        if len(others) < _MOST_CHOSEN:
            heard = others if len(others) < _MOST_COMPARED else ()
            said = (about or {}).get(key)
            known_as = f"{name} ({said})" if said else name
            chosen = _choose(name, known_as, language, heard, engines)
        known[key] = chosen
        others.append(chosen)
        if chosen != name:
            found[name] = chosen
    return found


def name_voices(
    dialog: Dialog,
    engines: Sequence[DescribeVoice],
    library: SpeakerLibrary,
    given: Iterable[str] = (),
    language: str | None = None,
) -> dict[str, str]:
    """The same for all characters of a dialog that is no project.

    Args:
        dialog: The lines.
        engines: As in `choose_voice_names`.
        library: Whose speakers have voices of their own.
        given: Names that have a voice otherwise.
        language: As in `choose_voice_names`.
    """
    lines = [line for line in dialog if isinstance(line, Speech)]
    names = {name_key(line.speaker): line.speaker for line in lines}
    if not engines:
        return {}
    known, voiced = SpeakerSnapshot(library), set(map(name_key, given))
    new = [one for key, one in names.items() if key not in voiced and known.find(one) is None]
    about = list_about((line.speaker, line.params) for line in lines)
    return choose_voice_names(new, {}, engines, language, about)


def list_about(lines: Iterable[tuple[str, Mapping[str, ParamValue]]]) -> dict[str, str]:
    """What lines, by speaker and parameters, say of their speakers, by the keys of their names."""
    found: dict[str, str] = {}
    for speaker, params in lines:
        if ABOUT in params:
            found.setdefault(name_key(speaker), str(params[ABOUT]))
    return found


def _choose(
    name: str,
    known_as: str,
    language: str | None,
    others: Sequence[str],
    engines: Sequence[DescribeVoice],
) -> str:
    gender, age = usual_gender(known_as, language), usual_age(known_as)
    taken = [[describe(other) for other in others] for describe in engines]
    best, least = name, math.inf
    for candidate in _list_candidates(name):
        likeness = 0.0
        for number, describe in enumerate(engines):
            traits = describe(candidate)
            same = sum(traits.measure_likeness(other) for other in taken[number])
            same += traits.measure_misfit(gender, age)
            likeness += same * (_MAIN_WEIGHT if number == 0 else 1)
            if likeness >= least:  # however it sounds on the others
                break
        if likeness < least:
            best, least = candidate, likeness
        if likeness == 0:
            break
    return best


def _list_candidates(name: str) -> Iterator[str]:
    yield name
    for number in range(2, _TRIES + 1):
        yield f"{name} {number}"
