"""Lists of projects read each file once for each of its states, and see what others change."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from project_scenes import IDA, QuickDisk, ops, rendered, settle
from scenes import OpenStudio
from serving import serving

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import EngineBusy
from studio.project.document import Document
from studio.project.folder import ProjectFolder, read_saved_document
from studio.project.projects import Projects
from studio.project.reclaim import find_reclaimable, reclaim_space
from studio.project.script_merge import create_lines
from studio.project.session import ProjectSession
from studio.project.takes import Take, encode_take
from studio.services.studio import Studio
from studio.storage.disk import DiskUsage
from studio.voices.library import SpeakerLibrary

_OPENED: list[str] = []
_WATCHED: list[Path] = []


def _note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _WATCHED and str(arguments[0]).startswith(str(_WATCHED[0])):
        _OPENED.append(str(arguments[0]))


sys.addaudithook(_note_opened)


@contextmanager
def opened_files(root: Path) -> Iterator[list[str]]:
    """The paths of the files below a folder that are opened in the block."""
    _OPENED.clear()
    _WATCHED.append(root)
    try:
        yield _OPENED
    finally:
        _WATCHED.clear()


def dialog_document(name: str, lines: int) -> Document:
    text = "\n".join(f"{('Ida', 'Tom')[row % 2]}: Words of line {row}." for row in range(lines))
    by_id = {line.line_id: line for line in create_lines(read_dialog_text(text).dialog)}
    return replace(Document(name), lines=by_id, order=tuple(by_id))


def make_projects(root: Path, count: int, lines: int) -> None:
    document = dialog_document("Scene", lines)
    for number in range(count):
        named = replace(document, name=f"Scene {number}")
        ProjectFolder.create(root / f"{number:012x}", named, 1.7e9 + number, QuickDisk())


def look(projects: Projects) -> tuple[object, ...]:
    return (projects.list_summaries(), find_reclaimable(projects), projects.list_removed())


@pytest.fixture
def projects(studio: Studio, tmp_path: Path) -> Projects:
    """Twelve projects, of which one is damaged, one damaged beyond repair, and one removed."""
    root = studio.options.workspace / "projects"
    make_projects(root, 12, 3)
    for number in (3, 4):
        (root / f"{number:012x}" / "project.json").write_bytes(b"damaged")
    (root / f"{4:012x}" / "edits.jsonl").write_bytes(b"damaged too\n")
    studio.projects.remove(f"{5:012x}")
    settle(root)
    return studio.projects


def test_the_second_look_opens_no_file(studio: Studio, projects: Projects) -> None:
    with opened_files(studio.options.workspace) as first:
        seen = look(projects)
        assert len(first) >= 12
    with opened_files(studio.options.workspace) as second:
        assert look(projects) == seen
        assert second == []
    assert len(projects.list_summaries()) == 11


def test_the_second_look_at_voices_opens_no_file(studio: Studio, open_studio: OpenStudio) -> None:
    for name in ("Ida", "Tom", "Una"):
        studio.speakers.add(name)
    studio.speakers.remove("Tom")
    library = open_studio().speakers  # the other has looked, if the machine was slow
    with opened_files(studio.options.workspace) as first:
        seen = library.scan(), library.list_removed()
        assert len(first) >= 3
    settle(studio.options.workspace / "speakers")
    assert (library.scan(), library.list_removed()) == seen
    with opened_files(studio.options.workspace) as second:
        assert (library.scan(), library.list_removed()) == seen
        assert second == []
    assert [one.name for one in library.list_removed()] == ["Tom"]


def test_what_another_studio_changes_is_seen(open_studio: OpenStudio, projects: Projects) -> None:
    look(projects)
    other = open_studio().projects
    other.open(f"{1:012x}").rename("Renamed")
    other.remove(f"{2:012x}")
    other.restore(f"{5:012x}")
    other.open(f"{3:012x}")  # which mends it
    other.close()
    names = {card.project_id: card.name for card in projects.list_summaries()}
    assert names[f"{1:012x}"] == "Renamed"
    assert names[f"{3:012x}"] == "Scene 3"
    assert f"{2:012x}" not in names
    assert f"{5:012x}" in names
    assert [card.project_id for card in projects.list_removed()] == [f"{2:012x}"]


def test_a_change_within_a_tick_is_listed(studio: Studio, projects: Projects) -> None:
    path = studio.options.workspace / "projects" / f"{7:012x}" / "project.json"
    saved = path.read_text("utf-8")
    sum_row = saved.split("\n")[1]
    plain = saved.replace(f"{sum_row}\n", "")  # as the first studios wrote it
    for number in range(100, 160):
        path.write_text(plain.replace('"Scene 7"', f'"Turn {number}"'), "utf-8")
        assert f"Turn {number}" in {card.name for card in projects.list_summaries()}


def delete_first_take(session: ProjectSession) -> Take:
    take = session.list_takes(session.document.order[0])[0]
    session.edit(ops({"op": "delete_take", "take_id": take.take_id}), IDA, session.rev)
    return take


@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_the_space_dialog_follows_what_changes(
    open_studio: OpenStudio, studio: Studio, *, is_open: bool
) -> None:
    session = studio.projects.create("Scene", read_dialog_text("Ida: Hello.\nTom: Go.").dialog)
    rendered(session)
    held_bytes = session.take_store.get_audio_path(delete_first_take(session)).stat().st_size
    root, ours = session.folder.root, studio.projects
    if not is_open:
        session.close()
        ours = open_studio().projects
    settle(root)
    for _ in range(3):
        assert find_reclaimable(ours).takes == DiskUsage(1, held_bytes)

    recording = root / "audio" / "door.wav"
    recording.parent.mkdir(exist_ok=True)
    recording.write_bytes(b"1234")
    settle(root)
    assert find_reclaimable(ours).recordings == DiskUsage()
    os.utime(recording, (1e9, 1e9))
    assert find_reclaimable(ours).recordings == DiskUsage(1, 4)
    recording.unlink()
    assert find_reclaimable(ours).recordings == DiskUsage()

    freeing = ours if is_open else open_studio().projects
    assert reclaim_space(freeing).takes == DiskUsage(1, held_bytes)
    assert find_reclaimable(ours).takes == DiskUsage()


def test_the_trash_is_measured_once(studio: Studio, projects: Projects) -> None:
    removed = studio.options.workspace / "projects" / ".trash" / f"{5:012x}"
    size_bytes = sum(one.stat().st_size for one in removed.rglob("*") if one.is_file())
    for _ in range(2):
        assert projects.trash.measure() == DiskUsage(1, size_bytes)
    projects.restore(f"{5:012x}").rename("A much longer name than it had before")
    projects.remove(f"{5:012x}")
    assert projects.trash.measure().size_bytes > size_bytes


def test_closed_projects_stay_closed(studio: Studio, projects: Projects) -> None:
    line_ids = read_saved_document(studio.options.workspace / "projects" / f"{6:012x}").order
    interrupt_render(studio.options.workspace / "projects" / f"{6:012x}", line_ids)
    projects.close()
    projects.resume()
    assert projects.get_open(f"{6:012x}") is None
    with pytest.raises(EngineBusy):
        projects.open(f"{6:012x}")


def spent_s(pid: int) -> float:
    """A process's processor time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_large_project(root: Path, lines: int, takes: int) -> None:
    document = dialog_document("Long", lines)
    ProjectFolder.create(root, document, 1.8e9, QuickDisk())
    for number, line_id in enumerate(document.order[:takes]):
        take = Take(
            f"{number:016x}", line_id, "k", 1, "draft", "Words", "Ida", 50, "2026-01-01T00:00:00Z"
        )
        folder = root / "takes" / line_id
        folder.mkdir(parents=True)
        (folder / f"{take.take_id}.json").write_bytes(encode_take(take))
        (folder / f"{take.take_id}.wav").write_bytes(bytes(144))


