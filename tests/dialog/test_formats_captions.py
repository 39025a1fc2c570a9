import pytest

from studio.dialog.formats.dialog_file import Format, ImportOptions, export_dialog, import_dialog
from studio.dialog.model import Dialog, Silence, Speech, Unspoken, UnspokenKind
from studio.errors import ScriptError


def read(text, name="scene.srt", **options):
    return import_dialog(text.encode(), name, ImportOptions(**options))


def spoken(imported):
    return [(line.speaker, line.text) for line in imported.dialog if isinstance(line, Speech)]


def silences(imported):
    return [line.duration_s for line in imported.dialog if isinstance(line, Silence)]


def cue(start, end, *lines, number=1):
    return f"{number}\n00:00:{start},000 --> 00:00:{end},000\n" + "\n".join(lines) + "\n\n"


TWO = cue("00", "02", "Anna: Did you hear that?") + cue("05", "06", "Ben: No.", number=2)


def test_cues_become_lines_and_the_time_between_them_silence():
    imported = read(TWO)
    assert list(imported.dialog) == [
        Speech("Anna", "Did you hear that?"),
        Silence(3.0),
        Speech("Ben", "No."),
    ]
    assert [line.line_number for line in imported.dialog] == [3, 6, 7]
    assert imported.notices == ()


@pytest.mark.parametrize(("end_ms", "found"), [(700, [0.3]), (701, [])])
def test_only_gaps_of_the_least_length_become_silence(end_ms, found):
    first = f"1\n00:00:00,000 --> 00:00:04,{end_ms}\nAnna: Did you hear that?\n\n"
    assert silences(read(first + cue("05", "06", "Ben: No."))) == found


def starts(imported):
    return [one.params.get("start_s") for one in imported.dialog if isinstance(one, Speech)]


SUBSTATION = (
    "[Script Info]\n\n[Events]\nFormat: Layer, Start, End, Style, Name, Text\n"
    "Dialogue: 0,0:00:01.50,0:00:02.00,Default,Anna,Did you hear that?\n"
    "Dialogue: 0,0:00:05.00,0:00:06.00,Default,Ben,No.\n"
)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.srt", TWO, [0.0, 5.0]),
        ("a.vtt", "WEBVTT\n\n00:01.250 --> 00:02.000\n<v Ann>Yes.\n", [1.25]),
        ("a.ass", SUBSTATION, [1.5, 5.0]),
        ("a.lrc", "[00:12.00]Ann: Yes.\n[00:17.20]Ben: No.\n[00:21.10]Ann: Oh.", [12, 17.2, 21.1]),
        ("a.csv", "Start,End,Speaker,Text\n0:02.5,0:03,Ann,Yes.\n0:09,0:10,Ben,No.", [2.5, 9]),
        ("a.srt", cue("07", "09", "- Who?", "- Me."), [7.0, None]),
        ("late.srt", "1\n01:10:00,000 --> 01:10:01,000\nAnna: Yes.\n", [4200.0]),
    ],
)
def test_lines_say_when_they_begin_where_it_is_asked(name, text, found):
    imported = read(text, name, fit=True)
    assert starts(imported) == found
    assert silences(imported) == []
    assert set(starts(read(text, name))) == {None}


def test_a_description_of_a_sound_gives_its_time_to_nobody():
    text = cue("01", "02", "[door creaks]") + cue("05", "06", "Ben: No.", number=2)
    assert starts(read(text, fit=True)) == [5.0]


def test_what_begins_too_early_is_named_also_where_times_are_kept():
    imported = read(cue("00", "05", "Anna: Oh.") + cue("03", "06", "Ben: No."), fit=True)
    assert starts(imported) == [0.0, 3.0]
    assert "begins before the one above it ends" in imported.notices[0].message


def test_a_script_keeps_the_times():
    imported = read(TWO, fit=True)
    script = export_dialog(imported.dialog, Format.SCRIPT)
    assert b"[Ben | start_s:5.0]" in script
    assert read(script.decode(), "scene.txt").dialog == imported.dialog


def test_time_before_the_first_cue_is_silence_unless_it_is_an_excerpt_of_something_long():
    assert silences(read(cue("07", "08", "Anna: Yes."))) == [7.0]
    imported = read("1\n01:10:00,000 --> 01:10:01,000\nAnna: Yes.\n")
    assert silences(imported) == []
    assert "4200 s" in imported.notices[0].message


def test_a_longer_gap_than_a_pause_may_last_is_cut():
    imported = read(TWO + "3\n00:20:00,000 --> 00:20:01,000\nAnna: Still here.\n")
    assert silences(imported) == [3.0, 300.0]
    assert imported.notices[0].line_number == 10


