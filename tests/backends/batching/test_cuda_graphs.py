"""The shell around the step: when it captures, and what becomes of a capture that fails."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="the neural voices' packages are not installed")

import torch

from studio.backends.batching import cuda_graphs
from studio.backends.batching.cuda_graphs import CudaGraphRunner
from studio.backends.batching.prefill import group_by_length
from studio.backends.batching.slots import StepShape
from studio.backends.device import CARD_TURN
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.prompt import PrefixedPrompt, Qwen3Voice
from studio.backends.qwen3.sequential_talker import CudaGraphTalkerForward, _capture_mode
from studio.backends.qwen3.talker_slots import TalkerAdmission

pytestmark = pytest.mark.models

NOBODY = Qwen3Voice()
ONE, EIGHT = StepShape(1, 256), StepShape(8, 256)


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[StepShape]:
    """Let every capture fail; returns the shapes that were tried."""
    tried = []

    def captured(_self: CudaGraphRunner, shape: StepShape) -> None:
        tried.append(shape)
        raise error

    monkeypatch.setattr(CudaGraphRunner, "_capture", captured)
    return tried


class Played:
    """Stands for a captured graph where there is no CUDA."""

    def __init__(self, step, shape) -> None:
        self.replay = lambda: step(shape)
        self.closed = False

    def reset(self) -> None:
        self.closed = True


def test_a_shape_is_captured_at_its_second_step_and_replayed_from_then_on(monkeypatch):
    captured: list[tuple[int, StepShape]] = []
    monkeypatch.setattr(
        CudaGraphRunner,
        "_record",
        lambda self, shape, _pool: captured.append((len(ran), shape)) or Played(self._step, shape),
    )
    ran: list[StepShape] = []
    replays = CudaGraphRunner(ran.append, torch.device("cuda"))
    for shape in (ONE, EIGHT, ONE, ONE, EIGHT):
        replays.run(shape)
    assert ran == [ONE, EIGHT, ONE, ONE, EIGHT]
    assert captured == [(2, ONE), (4, EIGHT)]
    assert replays.captured == 2
    graphs = list(replays._graphs.values())
    replays.close()
    assert all(graph.closed for graph in graphs)
    assert replays.captured == 0


class Captures:
    """Captures graphs that are none, and keeps count of those that live."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[StepShape, Played]] = []
        monkeypatch.setattr(
            CudaGraphRunner, "_record", lambda runner, shape, _: self(runner, shape)
        )

    def __call__(self, runner: CudaGraphRunner, shape: StepShape) -> Played:
        graph = Played(runner._step, shape)
        self.made.append((shape, graph))
        return graph

    @property
    def alive(self) -> list[StepShape]:
        return [shape for shape, graph in self.made if not graph.closed]


def test_of_many_shapes_the_64_used_last_are_kept_as_graphs(monkeypatch):
    captures, ran = Captures(monkeypatch), []
    replays = CudaGraphRunner(ran.append, torch.device("cuda"))
    shapes = [StepShape(1, 64 * n) for n in range(1, 201)]
    most = 0
    for shape in shapes:
        replays.prepare(shape)
        replays.run(shapes[0])
        most = max(most, len(captures.alive))
    assert most == replays.captured == 64
    assert captures.alive == [shapes[0], *shapes[-63:]], "the one used all the time stays"
    assert len(captures.made) == 200
    assert ran.count(shapes[0]) == 202
    replays.close()
    assert captures.alive == []


def test_a_shape_whose_graph_was_dropped_runs_plainly_and_is_captured_again_when_needed_twice(
    monkeypatch,
):
    captures, ran = Captures(monkeypatch), []
    replays = CudaGraphRunner(ran.append, torch.device("cuda"), max_graphs=2)
    first, second, third = (StepShape(1, 64 * n) for n in (1, 2, 3))
    for shape in (first, second, third):
        replays.prepare(shape)
    assert captures.alive == [second, third]
    replays.run(first)
    assert captures.alive == [second, third], "one step more is no reason for a capture"
    replays.run(second)
    replays.run(first)
    assert captures.alive == [second, first]
    assert ran.count(first) == 4, "no step is left out or made twice"


