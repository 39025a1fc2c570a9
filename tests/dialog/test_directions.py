"""Stage directions: what is one, and what a voice makes of it."""

import re

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.directions import directed_mood, find_directions, write_direction
from studio.dialog.model import Dialog, Silence, Speech, SpeechLimits
from studio.dialog.planning import SilenceSegment, SpeechSegment, plan

PLAIN = SpeechLimits(200)
INSTRUCTED = SpeechLimits(200, instructions=True)
TAGGED = SpeechLimits(200, tags=frozenset(("cough", "laugh")))


def say(text, limits=PLAIN, moods=(), **params):
    line = Speech("Ivo", text, params=params)
    return plan(Dialog((line,)), limits, moods_of=lambda _name: moods)


def words(text, limits=PLAIN, moods=()):
    segments = say(text, limits, moods).segments
    return " ".join(one.text for one in segments if isinstance(one, SpeechSegment))


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("(whispering) How long?", "How long?"),
        ("(Softly.) How long?", "How long?"),
        ("（小声）什么？", "什么？"),
        ("(to Ben, at the door) Go.", "Go."),
        ("(smiling at the old man in the corner) Yes.", "Yes."),
        ("(under his breath) Idiot.", "Idiot."),
        ("(aside) (quietly) He lies.", "He lies."),
        ("(leise) Ja.", "Ja."),
        ("(riendo) Sí.", "Sí."),
        ("(wry) Sure.", "Sure."),
        ("No (laughs) way.", "No way."),
        ("I never (softly) said that.", "I never said that."),
        ("[excited] Okay!", "Okay!"),
        ("[whispers softly] Okay!", "Okay!"),
        ("[crosstalk] I was [inaudible 00:01:20] there.", "I was there."),
        ("[SFX: door] What?", "What?"),
        ("What [MUSIC: theme swells] now?", "What now?"),
        ("[Intro music fades] Hello.", "Hello."),
        ("Well, [direction: to Ben, who has just come in] go.", "Well, go."),
        ("(and I mean it) Go.", "(and I mean it) Go."),
        ("It was late (and I mean it), so we left.", "It was late (and I mean it), so we left."),
        ("He came (really) late.", "He came (really) late."),
        ("(to be honest) No.", "(to be honest) No."),
        ("(speaking of which) Where is he?", "(speaking of which) Where is he?"),
        ("(what?) No.", "(what?) No."),
        ("(Reuters) The strike is over.", "(Reuters) The strike is over."),
        ("(smiles) The (beat) door.", "The door."),
        ("(1999) was better.", "(1999) was better."),
        ("She paid (twice) for it.", "She paid (twice) for it."),
        ("[Ben] said that.", "[Ben] said that."),
    ],
)
def test_directions_are_not_spoken_and_prose_in_parentheses_is(written, spoken):
    assert words(written) == spoken


def test_a_direction_alone_is_silent_and_nothing_fails():
    (segment,) = say("(He turns away.)").segments
    assert isinstance(segment, SilenceSegment)
    assert segment.duration_s == 0


def test_a_beat_is_a_pause():
    first, pause, last = say("No. (beat) Never.", INSTRUCTED).segments
    assert (first.text, pause.duration_s, last.text) == ("No.", 0.5, "Never.")
    assert (first.instruct, say("No. (beat) Never.").notices) == (None, ())


def test_a_voice_that_takes_instructions_gets_the_directions():
    (segment,) = say("(softly) No. (shouting) No!", INSTRUCTED, instruct="like a judge").segments
    assert segment.text == "No. No!"
    assert segment.instruct == "like a judge, then softly, then shouting"
    assert not say("(softly) No.", INSTRUCTED).notices


def test_a_sound_that_the_voice_performs_stands_in_its_place():
    assert words("Well (coughs), no.", TAGGED) == "Well [cough], no."
    assert words("(laughing) No.", TAGGED) == "[laugh] No."
    assert not say("(coughs) No.", TAGGED).notices


def test_a_mood_of_the_voice_is_chosen_by_a_direction():
    (segment,) = say("(very angrily) No.", moods=("calm", "Angry")).segments
    assert (segment.text, segment.mood) == ("No.", "Angry")
    assert directed_mood("(whispering) Yes.", ("whisper",)) == "whisper"
    assert directed_mood("Yes (whispers) or no.", ()) is None
    assert directed_mood("[direction: dyes his beard] Yes.", ("dying",)) is None
    (own,) = say("(angry) No.", moods=("calm", "angry"), mood="calm").segments
    assert own.mood == "calm"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "(whispering) How long?",
            "“whispering” is a stage direction and isn't spoken; this voice",
        ),
        ("[SFX: door] What?", "“SFX: door” is a cue for sounds or music"),
        ("(wry) Sure.", "taken for a stage direction.*Take the parentheses away"),
        ("(and I mean it) Go.", r"is spoken.*write \[direction: and I mean it\]"),
    ],
)
def test_the_voice_s_answer_and_the_doubt_are_said(text, said):
    (notice,) = say(text).notices
    assert notice.line_number == 1
    assert re.search(said, notice.message)


def test_a_hundred_directions_get_one_notice_of_each_kind():
    lines = [Speech("Ivo", f"({how}) Go.") for how in ("softly", "loudly", "wry", "calm") * 25]
    planned = plan(Dialog((*lines, Silence(1))), PLAIN)
    assert [notice.line_number for notice in planned.notices] == [1, 3]


@given(st.text(max_size=30), st.booleans())
def test_what_is_written_as_a_direction_is_found_as_one(inside, is_first):
    written = write_direction(inside, is_first=is_first)
    if not written:
        return
    text = f"{written} Go." if is_first else f"Well, {written} go."
    (found,) = find_directions(text)
    assert not found.is_spoken
    assert text[found.start : found.end] == written


@given(st.text("()[]（）: aisfx\u200b", max_size=40))
def test_any_brackets_are_read(text):
    for one in find_directions(text):
        assert text[one.start] in "[(（"


@pytest.mark.parametrize("piece", ["(", "[", "[sfx", "(softly) ", "[direction:", "(a"])
def test_hostile_brackets_take_linear_time(piece):
    assert_linear(lambda times: find_directions(piece * times), 4_000)


def test_20_brackets_in_a_row_may_be_at_the_start_of_a_line():
    found = find_directions("(x)" * 33_000)
    assert [one.start for one in found] == list(range(0, 60, 3))
