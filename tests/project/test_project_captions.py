"""Subtitles stand where the exported sound does, also while some lines have none."""

from __future__ import annotations

from pathlib import Path

import soundfile
from project_scenes import rendered, until

from studio.dialog.formats.dialog_file import Format, read_dialog_text
from studio.project.scene_export import build_scene, export_script
from studio.services.studio import Studio

SCRIPT = (
    "Ida: This is a rather long line, which takes its time.\nTom: Well.\n[pause:2s]\nIda: Go now."
)


def milliseconds(time: str) -> int:
    hours, minutes, rest = time.split(":")
    seconds, thousandths = rest.split(",")
    return int(thousandths) + 1000 * (int(seconds) + 60 * (int(minutes) + 60 * int(hours)))


def times(data: bytes) -> list[list[int]]:
    rows = [row for row in data.decode().splitlines() if "-->" in row]
    return [[milliseconds(time) for time in row.split(" --> ")] for row in rows]


def test_a_line_without_sound_moves_no_other(studio: Studio, tmp_path: Path) -> None:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    first, second, _, last = session.document.order
    session.render([first, last])
    until(lambda: not session.busy)
    data, told = export_script(session, Format.SRT)
    assert b"Well." not in data
    assert [one.message for one in told] == ["1 line has no sound yet and is left out."]
    assert told[0].line_number == 2
    build_scene(session).write(tmp_path / "scene.wav")
    frames = soundfile.info(tmp_path / "scene.wav").frames
    lengths = [session.get_view(one).samples for one in (first, last)]
    assert frames == sum(lengths) + 2 * 24_000
    assert times(data) == [
        [0, round(lengths[0] / 24)],
        [round((frames - lengths[1]) / 24), round(frames / 24)],
    ]

    rendered(session)
    data, told = export_script(session, Format.SRT)
    assert (len(times(data)), told) == (3, ())
    start = lengths[0] / 24
    assert times(data)[1] == [round(start), round(start + session.get_view(second).samples / 24)]


def test_without_any_sound_the_text_tells_the_times(studio: Studio) -> None:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    data, told = export_script(session, Format.SRT)
    assert (len(times(data)), told) == (3, ())
