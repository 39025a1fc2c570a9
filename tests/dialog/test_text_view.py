"""Views of a text: what a voice says of it, and where each part of that comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.directions import find_said
from studio.dialog.pronunciation import Pronunciation, PronunciationRules, build_spoken_words
from studio.dialog.text_view import TextView, compose, leave_out, tidy


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
    assert find_said(written).text == said


WRITTEN = st.text("ab ,.()[]:<>&é\u0301$5", max_size=40) | st.sampled_from(
    ["(beat) a", "a [pause] , b", "(softly) Dr. Ames & $4.50, 15 % [laugh]", "e\u0301 a"]
)


def check_places(view: TextView, source: str) -> None:
    """Between its places a view is its source, but that any white space may be a space there."""
    here = there = 0
    for start, end, from_start, from_end in [
        *view.places,
        (len(view.text),) * 2 + (len(source),) * 2,
    ]:
        kept, written = view.text[here:start], source[there:from_start]
        assert [*map(" ".__eq__, kept)] == [*map(str.isspace, written)]
        assert kept.split() == written.split()
        assert start <= end
        assert from_start <= from_end
        here, there = end, from_end


RULES = PronunciationRules(
    [Pronunciation("a", "one two"), Pronunciation("b & a", ""), Pronunciation("é", "ay")],
    in_words=True,
)


@given(WRITTEN)
def test_all_that_isnt_said_otherwise_stands_in_the_source(text):
    for view in (find_said(text), tidy(text), compose(text), build_spoken_words(text, RULES, "en")):
        check_places(view, text)


@given(WRITTEN, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=4))
def test_a_view_of_a_view_is_one_of_the_source(text, cuts):
    below = leave_out(
        text, [(at, min(at + size, len(text))) for at, size in cuts if at < len(text)]
    )
    view = RULES.view(below.text, "en").over(below)
    check_places(view, text)
    assert view.text == RULES.spoken(below.text, "en")


def test_a_part_is_found_from_both_sides():
    written = "(softly) Dr. Ames paid $4.50 [laugh] to the UI."
    view = build_spoken_words(
        written, PronunciationRules([Pronunciation("UI", "user interface")], in_words=True), "en"
    )
    assert view.text == "Doctor Ames paid four dollars fifty [laugh] to the user interface."
    for part, said in (("Dr.", "Doctor"), ("Ames", "Ames"), ("$4.50", "four dollars fifty"),
                       ("the UI", "the user interface")):  # fmt: skip
        start = written.index(part)
        assert slice_of(view.text, view.find_shown(start, start + len(part))) == said
    at = view.text.index("dollars")
    assert slice_of(written, view.find_source(at, at + 7)) == "$4.50"
    assert slice_of(view.text, view.find_shown(0, 8)) == ""


def slice_of(text, span):
    return text[span[0] : span[1]]
