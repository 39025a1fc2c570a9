import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import soundfile
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.errors import (
    AudioRejected,
    BadInput,
    Conflict,
    NameRejected,
    NotFound,
    SampleRejected,
    SpeakerExists,
    StorageFailed,
)
from studio.storage.disk import Disk
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import SPEAKER_COLOURS


@pytest.fixture
def library(tmp_path):
    return SpeakerLibrary(tmp_path / "speakers")


def _names(library):
    return [speaker.name for speaker in library.list()]


def test_a_new_library_is_empty_and_makes_no_folder(tmp_path, library):
    assert library.list() == ()
    assert library.list_problems() == ()
    assert library.find("Anna") is None
    assert list(tmp_path.iterdir()) == []


def test_a_speaker_is_kept_with_all_its_details(tmp_path, library, recording):
    added = library.add(
        "Anna",
        sample=recording(),
        transcript=" Hello. ",
        language="en-GB",
        description="warm",
        preset="",
        colour="#ABCDEF",
    )
    again = SpeakerLibrary(tmp_path / "speakers").get("ANNA")
    assert again == added
    assert (again.name, again.transcript, again.language) == ("Anna", "Hello.", "en-GB")
    assert (again.description, again.preset, again.colour) == ("warm", None, "#abcdef")


def test_any_upload_becomes_mono_16_bit_wav_at_the_studio_rate(tmp_path, library, make_clip):
    clip = make_clip(4.0, rate_hz=44_100)
    soundfile.write(tmp_path / "a.ogg", clip.samples, clip.rate_hz)
    info = soundfile.info(library.add("Anna", sample=tmp_path / "a.ogg").sample)
    assert (info.format, info.subtype, info.channels) == ("WAV", "PCM_16", 1)
    assert info.samplerate == 24_000
    assert info.duration == pytest.approx(4.0, abs=0.02)


def test_the_files_are_where_they_are_said_to_be(tmp_path, library, recording):
    speaker = library.add("../Anna", sample=recording())
    folder = tmp_path / "speakers" / speaker.speaker_id
    assert speaker.sample == folder / "sample.wav"
    assert sorted(path.name for path in folder.iterdir()) == ["sample.wav", "speaker.json"]
    assert json.loads((folder / "speaker.json").read_text("utf-8"))["name"] == "../Anna"
    assert speaker.speaker_id.isalnum()


def test_speakers_get_different_colours(library):
    assert (
        len({library.add(f"Voice {index}").colour for index in range(len(SPEAKER_COLOURS))}) == 12
    )


@pytest.mark.parametrize("taken", ["Zoë", "ZOË", "zoe\u0308", " Zoë "])
def test_names_are_unique_whatever_their_case_and_form(library, taken):
    library.add("Zoë")
    assert library.get(taken).name == "Zoë"
    with pytest.raises(SpeakerExists, match="“Zoë” already"):
        library.add(taken)
    assert _names(library) == ["Zoë"]


@settings(max_examples=25)
@given(name=st.text(max_size=70))
def test_any_name_is_kept_or_refused(library, name):
    try:
        speaker = library.add(name)
    except NameRejected:
        assert library.find(name) is None
    else:
        assert library.find(name) == speaker
        library.remove(name)
        assert library.list() == ()


def test_an_unknown_name_is_told_those_nearly_alike(library):
    for name in ("Anna", "Hannah", "Ben"):
        library.add(name)
    with pytest.raises(NotFound, match=r"“Ana” .*Did you mean “Anna”"):
        library.get("Ana")
    with pytest.raises(NotFound, match="Add it first"):
        library.get("Xerxes")


@pytest.mark.parametrize(
    ("details", "remedy"),
    [
        ({"colour": "red"}, "#rrggbb"),
        ({"language": "e n!"}, "pt-BR"),
        ({"transcript": "x" * 20_000}, "10,000 characters"),
    ],
)
def test_details_that_cannot_be_used_change_nothing(library, details, remedy):
    before = library.add("Anna")
    with pytest.raises(BadInput, match=f"of Anna can't be used.*{remedy}"):
        library.update("Anna", **details)
    with pytest.raises(BadInput, match=f"of Ben can't be used.*{remedy}"):
        library.add("Ben", **details)
    assert library.list() == (before,)


