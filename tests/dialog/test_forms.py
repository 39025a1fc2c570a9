"""Forms compete for a text: what they claim is in `docs/develop/reading.md`."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from growth import count_calls

from studio.dialog.formats.dialog_file import format_of_suffix, import_dialog, read_dialog_text
from studio.dialog.model import Speech, Unspoken
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.encoding import decode_text
from studio.dialog.reading.form import Explanation, Form, find_claim, list_forms
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source
from studio.dialog.script import parse_script

FOLDERS = ("real_scripts", "written_forms", "pasted_forms")
SAMPLES = sorted(
    path
    for folder in FOLDERS
    for path in (Path(__file__).parent / folder).iterdir()
    if path.name not in ("SOURCES.md", "expected.json")
)
PLAIN = "Anna: How long?\nBen: Long enough.\nAnna: Then we wait.\n"


def source_of(text, name="The script"):
    return Source(text, format_of_suffix(name), narrator=None)


def said(text):
    lines = read_dialog_text(text).dialog
    return [(line.speaker, line.text) for line in lines if isinstance(line, Speech)]


def read_with(forms, text, name):
    remarks = ImportNotices()
    claim = find_claim(source_of(text, name), forms, remarks)
    read = claim.read(remarks)
    return claim.form.name, read.parsed.dialog, read.title, remarks.notices()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_the_order_of_registration_changes_nothing(path):
    text = decode_text(path.read_bytes(), path.name, ImportNotices())
    forms = list(list_forms())
    expected = read_with(forms, text, path.name)
    random.Random(path.name).shuffle(forms)
    assert read_with(forms, text, path.name) == expected
    assert read_with(forms[::-1], text, path.name) == expected


def test_three_plain_lines_pass_few_modules():
    read_dialog_text(PLAIN)
    entered = set()

    def note(frame, event, _):
        place = Path(frame.f_code.co_filename).parts
        if event == "call" and "dialog" in place and "studio" in place:
            entered.add(place[place.index("dialog") :])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        read_dialog_text(PLAIN)
    finally:
        sys.setprofile(before)
    assert ("dialog", "script.py") in entered
    assert len(entered) <= 8


@pytest.mark.parametrize("end", ["\n", "\n\n"])
def test_plain_lines_cost_hardly_more_than_by_the_own_grammar(end):
    text = "".join(
        f"{name}: This is line {idx} of a long evening by the weir.{end}"
        for idx in range(500)
        for name in ("Anna", "Ben")
    )
    read_dialog_text(text)
    own = count_calls(lambda: parse_script(text))
    assert count_calls(lambda: read_dialog_text(text)) <= 1.5 * own


@pytest.mark.parametrize(
    "text",
    [
        "Anna: [softly] Hm.\nBen: Yes.\n",
        "Anna: *Hm.*\nBen: Yes.\n",
        "Word count: Eighty.\nAnna: Hm.\nBen: Yes.\n",
        "Anna: Hm.\nBen:\n",
        "Setting: A weir.\nAnna: Hm.\n",
    ],
)
def test_what_another_form_may_claim_is_left_to_all_of_them(text):
    """Its rows are read as with a row more that the own grammar alone can't read."""
    more = read_dialog_text(text + "\n(They wait.)\n").dialog
    lines = [line for line in more if isinstance(line, Speech)]
    assert [line for line in read_dialog_text(text).dialog if isinstance(line, Speech)] == lines


def test_a_new_form_is_one_module():
    captions = ">>ANNA How long?\n>> BEN: Long enough.\nMuch too long.\n>>ANNA Then we wait.\n"
    assert said(captions) == [
        ("ANNA", "How long?"),
        ("BEN", "Long enough. Much too long."),
        ("ANNA", "Then we wait."),
    ]
    assert said("Anna: 2 >>1 is so.\nBen: >>NO. It is.\n") == [
        ("Anna", "2 >>1 is so."),
        ("Ben", ">>NO. It is."),
    ]


