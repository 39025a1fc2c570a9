"""Chatterbox as backends: English, multilingual and turbo; many lines at once, or one."""

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
    """One Chatterbox variant as a backend; any number of requests at once.

    It decodes as many lines together as the memory holds, where `should_batch` says so and the
    checkpoint can be batched; else each line is made alone.
    """

    def __init__(self, variant: ChatterboxVariant, options: BackendOptions) -> None:
        """Load nothing yet.

        The silence after a sample of `options` isn't used: the package blends the seam between
        sample and line itself, and its speech follows a sample as it is.
        """
        self._variant = variant
        self._options = options
        self._source = resolve_source(variant, options)
        self._batch = options.batch
        self._model: ChatterboxModel | None = None
        self._runner: LineRunner | None = None
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
        """What the variant can do, and how many lines at once; known when it is loaded."""
        slots = known_slots(self._runner, self._batch, self._options.device)
        return replace(self._variant.capabilities, slots=slots or None, beyond_slots=slots)

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
        check_room(self.title, count_stored_bytes(self._variant, folder), device)
        with turn(device):
            self._model, self._runner = self._open(folder, device, progress)
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
    ) -> tuple[ChatterboxModel, LineRunner]:
        """Bring the weights in a folder into memory, with what speaks lines by them."""
        progress(LoadProgress(f"Loading {self.title}"))
        read = partial(self._read_model, folder, device)
        return open_model(
            device,
            self._batch,
            title=self.title,
            batched=partial(self._open_batched, read, progress),
            sequential=partial(self._open_sequential, read),
        )

    def _read_model(self, folder: Path, device: str) -> ChatterboxModel:
        # Not before: these imports take seconds.
        from studio.backends.chatterbox.alignment import StopRule
        from studio.backends.chatterbox.chatterbox_model import ChatterboxModel

        options = self._options
        ends = StopRule.PACKAGE if options.package_ends else StopRule.SPOKEN
        return ChatterboxModel.load(
            self._variant, folder, device, amp=options.amp_on_cuda, ends=ends
        )

    def _open_sequential(
        self, read: Callable[[], ChatterboxModel]
    ) -> tuple[ChatterboxModel, LineRunner]:
        model = read()
        return model, SequentialRunner(partial(_speak_alone, model, self.title), title=self.title)

    def _open_batched(
        self, read: Callable[[], ChatterboxModel], progress: Callable[[LoadProgress], None]
    ) -> tuple[ChatterboxModel, LineRunner]:
        from studio.backends.chatterbox.s3gen_worker import S3GenWorker

        model, t3, plan = fit_runner(read, self._plan, _make_t3, self._batch, title=self.title)
        progress(LoadProgress(f"Preparing {plan.layout.slots} lines at once"))
        codec = partial(S3GenWorker, model, title=self.title)
        return model, start_runner(t3, codec, self._batch, title=self.title)

    def _plan(self, model: ChatterboxModel) -> MemoryPlan:
        dimensions = T3Dims.of(model.t3, half=model.dtype.itemsize == 2)
        free_bytes = measure_free_bytes(model.device)
        return plan_t3_memory(self._variant, dimensions, free_bytes, model.device, self._batch)

    def _usual_plan(self, device: str) -> MemoryPlan:
        """What fits beside the weights, which may be in memory already, or not even here.

        Raises:
            BatchingUnavailable: Nothing does.
        """
        folder = weights_at_hand(self._source, self._variant.needs)
        taken = 0 if self._runner else count_stored_bytes(self._variant, folder)
        dimensions = RELEASED_T3_DIMS[self._variant.name]
        free_bytes = measure_free_bytes(device) - taken
        return plan_t3_memory(self._variant, dimensions, free_bytes, device, self._batch)

    def room(self) -> str | None:
        """How many lines fit beside the weights; None while the packages are missing."""
        if self.unavailable() is not None:
            return None
        return describe_room(self._usual_plan, self._batch, self._options.device)

    def health(self) -> Health:
        """How the threads are; all is well when there are none."""
        return Health() if self._runner is None else self._runner.health()

    def unload(self) -> None:
        """Give all memory back. Safe when not loaded."""
        self._close_runner()
        model, self._model = self._model, None
        self._revision = None
        if model is not None:
            model.release()
            device = model.device
            del model
            give_back(device)

    def _close_runner(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

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
            return wrap_voice(self._require_model().voice(clip))

    def write_conditioning(self, conditioning: Conditioning, path: Path) -> None:
        """Write a voice as safetensors."""
        from studio.backends.chatterbox.voice_prompt import write_voice

        write_voice(conditioning.payload, path)  # type: ignore[arg-type]

    def read_conditioning(self, path: Path) -> Conditioning:
        """Read what `write_conditioning` wrote."""
        from studio.backends.chatterbox.voice_prompt import read_voice, wrap_voice

        return wrap_voice(read_voice(path))

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment beside all others in flight, in one piece.

        A line that hasn't ended after `max_tokens` of its text is yielded as far as it got, and
        then fails, so that it can be heard but isn't taken for whole.

        Raises:
            SpeechFailed: There is nothing to speak, the line didn't end, or a step failed.
            OutOfMemory: The device has no room for this line.
            Cancelled: `request.cancelled` became true.
        """
        line, runner = self._line(request), self._runner
        if runner is None:
            raise self._not_loaded()
        yield from runner.speak(line)

    def _line(self, request: SpeechRequest) -> T3Request:
        from studio.backends.chatterbox.t3_slots import T3Request, T3SamplingParams

        if request.cancelled():
            raise Cancelled("The line was stopped before it was finished.")
        check_speakable(request.text)
        params = self._params(request)
        exaggeration = params.pop("exaggeration", 0.0)
        bound = estimate_token_bound(request.text)
        return T3Request(
            text=self._require_model().text_tokens(request.text, request.language),
            voice=request.conditioning.payload,  # type: ignore[arg-type]
            exaggeration=float(exaggeration),
            sampling=T3SamplingParams(**params),
            seed=resolve_seed(request.seed),
            max_frames=bound,
            expected_frames=bound,
            cancelled=request.cancelled,
            urgency=request.urgency,
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
            return self._require_model().convert(
                recording,
                conditioning.payload,  # type: ignore[arg-type]
                resolve_seed(seed),
                cancelled,
            )

    def _params(self, request: SpeechRequest) -> dict[str, Any]:
        """The line's settings by name, those that it leaves open too."""
        defaults = {param.name: param.default for param in self._variant.capabilities.params}
        return defaults | dict(request.params)

    def _require_model(self) -> ChatterboxModel:
        if self._model is None:
            raise self._not_loaded()
        return self._model

    def _not_loaded(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self.title} is not loaded. Load it and try again.")


def _speak_alone(model: ChatterboxModel, title: str, line: T3Request) -> Iterator[Samples]:
    """One line by the package's own loop, in one piece.

    Raises:
        SpeechFailed: It didn't end; all that was made has been yielded.
    """
    spoken = model.speak(line)
    yield spoken.samples
    if not spoken.ended:
        raise SpeechFailed(
            f"{title} didn't come to the end of this line and was cut after "
            f"{len(spoken.samples) / STUDIO_RATE_HZ:.1f} s. Change the line's seed, or make it "
            "shorter."
        )


def _make_t3(model: ChatterboxModel, layout: SlotLayout) -> T3Runner:
    from studio.backends.chatterbox.t3_runner import T3Runner

    return T3Runner(model.t3, layout, dtype=model.dtype, release=True, ends=model.ends)


def resolve_seed(given: int | None) -> int:
    """A seed as the random streams take it; any where none is given."""
    return secrets.randbelow(2**32) if given is None else given % _MAX_SEED


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