def test_shapes_that_come_once_are_not_remembered_for_ever(monkeypatch):
    captures = Captures(monkeypatch)
    replays = CudaGraphRunner(lambda _shape: None, torch.device("cuda"))
    for n in range(1, 201):
        replays.run(StepShape(1, 64 * n))
    replays.run(StepShape(1, 64))
    assert captures.made == [], "it came once, long ago, and now"
    replays.run(StepShape(1, 64))
    assert [shape for shape, _ in captures.made] == [StepShape(1, 64)]


def test_two_threads_never_capture_at_the_same_time(monkeypatch):
    under_way, most = 0, 0
    both = threading.Barrier(2)

    def recorded(self: CudaGraphRunner, shape: StepShape, _pool) -> Played:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        # Long enough for the other thread to come in if it could: it is awake and wants to.
        threading.Event().wait(0.05)
        under_way -= 1
        return Played(self._step, shape)

    monkeypatch.setattr(CudaGraphRunner, "_record", recorded)

    def capture(_thread: int) -> int:
        replays = CudaGraphRunner(lambda _shape: None, torch.device("cuda"))
        both.wait(60)
        replays.prepare(ONE)
        replays.prepare(EIGHT)
        return replays.captured

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(capture, range(2))) == [2, 2]
    assert most == 1


def test_on_a_cpu_the_step_runs_as_it_is():
    ran: list[StepShape] = []
    replays = CudaGraphRunner(ran.append, torch.device("cpu"))
    for shape in (ONE, EIGHT, ONE):
        replays.run(shape)
    replays.prepare(EIGHT)
    assert ran == [ONE, EIGHT, ONE]
    assert replays.captured == 0


def test_a_failed_capture_is_told_once_and_frames_go_on(monkeypatch, caplog):
    tried, ran = failing(monkeypatch, RuntimeError("no capture here")), []
    replays = CudaGraphRunner(ran.append, torch.device("cuda"))
    with caplog.at_level(logging.WARNING):
        for shape in (ONE, ONE, EIGHT, EIGHT, ONE):
            replays.run(shape)
        replays.prepare(EIGHT)
    assert tried == [ONE]
    assert ran == [ONE, ONE, EIGHT, EIGHT, ONE]
    assert [record.message for record in caplog.records] == [
        "no graph can be captured here; frames are made step by step"
    ]


def test_after_a_failed_capture_the_shapes_captured_before_are_replayed_and_torch_is_mended(
    monkeypatch,
):
    mended: list[tuple[object, bool]] = []
    pools: list[object] = []

    def recorded(self: CudaGraphRunner, shape: StepShape, pool) -> Played:
        pools.append(pool)
        if shape == EIGHT:
            raise RuntimeError("operation failed due to a previous error during capture")
        return Played(lambda one: ran.append((one, "replayed")), shape)

    def mend(_device, pool) -> None:
        mended.append((pool, held_by_this_thread()))

    monkeypatch.setattr(CudaGraphRunner, "_record", recorded)
    monkeypatch.setattr(cuda_graphs, "recover_from_failed_capture", mend)
    ran: list[object] = []
    replays = CudaGraphRunner(ran.append, torch.device("cuda"))
    for shape in (ONE, ONE, EIGHT, EIGHT, ONE, EIGHT):
        replays.run(shape)
    assert ran == [ONE, (ONE, "replayed"), EIGHT, EIGHT, (ONE, "replayed"), EIGHT]
    assert mended == [(pools[0], True)]
    assert pools == [pools[0]] * 2  # one pool for graphs that take turns


def held_by_this_thread() -> bool:
    """Whether another thread would have to wait."""
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(CARD_TURN.acquire, blocking=False).result()
    return not taken


