"""The contract between the engine and everything that makes speech."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from studio.audio.clip import Samples
from studio.dialog.limits import Limits
from studio.dialog.model import ParamValue
from studio.speakers.speaker import Voice, VoiceKinds


@dataclass(frozen=True, slots=True)
class Param:
    """One per-line parameter a backend has, with what the page needs to show it."""

    name: str
    label: str
    minimum: float
    maximum: float
    default: float
    step: float
    help: str = ""


@dataclass(frozen=True, slots=True)
class Preset:
    """A voice that comes with the backend."""

    preset_id: str
    label: str
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do. The page and the API offer just this.

    Attributes:
        languages: BCP-47 code to the language's English name; empty means one fixed language.
        tags: Sound tags such as "laugh" that the model performs instead of reading.
        max_chars: Longest text of one segment that the model speaks safely.
        wide_weight: For how many of these characters a Chinese, Japanese or Korean one counts.
        sample_rate_hz: Rate of what `speak` yields.
        builtin_voice: Whether a speaker without sample, preset or description can be spoken.
        builtin_by_name: Whether each name chooses a built-in voice of its own; else there is one,
            and a speaker's name changes nothing.
        instructions: Whether words beside a line change how a voice speaks it.
        guess: The language in which it speaks text that nobody gave one for; None where the model
            hears it itself.
        asks_language: Whether that guess is worth a hint: text that may be in many languages is
            spoken as English.
        slots: Segments a batched backend decodes together; None when it takes one at a time
            and the engine's own bound holds.
        beyond_slots: Segments it takes besides, so that a slot is refilled at once while the line
            that left it becomes audio.
        voice_conversion: Whether it has the methods of `ConvertsVoices`.
    """

    sample_rate_hz: int
    max_chars: int
    cloning: bool = False
    builtin_voice: bool = False
    builtin_by_name: bool = True
    wide_weight: float = 1.0
    presets: tuple[Preset, ...] = ()
    described_voices: bool = False
    instructions: bool = False
    languages: Mapping[str, str] = field(default_factory=dict)
    guess: Callable[[str], str] | None = None
    asks_language: bool = False
    tags: frozenset[str] = frozenset()
    params: tuple[Param, ...] = ()
    streaming: bool = False
    slots: int | None = None
    beyond_slots: int = 0
    voice_conversion: bool = False

    def limits(self) -> Limits:
        """What planning has to know of this backend."""
        return Limits(
            max_chars=self.max_chars,
            tags=self.tags,
            params={param.name: (param.minimum, param.maximum) for param in self.params},
            languages=frozenset(self.languages) or None,
            wide_weight=self.wide_weight,
            instructions=self.instructions,
            guess=self.guess,
        )

    def voice_kinds(self) -> VoiceKinds:
        """Which voices it can make."""
        return VoiceKinds(
            builtin=self.builtin_voice,
            cloning=self.cloning,
            described=self.described_voices,
            presets=frozenset(preset.preset_id for preset in self.presets),
        )


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is; `fraction` in [0, 1], None while it can't be told."""

    message: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class Conditioning:
    """What a backend computed from a voice; opaque to all but that backend.

    Attributes:
        payload: The backend's own data; never changed after it was made.
        size_bytes: Memory it holds, for the cache's bound.
    """

    payload: object
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One segment to speak. Immutable: nothing about it is kept on the model object.

    Attributes:
        text: Not empty, at most `max_chars`, no pause tags.
        conditioning: From this backend's `condition`, same model revision.
        language: One of the backend's languages, None for its own choice.
        seed: Same seed, same audio; None for the backend's own choice.
        params: Only names the backend has, within range; a missing one takes its default.
        cancelled: Polled between steps by long work; the engine also closes the iterator.
        urgency: How many segments ahead of the play-head it is now; None when nobody listens to
            it. Asked by a backend that has to choose between requests; cheap, from any thread.
    """

    text: str
    conditioning: Conditioning
    language: str | None = None
    seed: int | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    cancelled: Callable[[], bool] = lambda: False
    urgency: Callable[[], int | None] = lambda: None


class Backend(Protocol):
    """One way to make speech.

    `load`, `unload`, `condition` and the iterator of `speak` run in worker threads. `speak` is
    called for several requests at once; a backend that can't do that takes a lock of its own.
    The engine calls `condition` and `speak` only between `load` and `unload`, under a lease.
    """

    @property
    def name(self) -> str:
        """Name in `TTS_BACKEND` and on the command line."""
        ...

    @property
    def title(self) -> str:
        """Name on the page."""
        ...

    @property
    def revision(self) -> str:
        """Identifies package and weights; takes part in the keys of conditioning and takes."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; known before `load`, and may become narrower with it."""
        ...

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when it can. Cheap: imports no model."""
        ...

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory.

        Raises:
            ModelUnavailable: Package, weights or device missing; names the remedy.
        """
        ...

    def unload(self) -> None:
        """Give all memory back, the accelerator's cache included. Safe when not loaded."""
        ...

    def condition(self, voice: Voice) -> Conditioning:
        """Compute what `speak` needs from a voice.

        Raises:
            SampleRejected: The sample can't serve this backend.
        """
        ...

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment.

        Yields:
            float32 [samples] at `capabilities.sample_rate_hz`, within [-1, 1]. Delta: each chunk
            holds only samples not yielded before; joined they are the whole. Closing the iterator
            early frees the request's state within one step.

        Raises:
            SpeechFailed: This segment could not be spoken.
            OutOfMemory: Also not on a second, smaller try.
            Cancelled: `request.cancelled` became true.
        """
        ...
