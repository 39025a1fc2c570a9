"""Capability discovery of a speech server: its models, voices and request fields."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from studio.audio.clip import Clip
from studio.audio.encode import encode
from studio.audio.formats import AudioFormat
from studio.backends.qwen3.checkpoint import Checkpoint
from studio.backends.remote.server_faults import Garbled, Refused
from studio.dialog.model import name_key
from studio.errors import SampleRejected
from studio.voices.speaker import Voice

MAX_SAMPLE_S = 30.0
"""vLLM-Omni's limit for a reference recording."""

_FIXED_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class RemoteVoice:
    """A voice in the API's own terms, for whichever server speaks the line.

    Attributes:
        ref_audio: The sample as a data URL.
        chosen_by: The name that chooses a voice where nothing else does; empty for the speaker's.
    """

    speaker: str
    preset: str | None = None
    description: str | None = None
    ref_audio: str | None = field(default=None, repr=False)
    ref_text: str | None = field(default=None, repr=False)
    chosen_by: str = ""

    @property
    def size_bytes(self) -> int:
        return _FIXED_BYTES + len(self.ref_audio or "")


def remote_voice(voice: Voice) -> RemoteVoice:
    """Get a voice ready to be sent."""
    sample = voice.sample
    return RemoteVoice(
        voice.speaker,
        preset=voice.preset,
        description=(voice.description or "").strip() or None,
        ref_audio=_data_url(_fitting(voice)) if sample else None,
        ref_text=(sample.transcript or "").strip() or None if sample else None,
        chosen_by=voice.builtin_name,
    )


def _fitting(voice: Voice) -> Clip:
    """The sample's first half minute; a longer one with a transcript is refused, not cut."""
    assert voice.sample is not None
    clip = voice.sample.clip
    if clip.duration_s > MAX_SAMPLE_S and (voice.sample.transcript or "").strip():
        raise SampleRejected(
            f"The sample of {voice.speaker} lasts {clip.duration_s:.0f} s; speech servers take "
            f"{MAX_SAMPLE_S:g} s. Cut sample and transcript to that, or remove the transcript."
        )
    return Clip(clip.samples[: round(MAX_SAMPLE_S * clip.rate_hz)], clip.rate_hz)


def _data_url(clip: Clip) -> str:
    return f"data:audio/wav;base64,{base64.b64encode(encode(clip, AudioFormat.WAV)).decode()}"


_SPEECH_PATH = "/audio/speech"  # the version before it may stand in the document's server URL


@dataclass(frozen=True, slots=True)
class RequestShape:
    """A request's field names, and which of them are required."""

    fields: frozenset[str]
    required: frozenset[str]


def request_shape(body: bytes) -> RequestShape | None:
    """The shape of a speech request; None when the document describes none."""
    try:
        document = json.loads(body)
        paths = document["paths"]
        operation = next(paths[path]["post"] for path in paths if path.endswith(_SPEECH_PATH))
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        shape = _shape(document, schema)
    except (ValueError, KeyError, TypeError, StopIteration, RecursionError):
        return None
    return shape if "input" in shape.fields else None


def _shape(document: Mapping[str, Any], schema: Mapping[str, Any]) -> RequestShape:
    """Follow references and `allOf`, which is how tools write one schema built on another."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _shape(document, document["components"]["schemas"][name])
    parts = [_shape(document, part) for part in schema.get("allOf", ())]
    return RequestShape(
        frozenset(schema.get("properties", ())).union(*(part.fields for part in parts)),
        frozenset(schema.get("required", ())).union(*(part.required for part in parts)),
    )


OPENAI_FIELDS = frozenset({"model", "input", "voice", "response_format", "speed", "instructions"})
"""Request fields of every server; more are sent only to servers that say they have them."""

VLLM_OMNI_FIELDS = OPENAI_FIELDS | {
    "stream", "stream_format", "task_type", "language", "ref_audio", "ref_text",
    "x_vector_only_mode", "max_new_tokens", "seed",
}  # fmt: skip
"""Fields that vLLM-Omni has had since it streams; for servers that hide their API's document.

Source: vLLM-Omni, docs/serving/speech_api.md and OpenAICreateSpeechRequest, 0.30.
"""

OPENAI_VOICES = (
    "alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse",
)  # fmt: skip
"""OpenAI's voices, which its API doesn't list."""

QWEN3_LANGUAGES = Checkpoint().capabilities.languages
"""vLLM-Omni expects a language's name; other servers get the code as it is."""

MAX_INSTRUCTIONS_CHARS = 500
"""vLLM-Omni's own limit, unless its operator changed it."""

_TASK_AT_END = re.compile(r"(custom[-_.]?voice|voice[-_.]?design|base)$")


class SpeechTask(StrEnum):
    """Kind of a Qwen3-TTS checkpoint; the names of vLLM-Omni's `task_type`."""

    BASE = "Base"
    CUSTOM_VOICE = "CustomVoice"
    VOICE_DESIGN = "VoiceDesign"


