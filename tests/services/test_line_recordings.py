"""Takes that a person says: they say so on disk, and nothing replaces or frees them silently."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from acting import ActingDraft
from voice_like import voice_like

from studio.audio.decode import decode
from studio.errors import AudioRejected, BadInput, Cancelled, Conflict, NotFound
from studio.project.history import Author
from studio.project.line_states import LineState
from studio.project.ops import OPS_ADAPTER
from studio.project.session import ProjectSession
from studio.services.line_recordings import MAX_RECORDED_S
from studio.services.studio import Studio, StudioOptions

ME = Author("me-1")


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    options = StudioOptions(tmp_path / "workspace", "acting", backend_names=("acting",))
    with Studio.open(options, lambda _: ActingDraft()) as studio:
        yield studio


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    from studio.dialog.formats.dialog_file import read_dialog_text

    return studio.projects.create("Scene", read_dialog_text("Ida: One.\nTom: Two.").dialog)


def sound(path: Path, *, gain: float = 1.0, around_s: float = 1.0, seconds: float = 1.5) -> Path:
    """A recording with silence around what is said."""
    silence = np.zeros(round(around_s * 24_000))
    said = np.clip(voice_like(seconds).samples * gain, -1, 1)
    soundfile.write(path, np.concatenate([silence, said, silence]), 24_000)
    return path


def record(studio: Studio, session: ProjectSession, path: Path, *, at: int = 0, acted=False):
    line_id = session.document.order[at]
    asyncio.run(studio.recordings.add(session, line_id, path, ME, acted=acted))
    (take,) = [one for one in session.list_takes(line_id)][-1:]
    return take


def state_of(session: ProjectSession, at: int = 0) -> LineState:
    return session.list_views()[at].state


def edit(session: ProjectSession, **op: object) -> None:
    session.edit(OPS_ADAPTER.validate_python([op]), ME, session.rev)


def rendered(session: ProjectSession, **how: object) -> None:
    """Render, and wait until nothing is being made."""

    async def done() -> None:
        while session.busy:
            await session.events.wait_for_change(session.events.seq - 1)
            await asyncio.sleep(0)

    session.render(None, **how)
    asyncio.run(done())


def test_a_recording_is_the_chosen_take_without_the_silence_around_it(studio, session, tmp_path):
    take = record(studio, session, sound(tmp_path / "one.wav"))
    assert (take.source, take.backend, take.text, take.doubts) == ("recording", "", "One.", ())
    assert session.document.lines[take.line_id].chosen == take.take_id
    assert state_of(session) is LineState.READY
    path = session.take_store.get_audio_path(take)
    assert 1.5 <= decode(path).duration_s <= 1.9
    record_on_disk = json.loads(path.with_suffix(".json").read_bytes())
    assert (record_on_disk["version"], record_on_disk["source"]) == (2, "recording")
    session.undo(ME, session.rev)
    assert session.document.lines[take.line_id].chosen is None
    assert len(session.list_takes(take.line_id)) == 1, "it is among the takes"


def test_a_take_of_an_engine_states_the_version_before(studio, session):
    rendered(session)
    (take,) = session.list_takes(session.document.order[0])
    kept = json.loads(session.take_store.get_audio_path(take).with_suffix(".json").read_bytes())
    assert kept["version"] == 1
    assert "source" not in kept


def test_retakes_are_takes(studio, session, tmp_path):
    first = record(studio, session, sound(tmp_path / "one.wav"))
    second = record(studio, session, sound(tmp_path / "two.wav", seconds=2.0))
    assert [one.take_id for one in session.list_takes(first.line_id)] == [
        first.take_id,
        second.take_id,
    ]
    edit(session, op="choose", line_id=first.line_id, take_id=first.take_id)
    assert state_of(session) is LineState.READY


def test_no_render_replaces_a_recording(studio, session, tmp_path):
    take = record(studio, session, sound(tmp_path / "one.wav"))
    edit(session, op="settings", fields={"seed": 7})
    edit(session, op="set", line_ids=[take.line_id], fields={"text": "Other words."})
    assert state_of(session) is LineState.STALE
    rendered(session)
    assert session.document.lines[take.line_id].chosen == take.take_id
    assert len(session.list_takes(take.line_id)) == 1
    assert state_of(session, 1) is LineState.READY
    edit(session, op="set", line_ids=[take.line_id], fields={"text": "One.", "seed": 5})
    assert state_of(session) is LineState.READY
    assert session.document.lines[take.line_id].seed == 5


def test_a_new_take_of_the_engine_is_one_step_that_undo_takes_back(studio, session, tmp_path):
    take = record(studio, session, sound(tmp_path / "one.wav"))
    session.render([take.line_id], again=True)

    async def until_chosen() -> None:
        while session.document.lines[take.line_id].chosen == take.take_id:
            await session.events.wait_for_change(session.events.seq)

    asyncio.run(asyncio.wait_for(until_chosen(), 60))
    session.undo(ME, session.rev)
    assert session.document.lines[take.line_id].chosen == take.take_id


def test_a_damaged_recording_is_not_replaced(studio, session, tmp_path):
    take = record(studio, session, sound(tmp_path / "one.wav"))
    path = session.take_store.get_audio_path(take)
    path.write_bytes(path.read_bytes()[:-2] + b"!!")
    session.check_chosen_takes()
    (view, _) = session.list_views()
    assert view.state is LineState.FAILED
    assert "Record the line again" in view.message
    rendered(session)
    assert session.document.lines[take.line_id].chosen == take.take_id


def test_a_deleted_recording_is_freed_as_a_recording(studio, session, tmp_path):
    from studio.project.reclaim import find_reclaimable, reclaim_space

    take = record(studio, session, sound(tmp_path / "one.wav"))
    assert find_reclaimable(studio.projects).recordings.count == 0
    edit(session, op="delete_take", take_id=take.take_id)
    found = find_reclaimable(studio.projects)
    assert (found.takes.count, found.recordings.count) == (0, 1)
    freed = reclaim_space(studio.projects)
    assert (freed.takes.count, freed.recordings.count) == (0, 1)


def test_a_recording_is_acted_in_the_voice_of_the_character(studio, session, tmp_path):
    take = record(studio, session, sound(tmp_path / "one.wav"), acted=True)
    assert (take.source, take.backend) == ("acted", "acting")
    assert take.voice
    assert state_of(session) is LineState.READY
    peak = np.abs(decode(session.take_store.get_audio_path(take)).samples).max()
    plain = record(studio, session, sound(tmp_path / "one.wav"))
    loud = np.abs(decode(session.take_store.get_audio_path(plain)).samples).max()
    assert peak == pytest.approx(loud / 2, rel=0.01)


def named(edit_id: str) -> Author:
    return Author("me-1", edit_id, edit_id)


def add(
    studio: Studio, session: ProjectSession, path: Path, author: Author, *, acted: bool
) -> None:
    line_id = session.document.order[0]
    asyncio.run(studio.recordings.add(session, line_id, path, author, acted=acted))


def files(session: ProjectSession) -> list[str]:
    return [one.name for one in (session.folder.root / "takes").rglob("*") if one.is_file()]


@pytest.mark.parametrize("acted", [False, True])
def test_a_recording_that_is_withdrawn_before_it_came_is_no_take(studio, session, tmp_path, acted):
    studio.pending_takes.withdraw(session, named("one"))
    with pytest.raises(Cancelled):
        add(studio, session, sound(tmp_path / "one.wav"), named("one"), acted=acted)
    assert files(session) == []


def test_one_that_is_withdrawn_as_its_conversion_ends_is_no_take(studio, session, tmp_path):
    acting = studio.backend
    convert = acting.convert

    def convert_and_withdraw(*given, **how):
        changed = convert(*given, **how)
        studio.pending_takes.withdraw(session, named("one"))
        return changed

    acting.convert = convert_and_withdraw
    with pytest.raises(Cancelled):
        add(studio, session, sound(tmp_path / "one.wav"), named("one"), acted=True)
    assert files(session) == []


@pytest.mark.parametrize("acted", [False, True])
def test_one_that_is_a_take_already_is_taken_back(studio, session, tmp_path, acted):
    before = record(studio, session, sound(tmp_path / "before.wav"))
    add(studio, session, sound(tmp_path / "one.wav"), named("one"), acted=acted)
    assert len(session.list_takes(before.line_id)) == 2
    for edit_id in ("one", "one", "another"):
        studio.pending_takes.withdraw(session, named(edit_id))
        assert [one.take_id for one in session.list_takes(before.line_id)] == [before.take_id]
        assert session.document.lines[before.line_id].chosen == before.take_id


def test_a_take_that_isnt_wanted_when_it_is_written_leaves_nothing(studio, session, tmp_path):
    take = record(studio, session, sound(tmp_path / "one.wav"))
    clip = decode(session.take_store.get_audio_path(take))
    kept = files(session)

    def lock() -> None:
        raise Conflict("It was locked meanwhile.")

    with pytest.raises(Conflict, match="meanwhile"):
        session.add_take(replace(take, take_id="0" * 12), clip, ME, check=lock)
    assert files(session) == kept
    assert len(session.list_takes(take.line_id)) == 1


def test_what_clips_is_kept_and_doubtful(studio, session, tmp_path):
    take = record(studio, session, sound(tmp_path / "loud.wav", gain=20))
    (doubt,) = take.doubts
    assert doubt.kind == "clipped"
    assert "less gain" in doubt.message


def test_silence_and_what_is_too_long_are_refused(studio, session, tmp_path):
    silent = sound(tmp_path / "silent.wav", gain=0.0)
    with pytest.raises(AudioRejected, match="Nothing can be heard"):
        record(studio, session, silent)
    soundfile.write(tmp_path / "long.wav", np.zeros(301 * 1_000), 1_000)
    with pytest.raises(AudioRejected, match="5 minutes"):
        record(studio, session, tmp_path / "long.wav")
    assert session.list_takes(session.document.order[0]) == []


def test_the_page_stops_before_a_recording_is_too_long_to_be_taken():
    page = Path(__file__).parents[2] / "assets" / "page" / "editor" / "line_recorder.js"
    (longest_s,) = re.findall(r"LONGEST_S = (\d+);", page.read_text("utf-8"))
    assert 240 <= int(longest_s) <= MAX_RECORDED_S - 5


def test_no_sound_locked_lines_and_pauses_are_refused(studio, session, tmp_path):
    line_id = session.document.order[0]
    (tmp_path / "text.wav").write_bytes(b"no sound")
    with pytest.raises(AudioRejected):
        record(studio, session, tmp_path / "text.wav")
    good = sound(tmp_path / "one.wav")
    edit(session, op="set", line_ids=[line_id], fields={"locked": True})
    with pytest.raises(Conflict, match="locked"):
        record(studio, session, good)
    pause = {"line_id": "0" * 11 + "a", "kind": "silence", "duration_s": 1.0}
    edit(session, op="insert", after=None, lines=[pause])
    with pytest.raises(BadInput, match="spoken"):
        record(studio, session, good)
    edit(session, op="delete", line_ids=[line_id])
    with pytest.raises(NotFound):
        asyncio.run(studio.recordings.add(session, line_id, good, ME, acted=False))
