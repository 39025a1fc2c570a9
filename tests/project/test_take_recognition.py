"""The words of takes are checked beside the engine, kept with takes, and shown with lines."""

from __future__ import annotations

import json
import threading
import wave
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from draft_ears import catalogue
from gated import GatedDraft
from project_scenes import IDA, ops, rendered, text_edit, until
from scenes import OpenStudio
from slipping import MUSIC, SILENCE, SLIPS, SlippingDraft, play_chords

from studio.audio.clip import STUDIO_RATE_HZ
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import AudioRejected, ModelUnavailable
from studio.hearing.model_catalogue import HearingModel
from studio.hearing.recognition import Recogniser
from studio.hearing.word_check import ExpectedText, WordCheck, WordChecker
from studio.project.session import ProjectSession
from studio.project.takes import TakeStore
from studio.server.routes.bodies import project_body
from studio.services.studio import Studio, StudioOptions
from studio.storage.disk import Disk

pytest.importorskip("sherpa_onnx")

GOOD = "The sailor carried water to the village."


def project(studio: Studio, *lines: str) -> ProjectSession:
    script = "\n".join(f"Ida: {line}" for line in lines)
    return studio.projects.create("Scene", read_dialog_text(script).dialog)


def checked(session: ProjectSession) -> list[tuple[str, list[str]]]:
    """The kinds of word issues of each line, and what was understood or why nothing was."""
    until(lambda: all(one.take and one.take.recognised for one in session.list_views()))
    found = [view.take.recognised for view in session.list_views()]
    return [(one.note or one.text, [issue.kind for issue in one.issues]) for one in found]


def reopened(root: Path, recognisers: Mapping[str, HearingModel]) -> Studio:
    """A studio in a workspace that others had open before."""
    options = StudioOptions(root, "draft", recognisers=recognisers)
    return Studio.open(options, lambda _: SlippingDraft())


@pytest.fixture
def studio(open_studio: OpenStudio) -> Studio:
    return open_studio(SlippingDraft(), recognisers=catalogue())


def test_each_slip_is_marked_in_its_place_and_kept(studio: Studio) -> None:
    session = project(studio, GOOD, *SLIPS)
    rendered(session)
    kinds = [kinds for _, kinds in checked(session)]
    assert kinds == [[], ["missing"], ["repeated"], ["replaced"], ["unlike"]]
    views = session.list_views()
    issues = [view.issues[0] for view in views[1:]]
    places = [
        view.line.text[issue.start : issue.end]
        for view, issue in zip(views[1:], issues, strict=True)
    ]
    assert places[:3] == ["still", "has climbed", "silver"]
    assert places[3] == views[4].line.text.removesuffix(".")
    assert issues[0].message == "“still” is missing."
    path = session.take_store.get_audio_path(views[1].take).with_suffix(".json")
    record = json.loads(path.read_bytes())["recognised"]
    assert (record["by"], record["issues"][0]["kind"]) == ("draft-ears", "missing")
    shelf = TakeStore(session.folder.root / "takes", Disk())
    # Its words may be timed meanwhile.
    assert shelf.find(views[1].take.take_id).recognised == views[1].take.recognised
    body = project_body(session)["lines"][1]["take"]
    assert body["doubts"][0] | {"message": ""} == {
        "kind": "missing", "message": "", "start": 12, "end": 17,
    }  # fmt: skip
    assert "burning" in body["recognised"]


def test_stage_directions_are_no_missing_words(studio: Studio) -> None:
    directed = f"(whispering) {GOOD[:11]}(to her friend, softly) {GOOD[11:]}"
    session = project(studio, directed)
    rendered(session)
    assert [kinds for _, kinds in checked(session)] == [[]]


def test_odd_lines_get_one_clear_mark_each_and_are_ready(studio: Studio) -> None:
    session = project(studio, MUSIC, GOOD, "🎉 🎉")
    session.edit(
        ops({"op": "set", "line_ids": [session.document.order[1]], "fields": {"language": "cy"}}),
        IDA,
        session.rev,
    )
    rendered(session)
    music, welsh, emoji = session.list_views()
    ids = (music.line.line_id, welsh.line.line_id)
    until(lambda: all(session.get_view(one).take.recognised for one in ids))
    music, welsh = (session.get_view(one.line.line_id) for one in (music, welsh))
    assert (music.state, [issue.kind for issue in music.issues][-1]) == ("ready", "unlike")
    assert (welsh.state, welsh.issues) == ("ready", ())
    assert welsh.take.recognised.note == "No recogniser here knows “cy”."
    assert (emoji.state, emoji.message) == ("ready", None)  # a pause, which nobody hears


