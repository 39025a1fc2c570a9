"""A speaker, the samples its voice is cloned from, and the voice that a backend gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from studio.audio.clip import Clip
from studio.dialog.model import name_key

NEUTRAL = "neutral"
"""The mood of a speaker's main sample, as a line may name it; the same as naming none."""


@dataclass(frozen=True, slots=True)
class MoodSample:
    """A further recording of a speaker, for the lines that name its mood.

    Attributes:
        sample_id: Unique within the speaker; generated, never made from outside text.
        mood: As the person wrote it; unique within the speaker whatever its case.
        path: The recording.
        transcript: What it says, when known.
        consent_at: When somebody ticked that this voice may be cloned, ISO 8601 in UTC; None
            when nobody did.
    """

    sample_id: str
    mood: str
    path: Path
    transcript: str | None = None
    consent_at: str | None = None


@dataclass(frozen=True, slots=True)
class SampleVersion:
    """A recording that was changed or removed, and can be put back.

    Attributes:
        former_id: Unique within the speaker.
        sample_id: Of the sample it was; None for the main one.
        mood: Of that sample; None for the main one.
        path: The recording.
        removed: Whether the sample went with it.
        at: When, ISO 8601 in UTC.
        original: Whether it is the other side of a denoised sample; then it is kept for good.
    """

    former_id: str
    sample_id: str | None
    mood: str | None
    path: Path
    removed: bool
    at: str
    original: bool = False


@dataclass(frozen=True, slots=True)
class Speaker:
    """A speaker of the library, as stored on disk.

    Attributes:
        speaker_id: Folder name in the library; generated, never made from outside text.
        name: As the person wrote it; unique in the library whatever its case.
        sample: The main recording, None when the speaker has none.
        transcript: What the main recording says, when known.
        language: BCP-47 code of the recordings, when known.
        preset: A backend's own voice, instead of a sample.
        description: A voice in words, for backends that make one from them.
        colour: CSS colour of the speaker's lines, "#rrggbb".
        tags: Words to find the speaker by, in the order they were given.
        consent_at: As in `MoodSample`, for the main recording.
        moods: Further recordings, in the order they were added.
        first_name: The name it had when it was added, where that is another one.
        formers: Recordings that can be put back, the latest last.
        checksums: CRC-32 of the recordings as they were written, by file name, where known.
    """

    speaker_id: str
    name: str
    sample: Path | None = None
    transcript: str | None = None
    language: str | None = None
    preset: str | None = None
    description: str | None = None
    colour: str = "#888888"
    tags: tuple[str, ...] = ()
    consent_at: str | None = None
    moods: tuple[MoodSample, ...] = ()
    first_name: str | None = None
    formers: tuple[SampleVersion, ...] = ()
    checksums: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def builtin_name(self) -> str:
        """The name that chooses its voice on a backend with a built-in one for each name."""
        return self.first_name or self.name


@dataclass(frozen=True, slots=True)
class RemovedSpeaker:
    """A speaker in the trash; `removed_s` is when it came there, in seconds since 1970."""

    speaker_id: str
    name: str
    removed_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """A decoded recording; `sha256` is of the file's bytes and keys the conditioning cache."""

    clip: Clip
    sha256: str
    transcript: str | None = None


@dataclass(frozen=True, slots=True)
class VoiceKinds:
    """Which voices a backend can make.

    Attributes:
        builtin: One for a speaker that has none at all.
        cloning: From samples.
        described: From descriptions.
        presets: Ids of its own.
    """

    builtin: bool = True
    cloning: bool = False
    described: bool = False
    presets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EngineVoice:
    """One of an engine's own voices, as a character of a scene has it.

    Attributes:
        preset_id: Of the engine.
        label: For people.
        language: The only one that it speaks; None where there are several, or that isn't known.
    """

    preset_id: str
    label: str
    language: str | None = None

    def to_voice(self, speaker: str) -> Voice:
        """The voice, which sounds the same whoever has it: its id stands for the first name."""
        return Voice(speaker, preset=self.preset_id, first_name=self.preset_id)


@dataclass(frozen=True, slots=True)
class Voice:
    """What a backend may make a speaker's voice from; with nothing set, its built-in voice.

    Attributes:
        speaker: What people call it.
        first_name: What they called it at first, where that is something else.
    """

    speaker: str
    sample: Sample | None = None
    preset: str | None = None
    description: str | None = None
    first_name: str | None = None

    def with_instruction(self, instruct: str | None) -> Voice:
        """The same voice for a line with an instruction on how to speak it.

        The words stand in for those that the voice has for all its lines; where these are what
        the voice is made from, they follow them.
        """
        if instruct is None:
            return self
        is_made_of_words = self.sample is None and self.preset is None and self.description
        words = f"{self.description} {instruct}" if is_made_of_words else instruct
        return replace(self, description=words)

    @property
    def builtin_name(self) -> str:
        """The name that chooses among built-in voices, so that a renamed speaker keeps its own."""
        return self.first_name or self.speaker


SPEAKER_COLOURS = (
    "#046bd0",
    "#b74b04",
    "#007d5a",
    "#9c46be",
    "#ca2f4e",
    "#766f08",
    "#007696",
    "#bb368d",
    "#3f7b05",
    "#6b58da",
    "#976501",
    "#007b7b",
)
"""Chips for white text (contrast 4.5 or more) that also stand out from a white page (4.5) and from
a dark one, `#0b0f19` (3); neighbours in the list lie far apart on the colour circle."""


def choose_colour(taken: Iterable[str]) -> str:
    """The first colour of the palette that the fewest speakers have."""
    return find_rarest_colour(Counter(taken))


def find_rarest_colour(uses: Counter[str]) -> str:
    """The first colour of the palette that is used least; `uses` has how often each is."""
    return min(SPEAKER_COLOURS, key=uses.__getitem__)


def find_mood_sample(speaker: Speaker, mood: str) -> MoodSample | None:
    """A speaker's sample of that mood, whatever its case; None when there is none."""
    wanted = name_key(mood.strip())
    return next((one for one in speaker.moods if name_key(one.mood) == wanted), None)


class SceneColours:
    """The colours of a scene's speakers; one whom no voice gives a colour keeps the one it got."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def choose(self, of_voices: Mapping[str, str | None]) -> dict[str, str]:
        """The colour of each speaker: of its voice, its own, or the one that the scene uses least.

        Args:
            of_voices: By the name's key, in the order of the scene; None where there is no voice.
        """
        colours = {key: one or self._kept.get(key) for key, one in of_voices.items()}
        uses = Counter(one for one in colours.values() if one is not None)
        for key, known in colours.items():
            if known is None:
                colours[key] = self._kept[key] = find_rarest_colour(uses)
                uses[self._kept[key]] += 1
        return {key: one for key, one in colours.items() if one is not None}

    def get(self, key: str) -> str | None:
        """The colour that a speaker without a voice has; None if nobody has asked for it."""
        return self._kept.get(key)
