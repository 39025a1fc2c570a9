"""A damaged history keeps all changes but those of its damaged lines, and says what is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from project_scenes import Bench, document_of, ops, text_edit
from test_damage import IDA, flip

from studio.project.document import Document, ProjectLine
from studio.project.folder import LastPosition, read_last_position, save_last_position
from studio.project.project_file import validate_import
from studio.project.session import ProjectSession


@pytest.fixture
def edited(bench: Bench) -> Path:
    """Eight lines, of which 0 to 5 were changed in turn, and line 2 once more at the end."""
    session = bench.make(document_of(8))
    for number in (0, 1, 2, 3, 4, 5, 2):
        bench.now_s += 60
        rev = session.rev
        line_id = session.document.order[number]
        session.edit(ops(text_edit(line_id, f"Changed to {rev}.")), IDA, rev)
    bench.kill(session)
    return session.folder.root


def texts(document: Document) -> list[str]:
    return [line.text for line in document]


def starts_of(root: Path) -> list[int]:
    starts = [0]
    for line in (root / "edits.jsonl").read_bytes().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def damage_entry(root: Path, number: int) -> None:
    start = starts_of(root)[number]
    flip(root / "edits.jsonl", start + 60, 2)


def damage_snapshot(root: Path) -> None:
    flip(root / "project.json", (root / "project.json").stat().st_size // 2, 1)


def undo_all(session: ProjectSession) -> int:
    steps = 0
    while session.can_undo:
        session.undo(IDA, session.rev)
        steps += 1
    return steps


EXPECTED = [
    "Changed to 0.", "Changed to 1.", "Changed to 6.", "Changed to 3.", "Changed to 4.",
    "Changed to 5.", "This is line 6.", "This is line 7.",
]  # fmt: skip


def test_an_entry_before_the_snapshot_costs_no_change(bench: Bench, edited: Path) -> None:
    session = bench.open()
    session.edit(ops(text_edit(session.document.order[7], "Last.")), IDA, session.rev)
    session.close()
    damage_entry(edited, 3)
    session = bench.open()
    assert texts(session.document) == [*EXPECTED[:7], "Last."]
    (notice,) = session.folder.notices
    assert "no change is lost" in notice
    (kept,) = edited.glob("edits.damaged-*.jsonl")
    assert kept.name in notice
    assert undo_all(session) == 5, "the steps after the damage"
    bench.kill(session)


def test_when_both_are_damaged_only_the_damaged_entry_is_lost(bench: Bench, edited: Path) -> None:
    damage_entry(edited, 4)  # line 3
    damage_snapshot(edited)
    session = bench.open()
    assert texts(session.document) == [*EXPECTED[:3], "This is line 3.", *EXPECTED[4:]]
    about_snapshot, about_journal = session.folder.notices
    assert "project.json was damaged" in about_snapshot
    assert "edits.jsonl was damaged: 1 change is lost, made after 1970-01-01 00:19:40" in (
        about_journal
    )
    assert "3 later ones are kept" in about_journal
    assert len(list(edited.glob("*.damaged-*"))) == 2
    assert undo_all(session) == 3
    assert texts(session.document)[2] == "Changed to 2."
    session.close()
    validate_import(edited)
    again = bench.open()
    assert again.folder.notices == []
    bench.kill(again)


def test_a_later_change_of_the_same_line_counts(bench: Bench, edited: Path) -> None:
    damage_entry(edited, 3)  # the first of two changes of line 2
    (edited / "project.json").unlink()
    session = bench.open()
    assert texts(session.document) == EXPECTED
    assert "1 change is lost" in session.folder.notices[0]
    bench.kill(session)


@pytest.mark.parametrize("number", [2, -1])
def test_a_damaged_end_of_a_line_loses_nothing(bench: Bench, edited: Path, number: int) -> None:
    """It joins two lines, or looks like a line that a crash cut off."""
    flip(edited / "edits.jsonl", starts_of(edited)[number] - 1, 5)
    (edited / "project.json").unlink()
    session = bench.open()
    assert texts(session.document) == EXPECTED
    assert "edits.jsonl was damaged; no change is lost" in session.folder.notices[0]
    bench.kill(session)


def test_an_inserted_line_that_is_lost_takes_its_changes_with_it(bench: Bench) -> None:
    session = bench.make(document_of(2))
    first = session.document.order[0]
    lines = [{"line_id": "00000000aaaa", "speaker": "Ida", "text": "New."}]
    session.edit(ops({"op": "insert", "after": first, "lines": lines}), IDA, session.rev)
    session.edit(ops(text_edit("00000000aaaa", "Newer.")), IDA, session.rev)
    session.edit(ops({"op": "move", "line_ids": [first], "after": None}), IDA, session.rev)
    session.edit(ops(text_edit(first, "Kept.")), IDA, session.rev)
    bench.kill(session)
    root = session.folder.root
    damage_entry(root, 1)
    (root / "project.json").unlink()
    session = bench.open()
    assert texts(session.document) == ["Kept.", "This is line 1."]
    assert set(session.document.order) == session.document.lines.keys()
    bench.kill(session)


def test_an_edit_that_was_kept_takes_effect_only_once(bench: Bench, edited: Path) -> None:
    session = bench.open()
    line_id = session.document.order[7]
    author = type(IDA)("ida-1", edit_id="once")
    session.edit(ops(text_edit(line_id, "Once.")), author, session.rev)
    bench.kill(session)
    damage_entry(edited, 4)
    session = bench.open()
    rev = session.rev
    session.edit(ops(text_edit(line_id, "Twice.")), author, rev)
    assert session.document.lines[line_id].text == "Once."
    bench.kill(session)


def test_a_crash_amid_the_repair_loses_nothing(
    bench: Bench, edited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_entry(edited, 3)
    write = bench.disk.write_whole

    def fail_at_journal(path: Path, *args: object, **how: object) -> None:
        if path.name == "edits.jsonl":
            raise KeyboardInterrupt
        write(path, *args, **how)

    monkeypatch.setattr(bench.disk, "write_whole", fail_at_journal)
    with pytest.raises(KeyboardInterrupt):
        bench.open()
    monkeypatch.undo()
    (edited / ".lock").unlink()  # the end of the process would have released it
    session = bench.open()
    assert texts(session.document) == EXPECTED
    bench.kill(session)


def test_when_only_the_latest_change_is_damaged_all_before_it_stays(
    bench: Bench, edited: Path
) -> None:
    damage_entry(edited, 7)  # line 2 for the second time
    session = bench.open()
    assert texts(session.document) == [*EXPECTED[:2], "Changed to 2.", *EXPECTED[3:]]
    (notice,) = session.folder.notices
    assert "1 change" in notice
    session.edit(ops(text_edit(session.document.order[7], "Last.")), IDA, session.rev)
    bench.kill(session)
    assert texts(bench.open().document)[7] == "Last."


def rewrite(root: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path = root / "edits.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


@pytest.mark.parametrize("is_saved", [True, False], ids=["with its snapshot", "without"])
@pytest.mark.parametrize(
    "change",
    [
        lambda rows: [*rows[:4], *rows[3:]],
        lambda rows: [*rows, rows[2]],
        lambda rows: [*rows[:3], rows[5], rows[4], rows[3], *rows[6:]],
        lambda rows: rows[::-1],
        lambda rows: [row.replace(b"\n", b"\r\n") for row in rows],
        lambda rows: [b"\xef\xbb\xbf", *rows],
        lambda rows: [*rows[:-1], rows[-1].rstrip()],
    ],
    ids=["twice", "again at the end", "turned", "all turned", "CRLF", "BOM", "no end"],
)
def test_lines_that_are_all_there_lose_nothing(
    bench: Bench, edited: Path, change: Callable[[list[bytes]], list[bytes]], is_saved: bool
) -> None:
    session = bench.open()
    session.close() if is_saved else bench.kill(session)
    if not is_saved:
        (edited / "project.json").unlink()
    rewrite(edited, change)
    session = bench.open()
    assert texts(session.document) == EXPECTED
    assert "edits.jsonl was damaged; no change is lost" in session.folder.notices[-1]
    bench.kill(session)
    again = bench.open()
    assert again.folder.notices == []
    bench.kill(again)


def test_a_line_that_lacks_is_told(bench: Bench, edited: Path) -> None:
    rewrite(edited, lambda rows: [*rows[:4], *rows[5:]])
    session = bench.open()
    assert texts(session.document) == [*EXPECTED[:3], "This is line 3.", *EXPECTED[4:]]
    (notice,) = session.folder.notices
    assert "1 change is lost" in notice
    bench.kill(session)


def test_a_line_that_lacks_before_the_snapshot_costs_no_change(bench: Bench, edited: Path) -> None:
    session = bench.open()
    session.edit(ops(text_edit(session.document.order[7], "Last.")), IDA, session.rev)
    session.close()
    rewrite(edited, lambda rows: [*rows[:4], *rows[5:]])
    session = bench.open()
    assert texts(session.document) == [*EXPECTED[:7], "Last."]
    assert "edits.jsonl is shorter" in session.folder.notices[0]
    bench.kill(session)


def test_zeros_after_a_power_failure_are_told(bench: Bench, edited: Path) -> None:
    path = edited / "edits.jsonl"
    start = starts_of(edited)[6]
    path.write_bytes(path.read_bytes()[:start] + bytes(4096))
    session = bench.open()
    assert texts(session.document) == [
        "Changed to 0.", "Changed to 1.", "Changed to 2.", "Changed to 3.", "Changed to 4.",
        "This is line 5.", "This is line 6.", "This is line 7.",
    ]  # fmt: skip
    (notice,) = session.folder.notices
    assert "edits.jsonl was damaged: 1 change is lost, made after 1970-01-01 00:21:40" in notice
    bench.kill(session)


def test_a_line_that_a_crash_cut_off_is_told(bench: Bench, edited: Path) -> None:
    rewrite(edited, lambda rows: [*rows[:-1], rows[-1][:90]])
    session = bench.open()
    assert texts(session.document)[2] == "Changed to 2."
    (notice,) = session.folder.notices
    assert "The end of edits.jsonl was cut off" in notice
    bench.kill(session)
    again = bench.open()
    assert again.folder.notices == []
    bench.kill(again)


def test_whole_lines_that_lack_at_the_end_are_told_by_the_last_position(
    bench: Bench, edited: Path
) -> None:
    """Without it, such an end is that of a shorter history."""
    save_last_position(edited, LastPosition(by="ida"), bench.disk, 7)
    rewrite(edited, lambda rows: rows[:-2])
    session = bench.open()
    assert texts(session.document)[5] == "This is line 5."
    assert session.folder.notices == [
        "edits.jsonl lacks the latest 2 changes: it was cut off, or is an older copy."
    ]
    assert read_last_position(edited) == LastPosition(by="ida", number=1)
    bench.kill(session)
    again = bench.open()
    assert again.folder.notices == []
    again.edit(ops(text_edit(again.document.order[5], "Again.")), IDA, again.rev)
    save_last_position(edited, LastPosition(by="ida"), bench.disk, again.rev)
    bench.kill(again)
    whole = bench.open()
    assert whole.folder.notices == []
    bench.kill(whole)


def test_what_is_lost_by_damage_is_told_once(bench: Bench, edited: Path) -> None:
    save_last_position(edited, LastPosition(by="ida"), bench.disk, 7)
    damage_snapshot(edited)
    damage_entry(edited, 7)
    for expected in (2, 0):
        session = bench.open()
        assert len(session.folder.notices) == expected, session.folder.notices
        bench.kill(session)


def test_a_snapshot_of_another_project_doesnt_count(bench: Bench, edited: Path) -> None:
    lines = {f"{n:012x}": ProjectLine(f"{n:012x}", speaker="Eve", text="Other.") for n in (70, 71)}
    other = bench.make(Document("Other", lines, tuple(lines)), "other")
    for number in range(30):
        other.edit(ops(text_edit(f"{70:012x}", f"Other {number}." * 20)), IDA, other.rev)
    other.close()
    shutil.copy(other.folder.root / "project.json", edited / "project.json")
    session = bench.open()
    assert texts(session.document) == EXPECTED
    assert "project.json doesn't fit the history" in session.folder.notices[0]
    (kept,) = edited.glob("project.damaged-*.json")
    assert b"Other 29." in kept.read_bytes()
    bench.kill(session)
