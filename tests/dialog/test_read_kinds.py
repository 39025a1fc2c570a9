"""What other programs write: each kind by several texts, with who says what and what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from studio.dialog.formats.dialog_file import import_dialog
from studio.dialog.model import Speech, Unspoken

*KINDS, _LAST = json.loads(Path(__file__).with_name("read_kinds.json").read_text("utf-8"))


def read(text: str, file: str):
    return import_dialog(text.encode(), file)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["name"])
def test_everybody_says_their_words(kind):
    lines = [line for line in read(kind["text"], kind["file"]).dialog if isinstance(line, Speech)]
    expected = [(name, text, *params) for name, text, *params in kind["said"]]
    given = [
        (line.speaker, line.text, dict(line.params)) if line.params else (line.speaker, line.text)
        for line in lines
    ]
    assert given == expected


@pytest.mark.parametrize("headings", _LAST["headings"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_are_headed_in_many_languages(headings, delimiter):
    text = f"{headings},X-1\nAnn,Hi there.,\nBo,Good day.,\n".replace(",", delimiter)
    lines = [line for line in read(text, "a.csv").dialog if isinstance(line, Speech)]
    assert [(line.speaker, line.text) for line in lines] == [
        ("Ann", "Hi there."),
        ("Bo", "Good day."),
    ]


def test_the_times_of_rows_are_silences():
    text = "Speaker,Start,End,Text\nAnn,0:01,0:02,Hi.\nBo,0:04.5,0:05,Ho.\n"
    silences = [
        line.duration_s for line in read(text, "a.csv").dialog if hasattr(line, "duration_s")
    ]
    assert silences == [2.5]


def test_what_steers_a_game_is_a_note_row_by_row():
    ink = "=== a ===\n-> b\n{ seen:\n  Ann: Yes. # loud\n- else:\n  Ann: No.\n}\n"
    notes = [line.text for line in read(ink, "a.ink").dialog if isinstance(line, Unspoken)]
    assert notes == ["a", "-> b", "{ seen:", "Ann: Yes. # loud", "- else:", "}"]
    rpy = 'label a:\n    e happy "Hi, [x]."\n    menu:\n        "Go":\n            e "No."\n'
    notes = [line.text for line in read(rpy, "a.rpy").dialog if isinstance(line, Unspoken)]
    assert notes == ["a", "e happy", 'e happy "Hi, [x]."', "menu:", '"Go":']


def test_joint_names_are_told():
    told = read("ANN: Go.\nBO: Yes.\nANN AND BO: Ha!\nALL: Ho!\n", "a.txt").notices
    assert [notice.message.split("”")[0] for notice in told] == ["“ANN AND BO", "“ALL"]
    assert read("ANN: Go.\nBo and Luke: Yes.\n", "a.txt").notices == ()


def test_marks_that_nobody_says_are_notes():
    imported = read("Ann: Since 1840.[1]\nBo: Press [1], m² or [sigh].\n", "a.txt")
    assert [line.text for line in imported.dialog] == [
        "Since 1840.", "[1]", "Press [1], m² or [sigh].",
    ]  # fmt: skip
    assert "“[1]”" in imported.notices[0].message


def test_slashes_dashes_and_overlaps_are_kept():
    text = "Ann: I said / you could.\nBo: [overlapping] Yes.\nAnn: But I —\n"
    assert [line.text for line in read(text, "a.txt").dialog] == [
        "I said / you could.", "[overlapping] Yes.", "But I —",
    ]  # fmt: skip


def test_times_inside_sentences_are_said():
    text = "We met at 10:30 in town.\nThey left at 11:00 by bus.\n"
    assert [line.text for line in read(text, "a.txt").dialog] == [text.replace("\n", " ").strip()]
