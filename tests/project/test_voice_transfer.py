"""A project's file carries the voices of its cast, so that takes stay what the lines say."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from project_scenes import IDA, ops, rendered
from scenes import dialog_of

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.encode import encode
from studio.audio.formats import AudioFormat
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import AudioRejected, BadInput, Conflict, EngineBusy, NotFound, StorageFailed
from studio.project.project_file import write_archive
from studio.project.session import ProjectSession
from studio.services.studio import Studio
from studio.storage.disk import storage_errors
from studio.voices.speaker import Speaker

CONSENT = "2026-01-02T03:04:05+00:00"


def voice(pitch_hz: float) -> Clip:
    at_s = np.arange(6 * STUDIO_RATE_HZ) / STUDIO_RATE_HZ
    syllables = np.sin(2 * np.pi * 2 * at_s) > -0.5
    noise = np.random.default_rng(1).standard_normal(len(at_s))
    sound = 0.3 * np.sin(2 * np.pi * pitch_hz * at_s) * syllables + 0.003 * noise
    return Clip(sound.astype(np.float32), STUDIO_RATE_HZ)


def speaker(studio: Studio, name: str, pitch_hz: float = 180.0) -> Speaker:
    return studio.speakers.add(name, sample=voice(pitch_hz), transcript="Hm.", consent_at=CONSENT)


@pytest.fixture
def other(studio: Studio, tmp_path: Path) -> Iterator[Studio]:
    """Another machine's workspace."""
    other = Studio(replace(studio.options, workspace=tmp_path / "other"), studio.engine)
    yield other
    other.projects.close()


def scene(studio: Studio, text: str = "Ida: Hello.\nTom: Well.") -> ProjectSession:
    return studio.projects.create("Scene", read_dialog_text(text).dialog)


def carried(session: ProjectSession, to: Studio, tmp_path: Path, **how: bool) -> ProjectSession:
    path = tmp_path / "scene.tableread.zip"
    write_archive(session, path, **how)
    with path.open("rb") as file:
        return to.projects.import_file(file)


def states(session: ProjectSession) -> list[str]:
    return [view.state for view in session.list_views()]


def test_takes_of_a_cloned_voice_stay_good_on_another_machine(
    studio: Studio, other: Studio, tmp_path: Path
) -> None:
    speaker(studio, "Ida")
    chosen = speaker(studio, "Deep voice", 120.0)
    session = scene(studio)
    session.edit(ops({"op": "cast", "speaker": "Tom", "voice": chosen.speaker_id}), IDA, 0)
    rendered(session)

    copy = carried(session, other, tmp_path)
    assert states(copy) == ["ready", "ready"]
    assert [one.name for one in other.speakers.list()] == ["Deep voice", "Ida"]
    assert {one.consent_at for one in other.speakers.list()} == {CONSENT}
    assert copy.document.cast == {"Tom": other.speakers.get("Deep voice").speaker_id}
    assert not (copy.folder.root / "voices").exists()
    assert states(carried(session, other, tmp_path)) == ["ready", "ready"]
    assert len(other.speakers.list()) == 2


def test_another_voice_of_that_name_stays_and_the_one_that_came_is_cast(
    studio: Studio, other: Studio, tmp_path: Path
) -> None:
    speaker(studio, "Ida")
    there = speaker(other, "Ida", 120.0)
    session = scene(studio)
    rendered(session)
    copy = carried(session, other, tmp_path)
    assert states(copy) == ["ready", "ready"]
    assert copy.document.cast == {"Ida": other.speakers.get("Ida 2").speaker_id}
    assert other.speakers.get("Ida").speaker_id == there.speaker_id
    assert "“Ida 2”" in copy.folder.notices[0]
    assert not copy.can_undo


def test_a_voice_that_was_changed_since_comes_back_beside_it(
    studio: Studio, tmp_path: Path
) -> None:
    speaker(studio, "Ida")
    session = scene(studio)
    rendered(session)
    write_archive(session, tmp_path / "x.zip")
    studio.speakers.set_sample("Ida", voice(140.0), transcript="Hm.")
    with (tmp_path / "x.zip").open("rb") as file:
        copy = studio.projects.import_file(file)
    assert states(copy) == ["ready", "ready"]
    assert states(session) == ["stale", "ready"]


def test_a_voice_that_is_none_keeps_no_project_out(
    studio: Studio, other: Studio, tmp_path: Path
) -> None:
    speaker(studio, "Ida")
    session = scene(studio)
    studio.speakers.get("Ida").sample.write_bytes(b"no sound at all")
    copy = carried(session, other, tmp_path)
    assert "The voice of Ida could not be brought in" in copy.folder.notices[0]
    assert other.speakers.list() == ()


def test_a_file_without_deleted_takes_is_smaller_and_undo_finds_what_they_were(
    studio: Studio, other: Studio, tmp_path: Path
) -> None:
    session = scene(studio)
    rendered(session)
    first = session.document.order[0]
    (take,) = session.list_takes(first)
    session.render([first], again=True)
    rendered(session)
    session.edit(ops({"op": "delete_take", "take_id": take.take_id}), IDA, session.rev)
    whole = carried(session, other, tmp_path)
    assert whole.take_store.get_audio_path(take).is_file()
    slim = carried(session, other, tmp_path, deleted=False)
    assert not slim.take_store.get_audio_path(take).exists()
    slim.undo(IDA, slim.rev)
    assert slim.take_store.is_freed(slim.take_store.find(take.take_id))
    assert states(slim) == ["ready", "ready"]


