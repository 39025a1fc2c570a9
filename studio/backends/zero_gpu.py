"""Speaking on a Space whose graphics card is lent for seconds at a time (ZeroGPU).

There a function that needs the card is marked with `spaces.GPU`; each call runs in a process that
has it, for at most the time it asked for. That process is forked from this one when the card is
first lent, and serves further calls as long as it lives. So the model is loaded there, once, from
the files that were fetched here; threads and locks of this process mean nothing to it, and what
goes to and fro are plain values.

Source: `spaces/zero/wrappers.py` of spaces 0.51.3.
"""

from __future__ import annotations

import importlib
import logging
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from studio.audio.clip import Clip, Samples
from studio.backends.base import (
    Backend,
    Conditioning,
    KeepsConditioning,
    LoadProgress,
    Priority,
    SpeechRequest,
)
from studio.errors import Cancelled, SpeechFailed, StudioError
from studio.voices.speaker import Voice

LOAD_S = 25
"""Until a model is on the card, in a process that hasn't got it yet."""

MIN_DURATION_S = 15 + LOAD_S
MAX_DURATION_S = 120
_CHARS_A_SECOND = 6.0
"""Far slower than a card speaks: what isn't used is given back, what lacks ends the line."""

_LEFT = Conditioning(None, 0)  # in a request whose conditioning crosses by itself

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GpuCall:
    """A backend call to run in the GPU process.

    Attributes:
        given: Its arguments by name; a request without its conditioning.
        voice: That conditioning, or the argument of this name, as safetensors; None where there
            is none.
    """

    backend: str
    method: str
    given: dict[str, Any] = field(default_factory=dict)
    voice: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a call ended; an error raised there would come back as its name alone."""

    error: StudioError


class ZeroGpuBackend(Backend, KeepsConditioning, Protocol):
    """A backend that can work in another process than its caller's."""

    def fetch(self, progress: Callable[[LoadProgress], None]) -> object:
        """Download its files without loading them."""


def duration_s(call: GpuCall) -> int:
    """Seconds of the card that a call asks for."""
    request = call.given.get("request")
    chars = len(request.text) if request is not None else 0
    return round(min(MAX_DURATION_S, MIN_DURATION_S + chars / _CHARS_A_SECOND))


class ZeroGpuProxy:
    """Wraps backends so that they run on a GPU lent for each line."""

    def __init__(
        self, create: Callable[[str], Backend], lender: Callable[..., Any] | None = None
    ) -> None:
        """Mark what needs the card; before the page is launched, or the platform finds nothing.

        Args:
            create: Makes a backend as it works on the card: without graphs, whose captures would
                take most of the time that is lent.
            lender: `spaces.GPU`; None imports it.
        """
        there: dict[str, Backend] = {}  # filled in the process that has the card

        def on_card(call: GpuCall) -> Generator[Any]:
            with closing(_run_call(call, create, there)) as made:
                yield from made

        lender = lender or importlib.import_module("spaces").GPU
        self._on_card = lender(duration=duration_s)(on_card)

    def wrap(self, backend: Backend) -> Backend:
        """Wrap a backend to do its work on the card; returns one that needs none unchanged."""
        if backend.name in {"draft", "remote"}:
            return backend
        name, here = backend.name, cast("ZeroGpuBackend", backend)

        def load(progress: Callable[[LoadProgress], None]) -> None:
            here.fetch(progress)
            progress(LoadProgress(f"{backend.title} is ready for a card that is lent", 1.0))

        def condition(voice: Voice) -> Conditioning:
            return _deserialize(here, self._one(GpuCall(name, "condition", {"voice": voice})))

        def speak(request: SpeechRequest) -> Iterator[Samples]:
            # The request goes to another process, which can't ask this one anything.
            plain = replace(request, conditioning=_LEFT, cancelled=_never, priority=Priority)
            voice = _serialize(here, request.conditioning)
            call = GpuCall(name, "speak", {"request": plain}, voice)
            return self._run(call, cancelled=request.cancelled)

        def convert(
            recording: Clip,
            conditioning: Conditioning,
            *,
            seed: int | None = None,
            cancelled: Callable[[], bool] = _never,
        ) -> Clip:
            given = {"recording": recording, "seed": seed}
            call = GpuCall(name, "convert", given, _serialize(here, conditioning))
            clip: Clip = self._one(call, cancelled=cancelled)
            return clip

        ours = {"load": load, "unload": _nothing, "condition": condition, "speak": speak}
        if hasattr(backend, "convert"):
            ours["convert"] = convert
        for method, stand_in in ours.items():
            setattr(backend, method, stand_in)
        return backend

    def _one(self, call: GpuCall, *, cancelled: Callable[[], bool] = lambda: False) -> Any:
        with closing(self._run(call, cancelled=cancelled)) as made:
            return next(made)

    def _run(self, call: GpuCall, *, cancelled: Callable[[], bool]) -> Generator[Any]:
        """Results of a call; closing it gives the card back.

        Raises:
            StudioError: As there.
            SpeechFailed: The card was not lent, or not for long enough.
            Cancelled: `cancelled` became true.
        """
        with closing(self._on_card(call)) as stream:
            while (made := _next(stream)) is not None:
                if cancelled():
                    raise Cancelled("The line was stopped before it was finished.")
                if isinstance(made, _Fault):
                    raise made.error
                yield made


