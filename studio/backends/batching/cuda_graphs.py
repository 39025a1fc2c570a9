"""CUDA graphs: a step is captured once per shape, then replayed; elsewhere it runs eagerly."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import torch

from studio.backends.device import CARD_TURN, give_back

log = logging.getLogger(__name__)

MAX_GRAPHS = 64
"""Graphs of one step. What warming captures is at most 18 of 64 slots; sampling parameters and long
lines bring further shapes, in any number, and each graph's nodes take megabytes of the card's
driver."""

ShapeT = TypeVar("ShapeT", bound=Hashable)

GraphPool = tuple[int, int]
"""Handle of a memory pool of graphs."""


class CudaGraphRunner(Generic[ShapeT]):
    """Runs a step as a CUDA graph or eagerly, with the same result.

    At most `max_graphs` are kept: the one that was used longest ago gives way to the next.

    A frame of few lines takes as long as its kernels take to launch (1,496 of Qwen3-TTS's 0.6B
    model), and a replay launches them all at once.
    """

    def __init__(
        self,
        step: Callable[[ShapeT], None],
        device: torch.device,
        *,
        product: str = "frames",
        high_priority: bool = True,
        max_graphs: int = MAX_GRAPHS,
    ) -> None:
        """Capture nothing yet.

        Args:
            step: Reads and writes tensors that stay where they are.
            device: Where they are.
            product: What it makes, for messages.
            high_priority: Whether its kernels go before those of graphs that aren't.
            max_graphs: At least 2, as the memory pool of all goes with the last graph.
        """
        assert max_graphs >= 2
        self._max_graphs = max_graphs
        self._step = step
        self._device = device
        self._product = product
        self._high_priority = high_priority
        self._captures = device.type == "cuda"
        # Both by use, the latest last.
        self._graphs: dict[ShapeT, torch.cuda.CUDAGraph] = {}
        self._met: dict[ShapeT, None] = {}
        self._pool: GraphPool | None = None  # of memory, shared by graphs that take turns
        self._stream: torch.cuda.Stream | None = None

    @property
    def captured(self) -> int:
        return len(self._graphs)

    def run(self, shape: ShapeT) -> None:
        """Run one step.

        A shape's first step is the plain one, which also brings the libraries into the state that
        capturing needs. Capturing itself runs nothing.
        """
        if self._captures and shape in self._met and shape not in self._graphs:
            self._drop_oldest()
            self._try_capture(shape)
        graph = self._graphs.pop(shape, None)
        if graph is None:
            self._note(shape)
            self._step(shape)
        else:
            self._graphs[shape] = graph
            graph.replay()

    def prepare(self, shape: ShapeT) -> None:
        """Warm up and capture a shape, which runs the step twice."""
        while self._captures and shape not in self._graphs:
            self.run(shape)

    def close(self) -> None:
        """Release the graphs, their memory and the step; none may be running."""
        with CARD_TURN:
            for graph in self._graphs.values():
                graph.reset()
        if self._graphs:
            give_back(self._device.type)
        self._graphs.clear()
        self._pool = self._stream = None
        self._step = _refuse_step

    def _note(self, shape: ShapeT) -> None:
        """Remember a shape, which is captured when it is needed again before too many others."""
        self._met.pop(shape, None)
        self._met[shape] = None
        if len(self._met) > self._max_graphs:
            del self._met[next(iter(self._met))]

    def _drop_oldest(self) -> None:
        """Make room for one graph more.

        One that is still running is freed by the driver when it has ended (`cudaGraphExecDestroy`).
        Its tensors lie in the pool of all graphs, and are the next one's.
        """
        while len(self._graphs) >= self._max_graphs:
            oldest = next(iter(self._graphs))
            with CARD_TURN:
                self._graphs.pop(oldest).reset()
            log.debug("the graph of %s is dropped", oldest)

    def _try_capture(self, shape: ShapeT) -> None:
        try:
            self._graphs[shape] = self._capture(shape)
            del self._met[shape]  # once it is dropped, it has to be needed twice again
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            self._captures = False
            log.warning(
                "no graph can be captured here; %s are made step by step",
                self._product,
                exc_info=True,
            )

    def _capture(self, shape: ShapeT) -> torch.cuda.CUDAGraph:
        with CARD_TURN:  # one lock for all captures of all models
            # Known beforehand: a graph whose capture failed no longer knows its pool.
            pool = self._pool or torch.cuda.graph_pool_handle()
            try:
                graph = self._record(shape, pool)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError:
                self._stream = None
                recover_from_failed_capture(self._device, pool)
                raise
        self._pool = pool
        return graph

    def _record(self, shape: ShapeT, pool: GraphPool) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # A stream of its own, on which nothing else ever runs: a library's workspace belongs to a
        # stream, and graphs that shared one would write over each other's sums where one thread
        # replays frames and another sound. torch's own stream for captures is the process's.
        self._stream = self._stream or make_stream(self._device, urgent=self._high_priority)
        # The outer block restores the current stream even where ending the capture fails. Other
        # threads allocate and copy meanwhile, which is none of this graph: the allocator lends
        # from the graph's pool only to the stream that is captured.
        with (
            torch.cuda.stream(torch.cuda.current_stream(self._device)),
            torch.cuda.graph(
                graph, pool=pool, stream=self._stream, capture_error_mode="thread_local"
            ),
        ):
            self._step(shape)
        return graph


class GraphedFunction:
    """A function of tensors whose result is one, as a graph for each of its arguments' shapes.

    For one thread. Elsewhere than on CUDA it runs at once, with the same result.
    """

    def __init__(
        self,
        function: Callable[..., torch.Tensor],
        device: torch.device,
        most: Sequence[int],
        *,
        product: str,
    ) -> None:
        """Capture nothing yet.

        Args:
            function: Reads no value of a tensor.
            device: Where all tensors are.
            most: Numbers that each argument has at most, and at last the result.
            product: What it makes, for messages.
        """
        self._function = function
        self._most = most
        self._buffers: list[torch.Tensor] = []  # flat; each shape takes their beginnings
        self._result_shapes: dict[Shapes, torch.Size] = {}
        self._graphs: CudaGraphRunner[Shapes] = CudaGraphRunner(
            self._run, device, product=product, high_priority=False
        )

    @property
    def captured(self) -> int:
        return self._graphs.captured

    def __call__(self, *given: torch.Tensor) -> torch.Tensor:
        """Call it; the next call writes over the result."""
        if not self._buffers:
            kinds = (*given, given[-1])  # the result is of the last one's kind
            self._buffers = [
                one.new_zeros(most) for one, most in zip(kinds, self._most, strict=True)
            ]
        shapes = tuple(one.shape for one in given)
        for buffer, one in zip(self._buffers, given, strict=False):
            _begin(buffer, one.shape).copy_(one)
        self._graphs.run(shapes)
        return _begin(self._buffers[-1], self._result_shapes[shapes])

    def close(self) -> None:
        """Release the graphs and the memory."""
        self._graphs.close()
        self._buffers.clear()

    def _run(self, shapes: Shapes) -> None:
        made = self._function(*map(_begin, self._buffers, shapes))
        self._result_shapes[shapes] = made.shape
        _begin(self._buffers[-1], made.shape).copy_(made)


Shapes = tuple[torch.Size, ...]


def _begin(buffer: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """The beginning of a flat buffer, in a shape."""
    return buffer[: shape.numel()].view(shape)


def make_stream(device: torch.device, *, urgent: bool) -> torch.cuda.Stream:
    """Create a CUDA stream; an urgent one has a higher priority."""
    return torch.cuda.Stream(device, priority=-1 if urgent else 0)


def recover_from_failed_capture(device: torch.device, pool: GraphPool) -> None:
    """Restore torch after a failed capture; the caller holds the lock of captures.

    Ending such a capture raises before torch's allocator and its source of chance learn of it. The
    one would never release memory again, and the other refuse to draw.

    Raises:
        RuntimeError: The device does nothing more at all.
    """
    index = torch.cuda.current_device() if device.index is None else device.index
    try:
        torch._C._cuda_endAllocateToPool(index, pool)
    except RuntimeError:
        log.debug("the capture ended before it allocated", exc_info=True)
    else:
        torch._C._cuda_releasePool(index, pool)
    # One that succeeds ends what the failed one began.
    number = torch.zeros(1, device=device)
    trivial = torch.cuda.CUDAGraph()
    with (
        torch.cuda.stream(torch.cuda.current_stream(device)),
        torch.cuda.graph(
            trivial, stream=torch.cuda.Stream(device), capture_error_mode="thread_local"
        ),
    ):
        number.add_(1)
    trivial.reset()
    torch.rand(1, device=device)


def _refuse_step(_shape: Hashable) -> None:
    raise AssertionError("the step was given up")


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished all queued work, on all streams."""
    if device.type == "cuda":
        with CARD_TURN:
            torch.cuda.synchronize(device)
