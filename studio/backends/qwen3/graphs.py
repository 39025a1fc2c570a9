"""Frames on CUDA: the two models as the CUDA graphs of faster-qwen3-tts.

A graph reads and writes fixed buffers, the caches among them, so one line at a time has the
graphs; the others wait. Whoever wants several lines at once takes a batched backend.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from typing import Any

import torch
from transformers import DynamicCache

from studio.backends.device import CARD_TURN
from studio.backends.qwen3.request import USUAL, Sampling
from studio.errors import SpeechFailed

MAX_POSITIONS = 2_048
_WAIT_S = 0.05


class Graphs:
    """The captured graphs of one loaded model."""

    def __init__(self, talker: Any, rest: Sampling = USUAL) -> None:
        """Capture them, which takes some seconds.

        Args:
            talker: The package's `Qwen3TTSTalkerForConditionalGeneration`, on CUDA.
            rest: How codes after a frame's first are drawn; see `Checkpoint`.
        """
        from faster_qwen3_tts.talker_graph import TalkerGraph

        self._talker = talker
        self._rest = rest
        self._lock = threading.Lock()  # guards the buffers of all graphs, for a whole line
        self._steps = TalkerGraph(
            talker.model,
            talker.config,
            device=str(talker.device),
            dtype=talker.dtype,
            max_seq_len=MAX_POSITIONS,
        )
        with _capturing():
            self._steps.capture()
            # How the predictor draws is captured with it.
            self._predictors = {
                greedy: self._captured_predictor(greedy=greedy) for greedy in (False, True)
            }

    @contextmanager
    def line(
        self, *, greedy: bool, seed: int | None, stop: Callable[[], None]
    ) -> Iterator[GraphSteps]:
        """Have the graphs for one line.

        Args:
            greedy: Whether the likeliest codes are taken.
            seed: The captured predictor draws from the device's own source of chance, which is
                set to this; nobody else draws from it meanwhile but other models on the device.
            stop: Called while waiting; raises to give up.
        """
        while not self._lock.acquire(timeout=_WAIT_S):
            stop()
        try:
            if seed is not None:
                with CARD_TURN:
                    torch.cuda.manual_seed(seed % 2**63)
            yield GraphSteps(self._talker, self._steps, self._predictors[greedy])
        finally:
            self._lock.release()

    def _captured_predictor(self, *, greedy: bool) -> Any:
        from faster_qwen3_tts.predictor_graph import PredictorGraph

        talker = self._talker
        graph = PredictorGraph(
            talker.code_predictor,
            talker.code_predictor.model.config,
            talker.config.hidden_size,
            device=str(talker.device),
            dtype=talker.dtype,
            do_sample=not (greedy or self._rest.greedy),
            top_k=self._rest.top_k,
            top_p=self._rest.top_p,
            temperature=self._rest.temperature or 1.0,
        )
        graph.capture()
        return graph


@contextmanager
def _capturing() -> Iterator[None]:
    """Let the package capture while other threads go on with what is none of its graphs.

    It captures in the mode that forbids others to allocate or to ask for events, and prints.
    """
    with CARD_TURN, redirect_stdout(sys.stderr):
        plain = torch.cuda.graph
        torch.cuda.graph = partial(plain, capture_error_mode="thread_local")
        try:
            yield
        finally:
            torch.cuda.graph = plain


class GraphSteps:
    """One line's turn at the graphs; see `studio.backends.qwen3.talker.Steps`."""

    def __init__(self, talker: Any, steps: Any, predictor: Any) -> None:
        """Take over the buffers of all graphs."""
        self._talker = talker
        self._steps = steps
        self._predictor = predictor
        self._position = 0

    def start(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read the prompt with the plain modules, then hand their cache to the graph.

        Raises:
            SpeechFailed: The prompt leaves no room for the line.
        """
        if embeds.shape[1] >= MAX_POSITIONS:
            raise SpeechFailed(
                "The speaker's sample and this line are too long together. Cut the sample to "
                "under 30 s, or split the line."
            )
        cache = DynamicCache()
        out = self._talker.model(inputs_embeds=embeds, past_key_values=cache, use_cache=True)
        self._position = self._steps.prefill_kv(cache)
        self._steps.set_generation_state(None, None)
        return out.last_hidden_state[:, -1:]

    def fill(self, hidden: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """Replay the predictor's graph, between the captures of other models."""
        with CARD_TURN:  # it draws from the source that a capture takes for itself
            return self._predictor.run(torch.cat([hidden, first], dim=1))

    def advance(self, embeds: torch.Tensor) -> torch.Tensor:
        """Replay the talker's graph.

        Raises:
            SpeechFailed: Its cache is full.
        """
        if self._position >= MAX_POSITIONS - 1:
            raise SpeechFailed("This line became too long for its speaker's sample; split it.")
        hidden = self._steps.run(embeds, self._position).clone()  # the buffer is the graph's own
        self._position += 1
        return hidden
