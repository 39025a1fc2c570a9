"""Two people undo in one project: each takes back what is theirs, nobody's words go unasked."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project_scenes import Bench, document_of, ops, text_edit

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import BadInput, Conflict, EditConflict, NotFound
from studio.project.delta import apply_delta, diff_documents, read_delta
from studio.project.document import Document
from studio.project.history import Author
from studio.project.session import ProjectSession

IDA = Author("ida-1")
IDA_ANEW = Author("ida-2")
TOM = Author("tom-1")

turns = st.lists(
    st.tuples(
        st.sampled_from([IDA, TOM]),
        st.sampled_from(["text", "speaker", "delete", "insert", "move", "split", "own", "redo"]),
        st.integers(0, 5),
        st.sampled_from(["One.", "Two words.", "Three words here."]),
    ),
    max_size=25,
)


def edit_of(
    session: ProjectSession, number: int, what: str, place: int, text: str
) -> dict[str, object]:
    order = session.document.order
    line_id = order[place % len(order)] if order else None
    fresh = f"{number + 100:012x}"
    if what == "insert" or line_id is None:
        line = {"line_id": fresh, "speaker": "Ben", "text": text}
        return {"op": "insert", "after": line_id, "lines": [line]}
    match what:
        case "text":
            return text_edit(line_id, text)
        case "speaker":
            return {"op": "set", "line_ids": [line_id], "fields": {"speaker": text.split()[0]}}
        case "delete":
            return {"op": "delete", "line_ids": [line_id]}
        case "split":
            return {"op": "split", "line_id": line_id, "at": 3, "new_line_id": fresh}
        case _:
            return {"op": "move", "line_ids": [line_id], "after": None}


def take_turn(session: ProjectSession, number: int, turn: tuple[Author, str, int, str]) -> None:
    author, what, place, text = turn
    try:
        if what == "own":
            session.undo(author, session.rev, own=True)
        elif what == "redo":
            session.redo(author)
        else:
            session.edit(ops(edit_of(session, number, what, place, text)), author, session.rev)
    except (Conflict, NotFound, BadInput):
        pass


def check_whole(document: Document) -> None:
    assert sorted(document.order) == sorted(document.lines)


def values(document: Document) -> dict[tuple[str, str], object]:
    return {
        (line_id, name): getattr(line, name)
        for line_id, line in document.lines.items()
        for name in ("text", "speaker")
    }


@pytest.mark.slow
@settings(max_examples=40)
@given(turns=turns)
def test_an_undo_of_ones_own_changes_nothing_that_somebody_else_wrote(
    turns: list[tuple[Author, str, int, str]],
) -> None:
    check_undos(turns)


@pytest.mark.campaign
@settings(max_examples=2_000)
@given(turns=turns)
def test_two_thousand_times_an_undo_of_ones_own_changes_nothing_of_somebody_else(
    turns: list[tuple[Author, str, int, str]],
) -> None:
    check_undos(turns)


def check_undos(turns: list[tuple[Author, str, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        session = bench.make(document_of(4))
        last_by: dict[tuple[str, str], str] = {}
        for number, turn in enumerate(turns):
            before = values(session.document)
            take_turn(session, number, turn)
            after = values(session.document)
            check_whole(session.document)
            changed = {key for key in before.keys() | after if before.get(key) != after.get(key)}
            if turn[1] == "own":
                assert {last_by.get(key, turn[0].client) for key in changed} <= {turn[0].client}
            # Words that are brought back are somebody's from before: forget whose.
            for key in changed:
                last_by[key] = turn[0].client
                if turn[1] in ("own", "redo"):
                    del last_by[key]
        end, marks = session.document, session._state.history.marks
        bench.kill(session)
        session = bench.open()
        assert (session.document, session._state.history.marks) == (end, marks)
        session.save(now=True)
        session.close()
        session = bench.open()
        assert (session.document, session._state.history.marks) == (end, marks)
        while session.can_undo:
            session.undo(IDA, session.rev)
            check_whole(session.document)
        assert dict(session.document.lines) == dict(document_of(4).lines)
        session.close()


def test_each_takes_back_what_is_ones_own_from_under_the_others(bench: Bench) -> None:
    session = bench.make(document_of(3))
    first, second, third = session.document.order
    session.edit(ops(text_edit(first, "By Ida.")), IDA, session.rev)
    session.edit(ops({"op": "delete", "line_ids": [third]}), IDA, session.rev)
    new = {"line_id": "f" * 12, "speaker": "Tom", "text": "New."}
    session.edit(ops({"op": "insert", "lines": [new]}), TOM, session.rev)
    session.edit(ops(text_edit(second, "By Tom.")), TOM, session.rev)
    session.undo(IDA, session.rev, own=True)
    assert session.document.order == ("f" * 12, first, second, third)
    # A page that was loaded anew is the same person's.
    session.undo(IDA_ANEW, session.rev, own=True)
    texts = [line.text for line in session.document]
    assert texts == ["New.", "This is line 0.", "By Tom.", "This is line 2."]
    session.redo(IDA)
    assert session.document.lines[first].text == "By Ida."
    session.undo(TOM, session.rev, own=True)
    assert session.document.lines[second].text == "This is line 1."
    assert session.document.lines[first].text == "By Ida."


def test_what_somebody_else_wrote_goes_only_when_one_asks_for_it(bench: Bench) -> None:
    session = bench.make(document_of(2))
    line_id = session.document.order[0]
    session.edit(ops(text_edit(line_id, "By Ida.")), IDA, session.rev)
    session.edit(ops(text_edit(line_id, "By Tom.")), TOM, session.rev)
    with pytest.raises(EditConflict, match="somebody else's"):
        session.undo(IDA, session.rev, own=True)
    assert session.document.lines[line_id].text == "By Tom."
    session.undo(IDA, session.rev)
    assert session.document.lines[line_id].text == "By Ida."
    session.undo(IDA, session.rev, own=True)
    assert session.document.lines[line_id].text == "This is line 0."
    with pytest.raises(Conflict, match="nothing to undo"):
        session.undo(IDA, session.rev, own=True)


@pytest.mark.parametrize(("steps", "is_found"), [(199, True), (200, False)])
def test_ones_own_is_looked_for_under_no_more_than_199_steps(bench: Bench, steps, is_found) -> None:
    session = bench.make(document_of(2))
    first, second = session.document.order
    session.edit(ops(text_edit(first, "By Ida.")), IDA, session.rev)
    for number in range(steps):
        session.edit(ops(text_edit(second, f"By Tom, {number}.")), TOM, session.rev)
    if is_found:
        session.undo(IDA, session.rev, own=True)
    else:
        with pytest.raises(EditConflict, match="somebody else's"):
            session.undo(IDA, session.rev, own=True)
    assert session.document.lines[first].text == ("This is line 0." if is_found else "By Ida.")


def test_a_line_in_which_somebody_else_wrote_is_not_taken_away(bench: Bench) -> None:
    session = bench.make(document_of(1))
    new = {"line_id": "f" * 12, "speaker": "Ida", "text": ""}
    session.edit(ops({"op": "insert", "lines": [new]}), IDA, session.rev)
    session.edit(ops(text_edit("f" * 12, "By Tom.")), TOM, session.rev)
    with pytest.raises(EditConflict):
        session.undo(IDA, session.rev, own=True)
    assert session.document.lines["f" * 12].text == "By Tom."


def test_a_history_written_before_it_named_places_can_be_undone(bench: Bench) -> None:
    session = bench.make(document_of(4))
    before = session.document
    line_id = before.order[2]
    session.edit(ops({"op": "delete", "line_ids": [line_id]}), IDA, 0)
    record = diff_documents(before, session.document).to_record()
    record["order"] = record["order"][:3]
    back = read_delta(record).reverse()
    assert apply_delta(session.document, back, loose=True) == before


@pytest.mark.parametrize(
    ("row", "most", "gone", "match"),
    [
        ("{}: {}", 20_000, 15_000, "at most 20,000 lines"),
        ("{} {}: One.", 5_000, 3_000, "at most 5,000 speakers"),
    ],
)
def test_what_comes_back_brings_no_more_lines_and_speakers_than_there_may_be(
    studio, row: str, most: int, gone: int, match: str
) -> None:
    rows = [row.format("Ida", number) for number in range(most)]
    session = studio.projects.create("Scene", read_dialog_text("\n".join(rows)).dialog)
    deletion = {"op": "delete", "line_ids": list(session.document.order[:gone])}
    session.edit(ops(deletion), Author("ida-page"), session.rev)
    others = "\n".join([*rows[gone:], *(row.format("Ivo", number) for number in range(gone))])
    session.merge_script(others, Author("ivo-page"), session.rev)
    with pytest.raises(BadInput, match=match):
        session.undo(Author("ida-page"), session.rev, own=True)
    assert len(session.document.order) == most


def pronounce(numbers: range) -> dict[str, object]:
    put = [{"written": f"W{number}", "spoken": "word"} for number in numbers]
    return {"op": "pronounce", "put": put, "remove": []}


def comment_on(line_id: str, number: int) -> dict[str, object]:
    values = {"comment_id": f"{number:012x}", "author": "Ida", "text": "So?"}
    return {"op": "comment", "line_id": line_id, **values}


def test_what_comes_back_makes_no_table_longer_than_edits_may(studio) -> None:
    ida, ivo = Author("ida-page"), Author("ivo-page")
    session = studio.projects.create("Scene", read_dialog_text("Ida: One.").dialog)
    (line_id,) = session.document.order

    def edit(author: Author, *edits: dict[str, object]) -> None:
        session.edit(ops(*edits), author, session.rev)

    edit(ida, pronounce(range(2_000)))
    words = [f"W{number}" for number in range(1_500)]
    edit(ida, {"op": "pronounce", "put": [], "remove": words})
    edit(ivo, pronounce(range(2_000, 3_500)))
    with pytest.raises(BadInput, match="at most 2,000 pronunciations"):
        session.undo(ida, session.rev, own=True)
    edit(ivo, {"op": "pronounce", "put": [], "remove": words})
    edit(ida, *(comment_on(line_id, number) for number in range(2_000)))
    gone = [{"op": "delete_comment", "comment_id": f"{number:012x}"} for number in range(1_500)]
    edit(ida, *gone)
    edit(ivo, *(comment_on(line_id, number) for number in range(2_000, 3_500)))
    with pytest.raises(BadInput, match="at most 2,000 comments"):
        session.undo(ida, session.rev, own=True)
