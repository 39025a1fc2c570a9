"""One flipped bit in any file of a project or voice: what changes is said of that very file.

`-m campaign` flips 500 bits.
"""

from __future__ import annotations

import hashlib
import random
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from project_scenes import Bench, QuickDisk, document_of, ops, text_edit
from voice_like import voice_like

from studio.audio.clip import Clip
from studio.errors import AudioRejected, BadInput, Conflict, FileDamaged
from studio.project.folder import (
    LastPosition,
    check_recording,
    read_last_position,
    save_last_position,
)
from studio.project.history import Author, Journal
from studio.project.project_file import validate_import
from studio.project.projects import Projects
from studio.project.scene_export import build_scene, describe_left_out
from studio.project.session import ProjectSession
from studio.project.takes import Take, list_plain_fields
from studio.quality.checks import QualityIssue
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


def add_take(session: ProjectSession, line_id: str, number: int) -> Take:
    """A take as a render saves it, of noise."""
    noise = np.random.default_rng(number).uniform(-0.5, 0.5, 2_400).astype(np.float32)
    take = Take(
        f"{number:016x}", line_id, "0" * 32, number, "draft", f"Take {number}.", "Ida", 2_400,
        "2026-01-01T00:00:00.000+00:00", doubts=(QualityIssue("gap", 2.0, "2 s."),),
    )  # fmt: skip
    session.take_store.add(take, Clip(noise))
    choice = {"op": "choose", "line_id": line_id, "take_id": take.take_id}
    session.edit(ops(choice), IDA, session.rev)
    return take


@pytest.fixture
def workspace(bench: Bench) -> Path:
    """A closed project that has every kind of file, and a voice with two samples."""
    session = bench.make(document_of(6), "home/0123456789ab")
    root = session.folder.root
    recording = b"RIFF" + bytes(range(256))
    name = f"bell-{hashlib.sha256(recording).hexdigest()[:8]}.wav"
    (root / "audio").mkdir()
    (root / "audio" / name).write_bytes(recording)
    lines = [{"line_id": "00000000dddd", "kind": "audio", "path": name}]
    session.edit(ops({"op": "insert", "lines": lines}), IDA, session.rev)
    for number in range(4):
        add_take(session, f"{number:012x}", number)
    session.save(now=True)
    for number, line_id in enumerate(session.document.order[1:]):
        session.edit(ops(text_edit(line_id, f"Changed “{number}”, Ä.")), IDA, session.rev)
    session.folder.write_pending({f"{number:012x}": number for number in range(4, 6)})
    place = LastPosition(line_id=f"{2:012x}", by="ida")
    save_last_position(root, place, bench.disk)
    bench.kill(session)
    library = SpeakerLibrary(bench.root / "home" / "speakers")
    speech = voice_like(3.0)
    library.add("Ida", sample=speech, transcript="What is said.", language="en")
    library.add_mood("Ida", "glad", speech)
    return bench.root / "home"


@dataclass(frozen=True)
class Observed:
    """What a user sees and gets of a workspace, and what the studio says about it."""

    seen: tuple[Any, ...]
    said: str


def observe(bench: Bench, home: Path) -> Observed:
    projects, library = projects_of(home), SpeakerLibrary(home / "speakers")
    (card,) = projects.list_summaries()
    session = bench.open(f"{home.name}/{card.project_id}")
    try:
        root, store = session.folder.root, session.take_store
        said = [card.problem, *session.folder.notices, *library.list_problems()]
        with suppress(Conflict):
            scene = build_scene(session)
            said += describe_left_out(scene)
        views = [
            (view.line, view.take, view.n_takes, view.samples) for view in session.list_views()
        ]
        said += [view.message for view in session.list_views()]
        for path in (root / "audio").iterdir():
            try:
                check_recording(path)
            except AudioRejected as error:
                said.append(str(error))
        sound = b"".join(block.tobytes() for block in scene.timeline.blocks())
        takes = [list_plain_fields(take) for line in session.document for take in
                 store.list_for_line(line.line_id)]  # fmt: skip
        voices = [
            (replace(one, sample=None, moods=(), formers=()), one.sample and one.sample.read_bytes(),
             [(mood.mood, mood.transcript, mood.path.read_bytes()) for mood in one.moods])
            for one in library.list()
        ]  # fmt: skip
        recordings = {path.name: path.read_bytes() for path in (root / "audio").iterdir()}
        pending = tuple(session._state.folder.read_pending().items())
        place = read_last_position(root)
        seen = (session.document, views, sound, takes, voices, recordings, pending, place)
        return Observed(seen, "\n".join(filter(None, said)))
    finally:
        bench.kill(session)


def check_flips(bench: Bench, home: Path, count: int) -> None:
    """Flip bits of all files in turn; a change that is seen is said of that very file."""
    kept = bench.root / "kept"
    shutil.copytree(home, kept)
    usual = observe(bench, home)
    assert "Line 7: Nothing was made" in usual.said
    files = sorted(
        path.relative_to(kept) for path in kept.rglob("*") if path.is_file() and path.stat().st_size
    )
    kinds = {re.sub(r"[0-9a-f]{6,}", "*", path.name) for path in files}
    assert kinds == {
        "project.json", "edits.jsonl", "pending.json", "place.json", "bell-*.wav", "*.json",
        "*.wav", "speaker.json", "sample.wav", "mood-*.wav",
    }  # fmt: skip
    chosen = random.Random(7)
    silent = []
    for number in range(count):
        path = files[number % len(files)]
        place, bit = chosen.randrange((kept / path).stat().st_size), chosen.randrange(8)
        copy = bench.root / f"copy-{number}"
        shutil.copytree(kept, copy)
        flip(copy / path, place, bit)
        now = observe(bench, copy)
        if now.seen != usual.seen and path.name not in now.said:
            silent.append((str(path), place, bit, now.said))
        shutil.rmtree(copy)
    assert silent == []


def test_a_flipped_bit_is_never_silent(bench: Bench, workspace: Path) -> None:
    check_flips(bench, workspace, 64)


@pytest.mark.campaign
def test_five_hundred_flipped_bits_are_never_silent(bench: Bench, workspace: Path) -> None:
    check_flips(bench, workspace, 500)


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
