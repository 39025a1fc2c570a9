"""Words of a line said again: a take of its own, and nothing else of the line is new."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import wave
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from project_scenes import IDA, ops, rendered, text_edit, until
from scenes import OpenStudio

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.formats.dialog_file import Format, read_dialog_text
from studio.errors import BadInput, Cancelled, Conflict, NotFound, SpeechFailed, StorageFailed
from studio.hearing.word_check import WordCheck
from studio.project.history import Author
from studio.project.line_states import LineView
from studio.project.scene_export import export_script
from studio.project.session import ProjectSession
from studio.project.takes import Take, TakeStore, read_take_record
from studio.services.studio import Studio
from studio.storage.disk import Disk

TEXT = "I never said that you could take the boat out on your own."


class VaryingDraft(DraftBackend):
    """Speaks with another pitch and pace for each seed, as a model does.

    Attributes:
        texts: What was spoken, in order.
        is_silent: Whether it says nothing from now on.
        waits: Whether it waits until the request is cancelled.
    """

    def __init__(self) -> None:
        super().__init__(workers=1)
        self.texts: list[str] = []
        self.is_silent = False
        self.waits = False
        self.speaking = threading.Event()

    def speak(self, request):
        self.texts.append(request.text)
        self.speaking.set()
        while self.waits and not request.cancelled():
            pass
        chance = np.random.default_rng(request.seed)
        other = {"pitch": float(chance.uniform(-1, 1)), "speed": float(chance.uniform(0.9, 1.1))}
        for chunk in super().speak(replace(request, params={**other, **request.params})):
            yield chunk * np.float32(0) if self.is_silent else chunk


@pytest.fixture
def voice() -> VaryingDraft:
    return VaryingDraft()


@pytest.fixture
def studio(open_studio: OpenStudio, voice: VaryingDraft) -> Studio:
    return open_studio(voice)


def project(studio: Studio, text: str = TEXT) -> ProjectSession:
    session = studio.projects.create("Scene", read_dialog_text(f"Ida: {text}").dialog)
    rendered(session)
    return session


def say_again(studio: Studio, session: ProjectSession, part: str, author: Author = IDA) -> Take:
    """Mark a part of the line's text and say it again; the line's take by then."""
    view = session.list_views()[0]
    start = view.line.text.index(part)
    marked = tuple(
        len(view.line.text[:at].encode("utf-16-le")) // 2 for at in (start, start + len(part))
    )
    asyncio.run(studio.patches.say_again(session, view.line.line_id, marked, author))
    return view_of(session).take


def view_of(session: ProjectSession) -> LineView:
    return session.list_views()[0]


def described(session: ProjectSession) -> tuple[object, ...]:
    """A line and its take, of which words may be timed meanwhile."""
    view = view_of(session)
    return view.line, view.state, view.take.take_id, view.n_takes


def samples(session: ProjectSession, take: Take) -> np.ndarray:
    with wave.open(str(session.take_store.get_audio_path(take))) as file:
        assert file.getframerate() == STUDIO_RATE_HZ
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def digest(part: np.ndarray) -> str:
    return hashlib.sha256(part.tobytes()).hexdigest()


def assert_rest_is_kept(session: ProjectSession, old: Take, new: Take) -> None:
    before, after, patch = samples(session, old), samples(session, new), new.patch
    assert patch.take_id == old.take_id
    assert digest(after[: patch.start]) == digest(before[: patch.start])
    assert digest(after[patch.end :]) == digest(before[patch.resumes :])
    assert new.samples == len(after)
    assert not np.array_equal(after[patch.start : patch.end], before[patch.start : patch.resumes])


def test_a_take_that_only_a_decoder_could_read_is_not_decoded(studio: Studio, tmp_path) -> None:
    """A project from elsewhere may have any file in the place of a take."""
    session = project(studio)
    view = view_of(session)
    sound = samples(session, view.take)
    soundfile.write(tmp_path / "take.flac", sound, STUDIO_RATE_HZ)
    session.take_store.add(view.take, tmp_path / "take.flac")
    with pytest.raises(StorageFailed, match="can't be read"):
        say_again(studio, session, "could take")


def test_only_the_marked_words_are_new_and_the_record_says_which(studio: Studio) -> None:
    session = project(studio)
    old = view_of(session).take
    new = say_again(studio, session, "could take")
    assert_rest_is_kept(session, old, new)
    path = session.take_store.get_audio_path(new).with_suffix(".json")
    record = json.loads(path.read_bytes())
    assert record["patch"] == {
        "take_id": old.take_id,
        "start": new.patch.start,
        "end": new.patch.end,
        "resumes": new.patch.resumes,
    }
    # "could take" is said in the middle third of the line.
    assert 0.2 < new.patch.start / len(samples(session, new)) < new.patch.end / new.samples < 0.75
    assert TakeStore(session.folder.root / "takes", Disk()).find(new.take_id).patch == new.patch
    assert (new.key, new.text, new.backend) == (old.key, old.text, old.backend)


def test_records_of_older_studios_have_no_patch(studio: Studio) -> None:
    session = project(studio)
    take = view_of(session).take
    path = session.take_store.get_audio_path(take).with_suffix(".json")
    record = json.loads(path.read_bytes())
    assert record.pop("patch") is None
    del record["sum"]
    path.write_text(json.dumps(record))
    assert read_take_record(path).patch is None


def test_it_is_one_step_of_undo_and_both_takes_can_be_compared(studio: Studio) -> None:
    session = project(studio)
    old = view_of(session).take
    new = say_again(studio, session, "boat")
    assert [one.take_id for one in session.list_takes(old.line_id)] == [old.take_id, new.take_id]
    session.undo(IDA, session.rev, own=True)
    assert view_of(session).take.take_id == old.take_id
    session.redo(IDA)
    assert view_of(session).take.take_id == new.take_id


def test_one_that_is_withdrawn_leaves_the_line_as_it_was(studio: Studio) -> None:
    session = project(studio)
    described_before = described(session)
    named = Author("ida-1", "one", "one")
    say_again(studio, session, "boat", named)
    studio.pending_takes.withdraw(session, named)
    assert described(session) == described_before
    early = Author("ida-1", "two", "two")
    studio.pending_takes.withdraw(session, early)
    with pytest.raises(Cancelled):
        say_again(studio, session, "boat", early)
    assert described(session) == described_before


def test_what_was_recognised_in_the_earlier_take_isnt_said_of_the_new_one(studio: Studio) -> None:
    session = project(studio)
    old = view_of(session).take
    session.take_store.update(replace(old, recognised=WordCheck("I never said that.", "en")))
    assert say_again(studio, session, "boat").recognised is None


def test_the_words_of_the_new_take_are_timed(studio: Studio) -> None:
    session = project(studio)
    old = view_of(session).take
    new = say_again(studio, session, "could")
    until(lambda: session.take_store.get(new.take_id).words is not None)
    [before, after] = [list(session.time_words(one).words) for one in (old, new)]
    assert [word[:2] for word in after] == [word[:2] for word in before]
    shift_ms = (new.samples - old.samples) / 24
    # "own" is behind the patch.
    assert after[-1][2] - before[-1][2] == pytest.approx(shift_ms, abs=60)


def test_a_caret_in_a_word_marks_it(studio: Studio) -> None:
    session = project(studio)
    old = view_of(session).take
    at = TEXT.index("boat") + 2
    asyncio.run(studio.patches.say_again(session, old.line_id, (at, at), IDA))
    assert_rest_is_kept(session, old, view_of(session).take)


def test_a_patch_can_be_patched(studio: Studio) -> None:
    session = project(studio)
    first = say_again(studio, session, "boat")
    second = say_again(studio, session, "never said")
    assert_rest_is_kept(session, first, second)


def test_a_line_with_a_seed_of_its_own_stays_ready(studio: Studio) -> None:
    session = project(studio)
    line_id = view_of(session).line.line_id
    session.edit(ops({"op": "set", "line_ids": [line_id], "fields": {"seed": 7}}), IDA, session.rev)
    rendered(session)
    new = say_again(studio, session, "boat")
    view = view_of(session)
    assert (view.state, view.line.seed) == ("ready", new.seed)


def test_words_that_are_pronounced_another_way_are_found(
    studio: Studio, voice: VaryingDraft
) -> None:
    session = project(studio, "Mrs Nguyen 🚤 took the boat, and nobody saw her go.")
    entry = {"written": "Nguyen", "spoken": "Win"}
    session.edit(ops({"op": "pronounce", "put": [entry]}), IDA, session.rev)
    rendered(session)
    old = view_of(session).take
    new = say_again(studio, session, "Nguyen")
    assert voice.texts[-1].startswith("Missus Win")
    assert new.patch.end < 0.45 * new.samples
    assert_rest_is_kept(session, old, new)


def test_only_the_part_between_pauses_is_spoken_and_pauses_move_along(
    studio: Studio, voice: VaryingDraft
) -> None:
    session = project(
        studio, "Nobody came. [pause 1s] I sat by the window all day. [pause 2s] Then it rained."
    )
    old = view_of(session).take
    new = say_again(studio, session, "window")
    assert voice.texts[-1] == "I sat by the window all day."
    by = new.samples - old.samples
    assert new.pauses == (old.pauses[0], tuple(at + by for at in old.pauses[1]))
    assert old.pauses[0][1] < new.patch.start < new.patch.end < new.pauses[1][0]
    assert_rest_is_kept(session, old, new)


def test_words_around_a_pause_keep_it(studio: Studio) -> None:
    session = project(studio, "Nobody came at all. [pause 1s] I sat by the window all day.")
    old = view_of(session).take
    new = say_again(studio, session, "at all. [pause 1s] I sat")
    assert_rest_is_kept(session, old, new)
    assert new.pauses is None  # which is looked for in the sound, as of older takes
    data, _ = export_script(session, Format.SRT)
    assert [row for row in data.decode().splitlines() if row.startswith("Ida")] == [
        "Ida: Nobody came at all.",
        "Ida: I sat by the window all day.",
    ]


def test_what_cant_be_said_again_is_refused_and_nothing_changes(studio: Studio) -> None:
    session = project(studio, "Well, [laugh] come in.")
    view = view_of(session)
    line_id, take = view.line.line_id, view.take
    for marked in ((5, 5), (4, 6), (6, 13), (90, 95)):
        with pytest.raises(BadInput, match="Mark the words"):
            asyncio.run(studio.patches.say_again(session, line_id, marked, IDA))
    with pytest.raises(NotFound, match="deleted"):
        asyncio.run(studio.patches.say_again(session, "f" * 12, (0, 4), IDA))
    lock = {"op": "set", "line_ids": [line_id], "fields": {"locked": True}}
    session.edit(ops(lock), IDA, session.rev)
    with pytest.raises(Conflict, match="locked"):
        say_again(studio, session, "Well")
    session.undo(IDA, session.rev)
    session.take_store.free(take)
    with pytest.raises(NotFound, match="freed"):
        say_again(studio, session, "Well")
    rendered(session)
    session.edit(ops(text_edit(line_id, "Well, come on in.")), IDA, session.rev)
    with pytest.raises(Conflict, match="Render it first"):
        say_again(studio, session, "Well")
    assert len(session.list_takes(line_id)) == 1


def test_a_voice_that_says_nothing_leaves_the_line_as_it_is(
    studio: Studio, voice: VaryingDraft
) -> None:
    session = project(studio)
    described_before = described(session)
    voice.is_silent = True
    with pytest.raises(SpeechFailed, match="said nothing"):
        say_again(studio, session, "boat")
    assert described(session) == described_before


def test_a_line_that_is_changed_meanwhile_keeps_its_words(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = project(studio)
    line_id = view_of(session).line.line_id
    speak_plan = studio.previews.speak_plan

    async def change_meanwhile(*given):
        clip = await speak_plan(*given)
        session.edit(ops(text_edit(line_id, "Something else.")), IDA, session.rev)
        return clip

    monkeypatch.setattr(studio.previews, "speak_plan", change_meanwhile)
    with pytest.raises(Conflict, match="changed meanwhile"):
        say_again(studio, session, "boat")
    assert view_of(session).line.text == "Something else."
    assert len(session.list_takes(line_id)) == 1


def test_of_two_at_once_the_second_undoes_nothing(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = project(studio)
    old = view_of(session).take
    speak_plan = studio.previews.speak_plan

    async def say_more_meanwhile(*given):
        monkeypatch.setattr(studio.previews, "speak_plan", speak_plan)
        end = TEXT.index("said")
        await studio.patches.say_again(session, old.line_id, (end, end + 4), IDA)
        return await speak_plan(*given)

    monkeypatch.setattr(studio.previews, "speak_plan", say_more_meanwhile)
    with pytest.raises(Conflict, match="Another take"):
        say_again(studio, session, "boat")
    assert len(session.list_takes(old.line_id)) == 2
    assert view_of(session).take.patch.take_id == old.take_id


async def test_it_can_be_stopped(studio: Studio, voice: VaryingDraft) -> None:
    session = await asyncio.to_thread(project, studio)
    before, described_before = view_of(session), described(session)
    voice.waits = True
    voice.speaking.clear()
    saying = asyncio.ensure_future(
        studio.patches.say_again(session, before.line.line_id, (2, 7), IDA)
    )
    assert await asyncio.to_thread(voice.speaking.wait, 60)
    saying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saying
    until(lambda: studio.engine.renderer.in_flight == 0)
    assert described(session) == described_before
