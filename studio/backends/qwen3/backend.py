"""Qwen3-TTS as a backend: many lines in one pass, or one line at a time."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from studio.audio.clip import Samples
from studio.backends.base import (
    Capabilities,
    Conditioning,
    Health,
    LoadProgress,
    SpeechRequest,
)
from studio.backends.batching.line_runner import (
    LineRunner,
    SequentialRunner,
    describe_room,
    fit_runner,
    known_slots,
    open_model,
    start_runner,
)
from studio.backends.batching.memory_plan import MemoryPlan, measure_free_bytes
from studio.backends.device import (
    check_room,
    choose_device,
    give_back,
    memory_used_bytes,
    prepare,
    turn,
)
from studio.backends.faults import speech_faults
from studio.backends.hub.weights import fetch_weights, to_fetch, weights_at_hand
from studio.backends.options import BackendOptions
from studio.backends.qwen3.checkpoint import (
    DEFAULT_SOURCE,
    NEEDS,
    Checkpoint,
    CheckpointKind,
    compute_fingerprint,
    estimate_frame_bound,
    read_checkpoint,
    read_sampling,
    strip_speakable,
)
from studio.backends.qwen3.qwen3_memory import (
    RELEASED_DIMS,
    count_weights_bytes,
    plan_talker_memory,
    read_dims,
)
from studio.errors import ModelUnavailable, SampleRejected, SpeechFailed
from studio.voices.speaker import Voice

if TYPE_CHECKING:
    from studio.backends.qwen3.prompt import Qwen3Voice
    from studio.backends.qwen3.qwen3_model import Qwen3Model
    from studio.backends.qwen3.talker_slots import TalkerRequest

# One line at a time is spoken with `faster-qwen3-tts` on CUDA and `qwen_tts` elsewhere.
#
# What it can do is the checkpoint's: Base clones samples, CustomVoice has voices of its own,
# VoiceDesign makes them from a description.

_PACKAGES = ("torch", "transformers", "safetensors", "qwen_tts")
_CHOOSE_ANOTHER = "Or set QWEN3_TTS_MODEL to a"


class Qwen3Backend:
    """Qwen3-TTS as a backend.

    It decodes as many lines together as the memory holds, where `should_batch` says so and the
    checkpoint can be batched. Else each line is made alone: on a CPU and on MPS any number at once,
    each with state of its own; on CUDA the graphs hold one line at a time, and the others wait.
    """

    name = "qwen3"
    title = "Qwen3-TTS"

    def __init__(self, options: BackendOptions) -> None:
        """Load nothing yet."""
        self._source = options.qwen3_model or DEFAULT_SOURCE
        self._wanted_device = options.device
        self._tf32, self._graphs = options.tf32, options.graphs
        self._silence_s = options.reference_silence_s
        self._known: tuple[Path, Checkpoint, str] | None = None  # what is in the folder at hand
        self._device = "cpu"
        self._batch = options.batch
        self._model: Qwen3Model | None = None
        self._runner: LineRunner | None = None

    @property
    def revision(self) -> str:
        """The package's version, the weights, and the silence that samples are encoded with."""
        weights = self._known[2] if self._at_hand() and self._known else "not here yet"
        version = "missing" if self.unavailable() else importlib.metadata.version("qwen-tts-hf")
        return f"qwen-tts-hf {version}, {self._source} {weights}, silence {self._silence_s:g} s"

    @property
    def capabilities(self) -> Capabilities:
        """What the checkpoint can do; that of a Base model while it isn't here.

        How many lines it takes at once is known when it is loaded.
        """
        slots = known_slots(self._runner, self._batch, self._wanted_device)
        return replace(self._checkpoint().capabilities, slots=slots or None, beyond_slots=slots)

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when its packages are there."""
        missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
        if not missing:
            return None
        return (
            f"Qwen3-TTS needs packages that aren't installed: {', '.join(missing)}. "
            "Start python launch.py, which installs them."
        )

    def to_fetch(self) -> str | None:
        """What a load would download; None when the weights are here."""
        return to_fetch(self._source, NEEDS)

    def memory_bytes(self) -> int:
        """Bytes that models hold on the accelerator; 0 on a CPU and when not loaded."""
        if self._model is None or self._device == "cpu":
            return 0
        return memory_used_bytes(self._device)

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Fetch the weights where needed, and bring them into memory.

        Raises:
            ModelUnavailable: A package, the weights or the device is missing or broken.
            Cancelled: `progress` raised it.
        """
        if self._model is not None:
            return
        folder = self.fetch(progress)
        progress(LoadProgress("Loading Qwen3-TTS into memory"))
        self._device = choose_device(self._wanted_device)
        prepare(self._device, tf32=self._tf32)
        check_room(self.title, count_weights_bytes(folder, self._device), self._device)
        try:
            with turn(self._device):
                self._model, self._runner = self._open(folder, progress)
        except BaseException:
            give_back(self._device)
            raise
        progress(LoadProgress(f"Qwen3-TTS is ready on {self._device}", 1.0))

    def fetch(self, progress: Callable[[LoadProgress], None]) -> Path:
        """Fetch the weights where needed, and load nothing; the folder they are in.

        Raises:
            ModelUnavailable: A package or the weights are missing or broken.
        """
        reason = self.unavailable()
        if reason is not None:
            raise ModelUnavailable(reason)
        folder = fetch_weights(self._source, needs=NEEDS, progress=progress)
        self._known = _read_known(folder)
        return folder

    def unload(self) -> None:
        """Give all memory back. Safe when not loaded."""
        self._close_runner()
        self._model = None
        give_back(self._device)

    def _close_runner(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def health(self) -> Health:
        """How the threads are; all is well when there are none."""
        return Health() if self._runner is None else self._runner.health()

    def room(self) -> str | None:
        """How many lines fit beside the weights; None while the packages are missing."""
        if self.unavailable() is not None:
            return None
        return describe_room(self._usual_plan, self._batch, self._wanted_device)

    def _usual_plan(self, device: str) -> MemoryPlan:
        """What fits beside the weights, which may be in memory already, or not even here.

        Raises:
            BatchingUnavailable: Nothing does.
        """
        folder = weights_at_hand(self._source, NEEDS)
        folder = None if self._at_hand() is None else folder
        dimensions = RELEASED_DIMS if folder is None else read_dims(folder)
        taken = 0 if self._runner else count_weights_bytes(folder, device)
        free_bytes = measure_free_bytes(device) - taken
        return plan_talker_memory(dimensions, free_bytes, device, self._batch)

    def condition(self, voice: Voice) -> Conditioning:
        """Encode a sample, or look up a preset or an instruction.

        A CustomVoice speaker's description is an instruction on how to speak.

        Raises:
            SampleRejected: This checkpoint can't make such a voice; names what would.
            OutOfMemory: The sample is too long for what is left.
        """
        with speech_faults(self.title):
            made = self._voice(self._require_model(), voice)
        return Conditioning(made, made.size_bytes)

    def write_conditioning(self, conditioning: Conditioning, path: Path) -> None:
        """Write as safetensors."""
        unwrap_voice(conditioning).write(path)

    def read_conditioning(self, path: Path) -> Conditioning:
        """Read what `write_conditioning` wrote."""
        from studio.backends.qwen3.prompt import Qwen3Voice

        voice = Qwen3Voice.read(path)
        return Conditioning(voice, voice.size_bytes)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment, beside all others in flight.

        Where lines are decoded together, one at the play-head comes chunk by chunk, the first a
        single frame, and others come whole; else each comes chunk by chunk. A line that doesn't
        stop within its `estimate_frame_bound` is cut there: what was made is yielded, then
        `SpeechFailed` marks the line.

        Raises:
            SpeechFailed: There is nothing to speak, the language is unknown, it never stops, or a
                step failed.
            OutOfMemory: The line doesn't fit beside the others.
            Cancelled: `request.cancelled` became true.
        """
        line, runner = self._line(request), self._runner
        if runner is None:
            raise self._not_loaded()
        yield from runner.speak(line)

    def _open(
        self, folder: Path, progress: Callable[[LoadProgress], None]
    ) -> tuple[Qwen3Model, LineRunner]:
        """Bring the weights in a folder into memory, with what speaks lines by them."""
        return open_model(
            self._device,
            self._batch,
            title=self.title,
            batched=partial(self._open_batched, folder, progress),
            sequential=partial(self._open_sequential, folder),
        )

    def _open_sequential(self, folder: Path) -> tuple[Qwen3Model, LineRunner]:
        from studio.backends.qwen3.qwen3_model import load_model

        model = load_model(folder, self._device, graphs=self._graphs)
        return model, SequentialRunner(model.speak, title=self.title)

    def _open_batched(
        self, folder: Path, progress: Callable[[LoadProgress], None]
    ) -> tuple[Qwen3Model, LineRunner]:
        from studio.backends.batching.kernel_set import select_kernels
        from studio.backends.qwen3.batched_codec import Qwen3CodecWorker
        from studio.backends.qwen3.qwen3_model import load_model
        from studio.backends.qwen3.talker import TalkerRunner

        device, batch = self._device, self._batch
        kernels = select_kernels(device, compiles=batch.compiles, fuses=batch.fuses)

        def plan_of(_model: Qwen3Model) -> MemoryPlan:
            return plan_talker_memory(read_dims(folder), measure_free_bytes(device), device, batch)

        model, talker, plan = fit_runner(
            lambda: load_model(folder, device, graphs=False),
            plan_of,
            lambda model, layout: TalkerRunner(
                model.package, layout, release=True, kernels=kernels
            ),
            batch,
            title=self.title,
        )
        progress(LoadProgress(f"Preparing {plan.layout.slots} lines at once"))
        codec = partial(
            Qwen3CodecWorker,
            model.codec_decoder,
            title=self.title,
            convolved_at_once=plan.codec_frames,
        )
        return model, start_runner(talker, codec, batch, title=self.title)

    def _line(self, request: SpeechRequest) -> TalkerRequest:
        from studio.backends.qwen3.talker_slots import TalkerRequest

        text = strip_speakable(request.text)
        bound = estimate_frame_bound(text)
        return TalkerRequest(
            tokens=self._require_model().tokens.line(text),
            voice=unwrap_voice(request.conditioning),
            language=self._language(request.language),
            sampling=read_sampling(request, self._checkpoint().sampling),
            rest=self._checkpoint().rest,
            seed=secrets.randbits(63) if request.seed is None else request.seed,
            max_frames=bound,
            expected_frames=bound,
            cancelled=request.cancelled,
            urgency=request.urgency,
        )

    def _language(self, code: str | None) -> str | None:
        if code is None:
            return None
        languages = self._checkpoint().languages
        found = languages.get(code.partition("-")[0].lower())
        if found is None:
            raise SpeechFailed(
                f"Qwen3-TTS doesn't know the language “{code}”. Use one of "
                f"{', '.join(sorted(languages))}, or leave the language out."
            )
        return found

    def _voice(self, model: Qwen3Model, voice: Voice) -> Qwen3Voice:
        match model.checkpoint.kind:
            case CheckpointKind.BASE:
                return self._clone_voice(model, voice)
            case CheckpointKind.CUSTOM_VOICE:
                return _preset_voice(model, voice)
            case CheckpointKind.VOICE_DESIGN:
                return _described_voice(model, voice)

    def _clone_voice(self, model: Qwen3Model, voice: Voice) -> Qwen3Voice:
        if voice.sample is None:
            raise SampleRejected(
                f"{voice.speaker} has no sample, from which this Qwen3-TTS model takes its voices. "
                f"Add a sample. {_CHOOSE_ANOTHER} CustomVoice model, which has voices of its own."
            )
        return model.clone_voice(voice.sample.clip, voice.sample.transcript, self._silence_s)

    def _require_model(self) -> Qwen3Model:
        if self._model is None:
            raise self._not_loaded()
        return self._model

    def _not_loaded(self) -> ModelUnavailable:
        return ModelUnavailable("Qwen3-TTS is not loaded. Load it and try again.")

    def _checkpoint(self) -> Checkpoint:
        return self._at_hand() or Checkpoint()

    def _at_hand(self) -> Checkpoint | None:
        """What the weights at hand can do; None while they aren't here or aren't readable."""
        if self._known is None:
            folder = weights_at_hand(self._source, NEEDS)
            if folder is None:
                return None
            try:
                self._known = _read_known(folder)
            except ModelUnavailable:  # load tells
                return None
        return self._known[1]


def _read_known(folder: Path) -> tuple[Path, Checkpoint, str]:
    return folder, read_checkpoint(folder), compute_fingerprint(folder)


def _preset_voice(model: Qwen3Model, voice: Voice) -> Qwen3Voice:
    speakers = model.checkpoint.speakers
    if voice.preset is None and voice.sample is not None:
        raise SampleRejected(
            f"This Qwen3-TTS model has voices of its own and can't clone {voice.speaker}'s sample. "
            f"Choose one of {', '.join(speakers)}. {_CHOOSE_ANOTHER} Base model, which clones."
        )
    name = (voice.preset or speakers[0]).lower()
    if name not in speakers:
        raise SampleRejected(
            f"This Qwen3-TTS model has no voice “{voice.preset}”. Choose one of: "
            f"{', '.join(speakers)}."
        )
    return model.preset_voice(
        name, voice.description if model.checkpoint.takes_instruction else None
    )


def _described_voice(model: Qwen3Model, voice: Voice) -> Qwen3Voice:
    if not voice.description or not voice.description.strip():
        raise SampleRejected(
            f"{voice.speaker} has no description, from which this Qwen3-TTS model makes its "
            f"voices. Describe the voice in words. {_CHOOSE_ANOTHER} Base model, which clones."
        )
    return model.design_voice(voice.description)


def unwrap_voice(conditioning: Conditioning) -> Qwen3Voice:
    """The voice in a conditioning that this backend made."""
    from studio.backends.qwen3.prompt import Qwen3Voice

    voice = conditioning.payload
    assert isinstance(voice, Qwen3Voice), "conditioning of another backend"
    return voice
