"""The talker one line at a time: the package's modules, or the CUDA graphs of faster-qwen3-tts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from typing import Any, Protocol

import torch
from transformers import (
    DynamicCache,
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SuppressTokensLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from studio.backends.device import CARD_TURN
from studio.backends.qwen3.checkpoint import (
    COMMAND_CODES,
    DEFAULT_SAMPLING,
    FRAMES_PER_S,
    MIN_FRAMES,
    SamplingParams,
)
from studio.backends.qwen3.prompt import TalkerPrompt
from studio.errors import SpeechFailed


class Sampler:
    """Samples codes for one request, from a random generator of its own."""

    def __init__(
        self,
        sampling: SamplingParams,
        seed: int | None,
        device: torch.device,
        *,
        rest: SamplingParams = DEFAULT_SAMPLING,
    ) -> None:
        """Sample on `device`; the same seed and logits give the same codes, None a random seed."""
        self._rest = rest
        self.sampling = sampling
        self._chance = torch.Generator(device)
        if seed is None:
            self._chance.seed()
        else:
            self._chance.manual_seed(seed % 2**63)
        self._narrow = _logits_warpers(sampling)
        self._narrow_rest = _logits_warpers(rest)

    def first(self, scores: torch.Tensor) -> torch.Tensor:
        """A frame's first code: [1] from processed scores [1, vocabulary]."""
        return self._draw(scores, self._narrow, greedy=self.sampling.greedy)

    def rest(self, logits: torch.Tensor) -> torch.Tensor:
        """One of the codes after it: [1] from [1, vocabulary]."""
        greedy = self.sampling.greedy or self._rest.greedy
        return self._draw(logits.float(), self._narrow_rest, greedy=greedy)

    def _draw(
        self, scores: torch.Tensor, narrow: LogitsProcessorList, *, greedy: bool
    ) -> torch.Tensor:
        if greedy:
            return scores.argmax(dim=-1)
        likelihoods = narrow(None, scores).softmax(dim=-1)
        return torch.multinomial(likelihoods, 1, generator=self._chance)[:, 0]


