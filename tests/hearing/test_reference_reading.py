"""The draft voice's readings: made once for all who need them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aligner_process import find_aligner

from studio.hearing.reference_reading import ReferenceReader
from studio.hearing.word_aligner import WordAligner

TEXT = "The old postman never forgot a name."


@pytest.fixture
def aligner() -> Iterator[WordAligner]:
    aligner = WordAligner()
    yield aligner
    aligner.close()


def count_speakers() -> int:
    """The processes in which eSpeak NG speaks for the aligner's own one."""
    return len(find_aligner().children())


def test_a_take_is_aligned_to_the_reading_that_it_was_checked_with(aligner: WordAligner) -> None:
    clip = aligner.readings.read(TEXT, "en")
    assert clip is not None
    assert clip.duration_s > 1
    shared = aligner.align(clip, TEXT, "en")
    assert count_speakers() == 0
    assert [word.word for word in shared.words] == TEXT.rstrip(".").split()
    assert [(fit.start, fit.end) for fit in shared.fits] == [
        (word.start, word.end) for word in shared.words
    ]
    assert all(0.8 < fit.length < 1.25 for fit in shared.fits)  # it is the same reading
    aligner.readings.close()
    assert aligner.align(clip, TEXT, "en") == shared  # to one that its process makes
    assert count_speakers() == 1


def test_what_it_cant_read() -> None:
    reader = ReferenceReader()
    assert reader.read(TEXT, "xx-Nope") is None
    assert reader.read("🎉 🎉") is None
    assert reader.find(TEXT) is None
    assert reader.read(TEXT) is not None
    assert reader.find(TEXT, "en") is reader.find(TEXT)
    reader.close()
    assert reader.read(TEXT) is None
    assert reader.find(TEXT) is None
