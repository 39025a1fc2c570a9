"""Bodies of the requests and responses about the speaker library."""

from __future__ import annotations

import zlib
from dataclasses import asdict
from typing import Any

from pydantic import Field

from studio.audio.analysis import Levels, compute_outline
from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.decode import AudioInfo
from studio.backends.base import Capabilities
from studio.server.routes.bodies import RequestBody
from studio.services.previews import MAX_PREVIEW_CHARS, Sentence
from studio.services.voice_library import NewSample, SampleCheck, TrimSpec
from studio.voices.library import SpeakerLibrary
from studio.voices.samples import SampleUpload
from studio.voices.speaker import MoodSample, Speaker
from studio.voices.speaker_record import MAX_TAG_CHARS, MAX_TAGS, MAX_TEXT_CHARS

OUTLINE_COLUMNS = 600

MAIN = "main"
"""Stands for the id of a speaker's main sample, which has none of its own."""


class CutBody(RequestBody):
    """A part of an upload, in seconds; without an end it goes on to the upload's end."""

    start_s: float = Field(0.0, ge=0, allow_inf_nan=False)
    end_s: float | None = Field(None, ge=0, allow_inf_nan=False)
    repaired: bool = False
    denoised: bool = False

    def to_trim(self, upload_id: str) -> TrimSpec:
        """The same part as the voice library takes it."""
        return TrimSpec(upload_id, self.start_s, self.end_s, self.repaired, self.denoised)


class ListenBody(CutBody):
    """A part of an upload to transcribe, and its language if that is known."""

    language: str | None = Field(None, max_length=100)


class SampleBody(CutBody):
    """A part of an upload that becomes a sample; `consent` says that its voice may be cloned."""

    upload_id: str = Field(max_length=40)
    consent: bool = False
    mood: str | None = Field(None, max_length=200)
    transcript: str | None = Field(None, max_length=MAX_TEXT_CHARS)

    def to_sample(self) -> NewSample:
        """The same as the voice library takes it."""
        return NewSample(self.to_trim(self.upload_id), self.consent, self.mood, self.transcript)


class DetailsBody(RequestBody):
    """A speaker's details; a missing field leaves the value as it is, null clears it."""

    language: str | None = Field(None, max_length=100)
    preset: str | None = Field(None, max_length=MAX_TEXT_CHARS)
    description: str | None = Field(None, max_length=MAX_TEXT_CHARS)
    colour: str | None = Field(None, pattern=r"^#[0-9a-fA-F]{6}$")
    tags: list[str] = Field(default_factory=list, max_length=MAX_TAGS)


class NewSpeakerBody(DetailsBody):
    """A new speaker, with or without a first sample."""

    name: str = Field(max_length=1_000)
    sample: SampleBody | None = None


class SpeakerBody(DetailsBody):
    """Changes to a speaker."""

    name: str | None = Field(None, max_length=1_000)
    transcript: str | None = Field(None, max_length=MAX_TEXT_CHARS)


class MendedBody(CutBody):
    """A part of an upload that replaces the sample which the upload was opened from."""

    upload_id: str = Field(max_length=40)
    transcript: str | None = Field(None, max_length=MAX_TEXT_CHARS)


class SampleChangeBody(RequestBody):
    """Changes to a sample; a missing field leaves the value as it is."""

    mood: str = Field("", max_length=200)
    transcript: str | None = Field(None, max_length=MAX_TEXT_CHARS)
    consent: bool | None = None


class PreviewBody(RequestBody):
    """A sentence to preview in a speaker's voice."""

    text: str = Field(max_length=10 * MAX_PREVIEW_CHARS)
    mood: str | None = Field(None, max_length=200)
    language: str | None = Field(None, max_length=100)
    backend: str | None = Field(None, max_length=100)

    def sentence(self) -> Sentence:
        """The same as `VoicePreviews` takes it."""
        return Sentence(self.text, self.mood, self.language)


