"""One flipped bit in any file of a project or voice: what changes is said of that very file.

`-m campaign` flips 500 bits.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import io
import json
import os
import random
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image
from project_scenes import (
    Bench,
    QuickDisk,
    document_of,
    ops,
    rendered,
    settle,
    text_edit,
)
from scenes import dialog_of
from voice_like import voice_like

from studio.audio.clip import Clip
from studio.audio.file_tags import Cover
from studio.errors import (
    AudioRejected,
    BadInput,
    Conflict,
    FileDamaged,
    NotFound,
    StorageFailed,
    StudioError,
)
from studio.project.cover import read_project_cover, save_project_cover
from studio.project.folder import (
    LastPosition,
    check_recording,
    read_last_position,
    recover_summary,
    save_last_position,
)
from studio.project.history import Author, Journal
from studio.project.judgement import JUDGE_FORMAT
from studio.project.project_file import validate_import, write_archive
from studio.project.projects import Projects
from studio.project.scene_export import build_scene, describe_left_out
from studio.project.session import ProjectSession
from studio.project.takes import (
    TAKE_FORMAT,
    Take,
    TakeSource,
    is_recorded,
    list_plain_fields,
)
from studio.quality.checks import QualityIssue
from studio.server.error_responses import answer_error
from studio.server.routes.project_files import project_file_routes
from studio.server.routes.project_routes import project_audio_routes, project_routes
from studio.services.speech_requests import SpeechOptions, SpeechStream
from studio.services.studio import Studio
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
    save_last_position(root, place, bench.disk, session.rev)
    save_project_cover(session.folder, Cover(jpeg()))
    bench.kill(session)
    library = SpeakerLibrary(bench.root / "home" / "speakers")
    speech = voice_like(3.0)
    library.add("Ida", sample=speech, transcript="What is said.", language="en")
    library.add_mood("Ida", "glad", speech)
    return bench.root / "home"


def jpeg() -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (48, 48), (200, 10, 10)).save(data, "JPEG")
    return data.getvalue()


@dataclass(frozen=True)
class Observed:
    """What a user sees and gets of a workspace, and what the studio says about it."""

    seen: tuple[Any, ...]
    said: str


def content_of(path: Path) -> bytes | None:
    """None where something else is in the place of the file, as a pipe."""
    return path.read_bytes() if path.is_file() else None


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
            (replace(one, sample=None, moods=()), one.sample and content_of(one.sample))
            for one in library.list()
        ]
        voices += [
            (mood.mood, mood.transcript, content_of(mood.path))
            for one in library.list()
            for mood in one.moods
        ]
        recordings = {path.name: content_of(path) for path in (root / "audio").iterdir()}
        pending = tuple(session._state.folder.read_pending().items())
        place = read_last_position(root)
        cover = read_project_cover(root)
        seen = (session.document, views, sound, takes, voices, recordings, pending, place, cover)
        return Observed(seen, "\n".join(filter(None, said)))
    finally:
        bench.kill(session)


def is_said_of(path: Path, said: str) -> bool:
    """Whether something is said of a file: by its name, of a take's by its line."""
    if path.parent.parent.name != "takes":
        return path.name in said
    number = int(path.parent.name, 16) + 2  # behind the recording
    told = rf"^Line {number}: The (audio|record) of [^/“]*$"
    return re.search(told, said, re.MULTILINE) is not None


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
        "*.wav", "speaker.json", "sample.wav", "mood-*.wav", "cover", "cover.json",
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
        if now.seen != usual.seen and not is_said_of(path, now.said):
            silent.append((str(path), place, bit, now.said))
        shutil.rmtree(copy)
    assert silent == []


def test_a_flipped_bit_is_never_silent(bench: Bench, workspace: Path) -> None:
    check_flips(bench, workspace, 64)


@pytest.mark.campaign
def test_five_hundred_flipped_bits_are_never_silent(bench: Bench, workspace: Path) -> None:
    check_flips(bench, workspace, 500)


def in_key(row: bytes) -> bytes:
    return row.replace(b"sum", b"rum")


def in_digit(row: bytes) -> bytes:
    return row[:11] + b"x" + row[12:]


