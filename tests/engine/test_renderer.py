from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from gated import GatedDraft
from scenes import OpenStudio, dialog_of, finish, wait_until_idle

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples, write_wav
from studio.backends.base import Capabilities, LoadProgress, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.model import Audio, Dialog, Silence, Speech
from studio.engine.job import Job, JobEvent, JobState, SegmentState, build_scene
from studio.errors import Cancelled, ModelUnavailable, OutOfMemory, SpeechFailed, StorageFailed
from studio.services.studio import RenderOptions, Studio


def until(job: Job, state: SegmentState, count: int) -> list[int]:
    """Follow a job until so many segments reached a state; which ones, in that order."""
    reached = (event for event in job.events.follow() if event.state == state)
    return [event.segment_idx or 0 for event in itertools.islice(reached, count)]


def states(job: Job) -> list[str]:
    return [record.state.value for record in job.records]


def test_a_dialog_becomes_segments_in_order_exact_to_the_sample(
    studio: Studio, tmp_path: Path
) -> None:
    dialog = Dialog((Speech("Ida", "One."), Silence(0.75), Speech("Tom", "Two. [pause:1s] Three.")))
    job = studio.render(dialog)
    finish(job)
    assert states(job) == ["saved"] * 5
    samples = [record.samples or 0 for record in job.records]
    assert samples[1] == round(0.75 * STUDIO_RATE_HZ)
    assert samples[3] == STUDIO_RATE_HZ
    timeline = build_scene(job).timeline
    assert timeline.n_samples == sum(samples)
    assert [entry.segment_idx for entry in timeline.entries] == [0, 1, 2, 3, 4]
    assert job.summarize().audio_s == timeline.duration_s


def test_every_segment_logs_each_step_once_and_in_order(studio: Studio) -> None:
    job = studio.render(dialog_of(12))
    events = finish(job)
    for record in job.records:
        mine = [event for event in events if event.segment_idx == record.segment.segment_idx]
        assert [event.state for event in mine] == [
            "planned",
            "queued",
            "started",
            "generated",
            "saved",
        ]
        assert [event.at_s for event in mine] == sorted(event.at_s for event in mine)
    assert events[-1].state == JobState.DONE


@pytest.mark.parametrize("bound", [1, 3, 8])
def test_segments_in_flight_reach_the_bound_and_never_pass_it(
    open_studio: OpenStudio, bound: int
) -> None:
    backend = GatedDraft()
    studio = open_studio(backend, max_concurrency=bound)
    job = studio.render(dialog_of(20))
    assert len(until(job, SegmentState.STARTED, bound)) == bound
    assert studio.engine.renderer.in_flight == bound
    assert studio.engine.renderer.queued == 20 - bound
    backend.let_through(20)
    finish(job)
    assert job.summarize().max_in_flight == bound
    assert backend.most_in_speak <= bound
    assert studio.engine.renderer.in_flight == 0


