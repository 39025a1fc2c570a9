import io
import json
import shutil
import zipfile
from pathlib import PurePosixPath

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.audio.clip import STUDIO_RATE_HZ, Clip, write_wav
from studio.audio.export import Caption, FileForm, export_audio, export_zip
from studio.audio.timeline import FailedPart, SilencePart, TakePart, lay_out
from studio.errors import BadInput, Cancelled, StorageFailed


@pytest.fixture
def scene(tmp_path, harmonic):
    """Two spoken segments with a pause and a failed line between them."""
    folder = tmp_path / "takes"
    folder.mkdir()
    write_wav(folder / "0.wav", harmonic(120, duration_s=0.5))
    write_wav(folder / "3.wav", harmonic(200, duration_s=0.25))
    return lay_out(
        [
            TakePart(0, folder / "0.wav"),
            SilencePart(1, 0.3),
            FailedPart(2, "The line is empty."),
            TakePart(3, folder / "3.wav"),
        ]
    )


CAPTIONS = {
    0: Caption(1, "Zoë", "Hello."),
    1: Caption(2),
    2: Caption(3, "Ben", ""),
    3: Caption(4, "../Ben: <2>", "Good “night”."),
}


@pytest.mark.parametrize("suffix", ["wav", "flac", "mp3"])
def test_the_joined_audio_has_the_length_of_the_timeline(tmp_path, scene, suffix):
    export_audio(tmp_path / f"scene.{suffix}", scene)
    samples, rate_hz = soundfile.read(tmp_path / f"scene.{suffix}")
    assert rate_hz == STUDIO_RATE_HZ
    assert len(samples) == scene.n_samples == round(1.05 * STUDIO_RATE_HZ)


