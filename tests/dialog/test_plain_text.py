"""Scripts as people paste them: what models write, plays, tags around turns, prose."""

import contextlib

import pytest
from dialog_strategies import scripts
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.formats.dialog_file import ImportOptions, read_dialog_text
from studio.dialog.markup import strip_markup
from studio.dialog.model import Audio, Silence, Speech, Unspoken
from studio.dialog.script import parse_script, write_script
from studio.errors import ScriptError


def lines(text, narrator=None):
    read = read_dialog_text(text, ImportOptions(narrator=narrator))
    return [(one.speaker, one.text) for one in read.dialog if isinstance(one, Speech)]


def notices(text):
    return " ".join(notice.message for notice in read_dialog_text(text).notices)


@pytest.mark.parametrize(
    "preface",
    [
        "Sure! Here's a short dialogue:",
        "Certainly! Below is a script between two friends.",
        "Here is the conversation you asked for:",
        "TTS the following conversation between Joe and Jane:",
        "Read the following dialogue aloud in a warm tone:",
        "Of course!",
    ],
)
def test_a_model_s_preface_is_set_aside_with_a_notice(preface):
    text = f"{preface}\n\nJoe: Hi.\nJane: Ho.\n\nLet me know if you'd like a longer one!"
    assert lines(text) == [("Joe", "Hi."), ("Jane", "Ho.")]
    assert f"“{preface}”, “Let me know if you'd like a longer one!”" in notices(text)


def test_a_notice_about_a_model_s_answer_quotes_its_words_and_no_blank_row():
    text = "Sure! Here it is:\n\n---\n\n**Joe:** Hi.\n\n**Jane:** Ho.\n\n---\n\nI hope this helps!"
    assert lines(text) == [("Joe", "Hi."), ("Jane", "Ho.")]
    assert notices(text).endswith(
        "lines: “Sure! Here it is:”, “I hope this helps!” (Also line 11.)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Ben: Sit down.\n\nAnna: Thank you.\n\nWould you like a drink?",
        "Anna: I am leaving.\n\nBen: Then go.\n\nThis conversation is over.",
        "Dear Ruth,\n\nThe boat came in on Tuesday.\n\nI hope you are well.",
        "NORA: Sit down.\n\nTOM: No.\n\nI hope you are happy.",
        "ANNA. Sit down.\n\nTOM. No.\n\nANNA. Why?\n\nI hope you are happy.",
        "This is the story of a lighthouse.\n\nIt stood on a rock.\n\nNobody came.",
        "Here is what happened to us on Tuesday:\n\nIt stood on a rock.\n\nI hope you are well.",
        "Anna: Yes.\n\nBen: No.\n\nLet me know.",
        "Anna: Meet me at\n10:30\nBen: or at\n11:30\nAnna: fine",
    ],
)
def test_what_a_person_wrote_is_said_and_not_taken_for_a_model_s(text):
    said = " ".join(words for _, words in lines(text))
    missing = [
        word for row in text.splitlines() for word in row.split() if word.strip(".:") not in said
    ]
    assert set(missing) <= {"Ben:", "Anna:", "NORA:", "TOM:", "ANNA.", "TOM."}
    assert "stand" not in notices(text)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("**Ben:** Yes.\n\n**Anna:** No.\n\nI hope this helps!", ["I hope this helps!"]),
        ("Ben: Yes.\n\nAnna: No.\n\n---\n\nI hope this helps!", ["I hope this helps!"]),
        ("Here is a script:\n\nBen: Yes.\n\nAnna: No.", ["Here is a script:"]),
        ("Sure!\n\n```\nBen: Yes.\nAnna: No.\n```\n\nEnjoy!", ["Sure!", "Enjoy!"]),
        ("00:00:02\nBen: Yes.\n\n00:00:04\nAnna: No.", ["00:00:02", "00:00:04"]),
        ("A weir\n\n0:02\nBen: Yes.\n\n0:04\nAnna: No.", ["0:02", "0:04"]),
    ],
)
def test_what_is_set_aside_stands_between_the_lines_and_is_named(text, kept):
    assert [words for _, words in lines(text)] == ["Yes.", "No."]
    dialog = read_dialog_text(text).dialog
    assert [one.text for one in dialog if isinstance(one, Unspoken)] == kept
    assert all(f"“{words}”" in notices(text) for words in kept)


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("Emma: See [it](https://x.y/z_a) and [that](b.html 'B').", "“https://x.y/z_a”, “b.html”"),
        ("**Emma:** See ![a map](map.png).\n\n**Tom:** Ho.", "“map.png”"),
        ("| Speaker | Text |\n|---|---|\n| Emma | See [it](http://x.y) |", "“http://x.y”"),
    ],
)
def test_the_addresses_of_links_are_named(text, addresses):
    assert f"The addresses of links aren't spoken; they are left out: {addresses}" in notices(text)


