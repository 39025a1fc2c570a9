import json

import pytest

from studio.dialog.formats.dialog_file import (
    Format,
    ImportOptions,
    export_dialog,
    import_dialog,
    read_dialog_text,
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


def read(text, name="scene.csv"):
    return import_dialog(text.encode(), name)


def said(notice):
    return f"{notice.line_number}: {notice.message}"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    ("headings", "row"),
    [
        (["speaker", "text"], ["Anna", "Hi."]),
        (["Character Name", "Dialogue"], ["Anna", "Hi."]),
        (["CHARACTER", "LINE"], ["Anna", "Hi."]),
        (["Rolle", "Satz"], ["Anna", "Hi."]),
        (["id", "Text", "speaker_id", "Start time"], ["1", "Hi.", "Anna", "0:01"]),
        (["line", "name", "text"], ["1", "Anna", "Hi."]),
        (["voice", "text"], ["Anna", "Hi."]),
    ],
)
def test_columns_are_found_by_their_headings(delimiter, headings, row):
    imported = read(f"{delimiter.join(headings)}\r\n{delimiter.join(row)}\r\n")
    assert list(imported.dialog) == [Speech("Anna", "Hi.")]
    assert imported.notices == ()


@pytest.mark.parametrize("written", ["Heart (woman)", "kokoro/Heart", "af_heart"])
def test_a_voice_beside_a_speaker_is_the_speakers(written):
    imported = read(f"voice,speaker,text\r\n{written},Anna,Hi.\r\n,Anna,Oh.\r\n")
    assert list(imported.dialog) == [
        Speech("Anna", "Hi.", params={"voice": written}),
        Speech("Anna", "Oh."),
    ]
    assert imported.notices == ()
    again = export_dialog(imported.dialog, Format.CSV)
    assert import_dialog(again, "again.csv").dialog == imported.dialog


def test_every_column_there_is():
    imported = read(
        "Speaker,Text,Language,Seed,Pause,Audio,speed,style\n"
        'Anna,"Yes, I know.",de_AT,7.0,500ms,,1.2,calm\n'
        ",,,,1.5,,,\n"
        ",,,,,bell.wav,,\n"
        'Ben,Non.,French,,"0,5",,,\n'
    )
    assert list(imported.dialog) == [
        Speech("Anna", "Yes, I know.", "de-AT", 7, {"speed": 1.2, "style": "calm"}),
        Silence(0.5),
        Silence(1.5),
        Audio("bell.wav"),
        Speech("Ben", "Non.", "fr"),
        Silence(0.5),
    ]
    assert imported.notices == ()


def test_a_pause_in_milliseconds_says_so_in_its_heading():
    imported = read("speaker,text,Pause before (ms),pause_after_ms\nAnna,Yes.,250,500\n")
    assert list(imported.dialog) == [Silence(0.25), Speech("Anna", "Yes."), Silence(0.5)]


def test_what_cant_be_used_is_told_with_its_line_and_the_rest_is_kept():
    imported = read(
        "speaker,text,language,seed,props\nAnna [old],Yes.,Klingonic,soon,a lamp\n,No.,,,\n"
    )
    assert list(imported.dialog) == [
        Speech("Anna (old)", "Yes."), Unspoken("props: a lamp"), Speech("Anna (old)", "No.")
    ]  # fmt: skip
    told = " / ".join(map(said, imported.notices))
    for part in ["1: The column “props”", "2: “Klingonic” is no language", "2: The seed soon",
                 "2: “Anna [old]”", "3: This text has no speaker"]:  # fmt: skip
        assert part in told


def test_a_table_without_headings_is_read_and_told():
    imported = read("Anna,Hello.\nBen,Hi.\n")
    assert list(imported.dialog) == [Speech("Anna", "Hello."), Speech("Ben", "Hi.")]
    assert "no headings" in imported.notices[0].message


def test_a_quotation_mark_without_a_partner_swallows_nothing():
    imported = read('speaker,text\nAnna,Hi.\nBen,"What?\nAnna,Nothing.\n')
    assert [line.text for line in imported.dialog] == ["Hi.", '"What?', "Nothing."]
    assert said(imported.notices[0]).startswith("3: The quotation marks")


def test_a_text_cut_at_its_commas_is_put_together():
    imported = read("speaker,text,language\nAnna,Yes, I know, I know.,en\n")
    assert list(imported.dialog) == [Speech("Anna", "Yes, I know, I know.", "en")]
    assert said(imported.notices[0]).startswith("2: This row has more cells")


