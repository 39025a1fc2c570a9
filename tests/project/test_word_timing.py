"""Takes get the times of their words after they are saved, and only once."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from project_scenes import IDA, ops, rendered, text_edit, until

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.dialog.text_view import TextView
from studio.errors import SpeechFailed
from studio.hearing.timing_files import TimingFormat, write_timing
from studio.hearing.word_aligner import WordAligner
from studio.hearing.word_times import Alignment
from studio.project.scene_export import time_lines
from studio.project.session import ProjectSession
from studio.project.takes import Take
from studio.project.word_timing import read_words
from studio.services.studio import Studio

SCRIPT = "Ida: The red kite flew away.\nTom: Well, [pause:1s] Dr. Who saw it.\n[pause:2s]"


class CountedAligner(WordAligner):
    """Counts what it aligns; fails where it is to."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.languages: list[str | None] = []
        self.fails = False

    def align_file(self, path: Path, text: str, language: str | None = None) -> Alignment:
        self.texts.append(text)
        self.languages.append(language)
        if self.fails:
            raise SpeechFailed("not now")
        return super().align_file(path, text, language)


@pytest.fixture
def aligner(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> CountedAligner:
    counted = CountedAligner()
    monkeypatch.setattr(studio.projects._timer, "aligner", counted)
    yield counted
    counted.close()


def open_scene(studio: Studio, script: str = SCRIPT) -> ProjectSession:
    return studio.projects.create("Scene", read_dialog_text(script).dialog)


def takes_of(session: ProjectSession) -> list[Take]:
    found = [session.get_view(line_id).take for line_id in session.document.order]
    return [take for take in found if take is not None]


def wait_until_timed(session: ProjectSession) -> None:
    until(lambda: all(take.words is not None for take in takes_of(session)))


def test_the_words_of_new_takes_are_kept_with_them(studio: Studio, aligner: CountedAligner) -> None:
    session = open_scene(studio)
    rendered(session)
    wait_until_timed(session)
    first, second = takes_of(session)
    assert [word.word for word in read_words(first).words] == ["The", "red", "kite", "flew", "away"]
    said = read_words(second)
    assert [word.word for word in said.words] == ["Well", "Dr.", "Who", "saw", "it"]
    pause_s = [edge / 24_000 for edge in second.pauses[0]]
    assert said.words[0].end_s < pause_s[0] + 0.1
    assert said.words[1].start_s > pause_s[1] - 0.1
    assert said.phonemes[0].ipa == "w"
    record = json.loads(session.take_store.get_audio_path(first).with_suffix(".json").read_bytes())
    assert record["words"][0][:2] == [0, 3]
    again = studio.projects.open(session.project_id)
    assert takes_of(again)[0].words == first.words


def test_only_what_changed_is_timed_again(studio: Studio, aligner: CountedAligner) -> None:
    session = open_scene(studio)
    rendered(session)
    wait_until_timed(session)
    assert len(aligner.texts) == 2
    line_id = session.document.order[0]
    session.edit(ops(text_edit(line_id, "The grey owl stayed.")), IDA, session.rev)
    rendered(session)
    wait_until_timed(session)
    assert aligner.texts[2:] == ["The grey owl stayed."]
    time_lines(session)
    assert len(aligner.texts) == 3


def test_a_take_without_words_is_timed_when_it_is_asked_for(
    studio: Studio, aligner: CountedAligner
) -> None:
    """As those of older studios, and those whose timing failed."""
    aligner.fails = True
    session = open_scene(studio)
    rendered(session)
    until(lambda: len(aligner.texts) == 2)
    take = takes_of(session)[0]
    assert take.words is None
    with pytest.raises(SpeechFailed):
        session.time_words(take)
    aligner.fails = False
    timed = session.time_words(take)
    assert len(timed.words) == 5
    assert session.take_store.find(take.take_id).words == timed.words


def test_pronunciations_are_timed_at_the_words_that_are_written(
    studio: Studio, aligner: CountedAligner
) -> None:
    session = open_scene(studio, "Ida: Ask Dr. Who now, GUI fans.")
    entries = [
        {"written": "Dr.", "spoken": "Doctor"},
        {"written": "GUI", "spoken": "graphical user interface"},
    ]
    edits = ops({"op": "pronounce", "put": entries})
    session.edit(edits, IDA, session.rev)
    rendered(session)
    wait_until_timed(session)
    (take,) = takes_of(session)
    words = read_words(take).words
    assert aligner.texts == ["Ask Doctor Who now, graphical user interface fans."]
    assert [word.word for word in words] == ["Ask", "Dr.", "Who", "now", "GUI", "fans"]
    assert words[4].end_s - words[4].start_s > 0.8
    assert all(a.end_s <= b.start_s + 0.001 for a, b in pairwise(words))


def test_stage_directions_are_no_words_of_a_take(studio: Studio, aligner: CountedAligner) -> None:
    session = open_scene(studio, "Ida: (whispering) How long must we wait (softly) for it?")
    rendered(session)
    wait_until_timed(session)
    (take,) = takes_of(session)
    words = [word.word for word in read_words(take).words]
    assert words == ["How", "long", "must", "we", "wait", "for", "it"]
    assert aligner.texts == ["How long must we wait for it?"]


def test_words_are_read_in_the_language_of_the_script(
    studio: Studio, aligner: CountedAligner
) -> None:
    """A line that names no language has that of the project."""
    session = open_scene(studio, "Ida: Ach so, ja.")
    edit = {"op": "settings", "fields": {"language": "de"}}
    session.edit(ops(edit), IDA, session.rev)
    rendered(session)
    wait_until_timed(session)
    assert aligner.languages == ["de"]


def test_no_take_is_timed_before_the_line_at_the_play_head(
    studio: Studio, aligner: CountedAligner
) -> None:
    session = open_scene(studio)
    first, second, _ = session.document.order
    timing, queue = session._state.word_timing, session._state.render_queue
    session.render([first])
    until(lambda: not session.busy)
    wait_until_timed(session)
    queue.play_head = second
    queue.queued[second] = None  # waits for the engine
    take = takes_of(session)[0]
    object.__setattr__(take, "words", None)
    timing.add(take, TextView(take.text), None)
    timing.pump()
    assert studio.projects._timer.thread.submit(lambda: len(aligner.texts)).result() == 1
    queue.queued.clear()
    timing.pump()
    until(lambda: len(aligner.texts) == 2)


def test_takes_that_wait_are_one_order_of_the_thread(
    studio: Studio, aligner: CountedAligner, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, orders = open_scene(studio), []
    thread = studio.projects._timer.thread
    with monkeypatch.context() as patched:
        patched.setattr(thread, "submit", orders.append)
        rendered(session)
        session._state.word_timing.pump()
    assert len(orders) == 1
    orders[0]()
    wait_until_timed(session)
    assert len(aligner.texts) == 2


def test_a_scene_s_words_and_mouths(studio: Studio, aligner: CountedAligner) -> None:
    session = open_scene(studio)
    rendered(session)
    lines, duration_s, problems = time_lines(session)
    assert (len(lines), problems) == (2, [])
    assert lines[1].words[0].start_s > lines[0].end_s - 0.01
    assert duration_s > lines[1].end_s + 1.9
    for format_ in TimingFormat:
        assert write_timing(lines, format_, duration_s)
    aligner.fails = True
    line_id = session.document.order[0]
    session.edit(ops(text_edit(line_id, "Nobody knows when.")), IDA, session.rev)
    rendered(session)
    lines, _, problems = time_lines(session)
    assert problems == ["Line 1 has no words: not now"]
    assert (lines[0].words, len(lines[1].words)) == ((), 5)
