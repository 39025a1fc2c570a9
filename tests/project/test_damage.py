"""One flipped bit anywhere in a project: no other words without a notice, always listed.

`-m campaign` flips 500 bits.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from project_scenes import Bench, QuickDisk, document_of, ops, text_edit

from studio.errors import BadInput, Conflict, StudioError
from studio.project.history import Author, Journal
from studio.project.project_file import validate_import
from studio.project.projects import Projects
from studio.voices.library import SpeakerLibrary

IDA = Author("ida-1")


@pytest.fixture
def whole(bench: Bench) -> Path:
    """A closed project whose last words are partly in its journal alone."""
    session = bench.make(document_of(12))
    for number, line_id in enumerate(session.document.order):
        session.edit(ops(text_edit(line_id, f"Changed “{number}”, Ä.")), IDA, session.rev)
        if number == 6:
            session.save(now=True)
    bench.kill(session)
    return bench.root / "abc"


def projects_of(root: Path) -> Projects:
    return Projects(
        root, engine=pytest.fail, library=SpeakerLibrary(root / "speakers"), backend_name=str
    )


def flip(path: Path, place: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def check_flips(bench: Bench, whole: Path, count: int) -> None:
    session = bench.open()
    expected = session.document
    bench.kill(session)
    files = ("project.json", "edits.jsonl")
    sizes = {name: (whole / name).stat().st_size for name in files}
    chosen = random.Random(7)
    silent, unlisted, unopened = [], [], []
    for number in range(count):
        name = files[number % 2]
        place, bit = chosen.randrange(sizes[name]), chosen.randrange(8)
        home = bench.root / "copies" / f"{number:012x}"
        shutil.copytree(whole, home)
        flip(home / name, place, bit)
        told = (name, place, bit)
        if home.name not in {one.project_id for one in projects_of(home.parent).list_summaries()}:
            unlisted.append(told)
        try:
            session = bench.open(f"copies/{home.name}")
        except StudioError:
            unopened.append(told)
        else:
            if session.document != expected and not session.folder.notices:
                silent.append(told)
            bench.kill(session)
        shutil.rmtree(home)
    assert (silent, unlisted, unopened) == ([], [], [])


def test_a_flipped_bit_is_never_silent(bench: Bench, whole: Path) -> None:
    check_flips(bench, whole, 60)


@pytest.mark.campaign
def test_five_hundred_flipped_bits_are_never_silent(bench: Bench, whole: Path) -> None:
    check_flips(bench, whole, 500)


def test_a_damaged_snapshot_is_mended_when_it_is_opened(bench: Bench, whole: Path) -> None:
    expected = bench.open()
    document = expected.document
    bench.kill(expected)
    data = (whole / "project.json").read_bytes()
    (whole / "project.json").write_bytes(data.replace(b"This is line 9", b"This is line 8"))
    session = bench.open()
    assert session.document == document
    assert len(session.folder.notices) == 1
    (kept,) = whole.glob("project.damaged-*.json")
    assert b"This is line 8" in kept.read_bytes()
    bench.kill(session)
    again = bench.open()
    assert again.document == document
    assert again.folder.notices == []
    bench.kill(again)


def test_a_snapshot_without_a_checksum_opens(bench: Bench, whole: Path) -> None:
    """As the first studios wrote it."""
    path = whole / "project.json"
    rows = path.read_bytes().split(b"\n")
    assert rows[1].startswith(b' "sum"')
    path.write_bytes(b"\n".join([rows[0], *rows[2:]]))
    session = bench.open()
    assert len(session.document.order) == 12
    assert session.folder.notices == []
    bench.kill(session)


def test_what_another_studio_has_open_is_not_removed(bench: Bench, whole: Path) -> None:
    shutil.copytree(whole, bench.root / "shelf" / "0123456789ab")
    session = bench.open("shelf/0123456789ab")
    with pytest.raises(Conflict, match="another studio"):
        projects_of(bench.root / "shelf").remove("0123456789ab")
    assert session.folder.root.is_dir()
    bench.kill(session)
    projects_of(bench.root / "shelf").remove("0123456789ab")
    assert not session.folder.root.is_dir()


@pytest.mark.parametrize(
    "fields",
    [
        {"cast": ["abc", "abc"]},
        {"cast": [{}, {"I\r\nda": None}]},
        {"cast": [{}, {"Ida": "x" * 1_000_000}]},
        {"first_names": [{}, {"Ida": "I\0da"}]},
        {"name": ["Scene", "S" * 1_000_000]},
        {"name": ["Scene", "Scene\n2"]},
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_names_that_no_edit_leaves_are_not_imported(bench: Bench, whole: Path, fields) -> None:
    validate_import(whole)
    journal = Journal(whole / "edits.jsonl", QuickDisk())
    last = list(journal.replay())[-1]
    journal.append({**last.entry, "below": None, "delta": {"fields": fields}})
    journal.close()
    with pytest.raises(BadInput):
        validate_import(whole)
