"""Voices and recordings that were changed or removed come back as they were."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from voice_like import voice_like

from studio.errors import Conflict, NotFound, StorageFailed
from studio.voices.library import SpeakerLibrary
from studio.voices.voice_pack import read_pack, write_pack

DAY_S = 24 * 3600


@pytest.fixture
def clock():
    """The time of day, to be moved on."""
    return [datetime(2030, 1, 1, tzinfo=UTC)]


@pytest.fixture
def library(tmp_path, clock):
    return SpeakerLibrary(tmp_path / "speakers", now=lambda: clock[0])


@pytest.fixture
def anna(library):
    consent = "2026-11-20T10:00:00+00:00"
    return library.add("Anna", sample=voice_like(6), transcript="Hello.", consent_at=consent)


def former_files(library, speaker):
    return sorted(path.name for path in library.folder(speaker.speaker_id).glob("former-*"))


def test_a_changed_sample_comes_back_byte_for_byte_after_a_restart(library, anna, tmp_path):
    before = anna.sample.read_bytes()
    library.replace_sample("Anna", None, voice_like(5), transcript="Hel")
    assert library.list_problems() == ()
    again = SpeakerLibrary(tmp_path / "speakers")
    (former,) = again.get("Anna").formers
    assert (former.sample_id, former.removed) == (None, False)
    back = again.restore_version("Anna", former.former_id)
    assert back.sample.read_bytes() == before
    assert (back.transcript, back.consent_at) == (anna.transcript, anna.consent_at)
    assert back.formers == ()
    assert former_files(again, anna) == []


class Killed(BaseException):
    """The end of the process."""


def test_a_recording_that_was_replaced_when_the_process_ended_comes_back(
    library, anna, monkeypatch
):
    library.replace_sample("Anna", None, voice_like(5), transcript="Second.")
    before = library.get("Anna")
    sample = before.sample.read_bytes()

    def die(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("studio.voices.speaker_store.write_record", die)
        with pytest.raises(Killed):
            library.replace_sample("Anna", None, voice_like(4), transcript="Third.")
        assert before.sample.read_bytes() != sample
        with pytest.raises(Killed):
            library.add_mood("Anna", "glad", voice_like(3))
    library.update("Anna", language="de")
    after = library.get("Anna")
    assert after.sample.read_bytes() == sample
    assert (after.transcript, after.formers) == ("Second.", before.formers)
    assert library.list_problems() == ()
    names = {path.name for path in library.folder(anna.speaker_id).iterdir()}
    assert names == {"speaker.json", "sample.wav", before.formers[0].path.name}


def test_a_removed_main_sample_comes_back_with_what_belongs_to_it(library, anna):
    before = anna.sample.read_bytes()
    without = library.set_sample("Anna", None)
    assert without.sample is None
    assert not anna.sample.exists()
    back = library.restore_version("Anna", without.formers[0].former_id)
    assert back.sample.read_bytes() == before
    assert (back.transcript, back.consent_at) == (anna.transcript, anna.consent_at)


def test_a_main_sample_that_comes_back_takes_the_place_of_the_present_one(library, anna):
    before = anna.sample.read_bytes()
    former = library.set_sample("Anna", None).formers[0]
    present = library.set_sample("Anna", voice_like(5, pitch_hz=200)).sample.read_bytes()
    back = library.restore_version("Anna", former.former_id)
    assert back.sample.read_bytes() == before
    assert [one.path.read_bytes() for one in back.formers] == [present], "and that one is kept"


def test_the_oldest_recording_comes_back_though_the_present_one_needs_its_room(library, anna):
    before = anna.sample.read_bytes()
    oldest = library.set_sample("Anna", None).formers[0]
    library.set_sample("Anna", voice_like(5))
    for _ in range(9):
        library.replace_sample("Anna", None, voice_like(5), transcript=None)
    assert library.get("Anna").formers[0] == oldest
    back = library.restore_version("Anna", oldest.former_id)
    assert back.sample.read_bytes() == before
    assert len(back.formers) == 10
    assert former_files(library, anna) == sorted(one.path.name for one in back.formers)


def test_a_removed_mood_comes_back_unless_its_mood_is_taken(library, anna):
    angry = library.add_mood("Anna", "angry", voice_like(5), transcript="No!").moods[0]
    before = angry.path.read_bytes()
    gone = library.remove_mood("Anna", angry.sample_id)
    assert not angry.path.exists()
    other = library.add_mood("Anna", "Angry", voice_like(5)).moods[0]
    former = gone.formers[-1]
    with pytest.raises(Conflict):
        library.restore_version("Anna", former.former_id)
    library.remove_mood("Anna", other.sample_id)
    (back,) = library.restore_version("Anna", former.former_id).moods
    assert (back.mood, back.transcript, back.sample_id) == ("angry", "No!", angry.sample_id)
    assert back.path.read_bytes() == before


def test_few_recordings_are_kept_and_for_a_while_only(library, anna, clock):
    for _ in range(12):
        library.replace_sample("Anna", None, voice_like(5), transcript=None)
    kept = library.get("Anna").formers
    assert len(kept) == 10
    assert former_files(library, anna) == sorted(one.path.name for one in kept)
    clock[0] += timedelta(days=30)
    library.replace_sample("Anna", None, voice_like(5), transcript=None)
    assert len(library.get("Anna").formers) == len(kept)
    clock[0] += timedelta(days=30, seconds=1)
    library.replace_sample("Anna", None, voice_like(5), transcript=None)
    assert len(former_files(library, anna)) == len(library.get("Anna").formers) == 1


def test_a_kept_recording_is_deleted_for_good_on_demand(library, anna):
    former = library.set_sample("Anna", None).formers[0]
    assert library.delete_version("Anna", former.former_id).formers == ()
    assert former_files(library, anna) == []
    with pytest.raises(NotFound, match="isn't kept any more"):
        library.restore_version("Anna", former.former_id)


def test_a_voice_file_holds_no_former_recordings_and_brings_none(library, anna):
    library.replace_sample("Anna", None, voice_like(5), transcript=None)
    file = io.BytesIO()
    write_pack(library, library.get("Anna"), file)
    assert read_pack(library, file).formers == ()


def test_a_removed_voice_comes_back_with_its_id_and_its_samples(library, anna):
    library.add_mood("Anna", "angry", voice_like(5))
    before = library.get("Anna")
    library.remove("Anna")
    assert library.list() == ()
    assert [(one.speaker_id, one.name) for one in library.list_removed()] == [
        (anna.speaker_id, "Anna")
    ]
    assert library.restore_removed(anna.speaker_id) == before
    assert library.list_removed() == ()
    with pytest.raises(NotFound):
        library.restore_removed(anna.speaker_id)


def test_a_voice_that_comes_back_gets_a_free_name(library, anna):
    library.remove("Anna")
    library.add("anna")
    assert library.restore_removed(anna.speaker_id).name == "Anna 2"


def test_removed_voices_go_for_good_on_demand_and_after_a_month(library, anna, tmp_path):
    library.remove("Anna")
    trash = tmp_path / "speakers" / ".trash"
    with pytest.raises(NotFound):
        library.delete_removed("../speakers")
    library.delete_removed(anna.speaker_id)
    assert list(trash.iterdir()) == []
    ben = library.add("Ben")
    library.remove("Ben")
    past = (trash / ben.speaker_id).stat().st_mtime - 31 * DAY_S
    os.utime(trash / ben.speaker_id, (past, past))
    library.add("Cleo")
    assert list(trash.iterdir()) == []
    assert library.list_removed() == ()


def test_a_speaker_from_before_recordings_were_kept_is_read(library, anna):
    path = library.folder(anna.speaker_id) / "speaker.json"
    record = json.loads(path.read_bytes())
    del record["formers"]
    path.write_text(json.dumps(record), encoding="utf-8")
    assert library.get("Anna").formers == ()


def test_a_removed_voice_that_cant_be_read_is_listed_and_says_why_it_cant_come_back(library, anna):
    library.remove("Anna")
    path = library.folder(anna.speaker_id).parent / ".trash" / anna.speaker_id / "speaker.json"
    record = path.read_bytes()
    path.unlink()
    (removed,) = library.list_removed()
    assert (removed.speaker_id, removed.name) == (
        anna.speaker_id, f"Damaged voice {anna.speaker_id}",
    )  # fmt: skip
    with pytest.raises(StorageFailed, match="can't be read"):
        library.restore_removed(anna.speaker_id)
    path.write_bytes(record)
    assert library.restore_removed(anna.speaker_id).name == "Anna"