class AuditionBody(CutBody):
    """A sentence to preview in the voice of an upload."""

    text: str = Field(max_length=10 * MAX_PREVIEW_CHARS)
    backend: str | None = Field(None, max_length=100)


def speaker_body(library: SpeakerLibrary, speaker: Speaker) -> dict[str, Any]:
    """A speaker with all its samples, the main one first."""
    samples = list(speaker.moods)
    if speaker.sample is not None:
        said, consent_at = speaker.transcript, speaker.consent_at
        samples.insert(0, MoodSample(MAIN, "", speaker.sample, said, consent_at))
    plain = ("speaker_id", "name", "colour", "language", "preset", "description")
    return {
        **{name: getattr(speaker, name) for name in plain},
        "tags": list(speaker.tags),
        "samples": [
            {
                "sample_id": one.sample_id,
                "mood": one.mood or None,
                "seconds": library.measure_length_s(one.path),
                "transcript": one.transcript,
                "consent_at": one.consent_at,
            }
            for one in samples
        ],
        "formers": [
            {
                "former_id": one.former_id,
                "sample_id": one.sample_id or MAIN,
                "mood": one.mood,
                "seconds": library.measure_length_s(one.path),
                "removed": one.removed,
                "original": one.original,
                "at": one.at,
            }
            for one in speaker.formers
        ],
    }


def brief_body(speaker: Speaker) -> dict[str, Any]:
    """A speaker as every part of the page needs it; `stamp` changes with any of its details."""
    return {
        "speaker_id": speaker.speaker_id,
        "name": speaker.name,
        "colour": speaker.colour,
        "moods": [one.mood for one in speaker.moods],
        "stamp": zlib.crc32(repr(speaker).encode()),
    }


def voice_offer(name: str, title: str, capabilities: Capabilities) -> dict[str, Any]:
    """The kinds of voices that a backend has, and the limits of the library's form."""
    flags = ("cloning", "described_voices", "instructions")
    built_in = ("builtin_voice", "builtin_by_name", "voice_conversion")
    return {
        "backend": name,
        "title": title,
        **{flag: getattr(capabilities, flag) for flag in (*flags, *built_in)},
        "presets": [
            {"preset_id": one.preset_id, "label": one.label, "languages": list(one.languages)}
            for one in capabilities.presets
        ],
        "languages": dict(capabilities.languages),
        "instead_of_sample": capabilities.instead_of_sample,
        "tag_chars": MAX_TAG_CHARS,
        "preview_chars": MAX_PREVIEW_CHARS,
    }


def examined_body(examined: SampleCheck) -> dict[str, Any]:
    """The problems of a recording as a sample; with a repair, what the repair changed."""
    report, repair = examined.report, examined.repair
    return {
        **upload_body(examined.upload),
        "part_s": examined.clip.duration_s,
        "levels": levels_body(report.levels),
        "before": levels_body(repair.before) if repair else None,
        "steps": [*_form_steps(examined.upload.info), *repair.steps] if repair else [],
        "outline": compute_outline(examined.clip, OUTLINE_COLUMNS),
        "problems": list(map(asdict, report.problems)),
    }


def _form_steps(info: AudioInfo) -> list[str]:
    """How a recording was converted when it was uploaded."""
    steps = []
    if info.channels > 1:
        steps.append(f"{info.channels} channels mixed into one")
    if info.rate_hz != STUDIO_RATE_HZ:
        steps.append(f"resampled from {info.rate_hz:,} to {STUDIO_RATE_HZ:,} Hz")
    return steps


def upload_body(upload: SampleUpload) -> dict[str, Any]:
    """An uploaded recording."""
    return {
        "upload_id": upload.upload_id,
        "file_name": upload.name,
        "duration_s": upload.duration_s,
        "rate_hz": upload.info.rate_hz,
        "channels": upload.info.channels,
    }


def levels_body(levels: Levels) -> dict[str, float]:
    """The levels of a recording: dB of full scale, and shares from 0 to 1."""
    shown = ("speech_db", "noise_db", "peak_db", "clipped_share", "speech_share")
    return {name: getattr(levels, name) for name in shown}
