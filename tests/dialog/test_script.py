import contextlib

import pytest
from dialog_strategies import dialogs, scripts
from growth import assert_linear
from hypothesis import example, given
from hypothesis import strategies as st

from studio.dialog.model import (
    MAX_LINE_CHARS,
    MAX_LINES,
    Audio,
    Dialog,
    Silence,
    Speech,
    Unspoken,
    UnspokenKind,
)
from studio.dialog.script import parse_script, write_script
from studio.errors import NameRejected, ScriptError


def lines(text):
    return list(parse_script(text).dialog)


def spoken(text):
    return [(line.speaker, line.text) for line in lines(text)]


@pytest.mark.parametrize(
    ("header", "speaker"),
    [
        ("Anna: ", "Anna"),
        ("  Anna :\t", "Anna"),
        ("Anna：", "Anna"),
        ("[Anna] ", "Anna"),
        ("[Anna]: ", "Anna"),
        ("[ The  Old   Man ] ", "The Old Man"),
        ("[Dr: Ames] ", "Dr: Ames"),
        ("Dr. Ames: ", "Dr. Ames"),
        ("Mrs. Y: ", "Mrs. Y"),
        ("J.R. Hartley: ", "J.R. Hartley"),
        ("Speaker 1: ", "Speaker 1"),
        ("O’Neil & Sons: ", "O’Neil & Sons"),
        ("🤖: ", "🤖"),
        ("**Anna:** ", "Anna"),
        ("**Anna**: ", "Anna"),
        ("\ufeff\u200eA\u200bnna: ", "Anna"),
        ("ليلى:\u200f", "ليلى"),
        ("[laugh |] ", "laugh"),
        ("Laugh: ", "Laugh"),
        ("[pause |] ", "pause"),
        ("[audio: x |] ", "audio: x"),
    ],
)
def test_headers_name_the_speaker(header, speaker):
    (line,) = lines(f"{header}Hello there.")
    assert line.speaker == speaker
    assert line.text.endswith("Hello there.")


@pytest.mark.parametrize(
    "text",
    [
        "10:30 we leave",
        "http://example.org/a",
        "Yes. And then: nothing",
        "Well, Ben: come here",
        "he said to me one day: come",
        "a" * 61 + ": x",
        ": x",
        "“Listen: I know",
        "[laugh] Oh dear",
        "[ Clear  Throat ] So",
        "[pause:1s] So",
        "(pause) So",
        "[] x",
        "[never closed",
    ],
)
def test_text_that_looks_like_a_header_stays_text(text):
    assert spoken(f"Anna: First.\n{text}") == [("Anna", f"First. {' '.join(text.split())}")]


def test_unprefixed_lines_continue_and_new_paragraphs_begin_a_line():
    script = """
        # Scene one
        Anna: One,
        two
        // aside
        three.

        Four.
        [pause:1s]
        Five.
        [audio: door.wav]
        Six.
        [Ben]

        Seven.
    """
    assert lines(script) == [
        Unspoken("Scene one"),
        Speech("Anna", "One, two three."),
        Unspoken("aside"),
        Speech("Anna", "Four."),
        Silence(1.0),
        Speech("Anna", "Five."),
        Audio("door.wav"),
        Speech("Anna", "Six."),
        Speech("Ben", "Seven."),
    ]


def test_line_numbers_are_those_of_the_source():
    script = "# title\r\nAnna: One.\r\n\r\nTwo.\r\n[pause]\r\nBen: Three.\r\n"
    assert [line.line_number for line in lines(script)] == [1, 2, 4, 5, 6]


def test_a_name_alone_takes_the_text_behind_a_pause():
    assert lines("[Anna]\n[pause]\nHello.") == [Silence(0.5), Speech("Anna", "Hello.")]


def test_a_speaker_without_text_keeps_an_empty_line():
    assert spoken("Anna:\nBen: Hi.\n[Cleo]") == [("Anna", ""), ("Ben", "Hi."), ("Cleo", "")]


def test_several_pauses_and_a_header_may_share_a_line():
    script = "Anna: Hi.\n[pause:1s] (pause 250ms)\n<break time='2s'> Ben: Hello."
    assert lines(script) == [
        Speech("Anna", "Hi."), Silence(1.0), Silence(0.25), Silence(2.0), Speech("Ben", "Hello.")
    ]  # fmt: skip


