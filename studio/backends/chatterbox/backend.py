"""Chatterbox as backends: English, multilingual and turbo; one line at a time or many at once."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.base import Capabilities, Conditioning, LoadProgress, SpeechRequest
from studio.backends.batching.batched_backend import BatchedBackendMixin
from studio.backends.batching.memory_plan import MemoryPlan, measure_free_bytes
from studio.backends.chatterbox.chatterbox_memory import (
    RELEASED_T3_DIMS,
    T3Dims,
    count_stored_bytes,
    plan_t3_memory,
)
from studio.backends.chatterbox.text_limits import (
    NO_SEGMENTER,
    check_speakable,
    estimate_token_bound,
    fetch_segmenter,
    segmenter_folder,
)
from studio.backends.chatterbox.variants import MULTILINGUAL, ChatterboxVariant, resolve_source
from studio.backends.device import (
    check_room,
    choose_device,
    give_back,
    memory_used_bytes,
    prepare,
    turn,
)
from studio.backends.faults import speech_faults
from studio.backends.hub.weights import fetch_weights, is_local, to_fetch, weights_at_hand
from studio.backends.hub.weights_identity import identify_weights
from studio.backends.options import BackendOptions
from studio.errors import Cancelled, ModelUnavailable, SampleRejected, SpeechFailed
from studio.voices.speaker import Voice

if TYPE_CHECKING:
    from studio.backends.batching.runner_contract import SlotLayout
    from studio.backends.chatterbox.chatterbox_model import ChatterboxModel
    from studio.backends.chatterbox.t3_runner import T3Runner
    from studio.backends.chatterbox.t3_slots import T3Request

# Chatterbox as backends: English, multilingual, and turbo.
#
# Speech is made in two stages: T3 turns text into speech tokens one by one, S3Gen turns all tokens
# of a line into sound. A line therefore comes in one piece, with the package's Perth watermark.

PACKAGE = "chatterbox-tts"

_MAX_SEED = 2**63


class ChatterboxBackend:
    """One Chatterbox variant as a backend; any number of requests at once."""

    def __init__(self, variant: ChatterboxVariant, options: BackendOptions) -> None:
        """Load nothing yet.

        The silence after a sample of `options` isn't used: the package blends the seam between
        sample and line itself, and its speech follows a sample as it is.
        """
        self._variant = variant
        self._options = options
        self._source = resolve_source(variant, options)
        self._model: ChatterboxModel | None = None
        self._revision: str | None = None

    @property
    def name(self) -> str:
        """Name in `TTS_BACKEND` and on the command line."""
        return self._variant.name

    @property
    def title(self) -> str:
        """Name on the page."""
        return self._variant.title

    @property
    def revision(self) -> str:
        """The package's version and the identity of the weights' files."""
        return self._revision or _revision(self._source, self._variant.needs)

    @property
    def capabilities(self) -> Capabilities:
        """What the variant can do."""
        return self._variant.capabilities

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when its packages are installed."""
        if importlib.util.find_spec("chatterbox") and importlib.util.find_spec("torch"):
            return None
        return (
            f"Its package {PACKAGE} isn't installed. Start the studio with python launch.py, "
            "which installs it."
        )

    def to_fetch(self) -> str | None:
        """What a load would download, as a sentence with the remedy; None when all is here."""
        return to_fetch(self._source, self._variant.needs)

    def lacks(self, language: str) -> str | None:
        """Whether Chinese is read without word boundaries; a load is what fetches them."""
        is_chinese = language.lower().partition("-")[0] == "zh"
        if self._variant is not MULTILINGUAL or self._model is None or not is_chinese:
            return None
        return None if segmenter_folder().is_dir() else NO_SEGMENTER

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory; downloads its weights first where needed.

        Raises:
            ModelUnavailable: Package, weights or device missing; names the remedy.
            Cancelled: `progress` raised it.
        """
        if self._model is not None:
            return
        self._check()
        device = choose_device(self._options.device)
        prepare(device, tf32=self._options.tf32)
        folder = self.fetch(progress)
        check_room(self.title, _count_file_bytes(folder, self._variant.needs), device)
        with turn(device):
            self._model = self._open(folder, device, progress)
        self._revision = _revision(self._source, self._variant.needs)
        progress(LoadProgress(f"{self.title} is ready", 1.0))

    def fetch(self, progress: Callable[[LoadProgress], None]) -> Path:
        """Download the weights where needed, and load nothing; the folder they are in.

        Raises:
            ModelUnavailable: A package or the weights are missing.
        """
        self._check()
        folder = fetch_weights(self._source, needs=self._variant.needs, progress=progress)
        # Who gives a folder of files wants nothing from a network.
        if self._variant is MULTILINGUAL and not is_local(self._source):
            fetch_segmenter(progress)
        return folder

    def _check(self) -> None:
        reason = self.unavailable()
        if reason is not None:
            raise ModelUnavailable(f"{self.title} can't run here. {reason}")

    def _open(
        self, folder: Path, device: str, progress: Callable[[LoadProgress], None]
    ) -> ChatterboxModel:
        progress(LoadProgress(f"Loading {self.title}"))
        # Not before: these imports take seconds.
        from studio.backends.chatterbox.alignment import StopRule
        from studio.backends.chatterbox.chatterbox_model import ChatterboxModel

        options = self._options
        ends = StopRule.PACKAGE if options.package_ends else StopRule.SPOKEN
        return ChatterboxModel.load(
            self._variant, folder, device, amp=options.amp_on_cuda, ends=ends
        )

    def unload(self) -> None:
        """Give all memory back. Safe when not loaded."""
        model, self._model = self._model, None
        self._revision = None
        if model is not None:
            model.release()
            device = model.device
            del model
            give_back(device)

    def memory_bytes(self) -> int:
        """Bytes held on the accelerator now; 0 on a CPU."""
        if self._model is None or self._model.device == "cpu":
            return 0
        return memory_used_bytes(self._model.device)

    def condition(self, voice: Voice) -> Conditioning:
        """Compute a voice from its sample, or take the model's own.

        Raises:
            SampleRejected: The sample is too short for this variant.
        """
        from studio.backends.chatterbox.voice_prompt import wrap_voice

        clip = voice.sample.clip if voice.sample else None
        if clip is not None and clip.duration_s <= self._variant.over_sample_s:
            raise SampleRejected(
                f"The sample of {voice.speaker} lasts {clip.duration_s:.1f} s, but "
                f"{self.title} needs more than {self._variant.over_sample_s:g} s. Record a "
                "longer one, or choose another backend."
            )
        with speech_faults(self.title):
            return wrap_voice(self._loaded().voice(clip))

    def write_conditioning(self, conditioning: Conditioning, path: Path) -> None:
        """Write a voice as safetensors."""
        from studio.backends.chatterbox.voice_prompt import write_voice

        write_voice(conditioning.payload, path)  # type: ignore[arg-type]

    def read_conditioning(self, path: Path) -> Conditioning:
        """Read what `write_conditioning` wrote."""
        from studio.backends.chatterbox.voice_prompt import read_voice, wrap_voice

        return wrap_voice(read_voice(path))

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment, in one piece.

        A line that hasn't ended after `max_tokens` of its text is yielded as far as it got, and
        then fails, so that it can be heard but isn't taken for whole.

        Raises:
            SpeechFailed: There is nothing to speak, or the line didn't end.
            OutOfMemory: The device has no room for this line.
            Cancelled: `request.cancelled` became true.
        """
        from studio.backends.chatterbox.chatterbox_model import ChatterboxLineParams

        if request.cancelled():
            raise Cancelled("The line was stopped before it was finished.")
        check_speakable(request.text)
        line = ChatterboxLineParams(
            text=request.text,
            voice=request.conditioning.payload,  # type: ignore[arg-type]
            language=request.language,
            params=self._params(request),
            seed=resolve_seed(request.seed),
            cancelled=request.cancelled,
        )
        with speech_faults(self.title):
            spoken = self._loaded().speak(line)
        yield spoken.samples
        if not spoken.ended:
            raise SpeechFailed(
                f"{self.title} didn't come to the end of this line and was cut after "
                f"{len(spoken.samples) / STUDIO_RATE_HZ:.1f} s. Change the line's seed, or make it "
                "shorter."
            )

    def convert(
        self,
        recording: Clip,
        conditioning: Conditioning,
        *,
        seed: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Clip:
        """Say a recording again in a speaker's voice, with its own words and timing.

        Args:
            recording: 0.2 to 60 s of speech, at any rate.
            conditioning: The voice, from `condition`.
            seed: Same seed, same sound; None for any.
            cancelled: Polled between steps.

        Returns:
            The recording in that voice at 24,000 Hz, as long within 40 ms.

        Raises:
            AudioRejected: The recording is too short or too long.
            OutOfMemory: The device has no room for it.
            Cancelled: `cancelled` became true.
        """
        from studio.backends.chatterbox.s3gen import check_recording

        check_recording(recording)
        with speech_faults(self.title):
            return self._loaded().convert(
                recording,
                conditioning.payload,  # type: ignore[arg-type]
                resolve_seed(seed),
                cancelled,
            )

    def _params(self, request: SpeechRequest) -> dict[str, Any]:
        """The line's settings by name, those that it leaves open too."""
        defaults = {param.name: param.default for param in self._variant.capabilities.params}
        return defaults | dict(request.params)

    def _loaded(self) -> ChatterboxModel:
        if self._model is None:
            raise ModelUnavailable(f"{self.title} is not loaded. Load it and try again.")
        return self._model


def resolve_seed(given: int | None) -> int:
    """A seed as the random streams take it; any where none is given."""
    return secrets.randbelow(2**32) if given is None else given % _MAX_SEED


def _count_file_bytes(folder: Path, needs: tuple[str, ...]) -> int:
    """What the weights take; they are kept as they are stored."""
    return sum(path.stat().st_size for need in needs for path in folder.glob(need))


def _revision(source: str, needs: tuple[str, ...]) -> str:
    """Package version and weights."""
    try:
        version = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        version = "missing"
    folder = weights_at_hand(source, needs)
    if folder is None:
        return f"{PACKAGE} {version}, {source} not here"
    return f"{PACKAGE} {version}, {source} {identify_weights(folder, needs)}"


# Chatterbox backends whose names end in -batched: many lines in one pass.
#
# Voices, languages and parameters are those of the backend without that ending; what differs is who
# makes the speech tokens.


class ChatterboxBatchedBackend(BatchedBackendMixin, ChatterboxBackend):
    """A Chatterbox variant that decodes as many lines at once as the memory holds."""

    def __init__(self, variant: ChatterboxVariant, options: BackendOptions) -> None:
        """Load nothing yet."""
        super().__init__(variant, options)
        self._begin(options)

    @property
    def name(self) -> str:
        """Name in `TTS_BACKEND` and on the command line."""
        return f"{self._variant.name}-batched"

    @property
    def title(self) -> str:
        """Name on the page."""
        return f"{self._variant.title} (many lines at once)"

    @property
    def capabilities(self) -> Capabilities:
        """What the variant can do, and how many lines at once; known when it is loaded."""
        return replace(self._variant.capabilities, slots=self._slots, beyond_slots=self._slots)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment beside all others in flight, in one piece.

        Raises:
            SpeechFailed: As from `ChatterboxBackend.speak`, or a step failed.
            OutOfMemory: The line doesn't fit beside the others.
            Cancelled: `request.cancelled` became true.
        """
        yield from self._spoken(self._line(request))

    async def infer(self, request: SpeechRequest) -> Clip:
        """Speak one segment without a thread of its own; cancelling it frees its slot.

        Raises:
            StudioError: As from `speak`.
        """
        return await self._inferred(self._line(request))

    def _line(self, request: SpeechRequest) -> T3Request:
        from studio.backends.chatterbox.t3_slots import T3Request, T3SamplingParams

        if request.cancelled():
            raise Cancelled("The line was stopped before it was finished.")
        check_speakable(request.text)
        params = self._params(request)
        exaggeration = params.pop("exaggeration", 0.0)
        bound = estimate_token_bound(request.text)
        return T3Request(
            text=self._loaded().text_tokens(request.text, request.language),
            voice=request.conditioning.payload,  # type: ignore[arg-type]
            exaggeration=float(exaggeration),
            sampling=T3SamplingParams(**params),
            seed=resolve_seed(request.seed),
            max_frames=bound,
            expected_frames=bound,
            cancelled=request.cancelled,
            urgency=request.urgency,
        )

    def _open(
        self, folder: Path, device: str, progress: Callable[[LoadProgress], None]
    ) -> ChatterboxModel:
        """Load the package's model, and start the engine on it."""
        from studio.backends.batching.batch_engine import start_engine
        from studio.backends.chatterbox.s3gen_worker import S3GenWorker

        opened = super()._open
        model, core, room = self._fitted(
            # Anew for each try: a core takes the model's own layers away while it is made.
            lambda: opened(folder, device, progress),
            self._room,
            self._core,
        )
        progress(LoadProgress(f"Preparing {room.layout.slots} lines at once"))
        sound = partial(S3GenWorker, model, title=self.title)
        self._engine, self._slots = start_engine(core, sound, self._batch, title=self.title)
        return model

    def _core(self, model: ChatterboxModel, layout: SlotLayout) -> T3Runner:
        from studio.backends.chatterbox.t3_runner import T3Runner

        return T3Runner(model.t3, layout, dtype=model.dtype, release=True, ends=model.ends)

    def _room(self, model: ChatterboxModel) -> MemoryPlan:
        dimensions = T3Dims.of(model.t3, half=model.dtype.itemsize == 2)
        free_bytes = measure_free_bytes(model.device)
        return plan_t3_memory(self._variant, dimensions, free_bytes, model.device, self._batch)

    def _usual_room(self, device: str) -> MemoryPlan:
        """What fits beside the weights, which may be in memory already, or not even here."""
        folder = weights_at_hand(self._source, self._variant.needs)
        taken = 0 if self._engine else count_stored_bytes(self._variant, folder)
        dimensions = RELEASED_T3_DIMS[self._variant.name]
        free_bytes = measure_free_bytes(device) - taken
        return plan_t3_memory(self._variant, dimensions, free_bytes, device, self._batch)