def first_code_processors(
    config: Any, sampling: SamplingParams, device: torch.device
) -> LogitsProcessorList:
    """Logits processors for a frame's first code."""
    end = config.codec_eos_token_id
    reserved = set(range(config.vocab_size - COMMAND_CODES, config.vocab_size)) - {end}
    rules = LogitsProcessorList()
    if sampling.repetition_penalty != 1.0:
        rules.append(RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    rules.append(MinNewTokensLengthLogitsProcessor(0, MIN_FRAMES, end, device=device))
    rules.append(SuppressTokensLogitsProcessor(sorted(reserved), device=device))
    return rules


def _logits_warpers(sampling: SamplingParams) -> LogitsProcessorList:
    narrowing = LogitsProcessorList()
    if sampling.greedy:
        return narrowing
    if sampling.temperature != 1.0:
        narrowing.append(TemperatureLogitsWarper(sampling.temperature))
    narrowing.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1.0:
        narrowing.append(TopPLogitsWarper(sampling.top_p))
    return narrowing


# Frames of one line, one after the other, with all state in the request.
#
# The talker makes a frame's first code and then the code predictor the other 15. The package's own
# `forward` of the talker keeps position offsets on the module (`rope_deltas`) and calls `generate`
# on the predictor, which draws from the process's global generator: lines in flight at once would
# change each other. So the modules below both are called here, with caches of the request's own.
#
# Source: `Qwen3TTSTalkerForConditionalGeneration.forward` of qwen-tts-hf 0.1.1.post1.


class TalkerForward(Protocol):
    """A way to run the talker and the code predictor; holds the state of one line."""

    def start(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read the prompt [1, positions, hidden]; returns the last hidden state [1, 1, hidden]."""

    def fill(self, hidden: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """The codes after a frame's first one.

        Args:
            hidden: The state that gave the first code: [1, 1, hidden].
            first: Its embedding: [1, 1, hidden].

        Returns:
            int64 [groups - 1].
        """

    def advance(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read one frame [1, 1, hidden]; returns the hidden state [1, 1, hidden]."""


class EagerTalkerForward:
    """The package's modules as they are; any number of lines at once."""

    def __init__(self, talker: Any, sampler: Sampler) -> None:
        self._talker = talker
        self._sampler = sampler
        self._cache = DynamicCache()

    def start(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read the prompt; see `TalkerForward`."""
        return self.advance(embeds)

    def advance(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read positions; see `TalkerForward`. Without positions the talker counts the cache's."""
        out = self._talker.model(inputs_embeds=embeds, past_key_values=self._cache, use_cache=True)
        return out.last_hidden_state[:, -1:]

    def fill(self, hidden: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """Run the predictor; see `TalkerForward`."""
        predictor = self._talker.code_predictor
        cache, codes = DynamicCache(), []
        embeds = torch.cat([hidden, first], dim=1)  # [1, 2, hidden]
        for head, table in zip(predictor.lm_head, predictor.model.codec_embedding, strict=True):
            out = predictor.model(
                inputs_embeds=predictor.small_to_mtp_projection(embeds),
                past_key_values=cache,
                use_cache=True,
            )
            codes.append(self._sampler.rest(head(out.last_hidden_state[:, -1])))
            embeds = table(codes[-1])[:, None]
        return torch.cat(codes)


class FrameGenerator:
    """Generates the frames of one line."""

    def __init__(
        self, talker: Any, prompt: TalkerPrompt, sampler: Sampler, steps: TalkerForward
    ) -> None:
        self._talker = talker
        self._prompt = prompt
        self._sampler = sampler
        self._steps = steps
        self._rules = first_code_processors(talker.config, sampler.sampling, prompt.embeds.device)
        self._end = talker.config.codec_eos_token_id

    def frames(self, max_frames: int) -> Iterator[torch.Tensor]:
        """Make frames until the line ends by itself.

        Yields:
            int64 [groups].

        Raises:
            SpeechFailed: It didn't end within `max_frames`, all of which were yielded.
        """
        said = torch.zeros(1, 0, dtype=torch.long, device=self._prompt.embeds.device)
        with torch.inference_mode():
            hidden = self._steps.start(self._prompt.embeds)
        for frame in range(max_frames):
            first = self._first(hidden, said)
            if self._is_end(first):
                return
            said = torch.cat([said, first[None]], dim=1)
            codes, hidden = self._step(hidden, first, frame)
            yield codes
        if not self._is_end(self._first(hidden, said)):
            raise SpeechFailed(
                f"This line did not stop by itself; it was cut after "
                f"{max_frames / FRAMES_PER_S:.0f} s. Generate it again with another seed, or "
                "change its words."
            )

    def _first(self, hidden: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            logits = self._talker.codec_head(hidden[:, -1]).float()  # [1, vocabulary]
            return self._sampler.first(self._rules(said, logits))

    def _is_end(self, first: torch.Tensor) -> bool:
        """Whether the line ends: the one value of a frame that the host has to read."""
        return bool(first.item() == self._end)

    def _step(
        self, hidden: torch.Tensor, first: torch.Tensor, frame: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.inference_mode():
            first_embed = self._talker.get_input_embeddings()(first)[None]  # [1, 1, hidden]
            rest = self._steps.fill(hidden, first_embed)
            tables = self._talker.code_predictor.get_input_embeddings()
            embeds = [table(code) for table, code in zip(tables, rest, strict=True)]
            summed = torch.stack([first_embed[0, 0], *embeds]).sum(dim=0)[None, None]
            embeds = summed + self._prompt.text_of_frame(frame)
            return torch.cat([first, rest]), self._steps.advance(embeds)


# Frames on CUDA: the two models as the CUDA graphs of faster-qwen3-tts.
#
# A graph reads and writes fixed buffers, the caches among them, so one line at a time has the
# graphs; the others wait. Several lines at once need batched generation.

MAX_GRAPH_POSITIONS = 2_048
_WAIT_S = 0.05


class TalkerCudaGraphs:
    """The captured graphs of one loaded model."""

    def __init__(self, talker: Any, rest: SamplingParams = DEFAULT_SAMPLING) -> None:
        from faster_qwen3_tts.talker_graph import TalkerGraph

        self._talker = talker
        self._rest = rest
        self._lock = threading.Lock()  # guards the buffers of all graphs, for a whole line
        self._steps = TalkerGraph(
            talker.model,
            talker.config,
            device=str(talker.device),
            dtype=talker.dtype,
            max_seq_len=MAX_GRAPH_POSITIONS,
        )
        with _capture_mode():
            self._steps.capture()
            # How the predictor draws is captured with it.
            self._predictors = {
                greedy: self._captured_predictor(greedy=greedy) for greedy in (False, True)
            }

    @contextmanager
    def line(
        self, *, greedy: bool, seed: int | None, stop: Callable[[], None]
    ) -> Iterator[CudaGraphTalkerForward]:
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
            yield CudaGraphTalkerForward(self._talker, self._steps, self._predictors[greedy])
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
def _capture_mode() -> Iterator[None]:
    """Let the package capture its graphs while other threads go on using the device.

    It captures in the mode that forbids others to allocate or to ask for events, and prints.
    """
    with CARD_TURN, redirect_stdout(sys.stderr):
        plain = torch.cuda.graph
        torch.cuda.graph = partial(plain, capture_error_mode="thread_local")
        try:
            yield
        finally:
            torch.cuda.graph = plain


class CudaGraphTalkerForward:
    """Runs one line with the captured graphs; see `TalkerForward`."""

    def __init__(self, talker: Any, steps: Any, predictor: Any) -> None:
        self._talker = talker
        self._steps = steps
        self._predictor = predictor
        self._position = 0

    def start(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read the prompt with the plain modules, then hand their cache to the graph.

        Raises:
            SpeechFailed: The prompt leaves no room for the line.
        """
        if embeds.shape[1] >= MAX_GRAPH_POSITIONS:
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
        if self._position >= MAX_GRAPH_POSITIONS - 1:
            raise SpeechFailed("This line became too long for its speaker's sample; split it.")
        hidden = self._steps.run(embeds, self._position).clone()  # the buffer is the graph's own
        self._position += 1
        return hidden
