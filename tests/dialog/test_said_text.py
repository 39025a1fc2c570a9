"""What is left of a line where only what is heard is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.said_text import find_said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Good evening.", "Good evening."),
        ("[pause:1s] Hear what? (pause 1.5s) Oh.", "Hear what? Oh."),
        ("Well[pause]then", "Well then"),
        ('Now<break time="1s"/> go', "Now go"),
        ("(whispering) How long? (coughs) Tell me.", "How long? Tell me."),
        ("No [laugh], never [sigh].", "No, never."),
        ("[laugh], well", "well"),
        ("[SFX: door] Who is there?", "Who is there?"),
        ("(and I mean it) Go to [sic] bed.", "(and I mean it) Go to [sic] bed."),
        ("（小声）什么？", "什么？"),
        ("(beat)", ""),
    ],
)
def test_pauses_sounds_and_directions_are_left_out(written, said):
    assert find_said(written)[0] == said


@given(st.text("ab ,.()[]:<>", max_size=40) | st.sampled_from(["(beat) a", "a [pause] , b"]))
def test_each_character_is_that_of_its_place(text):
    said, places = find_said(text)
    assert len(said) == len(places)
    assert list(places) == sorted(places)
    assert all(char == text[at] or char == " " for char, at in zip(said, places, strict=True))
