"""Subtitles stand where the exported sound does, also while some lines have none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from project_scenes import IDA, ops, rendered, until

from studio.audio.clip import Clip, from_pcm16
from studio.dialog.formats.dialog_file import (
    Format,
    ImportOptions,
    import_dialog,
    read_dialog_text,
)
from studio.dialog.model import Speech
from studio.project.scene_export import build_scene, describe_left_out, export_script
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


PAUSED = (
    "Ida: Well, [laugh] this is the first part. (pause 1.5s) And this, after all, is a second one."
    " [pause:0.7s] [sigh] Good."
)


@pytest.mark.parametrize("kept", ["recorded", "in the audio only"])
def test_a_pause_inside_a_line_is_cut_out_of_its_cue(studio: Studio, kept: str) -> None:
    session = studio.projects.create("Scene", read_dialog_text(PAUSED).dialog)
    rendered(session)
    (view,) = session.list_views()
    assert view.take is not None
    audio = session.take_store.get_audio_path(view.take)
    samples, _ = soundfile.read(audio, dtype="int16")
    if kept != "recorded":
        record = audio.with_suffix(".json")
        session.take_store.add(replace(view.take, pauses=None), Clip(from_pcm16(samples)))
        assert b'"pauses":null' in record.read_bytes().replace(b" ", b"")
    data, _ = export_script(session, Format.SRT)
    said = [row for row in data.decode().splitlines() if row.startswith("Ida")]
    assert said == [
        "Ida: Well, this is the first part.",
        "Ida: And this, after all, is a second one.",
        "Ida: Good.",
    ]
    first, second, third = times(data)
    assert (first[0], third[1]) == (0, round(len(samples) / 24))
    for (_, ends), (begins, _), length in ((first, second, 1_500), (second, third, 700)):
        assert begins - ends == pytest.approx(length, abs=1 if kept != "in the audio only" else 150)
        assert not samples[24 * ends + 24 : 24 * begins - 24].any()
        assert np.abs(samples[24 * ends - 7_200 : 24 * ends]).max() > 200
        assert np.abs(samples[24 * begins : 24 * begins + 7_200]).max() > 200
    speech, pause, *_ = import_dialog(data, "a.srt").dialog
    assert speech == Speech("Ida", "Well, this is the first part.")
    assert pause.duration_s == pytest.approx(1.5, abs=0.15)


def test_without_any_sound_the_text_tells_the_times(studio: Studio) -> None:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    data, told = export_script(session, Format.SRT)
    assert (len(times(data)), told) == (3, ())


def test_a_pause_that_cannot_be_read_stays_in_the_subtitle(studio: Studio) -> None:
    session = studio.projects.create("Scene", read_dialog_text("Ida: Good evening.").dialog)
    rendered(session)
    (line_id,) = session.document.order
    fields = {"text": "Good [pause:9999999s] evening."}
    session.edit(ops({"op": "set", "line_ids": [line_id], "fields": fields}), IDA, session.rev)
    data, _ = export_script(session, Format.SRT)
    assert "Ida: Good [pause:9999999s] evening." in data.decode()


SUBTITLES = (
    "1\n00:00:01,500 --> 00:00:02,000\nIda: Who goes there, at this time of night?\n\n"
    "2\n00:00:02,600 --> 00:00:03,000\nTom: Me.\n\n"
    "3\n00:00:12,000 --> 00:00:13,000\nIda: Oh.\n"
)


def test_subtitles_stand_where_they_did(studio: Studio, tmp_path: Path) -> None:
    read = import_dialog(SUBTITLES.encode(), "scene.srt", ImportOptions(fit=True))
    assert read.timed
    session = studio.projects.create("Scene", read.dialog)
    data, _ = export_script(session, Format.SRT)  # nothing is rendered yet
    (first, _), _, (third, _) = times(data)
    assert (first, third) == (1_500, 12_000)
    rendered(session)
    data, _ = export_script(session, Format.SRT)
    (first, end), (second, _), (third, _) = times(data)
    assert (first, third) == (1_500, 12_000)
    scene = build_scene(session)
    long = scene.timeline.entries[0]
    assert (long.pace, second, end) == (1.3, round(1000 * long.end_sample / 24_000), second)
    [told] = describe_left_out(scene)
    assert told.startswith("Line 1 ends ")
    build_scene(session).write(tmp_path / "scene.wav")
    heard, rate_hz = soundfile.read(tmp_path / "scene.wav")
    assert not np.any(heard[: round(1.49 * rate_hz)])
    assert np.any(heard[round(12 * rate_hz) :])


def test_a_section_of_timed_lines_begins_at_once(studio: Studio) -> None:
    script = "## A\n[Ida | start_s:1] Hm.\n## B\n[Ida | start_s:60] No.\n[Tom | start_s:64] Oh."
    session = studio.projects.create("Scene", read_dialog_text(script).dialog)
    rendered(session)
    second = session.document.order[2]
    entries = build_scene(session, second).timeline.entries
    assert [one.start_s for one in entries] == [0.0, 4.0]
    assert [one.start_s for one in build_scene(session).timeline.entries] == [1.0, 60.0, 64.0]


def test_another_start_makes_no_take_old(studio: Studio) -> None:
    read = import_dialog(SUBTITLES.encode(), "scene.srt", ImportOptions(fit=True))
    session = studio.projects.create("Scene", read.dialog)
    rendered(session)
    last = session.document.order[-1]
    params = {"params": {"start_s": 8.25}}
    session.edit(ops({"op": "set", "line_ids": [last], "fields": params}), IDA, session.rev)
    assert session.get_view(last).state == "ready"
    assert build_scene(session).timeline.entries[-1].start_s == 8.25
