"""What is written in a format is read back, as far as the format can hold it."""

from dataclasses import replace

import pytest
from dialog_strategies import dialogs, names, texts
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.formats.dialog_file import Format, export_dialog, export_notices, import_dialog
from studio.dialog.model import (
    Audio,
    Dialog,
    Silence,
    Speech,
    Unspoken,
    UnspokenKind,
    paragraph,
)

CAPTIONS = (Format.SRT, Format.VTT)
LOSSLESS = tuple(format_ for format_ in Format if format_ not in CAPTIONS)


def audible(line):
    return replace(line, text=paragraph(line.text.replace("\0", "")))


def as_kept(dialog):
    """As files hold it: a NUL in a text is left out."""
    lines = (audible(line) if isinstance(line, Speech | Unspoken) else line for line in dialog)
    return Dialog(tuple(line for line in lines if not isinstance(line, Unspoken) or line.text))


def back(dialog, format_, **settings):
    data = export_dialog(dialog, format_, **settings)
    imported = import_dialog(data, f"scene.{format_}")
    assert imported.format is format_
    return imported


@pytest.mark.parametrize("format_", LOSSLESS)
@given(dialogs.map(as_kept))
def test_lossless_formats_give_back_the_dialog(format_, dialog):
    imported = back(dialog, format_)
    assert imported.dialog == dialog
    assert export_notices(dialog, format_) == ()


@given(dialogs.map(as_kept), st.sampled_from(LOSSLESS))
def test_every_lossless_format_is_told_without_its_suffix(dialog, format_):
    if format_ is Format.FOUNTAIN:
        return
    assert import_dialog(export_dialog(dialog, format_), "scene").dialog == dialog


@pytest.mark.parametrize("format_", LOSSLESS)
@pytest.mark.parametrize(
    "line",
    [
        Speech("Anna", "00:00:01,000 --> 00:00:02,000"),
        Speech("WEBVTT", "00:00:01.000 --> 00:00:02.000"),
        Speech("speaker,text", ""),
        Speech("Name, Line", "Yes."),
        Speech("INT. ROOM", "[[ /* (shown) */ ]]"),
        Speech("ANNA (V.O.) ^", "(softly) *no* _marks_ \\*"),
        Audio("a/*b*/[[c]].wav"),
        Speech('{"', "Yes."),
        Speech('{"', ""),
        Speech("© Ben", ""),
        Speech("Copyright 2026 Ben", "Yes."),
        Speech("△", "Yes."),
        Speech("/Ben", "Yes."),
    ],
)
def test_what_looks_like_another_format_stays_what_it_is(format_, line):
    assert list(back(Dialog((line,)), format_).dialog) == [line]


@pytest.mark.parametrize("format_", LOSSLESS)
@pytest.mark.parametrize("kind", UnspokenKind)
def test_what_is_not_spoken_may_be_a_sign(format_, kind):
    dialog = Dialog((Speech("Anna", "Yes."), Unspoken("/", kind)))
    assert back(dialog, format_).dialog == dialog


def spoken(dialog):
    return [(line.speaker, line.text) for line in dialog if isinstance(line, Speech)]


def has_markup(text):
    """Pauses and sounds, which subtitles don't show."""
    return "pause" in text or "laugh" in text or "<break" in text


srt_texts = texts.map(paragraph).filter(
    lambda text: not set("\0<{").intersection(text) and "-->" not in text and not has_markup(text)
)
srt_names = names.filter(lambda name: "<" not in name and "-->" not in name)


@given(
    st.lists(st.builds(Speech, srt_names, srt_texts), min_size=1, max_size=6).map(
        lambda lines: Dialog(tuple(lines))
    )
)
def test_srt_gives_back_names_and_words(dialog):
    assert list(back(dialog, Format.SRT).dialog) == list(dialog)


@given(dialogs.map(as_kept))
def test_webvtt_gives_back_names_words_and_languages(dialog):
    if not spoken(dialog) or any(has_markup(text) for _, text in spoken(dialog)):
        return
    imported = back(dialog, Format.VTT)
    assert spoken(imported.dialog) == spoken(dialog)
    languages = [line.language for line in imported.dialog if isinstance(line, Speech)]
    assert languages == [line.language for line in dialog if isinstance(line, Speech)]


@pytest.mark.parametrize("format_", CAPTIONS)
@given(st.lists(st.floats(0.3, 300), min_size=1, max_size=5))
def test_subtitles_give_back_silences_to_the_millisecond(format_, silences_s):
    lines = [line for s in silences_s for line in (Silence(s), Speech("Anna", "Yes."))]
    found = back(Dialog(tuple(lines)), format_).dialog
    read_s = [line.duration_s for line in found if isinstance(line, Silence)]
    assert read_s == pytest.approx(silences_s, abs=0.0021)


@pytest.mark.parametrize("format_", CAPTIONS)
def test_subtitles_take_their_times_from_the_audio(format_):
    dialog = Dialog((Speech("Anna", "Yes."), Audio("bell.wav"), Speech("Ben", "No.")))
    written = export_dialog(dialog, format_, durations_s=[1.25, 2.0, 0.5]).decode()
    point = "," if format_ is Format.SRT else "."
    assert f"00:00:00{point}000 --> 00:00:01{point}250" in written
    assert f"00:00:03{point}250 --> 00:00:03{point}750" in written