def test_links_are_named_after_what_stands_above_them():
    read = read_dialog_text("## The lamp\n\n**Emma:** See [it](http://x.y).\n\n**Tom:** Ho.")
    assert [notice.line_number for notice in read.notices] == [1, 3]


@pytest.mark.parametrize(
    "text", ["# see [it](http://x.y)\nEmma: Hey.", "Emma: https://x.y, [sighs] (softly)."]
)
def test_what_stays_is_not_named_as_left_out(text):
    assert "left out" not in notices(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("**Emma**\nHey.\n\n**Tom**\nHo.", [("Emma", "Hey."), ("Tom", "Ho.")]),
        ("**Emma:** Hey *you*.\n\n**Tom:** `Ho`.", [("Emma", "Hey you."), ("Tom", "Ho.")]),
        ("**Emma** *(sighs)*: Hey.", [("Emma", "(sighs) Hey.")]),
        ("> **Emma:** Hey.\n>\n> **Tom:** Ho.", [("Emma", "Hey."), ("Tom", "Ho.")]),
        ("```\nEmma: Hey.\nTom: Ho.\n```", [("Emma", "Hey."), ("Tom", "Ho.")]),
        ("Emma: See [the paper](https://x.y/z).", [("Emma", "See the paper.")]),
        ("Emma: *sighs* I **know**.", [("Emma", "(sighs) I know.")]),
        ("Emma: Well *sighs deeply* fine.", [("Emma", "Well sighs deeply fine.")]),
        ("“How long?” – Mira\n“Since five.” – Tomas",
         [("Mira", "How long?"), ("Tomas", "Since five.")]),
        ("Emma: Hey.\n(walks | left)\nYou.", [("Emma", "Hey. [direction: walks | left] You.")]),
        ("Emma: f*ck sh*t, 2 * 3 * 4.", [("Emma", "f*ck sh*t, 2 * 3 * 4.")]),
        ("[S1] Hi. [S2] Ho. [S1] Hu.", [("S1", "Hi."), ("S2", "Ho."), ("S1", "Hu.")]),
        ("[alice]Hi[/alice]\n[bob]Ho[/bob]", [("alice", "Hi"), ("bob", "Ho")]),
        ("<Person1>Hi</Person1><Person2>Ho</Person2>", [("Person1", "Hi"), ("Person2", "Ho")]),
        ("<script>\nEmma: Hey <i>you</i>.\nTom: Ho.\n</script>",
         [("Emma", "Hey you."), ("Tom", "Ho.")]),
        ('<script>\n<line who="Emma">Hey\nyou.</line>\n<line who="Tom">Ho.</line>\n</script>',
         [("Emma", "Hey you."), ("Tom", "Ho.")]),
        ("<dialogue>\nEmma: Hey.\n\nTom: Ho.\n</dialogue>", [("Emma", "Hey."), ("Tom", "Ho.")]),
        ("[excited] Okay. [laughs] Well.", [("Narrator", "[excited] Okay. [laughs] Well.")]),
        ("IVO (V.O.): Hi.\nIVO (CONT'D): Ho.", [("IVO", "Hi."), ("IVO", "Ho.")]),
        ("Ivo (whispering): Hi.", [("Ivo", "(whispering) Hi.")]),
        ("Anna (Mother): Hi.", [("Anna (Mother)", "Hi.")]),
        ("INT. WEIR - NIGHT\n\nIVO (angrily) Get out!\n\nANNA: No.",
         [("IVO", "(angrily) Get out!"), ("ANNA", "No.")]),
        ("ACT ONE\n\nSCENE 2\n\nIVO. (aside) He lies.\n\nANNA. Who?",
         [("IVO", "(aside) He lies."), ("ANNA", "Who?")]),
        ("Algernon.  Did you hear?\n\nLane.  No, sir.\n\n[They pass into the hall, and the room.]",
         [("Algernon", "Did you hear?"), ("Lane", "No, sir.")]),
        ("It was dark. It rained.\n\nNobody spoke.",
         [("Narrator", "It was dark. It rained."), ("Narrator", "Nobody spoke.")]),
        ("It was dark.\n\nNote: it rained.\n\nNobody spoke.",
         [("Narrator", "It was dark."), ("Narrator", "Note: it rained."),
          ("Narrator", "Nobody spoke.")]),
        ("/*/ Emma: Hey.\nTom: Ho. */\nEmma: Hu.", [("Emma", "Hu.")]),
        ("(Note) Bring oars.\n(Note) Bring rope.",
         [("Narrator", "(Note) Bring oars. (Note) Bring rope.")]),
        ("It was dark.\n\nIt rained.\n\nNobody came.\n\nIt was late.\n\n"
         "Emma. Hey.\n\nTom. Ho.\n\nEmma. Hu.\n\nTom. Ha.",
         [("Emma", "Hey."), ("Tom", "Ho."), ("Emma", "Hu."), ("Tom", "Ha.")]),
        ("It was dark.\n\nIt rained.\n\nNobody came.\n\nIt was late.\n\nWe slept.\n\nI woke.\n\n"
         "EMMA Hey you.\n\nTOM Ho you.\n\nEMMA Hu you.\n\nTOM Ha you.",
         [("EMMA", "Hey you."), ("TOM", "Ho you."), ("EMMA", "Hu you."), ("TOM", "Ha you.")]),
    ],
)  # fmt: skip
def test_it_is_read_as_it_is_meant(text, said):
    assert lines(text) == said


