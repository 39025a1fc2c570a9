import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.tags import (
    SOUND_TAGS,
    cut_pauses,
    leading_pauses,
    replace_tags,
    sound_name,
    strip_tags,
    write_pause,
)
from studio.errors import ScriptError


@pytest.mark.parametrize(
    ("tag", "duration_s"),
    [
        ("[pause]", 0.5),
        ("[PAUSE]", 0.5),
        ("[ pause ]", 0.5),
        ("(pause)", 0.5),
        ("(Pause.)", 0.5),
        ("[Pause.]", 0.5),
        ("<break/>", 0.5),
        ("<break />", 0.5),
        ("[pause:500ms]", 0.5),
        ("[pause:3ms]", 0.003),
        ("[pause: 1.5s]", 1.5),
        ("[pause 2s]", 2.0),
        ("[pause 2]", 2.0),
        ("[pause=.25 sec]", 0.25),
        ("[pausa]", 0.5),
        ("[Pause 2 Sekunden]", 2.0),
        ("[停顿 2s]", 2.0),
        ("[停頓2秒]", 2.0),
        ("[wait:500ms]", 0.5),
        ("[stop:2]", 2.0),
        ("[SILENCE: 3 seconds]", 3.0),
        ("(3 second pause)", 3.0),
        ("[2-sec pause]", 2.0),
        ("<|pause:800|>", 0.8),
        ("[Pause 1 second]", 1.0),
        ("[pause:1min]", 60.0),
        ("[pause:0]", 0.0),
        ("[pause:300s]", 300.0),
        ("[pause:0.05h]", 180.0),
        ("[pause 0.025 hours]", 90.0),
        ("[pause:1e-05s]", 1e-05),
        ("(pause 1.5s)", 1.5),
        ("(Pause: 250 MS)", 0.25),
        ('<break time="1s"/>', 1.0),
        ("<break time='500ms' />", 0.5),
        ('<BREAK TIME = "2s"></break>', 2.0),
        ("<break time=1s>", 1.0),
    ],
)
def test_pauses_in_every_notation_are_cut_out_exactly(tag, duration_s):
    assert cut_pauses(f"Well {tag} then") == ["Well", duration_s, "then"]
    assert cut_pauses(f"{tag}{tag}") == [duration_s, duration_s]


@pytest.mark.parametrize(
    "tag",
    [
        "[pause:-1s]", "[pause -1]", "[pause:10h]", "(pause 10 h)", "[pause:301s]",
        "[pause:1e400s]", '<break time="-1s"/>', '<break time="10h"/>', "(pause:600s)",
        "[pause:300001ms]",
    ],
)  # fmt: skip
def test_a_pause_out_of_range_says_the_range(tag):
    with pytest.raises(ScriptError, match="out of range: a pause lasts 0 to 300 seconds") as caught:
        cut_pauses(f"a {tag} b")
    assert tag in str(caught.value)


@pytest.mark.parametrize(
    "tag",
    [
        "[pause:abc]", "[pause:nan]", "[pause:inf]", "[pause 1s 2s]", "[pause:1 parsec]",
        "(pause:x)", '<break strength="weak"/>', '<break time="">',
        "[pause:1,5s]", "[pause:--1]",
    ],
)  # fmt: skip
def test_a_pause_that_cannot_be_read_says_how_to_write_it(tag):
    with pytest.raises(ScriptError, match=r"can't be read.*\[pause:1\.5s\]"):
        cut_pauses(tag)


@pytest.mark.parametrize(
    "text",
    [
        "(pause for breath) x",
        "[pause for effect] x",
        "[Pause. She looks away.] x",
        "[pauses] x",
        "[paused]",
        "(pausing)",
        "<breaking>",
        "pause",
    ],
)
def test_other_words_are_no_pauses(text):
    assert cut_pauses(text) == [text]


@given(st.floats(0, 300))
def test_a_written_pause_reads_back_to_the_same_float(duration_s):
    assert cut_pauses(write_pause(duration_s)) == [duration_s]


@given(st.text(max_size=80), st.text(max_size=80))
def test_cutting_loses_no_text(before, after):
    try:
        parts = cut_pauses(f"{before}[pause]{after}")
    except ScriptError:
        return
    assert 0.5 in parts
    assert all(part == part.strip() != "" for part in parts if isinstance(part, str))


def test_leading_pauses_are_taken_off():
    assert leading_pauses("[pause:1s] (pause)Ben: [pause]") == ([1.0, 0.5], "Ben: [pause]")
    assert leading_pauses("Ben: [pause]") == ([], "Ben: [pause]")


def test_sound_names_have_one_form():
    assert sound_name(" Clear  THROAT ") == "clear throat"
    assert {"laugh", "chuckle", "sigh", "gasp", "cough", "groan", "sniff", "shush"} <= SOUND_TAGS
    assert {"clear throat", "whisper"} <= SOUND_TAGS


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        ("Oh [laugh] no", "Oh no"),
        ("Oh [laugh], no [sigh].", "Oh, no."),
        ("[laugh] Oh", "Oh"),
        ("[laugh], well", "well"),
        ("Oh[laugh]no", "Ohno"),
        ("Vraiment !", "Vraiment !"),
        ("<b>Oh</b>", "Oh"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("[" + "x" * 41 + "]", "[" + "x" * 41 + "]"),
    ],
)
def test_removed_tags_leave_tidy_text(text, tidied):
    assert replace_tags(text, lambda _tag, _name: "") == tidied


@pytest.mark.parametrize(
    ("text", "stretches"),
    [
        ("[laugh][sigh]Well.", ["Well."]),
        ("[pause:1s][laugh]", []),
        ("<b>Well</b>[pause] then [sob]", ["Well", " then "]),
    ],
)
def test_stretches_outside_of_tags_are_never_empty(text, stretches):
    assert [text[start:end] for start, end in strip_tags(text)] == stretches