def test_excel_files_with_their_hint_and_quoted_line_breaks():
    imported = read('sep=;\r\nspeaker;text\r\nAnna;"Two\r\nlines."\r\nBen;Hi.\r\n')
    assert list(imported.dialog) == [Speech("Anna", "Two lines."), Speech("Ben", "Hi.")]
    assert [line.line_number for line in imported.dialog] == [3, 5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("speaker,mood\nAnna,calm,x\n", "Line 1: No column is headed as the text. Name"),
        ("one column\nonly\n", "Line 1: No column"),
        ("speaker,text\n,\n", "holds no lines. Name the columns"),
        ("speaker,text,pause\nAnna,Hi.,soon\n", r"Line 2: The pause \[pause:soon\]"),
        ("speaker,text,pause\nAnna,Hi.,1] x\n", "Line 2: The pause"),
        ("speaker,text\nAnna," + "a" * 100_001, "Line 2: .*100,000 are the most"),
        ('speaker,text\nAnna,"' + "a" * 140_000, "long cells"),
        ("speaker,text\n" + "A,b\n" * 20_001, "Line 20002: .*Divide it into parts"),
    ],
)  # fmt: skip
def test_what_cant_be_read_gets_one_message_with_place_and_remedy(text, said):
    with pytest.raises(ScriptError, match=said):
        read(text)


@pytest.mark.parametrize(
    ("heading", "cell", "allowed_s"),
    [
        ("max_duration", "1.5", 1.5),
        ("Max Duration (ms)", "1500", 1.5),
        ("maxDuration", "1,5", 1.5),
        ("Max length", "2 s", 2.0),
        ("max_duration", "0", None),
    ],
)
def test_ids_file_names_and_lengths_stay_with_the_line(heading, cell, allowed_s):
    imported = read(f'id;character;line;filename;{heading}\nVO_1;Guard;Halt!;"vo/1.wav";{cell}\n')
    [line] = imported.dialog
    allowed = {"max_duration": allowed_s} if allowed_s else {}
    assert line.params == {"id": "VO_1", "file": "vo/1.wav", **allowed}
    assert imported.notices == ()
    written = export_dialog(imported.dialog, Format.CSV).decode()
    assert list(read(written).dialog) == [line]


IDS = [
    ("id", ["1001", "1002", "1004"], [1001, 1002, 1004]),
    ("String ID", ["12", "13", "14"], [12, 13, 14]),
    ("key", ["007", "2.1", "2"], ["007", "2.1", 2]),
    ("id", ["3", "1", "2"], [3, 1, 2]),
    ("id", ["1", "2", "VO_3"], [1, 2, "VO_3"]),
    ("id", ["1", "2", "3"], []),
    ("ID", ["#0", "#1", "#2"], []),
    ("id", ["01", "02", "01"], []),
    ("id", ["1", "", "2"], []),
]


@pytest.mark.parametrize(("heading", "ids", "kept"), IDS)
def test_ids_of_digits_are_kept_and_numbers_of_rows_are_not(heading, ids, kept):
    rows = "".join(f"{one},Guard,Halt!\n" for one in ids)
    imported = read(f"{heading},character,line\n{rows}")
    assert [line.params["id"] for line in imported.dialog if "id" in line.params] == kept
    assert imported.notices == ()


@pytest.mark.parametrize(("heading", "ids", "kept"), IDS)
@pytest.mark.parametrize("form", ["array", "lines", "wrapped"])
def test_json_keeps_the_ids_that_tables_keep(form, heading, ids, kept):
    items = [
        {
            heading: int(one) if str(one).isdigit() and one[0] != "0" else one,
            "who": "A",
            "text": "X",
        }
        for one in ids
    ]
    text = {
        "array": json.dumps(items), "lines": "\n".join(map(json.dumps, items)),
        "wrapped": json.dumps({"lines": items}),
    }[form]  # fmt: skip
    imported = read(text, "a.json")
    assert [line.params["id"] for line in imported.dialog if "id" in line.params] == kept
    assert imported.notices == ()


@pytest.mark.parametrize(
    "item",
    [
        {"key": "VO_1", "filename": "vo/1.wav", "maxDuration": 1.5},
        {"stringId": "VO_1", "file": "vo/1.wav", "max_duration_ms": 1500},
        {"id": "VO_1", "wav": "vo/1.wav", "Max length (ms)": "1500"},
        {"id": "VO_1", "voiceFile": "vo/1.wav", "timeLimitMilliseconds": 1500},
    ],
)
def test_json_of_games_keeps_ids_file_names_and_lengths(item):
    item = {"speaker": "Guard", "text": "Halt!", **item}
    other = {"speaker": "Guard", "text": "Who?", "maxDuration": None}
    for text in (json.dumps([item, other]), f"{json.dumps(item)}\n{json.dumps(other)}"):
        imported = read(text, "a.json")
        params = {"id": "VO_1", "file": "vo/1.wav", "max_duration": 1.5}
        assert [line.params for line in imported.dialog] == [params, {}]
        assert imported.notices == ()


