"""How long a project's render still takes, as the page is told it: honest after edits, too."""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from gated import GatedDraft
from project_scenes import until
from scenes import OpenStudio, dialog_of

from studio.dialog.model import Dialog, SpeechLimits
from studio.dialog.planning import plan
from studio.engine.job import Job, JobSpec, SegmentState
from studio.project.document import ProjectLine
from studio.project.line_states import RenderEvent
from studio.project.render_queue import LineJob, LineJobSpec, RenderQueue
from studio.project.session import ProjectSession
from studio.server.routes.bodies import job_body
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary


class Engine:
    """Renders a project's lines in the order of the queue, on a clock of its own.

    Attributes:
        seen: At the end of each line, the time and the seconds that were said to be left.
    """

    def __init__(self, root: Path, slots: int, take_s: Callable[[ProjectLine], float]) -> None:
        self.now_s = 0.0
        self.queue = RenderQueue(lambda: self.now_s)
        self.lines: dict[str, ProjectLine] = {}
        self.seen: list[tuple[float, float | None]] = []
        self._slots, self._take_s = slots, take_s
        self._cast = Cast(SpeakerLibrary(root), {})
        self._running: list[tuple[float, str]] = []

    def add(self, *texts: str) -> None:
        first = len(self.lines)
        made = [
            ProjectLine(str(first + idx), speaker="Ida", text=one) for idx, one in enumerate(texts)
        ]
        self.lines |= {line.line_id: line for line in made}
        self.queue.enqueue({line.line_id: None for line in made})

    def run(self, lines: int | None = None) -> None:
        """Until so many lines have ended, or all."""
        until_n = None if lines is None else len(self.seen) + lines
        while len(self.seen) != until_n and self.queue.queued:
            for line_id in self.queue.list_waiting(self.lines):
                if len(self._running) == self._slots:
                    break
                self.begin(self.lines[line_id])
            self.now_s, line_id = heapq.heappop(self._running)
            [record] = self.queue.line_jobs[line_id].job.records
            self.queue.line_jobs[line_id].job.advance(record, SegmentState.GENERATED)
            self.queue.complete(line_id, 1.0)
            self.queue.estimate(self.lines)
            self.seen.append((self.now_s, self.queue.remaining_s))

    def begin(self, line: ProjectLine) -> None:
        speech = Dialog((line.to_dialog_line(),))
        spec = JobSpec(plan(speech, SpeechLimits(max_chars=1_000)), "draft", self._cast, None)
        job = Job(line.line_id, spec, clock=lambda: self.now_s)
        job.queue_speech()
        job.start_segment(job.records[0])
        job.begin_synthesis(job.records[0])
        about = LineJobSpec(line, "key", 1, "voice", "draft")
        self.queue.line_jobs[line.line_id] = LineJob(about, SimpleNamespace(job=job))
        heapq.heappush(self._running, (self.now_s + self._take_s(line), line.line_id))


def sentences(n_lines: int, draw: random.Random) -> list[str]:
    return ["a" * draw.randint(15, 200) for _ in range(n_lines)]


def off_by(engine: Engine, at_s: float) -> float:
    """How far from the truth it was at a time, as a share of what was left."""
    whole_s = engine.seen[-1][0]
    said_s, left_s = min(engine.seen, key=lambda one: abs(one[0] - at_s))
    assert left_s is not None
    return abs(left_s - (whole_s - said_s)) / (whole_s - said_s)


def slow(draw: random.Random) -> Callable[[ProjectLine], float]:
    return lambda line: len(line.text) / 14 * draw.uniform(0.7, 1.3)


def draft(draw: random.Random) -> Callable[[ProjectLine], float]:
    return lambda line: (0.05 + len(line.text) / 4_000) * draw.uniform(0.7, 1.3)


