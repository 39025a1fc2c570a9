from __future__ import annotations

from pathlib import Path
from time import thread_time

import pytest
from project_scenes import IDA, Bench, FullDisk, QuickDisk, document_of, ops, text_edit

from studio.errors import Conflict, NotFound, StorageFailed
from studio.project import line_states
from studio.project.folder import ProjectFolder
from studio.project.history import Journal

ENTRIES = [{"rev": number, "text": f"“{number}” \n é😀"} for number in range(5)]


def written(path: Path) -> list[int]:
    journal = Journal(path, QuickDisk())
    starts = [journal.append(entry) for entry in ENTRIES]
    journal.close()
    return [*starts, path.stat().st_size]


def read(path: Path) -> tuple[list[dict[str, object]], Journal]:
    journal = Journal(path, QuickDisk())
    return [placed.entry for placed in journal.replay()], journal


def test_a_journal_cut_at_any_byte_gives_all_whole_entries_before(tmp_path: Path) -> None:
    starts = written(tmp_path / "edits.jsonl")
    data = (tmp_path / "edits.jsonl").read_bytes()
    for size in range(len(data) + 1):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(data[:size])
        entries, journal = read(path)
        whole = sum(end <= size for end in starts[1:])
        assert entries == ENTRIES[:whole]
        assert path.stat().st_size == starts[whole]
        assert journal.damaged_copy is None
        journal.append({"rev": 9})
        journal.close()
        assert read(path)[0] == [*ENTRIES[:whole], {"rev": 9}]
        path.unlink()


def test_a_long_entry_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "edits.jsonl"
    journal = Journal(path, QuickDisk())
    start = journal.append({"rev": 1, "text": "x" * 3_000_000})
    begun_s = thread_time()
    assert len(journal.read(start)["text"]) == 3_000_000
    assert thread_time() - begun_s < 0.5  # byte by byte it took two seconds
    assert journal.append({"rev": 2}) > 3_000_000
    journal.close()
    assert [entry["rev"] for entry in read(path)[0]] == [1, 2]


def test_a_byte_changed_in_the_middle_ends_the_journal_there_and_a_copy_is_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "edits.jsonl"
    starts = written(path)
    data = bytearray(path.read_bytes())
    data[starts[2] + 40] ^= 1
    path.write_bytes(data)
    entries, journal = read(path)
    assert entries == ENTRIES[:2]
    assert journal.damaged_copy is not None
    assert journal.damaged_copy.read_bytes() == bytes(data)


def test_a_bit_that_flips_inside_a_word_ends_the_journal_although_it_can_be_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "edits.jsonl"
    journal = Journal(path, QuickDisk())
    for text in ("good morning", "hello world", "good night"):
        journal.append({"text": text})
    journal.close()
    path.write_bytes(path.read_bytes().replace(b"hello world", b"iello world"))
    entries, journal = read(path)
    assert entries == [{"text": "good morning"}]
    assert journal.damaged_copy is not None


def test_a_write_that_fails_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "edits.jsonl"
    journal = Journal(path, FullDisk(2, for_good=False))
    journal.append(ENTRIES[0])
    size = path.stat().st_size
    with pytest.raises(StorageFailed, match="Free some space"):
        journal.append(ENTRIES[1])
    assert path.stat().st_size == size
    journal.append(ENTRIES[2])
    journal.close()
    assert read(path)[0] == [ENTRIES[0], ENTRIES[2]]


def test_what_could_not_be_synced_is_synced_the_next_time(tmp_path: Path) -> None:
    disk = FullDisk(2, for_good=False)
    journal = Journal(tmp_path / "edits.jsonl", disk)
    journal.append(ENTRIES[0])
    with pytest.raises(StorageFailed, match="Free some space"):
        journal.sync()
    for _ in range(2):
        journal.sync()
    # Linux takes what it failed to write for written, so it is written again.
    assert disk.writes == 4, "the entry twice, and the disk was asked twice"
    journal.close()


def test_a_snapshot_that_is_damaged_is_made_again_from_the_journal(bench: Bench) -> None:
    session = bench.make(document_of(3))
    session.edit(ops(text_edit(session.document.order[1], "Other.")), IDA, 0)
    document = session.document
    session.close()
    snapshot = bench.root / "abc" / "project.json"
    for damage in (b"", b"{", snapshot.read_bytes()[:-40], b'{"version":1}'):
        snapshot.write_bytes(damage)
        session = bench.open()
        assert session.document == document
        assert "made again" in session.folder.notices[0]
        session.undo(IDA, session.rev)
        session.redo(IDA)
        session.close()
    snapshot.unlink()
    session = bench.open()
    assert session.document == document
    session.close()


def test_without_its_journal_a_project_opens_as_it_was_and_goes_on(bench: Bench) -> None:
    session = bench.make(document_of(3))
    session.edit(ops(text_edit(session.document.order[1], "Other.")), IDA, 0)
    document, rev = session.document, session.rev
    session.close()
    (bench.root / "abc" / "edits.jsonl").unlink()
    session = bench.open()
    assert (session.document, session.rev, session.can_undo) == (document, rev, False)
    assert "undo" in session.folder.notices[0]
    session.edit(ops(text_edit(session.document.order[0], "More.")), IDA, rev)
    document = session.document
    bench.kill(session)
    session = bench.open()
    assert session.document == document
    session.undo(IDA, session.rev)
    session.close()


def test_a_project_is_open_in_one_studio_at_a_time(bench: Bench) -> None:
    session = bench.make(document_of(1))
    with pytest.raises(Conflict, match="another studio"):
        ProjectFolder(bench.root / "abc", QuickDisk())
    session.close()
    bench.open().close()
    with pytest.raises(NotFound):
        ProjectFolder(bench.root / "nothing", QuickDisk())


def test_a_snapshot_is_not_written_at_every_save(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_states, "SNAPSHOT_INTERVAL_S", 3_600.0)
    session = bench.make(document_of(2))
    session.save(now=True)
    snapshot = session.folder.root / "project.json"
    before = snapshot.read_bytes()
    session.edit(ops(text_edit(session.document.order[0], "Other.")), IDA, session.rev)
    session.save()
    assert snapshot.read_bytes() == before
    session.save(now=True)
    assert b"Other." in snapshot.read_bytes()
    bench.kill(session)