def test_what_draws_from_the_shared_source_waits_for_a_capture(monkeypatch):
    """Torch refuses to replay a graph that draws while another one is captured."""
    opened, asked, order = threading.Event(), threading.Event(), []

    def recorded(self: CudaGraphRunner, shape: StepShape, _pool) -> Played:
        order.append("capture begins")
        opened.set()
        assert asked.wait(60)
        threading.Event().wait(0.05)  # long enough to come in if it could
        order.append("capture ends")
        return Played(self._step, shape)

    def run(pair: torch.Tensor) -> torch.Tensor:
        order.append("replayed")
        return pair

    monkeypatch.setattr(CudaGraphRunner, "_record", recorded)
    replays = CudaGraphRunner(lambda _shape: None, torch.device("cuda"))
    steps = CudaGraphTalkerForward(None, None, SimpleNamespace(run=run))
    with ThreadPoolExecutor(1) as pool:
        captured = pool.submit(replays.prepare, ONE)
        assert opened.wait(60)
        asked.set()
        steps.fill(torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
        captured.result(60)
    assert order == ["capture begins", "capture ends", "replayed"]


def test_the_package_captures_in_its_own_thread_alone_and_prints_no_table(monkeypatch, capsys):
    made: list[dict[str, object]] = []
    monkeypatch.setattr(torch.cuda, "graph", lambda *_, **how: made.append(how))
    plain = torch.cuda.graph

    def capture() -> None:
        print("Capturing CUDA graph …")
        torch.cuda.graph(None)
        assert held_by_this_thread()
        raise RuntimeError("no graph")

    with pytest.raises(RuntimeError, match="no graph"), _capture_mode():
        capture()
    assert made == [{"capture_error_mode": "thread_local"}]
    assert torch.cuda.graph is plain
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "Capturing CUDA graph …\n")


def test_mending_takes_the_pool_back_only_where_it_was_begun(monkeypatch):
    done: list[object] = []

    def end(_device: int, pool) -> None:
        if pool == (0, 1):
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        done.append(("end", pool))

    class Capture:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> None:
            done.append("trivial capture")

        def __exit__(self, *_: object) -> None: ...

    zeros = torch.zeros
    for name, stand_in in {
        "_cuda_endAllocateToPool": end,
        "_cuda_releasePool": lambda _device, pool: done.append(("release", pool)),
    }.items():
        monkeypatch.setattr(torch._C, name, stand_in)
    for name in ("CUDAGraph", "Stream"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: SimpleNamespace(reset=lambda: None))
    monkeypatch.setattr(torch.cuda, "graph", Capture)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: None)
    monkeypatch.setattr(torch, "zeros", lambda *shape, **_: zeros(*shape))
    monkeypatch.setattr(torch, "rand", lambda *_, **__: done.append("drawn"))
    for pool in ((0, 1), (0, 2)):
        cuda_graphs.recover_from_failed_capture(torch.device("cuda", 0), pool)
    begun = [("end", (0, 2)), ("release", (0, 2))]
    assert done == ["trivial capture", "drawn", *begun, "trivial capture", "drawn"]


def test_too_little_memory_for_a_capture_is_told_before_a_frame_is_made(monkeypatch):
    failing(monkeypatch, torch.OutOfMemoryError("full"))
    ran: list[StepShape] = []
    replays = CudaGraphRunner(ran.append, torch.device("cuda"))
    replays.run(EIGHT)
    for _ in range(2):
        with pytest.raises(torch.OutOfMemoryError):
            replays.run(EIGHT)
    replays.run(ONE)
    assert ran == [EIGHT, ONE]


def lines(*lengths: int) -> list[TalkerAdmission]:
    pad = torch.zeros(1, 1, 4)
    return [
        TalkerAdmission(
            slot,
            PrefixedPrompt(torch.zeros(1, length, 4), pad, pad, NOBODY, 0, 0),
            SamplingParams(),
            0,
            10,
        )
        for slot, length in enumerate(lengths)
    ]


def lengths_read(lengths: list[int], positions: int) -> list[list[int]]:
    read = group_by_length(lines(*lengths), positions)
    return [[line.prompt.embeds.shape[1] for line in group] for group in read]


def test_prompts_of_like_length_are_read_together():
    assert lengths_read([90, 10, 100, 12], 200) == [[10, 12], [90, 100]]
    assert lengths_read([10, 10, 10], 1_000) == [[10, 10, 10]]
    assert lengths_read([300, 20], 200) == [[20], [300]]
    assert lengths_read([20, 30], 0) == [[20], [30]]
    assert lengths_read([], 100) == []