def test_what_a_file_unpacks_to_is_bounded_by_who_asks(studio: Studio, tmp_path: Path) -> None:
    session = scene(studio)
    rendered(session)
    write_archive(session, tmp_path / "x.zip")
    with (tmp_path / "x.zip").open("rb") as file, pytest.raises(BadInput, match="too large"):
        studio.projects.import_file(file, max_bytes=10_000)
    assert len(studio.projects.list_summaries()) == 1


def test_a_project_can_be_worked_on_while_it_is_packed(
    studio: Studio, other: Studio, tmp_path: Path
) -> None:
    """What comes after the moment isn't in it, however far the packing is."""
    session = scene(studio)
    rendered(session)
    moment = session.freeze()
    journal = b"".join(moment.read_journal())
    session.merge_script("Ida: All else.", IDA, session.rev)
    session.save(now=True)
    assert b"".join(moment.read_journal()) == journal
    assert (session.folder.root / "project.json").read_bytes() != moment.snapshot
    assert len([one for one in moment.iter_files() if one.suffix == ".wav"]) == 2


def test_who_comes_after_a_project_was_closed_is_asked_to_come_again(studio: Studio) -> None:
    session = studio.projects.create("Scene", dialog_of(2))
    line_id = session.document.order[0]
    session.close()
    for act in (
        lambda: session.render(None),
        lambda: session.edit([], IDA, 0),
        lambda: session.rename("Other"),
        lambda: session.undo(IDA, 0),
        lambda: session.redo(IDA),
        lambda: session.focus(line_id),
        lambda: session.merge_script("Ida: Hello.", IDA, 0),
        lambda: session.add_audio("x.wav", io.BytesIO(b"")),
    ):
        with pytest.raises(EngineBusy, match="Try again"):
            act()
    assert not (session.folder.root / "pending.json").exists()


def test_a_removed_project_is_listed_and_brought_back(studio: Studio) -> None:
    session = studio.projects.create("Scene", dialog_of(2))
    rendered(session)
    studio.projects.remove(session.project_id)
    (waiting,) = studio.projects.list_removed()
    assert (waiting.project_id, waiting.name, waiting.lines) == (session.project_id, "Scene", 2)
    back = studio.projects.restore(session.project_id)
    assert states(back) == ["ready", "ready"]
    assert studio.projects.list_removed() == []
    with pytest.raises(Conflict, match="back already"):
        studio.projects.restore(session.project_id)
    for missing in ("0" * 12, "", "../x"):
        with pytest.raises(NotFound):
            studio.projects.restore(missing)


class Watched(io.BytesIO):
    """Says, while it is read, whether somebody else could work on a project."""

    def __init__(self, content: bytes, session: ProjectSession) -> None:
        super().__init__(content)
        self.session = session
        self.blocked = False

    def read(self, size: int | None = -1, /) -> bytes:
        other = threading.Thread(target=self.session.rename, args=("Meanwhile",))
        other.start()
        other.join(timeout=30)
        self.blocked |= other.is_alive()
        return super().read(size)


def test_nobody_waits_for_a_recording_that_comes_in(studio: Studio) -> None:
    session = scene(studio)
    content = encode(voice(180.0), AudioFormat.WAV)
    file = Watched(content, session)
    name = session.add_audio(f"{'録' * 100}.wav", file)
    assert not file.blocked
    assert session.document.name == "Meanwhile"
    # Systems count bytes, of which these letters have three each.
    assert len(name.encode()) <= 200
    assert (session.folder.root / "audio" / name).read_bytes() == content
    assert session.add_audio(f"{'録' * 100}.wav", io.BytesIO(content)) == name
    with pytest.raises(AudioRejected):
        session.add_audio("x.wav", io.BytesIO(b"no sound"))
    assert [path.name for path in (session.folder.root / "audio").iterdir()] == [name]


def test_no_message_tells_where_the_workspace_lies(tmp_path: Path) -> None:
    folder = tmp_path / "secret" / "place"
    told = pytest.raises(StorageFailed, match="“audio” can't be written")
    with told as caught, storage_errors(folder / "audio"):
        (folder / "audio").mkdir()
    assert "secret" not in str(caught.value)


def test_a_project_that_can_not_be_removed_stays_as_it_was(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = scene(studio)

    def full() -> None:
        raise StorageFailed("The disk is full. Free some space.")

    with monkeypatch.context() as during:
        during.setattr(session, "cancel", full)
        with pytest.raises(StorageFailed):
            studio.projects.remove(session.project_id)
    assert studio.projects.open(session.project_id) is session
    session.rename("Still here")
    studio.projects.remove(session.project_id)
    assert studio.projects.list_summaries() == []


def test_voices_without_a_recording_are_told_apart_by_their_names(
    studio: Studio, other: Studio, tmp_path: Path
) -> None:
    for name in ("Ida", "Tom"):
        studio.speakers.add(name)
    there = other.speakers.add("Maud")
    copy = carried(scene(studio), other, tmp_path)
    assert {one.name for one in other.speakers.list()} == {"Ida", "Tom", "Maud"}
    assert there.speaker_id not in copy.document.cast.values()
