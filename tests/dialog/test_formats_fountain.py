import pytest

from studio.dialog.formats.dialog_file import (
    Format,
    ImportOptions,
    export_dialog,
    export_notices,
    import_dialog,
)
from studio.dialog.model import (
    Audio,
    Dialog,
    Silence,
    Speech,
    SpeechLimits,
    Unspoken,
    UnspokenKind,
)
from studio.dialog.planning import plan
from studio.errors import ScriptError

SCREENPLAY = r"""Title: A Door
Author: Nobody

# Act one

= They meet.

INT. LIGHTHOUSE - NIGHT #1#

ANNA walks in. [[more wind here]]

ANNA (V.O.) (CONT'D)
(softly)
I *never* said **that**. \*Never\*.
(beat)
Not _exactly_.
(laughs)

/* cut this

BEN
Nobody hears me. */

ÉLODIE ^
Oui. /* not this */ Non.
TWO_SPACES
After two spaces.

> CUT TO:

@McBen
~La la la
""".replace("TWO_SPACES", "  ")


def read(text, name="scene.fountain", **options):
    return import_dialog(text.encode(), name, ImportOptions(**options))


def spoken(imported):
    return [(line.speaker, line.text) for line in imported.dialog if isinstance(line, Speech)]


def test_the_dialogue_of_a_screenplay():
    assert spoken(read(SCREENPLAY)) == [
        ("ANNA", "(softly) I never said that. *Never*. [pause:0.5s] Not exactly. [laughs]"),
        ("ÉLODIE", "Oui. Non. After two spaces."),
        ("McBen", "La la la"),
    ]


def test_what_is_not_spoken_is_told_with_its_lines():
    action = next(one for one in read(SCREENPLAY).notices if "spoken" in one.message)
    assert action.line_number == 8
    assert "Also lines 10, 29" in action.message
    assert "NARRATOR" in action.message
    assert "“INT. LIGHTHOUSE - NIGHT #1#”, “ANNA walks in.”, “CUT TO:”" in action.message
    assert read(SCREENPLAY).unspoken == 3


def test_directions_stay_in_the_line_however_long_they_are():
    imported = read("ANNA\n(wiping her hands on the coat that Ben gave her)\nNo.\n(to Ben)\nYes.\n")
    text = "(wiping her hands on the coat that Ben gave her) No. [direction: to Ben] Yes."
    assert spoken(imported) == [("ANNA", text)]
    (segment,) = plan(imported.dialog, SpeechLimits(200)).segments
    assert segment.text == "No. Yes."


def test_the_title_page_names_the_screenplay():
    assert read(SCREENPLAY).title == "A Door"
    assert (
        read("Title:\n  _**BRICK & STEEL**_\n  _**FULL RETIRED**_\nAuthor: X\n\nANNA\nHi.\n").title
        == "BRICK & STEEL FULL RETIRED"
    )
    assert read("ANNA\nHi.\n").title is None


def test_what_the_title_page_and_the_boneyard_hold_is_kept():
    imported = read(
        "Title: A Door\nCredit: by\nAuthor:\n    The Harbour Players\n\nANNA\nHi.\n\n"
        "/* an older end:\n\nBEN\nNo. */\n\nBEN\nYes.\n"
    )
    assert imported.title == "A Door"
    assert [(notice.message, notice.line_number) for notice in imported.notices] == [
        (
            "What a title page says besides the title stands between the lines: “Credit: by”, "
            "“Author:”, “The Harbour Players” (Also lines 3, 4.)",
            2,
        ),
    ]
    assert [line.text for line in imported.dialog] == [
        "Credit: by", "Author:", "The Harbour Players", "Hi.", "an older end:", "BEN", "No.", "Yes."
    ]  # fmt: skip
    assert [line.text for line in imported.dialog if isinstance(line, Speech)] == ["Hi.", "Yes."]


def test_a_narrator_reads_action_and_headings():
    found = spoken(read(SCREENPLAY, narrator="Reader"))
    assert found[:2] == [("Reader", "INT. LIGHTHOUSE - NIGHT"), ("Reader", "ANNA walks in.")]
    assert ("Reader", "CUT TO:") in found


