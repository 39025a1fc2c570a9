"""What every backend must keep of the contract in `studio/backends/base.py`.

A backend's tests load it, then hand it to `CHECKS`, each of which takes the loaded backend.
"""

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from studio.audio.clip import Samples
from studio.backends.base import Backend, SpeechRequest
from studio.errors import Cancelled
from studio.voices.speaker import Voice

LINE = "The kettle is on, and the door is open."
SHORT_LINE = "Come in."


def request_for(backend: Backend, text: str = LINE, **fields) -> SpeechRequest:
    return SpeechRequest(text, backend.condition(Voice("Anna")), seed=7, **fields)


def new_threads(before: set[threading.Thread]) -> list[str]:
    """Names of those that a backend has started since; tqdm keeps one of its own for good."""
    names = (one.name for one in {*threading.enumerate()} - before)
    return sorted(name for name in names if name != "tqdm_monitor")


def whole(chunks: Iterator[Samples]) -> Samples:
    return np.concatenate(list(chunks))


def check_identity(backend: Backend) -> None:
    assert backend.name == backend.name.lower()
    assert backend.title
    assert backend.revision
    assert backend.unavailable() is None


def check_capabilities(backend: Backend) -> None:
    can = backend.capabilities
    assert can.sample_rate_hz > 0
    assert can.max_chars > 0
    for param in can.params:
        assert param.minimum <= param.default <= param.maximum
        assert 0 < param.step <= param.maximum - param.minimum
    assert can.limits().max_chars == can.max_chars


def check_samples(backend: Backend) -> None:
    chunks = list(backend.speak(request_for(backend)))
    assert all(chunk.dtype == np.float32 and chunk.ndim == 1 for chunk in chunks)
    samples = np.concatenate(chunks)
    assert np.abs(samples).max() <= 1
    assert np.sqrt(np.mean(samples**2)) > 1e-3
    assert 0.5 < len(samples) / backend.capabilities.sample_rate_hz < 30


def check_same_seed_same_audio(backend: Backend) -> None:
    one, other = (whole(backend.speak(request_for(backend, SHORT_LINE))) for _ in range(2))
    assert np.array_equal(one, other)


def check_params_at_their_bounds(backend: Backend) -> None:
    for param in backend.capabilities.params:
        for value in (param.minimum, param.maximum):
            asked = request_for(backend, SHORT_LINE, params={param.name: value})
            assert len(whole(backend.speak(asked)))


def check_cancel_before(backend: Backend) -> None:
    with pytest.raises(Cancelled):
        next(iter(backend.speak(request_for(backend, cancelled=lambda: True))))


def check_closed_early_then_speaks_on(backend: Backend) -> None:
    chunks = backend.speak(request_for(backend))
    next(chunks)
    chunks.close()
    check_samples(backend)


def check_unload_and_load_again(backend: Backend) -> None:
    before = whole(backend.speak(request_for(backend, SHORT_LINE)))
    backend.unload()
    backend.unload()
    backend.load(lambda _progress: None)
    assert np.array_equal(before, whole(backend.speak(request_for(backend, SHORT_LINE))))


CHECKS: tuple[Callable[[Backend], None], ...] = (
    check_identity,
    check_capabilities,
    check_samples,
    check_same_seed_same_audio,
    check_params_at_their_bounds,
    check_cancel_before,
    check_closed_early_then_speaks_on,
    check_unload_and_load_again,
)