def test_a_recogniser_s_ids_in_json_are_nobody_s():
    item = {"id": "9f3c", "start": 0.5, "end": 1.5, "speaker": "A", "text": "Hm."}
    [line] = read(json.dumps({"segments": [item]}), "a.json").dialog
    assert line.params == {}


def test_a_length_in_json_that_is_none_stays_as_it_is():
    imported = read('[{"speaker": "A", "text": "X", "maxDuration": "short"}]', "a.json")
    assert list(imported.dialog) == [Speech("A", "X", params={"max_duration": "short"})]


def test_exported_columns_are_headed_as_other_programs_head_them():
    params = {"id": 1001, "file": "=vo/1.wav", "max_duration": 1.5}
    dialog = Dialog((Speech("A", "X", params=params), Speech("B", "Y", params={"id": "VO_2"})))
    written = export_dialog(dialog, Format.CSV).decode("utf-8-sig")
    assert written == (
        "speaker,text,id,file,max_duration\r\nA,X,1001,'=vo/1.wav,1.5\r\nB,Y,VO_2,,\r\n"
    )
    assert read(written).dialog == dialog
    earlier = 'speaker,text,param:id,param:file\nA,X,VO_2,"""a b.wav"""\n'
    assert read(earlier).dialog.lines[0].params == {"id": "VO_2", "file": "a b.wav"}


@pytest.mark.parametrize("text", ["X", ""])
@pytest.mark.parametrize("name", ["id", "file", "max_duration"])
@pytest.mark.parametrize(
    "value",
    [1, 2, "1", "", " x ", "007", 7.0, True, "true", "a\nb", 0, -1, 900, "=1", "'=1", '"q"'],
)
def test_columns_of_other_programs_give_back_every_value(name, value, text):
    dialog = Dialog((Speech("A", text, params={name: value}), Speech("B", text)))
    for format_ in (Format.CSV, Format.TSV):
        params = (
            read(export_dialog(dialog, format_).decode(), f"a.{format_}").dialog.lines[0].params
        )
        assert params == {name: value}
        assert type(params[name]) is type(value) or name == "max_duration"


def test_a_length_that_is_none_is_told_and_the_line_kept():
    imported = read("character,line,max_duration\nGuard,Halt!,short\n")
    assert list(imported.dialog) == [Speech("Guard", "Halt!")]
    assert "2: The max duration “short” can't be read." in said(imported.notices[0])


def test_a_column_of_numbers_is_no_text_and_the_file_s_name_no_recording():
    imported = read(
        "Line #,Role,Script,Direction,Take,Filename\n"
        "1,Bob,Hello.,angrily,1,bob_001\n2,Ann,Hi.,as if asleep,1,ann_001\n"
    )
    assert list(imported.dialog) == [
        Speech("Bob", "(angrily) Hello.", params={"file": "bob_001"}),
        Speech("Ann", "[direction: as if asleep] Hi.", params={"file": "ann_001"}),
    ]
    assert imported.notices == ()


def test_a_file_in_a_row_without_text_is_a_recording():
    imported = read("speaker,text,file\nBob,Hi.,\n,,bell.wav\n")
    assert list(imported.dialog) == [Speech("Bob", "Hi."), Audio("bell.wav")]


@pytest.mark.parametrize("heading", ["English", "en", "en-US", "EN"])
def test_a_column_headed_with_a_language_is_the_text(heading):
    imported = read(f"key,speaker,{heading},fr\ngreet_1,Bob,Hello.,Bonjour.\n")
    (line,) = imported.dialog
    assert (line.speaker, line.text, line.params) == ("Bob", "Hello.", {"id": "greet_1"})
    assert line.language.casefold().startswith("en")
    assert f"“{heading}” is read, and not fr" in imported.notices[0].message


def test_a_table_with_a_text_has_no_use_for_the_names_of_languages():
    imported = read("speaker,text,de\nBob,Hello.,Hallo.\n")
    assert list(imported.dialog) == [Speech("Bob", "Hello.")]


def test_ids_are_kept_and_go_to_no_voice():
    text = "id,character_id,text,emotion,next_id\nl1,bob,Hello.,angry,l2\nl2,ann,Hi.,,\n"
    imported = read(text)
    assert list(imported.dialog) == [
        Speech("bob", "(angry) Hello.", params={"id": "l1"}),
        Speech("ann", "Hi.", params={"id": "l2"}),
    ]
    planned = plan(imported.dialog, SpeechLimits(200))
    assert [dict(segment.params) for segment in planned.segments] == [{}, {}]
    assert "setting" not in " ".join(notice.message for notice in planned.notices)


