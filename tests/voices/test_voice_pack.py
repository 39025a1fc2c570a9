"""A voice as one file: saved, brought in again, and everything that isn't one refused."""

import io
import json
import os
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.errors import AudioRejected, BadInput, SampleRejected
from studio.voices.library import SpeakerLibrary
from studio.voices.voice_pack import read_pack, write_pack

COLOUR = "#046bd0"


@pytest.fixture
def library(tmp_path):
    return SpeakerLibrary(tmp_path / "speakers")


@pytest.fixture
def saved(library, recording):
    """Anna with two samples, as a file."""
    library.add(
        "Anna",
        sample=recording(),
        transcript="Well.",
        tags=["old"],
        language="de",
        consent_at="2026-01-02T03:04:05+00:00",
    )
    speaker = library.add_mood("Anna", "angry", recording(pitch_hz=220), transcript="No!")
    file = io.BytesIO()
    write_pack(library, speaker, file)
    return file


def packed(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, content in members:
            pack.writestr(name, content)
    return file


def record(**fields):
    return "speaker.json", json.dumps({"name": "Ben", "colour": COLOUR} | fields)


def test_a_voice_comes_back_with_all_that_belongs_to_it(tmp_path, library, saved):
    other = SpeakerLibrary(tmp_path / "elsewhere")
    brought, original = read_pack(other, saved), library.get("Anna")
    for name in ("name", "transcript", "tags", "language", "consent_at", "colour"):
        assert getattr(brought, name) == getattr(original, name)
    assert brought.sample.read_bytes() == original.sample.read_bytes()
    assert [(one.mood, one.transcript) for one in brought.moods] == [("angry", "No!")]
    assert brought.moods[0].path.read_bytes() == original.moods[0].path.read_bytes()
    assert other.list_problems() == ()


def test_a_taken_name_gets_a_number(library, saved):
    assert [read_pack(library, saved).name for _ in range(2)] == ["Anna 2", "Anna 3"]
    assert len(library.list()) == 3


def test_a_voice_without_samples_is_a_file_too(library):
    speaker = library.add("Ben", preset="x", description="old and slow")
    file = io.BytesIO()
    write_pack(library, speaker, file)
    assert read_pack(library, file).description == "old and slow"


def test_a_missing_recording_is_told_when_saving(library, recording):
    speaker = library.add("Ben", sample=recording())
    speaker.sample.unlink()
    for _ in range(2):
        with pytest.raises(SampleRejected, match=r"Ben \(sample\.wav\) is missing"):
            write_pack(library, speaker, io.BytesIO())
        if not speaker.sample.exists():
            os.mkfifo(speaker.sample)  # nobody waits for a pipe


FOREIGN = {
    "a path upwards": [record(), ("../evil.wav", "x")],
    "an absolute path": [record(), ("/etc/passwd", "x")],
    "another file": [record(), ("readme.txt", "x")],
    "two records": [record(), record()],
    "no record": [("sample.wav", "x")],
    "a record of something else": [("speaker.json", "[1, 2]")],
    "no json": [("speaker.json", "{")],
    "a hostile sample id": [record(moods=[{"sample_id": "../../x", "mood": "m"}])],
    "a name no script can hold": [record(name="[x]")],
    "a lacking recording": [record(has_sample=True)],
    "a date out of time": [record(consent_at="0001-01-01T00:00:00+23:59")],
}


@pytest.mark.parametrize("members", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_no_voice_is_refused_and_leaves_nothing(tmp_path, library, members):
    with pytest.raises(BadInput):
        read_pack(library, packed(members))
    assert library.list() == ()
    assert not (tmp_path / "evil.wav").exists()


@pytest.mark.parametrize(
    "moods",
    [
        [("0", "m" * 900_000)],
        [("0", "a]b")],
        [("0", "a\0")],
        [("0", "Neutral")],
        [("0", "a"), ("1", "A")],
        [("0", "a"), ("0", "b")],
    ],
    ids=["1 MB", "bracket", "invisible", "the main one", "twice", "one sample of two"],
)
def test_moods_that_no_edit_leaves_do_not_come_in(library, recording, moods):
    written = record(moods=[{"sample_id": one * 8, "mood": mood} for one, mood in moods])
    names = {f"mood-{one * 8}.wav" for one, _ in moods}
    file = packed([written, *((name, recording().read_bytes()) for name in names)])
    with suppress(BadInput):
        read_pack(library, file)
    assert [one.mood for speaker in library.list() for one in speaker.moods] in ([], ["a"])


def test_a_file_with_thousands_of_members_is_refused_before_they_are_read(library, monkeypatch):
    many = packed([record(), *((f"{number}.wav", "") for number in range(2_000))])
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("its directory was read"))
    with pytest.raises(BadInput, match="belongs to no voice"):
        read_pack(library, many)


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all", bytes(1_000)])
def test_what_is_no_zip_is_refused(library, content):
    with pytest.raises(BadInput, match=r"no voice file.*\.voice\.zip"):
        read_pack(library, io.BytesIO(content))


def test_recordings_are_checked_as_uploads_are(library, recording):
    silent = recording("short.wav", duration_s=0.2).read_bytes()
    with pytest.raises(SampleRejected, match=r"sample\.wav: .*a voice needs"):
        read_pack(library, packed([record(has_sample=True), ("sample.wav", silent)]))
    with pytest.raises(AudioRejected, match=r"“sample\.wav” is not a recording"):
        read_pack(library, packed([record(has_sample=True), ("sample.wav", "words")]))


def test_a_small_file_that_unpacks_to_much_is_stopped(library):
    bomb = packed([record(has_sample=True), ("sample.wav", bytes(50_000_000))])
    assert len(bomb.getvalue()) < 100_000
    with pytest.raises(AudioRejected, match="unpacks to more than 20 MB"):
        read_pack(library, bomb)


def test_a_size_that_lies_is_not_believed(library):
    bomb = packed([record(has_sample=True), ("sample.wav", bytes(50_000_000))])
    data = bomb.getvalue().replace((50_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    with pytest.raises(BadInput):
        read_pack(library, io.BytesIO(data))
    assert library.list() == ()


@settings(max_examples=60)
@given(data=st.data())
def test_damaged_files_come_in_or_are_refused(library, saved, data):
    content = bytearray(saved.getvalue())
    for _ in range(data.draw(st.integers(1, 10))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(len(content) // 2, len(content)))]
    with suppress(BadInput):
        read_pack(library, io.BytesIO(bytes(content)))
    assert library.list_problems() == ()


def test_recordings_are_not_decoded_in_this_process(library, saved, monkeypatch):
    def refuse(*_, **__):
        pytest.fail("a stranger's recording was decoded here")

    monkeypatch.setattr("av.open", refuse)
    assert read_pack(library, saved).name == "Anna 2"
