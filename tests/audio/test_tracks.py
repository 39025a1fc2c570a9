"""Tracks line up, and added up they are the scene."""

from __future__ import annotations

import io
import re
import zipfile

import numpy as np
import pytest
import soundfile
from spoken_scenes import LINES, laid, read, spoken

from studio.audio.export import Caption
from studio.audio.mastering import Mastering, parse_target
from studio.audio.scene_file import ExportOptions, Scene
from studio.audio.timeline import SilencePart, TakePart, lay_out


@pytest.fixture(scope="module")
def clips():
    return spoken()


@pytest.fixture
def scene(tmp_path, clips):
    """Four lines of two speakers, the third one a recording."""
    timeline, captions = laid(tmp_path, clips)
    captions[4] = Caption(3)
    return timeline, captions


def members(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def tracks(contents):
    return {
        name: soundfile.read(io.BytesIO(data), dtype="int16")[0].astype(np.int64)
        for name, data in contents.items()
        if name.endswith(".wav")
    }


@pytest.mark.parametrize("loudness", ["rendered", "podcast", "-13"])
def test_the_tracks_add_up_to_the_scene(tmp_path, scene, loudness):
    timeline, captions = scene
    mastering = Mastering(parse_target(loudness), even_voices=loudness == "podcast")
    Scene(timeline, captions).write(tmp_path / "scene.wav", ExportOptions(mastering))
    Scene(timeline, captions).write(tmp_path / "t.zip", ExportOptions(mastering, tracks=True))
    found = tracks(members(tmp_path / "t.zip"))
    assert list(found) == ["01-Ida.wav", "02-Tom.wav", "03-Recordings.wav"]
    assert {len(track) for track in found.values()} == {timeline.n_samples}
    joined = np.rint(read(tmp_path / "scene.wav") * 32_768).astype(np.int64)
    assert np.abs(sum(found.values()) - joined).max() <= 1
    for entry, owner in zip(
        timeline.entries[::2], ["Ida", "Tom", "Recordings", "Tom"], strict=True
    ):
        place = slice(entry.start_sample, entry.end_sample)
        assert {name for name, track in found.items() if track[place].any()} == {
            next(name for name in found if owner in name)
        }


def test_lines_of_a_mastered_zip_are_cut_out_of_its_scene(tmp_path, scene):
    timeline, captions = scene
    wish = ExportOptions(Mastering(parse_target("podcast")), is_measured=True)
    found = Scene(timeline, captions).write(tmp_path / "scene.zip", wish)
    assert found.lufs == pytest.approx(-16, abs=0.5)
    parts = tracks(members(tmp_path / "scene.zip"))
    joined = parts.pop("scene.wav")
    for entry, part in zip(timeline.entries[::2], parts.values(), strict=True):
        assert (part == joined[entry.start_sample : entry.end_sample]).all()


def test_the_labels_name_every_line_in_its_place(tmp_path, scene):
    timeline, captions = scene
    captions[2] = Caption(2, "Tom", "Two\trows\nof text")
    Scene(timeline, captions).write(tmp_path / "t.zip", ExportOptions(tracks=True))
    rows = [
        row.split("\t") for row in members(tmp_path / "t.zip")["labels.txt"].decode().splitlines()
    ]
    assert [row[2] for row in rows] == [
        f"Ida: {LINES[0][1]}",
        "Tom: Two rows of text",
        "Recordings",
        f"Tom: {LINES[3][1]}",
    ]
    for row, entry in zip(rows, timeline.entries[::2], strict=True):
        assert float(row[0]) == pytest.approx(entry.start_s, abs=1e-5)
        assert float(row[1]) == pytest.approx(entry.start_s + entry.duration_s, abs=1e-5)


def test_the_project_names_every_track_and_its_file(tmp_path, scene):
    timeline, captions = scene
    hostile = "I\"d'a > \n<TRACK"
    captions |= {0: Caption(1, hostile, "One.")}
    Scene(timeline, captions).write(tmp_path / "t.zip", ExportOptions(tracks=True))
    contents = members(tmp_path / "t.zip")
    project = contents["scene.rpp"].decode()
    files = re.findall(r'^ *FILE "([^"]+)"$', project, re.MULTILINE)
    assert list(dict.fromkeys(files)) == list(tracks(contents))
    rows = [row.strip() for row in project.splitlines()]
    assert sum(row.startswith("<") for row in rows) == rows.count(">")
    assert rows.count("<TRACK") == len(set(files))
    placed = [entry for entry in timeline.entries if entry.source is not None]
    assert rows.count("<ITEM") == len(files) == len(placed)
    for entry in placed:
        at = rows.index(f"POSITION {entry.start_s:.9f}")
        assert rows[at + 1] == f"LENGTH {entry.duration_s:.9f}"
        assert rows[at + 3] == f"SOFFS {entry.start_s:.9f}"


def test_names_that_differ_only_in_case_share_a_track(tmp_path, clips):
    timeline, captions = laid(tmp_path, clips)
    captions[4] = Caption(3, "IDA", "One.")
    Scene(timeline, captions).write(tmp_path / "t.zip", ExportOptions(tracks=True))
    assert list(tracks(members(tmp_path / "t.zip"))) == ["01-Ida.wav", "02-Tom.wav"]


def test_names_of_one_spelling_on_disk_get_files_of_their_own(tmp_path, clips):
    laid(tmp_path, clips)
    timeline = lay_out(
        [TakePart(0, tmp_path / "0.wav"), SilencePart(1, 1), TakePart(2, tmp_path / "1.wav")]
    )
    captions = {0: Caption(1, "A/B", "One."), 2: Caption(2, "A:B", "Two.")}
    Scene(timeline, captions).write(tmp_path / "t.zip", ExportOptions(tracks=True))
    assert list(tracks(members(tmp_path / "t.zip"))) == ["01-A_B.wav", "02-A_B.wav"]


def test_progress_ends_with_the_last_track(tmp_path, scene):
    timeline, captions = scene
    shares = []
    Scene(timeline, captions).write(
        tmp_path / "t.zip", ExportOptions(tracks=True), on_progress=shares.append
    )
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
