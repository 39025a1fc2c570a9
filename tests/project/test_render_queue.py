"""What is made, what is made again, and what never is."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile
from gated import GatedDraft
from project_scenes import IDA, Bench, document_of, ops, rendered, text_edit, until
from scenes import OpenStudio, dialog_of

from studio.audio.clip import BLOCK_SAMPLES, STUDIO_RATE_HZ, Clip, Samples, to_pcm16, write_wav
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import (
    AudioRejected,
    BadInput,
    Cancelled,
    Conflict,
    ModelUnavailable,
    NotFound,
    SpeechFailed,
)
from studio.project.history import Author
from studio.project.line_audio import compute_peaks, open_line_audio
from studio.project.line_states import LineState, RenderEvent
from studio.project.session import ProjectSession
from studio.server.routes.bodies import job_body
from studio.services.studio import Studio, StudioOptions


class CountingDraft(DraftBackend):
    """Counts what it speaks."""

    def __init__(self) -> None:
        super().__init__()
        self.spoken: list[str] = []

    def speak(self, request):
        self.spoken.append(request.text)
        yield from super().speak(request)


@pytest.fixture
def voice() -> CountingDraft:
    return CountingDraft()


@pytest.fixture
def studio(open_studio: OpenStudio, voice: CountingDraft) -> Studio:
    return open_studio(voice)


@pytest.fixture
def gated() -> GatedDraft:
    return GatedDraft()


def project(studio: Studio, text: str) -> ProjectSession:
    return studio.projects.create("Scene", read_dialog_text(text).dialog)


def states(session: ProjectSession) -> list[str]:
    return [view.state for view in session.list_views()]


def taken(session: ProjectSession, line_id: str) -> str:
    """The id of a line's take; the times of its words come to its record a while later."""
    return session.get_view(line_id).take.take_id


def heard(session: ProjectSession, line_id: str) -> bytes:
    async def hear() -> bytes:
        sound = await open_line_audio(session, line_id)
        return b"".join([chunk async for chunk in sound.chunks])

    return asyncio.run(hear())


def set_text(session: ProjectSession, line_id: str, text: str) -> None:
    session.edit(ops(text_edit(line_id, text)), IDA, session.rev)


def test_one_word_changed_is_one_line_made_and_undo_brings_the_old_take_back(
    studio: Studio, voice: CountingDraft
) -> None:
    session = studio.projects.create("Scene", dialog_of(40))
    rendered(session)
    assert states(session) == ["ready"] * 40
    line_id = session.document.order[6]
    former = session.get_view(line_id).take
    voice.spoken.clear()

    set_text(session, line_id, "This is line seven.")
    assert session.get_view(line_id).state is LineState.STALE
    rendered(session)
    assert voice.spoken == ["This is line seven."]
    assert session.get_view(line_id).take.text == "This is line seven."

    session.undo(IDA, session.rev)
    assert taken(session, line_id) == former.take_id
    assert states(session) == ["ready"] * 40
    session.redo(IDA)
    assert session.get_view(line_id).take.text == "This is line seven."
    rendered(session)
    assert voice.spoken == ["This is line seven."]


def test_a_further_take_has_a_new_seed_and_undo_brings_the_former_back(studio: Studio) -> None:
    session = project(studio, "Ida: Hello.\n[Tom | seed:7] Well.")
    rendered(session)
    for line_id in session.document.order:
        first = session.get_view(line_id).take
        session.render([line_id], again=True)
        until(lambda: not session.busy)
        second = session.get_view(line_id).take
        assert second.seed != first.seed
        assert [take.take_id for take in session.list_takes(line_id)] == [
            first.take_id,
            second.take_id,
        ]
        assert session.get_view(line_id).state is LineState.READY
        session.undo(IDA, session.rev)
        assert taken(session, line_id) == first.take_id
        assert session.get_view(line_id).state is LineState.READY


