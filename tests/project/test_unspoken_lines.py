"""Headings, notes and action in a project: edited, undone, merged, kept on disk, never exported."""

from __future__ import annotations

import json

import pytest
from project_scenes import Bench, document_of, ops, text_edit
from test_damage import IDA

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.dialog.script import write_script
from studio.errors import BadInput
from studio.project.document import LineKind, ProjectLine
from studio.project.script_merge import merge_script

NOTE = "00000000000f"


def note(**fields: object) -> dict[str, object]:
    row = {"line_id": NOTE, "kind": "silence", "duration_s": 0, "unspoken": "note", "text": "Slow."}
    return row | fields


def insert(**fields: object) -> dict[str, object]:
    return {"op": "insert", "after": None, "lines": [note(**fields)]}


def test_a_note_is_edited_undone_and_opened_again(bench: Bench) -> None:
    session = bench.make(document_of(2))
    session.edit(ops(insert()), IDA, session.rev)
    session.edit(ops(text_edit(NOTE, "Slower.")), IDA, session.rev)
    change = {"op": "set", "line_ids": [NOTE], "fields": {"unspoken": "heading"}}
    session.edit(ops(change), IDA, session.rev)
    session.close()
    again = bench.open("abc")
    first = next(iter(again.document))
    assert (first.text, first.unspoken) == ("Slower.", "heading")
    again.undo(IDA, again.rev)
    assert next(iter(again.document)).unspoken == "note"
    bench.kill(again)


def test_an_earlier_studio_takes_it_for_a_pause_of_no_length(bench: Bench) -> None:
    session = bench.make(document_of(1))
    session.edit(ops(insert()), IDA, session.rev)
    session.close()
    stored = json.loads((bench.root / "abc" / "project.json").read_bytes())
    assert stored["version"] == 1
    (row,) = (line for line in stored["lines"] if line["line_id"] == NOTE)
    assert (row["kind"], row["duration_s"]) == ("silence", 0.0)


@pytest.mark.parametrize(
    "fields", [{"duration_s": 2}, {"kind": "speech", "speaker": "Ida"}, {"unspoken": "song"}]
)
def test_what_is_no_silence_of_0_s_is_refused(bench: Bench, fields: dict[str, object]) -> None:
    session = bench.make(document_of(1))
    with pytest.raises(BadInput):
        session.edit(ops(insert(**fields)), IDA, session.rev)
    session.edit(ops(insert()), IDA, session.rev)
    for changed in ({"duration_s": 1}, {"unspoken": "song"}):
        with pytest.raises(BadInput):
            session.edit(
                ops({"op": "set", "line_ids": [NOTE], "fields": changed}), IDA, session.rev
            )
    spoken = session.document.order[1]
    with pytest.raises(BadInput):
        session.edit(
            ops({"op": "set", "line_ids": [spoken], "fields": {"unspoken": "note"}}),
            IDA,
            session.rev,
        )
    bench.kill(session)


def test_a_note_is_no_part_of_speech(bench: Bench) -> None:
    session = bench.make(document_of(2))
    spoken = session.document.order[0]
    session.edit(ops(insert() | {"after": spoken}), IDA, session.rev)
    with pytest.raises(BadInput, match="note"):
        session.edit(ops({"op": "join", "line_ids": [spoken, NOTE]}), IDA, session.rev)
    found = {"op": "replace", "find": "Slow", "with": "Fast"}
    session.edit(ops(found), IDA, session.rev)
    assert session.document.lines[NOTE].text == "Fast."
    bench.kill(session)


@pytest.mark.parametrize(
    "row",
    [
        "Would you like a drink?",
        "Sure! Here's a script:",
        "10:30",
        "12.",
        "---",
        "**Ida**",
        "<think>",
        "[SFX: door]",
        "MUSIC: a waltz",
        "The End",
    ],
)
def test_what_is_typed_in_a_project_s_script_is_said_as_it_is(bench: Bench, row: str) -> None:
    session = bench.make(document_of(2))
    _, text, _ = session.format_script()
    session.merge_script(f"{text}\n{row}\n{row}\n", IDA, session.rev)
    assert [line.text for line in session.document][-1] == f"{row} {row}"
    _, shown, _ = session.format_script()
    session.merge_script(shown, IDA, session.rev)
    assert [line.text for line in session.document][-1] == f"{row} {row}"
    bench.kill(session)


def test_a_script_keeps_the_ids_of_rows_that_stay() -> None:
    text = "## One\n# who?\nIda: Here.\n#> She goes.\n"
    first = merge_script(document_of(0), read_dialog_text(text).dialog)
    again = merge_script(
        first, read_dialog_text(text.replace("She goes.", "She goes out.") + "## Two\n").dialog
    )
    assert again.order[:4] == first.order
    assert write_script(again.to_dialog()) == text.replace("goes.", "goes out.") + "## Two\n"


def test_a_pause_and_a_heading_are_never_one_row() -> None:
    first = merge_script(document_of(0), read_dialog_text("[pause:0s]\nIda: Here.\n").dialog)
    again = merge_script(first, read_dialog_text("## One\nIda: Here.\n").dialog)
    assert again.order[0] != first.order[0]
    assert again.lines[again.order[0]] == ProjectLine(
        again.order[0], LineKind.SILENCE, text="One", duration_s=0.0, unspoken="heading"
    )
