"""A speaker and the sample its voice is cloned from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from studio.audio.clip import Clip


@dataclass(frozen=True, slots=True)
class Speaker:
    """A character's voice as it is kept on disk.

    Attributes:
        speaker_id: Folder name in the library; generated, never made from outside text.
        name: As the person wrote it; unique in the library whatever its case.
        sample: The recording, None when the speaker has none.
        transcript: What the recording says, when known.
        language: BCP-47 code of the recording, when known.
        preset: A backend's own voice, instead of a sample.
        description: A voice in words, for backends that make one from them.
        colour: CSS colour of the speaker's lines, "#rrggbb".
    """

    speaker_id: str
    name: str
    sample: Path | None = None
    transcript: str | None = None
    language: str | None = None
    preset: str | None = None
    description: str | None = None
    colour: str = "#888888"


@dataclass(frozen=True, slots=True)
class Sample:
    """A decoded recording; `sha256` is of the file's bytes and keys the conditioning cache."""

    clip: Clip
    sha256: str
    transcript: str | None = None


@dataclass(frozen=True, slots=True)
class Voice:
    """All that a backend may use to make a speaker's voice; with nothing set, its built-in one."""

    speaker: str
    sample: Sample | None = None
    preset: str | None = None
    description: str | None = None
