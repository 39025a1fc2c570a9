"""eSpeak NG's data: where its package lies, its languages, and the voice a speaker gets in it."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from studio.audio.analysis import estimate_fundamental_hz
from studio.backends.base import Preset
from studio.dialog.model import name_key
from studio.errors import ModelUnavailable
from studio.voices.automatic import VoiceTraits
from studio.voices.speaker import Voice

PACKAGE = "espeakng-loader"
REMEDY = f"Install it with: pip install {PACKAGE}"

_LISTED_CODE = re.compile(r"[a-z]{2,3}(-[A-Z]{2})?")

_DEFAULT_CODE = "en-US"

# The language of most text in a script; scripts that many languages share, Latin first of all,
# say too little and get the default.
_LANGUAGE_OF_SCRIPT = {
    "ARABIC": "ar", "ARMENIAN": "hy", "BENGALI": "bn", "CJK": "cmn", "CYRILLIC": "ru",
    "DEVANAGARI": "hi", "ETHIOPIC": "am", "GEORGIAN": "ka", "GREEK": "el", "GUJARATI": "gu",
    "GURMUKHI": "pa", "HANGUL": "ko", "HEBREW": "he", "HIRAGANA": "ja", "KANNADA": "kn",
    "KATAKANA": "ja", "MALAYALAM": "ml", "MYANMAR": "my", "ORIYA": "or", "SINHALA": "si",
    "TAMIL": "ta", "TELUGU": "te", "THAI": "th",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Package:
    """The library file and the folder that holds `espeak-ng-data`."""

    library: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Language:
    """One language that eSpeak NG reads; `voice_file` is below its `lang` folder."""

    code: str
    name: str
    voice_file: str


class Languages:
    """eSpeak NG's languages, found by BCP-47 code."""

    def __init__(self, data: Path) -> None:
        self._by_code: dict[str, tuple[int, Language]] = {}
        for file in sorted((data / "lang").rglob("*")):
            if file.is_file():
                self._add(file, data)
        american = self._by_code.get(_DEFAULT_CODE.lower())
        if american:  # plain "en" means what a line without a language gets
            self._by_code["en"] = american

    def names_by_code(self) -> dict[str, str]:
        """Codes worth offering, each with its language's English name, in order of the names."""
        cased = {_format_code(code): found.name for code, (_, found) in self._by_code.items()}
        own = {found.code for _, found in self._by_code.values()}
        offered = {
            code: name
            for code, name in cased.items()
            if code in own or _LISTED_CODE.fullmatch(code)
        }
        return dict(sorted(offered.items(), key=lambda item: (item[1], item[0])))

    def find(self, code: str) -> Language | None:
        """The language of a code, or of its longest known beginning (RFC 4647 look-up)."""
        parts = code.replace("_", "-").casefold().split("-")
        for length in range(len(parts), 0, -1):
            found = self._by_code.get("-".join(parts[:length]))
            if found:
                return found[1]
        return None

    def _add(self, file: Path, data: Path) -> None:
        # Two of the files carry comments in an old Chinese encoding.
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        dictionary = _value(lines, "dictionary", file.name.partition("-")[0])
        if not (data / f"{dictionary}_dict").is_file():
            return  # announced by eSpeak NG, but silent: Faroese and Karakalpak in 1.52
        name = _value(lines, "name", file.name).split("//")[0].strip()
        voice_file = file.relative_to(data / "lang").as_posix()
        language = Language(_format_code(file.name), name, voice_file)
        for code, priority in _codes(lines):
            key = code.casefold()
            if key not in self._by_code or priority < self._by_code[key][0]:
                self._by_code[key] = (priority, language)
        self._by_code[file.name.casefold()] = (0, language)


def find_package() -> Package:
    """Find the package without loading the library.

    Raises:
        ModelUnavailable: It isn't installed, or lacks its library or data.
    """
    if importlib.util.find_spec("espeakng_loader") is None:
        raise ModelUnavailable(f"The package {PACKAGE} is missing. {REMEDY}")
    import espeakng_loader

    library = Path(espeakng_loader.get_library_path())
    folder = library.parent
    if not library.is_file() or not (folder / "espeak-ng-data" / "phontab").is_file():
        raise ModelUnavailable(
            f"The package {PACKAGE} in {folder} is incomplete. "
            f"Install it again with: pip install --force-reinstall {PACKAGE}"
        )
    return Package(library, folder)


def language_of_text(text: str) -> str:
    """The code for text whose language nobody gave, by the script of most of its letters.

    Japanese mixes scripts, so any kana decides for it; Latin letters and mixed scripts with
    several languages get the script's most spoken one, which may be wrong: give the language.
    """
    scripts = Counter[str]()
    for char, count in Counter(text).items():
        if char.isalpha():
            scripts[unicodedata.name(char, "").partition(" ")[0]] += count
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > 0 and scripts["CJK"] > 0:
        return "ja"
    most = max(scripts, key=lambda script: scripts[script], default="LATIN")
    return _LANGUAGE_OF_SCRIPT.get(most, _DEFAULT_CODE)