def test_notes_carry_pauses_audio_and_settings():
    imported = read(
        "ANNA\nJa. [[voice | lang:de | seed:7 | speed:1.2]]\n\n[[pause:1.5s]]\n\n"
        "[[audio: bell.wav]]\n\nBEN\nOne [[pause:2s]] two. [[todo: louder]]\n"
    )
    assert list(imported.dialog) == [
        Speech("ANNA", "Ja.", "de", 7, {"speed": 1.2}),
        Silence(1.5),
        Audio("bell.wav"),
        Speech("BEN", "One [pause:2s] two."),
        Unspoken("todo: louder"),
    ]


def test_what_is_not_spoken_stays_between_the_lines():
    imported = read(
        "# Act One\n\n= Anna waits.\n\nINT. LIGHTHOUSE - NIGHT\n\nAnna walks in.\nShe is *wet*.\n\n"
        "[[who dries\nher?]]\n\nANNA\nBrr. [[louder]]\n\n> CUT TO:\n\n> THE END <\n"
    )
    assert list(imported.dialog) == [
        Unspoken("Act One", UnspokenKind.HEADING),
        Unspoken("Anna waits."),
        Unspoken("INT. LIGHTHOUSE - NIGHT", UnspokenKind.HEADING),
        Unspoken("Anna walks in. She is wet.", UnspokenKind.ACTION),
        Unspoken("who dries her?"),
        Speech("ANNA", "Brr."),
        Unspoken("louder"),
        Unspoken("CUT TO:", UnspokenKind.ACTION),
        Unspoken("THE END", UnspokenKind.ACTION),
    ]


@pytest.mark.parametrize("name", ["scene.fountain", "scene.txt", "scene", "scene.srt"])
def test_a_screenplay_is_told_by_its_content(name):
    assert len(spoken(read(SCREENPLAY, name))) == 3


@pytest.mark.parametrize(
    "text",
    [
        "ANNA: Hi.\n\nBEN: Ho.\n",
        "Anna: WHAT?\nNO\n\nBen: WHY\nNOT\n",
        "[ANNA]\nHi.\n\n[BEN]\nHo.\n",
    ],
)
def test_a_script_in_capitals_is_no_screenplay(text):
    assert read(text, "scene.txt").format == "txt"


@pytest.mark.parametrize(
    "lost",
    ["ANNA\nWell.\nBEN\nHm.\n\n", "ANNA\nWell.\nTHE LAMP GOES OUT AGAIN\nIt is dark.\nBEN\nHm.\n"],
)
def test_a_screenplay_without_empty_lines_is_its_names(lost):
    imported = read(f"INT. WEIR - NIGHT\n{lost}{lost.rstrip()}\n")
    assert [name for name, _ in spoken(imported)] == ["ANNA", "BEN", "ANNA", "BEN"]
    assert "no empty lines" in imported.notices[0].message


def test_a_comment_without_an_end_is_read_and_told():
    imported = read("ANNA\nYes.\n\nBEN\nNo /* never ends.\n")
    assert spoken(imported)[1] == ("BEN", "No /* never ends.")
    assert imported.notices[0].line_number == 5


def test_a_name_in_capitals_without_words_is_action():
    assert spoken(read("ANNA\n\nBEN\nHi.\n")) == [("BEN", "Hi.")]


@pytest.mark.parametrize("text", ["Nobody speaks.\n", "INT. ROOM\n", "# One\n"])
def test_a_screenplay_without_dialogue_is_refused_with_the_way_to_write_it(text):
    with pytest.raises(ScriptError, match="name in capitals"):
        read(text)


def test_settings_that_cant_be_read_name_their_line():
    with pytest.raises(ScriptError, match=r"Line 1: .*seed"):
        read("ANNA\nHi. [[voice | seed:never]]\n")


def test_what_is_hidden_may_stand_at_the_very_beginning() -> None:
    assert spoken(read("[[a note]]ANNA\nHi.\n\nBEN\nHo.\n")) == [("ANNA", "Hi."), ("BEN", "Ho.")]
    assert spoken(read("/* a\ncomment */\n\nANNA\nHi.\n")) == [("ANNA", "Hi.")]