@pytest.mark.parametrize("flipped", [in_key, in_digit])
@pytest.mark.parametrize(
    ("pattern", "before", "after"),
    [
        ("project.json", b"Scene", b"Scena"),
        ("pending.json", b'"000000000004": 4', b'"000000000004": 5'),
        ("place.json", b'"by": "ida"', b'"by": "idc"'),
        ("takes/*/*0.json", b"Take 0.", b"Take 1."),
    ],
)
def test_a_second_flipped_bit_in_the_checksum_itself_hides_none(
    bench: Bench,
    workspace: Path,
    flipped: Callable[[bytes], bytes],
    pattern: str,
    before: bytes,
    after: bytes,
) -> None:
    (path,) = workspace.glob(f"0123456789ab/{pattern}")
    data = path.read_bytes()
    assert before in data
    path.write_bytes(flipped(data[:23]) + data[23:].replace(before, after, 1))
    assert is_said_of(path, observe(bench, workspace).said)


def swap_halves(data: bytes) -> bytes:
    return data[len(data) // 2 :] + data[: len(data) // 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[: len(data) // 2],
        lambda _: b"",
        lambda data: bytes(len(data)),
        lambda data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2),
        lambda data: data + b'{"more": 1}\n',
        swap_halves,
        None,
    ],
    ids=["half", "empty", "zeros", "zeros behind", "a line more", "turned", "missing"],
)
@pytest.mark.parametrize(
    "name",
    ["project.json", "edits.jsonl", "cover", "takes/000000000000/0000000000000000.json"],
)
def test_a_file_of_which_more_has_changed_is_never_silent(
    bench: Bench, workspace: Path, name: str, change: Callable[[bytes], bytes] | None
) -> None:
    usual = observe(bench, workspace)
    path = workspace / "0123456789ab" / name
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(path.read_bytes()))
    now = observe(bench, workspace)
    assert now.seen == usual.seen or is_said_of(path, now.said)
    observe(bench, workspace)
    again = observe(bench, workspace)
    assert again.seen[0] == now.seen[0]
    assert "edits.jsonl" not in again.said, "it is said once"


@pytest.mark.skipif(os.name != "posix", reason="needs pipes in folders")
def test_nobody_waits_for_a_pipe_in_the_place_of_a_file(bench: Bench, workspace: Path) -> None:
    usual = observe(bench, workspace)
    kept = bench.root / "kept"
    shutil.copytree(workspace, kept)
    for path in sorted(path.relative_to(kept) for path in kept.rglob("*.*") if path.is_file()):
        shutil.rmtree(workspace)
        shutil.copytree(kept, workspace)
        (workspace / path).unlink()
        os.mkfifo(workspace / path)
        now = observe(bench, workspace)
        assert now.seen == usual.seen or is_said_of(path, now.said), path


def test_nobody_waits_for_a_pipe_while_a_project_is_exported(bench: Bench, workspace: Path) -> None:
    session = bench.open("home/0123456789ab")
    for pattern in ("takes/*/*0.wav", "takes/*/*1.json", "audio/*", "cover"):
        (path,) = session.folder.root.glob(pattern)
        path.unlink()
        os.mkfifo(path)
    write_archive(session, bench.root / "scene.zip")
    with zipfile.ZipFile(bench.root / "scene.zip") as archive:
        names = [name for name in archive.namelist() if name.startswith("takes/")]
    assert sorted(name[-6:] for name in names) == [
        *("0.json", "01.wav", "02.wav", "03.wav", "2.json", "3.json")
    ]
    bench.kill(session)


def test_rows_with_other_ends_are_the_same_and_still_checked(bench: Bench, workspace: Path) -> None:
    """As programs leave them that copy or save files for Windows."""
    usual = observe(bench, workspace)
    records = [*workspace.rglob("*.json"), *workspace.rglob("*.jsonl")]
    for path in records:
        path.write_bytes(codecs.BOM_UTF8 + path.read_bytes().replace(b"\n", b"\r\n"))
    now = observe(bench, workspace)
    assert now.seen == usual.seen
    assert "change is lost" not in now.said.replace("no change is lost", "")
    # The history's places are others, so that the snapshot is made again from it.
    copied = [path for path in records if path.name not in {"edits.jsonl", "project.json"}]
    assert [path for path in copied if is_said_of(path, now.said)] == []
    (take,) = workspace.glob("*/takes/000000000001/*.json")
    take.write_bytes(take.read_bytes().replace(b"Take 1.", b"Take 7."))
    assert is_said_of(take, observe(bench, workspace).said)