def test_a_sample_that_cannot_serve_leaves_things_as_they_were(tmp_path, library, recording):
    (tmp_path / "broken.wav").write_bytes(b"no sound")
    before = library.add("Anna", sample=recording(), transcript="Hello.")
    content = before.sample.read_bytes()
    with pytest.raises(AudioRejected):
        library.set_sample("Anna", tmp_path / "broken.wav")
    with pytest.raises(SampleRejected, match=r"0\.5 s"):
        library.set_sample("Anna", recording("short.wav", duration_s=0.5))
    with pytest.raises(AudioRejected):
        library.add("Ben", sample=tmp_path / "broken.wav")
    assert library.list() == (before,)
    assert before.sample.read_bytes() == content


def test_a_sample_is_replaced_with_its_transcript_or_taken_away(library, recording):
    library.add("Anna", sample=recording(), transcript="Hello.", language="en")
    changed = library.set_sample("anna", recording("b.wav", duration_s=6.0), transcript="Bye.")
    assert soundfile.info(changed.sample).duration == 6.0
    assert (changed.transcript, changed.language) == ("Bye.", "en")
    without = library.set_sample("Anna", None)
    assert (without.sample, without.transcript) == (None, None)
    assert not changed.sample.exists()
    assert library.list() == (without,)


def test_update_changes_what_is_given_and_no_more(library, recording):
    library.add("Anna", sample=recording(), transcript="Hello.", language="en")
    changed = library.update("ANNA", transcript=None, preset="alto")
    assert (changed.transcript, changed.language, changed.preset) == (None, "en", "alto")
    assert library.get("Anna") == changed


def test_rename_keeps_folder_and_sample(library, recording):
    before = library.add("Anna", sample=recording())
    library.add("Ben")
    after = library.rename("anna", "Hannah")
    assert (after.speaker_id, after.sample) == (before.speaker_id, before.sample)
    assert library.rename("Hannah", "HANNAH").name == "HANNAH"
    with pytest.raises(SpeakerExists):
        library.rename("Hannah", "bEN")
    with pytest.raises(NameRejected):
        library.rename("Hannah", "a|b")
    assert _names(library) == ["Ben", "HANNAH"]


def test_remove_deletes_the_folder_and_nothing_behind_links(tmp_path, library, recording):
    speaker = library.add("Anna", sample=recording())
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "letter.txt").write_text("keep", "utf-8")
    folder = tmp_path / "speakers" / speaker.speaker_id
    (folder / "link").symlink_to(outside)
    library.remove("anna")
    assert (outside / "letter.txt").exists()
    assert not folder.exists()
    assert library.list() == ()
    with pytest.raises(NotFound):
        library.remove("Anna")


def test_linked_folders_are_no_speakers(tmp_path, library):
    speaker = library.add("Anna")
    folder = tmp_path / "speakers" / speaker.speaker_id
    moved = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(moved)
    assert library.list() == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"name": 7}',
        b"\xff",
    ],
)
def test_a_broken_record_is_told_and_hides_nothing_else(tmp_path, library, content):
    broken = library.add("Anna").speaker_id
    library.add("Ben")
    (tmp_path / "speakers" / broken / "speaker.json").write_bytes(content)
    (problem,) = library.list_problems()
    assert broken in problem
    assert "is rebuilt from what is left" in problem
    library.add("Cleo")
    assert _names(library) == ["Ben", "Cleo", f"Damaged voice {broken}"]


def test_a_record_that_cant_be_read_or_is_newer_is_told_and_hides_nothing_else(tmp_path, library):
    newer, lost = library.add("Anna").speaker_id, library.add("Ida").speaker_id
    library.add("Ben")
    content = b'{"version": 2, "name": "Anna", "colour": "#000000"}'
    (tmp_path / "speakers" / newer / "speaker.json").write_bytes(content)
    (tmp_path / "speakers" / lost / "speaker.json").unlink()
    problems = library.list_problems()
    assert len(problems) == 2
    assert any(newer in one and "newer studio" in one for one in problems)
    assert any(lost in one and "add the recordings there as a new" in one for one in problems)
    library.add("Cleo")
    assert _names(library) == ["Ben", "Cleo"]


def test_a_missing_sample_is_told_and_the_speaker_stays(library, recording):
    speaker = library.add("Anna", sample=recording())
    speaker.sample.unlink()
    (problem,) = library.list_problems()
    assert "sample of Anna can't be found" in problem
    assert library.list() == (speaker,)