def test_a_running_number_is_no_id():
    (line, _) = read("id,speaker,text\n1,Bob,Hello.\n2,Ann,Hi.\n").dialog
    assert line.params == {}


@pytest.mark.parametrize("format_", [Format.CSV, Format.TSV])
def test_a_countdown_that_was_exported_is_read_again(format_: Format) -> None:
    dialog = read_dialog_text("Anna: 3\nAnna: 2\nBen: 1").dialog
    again = import_dialog(export_dialog(dialog, format_), f"scene.{format_}").dialog
    assert [(one.speaker, one.text) for one in again] == [
        ("Anna", "3"),
        ("Anna", "2"),
        ("Ben", "1"),
    ]


def test_a_number_beside_a_heading_of_a_screenplay_is_no_page() -> None:
    said = Dialog((Speech("0", ""), Unspoken("INT. ROOM - DAY", UnspokenKind.HEADING)))
    back = import_dialog(export_dialog(said, Format.TSV), "a.tsv").dialog
    assert [(line.text, getattr(line, "speaker", None)) for line in back] == [
        ("", "0"),
        ("INT. ROOM - DAY", None),
    ]


SHEET = """Wieso,Wer denn so,Was gesagt wird
hell,Anna,Guten Tag und so
hell,Ben,Wie geht es dir
dunkel,Anna,Mir geht es gut heute
"""


def columns_of(text: str, *chosen: str, name: str = "scene.csv"):
    return import_dialog(text.encode(), name, ImportOptions(columns=chosen))


def lines_of(imported):
    return [(getattr(line, "speaker", None), line.text) for line in imported.dialog]


def test_of_a_table_with_headings_that_nobody_knows_the_speaker_and_the_text_are_found() -> None:
    read = columns_of(SHEET)
    assert read.columns.headings == ("Wieso", "Wer denn so", "Was gesagt wird")
    assert read.columns.roles == ("note", "speaker", "text")
    assert read.columns.rows[2] == ("dunkel", "Anna", "Mir geht es gut heute")
    assert lines_of(read)[:3] == [
        ("Anna", "Guten Tag und so"),
        (None, "Wieso: hell"),
        ("Ben", "Wie geht es dir"),
    ]
    assert [one.message.split(";")[0] for one in read.notices[:2]] == [
        "No column is headed as the text",
        "No column is headed as the speaker",
    ]


def test_what_columns_are_read_as_can_be_chosen() -> None:
    read = columns_of(SHEET, "speaker", "", "text")
    assert lines_of(read) == [
        ("hell", "Guten Tag und so"),
        ("hell", "Wie geht es dir"),
        ("dunkel", "Mir geht es gut heute"),
    ]
    assert read.columns.roles == ("speaker", "", "text")
    assert not read.notices


def test_a_chosen_translation_is_in_its_language() -> None:
    read = columns_of("character,en,de\nAnna,Hello you.,Hallo du.\n", "speaker", "", "text")
    assert [(line.text, line.language) for line in read.dialog] == [("Hallo du.", "de")]


def test_a_chosen_column_keeps_its_unit() -> None:
    text = "who,pause_ms,line\nAnna,500,Hello there.\nBen,,Hi.\n"
    assert Silence(0.5) in columns_of(text, "speaker", "pause", "text").dialog.lines


def test_of_a_table_without_headings_columns_can_be_exchanged() -> None:
    text = "Hi there.;Anna\nNo.;Ben\nYes, I do.;Anna\n"
    assert lines_of(columns_of(text, "text", "speaker"))[0] == ("Anna", "Hi there.")


def test_another_number_of_columns_than_the_table_has_changes_nothing() -> None:
    assert lines_of(columns_of(SHEET, "text", "speaker")) == lines_of(columns_of(SHEET))


def test_a_speaker_and_a_text_alone_leave_no_choice() -> None:
    assert read("speaker,text\nAnna,Hi.\n").columns is None
    assert (
        read(
            ",".join(f"c{idx}" for idx in range(59)) + ",who,line\n" + "," * 59 + "Anna,Hi."
        ).columns
        is None
    )


def test_remarks_of_one_word_are_notes_and_no_setting() -> None:
    imported = read("speaker,text,notes\nAnna,Hi.,loud\n")
    assert [line.text for line in imported.dialog] == ["Hi.", "loud"]
