from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project_scenes import IDA, TOM, Bench, document_of, ops, text_edit
from test_damage import add_take

from studio.errors import BadInput, Conflict, NotFound, StudioError
from studio.project.delta import apply_delta, diff_documents
from studio.project.document import Document
from studio.project.history import Author
from studio.project.render_context import RenderContext
from studio.project.session import ProjectSession

IDS = [f"{number:012x}" for number in range(40)]
line_ids = st.sampled_from(IDS[:12])
some_ids = st.lists(line_ids, max_size=4)
texts = st.sampled_from(["One.", "Two words", "", "[pause:1s] so", "😀 wide", "Ben", "a b c"])
names = st.sampled_from(["Ida", "TOM", "Tom", "Ben"])
new_lines = st.builds(
    lambda line_id, speaker, text: {"line_id": line_id, "speaker": speaker, "text": text},
    line_ids,
    names,
    texts,
)
silences = st.builds(
    lambda line_id, length: {"line_id": line_id, "kind": "silence", "duration_s": length},
    line_ids,
    st.floats(0, 3),
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "speaker": names,
        "seed": st.none() | st.integers(0, 9),
        "locked": st.booleans(),
        "params": st.fixed_dictionaries({}, optional={"speed": st.floats(0.5, 2)}),
    },
)
edits = st.one_of(
    st.builds(
        lambda after, lines: {"op": "insert", "after": after, "lines": lines},
        st.none() | line_ids,
        st.lists(new_lines | silences, min_size=1, max_size=3),
    ),
    st.builds(lambda ids: {"op": "delete", "line_ids": ids}, some_ids),
    st.builds(
        lambda ids, after: {"op": "move", "line_ids": ids, "after": after},
        some_ids,
        st.none() | line_ids,
    ),
    st.builds(
        lambda ids, values: {"op": "set", "line_ids": ids, "fields": values}, some_ids, fields
    ),
    st.builds(
        lambda one, at, new: {"op": "split", "line_id": one, "at": at, "new_line_id": new},
        line_ids,
        st.integers(0, 9),
        line_ids,
    ),
    st.builds(lambda ids: {"op": "join", "line_ids": ids}, some_ids),
    st.builds(lambda a, b: {"op": "rename_speaker", "from": a, "to": b}, names, names),
    st.builds(lambda a, b: {"op": "cast", "speaker": a, "voice": b}, names, st.none() | names),
    st.builds(lambda seed: {"op": "settings", "fields": {"seed": seed}}, st.integers(0, 5)),
    st.builds(
        lambda word, spoken, gone: {
            "op": "pronounce",
            "put": [{"written": word, "spoken": spoken}],
            "remove": gone,
        },
        st.sampled_from(["line", "This is", "0"]),
        st.sampled_from(["", "a", "b"]),
        st.lists(st.sampled_from(["line", "0"])),
    ),
    st.builds(lambda name: {"op": "rename", "name": name}, names),
    st.builds(
        lambda a, b, whole: {"op": "replace", "find": a, "with": b, "whole_word": whole},
        st.sampled_from(["o", "Two", "😀"]),
        st.sampled_from(["", "x y", "\\1"]),
        st.booleans(),
    ),
)
steps = st.lists(st.lists(edits, min_size=1, max_size=3), max_size=12)


def try_edit(session: ProjectSession, step: list[dict[str, object]], author: Author = IDA) -> bool:
    """Make an edit; one that can't be made must change nothing."""
    before = session.document
    try:
        session.edit(ops(*step), author, session.rev)
    except (BadInput, NotFound, Conflict):
        assert session.document is before
        return False
    assert set(session.document.order) == set(session.document.lines)
    assert len(set(session.document.order)) == len(session.document.order)
    return True


