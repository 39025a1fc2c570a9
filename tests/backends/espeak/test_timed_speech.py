"""eSpeak NG says when it says what, and speaks as it does without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from studio.backends.espeak.espeak_voices import find_package
from studio.backends.espeak.worker_pool import EspeakWorker, Utterance


@pytest.fixture
def worker() -> Iterator[EspeakWorker]:
    found = EspeakWorker(find_package())
    yield found
    found.close()


@pytest.mark.parametrize(
    ("text", "voice", "words"),
    [
        ("Hello, of the old people.", "gmw/en-US+f1", ["Hello", "of", "old", "people"]),
        ("Schöne Grüße aus Köln!", "gmw/de", ["Schöne", "Grüße", "aus", "Köln"]),
        ("今天很好", "sit/cmn", ["今", "天"]),
    ],
)
def test_words_have_their_places(
    worker: EspeakWorker, text: str, voice: str, words: list[str]
) -> None:
    utterance = Utterance(text, voice)
    timed = worker.speak_timed(utterance, timeout_s=20)
    assert np.array_equal(timed.pcm, worker.speak(utterance, timeout_s=20))
    starts = [sample for sample, _ in timed.words]
    assert starts == sorted(starts)
    assert starts[-1] < len(timed.pcm)
    offsets = [offset for _, offset in timed.words]
    assert all(text.startswith(word, offset) for word, offset in zip(words, offsets, strict=False))


def test_phonemes_begin_where_they_are_heard(worker: EspeakWorker) -> None:
    """A pause is silent, and an s hisses."""
    timed = worker.speak_timed(Utterance("Yes, sir.", "gmw/en-US"), timeout_s=20)
    names = [ipa for _, ipa in timed.phonemes]
    assert names[:3] == ["j", "ˈɛ", "s"]
    ends = [sample for sample, _ in timed.phonemes[1:]] + [len(timed.pcm)]
    pieces = {
        (number, ipa): timed.pcm[start:end].astype(float)
        for number, ((start, ipa), end) in enumerate(zip(timed.phonemes, ends, strict=True))
    }
    pause = next(one for (_, ipa), one in pieces.items() if not ipa and len(one) > 1_000)
    assert np.abs(pause[len(pause) // 2 :]).max() < 100

    def crossings(piece: np.ndarray) -> float:
        return float(np.mean(np.diff(np.sign(piece)) != 0))

    assert crossings(pieces[2, "s"]) > 3 * crossings(pieces[1, "ˈɛ"])
