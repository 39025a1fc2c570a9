"""A stream whose source begins again: it goes on where it ended, or is known to be another."""

from __future__ import annotations

import numpy as np
import pytest

from studio.audio.stream_resume import StreamResume
from studio.errors import ReadingChanged

SOUND = (0.4 * np.sin(np.arange(48_000) / 7)).astype(np.float32)


def pieces(sound: np.ndarray, size: int) -> list[np.ndarray]:
    return [sound[start : start + size] for start in range(0, len(sound), size)]


def resumed(delivered: int) -> tuple[StreamResume, list[np.ndarray]]:
    heard = [SOUND[:delivered]]
    stream = StreamResume(heard.append, heard)
    return stream, heard


@pytest.mark.parametrize("size", [300, 999, 48_000])
def test_a_second_try_goes_on_where_the_first_ended(size: int) -> None:
    stream, heard = resumed(1_000)
    for chunk in pieces(SOUND + np.float32(1e-3), size):
        stream.take(chunk)
    stream.end()
    joined = np.concatenate(heard)
    assert len(joined) == len(SOUND)
    assert np.array_equal(joined, np.concatenate(stream.chunks))
    assert np.array_equal(joined[:1_000], SOUND[:1_000])
    assert np.allclose(joined, SOUND, atol=2e-3)
    assert stream.delivered_s == 2.0


def test_a_third_try_skips_what_both_delivered() -> None:
    stream, heard = resumed(1_000)
    stream.take(SOUND[:3_000])
    stream.begin()
    for chunk in pieces(SOUND, 700):
        stream.take(chunk)
    stream.end()
    assert np.array_equal(np.concatenate(heard), SOUND)


def test_another_reading_is_refused_before_a_sample_of_it_is_passed_on() -> None:
    stream, heard = resumed(24_000)
    with pytest.raises(ReadingChanged, match="otherwise than what was played"):
        stream.take(-SOUND)
    assert len(np.concatenate(heard)) == 24_000


def test_a_reading_that_parts_only_at_the_end_of_what_was_played_is_another() -> None:
    stream, heard = resumed(24_000)
    other = SOUND.copy()
    other[23_500:] *= -1
    with pytest.raises(ReadingChanged):
        stream.take(other)
    assert len(np.concatenate(heard)) == 24_000


def test_one_that_ends_before_what_was_played_is_another() -> None:
    stream, _ = resumed(24_000)
    stream.take(SOUND[:23_000])
    with pytest.raises(ReadingChanged):
        stream.end()


def test_silence_that_comes_again_is_the_same() -> None:
    heard = [np.zeros(5_000, np.float32)]
    stream = StreamResume(heard.append, heard)
    stream.take(np.zeros(6_000, np.float32))
    stream.end()
    assert len(np.concatenate(heard)) == 6_000
