"""A backend with a neural model on this machine: what Qwen3-TTS and Chatterbox share."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from studio.audio.clip import Samples
from studio.backends.base import (
    Capabilities,
    Conditioning,
    Health,
    LoadProgress,
    SpeechRequest,
    WeightSource,
)
from studio.backends.batching.line_runner import (
    LineRunner,
    SequentialRunner,
    check_slots,
    describe_capacity,
    known_slots,
    next_smaller_plan,
    should_batch,
    start_runner,
)
from studio.backends.batching.memory_plan import MemoryPlan
from studio.backends.batching.runner_contract import BatchingUnavailable
from studio.backends.device import (
    check_room,
    choose_device,
    give_back,
    memory_used_bytes,
    prepare,
    speech_faults,
    turn,
)
from studio.backends.hub.weights import fetch_weights, to_fetch, weights_at_hand
from studio.backends.options import BackendOptions
from studio.errors import ModelUnavailable, OutOfMemory
from studio.setup.commands import install_remedy
from studio.voices.speaker import Voice

if TYPE_CHECKING:
    from studio.backends.batching.codec_worker import CodecWorker
    from studio.backends.batching.model_runner import SlotModelRunner
    from studio.backends.batching.runner_contract import SlotLayout
    from studio.backends.batching.sequence import TtsRequest

log = logging.getLogger(__name__)

ModelT = TypeVar("ModelT")


class NeuralBackend(ABC, Generic[ModelT]):
    """A model that this machine downloads, loads and speaks with; any number of requests at once.

    It decodes as many lines together as the memory holds, where `should_batch` says so and the
    checkpoint can be batched; else it speaks each line alone. A subclass reads its own checkpoint,
    conditions voices, and turns a `SpeechRequest` into the request of its model.

    Attributes:
        name: Name in `TTS_BACKEND` and on the command line.
        title: Name on the page.
        _packages: What has to be importable.
        _takes_int8: Whether its matrices may be whole numbers on a CPU.
    """

    name: str
    title: str
    _packages: tuple[str, ...]
    _takes_int8 = False

    def __init__(self, options: BackendOptions, source: str, needs: Sequence[str]) -> None:
        self._options = options
        self._batch = options.batch
        self._source = source
        self._needs = needs
        self._device = "cpu"
        self._model: ModelT | None = None
        self._runner: LineRunner | None = None

    @property
    def capabilities(self) -> Capabilities:
        """The checkpoint's abilities; how many lines at once is a guess until it is loaded."""
        slots = known_slots(
            self._runner, self._batch, self._options.device, takes_int8=self._takes_int8
        )
        return replace(
            self._checkpoint_capabilities(), slots=slots or None, queues_requests=slots > 0
        )

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when its packages are installed."""
        missing = ", ".join(name for name in self._packages if find_spec(name) is None)
        if not missing:
            return None
        return f"{self.title} needs packages that aren't installed: {missing}. {install_remedy()}"

    def to_fetch(self) -> str | None:
        """What a load would download, as a sentence with the remedy; None when all is here."""
        return to_fetch(self._source, self._needs)

    @property
    def weight_sources(self) -> tuple[WeightSource, ...]:
        return (WeightSource(self._source, tuple(self._needs)),)

    def fetch(self, progress: Callable[[LoadProgress], None]) -> Path:
        """Download the weights where needed, and load nothing; the folder they are in."""
        self._check_packages()
        return fetch_weights(self.weight_sources[0], progress)

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory; downloads its weights first where needed.

        Raises:
            ModelUnavailable: A package, the weights or the device is missing or broken.
            Cancelled: `progress` raised it.
        """
        if self._model is not None:
            return
        self._check_packages()
        self._device = choose_device(self._options.device)
        prepare(self._device, tf32=self._options.tf32)
        folder = self.fetch(progress)
        progress(LoadProgress(f"Loading {self.title} into memory"))
        check_room(self.title, self._count_weights_bytes(folder, self._device), self._device)
        try:
            with turn(self._device):
                self._model, self._runner = self._open(folder, progress)
        except BaseException:
            give_back(self._device)
            raise
        progress(LoadProgress(f"{self.title} is ready on {self._device}", 1.0))

    def unload(self) -> None:
        """Free all memory. Safe when not loaded."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()
        del runner  # one that speaks line by line holds the model, whose memory is given back below
        if self._model is not None:
            self._model = None
            self._release()
        give_back(self._device)

    def memory_bytes(self) -> int:
        """Bytes held on the accelerator now; 0 on a CPU and when not loaded."""
        if self._model is None or self._device == "cpu":
            return 0
        return memory_used_bytes(self._device)

    def health(self) -> Health:
        """Health of the threads; healthy if there are none."""
        return Health() if self._runner is None else self._runner.health()

    def describe_capacity(self) -> str | None:
        """How many lines fit in the memory that the weights leave; None without the packages."""
        if self.unavailable() is not None:
            return None
        return describe_capacity(
            self._usual_plan, self._batch, self._options.device, takes_int8=self._takes_int8
        )

    def condition(self, voice: Voice) -> Conditioning:
        """Compute a voice from its sample, or take one of the model's own."""
        with speech_faults(self.title):
            made = self._make_voice(self._require_model(), voice)
        return Conditioning(made, made.size_bytes)

    def write_conditioning(self, conditioning: Conditioning, path: Path) -> None:
        """Write a voice as safetensors."""
        self._unwrap(conditioning).write(path)

    def read_conditioning(self, path: Path) -> Conditioning:
        """Read what `write_conditioning` wrote."""
        made = self._voice_type().read(path)
        return Conditioning(made, made.size_bytes)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment while others are in flight.

        A line that doesn't end within the bound of its text is yielded as far as it got, and then
        fails, so that it can be played but isn't taken for whole.

        Raises:
            SpeechFailed: There is nothing to speak, the language is unknown, the line didn't end,
                or a step failed.
            OutOfMemory: The device has no room for this line with the others.
            Cancelled: `request.cancelled` became true.
        """
        line, runner = self._line(request), self._runner
        if runner is None:
            raise self._not_loaded()
        yield from runner.speak(line)

    def _check_packages(self) -> None:
        reason = self.unavailable()
        if reason is not None:
            raise ModelUnavailable(reason)

    def _open(
        self, folder: Path, progress: Callable[[LoadProgress], None]
    ) -> tuple[ModelT, LineRunner]:
        """Load the model with the runner that suits the model, the device and the options."""
        if should_batch(self._batch, self._device, takes_int8=self._takes_int8):
            try:
                return self._open_batched(folder, progress)
            except BatchingUnavailable as error:
                # As text: a kept record would hold what the failed try allocated.
                log.warning("%s speaks one line at a time: %s", self.title, str(error))
            give_back(self._device)  # the model's own layers may be taken away already
        model = self._read_model(folder, batched=False)
        speak = partial(self._speak_alone, model)
        return model, SequentialRunner(speak, title=self.title, device=self._device)

    def _open_batched(
        self, folder: Path, progress: Callable[[LoadProgress], None]
    ) -> tuple[ModelT, LineRunner]:
        """Load the model and start an engine for as many lines as fit.

        Raises:
            BatchingUnavailable: Fewer than two lines fit, the number of slots is set and doesn't
                fit, or the checkpoint isn't one that can be batched.
        """
        model, runner, plan = self._fit_runner(folder)
        progress(LoadProgress(f"Preparing {plan.layout.slots} lines at once"))
        codec = partial(self._make_codec, model, plan)
        return model, start_runner(runner, codec, self._batch, title=self.title)

    def _fit_runner(self, folder: Path) -> tuple[ModelT, SlotModelRunner[Any], MemoryPlan]:
        plan: MemoryPlan | None = None
        while True:
            model = self._read_model(folder, batched=True)  # a failed try took its layers away
            plan = check_slots(plan or self._plan_memory(folder, self._device, model=model))
            try:
                with speech_faults(self.title):
                    return model, self._make_runner(model, plan.layout), plan
            except OutOfMemory:
                del model
                plan = next_smaller_plan(plan, self._batch)

    def _usual_plan(self, device: str) -> MemoryPlan:
        """The memory plan besides the weights, which needn't be loaded or even downloaded."""
        folder = self._folder_at_hand()
        taken = 0 if self._runner else self._count_weights_bytes(folder, device)
        return self._plan_memory(folder, device, taken_bytes=taken)

    def _folder_at_hand(self) -> Path | None:
        """The folder of the weights; None if they aren't on this machine."""
        return weights_at_hand(self._source, self._needs)

    def _unwrap(self, conditioning: Conditioning) -> Any:
        """The voice in a conditioning that this backend made."""
        made = conditioning.payload
        assert isinstance(made, self._voice_type()), "conditioning of another backend"
        return made

    def _require_model(self) -> ModelT:
        if self._model is None:
            raise self._not_loaded()
        return self._model

    def _not_loaded(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self.title} is not loaded. Load it and try again.")

    def _release(self) -> None:
        """Release what the package caches for the whole process, after the model."""

    @abstractmethod
    def _checkpoint_capabilities(self) -> Capabilities:
        """The checkpoint's abilities, apart from slots; known before a load."""

    @abstractmethod
    def _count_weights_bytes(self, folder: Path | None, device: str) -> int:
        """Bytes of the weights on a device; the released checkpoint's if there is no folder."""

    @abstractmethod
    def _plan_memory(
        self, folder: Path | None, device: str, *, model: ModelT | None = None, taken_bytes: int = 0
    ) -> MemoryPlan:
        """Choose slots for the free memory less `taken_bytes`; see `plan_memory`."""

    @abstractmethod
    def _read_model(self, folder: Path, *, batched: bool) -> ModelT:
        """Load the weights into memory; imports the model's packages, which takes seconds."""

    @abstractmethod
    def _make_runner(self, model: ModelT, layout: SlotLayout) -> SlotModelRunner[Any]:
        """Create the slot runner, which may remove the model's own layers."""

    @abstractmethod
    def _make_codec(self, model: ModelT, plan: MemoryPlan) -> CodecWorker:
        """Start the threads that turn the runner's frames into audio."""

    @abstractmethod
    def _speak_alone(self, model: ModelT, line: Any) -> Iterator[Samples]:
        """Speak one line by the model's own loop."""

    @abstractmethod
    def _voice_type(self) -> Any:
        """The class of the model's voices; imports torch."""

    @abstractmethod
    def _make_voice(self, model: ModelT, voice: Voice) -> Any:
        """Convert a speaker's voice to the model's format."""

    @abstractmethod
    def _line(self, request: SpeechRequest) -> TtsRequest:
        """Convert a segment to the model's request."""