def test_backslash_takes_a_line_literally():
    script = "Anna: Count:\n\\# one\n\\Ben: two\n\\\\three\n\\[pause] four"
    assert spoken(script) == [("Anna", "Count: # one Ben: two \\three [pause] four")]


def test_attributes_are_typed_and_hold_until_the_next_header():
    script = """[Anna | lang:pt_BR | seed:42 | speed:1.2 | steps:8 | calm:true | style:"a | b"] Olá.

    Tudo bem?
    Ben: Hi.""".replace("a | b", r"a \u007c b")
    first, second, third = lines(script)
    params = {"speed": 1.2, "steps": 8, "calm": True, "style": "a | b"}
    assert first == Speech("Anna", "Olá.", "pt-BR", 42, params)
    assert [type(value) for value in first.params.values()] == [float, int, bool, str]
    assert second == Speech("Anna", "Tudo bem?", "pt-BR", 42, params)
    assert third == Speech("Ben", "Hi.")


@pytest.mark.parametrize(
    ("script", "line", "said"),
    [
        ("Anna: a\n\nBen: b [pause:-1s]", 3, "0 to 300 seconds"),
        ("Anna: a\nand then [pause:10h]", 2, "0 to 300 seconds"),
        ("Anna: a [pause:\n10h] b", 1, "0 to 300 seconds"),
        ("Anna: a\n[pause:abc]", 2, "can't be read"),
        ("Stray\nAnna: a", 1, "Narrator: …"),
        ("Anna: a\n[Ben | seed:x] b", 2, "whole number"),
        ("Anna: a\n[Ben | seed:-3] b", 2, "whole number"),
        ("Anna: a\n[Ben | lang:German] b", 2, "language code"),
        ("Anna: a\n[Ben | loud] b", 2, "lang:de"),
        ("Anna: a\n[Ben | text:x] b", 2, "setting's name"),
        ("Anna: a\n[Ben | speed:1 | speed:2] b", 2, "twice"),
        ("Anna: a\n[Ben | speed:1e999] b", 2, "not a number"),
        ('Anna: a\n[Ben | style:"x] b', 2, "quotation mark"),
        (f"Anna: a\n[{'b' * 61}] b", 2, "60"),
        ("Anna: a\n[ | lang:de] b", 2, "name"),
        ("Anna: a\n[audio: ]", 2, "path"),
        ("Anna: a\n[audio: x.wav] and", 2, "line of its own"),
        ('Anna: a\n[audio: "x.wav]', 2, "quotation mark"),
        ("Anna: a\nBen: " + "b " * MAX_LINE_CHARS, 2, "100,000"),
        ("Anna: a\n" + "b\n" * MAX_LINE_CHARS, 100_001, "100,000"),
    ],
)
def test_errors_name_the_line_and_the_remedy(script, line, said):
    with pytest.raises(ScriptError, match=said) as caught:
        parse_script(script)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"Line {line}: ")


@pytest.mark.parametrize("script", ["", " \n\t\n", "# only\n// comments", "\u200b"])
def test_a_script_without_lines_is_refused(script):
    with pytest.raises(ScriptError, match="holds no lines"):
        parse_script(script)


def test_prose_is_no_dialog():
    with pytest.raises(ScriptError, match="not a dialog: no line begins") as caught:
        parse_script("It was a dark and stormy night.\nNobody spoke.")
    assert caught.value.line is None


def test_too_many_lines_and_too_large_a_script_are_refused():
    assert len(parse_script("A: b\n" * MAX_LINES).dialog) == MAX_LINES
    with pytest.raises(ScriptError, match="20,000"):
        parse_script("A: b\n" * (MAX_LINES + 1))
    with pytest.raises(ScriptError, match="5 MB"):
        parse_script("A: b\n" * 1_000_001)


def test_spellings_that_differ_in_case_are_noticed_once_each():
    parsed = parse_script("Anna: a\nBen: b\nANNA: c\nANNA: d\nanna: e\nBen: f")
    assert [notice.line_number for notice in parsed.notices] == [3, 5]
    assert "“ANNA” (line 3)" in parsed.notices[0].message
    assert "“Anna” (line 1)" in parsed.notices[0].message
    assert parsed.dialog.speakers() == ("Anna", "Ben")


