from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project_scenes import IDA, TOM, Bench, document_of, ops, text_edit

from studio.errors import EditConflict, NotFound
from studio.project.history import Author
from studio.project.line_states import EditEvent
from studio.project.session import ProjectSession

turns = st.lists(
    st.tuples(
        st.sampled_from(["ida", "tom"]),
        st.booleans(),  # whether the page has seen the latest revision before it edits
        st.integers(0, 3),
        st.sampled_from(["text", "speaker", "delete", "split", "move"]),
        st.sampled_from(["One.", "Two.", "Three words here."]),
    ),
    max_size=25,
)


def edit_of(
    session: ProjectSession, number: int, place: int, what: str, text: str
) -> dict[str, object]:
    order = session.document.order
    line_id = order[place % len(order)] if order else "f" * 12
    match what:
        case "text":
            return text_edit(line_id, text)
        case "speaker":
            speaker = {"One.": "Ida", "Two.": "Tom"}.get(text, "Ben")
            return {"op": "set", "line_ids": [line_id], "fields": {"speaker": speaker}}
        case "delete":
            return {"op": "delete", "line_ids": [line_id]}
        case "split":
            return {
                "op": "split",
                "line_id": line_id,
                "at": 3,
                "new_line_id": f"{number + 100:012x}",
            }
        case _:
            return {"op": "move", "line_ids": [line_id], "after": None}


def tried(
    session: ProjectSession, edit: dict[str, object], author: Author, base_rev: int
) -> EditEvent | None:
    try:
        return session.edit(ops(edit), author, base_rev)
    except (EditConflict, NotFound):
        return None


@pytest.mark.slow
@settings(max_examples=40)
@given(turns=turns)
def test_what_somebody_wrote_is_never_overwritten_unseen(
    turns: list[tuple[str, bool, int, str, str]],
) -> None:
    check_edits(turns)


@pytest.mark.campaign
@settings(max_examples=2_000)
@given(turns=turns)
def test_two_thousand_times_nothing_is_overwritten_unseen(
    turns: list[tuple[str, bool, int, str, str]],
) -> None:
    check_edits(turns)


