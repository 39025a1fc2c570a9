"""Qwen3-TTS as a backend: many lines in one pass, or one line at a time."""

from __future__ import annotations

import importlib.metadata
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studio.audio.clip import Samples
from studio.backends.base import Capabilities, LoadProgress, SpeechRequest
from studio.backends.batching.memory_plan import MemoryPlan, measure_free_bytes
from studio.backends.neural_backend import NeuralBackend
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
    from studio.backends.batching.runner_contract import SlotLayout
    from studio.backends.qwen3.batched_codec import Qwen3CodecWorker
    from studio.backends.qwen3.prompt import Qwen3Voice
    from studio.backends.qwen3.qwen3_model import Qwen3Model
    from studio.backends.qwen3.talker import TalkerRunner
    from studio.backends.qwen3.talker_slots import TalkerRequest

_CHOOSE_ANOTHER = "Or set QWEN3_TTS_MODEL to a"


class Qwen3Backend(NeuralBackend["Qwen3Model"]):
    """Qwen3-TTS as a backend; what it can do is its checkpoint's.

    Base clones samples, CustomVoice has voices of its own, VoiceDesign makes them from a
    description. Lines decoded together come chunk by chunk where somebody listens, the first a
    single frame, and whole elsewhere. One line at a time is spoken with `faster-qwen3-tts` on CUDA,
    whose graphs hold one line while the others wait, and with `qwen_tts` elsewhere, any number at
    once; each comes chunk by chunk.
    """

    name = "qwen3"
    title = "Qwen3-TTS"
    _packages = ("torch", "transformers", "safetensors", "qwen_tts")
    _takes_int8 = True

    def __init__(self, options: BackendOptions) -> None:
        super().__init__(options, options.qwen3_model or DEFAULT_SOURCE, NEEDS)
        self._silence_s = options.reference_silence_s
        self._known: tuple[Checkpoint, str] | None = None  # the checkpoint and its fingerprint

    @property
    def revision(self) -> str:
        """The package's version, the weights, and the silence that samples are encoded with."""
        weights = self._known[1] if self._at_hand() and self._known else "not here yet"
        version = "missing" if self.unavailable() else importlib.metadata.version("qwen-tts-hf")
        return f"qwen-tts-hf {version}, {self._source} {weights}, silence {self._silence_s:g} s"

    def fetch(self, progress: Callable[[LoadProgress], None]) -> Path:
        """Download the weights where needed; see `NeuralBackend.fetch`."""
        folder = super().fetch(progress)
        self._known = _read_known(folder)
        return folder

    def _checkpoint_capabilities(self) -> Capabilities:
        return self._checkpoint().capabilities

    def _count_weights_bytes(self, folder: Path | None, device: str) -> int:
        return count_weights_bytes(folder, device)

    def _plan_memory(
        self, folder: Path | None, device: str, *, model: Any = None, taken_bytes: int = 0
    ) -> MemoryPlan:
        dimensions = RELEASED_DIMS if folder is None else read_dims(folder)
        free_bytes = measure_free_bytes(device) - taken_bytes
        return plan_talker_memory(dimensions, free_bytes, device, self._batch)

    def _folder_at_hand(self) -> Path | None:
        return None if self._at_hand() is None else super()._folder_at_hand()

    def _read_model(self, folder: Path, *, batched: bool) -> Qwen3Model:
        from studio.backends.qwen3.qwen3_model import load_model

        return load_model(folder, self._device, graphs=self._options.graphs and not batched)

    def _make_runner(self, model: Qwen3Model, layout: SlotLayout) -> TalkerRunner:
        from studio.backends.batching.kernel_set import select_kernels
        from studio.backends.qwen3.talker import TalkerRunner

        kernels = select_kernels(self._device, float32=self._batch.float32)
        return TalkerRunner(model.package, layout, release=True, kernels=kernels)

    def _make_codec(self, model: Qwen3Model, plan: MemoryPlan) -> Qwen3CodecWorker:
        from studio.backends.qwen3.batched_codec import Qwen3CodecWorker

        return Qwen3CodecWorker(
            model.codec_decoder, title=self.title, convolved_at_once=plan.codec_frames
        )

    def _speak_alone(self, model: Qwen3Model, line: TalkerRequest) -> Iterator[Samples]:
        return model.speak(line)

    def _line(self, request: SpeechRequest) -> TalkerRequest:
        from studio.backends.qwen3.talker_slots import TalkerRequest

        text = strip_speakable(request.text)
        return TalkerRequest(
            tokens=self._require_model().tokens.line(text),
            voice=self._unwrap(request.conditioning),
            language=self._language(request.language),
            sampling=read_sampling(request, self._checkpoint().sampling),
            rest=self._checkpoint().rest,
            seed=secrets.randbits(63) if request.seed is None else request.seed,
            max_frames=request.bound_frames(estimate_frame_bound(text)),
            cancelled=request.cancelled,
            priority=request.priority,
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

    def _voice_type(self) -> type[Qwen3Voice]:
        from studio.backends.qwen3.prompt import Qwen3Voice

        return Qwen3Voice

    def _make_voice(self, model: Qwen3Model, voice: Voice) -> Qwen3Voice:
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

    def _checkpoint(self) -> Checkpoint:
        return self._at_hand() or Checkpoint()

    def _at_hand(self) -> Checkpoint | None:
        """The checkpoint on this disk; None while there is none or it can't be read."""
        if self._known is None:
            folder = super()._folder_at_hand()
            if folder is None:
                return None
            try:
                self._known = _read_known(folder)
            except ModelUnavailable:  # loading it says why
                return None
        return self._known[0]


def _read_known(folder: Path) -> tuple[Checkpoint, str]:
    return read_checkpoint(folder), compute_fingerprint(folder)


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