def explain_stars(source):
    rows = source.shown.rows
    if not all(row.startswith("+") for _, row in rows if row):
        return None
    written = [(number, f"[{row[1:].replace('+', '] ', 1)}") for number, row in rows]
    return explain_rows(source, written, len(rows))


def test_a_form_that_is_registered_wins_what_it_explains_best():
    form = Form("pluses", 2.0, explain_stars)
    name, dialog, *_ = read_with([*list_forms(), form], "+Anna+How long?\n+Ben+Long.\n", "a.txt")
    assert name == "pluses"
    assert [(line.speaker, line.text) for line in dialog] == [
        ("Anna", "How long?"),
        ("Ben", "Long."),
    ]
    assert read_with([*list_forms(), form], PLAIN, "a.txt")[0] == "a script"


def test_a_near_tie_is_told_and_decided_by_name():
    def explain(source: Source) -> Explanation:
        return explain_rows(source, source.shown.rows, 99)

    forms = [Form("hymns", 2.0, explain), Form("an epic", 2.0, explain), *list_forms()]
    name, _, _, notices = read_with(forms, "Anna: Hm.\n(She waits.)\n", "a.txt")
    assert name == "an epic"
    assert "read as an epic; it may as well be hymns" in notices[0].message


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_no_sample_is_a_near_tie(path):
    notices = import_dialog(path.read_bytes(), path.name).notices
    assert not any("it may as well be" in notice.message for notice in notices)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "美咲,船は？\n純(ささやき),さあ。\n美咲,まだだ。\n",
            [("美咲", "船は？"), ("純", "[direction: ささやき] さあ。"), ("美咲", "まだだ。")],
        ),
        (
            '{"segments": [{"text": " Hm."}, {"text": " So?", "speaker": "A"}, {"text": " No.", '
            '"speaker": null}]}',
            [("Narrator", "Hm."), ("A", "So?"), ("A", "No.")],
        ),
        (
            '{"results": {"utterances": [{"start": 0.1, "speaker": 0, "transcript": "Hi."}, '
            '{"start": 1.1, "speaker": 1, "transcript": "Yo."}]}}',
            [("Speaker 0", "Hi."), ("Speaker 1", "Yo.")],
        ),
        ("Personnage;Réplique\nNora;Bonsoir.\n", [("Nora", "Bonsoir.")]),
        ("Персонаж,Реплика\nАнна,Да.\n", [("Анна", "Да.")]),
        (
            '<Person1>Hi <emphasis>there</emphasis>, <sub alias="Doctor">Dr</sub> Vale.</Person1>\n'
            '<Person2><prosody rate="90%">Slow words.</prosody></Person2>\n',
            [("Person1", "Hi there, Doctor Vale."), ("Person2", "Slow words.")],
        ),
        (
            "title: A\n---\nBaker: Say \\{this\\} now.\n=> Baker: One. #line:2\n"
            "Cook: No. 1 \\# 2\n===\n",
            [("Baker", "Say {this} now."), ("Baker", "One."), ("Cook", "No. 1 # 2")],
        ),
    ],
)  # fmt: skip
def test_forms_of_other_programs_are_read(text, expected):
    assert said(text) == expected


@pytest.mark.parametrize("heading", ["INTRO", "[AD BREAK]", "Outro", "[OUTRO]"])
def test_parts_of_a_show_are_headings(heading):
    dialog = read_dialog_text(f"Nadia: Hi.\n\n{heading}\n\nTom: (softly) Hm.\n").dialog
    assert [line.text for line in dialog if isinstance(line, Unspoken)] == [heading.strip("[]")]
    assert dialog.speakers() == ("Nadia", "Tom")


@pytest.mark.parametrize(("cell", "kept"), [("0.4", 0.4), ("00:00:01:05", None)])
def test_a_duration_is_no_pause(cell, kept):
    (line,) = read_dialog_text(
        f"Speaker,Text,Duration,Status\nNora,Yes.,{cell},Done\n"
    ).dialog.lines[:1]
    assert line.params.get("max_duration") == kept
    assert "Status" not in line.params
