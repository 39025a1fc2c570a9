import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.voices.speaker import SPEAKER_COLOURS, choose_colour


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colour", SPEAKER_COLOURS)
def test_chips_can_be_read_and_seen_on_light_and_dark_pages(colour):
    assert _contrast(colour, "#ffffff") >= 4.5
    assert _contrast(colour, "#0b0f19") >= 3


@given(st.integers(0, 40))
def test_colours_are_shared_out_evenly(n_speakers):
    taken: list[str] = []
    for _ in range(n_speakers):
        taken.append(choose_colour(taken))
    counts = [taken.count(colour) for colour in SPEAKER_COLOURS]
    assert max(counts) - min(counts) <= 1


def test_colours_from_elsewhere_are_ignored():
    assert choose_colour(["#123456", SPEAKER_COLOURS[0]]) == SPEAKER_COLOURS[1]