@pytest.mark.slow
@settings(max_examples=60)
@given(steps=steps, kept_after=st.integers(0, 12))
def test_undo_leads_to_the_start_redo_to_the_end_and_the_journal_knows_it_all(
    steps: list[list[dict[str, object]]], kept_after: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        session = bench.make(document_of(4))
        start = session.document
        for number, step in enumerate(steps):
            try_edit(session, step)
            if number == kept_after:
                session.save(now=True)
        end, rev = session.document, session.rev
        bench.kill(session)

        session = bench.open()
        assert (session.document, session.rev) == (end, rev)
        while session.can_undo:
            session.undo(IDA, session.rev)
        assert session.document == start
        bench.kill(session)

        session = bench.open()
        while session.can_redo:
            session.redo(IDA)
        assert session.document == end
        session.close()


@settings(max_examples=40)
@given(steps=steps)
def test_a_difference_leads_there_and_back(steps: list[list[dict[str, object]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = Bench(Path(folder)).make(document_of(3))
        before: Document = session.document
        for step in steps:
            try_edit(session, step)
        delta = diff_documents(before, session.document)
        assert apply_delta(before, delta) == session.document
        assert apply_delta(session.document, delta.reverse()) == before
        session.close()


def test_an_edit_after_an_undo_forgets_what_was_undone(bench: Bench) -> None:
    session = bench.make(document_of(1))
    line_id = session.document.order[0]
    for text in ("One.", "Two."):
        session.edit(ops(text_edit(line_id, text)), IDA, session.rev)
    session.undo(IDA, session.rev)
    assert session.can_redo
    session.edit(ops(text_edit(line_id, "Three.")), IDA, session.rev)
    assert not session.can_redo
    with pytest.raises(Conflict, match="nothing to redo"):
        session.redo(IDA)
    session.undo(IDA, session.rev)
    assert session.document.lines[line_id].text == "One."


def test_typing_is_one_step_and_a_pause_ends_it(bench: Bench) -> None:
    session = bench.make(document_of(1))
    line_id = session.document.order[0]
    typing = Author("ida", group=f"text:{line_id}")

    def typed(text: str, after_s: float, author: Author = typing) -> None:
        bench.now_s += after_s
        session.edit(ops(text_edit(line_id, text)), author, session.rev)

    typed("H", 0.0)
    typed("He", 1.5)
    typed("Her", 1.5)
    typed("Here", 5.0)
    typed("Here.", 0.5, Author("tom", group=typing.group))
    shown = []
    while session.can_undo:
        session.undo(IDA, session.rev)
        shown.append(session.document.lines[line_id].text)
    assert shown == ["Here", "Her", "This is line 0."]
    session.redo(IDA)
    assert session.document.lines[line_id].text == "Her"


def test_the_same_edit_sent_twice_takes_effect_once_also_after_a_restart(bench: Bench) -> None:
    session = bench.make(document_of(2))
    author = Author("ida", edit_id="e1")
    insert = ops({"op": "insert", "lines": [{"line_id": IDS[9], "speaker": "Ida", "text": "Hi."}]})
    session.edit(insert, author, 0)
    session.edit(ops({"op": "delete", "line_ids": [IDS[9]]}), IDA, 1)
    assert session.edit(insert, author, 0).rev == 2
    session.save(now=True)
    bench.kill(session)
    session = bench.open()
    session.edit(insert, author, 0)
    assert IDS[9] not in session.document.lines
    session.close()


def test_lines_can_be_split_and_joined_at_wide_characters(bench: Bench) -> None:
    session = bench.make(document_of(1))
    line_id = session.document.order[0]
    session.edit(ops(text_edit(line_id, "Hi 😀 there, you")), IDA, session.rev)
    split = {"op": "split", "line_id": line_id, "at": len("Hi ..") + 1, "new_line_id": IDS[1]}
    pause = {"line_id": IDS[2], "kind": "silence", "duration_s": 0.5}
    session.edit(ops(split, {"op": "insert", "after": line_id, "lines": [pause]}), IDA, session.rev)
    assert [line.text for line in session.document] == ["Hi 😀", "", "there, you"]
    session.edit(ops({"op": "join", "line_ids": list(session.document.order)}), IDA, session.rev)
    assert [line.text for line in session.document] == ["Hi 😀 [pause:0.5s] there, you"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"op": "set", "line_ids": [IDS[0]], "fields": {"colour": "red"}}, "nothing that can be"),
        ({"op": "set", "line_ids": [IDS[0]], "fields": {"text": 7}}, "text can"),
        ({"op": "set", "line_ids": [IDS[0]], "fields": {"seed": -1}}, "seed"),
        ({"op": "set", "line_ids": [IDS[0]], "fields": {"speaker": None}}, "speaker"),
        ({"op": "set", "line_ids": [IDS[0]], "fields": {"duration_s": 301}}, "300"),
        ({"op": "set", "line_ids": [IDS[0]], "fields": {"params": {"speed": []}}}, "speed"),
        ({"op": "settings", "fields": {"volume": 1}}, "no setting"),
        ({"op": "settings", "fields": {"backend": "no-such"}}, "no-such"),
        ({"op": "move", "line_ids": [IDS[0]], "after": IDS[0]}, "behind itself"),
        ({"op": "insert", "lines": [{"line_id": "../../etc"}]}, "hexadecimal"),
        ({"op": "insert", "lines": [{"line_id": IDS[9]}]}, "speaker"),
        ({"op": "insert", "lines": [{"line_id": IDS[9], "kind": "song"}]}, "can't be used"),
        ({"op": "rename", "name": "  "}, "at least one"),
        ({"op": "choose", "line_id": IDS[0], "take_id": "0" * 16}, "take"),
        ({"op": "set", "line_ids": [IDS[30]], "fields": {"text": "x"}}, "line"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why_and_changes_nothing(
    bench: Bench, edit: dict[str, object], message: str
) -> None:
    session = bench.make(document_of(0))
    session.edit(
        ops({"op": "insert", "lines": [{"line_id": IDS[0], "speaker": "Ida", "text": "Hi."}]}),
        TOM,
        0,
    )
    with pytest.raises(StudioError, match=message):
        session.edit(ops(text_edit(IDS[0], "Bye."), edit), IDA, 1)
    assert session.document.lines[IDS[0]].text == "Hi."
    assert session.rev == 1


def count_contexts() -> int:
    gc.collect()
    return sum(isinstance(one, RenderContext) for one in gc.get_objects())


def test_a_session_keeps_little_of_lines_that_came_and_went(bench: Bench) -> None:
    """An open project in which somebody writes and deletes lines all day."""
    session = bench.make(document_of(2))
    session.list_views()
    before = count_contexts()
    for number in range(300):
        line_id = f"{number + 1_000:012x}"
        line = {"line_id": line_id, "speaker": f"Somebody {number}", "text": "Hm."}
        session.edit(ops({"op": "insert", "lines": [line]}), IDA, session.rev)
        add_take(session, line_id, number)
        session.list_views()
        session.edit(ops({"op": "delete", "line_ids": [line_id]}), IDA, session.rev)
    assert count_contexts() - before <= 120
    bench.kill(session)
