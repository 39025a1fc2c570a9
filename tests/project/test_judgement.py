"""A project is judged on its own takes; what was judged is kept, and switches checks off."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from project_scenes import IDA, ops, rendered, until
from scenes import OpenStudio
from spoken_lines import iter_texts

from studio.audio.clip import Clip
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import Conflict
from studio.project.judgement import (
    JUDGE_FILE,
    JudgeState,
    collect_takes,
    describe_judgement,
    read_judgement,
)
from studio.project.session import ProjectSession
from studio.quality.checks import ExpectedSpeech, QualityIssue, QualityReport, check_take
from studio.services.studio import Studio

TURN = threading.BoundedSemaphore(1)


def project(studio: Studio, lines: int = 9, tagged: int = 0) -> ProjectSession:
    texts = list(zip(range(lines), iter_texts("en"), strict=False))
    rows = [f"Ida: {text}" for _, text in texts] + ["Tom: [laugh] Well, well."] * tagged
    session = studio.projects.create("Scene", read_dialog_text("\n".join(rows)).dialog)
    rendered(session)
    return session


def judged(session: ProjectSession) -> JudgeState:
    session.judge.start(TURN)
    until(lambda: session.judge.state is not JudgeState.RUNNING)
    return session.judge.state


def marking(kind: str, wanted: Callable[[str], bool]):
    """The usual check, and a mark of this kind on takes of some texts, whatever is in them."""

    def check(clip: Clip, said: ExpectedSpeech) -> QualityReport:
        report = check_take(clip, said)
        more = (QualityIssue(kind, 1.0, "Marked."),) if wanted(said.text) else ()
        return QualityReport(report.metrics, report.issues + more)

    return check


def kinds(session: ProjectSession) -> set[str]:
    return {one.kind for view in session.list_views() for one in view.issues}


def test_a_project_is_judged_and_says_so_after_it_is_opened_again(open_studio: OpenStudio) -> None:
    studio = open_studio(DraftBackend())
    session = project(studio, tagged=2)
    assert session.judge.state is JudgeState.NONE
    assert describe_judgement(session.judge.judgement)["judged_at"] is None
    assert judged(session) is JudgeState.DONE
    assert session.judge.progress == (72, 72), "nine takes, each with seven faults; no tagged one"
    known = session.judge.judgement
    assert {(one.voice, one.fault) for one in known.report.faults} == {
        ("Ida", fault)
        for fault in (
            *("word_cut", "word_doubled", "word_exchanged"),
            *("end_cut", "tail", "pitch"),
        )
    }
    body = describe_judgement(known)
    [pitch] = [one for one in body["faults"] if one["fault"] == "pitch"]
    assert pitch["found"]["trials"] == 9
    # Wilson's interval for nine of nine, eight of nine and so on: 95 %, in per cent.
    low, high = {9: (70, 100), 8: (57, 98), 7: (45, 94)}[pitch["found"]["hits"]]
    assert (pitch["found"]["low"], pitch["found"]["high"]) == (low, high)
    assert read_judgement(session.folder.root) == known
    project_id = session.project_id
    studio.projects.close()
    again = open_studio(DraftBackend()).projects.open(project_id)
    assert (again.judge.judgement, again.judge.state) == (known, JudgeState.DONE)


def test_a_check_that_is_of_no_use_here_marks_nothing_any_more(open_studio: OpenStudio) -> None:
    studio = open_studio(DraftBackend())
    studio.engine.renderer.check = marking("missing", lambda text: len(text) % 2 == 0)
    session = project(studio, 12)
    assert "missing" in kinds(session)
    assert judged(session) is JudgeState.DONE
    [off] = session.judge.judgement.checks_off
    assert (off.voice, off.check) == ("Ida", "words")
    assert off.describe_off().startswith("The check of “words” is switched off for Ida: it found ")
    assert "missing" not in kinds(session)
    studio.engine.renderer.check = check_take
    assert judged(session) is JudgeState.DONE
    assert session.judge.judgement.checks_off == ()
    assert "missing" in kinds(session), "judged again, it is of use"


def test_stage_directions_are_no_words_to_judge_by(open_studio: OpenStudio) -> None:
    script = "Ida: (whispering) How long must we wait (softly) for it?\nIda: [laugh] Well, well."
    studio = open_studio(DraftBackend())
    session = studio.projects.create("Scene", read_dialog_text(script).dialog)
    rendered(session)
    texts = [one.said.text for one in collect_takes(session._state)]
    assert texts == ["How long must we wait for it?"]


def test_a_project_with_too_few_takes_says_what_it_needs(open_studio: OpenStudio) -> None:
    session = project(open_studio(DraftBackend()), 7)
    assert judged(session) is JudgeState.FAILED
    assert "at least 8 ready lines of one voice" in session.judge.message
    assert not (session.folder.root / JUDGE_FILE).exists()


def test_an_empty_project_says_what_it_needs(open_studio: OpenStudio) -> None:
    session = open_studio(DraftBackend()).projects.create("Empty")
    assert judged(session) is JudgeState.FAILED
    assert "Render more lines first" in session.judge.message


def test_it_can_be_stopped_and_waits_for_its_turn(open_studio: OpenStudio) -> None:
    session = project(open_studio(DraftBackend()))
    turn = threading.BoundedSemaphore(1)
    turn.acquire()
    session.judge.start(turn)
    with pytest.raises(Conflict, match="being judged already"):
        session.judge.start(turn)
    session.judge.stop()
    until(lambda: session.judge.state is JudgeState.CANCELLED)
    assert session.judge.progress == (0, 0)
    assert session.judge.judgement is None


def test_a_damaged_judgement_is_as_none(open_studio: OpenStudio) -> None:
    studio = open_studio(DraftBackend())
    session = project(studio)
    assert judged(session) is JudgeState.DONE
    path = session.folder.root / JUDGE_FILE
    path.write_bytes(path.read_bytes().replace(b"Ida", b"Ada", 1))
    project_id = session.project_id
    studio.projects.close()
    again = open_studio(DraftBackend()).projects.open(project_id)
    assert (again.judge.judgement, again.judge.state) == (None, JudgeState.NONE)


def test_a_line_that_changed_isnt_judged_by(open_studio: OpenStudio) -> None:
    session = project(open_studio(DraftBackend()), 8)
    line_id = session.document.order[0]
    session.edit(
        ops({"op": "set", "line_ids": [line_id], "fields": {"text": "Other words."}}),
        IDA,
        session.rev,
    )
    assert judged(session) is JudgeState.FAILED
