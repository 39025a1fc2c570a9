"""Bodies of the speaker library's routes. Inside, the studio uses its own types."""

from __future__ import annotations

import zlib
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from studio.audio.analysis import Levels, compute_outline
from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.decode import AudioInfo
from studio.backends.base import Capabilities
from studio.services.previews import MAX_PREVIEW_CHARS, Sentence
from studio.services.voice_library import NewSample, SampleCheck, SampleEdit, TrimSpec
from studio.voices.library import SpeakerLibrary
from studio.voices.sample_uploads import SampleUpload
from studio.voices.speaker import Speaker
from studio.voices.speaker_record import MAX_TAG_CHARS, MAX_TAGS, MAX_TEXT_CHARS

OUTLINE_COLUMNS = 600

MAIN = "main"
"""Stands for the id of a speaker's main sample, which has none of its own."""


class _SpeakerModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CutBody(_SpeakerModel):
    """A part of an upload, in seconds; without an end it goes to the upload's."""

    start_s: float = Field(0.0, ge=0, allow_inf_nan=False)
    end_s: float | None = Field(None, ge=0, allow_inf_nan=False)
    repaired: bool = False

    def cut(self, upload_id: str) -> TrimSpec:
        """The part of that upload."""
        return TrimSpec(upload_id, self.start_s, self.end_s, self.repaired)


class SampleBody(CutBody):
    """An upload's part that becomes a sample; `consent` says the voice may be cloned."""

    upload_id: str = Field(max_length=40)
    consent: bool = False
    mood: str | None = Field(None, max_length=200)
    transcript: str | None = Field(None, max_length=MAX_TEXT_CHARS)

    def take(self) -> NewSample:
        """The same as the studio knows it."""
        return NewSample(self.cut(self.upload_id), self.consent, self.mood, self.transcript)


class DetailsBody(_SpeakerModel):
    """What may be set of a speaker; what is left out stays, null clears."""

    language: str | None = Field(None, max_length=100)
    preset: str | None = Field(None, max_length=MAX_TEXT_CHARS)
    description: str | None = Field(None, max_length=MAX_TEXT_CHARS)
    colour: str | None = Field(None, pattern=r"^#[0-9a-fA-F]{6}$")
    tags: list[str] = Field(default_factory=list, max_length=MAX_TAGS)


class NewSpeakerBody(DetailsBody):
    """A speaker for the library, with a first sample or without one."""

    name: str = Field(max_length=1_000)
    sample: SampleBody | None = None


class SpeakerBody(DetailsBody):
    """What may be changed of a speaker; what is left out stays."""

    name: str | None = Field(None, max_length=1_000)
    transcript: str | None = Field(None, max_length=MAX_TEXT_CHARS)


class MendedBody(CutBody):
    """What takes a kept sample's place: a part of the recording that was made of it."""

    upload_id: str = Field(max_length=40)
    transcript: str | None = Field(None, max_length=MAX_TEXT_CHARS)

    def mended(self) -> SampleEdit:
        """The same as the studio knows it."""
        return SampleEdit(self.cut(self.upload_id), self.transcript)


class SampleChangeBody(_SpeakerModel):
    """What may be changed of a further sample; what is left out stays."""

    mood: str = Field("", max_length=200)
    transcript: str | None = Field(None, max_length=MAX_TEXT_CHARS)
    consent: bool | None = None


class PreviewBody(_SpeakerModel):
    """A sentence to hear in a voice."""

    text: str = Field(max_length=10 * MAX_PREVIEW_CHARS)
    mood: str | None = Field(None, max_length=200)
    language: str | None = Field(None, max_length=100)
    backend: str | None = Field(None, max_length=100)

    def sentence(self) -> Sentence:
        """The same as the booth knows it."""
        return Sentence(self.text, self.mood, self.language)


class AuditionBody(CutBody):
    """A sentence to hear in the voice of an upload."""

    text: str = Field(max_length=10 * MAX_PREVIEW_CHARS)
    backend: str | None = Field(None, max_length=100)


