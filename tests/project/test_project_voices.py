"""A speaker that gets another name keeps its voice, and its lines keep their takes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest
from project_scenes import IDA, Bench, document_of, ops, rendered, text_edit
from scenes import OpenStudio

from studio.backends.base import Capabilities, Conditioning
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import StudioError
from studio.project.session import ProjectSession
from studio.services.studio import Studio
from studio.voices.speaker import Voice

SCRIPT = "Pilot: Hello there.\nRobot: Well.\nPilot: Go now."  # names that suit anybody


class OneVoice(DraftBackend):
    """The draft voice with one built-in voice for everybody, as Chatterbox has it."""

    @cached_property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, builtin_by_name=False)

    def condition(self, voice: Voice) -> Conditioning:
        return super().condition(replace(voice, first_name="Somebody"))


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    return read(studio)


def read(studio: Studio) -> ProjectSession:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    rendered(session)
    return session


def rename(session: ProjectSession, former: str, name: str) -> None:
    session.edit(ops({"op": "rename_speaker", "from": former, "to": name}), IDA, session.rev)


def states(session: ProjectSession) -> list[str]:
    return [view.state for view in session.list_views()]


def sounds(session: ProjectSession) -> list[bytes]:
    return [
        session.take_store.get_audio_path(view.take).read_bytes() for view in session.list_views()
    ]


def made_anew(session: ProjectSession) -> list[bytes]:
    """The lines as they sound when all of them are made again."""
    takes = [view.take for view in session.list_views()]
    gone = [{"op": "delete_take", "take_id": take.take_id} for take in takes]
    session.edit(ops(*gone), IDA, session.rev)
    rendered(session)
    return sounds(session)


def test_a_renamed_speaker_keeps_the_voice_its_first_name_chose(session: ProjectSession) -> None:
    before = sounds(session)
    for former, name in [("Pilot", "Ada"), ("ADA", "Eva")]:
        rename(session, former, name)
        assert states(session) == ["ready"] * 3
    assert session.document.first_names == {"Eva": "Pilot"}
    assert made_anew(session) == before
    assert session.get_view(session.document.order[0]).take.voice == "Eva"
    rename(session, "Eva", "pilot")
    assert session.document.first_names == {}
    assert states(session) == ["ready"] * 3


def test_a_speaker_renamed_to_another_one_has_that_ones_voice(session: ProjectSession) -> None:
    rename(session, "Robot", "Ben")
    rename(session, "Pilot", "Ben")
    assert session.document.first_names == {"Ben": "Robot"}
    assert states(session) == ["stale", "ready", "stale"]
    session.undo(IDA, session.rev)
    assert states(session) == ["ready"] * 3


def test_a_renamed_speaker_keeps_the_librarys_voice(
    studio: Studio, session: ProjectSession
) -> None:
    recording = session.take_store.get_audio_path(session.list_views()[0].take)
    ida = studio.speakers.add("Pilot", sample=studio_sample(recording))
    rendered(session)
    before = sounds(session)
    rename(session, "Pilot", "Ada")
    assert states(session) == ["ready"] * 3
    assert session.document.cast == {"Ada": ida.speaker_id}
    assert made_anew(session) == before
    session.undo(IDA, session.rev)


def studio_sample(recording: Path):
    from studio.audio.clip import Clip
    from studio.audio.decode import decode

    clip = decode(recording)
    return Clip(clip.samples.repeat(2), clip.rate_hz)


def test_a_name_that_brings_a_voice_along_has_it(studio: Studio, session: ProjectSession) -> None:
    studio.speakers.add("Ada", preset="linda")
    rename(session, "Pilot", "Ada")
    assert states(session) == ["stale", "ready", "stale"]
    assert session.document.cast == session.document.first_names == {}


def test_another_voice_or_language_tells_its_lines_and_the_way_back_needs_no_render(
    studio: Studio, session: ProjectSession
) -> None:
    first, middle, last = session.document.order
    before = sounds(session)
    eva = studio.speakers.add("Eva", preset="linda")
    cast = {"op": "cast", "speaker": "Pilot"}
    news = session.edit(ops({**cast, "voice": eva.speaker_id}), IDA, session.rev)
    assert set(news.line_ids) == {first, last}
    assert states(session) == ["stale", "ready", "stale"]
    rendered(session)
    news = session.edit(ops({**cast, "voice": None}), IDA, session.rev)
    assert set(news.line_ids) == {first, last}
    assert (states(session), sounds(session)) == (["ready"] * 3, before)
    german = {"op": "settings", "fields": {"language": "de"}}
    news = session.edit(ops(german), IDA, session.rev)
    assert set(news.line_ids) == {first, middle, last}
    assert set(session.undo(IDA, session.rev).line_ids) == {first, middle, last}
    assert states(session) == ["ready"] * 3


def test_a_speaker_renamed_in_the_library_sounds_as_before(
    studio: Studio, session: ProjectSession
) -> None:
    ada = studio.speakers.add("Ada")
    session.edit(ops({"op": "cast", "speaker": "Pilot", "voice": ada.speaker_id}), IDA, session.rev)
    rendered(session)
    before = sounds(session)
    studio.speakers.rename("Ada", "Eva")
    assert states(session) == ["ready"] * 3
    assert made_anew(session) == before
    assert studio.speakers.get("Eva").first_name == "Ada"
    assert studio.speakers.rename("Eva", "ada").first_name == "Ada"
    assert studio.speakers.rename("ada", "Ada").first_name is None


def test_where_one_voice_speaks_for_all_a_name_changes_nothing(open_studio: OpenStudio) -> None:
    session = read(open_studio(OneVoice()))
    for line_id in session.document.order:
        session.edit(ops(text_edit(line_id, "Hello there.")), IDA, session.rev)
    rendered(session)
    assert len(set(sounds(session))) == 1
    rename(session, "Pilot", "Ada")
    session.edit(
        ops({"op": "set", "line_ids": list(session.document.order), "fields": {"speaker": "Z"}}),
        IDA,
        session.rev,
    )
    assert states(session) == ["ready"] * 3


def test_takes_from_before_that_was_known_still_fit(open_studio: OpenStudio) -> None:
    session = read(open_studio())  # its keys hold the names
    session.close()
    session = open_studio(OneVoice()).projects.open(session.project_id)
    assert states(session) == ["ready"] * 3
    rename(session, "Pilot", "Ada")
    assert states(session) == ["ready"] * 3
    session.edit(ops(text_edit(session.document.order[0], "Other words.")), IDA, session.rev)
    assert states(session) == ["stale", "ready", "ready"]
    rendered(session)
    assert states(session) == ["ready"] * 3


@pytest.mark.parametrize("kind", [DraftBackend, OneVoice])
def test_takes_made_under_an_old_name_of_the_backend_still_fit(
    open_studio: OpenStudio, kind: type[DraftBackend]
) -> None:
    def named(name: str) -> DraftBackend:
        return type("Named", (kind,), {"name": name})()

    session = read(open_studio(named("qwen3-batched")))
    made = {view.take.backend for view in session.list_views()}
    session.close()
    session = open_studio(named("qwen3")).projects.open(session.project_id)
    assert states(session) == ["ready"] * 3
    assert made == {view.take.backend for view in session.list_views()} == {"qwen3-batched"}
    session.close()
    session = open_studio(named("chatterbox")).projects.open(session.project_id)
    assert states(session) == ["stale"] * 3


def test_lines_are_spoken_in_the_language_of_their_voice(studio: Studio) -> None:
    studio.speakers.add("Pilot", preset="linda")
    studio.speakers.add("Robot", preset="linda")
    session = read(studio)
    before = sounds(session)
    studio.speakers.update("Pilot", language="de")
    assert states(session) == ["stale", "ready", "stale"]
    rendered(session)
    after = sounds(session)
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True, False]
    fields = {"op": "set", "line_ids": [session.document.order[0]], "fields": {"language": "de"}}
    session.edit(ops(fields), IDA, session.rev)
    assert states(session) == ["ready"] * 3, "the line says what its voice said"


def test_a_language_that_the_voice_would_choose_itself_makes_no_take_outdated(
    studio: Studio, session: ProjectSession
) -> None:
    speaker = studio.speakers.add("Pilot")
    session.edit(ops({"op": "settings", "fields": {"language": "en"}}), IDA, session.rev)
    studio.speakers.update(speaker.name, language="en-US")
    assert states(session) == ["ready"] * 3


def test_the_language_of_the_script_serves_lines_whose_voice_has_none(
    studio: Studio, session: ProjectSession
) -> None:
    before = sounds(session)
    studio.speakers.add("Robot", language="en")
    session.edit(ops({"op": "settings", "fields": {"language": "de_AT"}}), IDA, session.rev)
    assert session.document.settings.language == "de-AT"
    assert states(session) == ["stale", "ready", "stale"]
    rendered(session)
    assert sounds(session)[1] == before[1]
    assert sounds(session)[0] != before[0]
    session.undo(IDA, session.rev)
    rendered(session)
    assert sounds(session) == before
    with pytest.raises(StudioError, match="no language code"):
        session.edit(ops({"op": "settings", "fields": {"language": "Deutsch!"}}), IDA, session.rev)


class Instructed(DraftBackend):
    """The draft voice as one that takes words on how a line is spoken."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str | None] = []

    @cached_property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, instructions=True)

    def condition(self, voice: Voice) -> Conditioning:
        self.told.append(voice.description)
        return super().condition(voice)


