"""Chatterbox as backends: English, multilingual and turbo; many lines at once, or one."""

from __future__ import annotations

import importlib.metadata
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.base import Capabilities, Conditioning, LoadProgress, SpeechRequest
from studio.backends.batching.memory_plan import MemoryPlan, measure_free_bytes
from studio.backends.batching.sequence import stop_error
from studio.backends.chatterbox.chatterbox_memory import (
    RELEASED_T3_DIMS,
    T3Dims,
    count_stored_bytes,
    plan_t3_memory,
)
from studio.backends.chatterbox.variants import (
    MULTILINGUAL,
    NO_SEGMENTER,
    ChatterboxVariant,
    check_speakable,
    estimate_token_bound,
    fetch_segmenter,
    resolve_source,
    segmenter_folder,
)
from studio.backends.device import speech_faults
from studio.backends.hub.weights import identify_weights, is_local
from studio.backends.neural_backend import NeuralBackend
from studio.backends.options import BackendOptions
from studio.errors import SampleRejected, SpeechFailed
from studio.voices.speaker import Voice

if TYPE_CHECKING:
    from studio.backends.batching.runner_contract import SlotLayout
    from studio.backends.chatterbox.chatterbox_model import ChatterboxModel
    from studio.backends.chatterbox.s3gen_worker import S3GenWorker
    from studio.backends.chatterbox.t3_runner import T3Runner
    from studio.backends.chatterbox.t3_slots import T3Request
    from studio.backends.chatterbox.voice_prompt import ClonedVoice

_PACKAGE = "chatterbox-tts"
_MAX_SEED = 2**63