def _value(lines: list[str], key: str, default: str) -> str:
    return next((line[len(key) + 1 :] for line in lines if line.startswith(f"{key} ")), default)


def _codes(lines: list[str]) -> Iterator[tuple[str, int]]:
    for line in lines:
        if line.startswith("language "):
            code, *priority = line.split()[1:3]
            yield code, int(priority[0]) if priority and priority[0].isdigit() else 5


def _format_code(code: str) -> str:
    """A code as BCP-47 writes it: de, pt-BR, es-419, fa-Latn, en-GB-x-rp."""
    public, private_mark, private = code.lower().partition("-x-")
    first, *rest = public.split("-")
    return "-".join([first, *(_format_code_part(part) for part in rest)]) + private_mark + private


def _format_code_part(part: str) -> str:
    if len(part) == 2:
        return part.upper()
    return part.title() if len(part) == 4 else part


TABLE_VERSION = 1
"""Raise it with any change that makes a speaker sound different: takes are cached by it."""

LOWEST_HZ, HIGHEST_HZ = 70.0, 320.0

# Steps wide enough to notice: two names with one variant either differ clearly or, one time in
# some hundred, not at all.
_PITCH_SEMITONES = (-3, -2, -1, 0, 1, 2, 3)
_TRACTS = (0.90, 0.95, 1.0, 1.05, 1.10)
_TEMPOS = (0.93, 1.0, 1.07)
_NEAR_OCTAVES = 1 / 3


_Choice = TypeVar("_Choice")


@dataclass(frozen=True, slots=True)
class DraftVariant:
    """One of eSpeak NG's voice variants and how its pitch follows the pitch parameter.

    The fundamental at parameter p is `scaled_hz` * 2 ** ((p - 50) / 50) + `fixed_hz`: eSpeak NG
    scales the base of the intonation by an octave each way, and leaves its range alone.
    """

    name: str
    label: str
    scaled_hz: float
    fixed_hz: float

    @property
    def middle_hz(self) -> float:
        """Median fundamental frequency at the parameter's middle, 50."""
        return self.fundamental_hz(50)

    def fundamental_hz(self, pitch: int) -> float:
        """Median fundamental frequency at a pitch parameter of 0 to 99."""
        return float(self.scaled_hz * 2 ** ((pitch - 50) / 50) + self.fixed_hz)

    def pitch(self, wanted_hz: float) -> int:
        """The pitch parameter, 0 to 99, that comes nearest to a frequency."""
        scale = max(wanted_hz - self.fixed_hz, 1.0) / self.scaled_hz
        return min(99, max(0, round(50 + 50 * math.log2(scale))))


VARIANTS = (
    DraftVariant("m8", "Deep 1", 48.5, 39.2),
    DraftVariant("quincy", "Deep 2", 48.8, 41.1),
    DraftVariant("m1", "Deep 3", 59.7, 35.9),
    DraftVariant("m4", "Deep 4", 54.5, 41.1),
    DraftVariant("robert", "Low 1", 46.6, 56.6),
    DraftVariant("Alex", "Low 2", 93.6, 10.8),
    DraftVariant("kaukovalta", "Low 3", 54.2, 49.5),
    DraftVariant("travis", "Low 4", 64.2, 39.7),
    DraftVariant("m3", "Low 5", 66.2, 40.2),
    DraftVariant("grandpa", "Low 6", 70.8, 35.9),
    DraftVariant("m7", "Low 7", 62.6, 44.9),
    DraftVariant("Mario", "Low 8", 57.4, 55.0),
    DraftVariant("rob", "Low 9", 31.0, 87.5),
    DraftVariant("Nguyen", "Middle 1", 84.7, 65.9),
    DraftVariant("aunty", "Middle 2", 192.0, -18.9),
    DraftVariant("f4", "High 1", 130.8, 48.7),
    DraftVariant("f1", "High 2", 127.3, 52.9),
    DraftVariant("shelby", "High 3", 83.8, 99.4),
    DraftVariant("steph", "High 4", 156.9, 26.9),
    DraftVariant("grandma", "High 5", 100.7, 104.0),
    DraftVariant("linda", "Bright 1", 187.0, 40.5),
    DraftVariant("belinda", "Bright 2", 188.1, 39.3),
    DraftVariant("Andrea", "Bright 3", 178.2, 61.6),
    DraftVariant("Annie", "Bright 4", 103.2, 139.3),
)
"""In order of pitch. Fitted to the medians of three English sentences at nine values of the pitch
parameter (eSpeak NG 1.52, largest error 5 %). Left out are variants that whisper, croak, clip, or
use the breath and Klatt generators, whose noise differs from run to run."""