def test_how_a_voice_and_a_line_are_spoken_reaches_the_engine(open_studio: OpenStudio) -> None:
    backend = Instructed()
    studio = open_studio(backend)
    studio.speakers.add("Pilot", preset="linda", description="calmly")
    session = studio.projects.create("Scene", read_dialog_text("Pilot: Hello there.").dialog)
    rendered(session)
    studio.speakers.update("Pilot", description="angrily")
    assert states(session) == ["stale"]
    rendered(session)
    line = {"line_ids": list(session.document.order), "fields": {"params": {"instruct": "hoarse"}}}
    session.edit(ops({"op": "set", **line}), IDA, session.rev)
    assert states(session) == ["stale"]
    rendered(session)
    assert backend.told == ["calmly", "angrily", "hoarse"]


def test_a_project_from_before_that_was_kept_opens(bench: Bench) -> None:
    session = bench.make(document_of(2))
    session.edit(ops(text_edit(session.document.order[0], "Now.")), IDA, session.rev)
    session.close()
    snapshot = bench.root / "abc" / "project.json"
    record = json.loads(snapshot.read_bytes())
    del record["first_names"]
    snapshot.write_text(json.dumps(record))
    session = bench.open()
    assert session.folder.notices == []
    assert session.document.first_names == {}
    session.undo(IDA, session.rev)
    rename(session, "Pilot", "Ada")
    session.close()
    assert bench.open().document.first_names == {"Ada": "Pilot"}


def test_an_edit_of_a_text_looks_no_voice_up_again(studio: Studio) -> None:
    """Nor does a pause at the beginning, which nobody says."""
    script = "[pause:1s]\nIda: Hello there.\nTom: Well."
    session = studio.projects.create("Scene", read_dialog_text(script).dialog)
    session.list_views()
    before = session.render_context
    session.edit(ops(text_edit(session.document.order[1], "Go now.")), IDA, session.rev)
    assert session.render_context is before
    rename(session, "Pilot", "Eva")
    assert session.render_context is not before