class VoiceSource(StrEnum):
    """Where a server takes a speaker's voice from."""

    PRESET = "preset"
    CLONE = "clone"
    DESIGN = "design"
    BUILT_IN = "built-in"


@dataclass(frozen=True, slots=True)
class DiscoveredTraits:
    """Abilities that a server states in its list of models, as this studio does.

    Attributes:
        instructions: None where it doesn't say.
        languages: Code to name.
    """

    cloning: bool
    builtin_voice: bool = False
    described_voices: bool = False
    instructions: bool | None = None
    languages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """Abilities of one server with its model.

    Attributes:
        model: To be named in requests; None where the server lists none.
        voices: Its own voices; None when it doesn't list them.
        task: The kind of a Qwen3-TTS checkpoint; None for any other model.
        voice_required: Whether a request must name a voice, even with a sample.
        traits: What it says itself, which outranks what its fields and its name let expect.
    """

    model: str | None
    fields: frozenset[str] = OPENAI_FIELDS
    voices: tuple[str, ...] | None = None
    task: SpeechTask | None = None
    voice_required: bool = False
    traits: DiscoveredTraits | None = None

    @property
    def takes_samples(self) -> bool:
        """Whether a request may carry a recording."""
        if "ref_audio" not in self.fields or self.task not in (None, SpeechTask.BASE):
            return False
        return self.traits is None or self.traits.cloning or self.traits.builtin_voice

    @property
    def clones(self) -> bool:
        return self.takes_samples and (self.traits is None or self.traits.cloning)

    @property
    def designs(self) -> bool:
        return self.task is SpeechTask.VOICE_DESIGN

    @property
    def designs_too(self) -> bool:
        return self.traits is not None and self.traits.described_voices

    @property
    def takes_instructions(self) -> bool:
        """Whether instructions change how a voice speaks; the small checkpoints ignore them."""
        if self.traits is not None and self.traits.instructions is not None:
            return self.traits.instructions or self.traits.described_voices
        if "instructions" not in self.fields or self.task is SpeechTask.BASE:
            return False
        return self.task is None or "0.6b" not in (self.model or "").lower()

    @property
    def speaks_unasked(self) -> bool:
        """Whether it takes a line that names no voice."""
        if self.traits is not None:
            return self.traits.builtin_voice
        return self.task is None and not self.voice_required

    @property
    def presets(self) -> tuple[str, ...]:
        return OPENAI_VOICES if self.voices is None else self.voices

    @property
    def languages(self) -> Mapping[str, str]:
        """Code to name; empty when it isn't known."""
        if self.traits is not None:
            return self.traits.languages
        return QWEN3_LANGUAGES if self.task is not None else {}

    def means(self, voice: RemoteVoice) -> VoiceSource | None:
        """The source of a voice on this server; None when it can't make it."""
        if self.designs:
            return VoiceSource.DESIGN if voice.description else None
        if voice.preset and self._has(voice.preset):
            return VoiceSource.PRESET
        if voice.ref_audio:
            return VoiceSource.CLONE if self.takes_samples else None
        if voice.preset:
            return None
        if voice.description and self.designs_too:
            return VoiceSource.DESIGN
        return VoiceSource.BUILT_IN if self.presets or self.speaks_unasked else None

    def refusal(self, voice: RemoteVoice) -> str | None:
        """Why it can't speak in a voice, with the remedy; None when it can."""
        if self.means(voice) is None:
            return self._lacking(voice)
        if self.task and len(voice.description or "") > MAX_INSTRUCTIONS_CHARS:
            return (
                f"The description of {voice.speaker} is longer than the speech server takes. "
                f"Shorten it to {MAX_INSTRUCTIONS_CHARS} characters."
            )
        return None

    def voice_name(self, voice: RemoteVoice) -> str | None:
        """The voice to name in a request.

        A speaker for whom nothing was chosen gets one of the server's voices, the same from run to
        run, and likely another one than the other speakers.
        """
        means = self.means(voice)
        if means is VoiceSource.PRESET:
            return voice.preset
        if means is VoiceSource.BUILT_IN and self.presets:
            digest = hashlib.sha256(name_key(voice.chosen_by or voice.speaker).encode()).digest()
            return self.presets[int.from_bytes(digest[:8]) % len(self.presets)]
        if self.voice_required:
            return next(iter(self.presets), "default")
        return None

    def _has(self, preset: str) -> bool:
        return self.voices is None or preset.lower() in map(str.lower, self.voices)

    def _lacking(self, voice: RemoteVoice) -> str:
        if self.designs:
            return (
                f"{voice.speaker} has no description, from which the speech server makes its "
                "voices. Describe the voice in words."
            )
        choice = f"Choose one of: {', '.join(self.presets[:20])}." if self.presets else ""
        if voice.preset:
            return f"The speech server has no voice “{voice.preset}”. {choice}".strip()
        if voice.ref_audio:
            return (
                f"The speech server can't clone {voice.speaker}'s sample. {choice} Or add a server "
                "whose model clones, such as Qwen3-TTS Base."
            )
        return (
            f"{voice.speaker} has no sample, and the speech server has no voices of its own. Add a "
            "sample."
        )