def make_speakers(root: Path, count: int) -> None:
    """That many speakers, and as many removed ones."""
    first = SpeakerLibrary(root).add("Ida")
    saved = (root / first.speaker_id / "speaker.json").read_text("utf-8")
    for number in range(count):
        for folder in (root / f"{number:012x}", root / ".trash" / f"{number + count:012x}"):
            folder.mkdir(parents=True)
            named = saved.replace('"Ida"', f'"Ida {folder.name}"')
            (folder / "speaker.json").write_text(named, "utf-8")


def interrupt_render(root: Path, line_ids: Iterable[str]) -> None:
    pending = {"lines": dict.fromkeys(line_ids)}
    (root / "pending.json").write_text(json.dumps(pending), "utf-8")


def measure_start_s(workspace: Path) -> float:
    with serving(workspace, fresh=True) as (_, process):
        return spent_s(process.pid)


_LISTS = ("/studio/projects", "/studio/space", "/studio/space/trash", "/studio/speakers")


@pytest.mark.campaign
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_thousand_projects_are_listed_in_50_ms(tmp_path: Path) -> None:
    workspace, spent = tmp_path / "many", {}
    large = workspace / "projects" / f"{0xFFFF:012x}"
    make_projects(workspace / "projects", 1_000, 40)
    make_projects(workspace / "projects" / ".trash", 1_000, 40)
    make_speakers(workspace / "speakers", 1_000)
    make_large_project(large, 10_000, 6_800)
    with serving(workspace, fresh=True) as (client, process):
        for path in _LISTS:
            assert client.get(path).status_code == 200
            before_s = spent_s(process.pid)
            for _ in range(20):
                client.get(path)
            spent[path] = (spent_s(process.pid) - before_s) / 20

    interrupt_render(large, read_saved_document(large).order[6_800:])
    many_s = median(measure_start_s(workspace) for _ in range(3))
    empty_s = median(measure_start_s(tmp_path / f"empty{one}") for one in range(3))
    print({path: f"{1_000 * one:.0f} ms" for path, one in spent.items()})
    print(f"start with them {many_s:.2f} s of processor time, with none {empty_s:.2f} s")
    assert max(spent.values()) <= 0.050
    assert many_s <= empty_s + 1.0
