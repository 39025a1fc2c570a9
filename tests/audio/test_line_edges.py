"""What is cut of a line's ends: silence, and never a sound, however the line comes in chunks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.line_edges import trim_edges
from studio.errors import SpeechFailed

RATE = STUDIO_RATE_HZ
LEAD_S, TAIL_S = 0.02, 0.03
FRAME_S = 0.01


def noise(seconds: float, db: float, seed: int = 0):
    hiss = np.random.default_rng(seed).normal(0, 10 ** (db / 20), round(seconds * RATE))
    return hiss.astype(np.float32)


def vowel(seconds: float, db: float):
    at_s = np.arange(round(seconds * RATE)) / RATE
    hum = np.sin(2 * np.pi * 150 * at_s) + 0.5 * np.sin(2 * np.pi * 1_200 * at_s)
    return (hum * 10 ** (db / 20)).astype(np.float32)


def trimmed(line, cuts=(), **how):
    chunks = np.split(line, sorted(cuts))
    return np.concatenate(list(trim_edges(iter(chunks), **how)))


def line_of(*, floor=-90, onset=(0.1, -45.0), speech=(0.6, -20.0), before=0.32, behind=0.48):
    """Silence with a noise floor, a quiet onset, a vowel, an inner pause, a vowel, silence."""
    spoken = [noise(*onset), vowel(*speech), noise(0.5, floor), vowel(*speech)]
    ends = noise(before, floor), noise(behind, floor)
    return np.concatenate([ends[0], *spoken, ends[1]]), sum(map(len, spoken))


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"floor": -240},
        {"floor": -72},
        {"onset": (0.25, -52.0)},
        {"onset": (0.03, -58.0)},
        {"speech": (0.6, -38.0), "onset": (0.1, -60.0)},
        {"speech": (0.6, -6.0), "onset": (0.1, -40.0)},
        {"before": 1.0, "behind": 1.0},
    ],
    ids=str,
)
def test_the_silence_at_both_ends_is_cut_and_no_sound_is(how: dict) -> None:
    line, n_spoken = line_of(**how)
    found = trimmed(line)
    before = round(how.get("before", 0.32) * RATE)
    begins = next(
        at for at in range(len(line)) if np.array_equal(line[at : at + 500], found[200:700])
    )
    begins -= 200
    kept = before - begins, begins + len(found) - before - n_spoken
    assert LEAD_S * RATE <= kept[0] <= (LEAD_S + FRAME_S) * RATE
    assert TAIL_S * RATE <= kept[1] <= (TAIL_S + FRAME_S) * RATE
    # All of it but the fades is as it was.
    faded = RATE // 200
    assert np.array_equal(found[faded:-faded], line[begins:][: len(found)][faded:-faded])
    assert abs(found[0]) < abs(line[begins]) + 1e-9
    assert abs(found[-1]) <= 1e-4


@settings(max_examples=60, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 60_000), max_size=30),
    floor=st.integers(-100, -50),
    before=st.floats(0, 0.5),
    behind=st.floats(0, 0.5),
    onset=st.tuples(st.floats(0.0, 0.2), st.floats(-70, -20)),
    ends=st.tuples(st.booleans(), st.booleans()),
)
def test_chunks_change_nothing(cuts, floor, before, behind, onset, ends) -> None:
    line, _ = line_of(floor=floor, before=before, behind=behind, onset=onset)
    how = {"begins": ends[0], "ends": ends[1]}
    whole = trimmed(line, **how)
    assert np.array_equal(trimmed(line, [one for one in cuts if one < len(line)], **how), whole)
    assert len(whole) <= len(line)


@pytest.mark.parametrize(
    "line", [np.zeros(30_000, np.float32), noise(1.0, -80), np.zeros(7, np.float32)]
)
def test_a_line_without_a_sound_stays(line) -> None:
    assert np.array_equal(trimmed(line, [5_000, 5_001]), line)


@pytest.mark.parametrize("db", [-50.0, -60.0, -64.0])
def test_a_very_quiet_line_keeps_what_it_says(db: float) -> None:
    spoken = vowel(0.5, db)
    line = np.concatenate([np.zeros(9_600, np.float32), spoken, np.zeros(9_600, np.float32)])
    found = trimmed(line, [100, 9_700, 20_000])
    assert len(spoken) < len(found) < len(spoken) + 0.07 * RATE
    assert np.square(found).sum() == pytest.approx(np.square(spoken).sum())


def test_nothing_is_padded_and_a_sound_at_an_end_is_as_it_was() -> None:
    line = vowel(0.5, -20)
    assert np.array_equal(trimmed(line, [33]), line)


def test_an_end_that_is_inside_of_a_line_keeps_its_silence() -> None:
    line, n_spoken = line_of()
    assert len(trimmed(line, begins=False)) == pytest.approx(0.32 * RATE + n_spoken + 720, abs=240)
    assert len(trimmed(line, ends=False)) == pytest.approx(0.48 * RATE + n_spoken + 480, abs=240)


def test_the_first_sound_is_passed_on_before_the_line_has_ended() -> None:
    line, _ = line_of()
    given = []

    def chunks():
        for chunk in np.split(line, range(1_200, len(line), 1_200)):
            given.append(len(chunk))
            yield chunk

    first = next(trim_edges(chunks()))
    assert len(first)
    assert sum(given) < 0.75 * RATE  # 0.32 s of silence, 0.1 of the onset, and 0.15 to a vowel


def test_what_came_before_a_failure_is_passed_on() -> None:
    def chunks():
        yield np.zeros(2_400, np.float32)
        yield vowel(0.05, -20)
        raise SpeechFailed("It broke.")

    found = []
    with pytest.raises(SpeechFailed):
        found.extend(trim_edges(chunks()))
    assert sum(map(len, found)) == 2_400 + round(0.05 * RATE)
