from __future__ import annotations

import numpy as np

from studio.backends.base import SpeechRequest
from studio.backends.draft.backend import DraftBackend
from studio.backends.zero_gpu import MAX_DURATION_S, MIN_DURATION_S, duration_s, lend
from studio.speakers.speaker import Voice


class NeuralLike(DraftBackend):
    name = "neural-like"


class Lender:
    """Marks functions as the platform does where it lends nothing: it notes and passes on."""

    def __init__(self) -> None:
        self.asked_s: list[int] = []
        self.seen: list[SpeechRequest] = []

    def __call__(self, *, duration):
        def mark(speak):
            def lent(request):
                self.asked_s.append(duration(request))
                self.seen.append(request)
                return speak(request)

            return lent

        return mark


def request_of(backend: DraftBackend, text: str, cancelled=lambda: False) -> SpeechRequest:
    return SpeechRequest(text, backend.condition(Voice("Ida")), seed=1, cancelled=cancelled)


def test_a_line_asks_for_as_long_as_its_text_needs() -> None:
    backend, lender = NeuralLike(), Lender()
    backend.load(lambda _: None)
    plain = np.concatenate(list(backend.speak(request_of(backend, "Good evening."))))
    lent = lend(backend, lender)
    spoken = np.concatenate(list(lent.speak(request_of(backend, "Good evening."))))
    assert (spoken == plain).all()
    assert lender.asked_s == [duration_s(request_of(backend, "Good evening."))]
    backend.unload()


def test_the_time_stays_within_what_is_lent() -> None:
    backend = NeuralLike()
    backend.load(lambda _: None)
    short, long = request_of(backend, "a"), request_of(backend, "a" * 5_000)
    assert MIN_DURATION_S <= duration_s(short) < duration_s(long) == MAX_DURATION_S
    backend.unload()


def test_the_lent_process_gets_no_function_of_this_one() -> None:
    backend, lender = NeuralLike(), Lender()
    backend.load(lambda _: None)
    stop = lambda: True  # noqa: E731
    assert list(lend(backend, lender).speak(request_of(backend, "Hello.", stop))) == []
    assert lender.seen[0].cancelled is not stop
    backend.unload()


def test_the_draft_voice_needs_no_card() -> None:
    backend = DraftBackend()
    assert lend(backend) is backend
    assert "speak" not in vars(backend)
