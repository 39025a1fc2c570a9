"""A scene's loudness is measured once; what the log says of measurements is counted."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from project_scenes import IDA, ops, rendered

from studio.audio.kept_loudness import LoudnessStore, Measurement
from studio.audio.loudness import Loudness, measure_file_loudness
from studio.audio.mastering import Master, Mastering, parse_target
from studio.audio.scene_file import ExportOptions
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.project.scene_export import build_scene
from studio.project.session import ProjectSession
from studio.services.studio import Studio

SCRIPT = "Ida: The lamp is still burning above the weir.\nTom: Is it? I don't think it can be."
PODCAST = ExportOptions(Mastering(parse_target("podcast")), is_measured=True)


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    rendered(session)
    return session


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "loudness.json"


class Saves:
    """Saves a scene as somebody would who has just started the studio."""

    def __init__(self, session: ProjectSession, store: Path, caplog: pytest.LogCaptureFixture):
        self.session, self.store, self.caplog = session, store, caplog

    def __call__(self, path: Path, options: ExportOptions = PODCAST) -> tuple[int, Loudness]:
        """How often it was measured, and the level that is reported."""
        scene = replace(build_scene(self.session), kept_loudness=LoudnessStore(self.store))
        self.caplog.clear()
        with self.caplog.at_level(logging.INFO, logger="studio.audio.scene_file"):
            found = scene.write(path, options)
        assert found is not None
        return sum("Measuring" in one.getMessage() for one in self.caplog.records), found


@pytest.fixture
def save(session: ProjectSession, store_path: Path, caplog: pytest.LogCaptureFixture) -> Saves:
    return Saves(session, store_path, caplog)


def test_a_second_file_is_not_measured_in_any_format_after_a_restart(
    save: Saves, tmp_path: Path
) -> None:
    measured, first = save(tmp_path / "a.wav")
    assert measured == 2  # for its gain, and the finished file
    again, second = save(tmp_path / "b.wav")
    assert (again, second) == (0, first)
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()
    for suffix in ("mp3", "flac", "m4a", "zip"):
        assert save(tmp_path / f"scene.{suffix}") == (0, first)
    heard = measure_file_loudness(tmp_path / "scene.mp3")
    assert heard.lufs == pytest.approx(-16, abs=0.3)


def test_it_is_measured_again_when_what_is_heard_has_changed(
    session: ProjectSession, save: Saves, tmp_path: Path
) -> None:
    save(tmp_path / "a.wav")
    louder = replace(PODCAST, mastering=Mastering(parse_target("-20")))
    assert save(tmp_path / "b.wav", louder)[0] == 2
    evened = replace(PODCAST, mastering=Mastering(parse_target("podcast"), even_voices=True))
    assert save(tmp_path / "b.wav", evened)[0] == 2
    gap = {"op": "settings", "fields": {"gap_s": 1.0}}
    session.edit(ops(gap), IDA, session.rev)
    assert save(tmp_path / "b.wav")[0] == 2
    session.undo(IDA, session.rev)
    assert save(tmp_path / "b.wav")[0] == 0
    for fields in ({"level_db": -3}, {"pan": 0.5}):
        session.edit(ops({"op": "character", "speaker": "Ida", "fields": fields}), IDA, session.rev)
        assert save(tmp_path / "b.wav")[0] == 2
        session.undo(IDA, session.rev)
        assert save(tmp_path / "b.wav")[0] == 0
    text = {"op": "set", "line_ids": [session.document.order[0]], "fields": {"text": "New. " * 9}}
    session.edit(ops(text), IDA, session.rev)
    rendered(session)
    assert save(tmp_path / "b.wav")[0] == 2


@pytest.mark.parametrize("damage", [b"", b"{", b'{"version": 9}', b"\x00" * 99, b'{"scenes": 3}'])
def test_a_damaged_file_costs_a_measurement(
    save: Saves, store_path: Path, tmp_path: Path, damage: bytes
) -> None:
    first = save(tmp_path / "a.wav")
    store_path.write_bytes(damage)
    assert save(tmp_path / "b.wav") == first
    assert save(tmp_path / "b.wav")[0] == 0


def test_a_flipped_bit_is_noticed(save: Saves, store_path: Path, tmp_path: Path) -> None:
    first = save(tmp_path / "a.wav")
    data = bytearray(store_path.read_bytes())
    data[data.index(b"gain_db") + 11] ^= 1
    store_path.write_bytes(data)
    assert save(tmp_path / "b.wav") == first


def test_the_file_stays_small(store_path: Path) -> None:
    store = LoudnessStore(store_path)
    level = Loudness(-16.0, 1.0, -1.0, -1.5, -19.0, -60.0)
    for number in range(128):
        store.keep(str(number), Measurement(Master(number), {".wav": level}))
    again = LoudnessStore(store_path)
    assert again.find("63") is None
    for number in (64, 127):
        assert again.find(str(number)) == Measurement(Master(number), {".wav": level})
    assert store_path.stat().st_size < 50_000
