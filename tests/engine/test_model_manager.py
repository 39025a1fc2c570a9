"""The ModelManager under a fake clock and a fake thread: no sleeps, every interleaving by seed."""

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from studio.backends.base import LoadProgress
from studio.engine.model_manager import EvictionPolicy, MemoryUsage, ModelManager, ModelState
from studio.engine.model_pool import ModelPool
from studio.errors import Cancelled, ModelInUse, ModelUnavailable


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class WatchedBackend:
    """Counts its loads and unloads, and notices any that must not happen."""

    name = "watched"
    title = "Watched"
    revision = "1"

    def __init__(self) -> None:
        self.loads = 0
        self.unloads = 0
        self.resident = False
        self.half_loaded = False
        self.faults: list[Exception] = []
        self.unload_faults: list[Exception] = []

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        assert not self.resident, "loaded twice"
        if self.faults:
            raise self.faults.pop(0)
        self.half_loaded = True
        progress(LoadProgress("half", 0.5))
        self.half_loaded = False
        self.loads += 1
        self.resident = True

    def unload(self) -> None:
        if self.half_loaded:
            self.half_loaded = False
            return
        assert self.resident, "unloaded twice"
        if self.unload_faults:
            raise self.unload_faults.pop(0)
        self.unloads += 1
        self.resident = False


async def in_a_few_steps(work: Callable[[], Any]) -> Any:
    """Stands in for a thread: lets others run first, then does the work."""
    for _ in range(3):
        await asyncio.sleep(0)
    return work()