@pytest.mark.parametrize(
    "text",
    [
        "Anna: Hello.\nBen: Hi.",
        "ANNA: Hello.\nBEN: Hi.",
        "- Anna: Hello.\n- Ben: Hi.",
        ">> Anna: Hello.\n>> Ben: Hi.",
        "[Anna] Hello.\n[Ben] Hi.",
        "<i>Anna: Hello.</i>\n{\\an8}Ben: Hi.",
        '<font color="#ffffff">Anna:</font> Hello.\nBen: Hi.',
    ],
)
def test_names_of_every_usual_form_are_found(text):
    found = [(name.title(), said) for name, said in spoken(read(cue("00", "02", text)))]
    assert found == [("Anna", "Hello."), ("Ben", "Hi.")]


def test_text_without_a_name_goes_to_whoever_spoke_last_and_is_told_once():
    text = cue("00", "02", "Once upon a time") + TWO + cue("06", "07", "- Oh.", "- Well.")
    imported = read(text)
    assert spoken(imported)[0] == ("Narrator", "Once upon a time")
    assert spoken(imported)[-2:] == [("Ben", "Oh."), ("Ben", "Well.")]
    [first, second] = [notice for notice in imported.notices if "no speaker" in notice.message]
    assert (first.line_number, second.line_number) == (3, 15)
    assert "(Also line 16.)" in second.message


def test_a_word_with_a_colon_is_no_name_where_cues_have_none():
    lines = ["I said yes.", "Listen: it is late.", "He left.", "ANNA: Who?", "Nobody."]
    text = "".join(cue(f"{idx:02}", f"{idx + 1:02}", line) for idx, line in enumerate(lines))
    assert spoken(read(text))[1] == ("Narrator", "Listen: it is late.")
    assert spoken(read(text))[3] == ("ANNA", "Who?")


def test_sounds_that_nobody_says_stand_between_the_lines_with_a_notice():
    imported = read(TWO + cue("06", "07", "[door creaks]") + cue("07", "08", "(sighs)"))
    assert len(spoken(imported)) == 2
    assert list(imported.dialog)[-1] == Unspoken("sighs", UnspokenKind.ACTION)
    assert "“door creaks”, “sighs”" in imported.notices[0].message
    assert "Also line 15" in imported.notices[0].message
    assert imported.notices[0].line_number == 11


BROKEN = """1
00:00:01,000 --> 00:00:02,000
Anna: One.

2
00:0x:05,500 --> 00:00:07,000
Ben: Two.
3
00:00:09,000 --> 00:00:08,000
Anna: Three.

4
xx --> yy
Ben: Four.

Anna: Five.

5
00:00:20.5 -> 00:00:21.5

Ben: Six.

6
00:00:21,000 --> 00:00:30,000
Anna: Seven."""


def test_broken_timing_loses_no_word_and_is_named_by_its_lines():
    imported = read(BROKEN)
    words = ["One.", "Two.", "Three.", "Four.", "Five.", "Six.", "Seven."]
    assert [text for _, text in spoken(imported)] == words
    notices = {notice.message[:16]: notice for notice in imported.notices}
    assert notices["This timing can'"].line_number == 6
    assert "Also lines 9, 13" in notices["This timing can'"].message
    assert "Write 00:01:02,500" in notices["This timing can'"].message
    assert notices["This text has no"].line_number == 16
    assert notices["This cue begins "].line_number == 24
    assert silences(imported) == [1.0]


def test_a_thousand_broken_timings_are_one_notice():
    imported = read("".join(f"{n}\nxx --> yy\nAnna: Line {n}.\n\n" for n in range(1, 1001)))
    assert len(spoken(imported)) == 1000
    [notice] = imported.notices
    assert "994 more" in notice.message


def test_a_subtitle_file_without_timings_keeps_its_text():
    imported = read("Just words.\n\nMore words.")
    assert [text for _, text in spoken(imported)] == ["Just words.", "More words."]


def test_webvtt_voices_languages_entities_and_comments():
    imported = read(
        "WEBVTT - a title\nKind: captions\n\nNOTE nobody\nreads this\n\n"
        "STYLE\n::cue { color: red }\n\nintro\n00:00.000 --> 00:02.000 align:start\n"
        "<v.loud Anna Lee>Fish <b>&amp;</b>\nchips</v>\n<v Ben><lang de>Ja.</lang> Ok\n\n"
        "00:02.000 --> 00:03.000\n<c.x>Anna Lee: <00:02.500>Good</c>",
        "scene.vtt",
    )
    assert list(imported.dialog) == [
        Unspoken("nobody reads this"),
        Speech("Anna Lee", "Fish & chips"),
        Speech("Ben", "Ja. Ok", "de"),
        Speech("Anna Lee", "Good"),
    ]
    assert imported.notices == ()