def test_estimated_times_count_the_pauses_inside_a_line():
    dialog = Dialog((Speech("Anna", "Yes. [pause:10s] No."), Speech("Ben", "Oh.")))
    first, second, third = export_dialog(dialog, Format.SRT).decode().split("\n\n")
    assert first.splitlines()[1:] == ["00:00:00,000 --> 00:00:00,343", "Anna: Yes."]
    assert second.splitlines()[1:] == ["00:00:10,343 --> 00:00:10,600", "Anna: No."]
    assert third.splitlines()[1].startswith("00:00:10,600 --> ")


MARKED = {
    "[laugh] Well. (pause 1.5s) So it [sigh], is.": ["Well.", 1.5, "So it, is."],
    "[pause:2s] Now [PAUSE] then": [2.0, "Now", 0.5, "then"],
    '<break time="1s"/>Go! [ clear  throat ] [pause:700ms][pause:800ms]On.': [1, "Go!", 1.5, "On."],
    "Left [pause:1s] [gasp] [pause:1s] right": ["Left", 2.0, "right"],
    "No mark [of these]": ["No mark [of these]"],
}


@pytest.mark.parametrize("format_", CAPTIONS)
@pytest.mark.parametrize("text", MARKED)
def test_subtitles_show_the_words_between_the_pauses_and_no_markup(format_, text):
    dialog = Dialog(
        (Speech("Anna", text), Speech("Ben", "[laugh] (pause 1s)"), Speech("Ben", "Oh"))
    )
    read = [getattr(line, "text", None) or line.duration_s for line in back(dialog, format_).dialog]
    assert read[: len(MARKED[text])] == [
        pytest.approx(part, abs=0.0011) if not isinstance(part, str) else part
        for part in MARKED[text]
    ]
    assert read[-1] == "Oh"
    assert len(read) == len(MARKED[text]) + 2, "the silence of the line without words"


@pytest.mark.parametrize("format_", CAPTIONS)
def test_pauses_that_the_audio_has_elsewhere_move_the_cues(format_):
    dialog = Dialog((Silence(1), Speech("Anna", "Yes. [pause:1s] No.")))
    written = export_dialog(
        dialog, format_, durations_s=[1.0, 4.0], pauses={1: [(2.5, 3.5)]}
    ).decode()
    times = [row.replace(",", ".") for row in written.splitlines() if "-->" in row]
    assert times == ["00:00:01.000 --> 00:00:03.500", "00:00:04.500 --> 00:00:05.000"]
    other = export_dialog(dialog, format_, durations_s=[1.0, 4.0], pauses={1: []}).decode()
    assert other.count("-->") == 1, "the take of another text has no pause"
    assert "Yes. No." in other


@pytest.mark.parametrize("format_", CAPTIONS)
def test_what_subtitles_leave_out_is_told(format_):
    line = Speech("Anna", "Ja.", "de", 7, {"speed": 1.2})
    notices = export_notices(Dialog((line, Audio("bell.wav"), line)), format_)
    told = " ".join(notice.message for notice in notices)
    assert ("language" in told) == (format_ is Format.SRT)
    assert "seed" in told
    assert "settings" in told
    assert "audio" in told
    assert notices[0].line_number == 1
    assert "(Also line 3.)" in notices[0].message


@pytest.mark.parametrize("format_", LOSSLESS)
def test_a_nul_in_a_text_makes_no_file_binary(format_):
    found = back(Dialog((Speech("Dr: Ames", "\0"), Speech("Ben", "a\0b"))), format_).dialog
    assert [text.replace("\0", "") for _, text in spoken(found)] == ["", "ab"]


def test_tables_hold_no_formulas():
    dialog = Dialog((Speech("=cmd()", "+1-2"), Speech("@home", "'-quoted"), Audio("-x.wav")))
    written = export_dialog(dialog, Format.CSV).decode("utf-8-sig")
    assert not [
        cell
        for row in written.splitlines()
        for cell in row.split(",")
        if cell.startswith(("=", "+", "-", "@"))
    ]
    assert back(dialog, Format.CSV).dialog == dialog


def test_an_arrow_in_srt_is_no_timing():
    written = export_dialog(Dialog((Speech("Anna", "a --> b"),)), Format.SRT).decode()
    assert written.count("-->") == 1


def test_webvtt_shows_markup_as_text():
    dialog = Dialog((Speech("<img src=x>", "<b>&amp;</b> ${7*7}"),))
    written = export_dialog(dialog, Format.VTT).decode()
    assert "<img" not in written
    assert "<b>" not in written
    assert back(dialog, Format.VTT).dialog == dialog


@pytest.mark.parametrize(
    "lines",
    [
        (Speech("Word count", "Eighty."),),
        (Speech("Word count", "10:02"), Unspoken("Let me know if you'd like more."),),
        (Unspoken("Sure! Here is a script:"), Speech("Ida", "Yes."), Speech("Running time", "No.")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["scene.txt", "The clipboard"])
def test_a_script_that_the_studio_wrote_is_read_as_it_is(lines, name):
    written = export_dialog(Dialog(lines), Format.SCRIPT)
    for text in (written, written.rstrip(b"\n")):
        read = import_dialog(text, name)
        assert (read.dialog, read.notices, read.title) == (Dialog(lines), (), None)


def test_the_first_note_of_a_script_names_it():
    for text in ("# The weir\n## One\nIda: Hi.\n", "// 1.\n# The weir\nIda: Hi.\n"):
        assert import_dialog(text.encode(), "scene.txt").title == "The weir"
