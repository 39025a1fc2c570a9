"""What one server can do, as far as it tells."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from studio.backends.remote.voice import RemoteVoice
from studio.dialog.names import name_key

OPENAI_FIELDS = frozenset({"model", "input", "voice", "response_format", "speed", "instructions"})
"""Request fields of every server; more are sent only to servers that say they have them."""

VLLM_OMNI_FIELDS = OPENAI_FIELDS | {
    "stream",
    "stream_format",
    "task_type",
    "language",
    "ref_audio",
    "ref_text",
    "x_vector_only_mode",
    "max_new_tokens",
    "seed",
}
"""Fields that vLLM-Omni has had since it streams; for servers that hide their API's document.

Source: vLLM-Omni, docs/serving/speech_api.md and OpenAICreateSpeechRequest, 0.30.
"""

OPENAI_VOICES = (
    "alloy",
    "ash",
    "ballad",
    "coral",
    "echo",
    "fable",
    "nova",
    "onyx",
    "sage",
    "shimmer",
    "verse",
)
"""OpenAI's own, which its API doesn't list."""

QWEN3_LANGUAGES: Mapping[str, str] = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}
"""vLLM-Omni wants the names; other servers get the code as it is."""

MAX_INSTRUCTIONS_CHARS = 500
"""vLLM-Omni's own limit, unless its operator changed it."""

_TASK_AT_END = re.compile(r"(custom[-_.]?voice|voice[-_.]?design|base)$")


class Task(StrEnum):
    """What a Qwen3-TTS checkpoint was made for; the names of vLLM-Omni's `task_type`."""

    BASE = "Base"
    CUSTOM_VOICE = "CustomVoice"
    VOICE_DESIGN = "VoiceDesign"


class Means(StrEnum):
    """How a server comes by a speaker's voice."""

    PRESET = "preset"
    CLONE = "clone"
    DESIGN = "design"
    BUILT_IN = "built-in"


@dataclass(frozen=True, slots=True)
class Told:
    """What a server says of its model in the list of models, as another studio does.

    Attributes:
        instructions: None where it doesn't tell.
        languages: Code to name.
    """

    cloning: bool
    builtin_voice: bool = False
    described_voices: bool = False
    instructions: bool | None = None
    languages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What one server can do with its model.

    Attributes:
        model: To be named in requests; None where the server lists none.
        fields: Request fields it takes.
        voices: Its own voices; None when it doesn't list them.
        task: The kind of a Qwen3-TTS checkpoint; None for any other model.
        voice_required: Whether a request must name a voice, even beside a sample.
        told: What it says itself, which outranks what its fields and its name let expect.
    """

    model: str | None
    fields: frozenset[str] = OPENAI_FIELDS
    voices: tuple[str, ...] | None = None
    task: Task | None = None
    voice_required: bool = False
    told: Told | None = None

    @property
    def takes_samples(self) -> bool:
        """Whether a recording may go along."""
        if "ref_audio" not in self.fields or self.task not in (None, Task.BASE):
            return False
        return self.told is None or self.told.cloning or self.told.builtin_voice

    @property
    def clones(self) -> bool:
        """Whether it speaks in the voice of a recording."""
        return self.takes_samples and (self.told is None or self.told.cloning)

    @property
    def designs(self) -> bool:
        """Whether it makes voices from words, and no others."""
        return self.task is Task.VOICE_DESIGN

    @property
    def designs_too(self) -> bool:
        """Whether it makes voices from words beside others."""
        return self.told is not None and self.told.described_voices

    @property
    def instructed(self) -> bool:
        """Whether words beside a voice change how it speaks; the small checkpoints ignore them."""
        if self.told is not None and self.told.instructions is not None:
            return self.told.instructions or self.told.described_voices
        if "instructions" not in self.fields or self.task is Task.BASE:
            return False
        return self.task is None or "0.6b" not in (self.model or "").lower()

    @property
    def speaks_unasked(self) -> bool:
        """Whether it takes a line that names no voice."""
        if self.told is not None:
            return self.told.builtin_voice
        return self.task is None and not self.voice_required

    @property
    def presets(self) -> tuple[str, ...]:
        """Voices to choose from."""
        return OPENAI_VOICES if self.voices is None else self.voices

    @property
    def languages(self) -> Mapping[str, str]:
        """Code to name; empty when it isn't known."""
        if self.told is not None:
            return self.told.languages
        return QWEN3_LANGUAGES if self.task is not None else {}

    def means(self, voice: RemoteVoice) -> Means | None:
        """How it would come by a voice; None when it can't."""
        if self.designs:
            return Means.DESIGN if voice.description else None
        if voice.preset and self._has(voice.preset):
            return Means.PRESET
        if voice.ref_audio:
            return Means.CLONE if self.takes_samples else None
        if voice.preset:
            return None
        if voice.description and self.designs_too:
            return Means.DESIGN
        return Means.BUILT_IN if self.presets or self.speaks_unasked else None

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
        if means is Means.PRESET:
            return voice.preset
        if means is Means.BUILT_IN and self.presets:
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


def task_of(names: tuple[str, ...], fields: frozenset[str]) -> Task | None:
    """The kind of checkpoint, told by how its name or its folder's ends.

    Args:
        names: Every name the server has for its model.
        fields: Its request fields; only vLLM-Omni's have `task_type`.
    """
    if "task_type" not in fields:
        return None
    tasks = {task.value.lower(): task for task in Task}
    for name in names:
        for part in reversed(re.split(r"[\\/]+", name.lower().rstrip("\\/"))):
            found = _TASK_AT_END.search(part)
            if found and ("qwen3" in name.lower()):
                return tasks[re.sub(r"[-_.]", "", found[1])]
    return None
