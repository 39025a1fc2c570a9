"""A step on CUDA: captured once for every shape, then replayed; elsewhere run as it is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import torch

log = logging.getLogger(__name__)

ShapeT = TypeVar("ShapeT", bound=Hashable)

_CAPTURING = threading.Lock()
"""Guards the process's captures, of which torch bears one at a time: each begins by waiting for
the whole device, which is an error while another stream is captured, and each marks the default
generator and the allocator's private pool as its own."""


class Replays(Generic[ShapeT]):
    """Runs a step in whatever way the device allows, with the same result."""

    def __init__(
        self, step: Callable[[ShapeT], None], device: torch.device, *, makes: str = "frames"
    ) -> None:
        """Capture nothing yet.

        Args:
            step: Reads and writes tensors that stay where they are.
            device: Where they are.
            makes: What it makes, for messages.
        """
        self._step = step
        self._device = device
        self._makes = makes
        self._captures = device.type == "cuda"
        self._graphs: dict[ShapeT, torch.cuda.CUDAGraph] = {}
        self._met: set[ShapeT] = set()
        self._pool: tuple[int, int] | None = None  # of memory, shared by graphs that take turns
        self._stream: torch.cuda.Stream | None = None

    @property
    def captured(self) -> int:
        """Shapes that are replayed."""
        return len(self._graphs)

    def run(self, shape: ShapeT) -> None:
        """Advance by a step.

        A shape's first step is the plain one, which also brings the libraries into the state that
        capturing needs. Capturing itself runs nothing.

        Raises:
            torch.OutOfMemoryError: There is too little for this shape. No step was made.
        """
        if self._captures and shape in self._met and shape not in self._graphs:
            self._try_capture(shape)
        self._met.add(shape)
        graph = self._graphs.get(shape)
        if graph is None:
            self._step(shape)
        else:
            graph.replay()

    def prepare(self, shape: ShapeT) -> None:
        """Do all that comes before a shape's first replay; runs it twice."""
        while self._captures and shape not in self._graphs:
            self.run(shape)

    def close(self) -> None:
        """Give up the graphs, the memory they hold and the step; none may be running."""
        for graph in self._graphs.values():
            graph.reset()
        if self._graphs and torch.cuda.is_available():
            # One was made for each thread and stream that multiplied matrices, 32 MB each on
            # Hopper, and outlives both; those still needed are made anew.
            torch._C._cuda_clearCublasWorkspaces()
        self._graphs.clear()
        self._pool = self._stream = None
        self._step = _given_up

    def _try_capture(self, shape: ShapeT) -> None:
        try:
            self._graphs[shape] = self._captured(shape)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            self._captures = False
            log.warning(
                "no graph can be captured here; %s are made step by step",
                self._makes,
                exc_info=True,
            )

    def _captured(self, shape: ShapeT) -> torch.cuda.CUDAGraph:
        with _CAPTURING:
            return self._recorded(shape)

    def _recorded(self, shape: ShapeT) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # A stream of its own, on which nothing else ever runs: a library's workspace belongs to a
        # stream, and graphs that shared one would write over each other's sums where one thread
        # replays frames and another sound. torch's own stream for captures is the process's.
        self._stream = self._stream or torch.cuda.Stream(self._device)
        # The outer block brings the former stream back even where ending the capture fails. Other
        # threads allocate and copy meanwhile, which is none of this graph: the allocator lends
        # from the graph's pool only to the stream that is captured.
        with (
            torch.cuda.stream(torch.cuda.current_stream(self._device)),
            torch.cuda.graph(
                graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
            ),
        ):
            self._step(shape)
        self._pool = self._pool or graph.pool()
        return graph


def _given_up(_shape: Hashable) -> None:
    raise AssertionError("the step was given up")


def settle(device: torch.device) -> None:
    """Wait until a device has done all that was asked of it, whatever the stream."""
    if device.type == "cuda":
        with _CAPTURING:
            torch.cuda.synchronize(device)