@pytest.mark.parametrize("voice", [slow, draft])
@pytest.mark.parametrize(("n_lines", "slots"), [(60, 1), (60, 4), (400, 4)])
def test_at_half_time_it_is_within_a_quarter(
    tmp_path: Path, voice: Callable, n_lines: int, slots: int
) -> None:
    off = []
    for seed in range(8):
        draw = random.Random(seed)
        engine = Engine(tmp_path, slots, voice(draw))
        engine.add(*sentences(n_lines, draw))
        engine.run()
        assert [left for _, left in engine.seen[:9]] == [None] * 9
        assert engine.seen[9][1] is not None
        assert engine.seen[-1][1] is None
        off.append(off_by(engine, engine.seen[-1][0] / 2))
    assert statistics.median(off) < 0.15
    assert max(off) < 0.25


def test_it_follows_lines_that_are_added_changed_and_deleted(tmp_path: Path) -> None:
    draw = random.Random(3)
    engine = Engine(tmp_path, 2, slow(draw))
    engine.add(*sentences(60, draw))
    engine.run(20)
    engine.add(*sentences(80, draw))
    for line_id in list(engine.queue.list_waiting(engine.lines))[:30]:
        line = engine.lines[line_id]
        engine.lines[line_id] = ProjectLine(line_id, speaker="Ida", text=line.text * 3)
    for line_id in list(engine.queue.list_waiting(engine.lines))[-20:]:
        del engine.lines[line_id]
        engine.queue.complete(line_id)
    edited_s = engine.now_s
    engine.run()
    assert len(engine.seen) == 120
    assert off_by(engine, edited_s + 2) < 0.25
    assert off_by(engine, (edited_s + engine.seen[-1][0]) / 2) < 0.25


def test_the_wait_for_room_on_the_disk_is_no_part_of_it(tmp_path: Path) -> None:
    draw = random.Random(4)
    engine = Engine(tmp_path, 1, slow(draw))
    engine.add(*sentences(40, draw))
    engine.run(15)
    before_s = engine.queue.remaining_s
    assert before_s is not None
    engine.queue.set_shortage("The disk is full.")
    engine.now_s += 3_600
    assert engine.queue.remaining_s is None
    assert not engine.queue.estimate(engine.lines)
    engine.queue.set_shortage(None)
    assert engine.queue.estimate(engine.lines)
    assert engine.queue.remaining_s == pytest.approx(before_s, rel=0.15)


def test_a_line_that_was_interrupted_waits_again(tmp_path: Path) -> None:
    engine = Engine(tmp_path, 1, lambda line: 10.0)
    engine.add(*["a" * 100] * 20)
    engine.run(12)
    assert engine.queue.remaining_s == pytest.approx(80)
    engine.begin(engine.lines["12"])
    engine.now_s += 5
    assert engine.queue.remaining_s == pytest.approx(75)
    engine.queue.drop_job("12")
    engine.now_s += 5
    engine.queue.estimate(engine.lines)
    assert engine.queue.remaining_s > 80, "nothing of the ten seconds came of it"


def remaining_s(session: ProjectSession) -> float | None:
    return job_body(session)["summary"]["remaining_s"]


def test_the_page_gets_it_with_the_progress(open_studio: OpenStudio) -> None:
    voice = GatedDraft()
    session = open_studio(voice).projects.create("Scene", dialog_of(40))
    session.render(None)
    for n_lines in range(1, 10):
        voice.let_through(1)
        until(lambda n=n_lines: session.render_progress.done == n)
        assert remaining_s(session) is None
    seen = session.events.seq
    voice.let_through(1)
    until(lambda: remaining_s(session) is not None)
    until(lambda: RenderEvent() in session.events.read(seen))  # pages that are open get it
    first_s = remaining_s(session)
    until(lambda: remaining_s(session) < first_s)
    voice.let_through(100)
    until(lambda: not session.busy)
    assert remaining_s(session) is None


def test_a_render_that_is_stopped_has_no_time_left(open_studio: OpenStudio) -> None:
    voice = GatedDraft()
    session = open_studio(voice).projects.create("Scene", dialog_of(40))
    session.render(None)
    voice.let_through(12)
    until(lambda: remaining_s(session) is not None)
    session.cancel()
    assert remaining_s(session) is None