_BY_NAME = {variant.name: variant for variant in VARIANTS}

_ALIKE = (
    {"m1", "grandpa", "Alex", "m3"},
    {"m4", "rob", "robert", "f1"},
    {"m7", "Mario", "Nguyen"},
    {"aunty", "f4", "linda", "belinda"},
)
"""Variants of one timbre: at the same pitch their long-term spectra differ by 3.7 dB at most, those
of others by 3.5 to 12 dB; those of two texts by one variant by 1.1 to 1.7 dB."""

_TIMBRES = {
    variant.name: next((n for n, names in enumerate(_ALIKE) if variant.name in names), 10 + number)
    for number, variant in enumerate(VARIANTS)
}

_GENDERS = dict.fromkeys(
    ["aunty", "f4", "f1", "shelby", "steph", "grandma", "linda", "belinda", "Andrea", "Annie"],
    "woman",
)
_SOUNDS = {"Deep": ("low",), "Low": ("low",), "High": ("high",), "Bright": ("high",)}
_OLD = frozenset({"grandpa", "grandma"})
_BETWEEN_HZ = 155.0
"""A man's variant above, and a woman's below, is taken for either."""


@dataclass(frozen=True, slots=True)
class DraftVoice:
    """A speaker's settings; the same voice gives the same ones on every machine.

    Attributes:
        fundamental_hz: Median pitch of the voice.
        tract: Vocal tract: formants are moved by this factor, 1 leaves them.
    """

    variant: DraftVariant
    fundamental_hz: float
    tract: float
    tempo: float


def draft_voice(voice: Voice) -> DraftVoice:
    """Choose a voice: the sample decides its pitch, else a preset of ours or the name does.

    A preset of another backend counts as none, so that a cast can be tried here too.
    """
    measured_hz = estimate_fundamental_hz(voice.sample.clip) if voice.sample else None
    if voice.sample and measured_hz:
        wanted_hz = min(HIGHEST_HZ, max(LOWEST_HZ, measured_hz))
        dice = _Dice(voice.sample.sha256)
        return _mix(dice.pick(_near(wanted_hz)), wanted_hz, dice)
    dice = _Dice(name_key(voice.builtin_name))
    variant = _BY_NAME.get(voice.preset or "", dice.pick(VARIANTS))
    pitch_hz = variant.middle_hz * 2 ** (dice.pick(_PITCH_SEMITONES) / 12)
    return _mix(variant, pitch_hz, dice)


def presets() -> tuple[Preset, ...]:
    """The variants as presets, by rising pitch; each speaks every language."""
    return tuple(
        Preset(
            variant.name,
            variant.label,
            gender=_GENDERS.get(variant.name, "man"),
            age="old" if variant.name in _OLD else "",
            sound=_SOUNDS.get(variant.label.partition(" ")[0], ()),
        )
        for variant in VARIANTS
    )


def describe_automatic(name: str, _language: str | None = None) -> VoiceTraits:
    """How the voice sounds that a name chooses; the same in every language."""
    dice = _Dice(name_key(name))
    return _describe_choice(dice.pick(VARIANTS).name, dice.pick(_PITCH_SEMITONES))


@cache
def _describe_choice(variant_name: str, semitones: int) -> VoiceTraits:
    variant = _BY_NAME[variant_name]
    shift = f", {semitones:+d}".replace("-", "−")
    label = variant.label + (shift if semitones else "")
    pitch_hz = variant.middle_hz * 2 ** (semitones / 12)
    gender = _GENDERS.get(variant.name, "man")
    if (gender == "woman") != (pitch_hz >= _BETWEEN_HZ):
        gender = "either"
    return VoiceTraits(label, pitch_hz, (float(_TIMBRES[variant.name]),), gender)


class _Dice:
    """Choices that follow from a text alone, unlike those of `hash`, which differ by run."""

    def __init__(self, text: str) -> None:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        self._left = int.from_bytes(digest, "big")

    def pick(self, choices: Sequence[_Choice]) -> _Choice:
        self._left, number = divmod(self._left, len(choices))
        return choices[number]


def _mix(variant: DraftVariant, pitch_hz: float, dice: _Dice) -> DraftVoice:
    return DraftVoice(variant, pitch_hz, dice.pick(_TRACTS), dice.pick(_TEMPOS))


def _near(wanted_hz: float) -> list[DraftVariant]:
    """Variants that reach a pitch without straining; at least the nearest one."""
    distances = {variant: abs(math.log2(variant.middle_hz / wanted_hz)) for variant in VARIANTS}
    limit = max(_NEAR_OCTAVES, min(distances.values()))
    return [variant for variant, octaves in distances.items() if octaves <= limit]