def test_a_comment_needs_two_stars_to_open_and_close() -> None:
    assert spoken(read("ANNA\nHi. /*/ unsaid */ Ho.\n")) == [("ANNA", "Hi. Ho.")]


LIKE_A_PAGE = [
    "0 INT. HOUSE",
    "12A. EXT. WEIR 12A",
    "12.",
    "- 4 -",
    "page 3",
    "3 OMITTED",
    "CONTINUED:",
    "(MORE)",
    "12:30",
    "```",
    "by Ben",
    "#1# x",
    "INT. HOUSE",
]


@pytest.mark.parametrize("words", LIKE_A_PAGE)
def test_what_was_exported_comes_back_though_it_looks_like_a_page_s(words: str) -> None:
    lines = (
        Speech("CONTINUED", words),
        Unspoken("INT. ROOM - DAY", UnspokenKind.HEADING),
        Speech("PAGE 3", words),
        Speech("Ben", words, "de"),
        Speech("ANNA", "Yes."),
    )
    written = export_dialog(Dialog(lines), Format.FOUNTAIN)
    assert import_dialog(written, "scene.fountain").dialog.lines == lines
    read_aloud = import_dialog(written, "scene.fountain", ImportOptions(narrator="Zoe")).dialog
    assert read_aloud.lines == (*lines[:1], Speech("Zoe", "INT. ROOM - DAY"), *lines[2:])


def test_page_numbers_of_other_programs_are_notes() -> None:
    page = "0 INT. HOUSE\n\nANNA\nYes.\n\n12.\n\nBEN\nNo.\n"
    assert import_dialog(page.encode(), "scene.fountain").dialog.lines == (
        Unspoken("INT. HOUSE", UnspokenKind.HEADING),
        Speech("ANNA", "Yes."),
        Unspoken("12."),
        Speech("BEN", "No."),
    )


def test_a_number_below_a_name_is_what_somebody_says() -> None:
    page = "INT. HOUSE\n\nANNA\n12\n\n2.\n\nBEN\nNo.\n"
    assert import_dialog(page.encode(), "scene.txt").dialog.lines[1:] == (
        Speech("ANNA", "12"),
        Unspoken("2."),
        Speech("BEN", "No."),
    )


def test_dual_dialogue_survives_and_other_formats_keep_it() -> None:
    text = "MARA\nI never said that.\n\nJONAS ^\nYou did say that.\n\n@McBee (V.O.) ^\nNo.\n"
    dialog = read(text).dialog
    assert list(dialog) == [
        Speech("MARA", "I never said that."),
        Speech("JONAS", "You did say that.", params={"dual": True}),
        Speech("McBee", "No.", params={"dual": True}),
    ]
    written = export_dialog(dialog, Format.FOUNTAIN).decode()
    assert written == text.replace(" (V.O.)", "")
    assert read(written).dialog == dialog
    assert "[JONAS | dual:true] You did" in export_dialog(dialog, Format.SCRIPT).decode()
    for format_ in (Format.SCRIPT, Format.CSV, Format.TSV, Format.JSON, Format.JSON_LINES):
        again = import_dialog(export_dialog(dialog, format_), f"scene.{format_}").dialog
        assert again == dialog, format_
    assert export_notices(dialog, Format.SRT)[0].message.endswith("settings out. (Also line 3.)")


@pytest.mark.parametrize("value", [False, "both", 1])
def test_only_what_is_dual_has_fountain_s_sign(value: object) -> None:
    dialog = Dialog((Speech("JONAS", "No.", params={"dual": value}), Speech("A ^", "Hm.")))
    written = export_dialog(dialog, Format.FOUNTAIN)
    assert read(written.decode()).dialog == dialog
    assert b" ^\n" not in written.replace(b"\\^", b"")


def test_no_voice_reads_what_is_dual() -> None:
    (segment,) = plan(read("JONAS ^\nNo.\n").dialog, SpeechLimits(100)).segments
    assert (segment.text, dict(segment.params)) == ("No.", {})
