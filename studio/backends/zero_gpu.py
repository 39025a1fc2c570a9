"""Speaking on a Space whose graphics card is lent for seconds at a time (ZeroGPU).

There a function that needs the card is marked with `spaces.GPU`; each call runs in a process that
has it, for at most the time it asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from studio.audio.clip import Samples
from studio.backends.base import Backend, SpeechRequest

MIN_DURATION_S = 15
MAX_DURATION_S = 120
_CHARS_A_SECOND = 6.0
"""Far slower than a card speaks: what isn't used is given back, what lacks ends the line."""


def duration_s(request: SpeechRequest) -> int:
    """Seconds of the card that a line asks for."""
    wanted = MIN_DURATION_S + len(request.text) / _CHARS_A_SECOND
    return round(min(MAX_DURATION_S, wanted))


def lend(backend: Backend, lender: Callable[..., Any] | None = None) -> Backend:
    """Have a backend speak on a card that is lent for each line.

    Args:
        backend: Any; the draft voice needs no card and is given back as it is.
        lender: `spaces.GPU`; None imports it.
    """
    if backend.name in {"draft", "remote"}:
        return backend
    lender = lender or importlib.import_module("spaces").GPU
    speak = backend.speak

    def speak_on_card(request: SpeechRequest) -> Iterator[Samples]:
        yield from speak(request)

    lent = lender(duration=duration_s)(speak_on_card)

    def speak_lent(request: SpeechRequest) -> Iterator[Samples]:
        # The request goes to another process, which can't ask this one whether it was cancelled.
        for chunk in lent(replace(request, cancelled=_never)):
            if request.cancelled():
                return
            yield chunk

    backend.speak = speak_lent  # type: ignore[method-assign]
    return backend


def _never() -> bool:
    return False
