"""Bodies of the speech API. Names and shapes are OpenAI's and vLLM-Omni's, not the studio's."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from studio.audio.encode import StreamFormat
from studio.audio.tempo import MAX_SPEED, MIN_SPEED
from studio.dialog.attributes import MAX_SEED
from studio.dialog.pronunciation import MAX_PRONUNCIATIONS
from studio.project.ops import PronunciationFields
from studio.server.routes.project_files import LoudnessTarget

MAX_INPUT_CHARS = 20_000
MAX_REFERENCE_CHARS = 16_000_000
"""A data URL of 12 MB of audio, which is a minute of uncompressed stereo."""

Speed = Annotated[float, Field(ge=MIN_SPEED, le=MAX_SPEED, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class VoiceId(BaseModel):
    """A voice by its id, the long way of naming one."""

    id: Name


class SpeechBody(BaseModel):
    """One text to speak; fields that aren't listed here are ignored."""

    model_config = ConfigDict(extra="ignore")

    input: str = Field(min_length=1, max_length=MAX_INPUT_CHARS, description="The text.")
    model: Name | None = Field(
        None,
        description="A backend's name; `tts-1`, `tts-1-hd`, `gpt-4o-mini-tts` or none mean the "
        "studio's own choice.",
    )
    voice: Name | VoiceId | None = Field(
        None,
        description="A voice of GET /v1/audio/voices, or any name where the backend has a built-in "
        "voice.",
    )
    response_format: StreamFormat = Field(
        StreamFormat.MP3, description="`pcm` is s16le, mono, 24 kHz."
    )
    speed: Speed = Field(1.0, description="At the same pitch.")
    instructions: str | None = Field(
        None, max_length=5_000, description="How to speak, or what the voice is like."
    )
    stream_format: Literal["audio", "sse"] = Field(
        "audio", description="The bytes of the audio, or events that hold them."
    )
    language: str | None = Field(None, max_length=100, description="A code or an English name.")
    ref_audio: str | None = Field(
        None, max_length=MAX_REFERENCE_CHARS, description="A recording as a base64 data URL."
    )
    ref_text: str | None = Field(None, max_length=5_000, description="What the recording says.")
    task_type: Literal["Base", "CustomVoice", "VoiceDesign"] | None = Field(
        None, description="As in vLLM-Omni."
    )
    seed: Seed | None = Field(None, description="A whole number, for the same take again.")

    @property
    def voice_name(self) -> str | None:
        """The voice's id, however it was written."""
        return self.voice.id if isinstance(self.voice, VoiceId) else self.voice


class DialogBody(BaseModel):
    """A dialog to render: script text, or items as the studio's JSON files have them."""

    model_config = ConfigDict(extra="forbid")

    input: str | list[dict[str, Any]] = Field(description="Script text, or a list of items.")
    model: Name | None = Field(None, description="As for speech.")
    voices: dict[str, Name] = Field(
        default_factory=dict, max_length=1_000, description="Voices by the name in the script."
    )
    seed: Seed | None = Field(None, description="For lines without one.")
    pronunciations: list[PronunciationFields] = Field(
        default_factory=list,
        max_length=MAX_PRONUNCIATIONS,
        description="How words are said; nothing else of the dialog changes.",
    )
    loudness: LoudnessTarget = Field(
        "rendered",
        description="Of the finished audio in every format: a level by its name, or in LUFS.",
    )
    even_voices: bool = Field(
        False, strict=True, description="Bring all speakers to one loudness first."
    )
    stream: bool = Field(False, description="Answer with the progress events of the render.")


class ModelAbilities(BaseModel):
    """What a backend can do, so that nobody has to find out by being refused.

    With `cloning` or `builtin_voice` it takes `ref_audio`; without `cloning` a recording only sets
    the pitch of the voice.
    """

    cloning: bool = Field(description="Speaks in the voice of a recording.")
    builtin_voice: bool = Field(description="Takes any name as a voice.")
    presets: list[str] = Field(description="Voices of its own, for task_type CustomVoice.")
    described_voices: bool = Field(description="Takes task_type VoiceDesign.")
    instructions: bool = Field(description="Follows instructions on how a voice speaks a text.")
    languages: dict[str, str] = Field(description="Names by code; empty where it has one only.")
    tags: list[str] = Field(description="Sounds that it makes where a text has them in brackets.")
    streaming: bool = Field(description="Its sound comes before the line is finished.")
    sample_rate_hz: int = Field(description="Of what is sent, whatever the backend's own.")
    max_chars: int = Field(description="Longer texts are spoken in pieces of that length.")


class ModelCard(BaseModel):
    """A backend."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "tableread"
    title: str
    capabilities: ModelAbilities


class ModelList(BaseModel):
    """The backends that can speak now."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class VoiceCard(BaseModel):
    """A voice; `kind` is `speaker` for the library's and `preset` for a backend's."""

    id: str
    name: str
    kind: Literal["speaker", "preset"]
    languages: list[str]


class VoiceList(BaseModel):
    """The voices of a backend, and of the library."""

    voices: list[str]
    data: list[VoiceCard]


class DialogFailure(BaseModel):
    """A line that could not be spoken."""

    segment: int
    line: int
    message: str


class DialogDoubt(BaseModel):
    """A line that was spoken and may not be right; `kinds` says in short what `message` tells."""

    segment: int
    line: int
    kinds: list[str]
    message: str


class DialogCard(BaseModel):
    """A render of a dialog as it stands."""

    id: str
    object: Literal["dialog"] = "dialog"
    status: Literal["running", "done", "cancelled"]
    model: str
    lines: int
    segments: int
    finished: int
    audio_s: float
    failed: list[DialogFailure]
    doubtful: list[DialogDoubt]


class DialogDeleted(BaseModel):
    """A render that was stopped and forgotten."""

    id: str
    object: Literal["dialog.deleted"] = "dialog.deleted"
    deleted: Literal[True] = True