@given(dialogs)
@example(Dialog((Speech("A", ""), Silence(1.0), Speech("A", "x"))))
@example(Dialog((Speech("audio: x", "]"), Audio("a]"), Speech("#", "]"))))
def test_every_dialog_reads_back(dialog):
    assert parse_script(write_script(dialog)).dialog == dialog


@given(scripts)
def test_any_text_reads_back_or_is_refused(text):
    try:
        dialog = parse_script(text).dialog
    except ScriptError:
        return
    assert parse_script(write_script(dialog)).dialog == dialog


@given(st.lists(st.sampled_from(["\ud800", "Anna: ", "x", "[audio: ", "]", "[A | k:", "\n"])))
def test_lone_surrogates_never_reach_a_dialog(pieces):
    try:
        dialog = parse_script("".join(pieces)).dialog
    except ScriptError:
        return
    write_script(dialog).encode()


def test_a_name_no_script_can_hold_is_not_written():
    with pytest.raises(NameRejected, match="]"):
        write_script(Dialog((Speech("A]", "x"),)))


def test_text_with_line_breaks_is_written_as_one_paragraph():
    dialog = Dialog((Speech("A", "one\nBen: two"),))
    assert write_script(dialog) == "A: one Ben: two\n"


HOSTILE = [
    ("", "[", 50_000, ""),
    ("", "<break", 10_000, ""),
    ("", "[pause", 10_000, ""),
    ("", "(pause: ", 10_000, ""),
    ("", ":", 100_000, ""),
    ("A: ", "[", 50_000, ""),
    ("A: ", "[pause: ", 12_000, ""),
    ("A: ", "<break time=", 8_000, ""),
    ("A: ", " [", 40_000, ""),
    ("A: ", "x", 1_000_000, ""),
    ("A:", " ", 1_000_000, ""),
    ("[A", " | ", 300_000, "]"),
    ("[A | k:", "1", 90_000, "] x"),
    ("", "[pause]", 15_000, ""),
    ("", "A:\n[pause]\n", 9_000, "x"),
    ("A: x\n", "y\n", 90_000, ""),
    ("", "A: x\n\n", 15_000, ""),
    ("", "**", 100_000, ""),
    ("", "\u200b", 1_000_000, "A: b"),
    ("", "[audio: ", 50_000, ""),
    ("A: x\n", "\n", 300_000, ""),
]


hostile_texts = pytest.mark.parametrize(
    ("before", "repeated", "times", "behind"),
    HOSTILE,
    ids=[f"text{idx}" for idx in range(len(HOSTILE))],
)


@hostile_texts
def test_hostile_text_takes_linear_time(before, repeated, times, behind):
    # Long lists of attributes are cheap, and only large ones leave the processor's cache alike.
    length = times if repeated == " | " else times // 4
    assert_read_in_linear_time(before, repeated, length, behind)


@pytest.mark.campaign
@hostile_texts
def test_the_longest_hostile_text_takes_linear_time(before, repeated, times, behind):
    assert_read_in_linear_time(before, repeated, times, behind)


def assert_read_in_linear_time(before, repeated, times, behind):
    def read(times):
        with contextlib.suppress(ScriptError):
            parse_script(before + repeated * times + behind)

    assert_linear(read, times)


def test_a_line_has_40_settings_at_most():
    params = " | ".join(f"p{number}:1" for number in range(40))
    assert len(parse_script(f"[Ida | {params}] Hello.").dialog.lines[0].params) == 40
    with pytest.raises(ScriptError, match="at most 40 settings; this one has 41"):
        parse_script(f"[Ida | {params} | q:1] Hello.")


def test_headings_notes_and_action_are_kept_between_the_lines():
    script = (
        "## Act One\n# who is she?\nAnna: One\n#> She sits.\ntwo.\n// quieter\n### Scene 2\n"
        "Three.\n#\n"
    )
    assert lines(script) == [
        Unspoken("Act One", UnspokenKind.HEADING),
        Unspoken("who is she?"),
        Speech("Anna", "One two."),
        Unspoken("She sits.", UnspokenKind.ACTION),
        Unspoken("quieter"),
        Unspoken("Scene 2", UnspokenKind.HEADING),
        Speech("Anna", "Three."),
    ]


def test_a_script_of_notes_alone_holds_no_lines():
    with pytest.raises(ScriptError, match="holds no lines"):
        parse_script("# one\n## two")