def test_words_in_corners_that_are_broken_stand_where_they_begin():
    dialog = read_dialog_text("Mira「船は？」\nJun「さあ。\nまだだ。」\nMira「待とう。」\n").dialog
    assert [(line.line_number, line.text) for line in dialog] == [
        (1, "船は？"), (2, "さあ。まだだ。"), (4, "待とう。"),
    ]  # fmt: skip


def test_a_list_s_points_are_no_speakers_and_one_host_is_one():
    text = (
        "# Tests\n\n---\n\n**Host:** Hello.\n\n## The files\n\nThey check:\n\n"
        "- **Folders:** Are they made?\n- **Names:** Are they right?\n\n1. First.\n2. Second.\n\n"
        "That is all.\n\nThank you.\n\nBye.\n\n**[Outro music fades in]**\n"
    )
    assert lines(text) == [("Host", words) for words in (
        "Hello.", "They check:", "Folders: Are they made?", "Names: Are they right?", "1. First.",
        "2. Second.", "That is all.", "Thank you.", "Bye.",
    )]  # fmt: skip


def test_titles_headings_cues_and_directions_are_set_aside_and_named():
    text = (
        "# Ashfall\n\nMUSIC: a theme\nIda: One.\n\n[SFX: door]\n\nSCENE 2\n\n(They leave.)\n\n"
        "CUT TO:\n\nTom: Two.\n# remember the door\n"
    )
    read = read_dialog_text(text)
    assert lines(text) == [("Ida", "One."), ("Tom", "Two.")]
    assert (read.title, read.unspoken) == ("Ashfall", 3)
    said = notices(text)
    for one in ("MUSIC: a theme", "SFX: door", "SCENE 2", "They leave.", "CUT TO:"):
        assert f"“{one}”" in said
    kept = [(one.kind, one.text) for one in read.dialog if isinstance(one, Unspoken)]
    assert kept == [
        ("note", "Ashfall"), ("action", "MUSIC: a theme"), ("action", "SFX: door"),
        ("heading", "SCENE 2"), ("action", "They leave."), ("heading", "CUT TO:"),
        ("note", "remember the door"),
    ]  # fmt: skip
    assert lines(text, "Reader") == [
        ("Ida", "One."), ("Reader", "SCENE 2"), ("Reader", "They leave."), ("Reader", "CUT TO:"),
        ("Tom", "Two."),
    ]  # fmt: skip


def test_what_follows_the_narrator_is_the_speaker_s_again():
    text = "Ida: One.\n\n[She waits at the window.]\n\nTwo.\n"
    assert lines(text) == [("Ida", "One."), ("Ida", "Two.")]
    assert [one[0] for one in lines(text, "Reader")] == ["Ida", "Reader", "Ida"]


@pytest.mark.parametrize("header", ["[Ida | lang:much-too-long]", "[Ida | seed:x]", "[Ida | loud]"])
def test_a_broken_header_is_refused_with_its_line_and_never_read_aloud(header):
    for above in ("", "It was dark.\n\nIt rained.\n\n", "Tom: Hi.\n"):
        with pytest.raises(ScriptError) as caught:
            read_dialog_text(f"{above}{header} Hello.")
        assert caught.value.line == above.count("\n") + 1


def test_a_row_in_brackets_is_a_name_where_it_can_be_one():
    text = "Ida: One.\n[Ben]\nTwo.\n[door creaks]\nThree.\n[The Old Man]\nFour."
    assert lines(text) == [
        ("Ida", "One."), ("Ben", "Two."), ("Ben", "Three."), ("The Old Man", "Four.")
    ]  # fmt: skip
    assert "“door creaks”" in notices(text)