def test_a_take_of_silence_is_marked_once_and_holds_nobody_up(studio: Studio) -> None:
    session = project(studio, SILENCE, GOOD)
    rendered(session)
    until(lambda: all(view.take and view.take.recognised for view in session.list_views()))
    silent, good = session.list_views()
    assert silent.take.recognised.text == ""
    assert [issue.kind for issue in silent.take.recognised.issues] == ["unlike"]
    assert silent.take.recognised.issues[0].message == "No words were understood in it."
    assert {view.state for view in (silent, good)} == {"ready"}
    assert not good.issues


def add_recording(session: ProjectSession, folder: Path, seconds: float) -> str:
    """A line that is a recording, at the scene's beginning."""
    path = folder / "wind.wav"
    with wave.open(str(path), "wb") as audio:
        audio.setparams((1, 2, STUDIO_RATE_HZ, 0, "NONE", ""))
        second = (1000 * play_chords(1.0)).astype("<i2").tobytes()
        for _ in range(round(seconds)):
            audio.writeframes(second)
    with path.open("rb") as file:
        name = session.add_audio("wind.wav", file)
    line = {"line_id": "a" * 12, "kind": "audio", "path": name}
    session.edit(ops({"op": "insert", "lines": [line]}), IDA, session.rev)
    return "a" * 12


