"""The step on CUDA: captured once for every shape, then replayed; elsewhere run as it is."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch

from studio.backends.batched.slot_step import Shape

log = logging.getLogger(__name__)


class Replays:
    """Runs the step in whatever way the device allows, with the same result."""

    def __init__(self, step: Callable[[Shape], None], device: torch.device) -> None:
        """Capture nothing yet.

        Args:
            step: Reads and writes tensors that stay where they are.
            device: Where they are.
        """
        self._step = step
        self._captures = device.type == "cuda"
        self._graphs: dict[Shape, torch.cuda.CUDAGraph] = {}
        self._met: set[Shape] = set()
        self._pool: tuple[int, int] | None = None  # of memory, shared by graphs that take turns

    @property
    def captured(self) -> int:
        """Shapes that are replayed."""
        return len(self._graphs)

    def run(self, shape: Shape) -> None:
        """Advance by a frame.

        A shape's first frame is made by the plain step, which also brings the libraries into the
        state that capturing needs. Capturing itself runs nothing.

        Raises:
            torch.OutOfMemoryError: There is too little for this shape. No frame was made.
        """
        if self._captures and shape in self._met and shape not in self._graphs:
            self._try_capture(shape)
        self._met.add(shape)
        graph = self._graphs.get(shape)
        if graph is None:
            self._step(shape)
        else:
            graph.replay()

    def prepare(self, shape: Shape) -> None:
        """Do all that comes before a shape's first replay; runs it twice."""
        while self._captures and shape not in self._graphs:
            self.run(shape)

    def close(self) -> None:
        """Give up the graphs and the memory they hold."""
        for graph in self._graphs.values():
            graph.reset()
        self._graphs.clear()
        self._pool = None

    def _try_capture(self, shape: Shape) -> None:
        try:
            self._graphs[shape] = self._captured(shape)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            self._captures = False
            log.warning(
                "no graph can be captured here; frames are made step by step", exc_info=True
            )

    def _captured(self, shape: Shape) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # The codec allocates and copies on another thread meanwhile, which is none of this graph.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            self._step(shape)
        self._pool = self._pool or graph.pool()
        return graph