def test_pauses_recordings_and_settings_stay_in_what_is_pasted():
    text = "Here's the script:\n\n[pause:1s] Ida: One.\n[audio: a.wav]\n[Tom | seed:7] Two.\n"
    assert list(read_dialog_text(text).dialog) == [
        Unspoken("Here's the script:"),
        Silence(1.0), Speech("Ida", "One."), Audio("a.wav"), Speech("Tom", "Two.", seed=7)
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["Music", "Scene 2", "Title", "SFX", "Int. House", "Excited"])
def test_whoever_is_called_like_a_heading_stays_a_speaker(name):
    dialog = read_dialog_text(f"[{name} |] Hello.\nIda: Yes.").dialog
    assert dialog.speakers() == (name, "Ida")
    assert read_dialog_text(write_script(dialog)).dialog == dialog
    assert read_dialog_text(write_script(dialog)).notices == ()


@pytest.mark.parametrize("text", ["I **do**.", "*sighs*", "`x`", "[a](http://b)", "_so_"])
def test_literal_markdown_is_written_on_a_row_of_its_own(text):
    dialog = parse_script(f"Ida:\n\\{text}\nTom: Ho.").dialog
    assert dialog.lines[0] == Speech("Ida", text)
    assert write_script(dialog) == f"Ida:\n\\{text}\nTom: Ho.\n"
    assert read_dialog_text(write_script(dialog)).dialog == dialog


@given(scripts | st.text("AB.:\n[]()*_#-> ", max_size=80))
def test_whatever_is_pasted_reads_back_the_same_once_it_was_read(text):
    try:
        dialog = read_dialog_text(text).dialog
    except ScriptError:
        return
    again = read_dialog_text(write_script(dialog))
    assert again.dialog == dialog


@given(st.text("ab *_`[]()!<>&\\\n", max_size=60))
def test_any_markdown_is_stripped_once(text):
    shown = strip_markup(" ".join(text.split()))
    assert len(shown) <= len(text) + 2


@pytest.mark.parametrize(
    "piece",
    ["**", "*a ", "[a](b) ", "**a**\n", "(a\n", "[a\n", "A. b\n", "ANNA.\nHi (a\n\n", "[S1] a ",
     "<a>x</a>", "# a\n", "> a\n", "1. a: b\n", "INT. A\n\nB\nc\n\n"],
)  # fmt: skip
def test_hostile_text_takes_linear_time(piece):
    def read(times):
        try:
            read_dialog_text(piece * times)
        except ScriptError:
            return

    assert_linear(read, 1_000)


_SUBTITLE = "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,Main,Ida,0,0,0,,"


@pytest.mark.parametrize(
    ("before", "piece", "behind"),
    [
        ("Ida: A label.", "\n", "Ivo: Hello."),
        ("=== weir ===\n", " \n", "Ivo: Hello."),
        (":: Weir", " ", "{\nIda: Hello."),
        (":: Weir [a]", " ", "b\nIda: Hello."),
        ("[Script Info]\nTitle: a", "\t", f"b\n{_SUBTITLE}Hello."),
        (f"[Script Info]\n{_SUBTITLE}{{", r"\p1", "Hello."),
        ("title: Weir\n---\nIda: Hello.", "<<", "\n==="),
        ("title: Weir\n---\nIda: Hello.", " #a", " b\n==="),
        ("title: Weir\n---\nIda: Hello.", " ", "b\n==="),
    ],
)
def test_a_long_row_of_one_sign_takes_linear_time(before, piece, behind):
    def read(times):
        with contextlib.suppress(ScriptError):
            read_dialog_text(before + piece * times + behind)

    assert_linear(read, 16_000)


def test_many_names_in_a_list_take_linear_time():
    names = [f"- **A{number}:** Hello you.\n" for number in range(2_000)]
    assert_linear(lambda count: read_dialog_text("".join(names[:count])), 2_000)


def test_many_actions_between_stars_take_linear_time():
    assert_linear(lambda times: read_dialog_text("Ida: " + '"",*a* ' * times), 4_000)


@pytest.mark.parametrize("title", ["# The Weir", "**The Weir**", "The Weir", "Title: The Weir"])
def test_a_title_is_told_in_one_notice(title):
    read = read_dialog_text(f"{title}\n\n**Anna:** Hi.\n\n**Ivo:** Ho.\n")
    assert read.title == "The Weir"
    assert [notice.message for notice in read.notices] == [
        "The title isn't spoken; a new project is named for it: “The Weir”"
    ]
    assert read.unspoken == 0