def speaker_body(library: SpeakerLibrary, speaker: Speaker) -> dict[str, Any]:
    """A speaker with all its samples, the main one first."""
    samples = [
        {
            "sample_id": one.sample_id,
            "mood": one.mood,
            "seconds": library.length_s(one.path),
            "transcript": one.transcript,
            "consent_at": one.consent_at,
        }
        for one in speaker.moods
    ]
    if speaker.sample is not None:
        main = {
            "sample_id": MAIN,
            "mood": None,
            "seconds": library.length_s(speaker.sample),
            "transcript": speaker.transcript,
            "consent_at": speaker.consent_at,
        }
        samples.insert(0, main)
    return {
        "speaker_id": speaker.speaker_id,
        "name": speaker.name,
        "colour": speaker.colour,
        "language": speaker.language,
        "preset": speaker.preset,
        "description": speaker.description,
        "tags": list(speaker.tags),
        "samples": samples,
        "formers": [
            {
                "former_id": one.former_id,
                "sample_id": one.sample_id or MAIN,
                "mood": one.mood,
                "seconds": library.length_s(one.path),
                "removed": one.removed,
                "at": one.at,
            }
            for one in speaker.formers
        ],
    }


def brief_body(speaker: Speaker) -> dict[str, Any]:
    """What every part of the page needs of a speaker; `stamp` changes with any of its details."""
    return {
        "speaker_id": speaker.speaker_id,
        "name": speaker.name,
        "colour": speaker.colour,
        "moods": [one.mood for one in speaker.moods],
        "stamp": zlib.crc32(repr(speaker).encode()),
    }


def voice_offer(name: str, title: str, capabilities: Capabilities) -> dict[str, Any]:
    """Which voices a backend can make, and what else the library's page may offer with it."""
    return {
        "backend": name,
        "title": title,
        "cloning": capabilities.cloning,
        "presets": [
            {"preset_id": one.preset_id, "label": one.label, "languages": list(one.languages)}
            for one in capabilities.presets
        ],
        "described_voices": capabilities.described_voices,
        "instructions": capabilities.instructions,
        "builtin_voice": capabilities.builtin_voice,
        "builtin_by_name": capabilities.builtin_by_name,
        "voice_conversion": capabilities.voice_conversion,
        "languages": dict(capabilities.languages),
        "tag_chars": MAX_TAG_CHARS,
        "preview_chars": MAX_PREVIEW_CHARS,
    }


def examined_body(examined: SampleCheck) -> dict[str, Any]:
    """What stands against a recording as a sample; with a repair, what it changed."""
    report, repair = examined.report, examined.repair
    return {
        **upload_body(examined.upload),
        "part_s": examined.clip.duration_s,
        "levels": levels_body(report.levels),
        "before": levels_body(repair.before) if repair else None,
        "steps": [*_form_steps(examined.upload.info), *repair.steps] if repair else [],
        "outline": compute_outline(examined.clip, OUTLINE_COLUMNS),
        "problems": [
            {"code": one.code, "message": one.message, "fatal": one.fatal}
            for one in report.problems
        ],
    }


def _form_steps(info: AudioInfo) -> list[str]:
    """What was done to a recording's form when it came in."""
    steps = []
    if info.channels > 1:
        steps.append(f"{info.channels} channels mixed into one")
    if info.rate_hz != STUDIO_RATE_HZ:
        steps.append(f"brought from {info.rate_hz:,} to {STUDIO_RATE_HZ:,} samples a second")
    return steps


def upload_body(upload: SampleUpload) -> dict[str, Any]:
    """A recording that arrived."""
    return {
        "upload_id": upload.upload_id,
        "file_name": upload.name,
        "duration_s": upload.duration_s,
        "rate_hz": upload.info.rate_hz,
        "channels": upload.info.channels,
    }


def levels_body(levels: Levels) -> dict[str, float]:
    """A recording in figures, dB of full scale and shares of 0 to 1."""
    return {
        "speech_db": levels.speech_db,
        "noise_db": levels.noise_db,
        "peak_db": levels.peak_db,
        "clipped_share": levels.clipped_share,
        "speech_share": levels.speech_share,
    }