def check_edits(turns: list[tuple[str, bool, int, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = Bench(Path(folder)).make(document_of(4))
        known = {"ida": 0, "tom": 0}
        written: dict[tuple[str, str], tuple[int, str]] = {}
        for number, (client, looks, place, what, text) in enumerate(turns):
            if looks or not session.document.order:
                known[client] = session.rev
            edit = edit_of(session, number, place, what, text)
            before = session.document
            news = tried(session, edit, Author(client), known[client])
            if news is None:
                assert session.document is before
                continue
            for line_id in news.line_ids:
                old, new = before.lines.get(line_id), session.document.lines.get(line_id)
                for name in ("text", "speaker"):
                    value = getattr(old, name, None)
                    if old is None or (new is not None and getattr(new, name) == value):
                        continue
                    rev, author = written.get((line_id, name), (0, client))
                    assert author == client or rev <= known[client], "overwritten unseen"
                    written[line_id, name] = (news.rev, client)
        session.close()


def test_edits_of_different_lines_follow_each_other(bench: Bench) -> None:
    session = bench.make(document_of(3))
    first, second, _ = session.document.order
    session.edit(ops(text_edit(first, "By Ida.")), IDA, 0)
    session.edit(ops(text_edit(second, "By Tom.")), TOM, 0)
    session.edit(ops({"op": "set", "line_ids": [first], "fields": {"locked": True}}), TOM, 0)
    assert session.document.lines[first].text == "By Ida."
    assert session.document.lines[first].locked


def test_edits_of_the_same_words_are_shown_to_the_second_one(bench: Bench) -> None:
    session = bench.make(document_of(1))
    line_id = session.document.order[0]
    session.edit(ops(text_edit(line_id, "By Ida.")), IDA, 0)
    with pytest.raises(EditConflict) as raised:
        session.edit(ops(text_edit(line_id, "By Tom.")), TOM, 0)
    conflict = {"line_id": line_id, "field": "text", "mine": "By Tom.", "theirs": "By Ida."}
    assert raised.value.conflicts == [{"op": 0, **conflict}]
    assert raised.value.rev == 1
    session.edit(ops(text_edit(line_id, "By Ida.")), TOM, 0)


@pytest.mark.parametrize(
    ("edit", "theirs"),
    [
        ({"op": "delete"}, "By Ida."),
        ({"op": "split", "at": 2, "new_line_id": "f" * 12}, "By Ida."),
        ({"op": "join"}, "By Ida."),
    ],
)
def test_a_line_is_not_taken_apart_under_somebodys_hands(
    bench: Bench, edit: dict[str, object], theirs: str
) -> None:
    session = bench.make(document_of(2))
    line_id = session.document.order[0]
    session.edit(ops(text_edit(line_id, "By Ida.")), IDA, 0)
    target = {"line_id": line_id} if edit["op"] == "split" else {"line_ids": [line_id]}
    with pytest.raises(EditConflict) as raised:
        session.edit(ops({**edit, **target}), TOM, 0)
    assert raised.value.conflicts[0]["theirs"] == theirs


def test_a_line_that_was_deleted_meanwhile_is_said_to_be_gone(bench: Bench) -> None:
    session = bench.make(document_of(2))
    line_id = session.document.order[0]
    session.edit(ops({"op": "delete", "line_ids": [line_id]}), IDA, 0)
    with pytest.raises(EditConflict) as raised:
        session.edit(ops(text_edit(line_id, "By Tom.")), TOM, 0)
    assert raised.value.conflicts[0]["field"] == "line"
    assert raised.value.conflicts[0]["theirs"] is None
    session.edit(ops({"op": "delete", "line_ids": [line_id]}), TOM, 0)


def test_what_others_did_before_a_restart_is_known_after_it(bench: Bench) -> None:
    session = bench.make(document_of(2))
    line_id = session.document.order[0]
    session.edit(ops(text_edit(line_id, "By Ida.")), IDA, 0)
    session.close()
    session = bench.open()
    with pytest.raises(EditConflict):
        session.edit(ops(text_edit(line_id, "By Tom.")), TOM, 0)
    session.close()


def test_a_script_written_on_an_old_state_is_refused_whole(bench: Bench) -> None:
    session = bench.make(document_of(2))
    session.edit(ops(text_edit(session.document.order[0], "By Ida.")), IDA, 0)
    with pytest.raises(EditConflict):
        session.merge_script("Tom: Hello.", TOM, 0)
    assert len(session.document.order) == 2
    session.merge_script("Tom: Hello.", TOM, 1)
    assert len(session.document.order) == 1


def test_nobody_takes_back_a_step_of_somebody_else_unseen(bench: Bench) -> None:
    session = bench.make(document_of(2))
    session.edit(ops(text_edit(session.document.order[0], "By Ida.")), IDA, 0)
    with pytest.raises(EditConflict):
        session.undo(TOM, 0)
    session.undo(TOM, 1)
    assert not session.can_undo


def test_what_no_script_holds_is_no_reason_to_refuse_one(bench: Bench) -> None:
    session = bench.make(document_of(2))
    first, _ = session.document.order
    session.edit(ops({"op": "set", "line_ids": [first], "fields": {"locked": True}}), IDA, 0)
    session.edit(ops({"op": "cast", "speaker": "Ida", "voice": "tom"}), IDA, 1)
    session.merge_script("Ida: This is line 0.\nTom: Hello.", TOM, 0)
    assert session.document.lines[first].locked
    assert session.document.cast == {"Ida": "tom"}
    session.edit(ops({"op": "set", "line_ids": [first], "fields": {"seed": 7}}), IDA, session.rev)
    with pytest.raises(EditConflict):
        session.merge_script("Tom: Hello.", TOM, 3)
