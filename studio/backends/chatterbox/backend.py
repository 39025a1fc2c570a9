"""Chatterbox as backends: English, multilingual, and turbo.

Speech is made in two stages: T3 turns text into speech tokens one by one, S3Gen turns all tokens
of a line into sound. A line therefore comes in one piece, with the package's Perth watermark.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.base import Capabilities, Conditioning, LoadProgress, SpeechRequest
from studio.backends.chatterbox.identity import weights_identity
from studio.backends.chatterbox.segmenter import WITHOUT, fetch_segmenter, segmenter_folder
from studio.backends.chatterbox.text import check_speakable
from studio.backends.chatterbox.variants import MULTILINGUAL, Variant, source_of
from studio.backends.device import choose_device, give_back, memory_used_bytes, prepare
from studio.backends.faults import speech_faults
from studio.backends.loading.weights import fetch_weights, is_local, to_fetch, weights_at_hand
from studio.backends.metal import turn
from studio.backends.options import BackendOptions
from studio.backends.weights_room import check_room
from studio.errors import Cancelled, ModelUnavailable, SampleRejected, SpeechFailed
from studio.speakers.speaker import Voice

if TYPE_CHECKING:
    from studio.backends.chatterbox.model import ChatterboxModel

PACKAGE = "chatterbox-tts"

_MAX_SEED = 2**63


class ChatterboxBackend:
    """One Chatterbox variant as a backend; any number of requests at once."""

    def __init__(self, variant: Variant, options: BackendOptions) -> None:
        """Load nothing yet.

        The silence after a sample of `options` isn't used: the package blends the seam between
        sample and line itself, and its speech follows a sample as it is.
        """
        self._variant = variant
        self._options = options
        self._source = source_of(variant, options)
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
        return None if segmenter_folder().is_dir() else WITHOUT

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
        check_room(self.title, _stored_bytes(folder, self._variant.needs), device)
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
        from studio.backends.chatterbox.model import ChatterboxModel
        from studio.backends.chatterbox.watch import Ends

        options = self._options
        ends = Ends.PACKAGE if options.package_ends else Ends.SPOKEN
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
        from studio.backends.chatterbox.conditioning import conditioning_of

        clip = voice.sample.clip if voice.sample else None
        if clip is not None and clip.duration_s <= self._variant.over_sample_s:
            raise SampleRejected(
                f"The sample of {voice.speaker} lasts {clip.duration_s:.1f} s, but "
                f"{self.title} needs more than {self._variant.over_sample_s:g} s. Record a "
                "longer one, or choose another backend."
            )
        with speech_faults(self.title):
            return conditioning_of(self._loaded().voice(clip))

    def write_conditioning(self, conditioning: Conditioning, path: Path) -> None:
        """Write a voice as safetensors."""
        from studio.backends.chatterbox.conditioning import write_voice

        write_voice(conditioning.payload, path)  # type: ignore[arg-type]

    def read_conditioning(self, path: Path) -> Conditioning:
        """Read what `write_conditioning` wrote."""
        from studio.backends.chatterbox.conditioning import conditioning_of, read_voice

        return conditioning_of(read_voice(path))

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment, in one piece.

        A line that hasn't ended after `max_tokens` of its text is yielded as far as it got, and
        then fails, so that it can be heard but isn't taken for whole.

        Raises:
            SpeechFailed: There is nothing to speak, or the line didn't end.
            OutOfMemory: The device has no room for this line.
            Cancelled: `request.cancelled` became true.
        """
        from studio.backends.chatterbox.model import Line

        if request.cancelled():
            raise Cancelled("The line was stopped before it was finished.")
        check_speakable(request.text)
        line = Line(
            text=request.text,
            voice=request.conditioning.payload,  # type: ignore[arg-type]
            language=request.language,
            params=self._params(request),
            seed=seed_of(request.seed),
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
        from studio.backends.chatterbox.voice import check_recording

        check_recording(recording)
        with speech_faults(self.title):
            return self._loaded().convert(
                recording,
                conditioning.payload,  # type: ignore[arg-type]
                seed_of(seed),
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


def seed_of(given: int | None) -> int:
    """A seed as the random streams take it; any where none is given."""
    return secrets.randbelow(2**32) if given is None else given % _MAX_SEED


def _stored_bytes(folder: Path, needs: tuple[str, ...]) -> int:
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
    return f"{PACKAGE} {version}, {source} {weights_identity(folder, needs)}"
