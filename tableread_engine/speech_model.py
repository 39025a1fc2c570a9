"""A loaded model for other programs: one call for a list of lines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from cachetools import LRUCache

from studio.audio.clip import Samples
from studio.audio.encode import change_tempo
from studio.backends.base import (
    SPEED,
    Backend,
    Conditioning,
    LoadProgress,
    Param,
    SpeechRequest,
    canonical_name,
)
from studio.backends.chatterbox.variants import VARIANTS
from studio.backends.hub.weights import is_local
from studio.backends.options import BackendOptions, BatchOptions
from studio.backends.registry import create
from studio.dialog.model import matching_language
from studio.errors import BadInput, ModelUnavailable, SettingError, SpeechFailed, StudioError
from studio.voices.speaker import Voice
from tableread_engine.line_request import (
    LineRequest,
    identify_reference,
    read_reference,
    read_request,
)

_MAX_CACHED_VOICES = 64
_GATHER_S = 0.01
"""How long an idle engine waits for the lines of the same call, which come within milliseconds."""

_OPTIONS = {
    "qwen3": "qwen3_model",
    "chatterbox": "chatterbox_model",
    "chatterbox-multilingual": "chatterbox_multilingual_model",
    "chatterbox-turbo": "chatterbox_turbo_model",
}
"""The option that holds a backend's weights."""

Defaults = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class LineResult:
    """A line's audio, or why there is none.

    Attributes:
        samples: float32 [samples] within [-1, 1]. Of a line with an error, what was made of it
            before, perhaps nothing.
        sample_rate_hz: Samples in a second.
        error: Why the line failed or isn't whole; None for a whole line.
    """

    samples: Samples
    sample_rate_hz: int
    error: StudioError | None = None


