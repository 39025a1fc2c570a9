"""The engine's threads around a core whose frames are known: delivery, cancels, faults, memory."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from fake_runner import FOREVER, PaperCore, codes_of, paper_task
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen3_speakers import loaded_package, use_one_core

from studio.audio.clip import Samples
from studio.backends import device
from studio.backends.base import Priority
from studio.backends.batching.batch_engine import BatchEngine
from studio.backends.batching.device_timer import DeviceTimer
from studio.backends.batching.sequence import (
    SequenceEnd,
    TtsSequence,
    stream_chunks,
)
from studio.backends.batching.slot_scheduler import SlotScheduler
from studio.backends.qwen3.batched_codec import BatchedCodec, CodecInput, Qwen3CodecWorker
from studio.backends.qwen3.prompt import Qwen3Voice
from studio.backends.qwen3.talker_slots import TalkerRequest
from studio.errors import (
    Cancelled,
    ModelUnavailable,
    OutOfMemory,
    ReadingChanged,
    SpeechFailed,
    StudioError,
)

pytestmark = pytest.mark.models

SAMPLES_PER_FRAME = 1_920
WITHIN = 1e-4
PATIENCE_S = 120


def decoder():
    use_one_core()
    return loaded_package().model.speech_tokenizer.model.decoder


class Rig:
    """An engine on a paper core."""

    def __init__(
        self,
        slots: int = 8,
        *,
        continuous: bool = True,
        late: bool = True,
        max_wait_s: float = 0.01,
    ) -> None:
        self.core = PaperCore(slots, late=late)
        self.scheduler: SlotScheduler[TtsSequence] = SlotScheduler(
            slots, continuous=continuous, max_wait_s=max_wait_s
        )
        self.engine = BatchEngine(
            self.core, Qwen3CodecWorker(decoder(), title="Paper"), self.scheduler, title="Paper"
        )

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def speak(self, task: TalkerRequest) -> Samples:
        given = list(stream_chunks(self.engine.submit, task))
        return np.concatenate(given) if given else np.zeros(0, np.float32)


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig() as rig:
        yield rig


def expected(seed: int, frames: int, sample: torch.Tensor | None = None) -> Samples:
    return BatchedCodec(decoder()).decode([CodecInput(codes_of(seed, frames), sample)])[0]


def assert_same(samples: Samples, wanted: Samples) -> None:
    assert samples.shape == wanted.shape
    assert not len(wanted) or np.abs(samples - wanted).max() < WITHIN


class Gate:
    """Holds the engine before a step until it is opened, and tells when it has come there."""

    def __init__(self, core: PaperCore) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        core.before_step = self._wait

    def _wait(self, _bucket: int) -> None:
        self.reached.set()
        assert self.opened.wait(PATIENCE_S)


def test_a_line_is_spoken_whole(rig):
    assert_same(rig.speak(paper_task(1, 25)), expected(1, 25))


def test_the_engine_and_the_codec_measure_the_devices_work():
    class Event:
        def record(self) -> None:
            self.at_s = time.perf_counter()

        def query(self) -> bool:
            return True

        def elapsed_time(self, later: Event) -> float:
            return 1000 * (later.at_s - self.at_s)

    codec = Qwen3CodecWorker(decoder(), title="Paper")
    codec.timer = DeviceTimer(Event)
    scheduler: SlotScheduler[TtsSequence] = SlotScheduler(2, max_wait_s=0.01)
    with closing(BatchEngine(PaperCore(2), codec, scheduler, title="Paper")) as engine:
        assert engine.health().busy_s == 0.0
        began_s = time.perf_counter()
        list(stream_chunks(engine.submit, paper_task(3, 9)))
        assert 0 < engine.health().busy_s <= time.perf_counter() - began_s


def test_a_lines_sample_is_heard_and_not_spoken(rig):
    sample = codes_of(99, 30)
    task = paper_task(1, 12, voice=Qwen3Voice(ref_codes=sample))
    heard = expected(1, 12, sample)
    assert_same(rig.speak(task), heard)
    assert np.abs(heard - expected(1, 12)).max() > 100 * WITHIN


def test_a_line_that_is_listened_to_begins_with_one_frame(rig):
    task = paper_task(
        1, 40, priority=lambda: Priority(0), voice=Qwen3Voice(ref_codes=codes_of(9, 20))
    )
    given = list(stream_chunks(rig.engine.submit, task))
    assert len(given[0]) == SAMPLES_PER_FRAME
    assert len(given) > 4
    assert_same(np.concatenate(given), expected(1, 40, codes_of(9, 20)))


def test_the_play_head_may_come_to_a_line_in_mid_generation(rig):
    asked = iter(range(FOREVER))
    task = paper_task(1, 60, priority=lambda: Priority(0 if next(asked) > 30 else 5))
    given = list(stream_chunks(rig.engine.submit, task))
    assert len(given[0]) > SAMPLES_PER_FRAME
    assert len(given) > 1
    assert_same(np.concatenate(given), expected(1, 60))


def test_a_line_that_never_stops_is_cut_and_marked_and_what_was_made_is_given(rig):
    given = []
    with pytest.raises(SpeechFailed, match="did not stop"):
        given.extend(stream_chunks(rig.engine.submit, paper_task(1, FOREVER, max_frames=10)))
    assert_same(np.concatenate(given), expected(1, 10))


def test_an_empty_line_gives_nothing(rig):
    assert len(rig.speak(paper_task(1, 0))) == 0


@pytest.mark.parametrize("continuous", [True, False])
def test_lines_in_flight_never_cross(continuous):
    with Rig(4, continuous=continuous) as rig, ThreadPoolExecutor(12) as pool:
        lengths = [(seed, 3 + seed * 7 % 20) for seed in range(24)]
        spoken = list(pool.map(lambda one: rig.speak(paper_task(*one)), lengths))
    for samples, (seed, frames) in zip(spoken, lengths, strict=True):
        assert_same(samples, expected(seed, frames))


def test_a_slot_is_refilled_while_others_run():
    with Rig(2) as rig:
        gate = Gate(rig.core)
        tasks = [paper_task(1, 300), paper_task(2, 10), paper_task(3, 10)]
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()

        def line_of(task: TalkerRequest) -> TtsSequence:
            return TtsSequence(
                task, lambda one: ended.put(task.seed) if isinstance(one, SequenceEnd) else None
            )

        for task in tasks:
            rig.engine.submit(line_of(task))
        gate.opened.set()
        assert [ended.get(timeout=PATIENCE_S) for _ in tasks] == [2, 3, 1]


def test_a_cancelled_line_frees_its_slot_within_one_frame():
    with Rig(2, max_wait_s=PATIENCE_S) as rig, ThreadPoolExecutor(2) as pool:
        stopped = threading.Event()
        taken: list[int] = []

        def before_step(_bucket: int) -> None:
            taken.append(len(rig.core.taken))
            if len(taken) == 20:
                stopped.set()

        rig.core.before_step = before_step
        doomed = pool.submit(rig.speak, paper_task(1, FOREVER, cancelled=stopped.is_set))
        survivor = pool.submit(rig.speak, paper_task(2, 40))
        with pytest.raises(Cancelled):
            doomed.result(PATIENCE_S)
        assert_same(survivor.result(PATIENCE_S), expected(2, 40))
        assert taken[:20] == [2] * 20
        assert set(taken[20:]) == {1}


def test_closing_the_iterator_frees_the_slot(rig):
    spoken = stream_chunks(rig.engine.submit, paper_task(1, FOREVER, priority=lambda: Priority(0)))
    next(spoken)
    spoken.close()
    assert_same(rig.speak(paper_task(2, 5)), expected(2, 5))
    assert rig.core.taken == set()


def test_a_line_cancelled_while_it_waits_never_runs(rig):
    with pytest.raises(Cancelled):
        rig.speak(paper_task(1, 5, cancelled=lambda: True))
    assert rig.core.steps == []


def test_an_error_in_a_step_fails_the_lines_in_flight_and_the_engine_goes_on(rig):
    failing = iter([False] * 10 + [True])

    def before_step(_bucket: int) -> None:
        if next(failing, False):
            raise RuntimeError("the device said no")

    rig.core.before_step = before_step
    with pytest.raises(SpeechFailed, match="the device said no"):
        rig.speak(paper_task(1, 50))
    assert rig.core.taken == set()
    assert_same(rig.speak(paper_task(2, 8)), expected(2, 8))
    assert rig.engine.health().faults == 1
    assert rig.engine.health().alive


def test_after_repeated_faults_lines_run_one_at_a_time():
    # Four begin together, however slowly they come: one that was alone would end the row of faults.
    with Rig(4, max_wait_s=PATIENCE_S) as rig:

        def before_step(bucket: int) -> None:
            if bucket > 1:
                raise RuntimeError("only alone")

        rig.core.before_step = before_step
        with ThreadPoolExecutor(32) as pool:
            spoken = [pool.submit(rig.speak, paper_task(seed, 10)) for seed in range(32)]
            failures = [one.exception(PATIENCE_S) for one in spoken]
        survived = [seed for seed, failure in enumerate(failures) if failure is None]
        assert len(failures) - len(survived) == 3 * 4
        for seed in survived:
            assert_same(spoken[seed].result(), expected(seed, 10))
        assert rig.scheduler.slots == 1
        assert all(isinstance(failure, SpeechFailed) for failure in failures if failure)


def test_out_of_memory_at_a_bucket_means_the_next_smaller_one():
    begun = threading.Event()

    def priority() -> Priority:
        """Nobody listens until all lines are there, so that they begin together."""
        return Priority(0) if begun.is_set() else Priority()

    with Rig(8, max_wait_s=PATIENCE_S) as rig:

        def before_step(bucket: int) -> None:
            begun.set()
            if bucket > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")

        rig.core.before_step = before_step
        with ThreadPoolExecutor(8) as pool:
            tasks = [paper_task(seed, 20, priority=priority) for seed in range(8)]
            spoken = list(pool.map(rig.speak, tasks))
        for seed, samples in enumerate(spoken):
            assert_same(samples, expected(seed, 20))  # and nothing is heard twice
        assert rig.scheduler.slots == 2


def played_until_memory_fails(
    rig: Rig, codes_again: Callable[[int, int], torch.Tensor]
) -> tuple[list[Samples], StudioError | None]:
    """What a listener gets of a line that begins again in a smaller bucket after ten frames."""
    heard = threading.Event()

    def give(one: Samples | SequenceEnd) -> None:
        asked.put(one)
        heard.set()

    def before_step(bucket: int) -> None:
        if bucket > 1 and len(rig.core.steps) == 10:
            assert heard.wait(PATIENCE_S), "it is played before it begins again"
            rig.core.codes_of = codes_again
            raise torch.OutOfMemoryError("CUDA out of memory")

    rig.core.before_step = before_step
    asked: queue.SimpleQueue[Samples | SequenceEnd] = queue.SimpleQueue()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(rig.speak, paper_task(2, 60))
        task = paper_task(1, 40, priority=lambda: Priority(1))
        rig.engine.submit(TtsSequence(task, give))
        given: list[Samples] = []
        while not isinstance(one := asked.get(timeout=PATIENCE_S), SequenceEnd):
            given.append(one)
        other.exception(PATIENCE_S)
    return given, one.error


def test_a_line_that_is_played_goes_on_where_it_was_when_it_begins_again_as_the_same():
    with Rig(2, max_wait_s=PATIENCE_S) as rig:
        given, error = played_until_memory_fails(rig, codes_of)
        assert rig.scheduler.slots == 1
    assert error is None
    assert len(given[0]) == SAMPLES_PER_FRAME, "it was played from its first frame"
    assert_same(np.concatenate(given), expected(1, 40))


def test_a_line_that_is_played_is_not_continued_from_another_reading():
    with Rig(2, max_wait_s=PATIENCE_S) as rig:
        given, error = played_until_memory_fails(rig, lambda seed, n: codes_of(seed + 100, n))
    assert isinstance(error, ReadingChanged)
    joined = np.concatenate(given)
    assert 0 < len(joined) < 40 * SAMPLES_PER_FRAME
    assert_same(joined, expected(1, 40)[: len(joined)])


def test_a_line_that_was_played_gives_its_slot_to_none():
    listens = threading.Event()
    listens.set()
    with Rig(1) as rig:
        admitted: list[int] = []
        rig.core.before_admit = lambda lines: admitted.extend(line.seed for line in lines)
        first: queue.SimpleQueue[Samples | SequenceEnd] = queue.SimpleQueue()
        task = paper_task(1, 300, priority=lambda: Priority(0) if listens.is_set() else Priority())
        rig.engine.submit(TtsSequence(task, first.put))
        given = [first.get(timeout=PATIENCE_S)]
        listens.clear()
        assert_same(rig.speak(paper_task(2, 9, priority=lambda: Priority(0))), expected(2, 9))
        while not isinstance(one := first.get(timeout=PATIENCE_S), SequenceEnd):
            given.append(one)
    assert admitted == [1, 2]
    assert_same(np.concatenate(given), expected(1, 300))


@pytest.mark.parametrize("fault", [RuntimeError("no"), torch.OutOfMemoryError("CUDA: no memory")])
def test_the_width_comes_back_after_lines_that_ended(fault):
    with Rig(4) as rig:

        def before_step(bucket: int) -> None:
            if bucket > 1:
                raise fault

        rig.core.before_step = before_step
        with ThreadPoolExecutor(24) as pool:
            spoken = [pool.submit(rig.speak, paper_task(seed, 10)) for seed in range(24)]
            for one in spoken:
                one.exception(PATIENCE_S)
        assert (rig.engine.health().slots, rig.engine.health().max_slots) == (1, 4)
        rig.core.before_step = lambda _bucket: None
        for seed in range(128):
            rig.speak(paper_task(seed, 1))
        assert rig.engine.health().slots == 4


def test_a_width_that_is_kept_makes_the_next_trials_as_soon_as_the_first():
    with Rig(8) as rig:
        full = threading.Event()
        full.set()

        def before_step(_bucket: int) -> None:
            if full.is_set() and rig.scheduler.slots > 1:
                raise torch.OutOfMemoryError("CUDA out of memory")

        rig.core.before_step = before_step
        for seed in range(96):  # after 32 and 64 lines a width of 2 was tried in vain
            rig.speak(paper_task(seed, 1))
        rig.speak(paper_task(96, 1))
        full.clear()
        for seed in range(128 + 32 + 32):
            rig.speak(paper_task(seed, 1))
        assert rig.engine.health().slots == 8


def test_a_width_on_trial_that_fails_gives_way_to_the_one_before():
    with Rig(4) as rig:

        def before_step(_bucket: int) -> None:
            if rig.scheduler.slots > 2:
                raise RuntimeError("no more than two")

        rig.core.before_step = before_step
        for seed in range(3):
            assert rig.engine.health().slots == 4, "a fault or two say nothing of the width"
            with pytest.raises(SpeechFailed, match="no more than two"):
                rig.speak(paper_task(seed, 1))
        for seed in range(64):
            rig.speak(paper_task(seed, 1))
        with pytest.raises(SpeechFailed, match="no more than two"):
            rig.speak(paper_task(64, 1))
        rig.speak(paper_task(65, 1))
        assert rig.engine.health().slots == 2


@pytest.mark.parametrize("thread", ["engine", "codec"])
def test_what_says_whether_a_line_is_cancelled_may_fail_for_that_line_alone(rig, thread):
    def cancelled() -> bool:
        if threading.current_thread().name == thread:
            raise LookupError("who asks?")
        return False

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(rig.speak, paper_task(1, 40))
        with pytest.raises(SpeechFailed, match="LookupError: who asks"):
            rig.speak(paper_task(2, 40, cancelled=cancelled))
        assert_same(other.result(PATIENCE_S), expected(1, 40))
    assert_same(rig.speak(paper_task(3, 5)), expected(3, 5))
    assert rig.engine.health().alive


def test_a_device_that_stays_short_of_memory_is_asked_ever_less_often():
    with Rig(2) as rig:
        asked = []

        def before_step(bucket: int) -> None:
            if rig.scheduler.slots > 1:
                asked.append(bucket)
                raise torch.OutOfMemoryError("CUDA out of memory")

        rig.core.before_step = before_step
        for seed in range(224):
            rig.speak(paper_task(seed, 1))
        assert 2 <= len(asked) <= 4


def test_no_memory_for_a_single_line_is_said(rig):
    def before_step(_bucket: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    rig.core.before_step = before_step
    with pytest.raises(OutOfMemory):
        rig.speak(paper_task(1, 5))


def test_what_to_do_about_too_little_memory_is_what_helps_lines_together():
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with Rig(1) as rig:
        rig.core.before_step = full
        with pytest.raises(OutOfMemory, match="TTS_BATCH_SIZE or TTS_BATCH_POSITIONS"):
            rig.speak(paper_task(1, 5))
        rig.core.before_admit = full
        with pytest.raises(OutOfMemory, match="TTS_BATCH_SIZE or TTS_BATCH_POSITIONS"):
            rig.speak(paper_task(1, 5))


def test_an_error_that_the_card_keeps_ends_the_engine_and_names_the_remedy(monkeypatch):
    monkeypatch.setattr(device, "_lost", threading.Event())
    monkeypatch.setattr(device, "_answers", lambda: False)
    with Rig(2) as rig:

        def fail(_bucket: int) -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        rig.core.before_step = fail
        for _ in range(2):
            with pytest.raises(ModelUnavailable, match="Restart the studio"):
                rig.speak(paper_task(1, 5))
        wait_for_the_end(rig.engine)  # the line is told before the thread has ended


def wait_for_the_end(engine: BatchEngine) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while engine.health().alive:
        assert time.monotonic() < until_s
        time.sleep(0.005)


def test_a_line_at_the_play_head_waits_for_no_slot_and_who_gave_way_is_whole_in_the_end():
    admitted: list[int] = []
    with Rig(1) as rig, ThreadPoolExecutor(2) as pool:
        gate = Gate(rig.core)
        rig.core.before_admit = lambda lines: admitted.extend(line.seed for line in lines)
        first = pool.submit(rig.speak, paper_task(1, 40))
        assert gate.reached.wait(PATIENCE_S)
        asked: queue.SimpleQueue[Samples | SequenceEnd] = queue.SimpleQueue()
        rig.engine.submit(TtsSequence(paper_task(2, 9, priority=lambda: Priority(0)), asked.put))
        gate.opened.set()
        heard = []
        while not isinstance(given := asked.get(timeout=PATIENCE_S), SequenceEnd):
            heard.append(given)
        assert_same(np.concatenate(heard), expected(2, 9))
        assert_same(first.result(PATIENCE_S), expected(1, 40))
    assert admitted == [1, 2, 1]


def test_who_gives_way_is_found_by_one_look_at_all_slots(monkeypatch):
    looks: list[int] = []  # by thread: the codec's own looks too, at any time
    found: list[int] = []
    find = SlotScheduler.find_preemptible

    def noted_find(scheduler, frames_of):
        looker = threading.get_ident()
        before = looks.count(looker)
        slot = find(scheduler, frames_of)
        found.extend([] if slot is None else [looks.count(looker) - before])
        return slot

    monkeypatch.setattr(SlotScheduler, "find_preemptible", noted_find)
    asked, full, opened = threading.Event(), threading.Event(), threading.Event()
    admitted: list[int] = []

    def hold_once_full(_bucket: int) -> None:
        assert asked.wait(PATIENCE_S)  # or one might end before the last comes
        if len(admitted) >= 8:
            full.set()
            assert opened.wait(PATIENCE_S)

    with Rig(8) as rig:
        progress = rig.core.progress

        def noted_progress(**how):
            looks.append(threading.get_ident())
            return progress(**how)

        rig.core.progress = noted_progress
        rig.core.before_admit = lambda lines: admitted.extend(line.seed for line in lines)
        rig.core.before_step = hold_once_full
        given: list[queue.SimpleQueue[Samples | SequenceEnd]] = []

        def ask(task: TalkerRequest) -> None:
            given.append(queue.SimpleQueue())
            rig.engine.submit(TtsSequence(task, given[-1].put))

        for seed in range(8):
            ask(paper_task(seed, 400))
        asked.set()
        assert full.wait(PATIENCE_S)
        ask(paper_task(9, 9, priority=lambda: Priority(0)))
        opened.set()
        for one in given:
            while not isinstance(one.get(timeout=PATIENCE_S), SequenceEnd):
                pass
    assert found == [1]


def test_a_prompt_that_does_not_fit_fails_alone(rig):
    def before_admit(lines) -> None:
        if any(line.seed == 2 for line in lines):
            raise SpeechFailed("The prompt leaves no room.")

    rig.core.before_admit = before_admit
    with ThreadPoolExecutor(3) as pool:
        spoken = [pool.submit(rig.speak, paper_task(seed, 6)) for seed in (1, 2, 3)]
        with pytest.raises(SpeechFailed, match="no room"):
            spoken[1].result(PATIENCE_S)
        for seed in (1, 3):
            assert_same(spoken[seed - 1].result(PATIENCE_S), expected(seed, 6))


def test_a_core_that_cannot_be_reset_is_told_and_nobody_waits_for_ever():
    with Rig(2) as rig:

        def fail(*_: object) -> None:
            raise RuntimeError("an illegal memory access")

        rig.core.before_step = fail
        rig.core.reset = fail
        for _ in range(2):
            with pytest.raises(StudioError):
                rig.speak(paper_task(1, 5))
        with pytest.raises(ModelUnavailable, match="load it again"):
            rig.speak(paper_task(1, 5))
        give_up_s = time.monotonic() + PATIENCE_S
        while rig.engine.health().alive and time.monotonic() < give_up_s:
            time.sleep(0.01)  # its thread ends after the last line was told
        assert not rig.engine.health().alive


def test_closing_ends_what_runs(rig):
    gate = Gate(rig.core)
    with ThreadPoolExecutor(1) as pool:
        spoken = pool.submit(rig.speak, paper_task(1, FOREVER))
        assert gate.reached.wait(PATIENCE_S)
        gate.opened.set()
        rig.engine.close()
        with pytest.raises(Cancelled):
            spoken.result(PATIENCE_S)
    assert rig.core.closed


def test_health_tells_of_steps(rig):
    assert rig.engine.health().last_step_age_s is None
    rig.speak(paper_task(1, 5))
    health = rig.engine.health()
    assert health.alive
    assert 0 <= health.last_step_age_s < PATIENCE_S


def test_lines_that_nobody_listens_to_come_whole(rig):
    with ThreadPoolExecutor(6) as pool:
        spoken = [*pool.map(lambda seed: rig.speak(paper_task(seed, 10 + seed)), range(6))]
    for seed, samples in enumerate(spoken):
        assert_same(samples, expected(seed, 10 + seed))


def test_a_line_that_is_closed_frees_its_slot(rig):
    gate = Gate(rig.core)
    feed: queue.SimpleQueue[Samples | SequenceEnd] = queue.SimpleQueue()
    line = TtsSequence(paper_task(1, FOREVER), feed.put)
    rig.engine.submit(line)
    assert gate.reached.wait(PATIENCE_S)
    line.close()
    gate.opened.set()
    end = feed.get(timeout=PATIENCE_S)
    assert isinstance(end, SequenceEnd)
    assert isinstance(end.error, Cancelled)
    assert_same(rig.speak(paper_task(2, 5)), expected(2, 5))
    assert rig.core.taken == set()


ENDINGS = st.sampled_from(["whole", "whole", "whole", "cancelled", "cut", "heard"])


def some_300_lines(*, most_frames: int):
    return given(
        lines=st.lists(st.tuples(st.integers(1, most_frames), ENDINGS), min_size=300, max_size=300),
        late=st.lists(st.booleans(), min_size=300, max_size=300),
        continuous=st.booleans(),
    )


@settings(max_examples=2)
@some_300_lines(most_frames=3)
def test_300_lines_through_8_slots(lines, late, continuous):
    """Random lengths, cancels, late arrivals: each is delivered once, in order and uncrossed."""
    deliver_300(lines, late, continuous=continuous)


@pytest.mark.campaign
@settings(max_examples=20)
@some_300_lines(most_frames=12)
def test_20_times_300_lines_through_8_slots(lines, late, continuous):
    deliver_300(lines, late, continuous=continuous)


def deliver_300(lines, late, *, continuous: bool) -> None:
    given: list[list[Samples | SequenceEnd]] = [[] for _ in lines]
    arrivals = threading.Semaphore(0)
    cancelled = [threading.Event() for _ in lines]

    def deliver(number: int, one: Samples | SequenceEnd) -> None:
        given[number].append(one)
        if isinstance(one, SequenceEnd):
            arrivals.release()

    def line_of(number: int) -> TtsSequence:
        frames, ending = lines[number]
        return TtsSequence(
            paper_task(
                number,
                frames,
                max_frames=max(1, frames // 2) if ending == "cut" else FOREVER,
                cancelled=cancelled[number].is_set,
                priority=lambda: Priority(0) if ending == "heard" else Priority(),
            ),
            lambda one: deliver(number, one),
        )

    with Rig(8, continuous=continuous) as rig:
        begun = [number for number in range(300) if not late[number]]
        for number in begun:
            rig.engine.submit(line_of(number))
        for number in (number for number in range(300) if late[number]):
            if begun:  # each late one comes when one more has ended
                assert arrivals.acquire(timeout=PATIENCE_S)
            begun.append(number)
            rig.engine.submit(line_of(number))
            if lines[number][1] == "cancelled":
                cancelled[number].set()
    check_300(lines, given)


def check_300(lines, given) -> None:
    whole = BatchedCodec(decoder()).decode(
        [CodecInput(codes_of(number, frames)) for number, (frames, _) in enumerate(lines)]
    )
    for number, (frames, ending) in enumerate(lines):
        *pieces, end = given[number]
        assert isinstance(end, SequenceEnd)
        assert not any(isinstance(piece, SequenceEnd) for piece in pieces)
        samples = np.concatenate([np.zeros(0, np.float32), *pieces])
        assert_same(samples, whole[number][: len(samples)])
        if end.error is None:
            assert len(samples) == frames * SAMPLES_PER_FRAME
        elif ending == "cut":
            assert len(samples) in (0, max(1, frames // 2) * SAMPLES_PER_FRAME)