def test_the_bound_holds_over_several_jobs(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    studio = open_studio(backend, max_concurrency=2)
    jobs = [studio.render(dialog_of(5)) for _ in range(3)]
    backend.let_through(15)
    for job in jobs:
        finish(job)
    assert backend.most_in_speak <= 2


def test_the_bytes_are_the_same_for_1_and_8_in_flight(
    open_studio: OpenStudio, tmp_path: Path
) -> None:
    made = []
    for bound in (1, 8):
        out = tmp_path / f"{bound}.wav"
        job = open_studio(max_concurrency=bound).render(dialog_of(24))
        finish(job)
        build_scene(job).write(out)
        made.append(out.read_bytes())
    assert made[0] == made[1]


def test_generation_goes_on_while_files_are_saved(open_studio: OpenStudio) -> None:
    disk_is_free = threading.Event()

    def slow_save(path: Path, clip: Clip) -> None:
        assert disk_is_free.wait(timeout=60)
        write_wav(path, clip)

    job = open_studio(max_concurrency=1, save=slow_save).render(dialog_of(10))
    assert len(until(job, SegmentState.GENERATED, 10)) == 10
    assert SegmentState.SAVED not in {record.state for record in job.records}
    disk_is_free.set()
    finish(job)
    assert states(job) == ["saved"] * 10


def test_generation_waits_when_too_much_is_unsaved(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.backend_queue.MAX_UNSAVED", 4)
    disk_is_free = threading.Event()
    studio = open_studio(
        max_concurrency=8,
        save=lambda path, clip: (disk_is_free.wait(timeout=60), write_wav(path, clip))[1],
    )
    job = studio.render(dialog_of(10))
    until(job, SegmentState.GENERATED, 4)
    assert studio.engine.renderer.queued == 6
    disk_is_free.set()
    finish(job)
    assert states(job) == ["saved"] * 10


class HalfAMinute(DraftBackend):
    """Speaks for 31 s, whichever voice the name chooses."""

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        time_s = np.arange(31 * STUDIO_RATE_HZ) / STUDIO_RATE_HZ
        yield (0.3 * np.sin(2 * np.pi * 220 * time_s)).astype(np.float32)


def test_generation_waits_when_a_minute_is_unsaved(open_studio: OpenStudio) -> None:
    disk_is_free = threading.Event()
    studio = open_studio(
        HalfAMinute(),
        max_concurrency=1,
        save=lambda path, clip: (disk_is_free.wait(timeout=60), write_wav(path, clip))[1],
    )
    half = Speech("Ida", "All is quiet by the river. " * 19, line_number=1)
    job = studio.render(Dialog((half,) * 6))
    until(job, SegmentState.GENERATED, 2)
    assert 60 <= sum(record.samples or 0 for record in job.records) / 24_000 < 65
    time.sleep(0.3)  # enough to begin another one
    assert studio.engine.renderer.queued == 4
    disk_is_free.set()
    finish(job)
    assert states(job) == ["saved"] * 6


@pytest.mark.parametrize(("n_chars", "most"), [(1_000, 1), (500, 2), (250, 3)])
def test_few_segments_that_may_last_minutes_are_spoken_at_once(
    open_studio: OpenStudio, n_chars: int, most: int
) -> None:
    numbers = Speech("Ida", ("7. " * 400)[: n_chars - 1], params={"as_written": True})
    job = open_studio(max_concurrency=3).render(Dialog((numbers,) * 6))
    finish(job)
    assert states(job) == ["saved"] * 6
    assert job.summarize().max_in_flight == most


def test_a_failing_line_leaves_an_error_record_and_the_others_complete(
    open_studio: OpenStudio, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.wav"
    broken.write_text("this is no sound")
    dialog = Dialog(
        (
            Speech("Ida", "I am fine.", line_number=1),
            Speech("Gone", "My sample is missing.", line_number=2),
            Speech("Broken", "My sample is no sound.", line_number=3),
            Speech("Ida", "", line_number=4),
            Speech("Tom", "So am I.", line_number=5),
        )
    )
    voices = {"Gone": tmp_path / "missing.wav", "Broken": broken}
    job = open_studio().render(dialog, RenderOptions(voices=voices))
    finish(job)
    assert states(job) == ["saved", "failed", "failed", "failed", "saved"]
    assert [failure.line_number for failure in job.list_failures()] == [2, 3, 4]
    assert all(failure.message for failure in job.list_failures())
    timeline = build_scene(job).timeline
    assert [entry.segment_idx for entry in timeline.entries] == [0, 4]
    assert [part.segment_idx for part in timeline.skipped] == [1, 2, 3]


def test_a_fault_of_the_backend_fails_its_line_only(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    backend.faults = {
        "This is line one.": RuntimeError("the model broke"),
        "This is line two.": SpeechFailed("This line can't be spoken; shorten it."),
    }
    backend.let_through(10)
    job = open_studio(backend).render(dialog_of(4))
    finish(job)
    assert states(job) == ["saved", "failed", "failed", "saved"]
    assert "RuntimeError: the model broke" in job.list_failures()[0].message
    assert job.list_failures()[1].message == "This line can't be spoken; shorten it."


class Cramped(GatedDraft):
    """Has memory for so many lines at once; notes who spoke with whom."""

    def __init__(self, *, room_for: int, too_long: str = "") -> None:
        super().__init__()
        self.room_for = room_for
        self.too_long = too_long
        self.tries: list[tuple[str, int]] = []

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        if request.text == self.too_long:
            self.tries.append((request.text, self.in_speak + 1))
            raise OutOfMemory("The device ran out of memory on this line; make it shorter.")
        spoken = super().speak(request)
        yield next(spoken)
        self.tries.append((request.text, self.in_speak))
        if self.in_speak > self.room_for:
            raise OutOfMemory("The device ran out of memory on this line; make it shorter.")
        yield from spoken


def test_a_line_without_memory_is_tried_again_alone(open_studio: OpenStudio) -> None:
    backend = Cramped(room_for=2)
    studio = open_studio(backend, max_concurrency=3)
    job = studio.render(dialog_of(9))
    until(job, SegmentState.STARTED, 3)
    backend.let_through(50)
    finish(job)
    assert states(job) == ["saved"] * 9
    again = [text for text, _ in backend.tries]
    for text in {text for text in again if again.count(text) > 1}:
        assert again.count(text) == 2
        assert [others for tried, others in backend.tries if tried == text][-1] == 1
    assert studio.engine.renderer.in_flight == studio.engine.renderer.queued == 0


def test_a_line_that_fits_never_is_marked_after_two_tries(open_studio: OpenStudio) -> None:
    backend = Cramped(room_for=3, too_long="This is line one.")
    backend.let_through(50)
    job = open_studio(backend, max_concurrency=3).render(dialog_of(6))
    finish(job)
    assert states(job) == ["saved", "failed", "saved", "saved", "saved", "saved"]
    assert "ran out of memory" in job.list_failures()[0].message
    assert [others for text, others in backend.tries if text == "This is line one."][1:] == [1]


def test_who_listens_hears_a_line_once_though_it_was_tried_twice(open_studio: OpenStudio) -> None:
    class Once(DraftBackend):
        tries = 0

        def speak(self, request: SpeechRequest) -> Iterator[Samples]:
            self.tries += 1
            for number, chunk in enumerate(super().speak(request)):
                if self.tries == 1 and number == 1:
                    raise OutOfMemory("The device ran out of memory on this line.")
                yield chunk

    dialog = Dialog((Speech("Ida", "This line is long enough to come in several chunks."),))
    job = open_studio(Once()).render(dialog)
    live = job.records[0].live
    heard = sum(len(chunk) for chunk in live.follow())
    finish(job)
    assert heard == job.records[0].samples


def test_cancel_takes_what_was_set_aside(open_studio: OpenStudio) -> None:
    backend = Cramped(room_for=9, too_long="This is line zero.")
    studio = open_studio(backend, max_concurrency=2)
    job = studio.render(dialog_of(3))
    queued_at_first = 3
    assert until(job, SegmentState.QUEUED, queued_at_first + 1)[-1] == 0
    assert studio.engine.renderer.queued == 2, "while line 1 is at the gate nothing else starts"
    studio.engine.cancel(job)
    finish(job)
    assert states(job) == ["cancelled"] * 3
    assert len(backend.tries) == 1
    assert studio.engine.renderer.queued == 0


class SlowToLoad(DraftBackend):
    """A load that reports until it is stopped or the test lets it end."""

    def __init__(self) -> None:
        super().__init__()
        self.loading = threading.Event()
        self.may_end = threading.Event()

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        while True:
            progress(LoadProgress("Downloading model.safetensors: 1 of 4 MB", 0.25))
            self.loading.set()
            if self.may_end.wait(timeout=0.01):
                break
        super().load(progress)


def test_a_cancelled_job_waits_for_no_load_and_stops_the_one_it_began(
    open_studio: OpenStudio,
) -> None:
    backend = SlowToLoad()
    studio = open_studio(backend)
    job = studio.render(dialog_of(5))
    assert backend.loading.wait(timeout=60)
    studio.engine.cancel(job)
    finish(job)
    assert states(job) == ["cancelled"] * 5
    wait_until_idle(studio)
    backend.may_end.set()
    again = studio.render(dialog_of(2))
    finish(again)
    assert states(again) == ["saved"] * 2
    assert studio.engine.models.get_status("draft").counters.cancelled_loads == 1


def test_a_cancelled_job_leaves_the_load_to_the_others(open_studio: OpenStudio) -> None:
    backend = SlowToLoad()
    studio = open_studio(backend)
    first, second = studio.render(dialog_of(2)), studio.render(dialog_of(2))
    assert backend.loading.wait(timeout=60)
    until(second, SegmentState.STARTED, 1)
    studio.engine.cancel(first)
    finish(first)
    backend.may_end.set()
    finish(second)
    assert states(second) == ["saved"] * 2
    assert studio.engine.models.get_status("draft").counters.cancelled_loads == 0


def test_a_stopped_load_cancels_the_jobs_that_wait_for_it(open_studio: OpenStudio) -> None:
    backend = SlowToLoad()
    studio = open_studio(backend, max_concurrency=2)
    jobs = [studio.render(dialog_of(5)) for _ in range(2)]
    assert backend.loading.wait(timeout=60)
    assert studio.engine.cancel_load(studio.backend_name)
    finish(jobs[0])
    assert jobs[0].state is JobState.CANCELLED
    assert states(jobs[0]) == ["cancelled"] * 5
    backend.may_end.set()
    finish(jobs[1])
    assert states(jobs[1]) == ["saved"] * 5


def test_without_a_model_everything_fails_at_once_after_one_try(open_studio: OpenStudio) -> None:
    class Unloadable(DraftBackend):
        tries = 0

        def load(self, progress: Callable[[LoadProgress], None]) -> None:
            self.tries += 1
            raise ModelUnavailable("The weights aren't here; download them.")

    backend = Unloadable()
    job = open_studio(backend).render(dialog_of(50))
    finish(job)
    assert backend.tries == 1
    assert {failure.message for failure in job.list_failures()} == {
        "The weights aren't here; download them."
    }
    assert len(job.list_failures()) == 50


def test_a_full_disk_fails_the_line_that_met_it(open_studio: OpenStudio) -> None:
    def save(path: Path, clip: Clip) -> None:
        if path.name == "00002.wav":
            raise StorageFailed("The disk is full; free some space.")
        write_wav(path, clip)

    job = open_studio(save=save).render(dialog_of(5))
    finish(job)
    assert states(job) == ["saved", "saved", "failed", "saved", "saved"]


def test_cancel_stops_what_is_in_flight_and_frees_its_slot(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    studio = open_studio(backend, max_concurrency=2)
    job = studio.render(dialog_of(6))
    until(job, SegmentState.STARTED, 2)
    studio.engine.cancel(job)
    assert states(job)[2:] == ["cancelled"] * 4
    events = finish(job)
    assert events[-1].state == JobState.CANCELLED
    assert states(job) == ["cancelled"] * 6
    assert backend.in_speak == 0
    backend.let_through(3)
    after = studio.render(dialog_of(3))
    finish(after)
    assert states(after) == ["saved"] * 3


def test_cancel_after_the_end_changes_nothing(studio: Studio) -> None:
    job = studio.render(dialog_of(2))
    finish(job)
    studio.engine.cancel(job)
    assert job.state is JobState.DONE
    assert states(job) == ["saved"] * 2


def test_what_was_saved_before_a_cancel_is_kept(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    studio = open_studio(backend, max_concurrency=1)
    job = studio.render(dialog_of(5))
    backend.let_through(2)
    until(job, SegmentState.SAVED, 2)
    studio.engine.cancel(job)
    finish(job)
    assert states(job) == ["saved", "saved", "cancelled", "cancelled", "cancelled"]
    assert len(build_scene(job).timeline.entries) == 2


def test_the_play_heads_line_goes_first(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    studio = open_studio(backend, max_concurrency=1)
    job = studio.render(dialog_of(8))
    until(job, SegmentState.STARTED, 1)
    studio.engine.focus(job, 5)
    backend.let_through(8)
    assert until(job, SegmentState.STARTED, 8) == [0, 5, 6, 7, 1, 2, 3, 4]


def test_a_job_somebody_listens_to_goes_before_one_that_came_earlier(
    open_studio: OpenStudio,
) -> None:
    backend = GatedDraft()
    studio = open_studio(backend, max_concurrency=1)
    waiting = studio.render(dialog_of(3))
    until(waiting, SegmentState.STARTED, 1)
    heard = studio.render(dialog_of(3), RenderOptions(listen=True))
    backend.let_through(1 + 3)
    finish(heard)
    assert states(waiting) == ["saved", "started", "queued"] or states(waiting)[2] == "queued"
    backend.let_through(2)
    finish(waiting)


class Slotted(GatedDraft):
    """A voice that speaks many lines together, more of them once it is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = 2
        self.asked: dict[str, SpeechRequest] = {}

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, slots=self.slots, queues_requests=True)

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        super().load(progress)
        self.slots = 3

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        self.asked[request.text] = request
        return super().speak(request)


def test_a_batched_backend_takes_what_its_slots_hold_and_as_many_again(
    open_studio: OpenStudio,
) -> None:
    backend = Slotted()
    studio = open_studio(backend, max_concurrency=1)
    job = studio.render(dialog_of(12))
    until(job, SegmentState.STARTED, 6)
    assert studio.engine.renderer.in_flight == 6
    backend.let_through(12)
    finish(job)
    assert job.summarize().max_in_flight == 6


def test_lines_that_a_backend_queues_are_not_silent_while_others_end(
    open_studio: OpenStudio,
) -> None:
    backend = Slotted()
    studio = open_studio(backend)
    renderer = studio.engine.renderer
    job = studio.render(dialog_of(6))
    until(job, SegmentState.STARTED, 6)
    while renderer.measure_silence_s("draft") < 0.1:
        assert not job.events.closed
    opened_s = time.monotonic()
    backend.let_through(1)
    until(job, SegmentState.SAVED, 1)
    assert renderer.measure_silence_s("draft") <= time.monotonic() - opened_s
    backend.let_through(5)
    finish(job)


def test_the_line_at_the_play_head_goes_past_full_slots_and_no_other(
    open_studio: OpenStudio,
) -> None:
    backend = Slotted()
    studio = open_studio(backend)
    # All are of one length: the longest would begin first.
    job = studio.render(Dialog(tuple(Speech("Ida", f"Line {name}.") for name in "ghijklmnop")))
    until(job, SegmentState.STARTED, 6)
    studio.engine.focus(job, 7)
    assert until(job, SegmentState.STARTED, 7)[-1] == 7
    studio.engine.focus(job, 3)
    studio.engine.focus(job, 9)
    assert studio.engine.renderer.in_flight == 7, "one at a time"
    backend.let_through(1)
    assert until(job, SegmentState.STARTED, 8)[-1] == 9
    backend.let_through(9)
    finish(job)
    assert job.summarize().max_in_flight == 7


class Piecewise(GatedDraft):
    """Speaks lines side by side, each in pieces of which the test lets each go."""

    def __init__(self) -> None:
        super().__init__()
        self.let = {text: threading.Semaphore(0) for text in "abcd"}
        self.asked: list[str] = []
        self.spoken: list[str] = []

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, slots=2)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        name = request.text[-2]
        for _ in range(3):
            self.asked.append(name)
            while not self.let[name].acquire(timeout=0.02):
                if request.cancelled():
                    raise Cancelled
            self.spoken.append(name)
            yield np.sin(np.arange(4_800, dtype=np.float32))  # silence would be cut


def test_until_the_line_at_the_play_head_sounds_no_other_takes_its_cores(
    open_studio: OpenStudio,
) -> None:
    backend = Piecewise()
    studio = open_studio(backend)
    job = studio.render(Dialog(tuple(Speech("Ida", f"Line {name}.") for name in "abcd")))
    until(job, SegmentState.STARTED, 2)
    for name in "ab":
        backend.let[name].release()
    while sorted(backend.asked) != ["a", "a", "b", "b"]:  # the first pieces have been passed on
        time.sleep(0.01)
    studio.engine.focus(job, 3)
    assert until(job, SegmentState.STARTED, 3)[-1] == 3
    for name in "ab":
        backend.let[name].release(2)
    while backend.spoken.count("a") + backend.spoken.count("b") < 4:
        time.sleep(0.01)
    time.sleep(0.2)  # in which they would go on, if they did
    assert sorted(backend.spoken) == ["a", "a", "b", "b"]
    for name in "cd":
        backend.let[name].release(3)
    finish(job)
    assert states(job) == ["saved"] * 4
    assert backend.spoken[4] == "d"


def test_a_scene_that_is_played_begins_with_its_first_line_alone(open_studio: OpenStudio) -> None:
    backend = Piecewise()
    dialog = Dialog(tuple(Speech("Ida", f"Line {name}.") for name in "abcd"))
    job = open_studio(backend).render(dialog, RenderOptions(listen=True))
    until(job, SegmentState.STARTED, 1)
    for name in "abcd":
        backend.let[name].release(3)
    finish(job)
    first_s = job.records[0].first_chunk_s or math.inf
    assert min(one.at_s[SegmentState.STARTED] for one in job.records[1:]) >= first_s


def test_the_bound_of_a_backend_without_slots_holds_for_the_play_head_too(
    open_studio: OpenStudio,
) -> None:
    backend = GatedDraft()
    studio = open_studio(backend, max_concurrency=2)
    job = studio.render(dialog_of(6))
    until(job, SegmentState.STARTED, 2)
    studio.engine.focus(job, 5)
    assert studio.engine.renderer.in_flight == 2
    backend.let_through(6)
    finish(job)
    assert job.summarize().max_in_flight == 2


def test_a_batched_backend_gets_the_longest_lines_first_unless_somebody_listens(
    open_studio: OpenStudio,
) -> None:
    texts = ["Yes.", "A line that goes on and on.", "No.", "Longer than most."]
    dialog = Dialog(tuple(Speech("Ida", text) for text in texts))
    for listen, order in ((False, [1, 3, 0, 2]), (True, [0, 1, 2, 3])):
        backend = Slotted()
        studio = open_studio(backend)
        job = studio.render(dialog, RenderOptions(listen=listen))
        assert until(job, SegmentState.STARTED, 4) == order
        backend.let_through(4)
        finish(job)


def test_a_request_knows_how_far_ahead_of_the_play_head_it_is(open_studio: OpenStudio) -> None:
    backend = Slotted()
    studio = open_studio(backend)
    other = studio.render(dialog_of(1))
    until(other, SegmentState.STARTED, 1)
    dialog = Dialog(tuple(Speech("Ida", f"Line {number}.") for number in "abcd"))
    job = studio.render(dialog, RenderOptions(listen=True))
    until(job, SegmentState.STARTED, 4)
    studio.engine.focus(job, 2)
    backend.let_through(5)
    finish(job)
    finish(other)
    ahead = {text: request.priority().ahead for text, request in backend.asked.items()}
    assert {ahead.pop(f"Line {number}.") for number in "ab"} == {math.inf}
    assert (ahead.pop("Line c."), ahead.pop("Line d.")) == (0, 1)
    assert list(ahead.values()) == [math.inf]


def test_audio_of_a_line_is_there_before_the_line_is_done(open_studio: OpenStudio) -> None:
    backend = GatedDraft(half_first=True)
    job = open_studio(backend, max_concurrency=1).render(dialog_of(1))
    until(job, SegmentState.STARTED, 1)
    live = job.records[0].live
    chunks: Iterator[np.ndarray] = live.follow()
    first = next(chunks)
    assert 0 < len(first) < 9_600
    assert job.records[0].state is SegmentState.STARTED
    backend.let_through(1)
    rest = list(chunks)
    finish(job)
    joined = np.concatenate([first, *rest])
    assert len(joined) == job.records[0].samples
    path = job.records[0].path
    assert path is not None
    saved, _ = soundfile.read(path, dtype="int16")
    assert np.abs(saved / 32768 - joined).max() <= 1 / 32768
    assert job.records[0].live.read() == [], "chunks are freed once the file is there"


def test_existing_audio_is_laid_in_at_the_studios_rate(studio: Studio, tmp_path: Path) -> None:
    tone = np.sin(np.arange(44_100) * 2 * np.pi * 440 / 44_100).astype(np.float32) / 2
    write_wav(tmp_path / "tone.wav", Clip(tone, 44_100))
    dialog = Dialog((Speech("Ida", "Listen."), Audio("tone.wav"), Audio("gone.wav")))
    job = studio.render(dialog, RenderOptions(audio_root=tmp_path))
    finish(job)
    assert states(job) == ["saved", "saved", "failed"]
    assert job.records[1].samples == pytest.approx(STUDIO_RATE_HZ, abs=1)


def test_audio_lines_need_a_folder_they_may_come_from(studio: Studio) -> None:
    job = studio.render(Dialog((Audio("/etc/passwd"), Speech("Ida", "Hello."))))
    finish(job)
    assert states(job) == ["failed", "saved"]


def test_a_voice_is_conditioned_once(open_studio: OpenStudio) -> None:
    class Counting(DraftBackend):
        conditioned = 0

        def condition(self, voice):
            self.conditioned += 1
            return super().condition(voice)

    backend = Counting()
    studio = open_studio(backend, max_concurrency=8)
    for _ in range(2):
        finish(studio.render(dialog_of(12, speakers=("Ida", "Bruno"))))
    assert backend.conditioned == 2


def test_a_job_of_nothing_but_silence_ends_at_once(studio: Studio) -> None:
    job = studio.render(Dialog((Silence(1.0), Silence(0.5))))
    events: list[JobEvent] = finish(job)
    assert events[-1].state == JobState.DONE
    assert build_scene(job).timeline.duration_s == 1.5