def measured(backend: Any) -> MemoryUsage:
    """What the process would use: the model's 500 bytes on top of 100."""
    return MemoryUsage(600 if backend.resident else 100, 500 if backend.resident else 0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backend() -> WatchedBackend:
    return WatchedBackend()


@pytest.fixture
def manager(backend: WatchedBackend, clock: Clock) -> ModelManager:
    return ModelManager(backend, measure=measured, clock=clock, run_blocking=in_a_few_steps)


async def test_load_and_unload_are_idempotent(
    manager: ModelManager, backend: WatchedBackend
) -> None:
    for _ in range(2):
        await manager.load()
        await manager.load()
        assert manager.state is ModelState.LOADED
        await manager.unload()
        await manager.unload()
        assert manager.state is ModelState.UNLOADED
    assert (backend.loads, backend.unloads) == (2, 2)


async def test_a_hundred_at_once_make_one_load(
    manager: ModelManager, backend: WatchedBackend
) -> None:
    got = await asyncio.gather(*(manager.get() for _ in range(100)))
    assert backend.loads == 1
    assert all(one is backend for one in got)


async def test_a_lease_refuses_unload_and_expiry(
    manager: ModelManager, backend: WatchedBackend, clock: Clock
) -> None:
    async with manager.using() as leased:
        assert leased is backend
        assert manager.active == 1
        with pytest.raises(ModelInUse, match="cancel the render"):
            await manager.unload()
        clock.now_s += 1e6
        assert not await manager.expire(900)
        assert backend.resident
    assert manager.counters.refused_unloads == 1
    assert not await manager.expire(900), "the end of a lease counts as use"
    clock.now_s += 900
    assert await manager.expire(900)
    assert not backend.resident


async def test_a_lease_taken_during_the_load_is_not_lost_to_expiry(
    manager: ModelManager, clock: Clock
) -> None:
    lease = manager.using()
    entering = asyncio.ensure_future(lease.__aenter__())
    await asyncio.sleep(0)
    assert manager.state is ModelState.LOADING
    clock.now_s += 1e6
    assert not await manager.expire(1)
    await entering
    assert manager.state is ModelState.LOADED
    await lease.__aexit__(None, None, None)


async def test_who_asks_during_an_unload_gets_a_fresh_load(
    manager: ModelManager, backend: WatchedBackend
) -> None:
    await manager.load()
    unloading = asyncio.ensure_future(manager.unload())
    await asyncio.sleep(0)
    assert manager.state is ModelState.UNLOADING
    async with manager.using():
        assert backend.resident
    await unloading
    assert (backend.loads, backend.unloads) == (2, 1)


async def test_a_failed_load_reaches_all_who_wait_and_the_next_try_works(
    manager: ModelManager, backend: WatchedBackend
) -> None:
    backend.faults.append(ModelUnavailable("no weights; download them"))
    tries = await asyncio.gather(*(manager.get() for _ in range(5)), return_exceptions=True)
    assert [str(error) for error in tries] == ["no weights; download them"] * 5
    assert manager.state is ModelState.FAILED
    assert manager.progress is not None
    assert manager.progress.message == "no weights; download them"
    assert manager.active == 0
    assert await manager.get() is backend
    assert manager.counters.failed_loads == 1


async def test_a_caller_who_is_cancelled_leaves_the_load_to_the_others(
    manager: ModelManager, backend: WatchedBackend
) -> None:
    first, second = (asyncio.ensure_future(manager.get()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second is backend
    assert first.cancelled()
    assert backend.loads == 1


async def test_residency_is_counted(manager: ModelManager, clock: Clock) -> None:
    assert manager.resident_s == 0
    await manager.load()
    clock.now_s += 10
    assert manager.resident_s == 10, "it grows while the model is loaded"
    await manager.unload()
    clock.now_s += 100
    assert manager.resident_s == 10
    await manager.load()
    clock.now_s += 32
    assert manager.resident_s == 42
    await manager.unload()
    assert manager.resident_s == 42


async def test_each_check_says_why_a_model_is_kept(
    manager: ModelManager, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "studio.engine")
    await manager.expire(900)
    async with manager.using():
        clock.now_s += 1000
        await manager.expire(900)
    clock.now_s += 60
    await manager.expire(900)
    clock.now_s += 900
    await manager.expire(900)
    kept = [record for record in caplog.records if "kept" in record.getMessage()]
    assert [record.getMessage().partition(": ")[2] for record in kept] == [
        "kept (it isn't loaded), 0 active",
        "kept (it is in use), 1 active",
        "kept (idle for 60 of 900 s), 0 active",
    ]
    assert {record.levelname for record in kept} == {"DEBUG"}
    unloaded = [record for record in caplog.records if "unloaded (idle" in record.getMessage()]
    assert [record.levelname for record in unloaded] == ["INFO"]


async def test_memory_before_and_after_is_told_and_logged(
    manager: ModelManager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="studio")
    await manager.load()
    assert manager.memory is not None
    assert (manager.memory.before, manager.memory.after) == (
        MemoryUsage(100, 0),
        MemoryUsage(600, 500),
    )
    await manager.unload()
    assert (manager.memory.before, manager.memory.after) == (
        MemoryUsage(600, 500),
        MemoryUsage(100, 0),
    )
    assert "memory 0 -> 0 MB, on the device 0 -> 0 MB" in caplog.text


async def test_what_others_keep_is_forgotten_before_the_unload(backend: WatchedBackend) -> None:
    resident_when_forgotten: list[bool] = []
    manager = ModelManager(
        backend, forget=lambda: resident_when_forgotten.append(backend.resident), measure=measured
    )
    await manager.load()
    await manager.unload()
    assert resident_when_forgotten == [True]


async def test_an_unload_that_failed_can_be_tried_again(
    manager: ModelManager, backend: WatchedBackend, clock: Clock
) -> None:
    backend.unload_faults.append(RuntimeError("CUDA error"))
    await manager.load()
    clock.now_s += 5
    with pytest.raises(RuntimeError, match="CUDA error"):
        await manager.unload()
    assert manager.state is ModelState.FAILED
    assert backend.resident
    await manager.unload()
    assert (manager.state, backend.resident) == (ModelState.UNLOADED, False)
    assert (manager.counters.unloads, manager.resident_s) == (1, 5)


class SlowBackend(WatchedBackend):
    """Its load waits in its thread until the test lets it go on to its next progress."""

    def __init__(self) -> None:
        super().__init__()
        self.started = threading.Event()
        self.go_on = threading.Event()
        self.reports_at_end = True
        self.says_when_ready = False

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        self.half_loaded = True
        progress(LoadProgress("Downloading model.safetensors: 1 of 4 MB", 0.25))
        self.started.set()
        assert self.go_on.wait(timeout=60)
        if self.reports_at_end:
            progress(LoadProgress("Downloading model.safetensors: 4 of 4 MB", 1.0))
        self.half_loaded = False
        self.resident = True
        self.loads += 1
        if self.says_when_ready:
            progress(LoadProgress("It is ready", 1.0))


class TestStoppedLoad:
    @pytest.fixture
    def slow(self) -> SlowBackend:
        return SlowBackend()

    @pytest.fixture
    def slow_manager(self, slow: SlowBackend) -> ModelManager:
        return ModelManager(slow, measure=measured)

    async def begin(self, manager: ModelManager, slow: SlowBackend) -> asyncio.Task[Any]:
        loading = asyncio.ensure_future(manager.get())
        await asyncio.to_thread(slow.started.wait, 60)
        return loading

    async def test_who_waits_is_let_go_before_the_load_has_ended(
        self, slow_manager: ModelManager, slow: SlowBackend
    ) -> None:
        loading = await self.begin(slow_manager, slow)
        assert slow_manager.progress == LoadProgress(
            "Downloading model.safetensors: 1 of 4 MB", 0.25
        )
        assert slow_manager.cancel_load()
        assert not slow_manager.cancel_load()
        with pytest.raises(Cancelled, match="what was downloaded is kept"):
            await loading
        assert slow_manager.state is ModelState.LOADING
        again = asyncio.ensure_future(slow_manager.get())
        slow.go_on.set()
        assert await again is slow
        assert (slow.loads, slow_manager.counters.cancelled_loads) == (1, 1)
        assert slow_manager.counters.failed_loads == 0

    @pytest.mark.parametrize("told", ["nothing", "at its last word"])
    async def test_a_load_that_ends_all_the_same_is_undone(
        self, slow_manager: ModelManager, slow: SlowBackend, told: str
    ) -> None:
        slow.reports_at_end, slow.says_when_ready = False, told == "at its last word"
        loading = await self.begin(slow_manager, slow)
        slow_manager.cancel_load()
        slow.go_on.set()
        with pytest.raises(Cancelled):
            await loading
        await slow_manager.unload()
        assert (slow.loads, slow.unloads, slow.resident) == (1, 1, False)
        assert slow_manager.state is ModelState.UNLOADED

    async def test_a_load_nobody_waits_for_any_more_is_stopped(
        self, slow_manager: ModelManager, slow: SlowBackend
    ) -> None:
        first = await self.begin(slow_manager, slow)
        second = asyncio.ensure_future(slow_manager.load())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        assert slow_manager.progress is not None
        second.cancel()
        await asyncio.wait([second])
        slow.go_on.set()
        await slow_manager.unload()
        assert slow.loads == 0
        assert slow_manager.counters.cancelled_loads == 1

    async def test_progress_is_logged_and_told_at_most_once_a_second(
        self, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Steps(WatchedBackend):
            def load(self, progress: Callable[[LoadProgress], None]) -> None:
                for tenths in range(1, 26):
                    clock.now_s += 0.125
                    progress(LoadProgress(f"{tenths} of 25", tenths / 25))
                super().load(progress)

        caplog.set_level(logging.INFO, logger="studio")
        manager = ModelManager(Steps(), measure=measured, clock=clock)
        told: list[str] = []
        manager.listeners.append(lambda progress: told.append(progress.message))
        await manager.load()
        assert told == ["8 of 25", "16 of 25", "24 of 25"]
        assert "model watched: 16 of 25" in caplog.text

    async def test_cancel_without_a_load_is_harmless(self, slow_manager: ModelManager) -> None:
        assert not slow_manager.cancel_load()


@pytest.mark.parametrize("block", range(10))
def test_no_interleaving_loads_twice_or_loses_a_model(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        try:
            asyncio.run(_interleave(random.Random(seed)))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


async def _stop_load(manager: ModelManager) -> None:
    manager.cancel_load()


async def _interleave(rng: random.Random) -> None:
    clock, backend = Clock(), WatchedBackend()

    async def some_steps(work: Callable[[], Any]) -> Any:
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)
        return work()

    manager = ModelManager(backend, measure=measured, clock=clock, run_blocking=some_steps)

    async def use() -> None:
        with suppress(Cancelled):
            await lease()

    async def lease() -> None:
        async with manager.using() as leased:
            for _ in range(rng.randrange(5)):
                assert leased.resident, "unloaded under a lease"
                await asyncio.sleep(0)

    async def expire() -> None:
        clock.now_s += rng.choice((0, 5, 50))
        await manager.expire(10)

    async def unload() -> None:
        with suppress(ModelInUse):
            await manager.unload()

    async def give_up_soon() -> None:
        using = asyncio.ensure_future(use())
        for _ in range(rng.randrange(5)):
            await asyncio.sleep(0)
        using.cancel()
        await asyncio.wait([using])

    moves = rng.choices((use, expire, unload, give_up_soon, partial(_stop_load, manager)), k=12)
    await asyncio.gather(*(move() for move in moves))
    assert manager.active == 0
    assert backend.resident == (manager.state is ModelState.LOADED)
    assert backend.loads - backend.unloads == backend.resident
    await manager.unload()
    assert not backend.resident


class TestIdleCheck:
    def models(self, clock: Clock, **policy: Any) -> ModelPool:
        return ModelPool(
            lambda _: WatchedBackend(),
            EvictionPolicy(**{"idle_timeout_s": 100.0, "check_interval_s": 60.0} | policy),
            clock=clock,
        )

    async def test_it_unloads_what_is_idle_and_nothing_else(self, clock: Clock) -> None:
        models = self.models(clock)
        idle, busy = models.get_manager("idle"), models.get_manager("busy")
        await idle.load()
        async with busy.using():
            clock.now_s += 99
            assert await models.reap() == 0
            clock.now_s += 1
            assert await models.reap() == 1
        assert (idle.state, busy.state) == (ModelState.UNLOADED, ModelState.LOADED)

    @pytest.mark.parametrize("policy", [{"enabled": False}, {"idle_timeout_s": 0.0}])
    async def test_switched_off_it_unloads_nothing(
        self, clock: Clock, policy: dict[str, Any]
    ) -> None:
        models = self.models(clock, **policy)
        await models.get_manager("m").load()
        clock.now_s += 1e9
        assert await models.reap() == 0
        assert models.get_status("m").unload_in_s is None

    async def test_the_countdown_ends_at_the_check_that_unloads(self, clock: Clock) -> None:
        models = self.models(clock)
        assert models.get_status("m").unload_in_s is None, "not loaded"
        await models.get_manager("m").load()
        # Checks come at 60 and 120 s; the model expires at 100 s.
        assert models.get_status("m").unload_in_s == 120
        clock.now_s += 50
        assert models.get_status("m").unload_in_s == 70
        async with models.get_manager("m").using():
            assert models.get_status("m").unload_in_s is None, "in use"
        # Used at 50 s: expires at 150 s, found at 180 s.
        assert models.get_status("m").unload_in_s == 130

    async def test_a_shorter_timeout_holds_at_once(self, clock: Clock) -> None:
        models = self.models(clock)
        await models.get_manager("m").load()
        clock.now_s += 30
        models.set_idle_timeout(10)
        assert models.get_status("m").unload_in_s == 30
        assert await models.reap() == 1

    async def test_a_model_that_cannot_be_unloaded_keeps_no_other_from_it(
        self, clock: Clock
    ) -> None:
        models = self.models(clock, check_interval_s=0.001)
        stuck, other = models.get_manager("stuck"), models.get_manager("other")
        assert isinstance(stuck.backend, WatchedBackend)
        stuck.backend.unload_faults += [RuntimeError("CUDA error"), RuntimeError("CUDA error")]
        await stuck.load()
        await other.load()
        clock.now_s += 100
        reaper = asyncio.ensure_future(models.run_reaper())
        while stuck.state is not ModelState.UNLOADED:
            assert not reaper.done(), "the next check finds it again"
            await asyncio.sleep(0.001)
        reaper.cancel()
        assert other.state is ModelState.UNLOADED
        assert (stuck.counters.unloads, other.counters.unloads) == (1, 1)

    async def test_at_the_end_all_are_unloaded_whatever_one_raises(self, clock: Clock) -> None:
        models = self.models(clock)
        stuck, other = models.get_manager("stuck"), models.get_manager("other")
        assert isinstance(stuck.backend, WatchedBackend)
        stuck.backend.unload_faults.append(RuntimeError("CUDA error"))
        await stuck.load()
        await other.load()
        await models.unload_all()
        assert (stuck.state, other.state) == (ModelState.FAILED, ModelState.UNLOADED)

    def test_threads_that_ask_at_once_get_one_manager(self, clock: Clock) -> None:
        everybody_is_here = threading.Barrier(8)
        made: list[str] = []

        def create(name: str) -> Any:
            made.append(name)
            return WatchedBackend()

        models = ModelPool(create, EvictionPolicy(), clock=clock)

        def ask(_: int) -> ModelManager:
            everybody_is_here.wait(timeout=60)
            return models.get_manager("m")

        with ThreadPoolExecutor(8) as threads:
            managers = set(threads.map(ask, range(8)))
        assert (len(managers), made) == (1, ["m"])
