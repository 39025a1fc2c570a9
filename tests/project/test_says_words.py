"""A project says numbers and signs in words where it is asked to, and a line where it may."""

from __future__ import annotations

import pytest
from hearing import HearingDraft
from project_scenes import IDA, ops, rendered
from scenes import OpenStudio

from studio.dialog.formats.dialog_file import Format, read_dialog_text
from studio.dialog.spoken import say
from studio.hearing.word_times import WordTime
from studio.hearing.written_words import place_in_written
from studio.project.document import ProjectSettings, encode_settings
from studio.project.scene_export import export_script
from studio.project.session import ProjectSession

SCRIPT = "Ida: It cost $4.50 in 1984.\nTom: Who paid?\nIda: Dr. Lee, e.g. on May 3."


@pytest.fixture
def voice() -> HearingDraft:
    return HearingDraft()


@pytest.fixture
def session(open_studio: OpenStudio, voice: HearingDraft) -> ProjectSession:
    return open_studio(voice).projects.create("Scene", read_dialog_text(SCRIPT).dialog)


def change(session: ProjectSession, **edit: object) -> object:
    return session.edit(ops(edit), IDA, session.rev)


def states(session: ProjectSession) -> list[str]:
    return [view.state for view in session.list_views()]


def test_a_new_project_says_words_and_shows_them(
    session: ProjectSession, voice: HearingDraft
) -> None:
    rendered(session)
    assert sorted(voice.heard) == [
        "Doctor Lee, for example on May third.",
        "It cost four dollars fifty in nineteen eighty-four.",
        "Who paid?",
    ]
    views = session.list_views()
    assert views[0].spoken_text == "It cost four dollars fifty in nineteen eighty-four."
    assert views[1].spoken_text is None
    assert views[0].take is not None
    assert views[0].take.text == "It cost $4.50 in 1984."
    assert "$4.50" in export_script(session, Format.SRT)[0].decode()


def test_a_project_without_the_setting_keeps_its_sound_until_it_is_asked(
    session: ProjectSession, voice: HearingDraft
) -> None:
    change(session, op="settings", fields={"says_words": False})
    rendered(session)
    assert "It cost $4.50 in 1984." in voice.heard
    assert [view.spoken_text for view in session.list_views()] == [None] * 3
    news = change(session, op="settings", fields={"says_words": True})
    assert states(session) == ["stale", "ready", "stale"]
    assert set(news.line_ids) == {session.document.order[0], session.document.order[2]}
    session.undo(IDA, session.rev)
    assert states(session) == ["ready"] * 3


def test_the_setting_is_off_and_unwritten_where_a_project_never_had_it() -> None:
    assert "says_words" not in encode_settings(ProjectSettings())
    assert encode_settings(ProjectSettings(says_words=True))["says_words"] is True


def test_a_line_may_be_said_as_it_is_written(session: ProjectSession, voice: HearingDraft) -> None:
    line_id = session.document.order[0]
    fields = {"params": {"as_written": True}}
    change(session, op="set", line_ids=[line_id], fields=fields)
    rendered(session)
    assert "It cost $4.50 in 1984." in voice.heard
    assert "Doctor Lee, for example on May third." in voice.heard
    assert session.list_views()[0].spoken_text is None


def test_a_pronunciation_wins(session: ProjectSession, voice: HearingDraft) -> None:
    put = [
        {"written": "$4.50", "spoken": "4 bucks 50"},
        {"written": "e.g.", "spoken": "E G"},
        {"written": "Lee", "spoken": "Leigh"},
    ]
    change(session, op="pronounce", put=put)
    rendered(session)
    assert "It cost 4 bucks 50 in nineteen eighty-four." in voice.heard
    assert "Doctor Leigh, E G on May third." in voice.heard


def test_the_language_of_the_project_counts(session: ProjectSession, voice: HearingDraft) -> None:
    change(session, op="settings", fields={"language": "de"})
    assert session.list_views()[0].spoken_text == (
        "It cost vier Dollar fünfzig in neunzehnhundertvierundachtzig."
    )


def test_words_have_the_time_and_the_place_of_what_is_written() -> None:
    written = "It cost $4.50, 15% more."
    spoken = "It cost four dollars fifty, fifteen percent more."
    words, at = [], 0
    for idx, word in enumerate(spoken.replace(",", "").replace(".", "").split()):
        at = spoken.index(word, at)
        words.append(WordTime(word, at, at + len(word), float(idx), idx + 0.5))
    placed = place_in_written(words, say(written, "en"), written)
    assert [(one.word, one.start_s, one.end_s) for one in placed] == [
        ("It", 0.0, 0.5),
        ("cost", 1.0, 1.5),
        ("$4.50", 2.0, 4.5),
        ("15%", 5.0, 6.5),
        ("more", 7.0, 7.5),
    ]
    assert [written[one.start : one.end] for one in placed] == [one.word for one in placed]
