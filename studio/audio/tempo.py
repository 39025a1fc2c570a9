"""Time stretching: faster or slower speech at the same pitch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import av
import av.error
import numpy as np
from av.filter import Graph

from studio.audio.clip import STUDIO_RATE_HZ, Samples

MIN_SPEED = 0.25
MAX_SPEED = 4.0
_MAX_FILTER_SPEED = 2.0
"""One filter is asked for at most this much; beyond it several work one after the other."""


class Tempo:
    """Stretches mono float32 at the studio's rate in time, chunk by chunk."""

    def __init__(self, speed: float) -> None:
        """Begin; `speed` 2 takes half the time, within `MIN_SPEED` to `MAX_SPEED`."""
        assert MIN_SPEED <= speed <= MAX_SPEED
        self._samples = 0
        self._graph: Any = _build_graph(speed) if speed != 1.0 else None

    def push(self, chunk: Samples) -> Samples:
        """Stretch a chunk; what came out of it, perhaps nothing."""
        if self._graph is None or not len(chunk):
            return chunk
        frame = av.AudioFrame.from_ndarray(chunk[None], format="flt", layout="mono")
        frame.sample_rate = STUDIO_RATE_HZ
        frame.pts = self._samples
        self._samples += len(chunk)
        self._graph.push(frame)
        return self._pulled()

    def finish(self) -> Samples:
        """What is still inside; nothing may be pushed any more."""
        if self._graph is None or not self._samples:
            return np.zeros(0, dtype=np.float32)
        self._graph.push(None)
        return self._pulled()

    def _pulled(self) -> Samples:
        blocks = [np.zeros(0, dtype=np.float32), *_pull_all(self._graph)]
        samples: Samples = np.concatenate(blocks)
        return np.clip(samples, -1.0, 1.0, out=samples)


def _build_graph(speed: float) -> Any:
    graph = Graph()
    last = graph.add_abuffer(sample_rate=STUDIO_RATE_HZ, format="flt", layout="mono")
    for step in _split_speed(speed):
        tempo = graph.add("atempo", f"{step:.6f}")
        last.link_to(tempo)
        last = tempo
    last.link_to(graph.add("abuffersink"))
    graph.configure()
    return graph


def _split_speed(speed: float) -> Iterator[float]:
    while not 1 / _MAX_FILTER_SPEED <= speed <= _MAX_FILTER_SPEED:
        step = _MAX_FILTER_SPEED if speed > 1 else 1 / _MAX_FILTER_SPEED
        yield step
        speed /= step
    yield speed


def _pull_all(graph: Any) -> Iterator[Samples]:
    while True:
        try:
            yield graph.pull().to_ndarray().reshape(-1)
        except (av.error.BlockingIOError, av.error.EOFError):
            return