def test_a_project_that_may_not_be_read_is_listed_as_such(
    bench: Bench, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("0123456789ab", "0123456789ac"):
        shutil.copytree(whole, bench.root / "shelf" / name)
    projects, real = projects_of(bench.root / "shelf"), os.stat

    def refuse(path: Any, *how: Any, **more: Any) -> os.stat_result:
        if "/0123456789ac/" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *how, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", refuse)
        cards = {card.project_id: card for card in projects.list_summaries()}
    assert cards["0123456789ab"].problem is None
    assert cards["0123456789ac"].problem == "project.json can't be read: Permission denied."


def test_a_project_of_which_a_file_may_not_be_read_says_which(
    bench: Bench, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_last_position(whole, LastPosition(by="ida"), bench.disk, 0)
    real, before = Path.open, {path.name for path in whole.iterdir()}

    def refuse(path: Path, *how: Any, **more: Any) -> Any:
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *how, **more)

    monkeypatch.setattr(Path, "open", refuse)
    for name in ("project.json", "edits.jsonl"):
        with pytest.raises(StorageFailed, match=f"“{name}” of this project can't be read: Permis"):
            bench.open()
    name = "place.json"
    session = bench.open()
    assert session.folder.notices == [
        "place.json can't be read: Permission denied. The last position is lost."
    ]
    bench.kill(session)
    assert {path.name for path in whole.iterdir()} <= {*before, ".lock"}


def test_a_cover_of_before_has_a_checksum_once_it_was_opened(bench: Bench, whole: Path) -> None:
    (whole / "cover").write_bytes(jpeg())
    bench.kill(bench.open())
    assert read_project_cover(whole).data == jpeg()
    flip(whole / "cover", 400, 1)
    assert read_project_cover(whole) is None
    session = bench.open()
    (notice,) = session.folder.notices
    (kept,) = whole.glob("cover.damaged-*")
    assert kept.name in notice
    save_project_cover(session.folder, Cover(jpeg()))
    bench.kill(session)
    assert read_project_cover(whole).data == jpeg()


@pytest.mark.parametrize(
    "name", ["project.json", "edits.jsonl", "pending.json", "place.json", "judge.json", "cover"]
)
def test_a_project_opens_although_the_disk_cannot_read_a_file_of_it(
    bench: Bench, whole: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    session = bench.open()
    session.edit(ops(text_edit(session.document.order[0], "Last.")), IDA, session.rev)
    session.close()
    document = session.document
    (whole / name).touch()
    real, lost = Path.open, (whole / name).stat().st_ino

    def refuse(path: Path, *how: Any, **more: Any) -> Any:
        if path.exists() and path.stat().st_ino == lost:
            raise OSError(errno.EIO, "Input/output error")
        return real(path, *how, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        (card,) = [one for one in [recover_summary(whole)] if one]
        session = bench.open()
        assert session.document == document
        assert name in "\n".join(session.folder.notices)
        bench.kill(session)
    assert card.project_id == whole.name
    again = bench.open()
    assert again.document == document
    assert again.folder.notices == []
    bench.kill(again)


def test_a_voice_that_is_left_out_is_said_where_it_would_speak(
    studio: Studio, client: TestClient
) -> None:
    ida = studio.speakers.add("Ida")
    session = studio.projects.create("Scene", dialog_of(1))
    path = studio.speakers.folder(ida.speaker_id) / "speaker.json"
    path.write_bytes(path.read_bytes()[:60])
    studio.projects._open.close_project(session.project_id)
    notices = studio.projects.open(session.project_id).folder.notices
    assert [ida.speaker_id in one for one in notices] == [True]
    stream = SpeechStream(studio, dialog_of(1), SpeechOptions())
    assert [ida.speaker_id in one.message for one in stream.job.spec.plan.notices] == [True]
    stream.render.close()


def test_a_damaged_judgement_is_kept_and_said(bench: Bench, whole: Path) -> None:
    (whole / "judge.json").write_bytes(JUDGE_FORMAT.encode({"judged_at": "", "report": {}})[:-9])
    session = bench.open()
    (notice,) = session.folder.notices
    (kept,) = whole.glob("judge.damaged-*.json")
    assert kept.name in notice
    assert "All checks are on again" in notice
    bench.kill(session)


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


def test_a_damaged_take_is_marked_left_out_by_its_line_and_made_again(
    bench: Bench, workspace: Path
) -> None:
    session = bench.open("home/0123456789ab")
    first, second = (session.take_store.find(f"{number:016x}") for number in range(2))
    before = build_scene(session).timeline.n_samples
    path = session.take_store.get_audio_path(second)
    damaged = bytearray(path.read_bytes())
    damaged[1_000] ^= 4
    path.write_bytes(damaged)
    seq = session.events.seq
    scene = build_scene(session)
    assert scene.timeline.n_samples == before - second.samples
    number = session.document.order.index(second.line_id) + 1
    changed = (
        "The audio of this line's take has changed on the disk. "
        "Render the line again, or choose another take."
    )
    assert f"Line {number}: {changed}" in describe_left_out(scene)
    view = session.get_view(second.line_id)
    assert (view.state, view.take, view.message) == ("failed", None, changed)
    assert session.events.read_batch(seq), "pages learn of it at once"
    assert session.get_view(first.line_id).take.take_id == first.take_id
    with pytest.raises(FileDamaged, match="has changed on the disk"):
        session.check_audio(second)
    session.take_store.add(second, Clip(np.zeros(second.samples, np.float32)))
    assert session.get_view(second.line_id).take is not None
    assert build_scene(session).timeline.n_samples == before
    assert path.with_suffix(".damaged.wav").read_bytes() == damaged
    bench.kill(session)


def test_a_flipped_bit_takes_no_take_and_no_cover_away(bench: Bench, workspace: Path) -> None:
    root = workspace / "0123456789ab"
    (record,) = root.glob("takes/*/*0.json")
    data = TAKE_FORMAT.encode(json.loads(record.read_bytes()) | {"source": "recording"})
    record.write_bytes(data)
    usual = observe(bench, workspace)
    assert is_recorded(record.with_suffix(".wav"))
    for path in (record, root / "cover.json"):
        whole = path.read_bytes()
        for place in random.Random(3).sample(range(8 * len(whole)), 12):
            flip(path, place // 8, place % 8)
            assert observe(bench, workspace).seen == usual.seen
            assert is_recorded(record.with_suffix(".wav")), "so that its audio isn't deleted"
            path.write_bytes(whole)


def lose(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1_000])


@pytest.mark.parametrize("damage", [lose, empty, cut])
def test_audio_that_is_gone_or_cut_is_said_with_its_line(
    bench: Bench, workspace: Path, damage: Callable[[Path], None]
) -> None:
    path = workspace / "0123456789ab/takes/000000000001/0000000000000001.wav"
    sound = path.read_bytes()
    damage(path)
    for _ in range(2):  # as long as it is so
        session = bench.open("home/0123456789ab")
        number = session.document.order.index("000000000001") + 1
        (notice,) = session.folder.notices
        assert notice.startswith(f"Line {number}: The audio of ")
        assert path.stem not in notice
        bench.kill(session)
    if damage is not lose:
        return
    session = bench.open("home/0123456789ab")
    take = session.take_store.find("0000000000000001")
    view = session.get_view("000000000001")
    assert (view.state, view.take) == ("failed", None)
    assert "isn't there any more" in view.message
    assert "Render the line again" in view.message
    assert f"Line {number}: {view.message}" in describe_left_out(build_scene(session))
    path.write_bytes(sound)
    session.take_store.add(take, Clip(np.zeros(take.samples, np.float32)))
    assert session.get_view("000000000001").take is not None
    bench.kill(session)
    assert observe(bench, workspace).said.count(path.name) == 0


def test_a_recording_that_is_gone_is_not_spoken_over(bench: Bench, workspace: Path) -> None:
    session = bench.open("home/0123456789ab")
    line_id = session.document.order[0]
    recorded = replace(add_take(session, line_id, 9), take_id="9" * 16, source=TakeSource.RECORDING)
    session.take_store.add(recorded, Clip(np.zeros(recorded.samples, np.float32)))
    session.edit(
        ops({"op": "choose", "line_id": line_id, "take_id": recorded.take_id}), IDA, session.rev
    )
    bench.kill(session)
    session.take_store.get_audio_path(recorded).unlink()
    session = bench.open("home/0123456789ab")
    view = session.get_view(line_id)
    assert view.state == "failed"
    assert "Record the line again" in view.message
    assert session._state.line_states.is_recorded(view.line)
    bench.kill(session)


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    app = FastAPI(exception_handlers={StudioError: answer_error})

    @app.middleware("http")
    async def seated(request, call_next):
        request.state.studio = studio
        return await call_next(request)

    for routes in (project_routes, project_audio_routes, project_file_routes):
        app.include_router(routes)
    with TestClient(app) as client:
        yield client


def test_an_export_over_http_names_the_damaged_line(studio: Studio, client: TestClient) -> None:
    session = studio.projects.create("Scene", dialog_of(2))
    rendered(session)
    view = session.get_view(session.document.order[1])
    path = session.take_store.get_audio_path(view.take)
    flip(path, path.stat().st_size - 9, 3)
    address = f"/studio/projects/{session.project_id}"
    answer = client.get(f"{address}/export", params={"format": "wav"})
    assert answer.status_code == 200
    left_out = unquote(answer.headers["x-left-out"])
    assert left_out.startswith("Line 2: The audio of this line's take has changed on the disk.")
    assert path.stem not in left_out
    answer = client.get(f"{address}/takes/{view.line.line_id}/{path.stem}/audio.wav")
    assert answer.status_code in (404, 409)
    rendered(session)
    assert session.get_view(view.line.line_id).take.take_id == path.stem
    assert "x-left-out" in client.get(f"{address}/export", params={"format": "wav"}).headers


def damaged_project(bench: Bench, name: str) -> Path:
    session = bench.make(document_of(3), name)
    add_take(session, session.document.order[0], 1)
    session.close()
    root = session.folder.root
    flip(root / "project.json", 60, 1)
    return root


def test_cards_of_damaged_projects_say_why(bench: Bench) -> None:
    root = damaged_project(bench, "home/0123456789ab")
    settle(root)
    projects = projects_of(root.parent)
    (card,) = projects.list_summaries()
    assert (card.name, card.lines, card.audio_s) == ("Scene", 3, 0)
    assert "project.json is damaged" in card.problem
    projects.remove(card.project_id)
    (removed,) = projects.list_removed()
    assert "project.json is damaged" in removed.problem
    projects.trash.restore(card.project_id, root)
    session = bench.open(f"home/{root.name}")
    bench.kill(session)
    (mended,) = projects.list_summaries()
    assert mended.problem is None


def test_a_mended_project_has_its_seconds_of_audio_without_an_edit(bench: Bench) -> None:
    root = damaged_project(bench, "home/0123456789ab")
    session = bench.open(f"home/{root.name}")
    session.save()
    bench.kill(session)
    (card,) = projects_of(root.parent).list_summaries()
    assert card.audio_s == pytest.approx(0.1)


def test_a_damaged_project_is_read_once_for_each_state(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = damaged_project(bench, "home/0123456789ab")
    settle(root)
    projects = projects_of(root.parent)
    (card,) = projects.list_summaries()
    with monkeypatch.context() as patched:
        patched.setattr("studio.project.folder.recover_document", pytest.fail)
        assert projects.list_summaries() == [card]
    with (root / "edits.jsonl").open("ab") as file:
        file.write(b"torn")
    assert projects.list_summaries() == [card]


def test_a_project_that_is_removed_while_it_is_opened_is_gone(
    bench: Bench, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is held until the folder has been moved, and who gets it then finds nothing."""
    shutil.copytree(whole, bench.root / "shelf" / "0123456789ab")
    projects = projects_of(bench.root / "shelf")
    root = bench.root / "shelf" / "0123456789ab"
    put, tries = projects.trash.put, []

    def put_while_others_open(folder: Path) -> None:
        with pytest.raises(Conflict, match="another studio"):
            bench.open("shelf/0123456789ab")
        tries.append(folder)
        put(folder)

    monkeypatch.setattr(projects.trash, "put", put_while_others_open)
    projects.remove(root.name)
    assert tries == [root]
    with pytest.raises(NotFound):
        bench.open("shelf/0123456789ab")
    assert not root.exists()


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
