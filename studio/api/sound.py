"""How sound is wished over HTTP, and what is told of a finished file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from studio.audio.loudness import Loudness
from studio.audio.mastering import MAX_LUFS, MIN_LUFS, Mastering, target_of
from studio.audio.scene_file import SoundChoice, remarks

SoundFormat = Literal["wav", "flac", "mp3", "zip", "tracks"]

Lufs = Annotated[float, Field(ge=MIN_LUFS, le=MAX_LUFS, allow_inf_nan=False, strict=True)]
LoudnessWish = Literal["rendered", "podcast", "audiobook", "broadcast"] | Lufs
"""A level by its name, or in LUFS."""


class SoundBody(BaseModel):
    """A file of a project's sound; `tracks` is a zip with one for each speaker."""

    model_config = ConfigDict(extra="forbid")

    format: SoundFormat = "wav"
    loudness: LoudnessWish = "rendered"
    even_voices: bool = Field(False, strict=True)

    @property
    def suffix(self) -> str:
        """Of the file, with its dot."""
        return ".zip" if self.format == "tracks" else f".{self.format}"

    @property
    def choice(self) -> SoundChoice:
        """The wish as the studio knows it."""
        mastering = mastering_of(self.loudness, even_voices=self.even_voices)
        return SoundChoice(mastering, tracks=self.format == "tracks", measured=True)


def mastering_of(loudness: str | float, *, even_voices: bool) -> Mastering:
    """A level that was checked."""
    return Mastering(target_of(str(loudness)), even_voices)


def mastering_wished(
    loudness: Annotated[str, Query(max_length=40)] = "rendered", *, even_voices: bool = False
) -> Mastering:
    """A level in an address: `?loudness=podcast&even_voices=true`.

    Raises:
        BadInput: The loudness is none.
    """
    return mastering_of(loudness, even_voices=even_voices)


MasteringWish = Annotated[Mastering, Depends(mastering_wished)]


def loudness_body(loudness: Loudness, choice: SoundChoice) -> dict[str, Any]:
    """What a finished file holds, in figures and in words."""
    return {
        "loudness_lufs": loudness.lufs,
        "range_lu": loudness.range_lu,
        "true_peak_db": loudness.true_peak_db,
        "peak_db": loudness.peak_db,
        "rms_db": loudness.rms_db,
        "noise_db": loudness.noise_db,
        "remarks": list(remarks(loudness, choice)),
    }