def test_a_language_that_is_none_is_left_out_with_a_notice():
    imported = read("WEBVTT\n\n00:00.000 --> 00:01.000\n<v A><lang 123>Ja</lang>", "a.vtt")
    assert list(imported.dialog) == [Speech("A", "Ja")]
    assert imported.notices[0].line_number == 4


def test_a_pause_tag_that_cant_be_read_names_its_line():
    with pytest.raises(ScriptError, match=r"Line 3: The pause \[pause:soon\]"):
        read(cue("00", "01", "Anna: Wait [pause:soon] here."))


@pytest.mark.parametrize("text", ["WEBVTT", "WEBVTT\n\n00:00.000 --> 00:01.000\n"])
def test_subtitles_without_text_are_refused_with_an_example(text):
    with pytest.raises(ScriptError, match="hold no text"):
        read(text, "a.vtt")


def test_written_subtitles_count_from_one() -> None:
    dialog = Dialog((Speech("Ida", "Hello."), Silence(0.5), Speech("Tom", "Well.")))
    written = export_dialog(dialog, Format.SRT, durations_s=[1.25, 0.5, 2.0]).decode()
    assert written.splitlines() == [
        *("1", "00:00:00,000 --> 00:00:01,250", "Ida: Hello.", ""),
        *("2", "00:00:01,750 --> 00:00:03,750", "Tom: Well."),
    ]
    late = export_dialog(dialog, Format.SRT, durations_s=[3600.0, 0.5, 2.0]).decode()
    assert "\n01:00:00,500 --> 01:00:02,500\n" in late


def test_a_pause_out_of_range_is_no_sound_to_leave_out() -> None:
    cues = "1\n00:00:01,000 --> 00:00:02,000\n{}\n\n2\n00:00:03,000 --> 00:00:04,000\nHi.\n"
    for tag in ("(pause 10 h)", "[pause:10h]"):
        with pytest.raises(ScriptError, match=r"Line 3: .* out of range"):
            import_dialog(cues.format(tag).encode(), "scene.srt")


def test_a_silence_of_youtube_s_captions_stands_at_the_timing_after_it() -> None:
    text = "0:00:01.000,0:00:02.000\nANNA: Yes.\n\n0:00:05.000,0:00:06.000\nBEN: No.\n"
    lines = list(read(text, "captions.sbv").dialog)
    assert lines[-2:] == [Silence(3.0), Speech("BEN", "No.")]
    assert [line.line_number for line in lines[-2:]] == [4, 5]


def test_two_times_without_an_arrow_are_a_timing_that_cannot_be_read() -> None:
    cues = "1\n00:00:01,000 00:00:02,000\nHello.\n\n2\n00:00:03,000 --> 00:00:04,000\nHi.\n"
    found = import_dialog(cues.encode(), "scene.srt")
    assert [line.text for line in found.dialog if isinstance(line, Speech)] == ["Hello.", "Hi."]
    assert found.notices[0].line_number == 2
    assert found.notices[0].message.startswith("This timing can't be read.")


ROLLING = """WEBVTT

00:00:00.000 --> 00:00:02.000
hello<00:00:00.500><c> there</c>

00:00:02.000 --> 00:00:02.010
hello there

00:00:02.010 --> 00:00:04.000
hello there
how<00:00:03.500><c> are you</c>

00:00:04.000 --> 00:00:04.010
how are you

00:00:04.010 --> 00:00:06.000
how are you
fine<00:00:05.500><c> thanks</c>

00:00:08.000 --> 00:00:09.000
fine thanks
"""


def test_rolling_captions_are_said_once_and_keep_their_pauses():
    imported = import_dialog(ROLLING.encode(), "a.vtt")
    said = [getattr(line, "text", None) or line.duration_s for line in imported.dialog]
    assert said == ["hello there", "how are you", "fine thanks", 2.0, "fine thanks"]
    assert "These captions roll" in imported.notices[0].message


def test_who_says_the_same_three_times_says_it_three_times():
    cues = "".join(
        f"{n}\n00:00:0{n},000 --> 00:00:0{n + 1},000\nAnna: No.\n\n" for n in range(1, 5)
    )
    imported = import_dialog(cues.encode(), "a.srt")
    assert sum(isinstance(line, Speech) for line in imported.dialog) == 4


def test_a_sound_in_brackets_is_no_speaker_in_any_language_that_is_known():
    cues = "".join(
        f"{n}\n00:00:0{n},000 --> 00:00:0{n + 1},000\n[riendo] No {n}.\n\n" for n in range(1, 4)
    )
    dialog = import_dialog(cues.encode(), "a.srt").dialog
    assert dialog.speakers() == ("Narrator",)