def _next(stream: Iterator[Any]) -> Any:
    try:
        return next(stream, None)
    except Exception as error:  # the platform's own, which are Gradio's
        said = str(getattr(error, "message", error))
        raise SpeechFailed(
            f"The graphics card that is lent gave no answer ({said}). Generate this line again, "
            "later if the time for today is used up; or choose the draft voice."
        ) from error


def _run_call(
    call: GpuCall, create: Callable[[str], Backend], there: dict[str, Backend]
) -> Generator[Any]:
    """Run a call in the process that has the card."""
    try:
        backend = cast("ZeroGpuBackend", _load_once(call.backend, create, there))
        made = getattr(backend, call.method)(**_arguments_of(backend, call))
        if call.method == "speak":
            with closing(made):
                yield from made
        else:
            yield _serialize(backend, made) if isinstance(made, Conditioning) else made
    except StudioError as error:
        yield _Fault(error)
    # Broad, as an exception of a library may not be pickled on its way to the studio's process.
    except Exception as error:
        log.exception("%s failed on the lent card", call.backend)
        reason = f"{type(error).__name__}: {error}"
        yield _Fault(
            SpeechFailed(f"This line failed on the lent card ({reason}). Generate it again.")
        )


def _load_once(name: str, create: Callable[[str], Backend], there: dict[str, Backend]) -> Backend:
    """The loaded backend in the GPU process; others are unloaded."""
    if name not in there:
        torch = sys.modules.get("torch")
        if torch is not None:
            # A forked process lacks the threads that its parent multiplied with, and would wait.
            torch.set_num_threads(1)
        for other in [*there]:
            there.pop(other).unload()
        backend = create(name)
        backend.load(_nothing)
        there[name] = backend
    return there[name]


def _arguments_of(backend: ZeroGpuBackend, call: GpuCall) -> dict[str, Any]:
    """A call's arguments, with the voice deserialized."""
    if call.voice is None:
        return call.given
    voice = _deserialize(backend, call.voice)
    if call.method == "speak":
        return {"request": replace(call.given["request"], conditioning=voice)}
    return call.given | {"conditioning": voice}


def _serialize(backend: ZeroGpuBackend, conditioning: Conditioning) -> bytes:
    """Serialize a voice: a tensor would cross as a handle to memory shared by both processes."""
    with tempfile.TemporaryDirectory(prefix="tableread-") as folder:
        path = Path(folder) / "voice.safetensors"
        backend.write_conditioning(conditioning, path)
        return path.read_bytes()


def _deserialize(backend: ZeroGpuBackend, data: bytes) -> Conditioning:
    with tempfile.TemporaryDirectory(prefix="tableread-") as folder:
        path = Path(folder) / "voice.safetensors"
        path.write_bytes(data)
        return backend.read_conditioning(path)


def _never() -> bool:
    return False


def _nothing(*_: object) -> None:
    return None