def test_an_empty_folder_and_a_copied_one_are_told(tmp_path, library):
    speaker = library.add("Anna")
    root = tmp_path / "speakers"
    (root / "empty").mkdir()
    (root / "zzz").mkdir()
    record = (root / speaker.speaker_id / "speaker.json").read_bytes()
    (root / "zzz" / "speaker.json").write_bytes(record)
    (root / "notes.txt").write_text("not a speaker", "utf-8")
    assert len(library.list()) == 1
    assert len(library.list_problems()) == 2
    assert any("another one is named “Anna”" in problem for problem in library.list_problems())


def test_a_change_by_hand_is_seen(tmp_path, library):
    speaker = library.add("Anna", language="en")
    path = tmp_path / "speakers" / speaker.speaker_id / "speaker.json"
    path.write_text(path.read_text("utf-8").replace('"en"', '"fr-FR"'), "utf-8")
    assert library.get("Anna").language == "fr-FR"


def test_what_an_interrupted_writer_left_is_ignored_and_cleared(tmp_path, library):
    anna = tmp_path / "speakers" / library.add("Anna").speaker_id
    for name in (".new-1", ".gone-2"):
        (tmp_path / "speakers" / name).mkdir()
    with Disk().replacing(anna / "speaker.json", synced=False) as file:
        file.write((anna / "speaker.json").read_bytes())
        [unfinished] = anna.glob("*.part")
    unfinished.write_bytes(b"torn")
    assert _names(library) == ["Anna"]
    assert library.list_problems() == ()
    library.add("Ben")
    assert not unfinished.exists()
    assert _names(library) == ["Anna", "Ben"]
    assert not [
        path for path in (tmp_path / "speakers").iterdir() if path.name[1:4] in ("new", "gon")
    ]


def test_a_file_in_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "speakers").write_bytes(b"")
    library = SpeakerLibrary(tmp_path / "speakers")
    for act in (library.list, library.list_problems, lambda: library.add("Anna")):
        with pytest.raises(StorageFailed, match="speakers"):
            act()


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_told(tmp_path, library):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageFailed, match="can't be written"):
        library.add("Anna")
    tmp_path.chmod(0o700)


def test_threads_do_not_add_a_name_twice(library):
    def add(index):
        try:
            library.add(("Anna", "ANNA")[index % 2])
        except SpeakerExists:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(16))) == 1
    assert len(library.list()) == 1
    assert library.list_problems() == ()


def test_what_another_studio_is_changing_is_a_conflict(tmp_path, library, monkeypatch):
    library.add("Anna")
    monkeypatch.setattr("studio.voices.speaker_store._LOCK_TIMEOUT_S", 0.0)
    other = SpeakerLibrary(tmp_path / "speakers")
    with FileLock(tmp_path / "speakers/.lock"), pytest.raises(Conflict, match="Another studio"):
        other.remove("Anna")
    other.remove("Anna")
    with pytest.raises(NotFound):
        library.rename("Anna", "Eva")


def test_processes_do_not_lose_each_others_speakers(tmp_path):
    script = """
import sys
from pathlib import Path
from studio.voices.library import SpeakerLibrary
from studio.errors import SpeakerExists
library = SpeakerLibrary(Path(sys.argv[1]))
for index in range(8):
    library.add(f"{sys.argv[2]} {index}")
    try:
        library.add(f"Both {index}")
    except SpeakerExists:
        pass
"""
    root = Path(__file__).parents[2]
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "speakers"), name], cwd=root)
        for name in ("One", "Two")
    ]
    assert [process.wait(60) for process in running] == [0, 0]
    library = SpeakerLibrary(tmp_path / "speakers")
    assert len(library.list()) == 24
    assert library.list_problems() == ()


def test_a_renamed_speaker_remembers_the_name_that_chose_its_voice(library):
    library.add("Anna")
    assert library.rename("Anna", "Berta").builtin_name == "Anna"
    assert library.rename("Berta", "Clara").builtin_name == "Anna"
    assert library.get("Clara").first_name == "Anna"
    assert Cast(library, {}).load_voice("clara").builtin_name == "Anna"
    again = library.rename("Clara", "Anna")
    assert (again.first_name, again.builtin_name) == (None, "Anna")
