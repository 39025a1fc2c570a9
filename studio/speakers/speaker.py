"""A speaker and the samples its voice is cloned from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from studio.audio.clip import Clip

NEUTRAL = "neutral"
"""How a line names the mood of a speaker's main sample; the same as naming none."""


@dataclass(frozen=True, slots=True)
class MoodSample:
    """One more recording of a speaker, for the lines that name its mood.

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
class Speaker:
    """A character's voice as it is kept on disk.

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

    @property
    def chosen_by(self) -> str:
        """The name that chooses its voice on a backend with a built-in one for each name."""
        return self.first_name or self.name


@dataclass(frozen=True, slots=True)
class Sample:
    """A decoded recording; `sha256` is of the file's bytes and keys the conditioning cache."""

    clip: Clip
    sha256: str
    transcript: str | None = None


@dataclass(frozen=True, slots=True)
class Voice:
    """All that a backend may use to make a speaker's voice; with nothing set, its built-in one.

    Attributes:
        speaker: What people call it.
        first_name: What they called it at first, where that is something else.
    """

    speaker: str
    sample: Sample | None = None
    preset: str | None = None
    description: str | None = None
    first_name: str | None = None

    @property
    def chosen_by(self) -> str:
        """The name that chooses among built-in voices, so that a renamed speaker keeps its own."""
        return self.first_name or self.speaker