def task_of(names: tuple[str, ...], fields: frozenset[str]) -> SpeechTask | None:
    """The kind of checkpoint, by how one of the model's names or its folder's ends."""
    if "task_type" not in fields:
        return None
    tasks = {task.value.lower(): task for task in SpeechTask}
    for name in names:
        for part in reversed(re.split(r"[\\/]+", name.lower().rstrip("\\/"))):
            found = _TASK_AT_END.search(part)
            if found and ("qwen3" in name.lower()):
                return tasks[re.sub(r"[-_.]", "", found[1])]
    return None


MAX_VOICES = 500

Get = Callable[[str], Awaitable[bytes | None]]
"""Fetches a URL; None when the server has no such page."""

_ROUND_ABOUT = "remote"
_SPEAKING_NAMES = ("tts", "speech", "audio")


_TRAITS = TypeAdapter(DiscoveredTraits)


class _Model(BaseModel):
    id: str
    root: str | None = None
    capabilities: object = None

    @property
    def traits(self) -> DiscoveredTraits | None:
        """The abilities it states; other servers use that field for other things."""
        try:
            return _TRAITS.validate_python(self.capabilities)
        except ValidationError:
            return None


class _Models(BaseModel):
    data: list[_Model]


class _Voice(BaseModel):
    voice_id: str | None = None
    id: str | None = None
    name: str | None = None

    @property
    def label(self) -> str | None:
        return self.voice_id or self.id or self.name


class _Voices(BaseModel):
    voices: list[str | _Voice] = Field(default_factory=list)
    data: list[str | _Voice] = Field(default_factory=list)
    uploaded_voices: list[object] | None = None

    def names(self) -> tuple[str, ...]:
        listed = self.voices or self.data
        names = (one if isinstance(one, str) else one.label for one in listed)
        return tuple(dict.fromkeys(name for name in names if name))[:MAX_VOICES]


async def discover_capabilities(
    get: Get, *, base: str, documents: tuple[str, ...], wanted: str | None
) -> ServerCapabilities:
    """Ask a server for its models, voices and request fields.

    Raises:
        Refused: It isn't a speech server, or hasn't the model.
        ServerFault: It doesn't answer, or not now.
    """
    model = _choose_model(_models(await get(f"{base}/models")), wanted)
    query = f"?model={quote(model.id, safe='')}" if model else ""
    voices = _voices(await _optional(get, f"{base}/audio/voices{query}"))
    described = await _fetch_shape(get, documents)
    if not (model or voices or described or wanted):
        raise Refused("lists neither models nor voices; check its URL, or set TTS_REMOTE_MODEL")
    shape = described or _usual(voices)
    return ServerCapabilities(
        model=model.id if model else wanted,
        fields=shape.fields,
        voices=voices.names() if voices else None,
        task=task_of((model.id, model.root or "") if model else (wanted or "",), shape.fields),
        voice_required="voice" in shape.required,
        traits=model.traits if model else None,
    )


async def _fetch_shape(get: Get, documents: tuple[str, ...]) -> RequestShape | None:
    for url in documents:
        body = await _optional(get, url)
        shape = request_shape(body) if body is not None else None
        if shape is not None:
            return shape
    return None


async def _optional(get: Get, url: str) -> bytes | None:
    """Fetch a page that a server needn't have; None without it."""
    try:
        return await get(url)
    except (Refused, Garbled):
        return None


def _usual(voices: _Voices | None) -> RequestShape:
    """Field names for a server without a document: only vLLM-Omni lists uploaded voices."""
    if voices is not None and voices.uploaded_voices is not None:
        return RequestShape(VLLM_OMNI_FIELDS, frozenset({"input"}))
    return RequestShape(OPENAI_FIELDS, frozenset({"model", "input", "voice"}))


def _models(body: bytes | None) -> list[_Model]:
    if body is None:
        return []
    try:
        return _Models.model_validate_json(body).data
    except ValidationError:
        raise Refused("doesn't list models as a speech server does; check its URL") from None


def _voices(body: bytes | None) -> _Voices | None:
    if body is None:
        return None
    try:
        return _Voices.model_validate_json(body)
    except ValidationError:
        return None


def _choose_model(models: list[_Model], wanted: str | None) -> _Model | None:
    if wanted is None:
        return _likeliest(models)
    found = next((one for one in models if wanted in (one.id, one.root)), None)
    if models and found is None:
        listed = ", ".join(one.id for one in models[:10])
        raise Refused(f"has no model “{wanted}”, only {listed}; correct TTS_REMOTE_MODEL")
    return found


def _likeliest(models: list[_Model]) -> _Model | None:
    """The first model that is for speech, judged by its name.

    The servers of another studio are left out: it could be this one, and lines would go in circles.
    """
    own = [one for one in models if one.id != _ROUND_ABOUT] or models
    speaking = [one for one in own if any(part in one.id.lower() for part in _SPEAKING_NAMES)]
    return next(iter(speaking or own), None)