class ChatterboxBackend(NeuralBackend["ChatterboxModel"]):
    """One Chatterbox variant as a backend.

    It makes speech in two stages: T3 turns text into speech tokens one by one, S3Gen turns all
    tokens of a line into sound. A line therefore comes in one piece, with the package's Perth
    watermark.
    """

    _packages = ("torch", "chatterbox")

    def __init__(self, variant: ChatterboxVariant, options: BackendOptions) -> None:
        """Load nothing yet.

        The silence after a sample of `options` isn't used: the package blends the seam between
        sample and line itself, and its speech follows a sample as it is.
        """
        super().__init__(options, resolve_source(variant, options), variant.needs)
        self.name, self.title = variant.name, variant.title
        self._variant = variant
        self._revision: str | None = None

    @property
    def revision(self) -> str:
        return self._revision or self._read_revision()

    def lacks(self, language: str) -> str | None:
        """Whether Chinese is read without word boundaries; a load is what fetches them."""
        is_chinese = language.lower().partition("-")[0] == "zh"
        if self._variant is not MULTILINGUAL or self._model is None or not is_chinese:
            return None
        return None if segmenter_folder().is_dir() else NO_SEGMENTER

    def fetch(self, progress: Callable[[LoadProgress], None]) -> Path:
        """Download the weights where needed; see `NeuralBackend.fetch`."""
        folder = super().fetch(progress)
        # With a local folder, nothing is downloaded.
        if self._variant is MULTILINGUAL and not is_local(self._source):
            fetch_segmenter(progress)
        return folder

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Load the model into memory; see `NeuralBackend.load`."""
        super().load(progress)
        self._revision = self._read_revision()

    def _checkpoint_capabilities(self) -> Capabilities:
        return self._variant.capabilities

    def _count_weights_bytes(self, folder: Path | None, device: str) -> int:
        return count_stored_bytes(self._variant, folder)

    def _plan_memory(
        self, folder: Path | None, device: str, *, model: Any = None, taken_bytes: int = 0
    ) -> MemoryPlan:
        dimensions = RELEASED_T3_DIMS[self._variant.name]
        if model is not None:
            dimensions = T3Dims.of(model.t3, half=model.dtype.itemsize == 2)
        free_bytes = measure_free_bytes(device) - taken_bytes
        return plan_t3_memory(self._variant, dimensions, free_bytes, device, self._batch)

    def _read_model(self, folder: Path, *, batched: bool) -> ChatterboxModel:
        from studio.backends.chatterbox.alignment import StopRule
        from studio.backends.chatterbox.chatterbox_model import ChatterboxModel, load_package

        ends = StopRule.PACKAGE if self._options.package_ends else StopRule.SPOKEN
        package = load_package(self._variant, folder, self._device)
        return ChatterboxModel(
            self._variant, package, self._device, amp=self._options.amp_on_cuda, ends=ends
        )

    def _make_runner(self, model: ChatterboxModel, layout: SlotLayout) -> T3Runner:
        from studio.backends.batching.kernel_set import select_kernels
        from studio.backends.chatterbox.t3_runner import T3Runner

        return T3Runner(
            model.t3,
            layout,
            dtype=model.dtype,
            release=True,
            ends=model.ends,
            kernels=select_kernels(self._device, float32=True),
        )

    def _make_codec(self, model: ChatterboxModel, plan: MemoryPlan) -> S3GenWorker:
        from studio.backends.chatterbox.s3gen_worker import S3GenWorker

        return S3GenWorker(model, title=self.title)

    def _release(self) -> None:
        from studio.backends.chatterbox.chatterbox_model import clear_device_caches

        clear_device_caches()
        self._revision = None

    def _voice_type(self) -> type[ClonedVoice]:
        from studio.backends.chatterbox.voice_prompt import ClonedVoice

        return ClonedVoice

    def _make_voice(self, model: ChatterboxModel, voice: Voice) -> ClonedVoice:
        clip = voice.sample.clip if voice.sample else None
        if clip is not None and clip.duration_s <= self._variant.over_sample_s:
            raise SampleRejected(
                f"The sample of {voice.speaker} lasts {clip.duration_s:.1f} s, but "
                f"{self.title} needs more than {self._variant.over_sample_s:g} s. Record a "
                "longer one, or choose another backend."
            )
        return model.voice(clip)

    def _line(self, request: SpeechRequest) -> T3Request:
        from studio.backends.chatterbox.t3_slots import T3Request, T3SamplingParams

        if request.cancelled():
            raise stop_error()
        check_speakable(request.text)
        defaults = {param.name: param.default for param in self._variant.capabilities.params}
        params: dict[str, Any] = defaults | dict(request.params)
        exaggeration = params.pop("exaggeration", 0.0)
        return T3Request(
            text=self._require_model().text_tokens(request.text, request.language),
            voice=self._unwrap(request.conditioning),
            exaggeration=float(exaggeration),
            sampling=T3SamplingParams(**params),
            seed=resolve_seed(request.seed),
            max_frames=request.bound_frames(estimate_token_bound(request.text)),
            cancelled=request.cancelled,
            priority=request.priority,
        )

    def convert(
        self,
        recording: Clip,
        conditioning: Conditioning,
        *,
        seed: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Clip:
        """Convert a recording of 0.2 to 60 s to a speaker's voice; see `ConvertsVoices.convert`.

        Returns:
            The recording in that voice at 24,000 Hz, as long within 40 ms.
        """
        from studio.backends.chatterbox.s3gen import check_recording

        check_recording(recording)
        with speech_faults(self.title):
            return self._require_model().convert(
                recording, self._unwrap(conditioning), resolve_seed(seed), cancelled
            )

    def _speak_alone(self, model: ChatterboxModel, line: T3Request) -> Iterator[Samples]:
        spoken = model.speak(line)
        yield spoken.samples
        if not spoken.ended:
            raise SpeechFailed(
                f"{self.title} didn't come to the end of this line and was cut after "
                f"{len(spoken.samples) / STUDIO_RATE_HZ:.1f} s. Change the line's seed, or make it "
                "shorter."
            )

    def _read_revision(self) -> str:
        """Package version and weights."""
        try:
            version = importlib.metadata.version(_PACKAGE)
        except importlib.metadata.PackageNotFoundError:
            version = "missing"
        folder = self._folder_at_hand()
        weights = "not here" if folder is None else identify_weights(folder, self._needs)
        return f"{_PACKAGE} {version}, {self._source} {weights}"


def resolve_seed(given: int | None) -> int:
    """A seed in the range of the random streams; a random one for None."""
    return secrets.randbelow(2**32) if given is None else given % _MAX_SEED