def test_an_unknown_suffix_writes_nothing(tmp_path, scene):
    with pytest.raises(BadInput) as refused:
        export_audio(tmp_path / "scene.ogg", scene)
    assert str(refused.value) == (
        "“scene.ogg” doesn't say in which format to save. End the name in .wav, .flac, .mp3, "
        ".m4a, .m4b, .opus or .aiff."
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["takes"]


@pytest.mark.parametrize("export", [export_audio, lambda path, line: export_zip(path, line, {})])
def test_a_timeline_without_audio_is_refused(tmp_path, export):
    with pytest.raises(BadInput, match="no audio"):
        export(tmp_path / "scene.wav", lay_out([FailedPart(0, "The line is empty.")]))
    assert list(tmp_path.iterdir()) == []


def test_the_zip_holds_segments_joined_audio_and_manifest(tmp_path, scene):
    export_zip(tmp_path / "scene.zip", scene, CAPTIONS)
    with zipfile.ZipFile(tmp_path / "scene.zip") as archive:
        assert archive.testzip() is None
        contents = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(contents.pop("manifest.json"))
    lengths = {name: len(soundfile.read(io.BytesIO(data))[0]) for name, data in contents.items()}
    assert lengths == {"scene.wav": 25_200, "0001-Zoë.wav": 12_000, "0004-Ben_2.wav": 6_000}
    assert (manifest["file"], manifest["n_samples"], manifest["failed"]) == ("scene.wav", 25_200, 1)
    assert manifest["duration_s"] == 1.05
    rows = [(row["segment"], row["line"], row["type"], row["file"]) for row in manifest["segments"]]
    assert rows == [
        (0, 1, "audio", "0001-Zoë.wav"),
        (1, 2, "silence", None),
        (2, 3, "failed", None),
        (3, 4, "audio", "0004-Ben_2.wav"),
    ]
    last = manifest["segments"][3]
    assert (last["start_s"], last["duration_s"], last["text"]) == (0.8, 0.25, "Good “night”.")
    assert last["speaker"] == "../Ben: <2>"
    assert manifest["segments"][2]["message"] == "The line is empty."


@pytest.mark.parametrize(
    ("pattern", "params", "names"),
    [
        ("{id}", {"id": "VO_GATE_005"}, ["VO_GATE_005.wav", "0004.wav"]),
        ("{id}", {"id": "a/b\\..\\c"}, ["a_b_.._c.wav", "0004.wav"]),
        ("{file}", {"file": "barks/guard_01.WAV"}, ["barks/guard_01.wav", "0004-Ben_2.wav"]),
        ("{file}", {"file": "..\\..\\C:\\x.ogg"}, ["C_/x.wav", "0004-Ben_2.wav"]),
        ("{file}", {"file": "/etc/../con.mp3"}, ["etc/_con.wav", "0004-Ben_2.wav"]),
        ("{file}", {"file": "../.."}, ["0001.wav", "0004-Ben_2.wav"]),
        ("{file}", {"file": "scene.wav"}, ["scene-2.wav", "0004-Ben_2.wav"]),
        ("{file}", {"id": "VO_1"}, ["VO_1.wav", "0004-Ben_2.wav"]),
        ("{file}", {"file": "é" * 300}, ["é" * 100 + ".wav", "0004-Ben_2.wav"]),
        ("{speaker}/{number}", {}, ["Zoë/0001.wav", "Ben_2/0004.wav"]),
    ],
)
def test_files_have_the_names_of_another_program_and_stay_below_their_folder(
    tmp_path, scene, pattern, params, names
):
    captions = {0: Caption(7, "Zoë", number=1, params=params), 3: Caption(9, "Ben 2", number=4)}
    export_zip(tmp_path / "a.zip", scene, captions, form=FileForm(names=pattern))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.namelist() == ["scene.wav", *names, "manifest.json"]
        rows = json.loads(archive.read("manifest.json"))["segments"]
    assert [row["file"] for row in rows] == [names[0], None, None, names[1]]
    assert (rows[0]["id"], rows[0]["number"], rows[0]["line"]) == (params.get("id"), 1, 7)


def test_a_name_that_two_lines_have_gets_a_number_which_is_told(tmp_path, scene):
    captions = {0: Caption(params={"file": "x/A"}), 3: Caption(params={"file": "X/a.ogg"})}
    export_zip(tmp_path / "a.zip", scene, captions, form=FileForm(names="{file}"))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert [row["file"] for row in manifest["segments"]] == ["x/A.wav", None, None, "X/a-2.wav"]
    assert manifest["notices"] == ["Two files would be “X/a.wav”; one is saved as “X/a-2.wav”."]


def test_the_manifest_has_the_words_apart_from_their_direction(tmp_path, scene):
    export_zip(tmp_path / "a.zip", scene, {0: Caption(text="(angry) No, [pause] Captain.")})
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        first = json.loads(archive.read("manifest.json"))["segments"][0]
    assert (first["text"], first["said"]) == ("(angry) No, [pause] Captain.", "No, Captain.")


def test_the_joined_audio_of_the_zip_is_the_whole_scene(tmp_path, scene):
    export_zip(tmp_path / "scene.zip", scene, CAPTIONS)
    with zipfile.ZipFile(tmp_path / "scene.zip") as archive:
        samples, _ = soundfile.read(io.BytesIO(archive.read("scene.wav")))
    assert len(samples) == scene.n_samples


@settings(max_examples=50)
@given(
    names=st.lists(
        st.one_of(st.text(), st.sampled_from(["", "..", "a/b", "CON", "🙂"])), max_size=4
    )
)
def test_file_names_are_safe_and_unique_for_any_speaker(tmp_path, names):
    take = tmp_path / "a.wav"
    write_wav(take, Clip(np.full(10, 0.5, dtype=np.float32)))
    captions = {index: Caption(index, name) for index, name in enumerate([*names, *names, "x"])}
    export_zip(tmp_path / "a.zip", lay_out(TakePart(index, take) for index in captions), captions)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        files = [info.filename for info in archive.infolist()]
    assert len({name.casefold() for name in files}) == len(files) == len(captions) + 2
    for name in files:
        assert PurePosixPath(name).name == name
        assert len(name.encode()) < 200
        assert not set(name) & set('<>:"/\\|?*\0\n\r')
        assert not name.startswith(".")


@pytest.mark.parametrize("name", ["scene.mp3", "scene.zip"])
def test_cancelling_or_losing_a_take_leaves_the_earlier_file(tmp_path, scene, name):
    path = tmp_path / name
    path.write_bytes(b"earlier")

    def export(on_progress=None):
        if name.endswith("zip"):
            export_zip(path, scene, CAPTIONS, on_progress=on_progress)
        else:
            export_audio(path, scene, on_progress=on_progress)

    def cancel(share):
        raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        export(cancel)
    scene.entries[2].source.unlink()
    with pytest.raises(StorageFailed, match=r"3\.wav"):
        export()
    assert path.read_bytes() == b"earlier"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [name, "takes"]


def test_progress_grows_to_one(tmp_path, scene):
    shares = []
    export_audio(tmp_path / "scene.flac", scene, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) >= 3


def test_pauses_without_end_are_refused(tmp_path):
    weeks = lay_out(SilencePart(idx, 300.0) for idx in range(300))
    for suffix in ("wav", "zip"):
        path = tmp_path / f"scene.{suffix}"
        with pytest.raises(BadInput, match="pauses last 25 hours; 24 are the most"):
            export_zip(path, weeks, {}) if suffix == "zip" else export_audio(path, weeks)
    assert list(tmp_path.iterdir()) == []


def test_what_the_disk_has_no_room_for_is_refused_before_it_is_written(
    tmp_path, scene, monkeypatch
):
    size_bytes = 2 * scene.n_samples
    usage = shutil._ntuple_diskusage(10**9, 10**9 - size_bytes, size_bytes)
    monkeypatch.setattr("studio.audio.export.shutil.disk_usage", lambda _: usage)
    export_audio(tmp_path / "scene.wav", scene)
    with pytest.raises(StorageFailed, match="Free some space"):
        export_zip(tmp_path / "scene.zip", scene, {})
    assert not (tmp_path / "scene.zip").exists()


def test_a_folder_that_is_not_there_is_told(tmp_path, scene):
    with pytest.raises(StorageFailed):
        export_audio(tmp_path / "missing" / "scene.wav", scene)