def test_only_lines_of_a_mood_are_stale_when_its_sample_comes(studio: Studio) -> None:
    session = project(studio, "Ida: Hello.\n[Ida | mood:angry] Hello.\n[Ida | mood:sad] Hello.")
    studio.speakers.add("Ida", sample=Clip(tone(3.0, 140.0)))
    rendered(session)
    assert states(session) == ["ready"] * 3
    studio.speakers.add_mood("Ida", "Angry", Clip(tone(3.0, 220.0)))
    assert states(session) == ["ready", "stale", "ready"]
    rendered(session)
    studio.speakers.update("Ida", transcript="Not what it says.")
    assert states(session) == ["stale", "ready", "stale"]


def tone(duration_s: float, pitch_hz: float) -> Samples:
    at_s = np.arange(round(duration_s * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    return (0.2 * np.sin(2 * np.pi * pitch_hz * at_s)).astype(np.float32)


def test_a_stable_seed_makes_renders_repeat_and_a_seed_of_the_line_is_used(
    studio: Studio, voice: CountingDraft
) -> None:
    session = project(studio, "Ida: Hello.\nIda: Hello.\n[Ida | seed:7] Hello.")
    rendered(session)
    seeds = [session.get_view(line_id).take.seed for line_id in session.document.order]
    assert len(set(seeds)) == 3
    assert seeds[2] == 7
    line_id = session.document.order[2]
    session.edit(ops({"op": "set", "line_ids": [line_id], "fields": {"seed": 8}}), IDA, session.rev)
    assert session.get_view(line_id).state is LineState.STALE
    rendered(session)
    assert session.get_view(line_id).take.seed == 8
    assert len(voice.spoken) == 4


def test_a_locked_line_keeps_its_take_when_another_fits_again(studio: Studio) -> None:
    session = project(studio, "Ida: Hello.\nTom: Hello.")
    first, second = session.document.order
    rendered(session)
    earlier = session.get_view(second).take
    session.edit(ops(*(text_edit(one, "Well.") for one in (first, second))), IDA, session.rev)
    rendered(session)
    kept = session.get_view(first).take
    lock = {"op": "set", "line_ids": [first], "fields": {"locked": True}}
    session.edit(ops(lock), IDA, session.rev)
    session.edit(ops(*(text_edit(one, "Hello.") for one in (first, second))), IDA, session.rev)
    assert taken(session, first) == kept.take_id
    assert taken(session, second) == earlier.take_id
    assert states(session) == ["stale", "ready"]


def test_locked_lines_are_left_out_and_takes_can_be_chosen_and_deleted(
    studio: Studio, voice: CountingDraft
) -> None:
    session = project(studio, "Ida: Hello.\nTom: Well.")
    rendered(session)
    first, second = session.document.order
    lock = {"op": "set", "line_ids": [first], "fields": {"locked": True}}
    session.edit(ops(lock, text_edit(first, "Changed.")), IDA, session.rev)
    rendered(session)
    session.render([first], again=True)
    until(lambda: not session.busy)
    assert states(session) == ["stale", "ready"]
    assert len(voice.spoken) == 2
    take_id = session.get_view(first).take.take_id
    with pytest.raises(Conflict, match="locked"):
        session.edit(ops({"op": "delete_take", "take_id": take_id}), IDA, session.rev)

    session.render([second], again=True)
    until(lambda: not session.busy)
    older, newer = session.list_takes(second)
    choose = {"op": "choose", "line_id": second, "take_id": older.take_id}
    keep = {"op": "lock_take", "take_id": newer.take_id, "locked": True}
    session.edit(ops(choose, keep), IDA, session.rev)
    assert taken(session, second) == older.take_id
    with pytest.raises(Conflict, match="locked"):
        session.edit(ops({"op": "delete_take", "take_id": newer.take_id}), IDA, session.rev)
    session.edit(ops({"op": "delete_take", "take_id": older.take_id}), IDA, session.rev)
    assert [take.take_id for take in session.list_takes(second)] == [newer.take_id]
    assert taken(session, second) == newer.take_id
    session.undo(IDA, session.rev)
    assert taken(session, second) == older.take_id
    assert session.take_store.get_audio_path(older).is_file()


def test_a_line_that_is_locked_while_it_is_spoken_keeps_its_take(
    open_studio: OpenStudio, gated: GatedDraft
) -> None:
    session = project(open_studio(gated), "Ida: Hello.")
    gated.let_through(1)
    rendered(session)
    (line_id,) = session.document.order
    kept = taken(session, line_id)
    session.render([line_id], again=True)
    until(lambda: gated.in_speak == 1)
    lock = {"op": "set", "line_ids": [line_id], "fields": {"locked": True}}
    session.edit(ops(lock), IDA, session.rev)
    gated.let_through(1)
    until(lambda: not session.busy)
    assert len(session.list_takes(line_id)) == 2
    assert taken(session, line_id) == kept


def test_a_changed_voice_makes_its_lines_stale(studio: Studio, tmp_path: Path) -> None:
    session = project(studio, "Ida: This is a sample.\nTom: Well. This is one of mine.\nIda: So.")
    rendered(session)
    first, second, third = session.document.order
    recording = session.take_store.get_audio_path(session.get_view(second).take)
    voice = studio.speakers.add("Ida", sample=recording, transcript="Well.")
    assert states(session) == ["stale", "ready", "stale"]
    rendered(session)
    assert session.get_view(first).take.voice == "Ida"
    cast = {"op": "cast", "speaker": "TOM", "voice": voice.speaker_id}
    session.edit(ops(cast), IDA, session.rev)
    assert states(session) == ["ready", "stale", "ready"]
    session.undo(IDA, session.rev)
    assert states(session) == ["ready"] * 3
    studio.speakers.update("Ida", transcript="Well then.")
    assert states(session) == ["stale", "ready", "stale"]
    assert third


def test_a_line_with_pauses_is_one_take_of_their_exact_length(studio: Studio) -> None:
    session = project(studio, "Ida: One.\nIda: Two.\nIda: One. [pause:1.5s] Two.")
    session.render([session.document.order[2]])
    live = heard(session, session.document.order[2])
    rendered(session)
    one, two, both = (view.samples for view in session.list_views())
    assert both == one + 36_000 + two
    assert heard(session, session.document.order[2]) == live
    assert len(live) == 2 * both


@pytest.mark.parametrize("text", ["Ida: One.", "Ida: One. [pause:1s] Two."])
def test_a_listener_hears_a_line_to_its_end_though_its_segments_become_a_take(
    studio: Studio, text: str
) -> None:
    session = project(studio, text)
    line_id = session.document.order[0]

    async def listen() -> bytes:
        with session.lock:  # what is spoken can't become a take meanwhile
            session.render(None)
            job = session.get_line_job(line_id).job
            until(lambda: job.events.closed)
            sound = await open_line_audio(session, line_id)
        until(lambda: not session.busy)
        return b"".join([chunk async for chunk in sound.chunks])

    assert asyncio.run(listen()) == heard(session, line_id)


def test_an_edit_of_a_line_under_way_is_what_is_spoken(
    open_studio: OpenStudio, gated: GatedDraft
) -> None:
    session = open_studio(gated).projects.create("Scene", dialog_of(3))
    first, second, third = session.document.order
    session.render(None)
    until(lambda: gated.in_speak == 3)
    set_text(session, first, "Other words.")
    session.edit(ops({"op": "delete", "line_ids": [third]}), IDA, session.rev)
    gated.let_through(10)
    until(lambda: not session.busy)
    assert [view.take.text for view in session.list_views()] == ["Other words.", "This is line 1."]
    assert len(session.list_takes(second)) == 1
    session.undo(IDA, session.rev)
    assert session.get_view(third).state is LineState.NONE


def test_a_render_whose_last_lines_are_deleted_ends_for_all_that_follow_it(
    open_studio: OpenStudio, gated: GatedDraft
) -> None:
    session = open_studio(gated).projects.create("Scene", dialog_of(3))
    first, *rest = session.document.order
    session.render(None)
    until(lambda: gated.in_speak == 3)
    gated.let_through(1)
    until(lambda: len([one for one in states(session) if one == "ready"]) == 1)
    seen = session.events.seq
    left = [one for one in (first, *rest) if session.get_view(one).state is not LineState.READY]
    session.edit(ops({"op": "delete", "line_ids": left}), IDA, session.rev)
    assert job_body(session)["state"] == "done"
    assert RenderEvent() in session.events.read(seen)
    session.undo(IDA, session.rev)
    session.render(None)
    assert session.busy
    gated.let_through(2)
    until(lambda: not session.busy)
    assert states(session) == ["ready"] * 3


def test_the_line_that_is_listened_to_is_spoken_next(
    open_studio: OpenStudio, voice: CountingDraft
) -> None:
    gated = GatedDraft()
    studio = open_studio(gated, max_concurrency=1)
    session = studio.projects.create("Scene", dialog_of(60))
    session.render(None, listen_from=session.document.order[20])
    until(lambda: gated.in_speak == 1)
    assert session.get_view(session.document.order[20]).state is LineState.GENERATING
    assert session.get_view(session.document.order[0]).state is LineState.QUEUED
    session.focus(session.document.order[50])
    gated.let_through(2)
    until(lambda: session.get_view(session.document.order[50]).state is LineState.READY)
    assert session.render_progress.done <= 2
    session.cancel()
    assert "queued" not in states(session)
    assert not session.busy


def test_a_line_of_many_segments_goes_alone_until_it_is_nearly_spoken(
    open_studio: OpenStudio, gated: GatedDraft
) -> None:
    line = "Ida: " + "One. [pause:0.01s] " * 20
    session = project(open_studio(gated, max_concurrency=3), "\n".join([line] * 3))
    first, second, third = session.document.order
    session.render(None)
    until(lambda: gated.in_speak == 3)
    assert session.get_line_job(first) is not None
    assert session.get_line_job(second) is None
    gated.let_through(19)
    until(lambda: session.get_line_job(second) is not None and gated.in_speak == 3)
    assert session.get_view(first).state is LineState.GENERATING
    assert session.get_line_job(third) is None
    gated.let_through(41)
    until(lambda: not session.busy)
    assert states(session) == ["ready"] * 3


def test_cancelling_lets_a_waiting_listener_go(open_studio: OpenStudio) -> None:
    gated = GatedDraft()
    session = open_studio(gated, max_concurrency=1).projects.create("Scene", dialog_of(40))
    last = session.document.order[-1]
    session.render(None)
    until(lambda: gated.in_speak == 1)

    async def listen() -> None:
        waiting = asyncio.ensure_future(open_line_audio(session, last))
        await asyncio.sleep(0)
        await asyncio.to_thread(session.cancel)
        await waiting

    with pytest.raises(Cancelled):
        asyncio.run(listen())
    with pytest.raises(NotFound, match="Render it first"):
        heard(session, last)
    until(lambda: not list((session.folder.root / ".making").iterdir()))


def test_a_line_that_fails_says_why_until_it_is_changed(open_studio: OpenStudio) -> None:
    session = project(open_studio(), "Ida: Hello.\nIda:\n[Ida | lang:xx] Well.")
    rendered(session)
    views = session.list_views()
    assert [view.state for view in views] == ["ready", "failed", "failed"]
    assert "empty" in views[1].message
    assert "xx" in views[2].message
    assert (
        session.render_progress.done,
        session.render_progress.failed,
        session.render_progress.total,
    ) == (1, 2, 3)
    with pytest.raises(SpeechFailed, match="empty"):
        heard(session, session.document.order[1])
    set_text(session, session.document.order[1], "Words.")
    assert session.get_view(session.document.order[1]).state is LineState.NONE


def test_without_a_model_all_lines_fail_at_once_and_once(open_studio: OpenStudio) -> None:
    class Missing(DraftBackend):
        loads = 0

        def load(self, progress):
            Missing.loads += 1
            raise ModelUnavailable("Its packages are missing; install them.")

    session = open_studio(Missing()).projects.create("Scene", dialog_of(100))
    session.render(None)
    until(lambda: not session.busy)
    until(lambda: set(states(session)) == {"failed"})
    assert session.render_progress.message == "Its packages are missing; install them."
    assert Missing.loads <= 10


def test_a_recording_is_a_line_too(studio: Studio, tmp_path: Path) -> None:
    session = project(studio, "Ida: Hello.")
    write_wav(tmp_path / "bell.wav", Clip.silence(0.25, 48_000))
    with (tmp_path / "bell.wav").open("rb") as file:
        path = session.add_audio("bell.wav", file)
    line = {"line_id": "a" * 12, "kind": "audio", "path": path}
    gone = {"line_id": "b" * 12, "kind": "audio", "path": "../../../etc/passwd"}
    session.edit(ops({"op": "insert", "lines": [line, gone]}), IDA, session.rev)
    rendered(session)
    assert session.list_views()[0].samples == 6_000
    assert session.get_view("b" * 12).state is LineState.FAILED
    assert "no file of this project" in session.get_view("b" * 12).message
    (tmp_path / "text.wav").write_text("no audio")
    with (tmp_path / "text.wav").open("rb") as file, pytest.raises(AudioRejected):
        session.add_audio("text.wav", file)
    with (tmp_path / "bell.wav").open("rb") as file, pytest.raises(BadInput):
        session.add_audio("../bell.wav", file)
    assert [one.name for one in (session.folder.root / "audio").iterdir()] == [path]


def test_a_script_written_anew_keeps_what_stayed(studio: Studio, voice: CountingDraft) -> None:
    session = project(studio, "Ida: One.\nTom: Two is here.\nIda: Three.\n[pause:1s]\nTom: Four.")
    rendered(session)
    one, two, three, pause, four = session.document.order
    session.merge_script(
        "Tom: Four.\n[pause:2s]\nIda: One.\nBen: New.\nTom: Two is there.", IDA, session.rev
    )
    order = session.document.order
    assert (order[0], order[2], order[4]) == (four, one, two)
    assert states(session) == ["ready", "ready", "ready", "none", "stale"]
    assert three not in order
    assert pause not in order
    session.undo(IDA, session.rev)
    assert session.document.order == (one, two, three, pause, four)
    assert states(session) == ["ready"] * 5
    assert len(voice.spoken) == 4


def test_a_render_goes_on_after_a_restart_and_makes_nothing_twice(
    tmp_path: Path, gated: GatedDraft, voice: CountingDraft
) -> None:
    options = StudioOptions(tmp_path / "workspace", "draft")
    with Studio.open(options, lambda _: gated) as studio:
        session = studio.projects.create("Scene", dialog_of(12))
        session.render(None)
        gated.let_through(5)
        until(lambda: session.render_progress.done == 5)
        before = {take.take_id for take in session.take_store}
    assert (session.folder.root / "pending.json").exists()

    with Studio.open(options, lambda _: voice) as studio:
        session = studio.projects.open(session.project_id)
        until(lambda: not session.busy)
        assert states(session) == ["ready"] * 12
        after = {take.take_id for take in session.take_store}
        assert before <= after
        assert len(after) == 12
        assert len(voice.spoken) == 12 - len(before)
    assert not (session.folder.root / "pending.json").exists()


def test_a_take_found_without_its_record_is_no_take(bench: Bench) -> None:
    session = bench.make(document_of(1))
    folder = bench.root / "abc" / "takes" / session.document.order[0]
    folder.mkdir(parents=True)
    write_wav(folder / f"{'a' * 16}.wav", Clip.silence(0.1))
    (folder / f"{'b' * 16}.json").write_text("{")
    (folder / f"{'c' * 16}.json").write_text('{"take_id": "cccccccccccccccc"}')
    (folder / f".{'d' * 16}.part").touch()
    session.close()
    session = bench.open()
    assert list(session.take_store) == []
    assert session.list_views()[0].n_takes == 0
    session.close()


def test_peaks_are_of_the_loudest_samples(tmp_path: Path) -> None:
    samples = np.zeros(1_000, dtype=np.float32)
    samples[100], samples[900] = 0.5, -1.0
    write_wav(tmp_path / "take.wav", Clip(samples))
    assert compute_peaks(tmp_path / "take.wav", 2) == [0, 64, -128, 0]
    assert len(compute_peaks(tmp_path / "take.wav", 4_000)) == 2_000


def chosen(session: ProjectSession) -> list[str | None]:
    return [line.chosen for line in session.document]


def test_further_takes_asked_for_together_are_one_step_of_undo(
    open_studio: OpenStudio, gated: GatedDraft
) -> None:
    session = open_studio(gated).projects.create("Scene", dialog_of(6))
    gated.let_through(6)
    rendered(session)
    before = chosen(session)
    session.render(list(session.document.order), again=True)
    gated.let_through(1)
    until(lambda: chosen(session) != before)
    gated.let_through(5)
    until(lambda: not session.busy)
    after = chosen(session)
    assert not set(before) & set(after)
    session.undo(IDA, session.rev)
    assert chosen(session) == before
    session.redo(IDA)
    assert chosen(session) == after


def test_what_is_typed_while_further_takes_are_made_is_undone_first(
    open_studio: OpenStudio, gated: GatedDraft
) -> None:
    session = open_studio(gated).projects.create("Scene", dialog_of(6))
    gated.let_through(6)
    rendered(session)
    before = chosen(session)
    first = session.document.order[0]
    session.render(list(session.document.order[1:]), again=True)
    gated.let_through(1)
    until(lambda: chosen(session) != before)
    set_text(session, first, "Typed meanwhile.")
    gated.let_through(4)
    until(lambda: not session.busy)
    after = chosen(session)[1:]
    session.undo(IDA, session.rev)
    assert session.document.lines[first].text == "This is line 0."
    assert chosen(session)[1:] == after


def test_a_line_that_was_cut_off_keeps_what_was_spoken_and_is_not_ready(
    open_studio: OpenStudio, gated: GatedDraft
) -> None:
    session = open_studio(gated).projects.create("Scene", dialog_of(1))
    line_id = session.document.order[0]
    gated.faults["This is line zero."] = SpeechFailed("It did not come to its end.")
    session.render(None)
    until(lambda: gated.in_speak == 1)
    # As the engine leaves the record of a segment that was cut: failed, with a file.
    job = session.get_line_job(line_id).job
    path = job.segment_path(job.records[0])
    write_wav(path, Clip(tone(0.5, 140.0)))
    job.records[0].path, job.records[0].samples = path, 12_000
    gated.let_through(1)
    until(lambda: not session.busy)
    view = session.get_view(line_id)
    assert (view.state, view.take, view.n_takes) == (LineState.FAILED, None, 1)
    assert "come to its end" in view.message
    assert "among the line's takes" in view.message
    (cut,) = session.list_takes(line_id)
    assert (cut.cut, cut.samples) == (True, 12_000)
    assert session.take_store.get_audio_path(cut).stat().st_size == 44 + 24_000
    assert session.render_progress.failed == 1

    gated.faults.clear()
    gated.let_through(1)
    rendered(session)
    whole = session.get_view(line_id).take
    assert not whole.cut
    assert whole.seed == cut.seed + 1, "the same seed would be cut off again"
    assert not list((session.folder.root / ".making").iterdir())


def test_a_fault_of_the_studio_fails_its_line_and_the_others_go_on(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = project(studio, "Ida: Hello.\nTom: Well.\nIda: Bye.")
    keep = session.take_store.add

    def broken(take, audio):
        if take.text == "Well.":
            raise RuntimeError("unforeseen")
        keep(take, audio)

    monkeypatch.setattr(session.take_store, "add", broken)
    session.render(None)
    until(lambda: not session.busy)
    assert states(session) == ["ready", "failed", "ready"]
    assert "unforeseen" in session.get_view(session.document.order[1]).message
    monkeypatch.undo()
    rendered(session)
    assert states(session) == ["ready"] * 3


def test_peaks_are_the_same_however_the_bins_lie_in_the_blocks(tmp_path: Path) -> None:
    samples = np.random.default_rng(7).uniform(-1, 1, 3 * BLOCK_SAMPLES + 17).astype(np.float32)
    write_wav(tmp_path / "take.wav", Clip(samples))
    pcm = to_pcm16(samples)
    for bins in (1, 2, 3, 48, 4_000):
        starts = np.linspace(0, len(pcm), bins, endpoint=False).astype(int)
        lows, highs = np.minimum.reduceat(pcm, starts), np.maximum.reduceat(pcm, starts)
        whole = np.stack([lows, highs], axis=1).ravel() >> 8
        assert compute_peaks(tmp_path / "take.wav", bins) == whole.tolist()


def test_a_long_take_is_never_whole_in_memory(studio: Studio) -> None:
    session = project(studio, "Ida: Hello.")
    rendered(session)
    take = session.get_view(session.document.order[0]).take
    path = session.take_store.get_audio_path(take)
    with soundfile.SoundFile(path, "w", 24_000, 1, "PCM_16") as long:
        for _ in range(600):
            long.write(np.zeros(24_000, dtype=np.int16))

    async def longest() -> int:
        sound = await open_line_audio(session, take.line_id)
        return max([len(chunk) async for chunk in sound.chunks])

    tracemalloc.start()
    assert asyncio.run(longest()) <= 2 * BLOCK_SAMPLES
    assert len(compute_peaks(path, 200)) == 400
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * 2**20, "a take of 29 MB"


def test_what_is_given_up_in_mid_line_ends_in_half_a_sample(
    open_studio: OpenStudio, gated: GatedDraft
) -> None:
    session = open_studio(gated).projects.create("Scene", dialog_of(1))
    line_id = session.document.order[0]
    session.render(None)
    until(lambda: gated.in_speak == 1)

    async def listen() -> tuple[str | None, bytes]:
        sound = await open_line_audio(session, line_id)
        await asyncio.to_thread(session.cancel)
        return sound.take_id, b"".join([chunk async for chunk in sound.chunks])

    given_up, heard_of_it = asyncio.run(listen())
    assert len(heard_of_it) % 2 == 1
    gated.let_through(10)
    rendered(session)
    assert len(heard(session, line_id)) % 2 == 0
    assert session.get_view(line_id).take.take_id != given_up


def test_who_waits_for_a_line_is_let_go_when_the_project_closes(
    open_studio: OpenStudio, gated: GatedDraft
) -> None:
    session = open_studio(gated).projects.create("Scene", dialog_of(40))
    last = session.document.order[-1]
    session.render(None)
    until(lambda: gated.in_speak >= 1)

    async def listen() -> None:
        waiting = asyncio.ensure_future(open_line_audio(session, last))
        await asyncio.sleep(0)
        await asyncio.to_thread(session.close)
        await asyncio.wait_for(waiting, timeout=60)

    with pytest.raises(Cancelled, match="closed"):
        asyncio.run(listen())
    gated.let_through(100)


def test_two_authors_are_told_of_each_other(studio: Studio) -> None:
    session = project(studio, "Ida: Hello.")

    async def first_news() -> tuple[int, object]:
        since = session.events.seq
        edit = ops(text_edit(session.document.order[0], "Bye."))
        await asyncio.to_thread(session.edit, edit, Author("tom"), session.rev)
        async for news in session.events.subscribe(since):
            return session.events.seq - since, news
        raise AssertionError("no news")

    place, news = asyncio.run(first_news())
    assert (place, news.client, news.rev) == (1, "tom", 1)


def test_a_line_of_many_segments_begins_with_the_first_and_ends_with_the_last(
    studio: Studio,
) -> None:
    text = "It was late, and nobody had lit the lamp on the stairs. " * 150
    session = studio.projects.create("Scene", read_dialog_text(f"Ida: {text}").dialog)
    rendered(session)
    (line_id,) = session.document.order
    at_s = session.get_view(line_id).take.at_s
    assert list(at_s.values()) == sorted(at_s.values())