def check_recording(
    studio: Studio, folder: Path, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_checks(monkeypatch)
    session = project(studio, GOOD)
    line_id = add_recording(session, folder, seconds)
    rendered(session)
    ids = session.document.order
    until(lambda: session.get_view(ids[1]).take.recognised is not None)
    assert {view.state for view in session.list_views()} == {"ready"}
    assert len(asked) == 1  # it has no text to be compared with
    recording = session.get_view(line_id)
    assert recording.issues == ()
    assert recording.samples == round(seconds) * STUDIO_RATE_HZ


def test_a_recording_is_no_line_to_check_and_holds_nobody_up(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_recording(studio, tmp_path, 3, monkeypatch)


@pytest.mark.campaign
def test_a_recording_of_ten_minutes_the_longest(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_recording(studio, tmp_path, 600, monkeypatch)


def test_a_recording_of_two_hours_is_refused_and_no_other_line_is_lost(
    studio: Studio, tmp_path: Path
) -> None:
    session = project(studio, GOOD)
    path = tmp_path / "wind.flac"
    soundfile.write(path, np.zeros(7_200 * 8_000, dtype=np.int16), 8_000)
    with path.open("rb") as file, pytest.raises(AudioRejected, match="longer than 10 minutes"):
        session.add_audio("wind.flac", file)
    rendered(session)
    until(lambda: session.list_views()[0].take.recognised is not None)
    assert [view.state for view in session.list_views()] == ["ready"]


def test_nothing_is_checked_without_a_recogniser(open_studio: OpenStudio) -> None:
    session = project(open_studio(), GOOD)
    rendered(session)
    assert session.list_views()[0].take.recognised is None


def count_checks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each take that is checked from now on."""
    asked: list[float] = []
    check = WordChecker.check

    def counting(self: WordChecker, clip, *given, **more):
        asked.append(clip.duration_s)
        return check(self, clip, *given, **more)

    monkeypatch.setattr(WordChecker, "check", counting)
    return asked


def test_only_what_changed_is_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_checks(monkeypatch)
    with reopened(tmp_path, catalogue()) as studio:
        session = project(studio, GOOD, *SLIPS)
        rendered(session)
        checked(session)
        assert len(asked) == 5
        edit = text_edit(session.document.order[2], "Close the door.")
        session.edit(ops(edit), IDA, session.rev)
        rendered(session)
        checked(session)
        assert len(asked) == 6
    with reopened(tmp_path, catalogue()) as studio:
        checked(studio.projects.open(session.project_id))
        assert len(asked) == 6


@pytest.mark.parametrize("count", [50, pytest.param(500, marks=pytest.mark.campaign)])
def test_of_many_lines_only_those_that_changed_are_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """By counts; nothing is really heard."""
    asked: list[str] = []

    def check(self: WordChecker, clip, spoken: ExpectedText, *_: object) -> WordCheck:
        asked.append(spoken.text)
        return WordCheck(spoken.text, "draft-ears")

    monkeypatch.setattr(WordChecker, "check", check)
    texts = [f"Number {number}." for number in range(count)]
    with reopened(tmp_path, catalogue()) as studio:
        session = project(studio, *texts)
        rendered(session)
        checked(session)
        assert sorted(asked) == sorted(texts)
        ids = session.document.order[10:40:10]
        changed = dict(zip(ids, ("One.", "Two.", "Three."), strict=True))
        asked.clear()
        session.edit(ops(*(text_edit(*one) for one in changed.items())), IDA, session.rev)
        rendered(session)
        checked(session)
        assert sorted(asked) == sorted(changed.values())
    with reopened(tmp_path, catalogue()) as studio:
        checked(studio.projects.open(session.project_id))
    assert len(asked) == 3


def test_takes_from_before_there_was_a_recogniser_are_checked_when_the_project_opens(
    tmp_path: Path,
) -> None:
    with reopened(tmp_path, {}) as studio:
        session = project(studio, GOOD, *SLIPS)
        rendered(session)
    with reopened(tmp_path, catalogue()) as studio:
        kinds = checked(studio.projects.open(session.project_id))
        assert kinds[1][1] == ["missing"]


def test_what_no_recogniser_knew_is_checked_once_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_checks(monkeypatch)
    (ears,) = catalogue().values()
    with reopened(tmp_path, catalogue()) as studio:
        session = project(studio, GOOD, "Close the door.")
        welsh = {"op": "set", "line_ids": session.document.order, "fields": {"language": "cy"}}
        session.edit(ops(welsh), IDA, session.rev)
        rendered(session)
        notes = ["No recogniser here knows “cy”."] * 2
        assert [said for said, _ in checked(session)] == notes
    with reopened(tmp_path, catalogue()) as studio:
        session = studio.projects.open(session.project_id)
        assert [said for said, _ in checked(session)] == notes
    assert len(asked) == 2
    with reopened(tmp_path, {ears.name: replace(ears, languages=("cy", "en"))}) as studio:
        session = studio.projects.open(session.project_id)
        until(lambda: all(view.take.recognised.by for view in session.list_views()))
    assert len(asked) == 4


def test_the_lines_from_the_play_head_on_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reopened(tmp_path, {}) as studio:
        session = project(studio, GOOD, *SLIPS)
        rendered(session)
        lengths = [view.samples for view in session.list_views()]
    order, is_moved = [], threading.Event()
    transcribe = Recogniser.transcribe

    def waiting(self: Recogniser, clip, *given):
        if len(clip) in lengths:  # else it is the draft voice's reading, to weigh marks by
            order.append(lengths.index(len(clip)))
            is_moved.wait(60)
        return transcribe(self, clip, *given)

    monkeypatch.setattr(Recogniser, "transcribe", waiting)
    with reopened(tmp_path, catalogue()) as studio:
        session = studio.projects.open(session.project_id)
        until(lambda: len(order) == 1)
        session.focus(session.document.order[3])
        is_moved.set()
        checked(session)
    assert order == [0, 3, 4, 1, 2]


def test_nothing_is_checked_before_the_line_at_the_play_head(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_checks(monkeypatch)
    voice = GatedDraft()
    session = project(open_studio(voice, recognisers=catalogue(), max_concurrency=1), GOOD, *SLIPS)
    order = session.document.order
    session.render(order[:2])
    voice.let_through(2)
    checked_ids = order[:2]
    until(lambda: all(session.get_view(one).take for one in checked_ids))
    until(lambda: len(asked) == 2)
    session.render(order[2:], again=False, listen_from=order[4])
    session.focus(order[4])
    voice.faults[session.document.lines[order[4]].text] = ModelUnavailable("gone")
    until(lambda: voice.in_speak > 0)
    voice.let_through(2)  # the play-head's line fails, and so all the others do
    until(lambda: not session.busy)
    assert len(asked) == 2


def test_a_recogniser_that_goes_away_meanwhile_loses_no_line(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcribe = Recogniser.transcribe
    calls = []

    def unloaded_first(self: Recogniser, clip, *given):
        calls.append(clip)
        if len(calls) == 1:
            self.unload()
        return transcribe(self, clip, *given)

    monkeypatch.setattr(Recogniser, "transcribe", unloaded_first)
    session = project(open_studio(recognisers=catalogue()), GOOD, "Close the door.")
    rendered(session)
    assert {view.state for view in session.list_views()} == {"ready"}
    until(lambda: len(calls) >= 3)