class SpeechModel:
    """Qwen3-TTS or Chatterbox in memory; any thread may call it, also several at once.

    A line is the same as the studio's, sample by sample, for the same text, voice, parameters and
    seed. It depends on nothing that runs beside it, within the rounding of the device.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._voices: LRUCache[Hashable, Conditioning] = LRUCache(_MAX_CACHED_VOICES)
        self._lock = threading.Lock()  # guards the voices; each is computed once

    @classmethod
    def from_pretrained(
        cls,
        source: str | Path,
        *,
        backend: str | None = None,
        slots: int | None = None,
        positions: int | None = None,
        device: str | None = None,
    ) -> Self:
        """Load a model, and prepare its steps; downloads its weights first where needed.

        Args:
            source: A local folder, a name on the hub (`owner/model`, `owner/model@revision`), or
                the name of a backend for the weights that it takes by default.
            backend: "qwen3", "chatterbox", "chatterbox-multilingual" or "chatterbox-turbo"; None
                to see it from the source.
            slots: Lines decoded together, the largest batch. None for as many as the memory holds
                on CUDA, and for one at a time elsewhere, as with 1. Where so many don't fit, lines
                are made one at a time, and the log says why.
            positions: Of a line's cache: its prompt and its frames. None for what a long line
                needs.
            device: "cuda", "mps" or "cpu"; None for the best there is.

        Raises:
            SettingError: The source doesn't say which backend loads it, or a number is below 1.
            ModelUnavailable: A package, the weights or the device is missing or broken.
        """
        if any(number is not None and number < 1 for number in (slots, positions)):
            raise SettingError("slots and positions are whole numbers from 1.")
        name = choose_backend(str(source), backend)
        weights: dict[str, Any] = {} if str(source) in _OPTIONS else {_OPTIONS[name]: str(source)}
        batch = BatchOptions(slots=slots, positions=positions, max_wait_s=_GATHER_S)
        made = create(name, BackendOptions(device=device, batch=batch, **weights))
        made.load(_ignore)
        return cls(made)

    @property
    def backend_name(self) -> str:
        return self._backend.name

    @property
    def revision(self) -> str:
        return self._backend.revision

    @property
    def sample_rate_hz(self) -> int:
        return self._backend.capabilities.sample_rate_hz

    @property
    def slots(self) -> int:
        """Lines that are decoded together; 1 where each is made alone."""
        return self._backend.capabilities.slots or 1

    @property
    def max_chars(self) -> int:
        """Characters of the longest line; an East Asian one may count for several."""
        return self._backend.capabilities.max_chars

    @property
    def languages(self) -> Mapping[str, str]:
        """English names by BCP-47 code."""
        return self._backend.capabilities.languages

    @property
    def params(self) -> tuple[Param, ...]:
        return self._backend.capabilities.line_params

    def generate(
        self,
        requests: Iterable[LineRequest | Mapping[str, Any]],
        *,
        max_frames: int | None = None,
        params: Mapping[str, float] | None = None,
    ) -> list[LineResult]:
        """Speak lines together; blocks until all are done.

        Args:
            requests: Any number; as many as there are slots are decoded at once, and a freed slot
                is refilled while the others run.
            max_frames: For requests without their own.
            params: For requests without their own, each by its name.

        Returns:
            One result for each request, in the same order. A request that can't be spoken fails
            alone: its result has the error, and the others are whole.
        """
        defaults = {**(params or {}), "max_frames": max_frames}
        lines = list(requests)
        workers = 2 * self.slots if self.slots > 1 else 1  # a slot is refilled without a gap
        with ThreadPoolExecutor(max(1, min(workers, len(lines))), "speech") as pool:
            return list(pool.map(lambda line: self.speak(line, defaults), lines))

    def speak(
        self,
        request: LineRequest | Mapping[str, Any],
        defaults: Defaults | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> LineResult:
        """Speak one line; blocks. Lines of several threads are decoded together.

        Args:
            request: The line.
            defaults: For what it leaves out, by the names of `LineRequest` and of parameters.
            cancelled: Polled between steps; when it becomes true the line ends within one.

        Returns:
            The line; what prevented it is in `error`, as a `StudioError`: `BadInput` for the
            request, `SampleRejected` for the recording, `SpeechFailed`, `OutOfMemory` and
            `Cancelled` for the line, `ModelUnavailable` after `close`.
        """
        chunks: list[Samples] = []
        error: StudioError | None = None
        try:
            for chunk in self._chunks(read_request(request, defaults), cancelled):
                chunks.append(chunk)
            if not chunks:
                error = SpeechFailed(f"{self._backend.title} made no sound for this line.")
        except StudioError as failure:
            error = failure
        samples = np.concatenate(chunks) if chunks else np.zeros(0, np.float32)
        return LineResult(samples, self.sample_rate_hz, error)

    def close(self) -> None:
        """Free the memory; lines in flight end with an error. Safe to call twice."""
        self._backend.unload()
        with self._lock:
            self._voices.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _chunks(self, line: LineRequest, cancelled: Callable[[], bool]) -> Iterator[Samples]:
        can = self._backend.capabilities
        limits = can.limits()
        if sum(map(limits.weight, line.text)) > can.max_chars:
            raise BadInput(f"The text is longer than {can.max_chars} characters; split it.")
        params = can.check_params(self._backend.title, line.params)
        speed = 1.0 if can.has_own_speed else float(params.pop(SPEED.name, 1.0))
        order = SpeechRequest(
            line.text,
            self._condition(line),
            language=self._language(line.language),
            seed=None if line.seed is None else int(line.seed),
            params=params,
            cancelled=cancelled,
            max_frames=line.max_frames,
        )
        spoken = self._backend.speak(order)
        yield from spoken if speed == 1.0 else change_tempo(spoken, speed)

    def _language(self, wanted: str | None) -> str | None:
        """The code of a language that a request names."""
        if wanted is None or wanted.casefold() in {"", "auto"}:
            return None
        known = self.languages
        names = {name.casefold(): code for code, name in known.items()}
        code = names.get(wanted.casefold()) or matching_language(wanted, frozenset(known))
        if code is None:
            raise BadInput(
                f"{self._backend.title} doesn't speak “{wanted[:40]}”. It speaks "
                f"{', '.join(f'{name} ({code})' for code, name in known.items())}."
            )
        return code

    def _condition(self, line: LineRequest) -> Conditioning:
        reference = line.reference
        known = None if reference is None else identify_reference(reference)
        key = known, line.transcript, line.preset, line.description
        with self._lock:
            if key not in self._voices:
                sample = None if reference is None else read_reference(reference, line.transcript)
                voice = Voice("the voice", sample, line.preset, line.description)
                self._voices[key] = self._backend.condition(voice)
            return self._voices[key]


def choose_backend(source: str, wanted: str | None = None) -> str:
    """The name of the backend that loads a model.

    Args:
        source: As for `SpeechModel.from_pretrained`.
        wanted: The backend's name, where that is known.

    Raises:
        SettingError: There is no such backend, or the source doesn't say which.
        ModelUnavailable: A folder holds no model of the wanted backend.
    """
    name = canonical_name(wanted or source)
    if name in _OPTIONS:
        _check_folder(source, name)
        return name
    if wanted is not None:
        raise SettingError(f"There is no backend “{wanted}”. Choose one of: {', '.join(_OPTIONS)}.")
    found = _find_in_folder(Path(source)) if is_local(source) else _find_by_name(source)
    if found is None:
        raise SettingError(
            f"“{source}” doesn't say which model it holds. Correct it, or give its backend: one of "
            f"{', '.join(_OPTIONS)}."
        )
    return found


def _check_folder(source: str, name: str) -> None:
    variant = next((one for one in VARIANTS if one.name == name), None)
    if variant is None or source == name or not is_local(source):
        return
    if variant.t3_in(Path(source).expanduser()) is None:
        raise ModelUnavailable(f"The folder {source} holds no {variant.title} model.")


def _find_in_folder(folder: Path) -> str | None:
    folder = folder.expanduser()
    held = (variant.name for variant in VARIANTS if variant.t3_in(folder))
    return next(held, "qwen3" if (folder / "speech_tokenizer").is_dir() else None)


def _find_by_name(source: str) -> str | None:
    name = source.partition("@")[0]
    held = (variant.name for variant in VARIANTS if variant.source == name)
    return next(held, "qwen3" if "qwen3-tts" in name.lower() else None)


def _ignore(_progress: LoadProgress) -> None:
    """Nobody looks at how far the load is."""
