"""Scripts as people have them, one file for each form, and what is read of each.

`written_forms/expected.json` has for each file the title, what is said and what stands between the
lines; where the form leaves something out, words of the notice that names it.
"""

import json
from pathlib import Path

import pytest
import regex
from told_rows import told_rows

from studio.dialog.formats.dialog_file import (
    Format,
    ImportOptions,
    export_dialog,
    import_dialog,
    read_dialog_text,
)
from studio.dialog.model import Dialog, Speech, SpeechLimits, Unspoken
from studio.dialog.planning import FailedSegment, SpeechSegment, plan

FOLDER = Path(__file__).parent / "written_forms"
EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf-8"))
WORD = regex.compile(r"[\p{L}\p{N}]{3,}")
TEXTS = [name for name in EXPECTED if name.endswith((".txt", ".md", ".fountain", ".vtt", ".srt"))]
"""What is no source, table or data, whose keys and commands aren't meant for a reader."""
OF_FORMATS = {"cont", "off"}
"""What stands beside a name and says where a voice comes from, or that it goes on."""


def read(name, narrator=None):
    return import_dialog((FOLDER / name).read_bytes(), name, ImportOptions(narrator=narrator))


def said(dialog):
    return [f"{line.speaker}: {line.text}" for line in dialog if isinstance(line, Speech)]


def test_every_file_has_what_is_expected_of_it():
    files = {path.name for path in FOLDER.iterdir()} - {"expected.json"}
    assert files == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_everybody_says_their_lines_and_nothing_else(name):
    imported, expected = read(name), EXPECTED[name]
    assert said(imported.dialog) == expected["said"]
    between = [line.text for line in imported.dialog if isinstance(line, Unspoken)]
    assert between == expected.get("between", [])
    assert imported.title == expected.get("title")


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_the_same_pasted_and_imported_and_reads_back(name):
    imported = read(name)
    pasted = read_dialog_text((FOLDER / name).read_text("utf-8-sig"))
    assert (pasted.dialog, pasted.title) == (imported.dialog, imported.title)
    for narrator in (None, "Reader"):
        dialog = read(name, narrator).dialog
        for format_ in (Format.SCRIPT, Format.FOUNTAIN, Format.CSV, Format.JSON):
            again = import_dialog(export_dialog(dialog, format_), f"scene.{format_}")
            assert again.dialog == dialog, format_


@pytest.mark.parametrize("name", EXPECTED)
def test_no_markup_and_no_direction_in_brackets_is_spoken(name):
    segments = plan(read(name).dialog, SpeechLimits(100_000)).segments
    assert not any(isinstance(one, FailedSegment) for one in segments)
    heard = " ".join(one.text for one in segments if isinstance(one, SpeechSegment))
    assert regex.findall(r"\S*[\[\]<>*_#|{}]\S*", heard) == EXPECTED[name].get("heard", [])


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_is_lost_without_a_notice(name):
    imported, expected = read(name), EXPECTED[name]
    notices = " ".join(notice.message for notice in imported.notices)
    for words in expected.get("noted", []):
        assert words in notices
    kept = [imported.title or "", notices, *expected.get("of the format", [])]
    for line in imported.dialog:
        if isinstance(line, Speech):
            kept += [line.speaker, line.text, *map(str, line.params.values())]
        elif isinstance(line, Unspoken):
            kept.append(line.text)
    is_timed = imported.chat or imported.format in (Format.SRT, Format.VTT)
    known = OF_FORMATS.union(map(str.casefold, WORD.findall(" ".join(kept))))
    numbers = told_rows(imported.notices)
    lost = {
        number: missing
        for number, row in enumerate((FOLDER / name).read_text("utf-8-sig").splitlines(), 1)
        if number not in numbers
        and (
            missing := [
                one
                for one in WORD.findall(row)
                if one.casefold() not in known and not (is_timed and one.isdigit())
            ]
        )
    }
    assert lost == {}


@pytest.mark.parametrize(
    "names",
    [
        ["Mira", "Mira (cold)"],
        ["1 Lord", "2 Lady", "3 Gent"],
        ["小梅", "小梅（生气地）"],
        ["0:45", "Mira"],
        ["Note", "Location"],
    ],
)
def test_names_that_look_like_a_form_survive_a_script(names):
    lines = tuple(Speech(name, f"I am {number}.") for number, name in enumerate(names * 2))
    written = export_dialog(Dialog(lines), Format.SCRIPT)
    assert import_dialog(written, "scene.txt").dialog == Dialog(lines)
