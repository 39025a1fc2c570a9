"""From text to speech tokens: the T3 model, run without storing state on its modules.

The package's own loops keep the request on the model. These follow them step by step (versions
0.1.7, `T3.inference` and `T3.inference_turbo`) with the cache, the history and the random stream
in the request's hands; for a seed they choose the same tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from studio.backends.batching.sequence import stop_error
from studio.backends.chatterbox.alignment import (
    UNMONITORED_TEXT_TOKENS,
    LineAlignmentMonitor,
    StopRule,
)
from studio.backends.chatterbox.flow import RequestNoise

_STOP_CHECK_STEPS = 8  # on a device that works on its own; a CPU has nothing to wait for


@dataclass(frozen=True, slots=True)
class T3LoopParams:
    """Parameters of a line's loop."""

    limit: int
    noise: RequestNoise
    cancelled: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class SpeechTokens:
    """Tokens of a line, int64 [n], and whether its whole text was spoken."""

    tokens: torch.Tensor
    ended: bool


class T3Decoder(Protocol):
    """A T3 with the KV cache of one line."""

    stop_token: int
    stops_from: int

    def start(self) -> torch.Tensor:
        """Read the prompt; the logits of the first token, [1, vocabulary]."""

    def step(self, token: torch.Tensor, position: int) -> torch.Tensor:
        """Read a token, [1, 1], at a position from 1; the logits of the next one."""

    def weigh(self, logits: torch.Tensor, tokens: Sequence[torch.Tensor]) -> torch.Tensor:
        """Apply sampling parameters to logits, given the tokens so far, [1, 1] each."""

    def cut(self, end: int) -> bool:
        """Whether the end at the token of this number was forced before the text was spoken."""


def generate_speech_tokens(decoder: T3Decoder, steps: T3LoopParams) -> SpeechTokens:
    """Generate a line's tokens, one by one."""
    chosen: list[torch.Tensor] = []
    logits = decoder.start()
    stream = steps.noise.generator(logits.device)
    pace = 1 if logits.device.type == "cpu" else _STOP_CHECK_STEPS
    while len(chosen) < steps.limit:
        if steps.cancelled():
            raise stop_error()
        shares = torch.softmax(decoder.weigh(logits, chosen), dim=-1)
        chosen.append(torch.multinomial(shares, num_samples=1, generator=stream))
        if len(chosen) % pace == 0:
            end = _find_end(chosen, decoder, len(chosen) - pace)
            if end is not None:
                return _join_tokens(chosen[:end], ended=not decoder.cut(end))
        if len(chosen) < steps.limit:
            logits = decoder.step(chosen[-1], len(chosen))
    end = _find_end(chosen, decoder, len(chosen) - len(chosen) % pace)
    return _join_tokens(chosen[:end], ended=end is not None and not decoder.cut(end))


def _find_end(chosen: Sequence[torch.Tensor], decoder: T3Decoder, looked_at: int) -> int | None:
    """Find the end token among the tokens not checked yet."""
    fresh = chosen[looked_at:]
    if not fresh:
        return None
    for place, token in enumerate(torch.cat(list(fresh), dim=1)[0].tolist(), start=looked_at):
        if token == decoder.stop_token and place >= decoder.stops_from:
            return place
    return None


def _join_tokens(chosen: Sequence[torch.Tensor], *, ended: bool) -> SpeechTokens:
    if not chosen:
        return SpeechTokens(torch.zeros(0, dtype=torch.long), ended)
    return SpeechTokens(torch.cat(list(chosen), dim=1)[0], ended)


class LlamaT3Decoder:
    """The English and the multilingual T3, with classifier-free guidance.

    At weight 0 the second row, which sees no text, is left out: it has no say then.
    """

    stops_from = 0

    def __init__(
        self,
        t3: Any,
        conditioning: Any,
        text: torch.Tensor,
        params: Any,
        *,
        ends: StopRule = StopRule.SPOKEN,
    ) -> None:
        """Prepare a line of text, int64 [1, n], with start and stop tokens."""
        self._ends = ends
        self._t3 = t3
        self._conditioning = conditioning
        self._text = text
        self._cfg_weight = float(params["cfg_weight"])
        self._rows = 2 if self._cfg_weight > 0 else 1
        self._cache: Any = None
        self._alignment: LineAlignmentMonitor | None = None
        self._temperature = float(params["temperature"])
        self._penalty = RepetitionPenaltyLogitsProcessor(float(params["repetition_penalty"]))
        self._filters = LogitsProcessorList(
            [MinPLogitsWarper(float(params["min_p"])), TopPLogitsWarper(float(params["top_p"]))]
        )
        self.stop_token: int = t3.hp.stop_speech_token
        self._start = torch.full_like(text[:, :1], t3.hp.start_speech_token)  # [1, 1]

    def start(self) -> torch.Tensor:
        """Run the prefill: conditioning, text, and the start-of-speech token twice."""
        t3 = self._t3
        embeds, before_text = t3.prepare_input_embeds(
            t3_cond=self._conditioning,
            text_tokens=self._text.expand(self._rows, -1),
            speech_tokens=self._start.expand(self._rows, -1),
            cfg_weight=self._cfg_weight,
        )  # [rows, prompt, dim]
        if t3.hp.is_multilingual and self._text.size(1) > UNMONITORED_TEXT_TOKENS:
            place = slice(before_text, before_text + self._text.size(1))
            self._alignment = LineAlignmentMonitor(place, self.stop_token, self._ends)
        return self._logits(torch.cat([embeds, self._embed(self._start, 0)], dim=1), self._start, 0)

    def step(self, token: torch.Tensor, position: int) -> torch.Tensor:
        """Read one token."""
        return self._logits(self._embed(token, position), token, position)

    def weigh(self, logits: torch.Tensor, tokens: Sequence[torch.Tensor]) -> torch.Tensor:
        """Apply repetition penalty, temperature, min-p and top-p."""
        history = torch.cat([self._start, *tokens], dim=1)
        logits = self._penalty(history, logits)
        if self._temperature != 1.0:
            logits = logits / self._temperature
        return self._filters(history, logits)

    def _embed(self, token: torch.Tensor, position: int) -> torch.Tensor:
        embed = self._t3.speech_emb(token) + self._t3.speech_pos_emb.get_fixed_embedding(position)
        return embed.expand(self._rows, -1, -1)  # [rows, 1, dim]

    def cut(self, end: int) -> bool:
        """Whether the package's stop rule ended the line too early."""
        return self._alignment is not None and self._alignment.cut(end)

    def _logits(self, embeds: torch.Tensor, token: torch.Tensor, frame: int) -> torch.Tensor:
        watched = {} if self._alignment is None else {"alignment": self._alignment}
        read = self._t3.tfmr(
            inputs_embeds=embeds, past_key_values=self._cache, use_cache=True, **watched
        )
        self._cache = read.past_key_values
        logits = self._t3.speech_head(read.last_hidden_state[:, -1])  # [rows, vocabulary]
        if self._rows == 2:
            logits = logits[:1] + self._cfg_weight * (logits[:1] - logits[1:])
        if self._alignment is not None:
            logits = self._alignment.apply_rules(logits, token, frame)
        return logits


class Gpt2T3Decoder:
    """The turbo T3. As in the package, its first token can't be the end."""

    stops_from = 1

    def __init__(self, t3: Any, conditioning: Any, text: torch.Tensor, params: Any) -> None:
        self._t3 = t3
        self._conditioning = conditioning
        self._text = text
        self._cache: Any = None
        self._shaping = _turbo_processors(params)
        self.stop_token: int = t3.hp.stop_speech_token
        self._start = torch.full_like(text[:, :1], t3.hp.start_speech_token)  # [1, 1]

    def start(self) -> torch.Tensor:
        """Run the prefill: conditioning, text, and the start-of-speech token."""
        embeds, _ = self._t3.prepare_input_embeds(
            t3_cond=self._conditioning,
            text_tokens=self._text,
            speech_tokens=self._start,
            cfg_weight=0.0,
        )
        return self._logits(embeds)

    def step(self, token: torch.Tensor, position: int) -> torch.Tensor:
        """Read one token; the cache knows its position."""
        del position
        return self._logits(self._t3.speech_emb(token))

    def weigh(self, logits: torch.Tensor, tokens: Sequence[torch.Tensor]) -> torch.Tensor:
        """Apply temperature, top-k, top-p and repetition penalty."""
        history = torch.cat(list(tokens), dim=1) if tokens else self._start
        return self._shaping(history, logits)

    def cut(self, end: int) -> bool:
        """Always false: this model has no alignment monitor."""
        del end
        return False

    def _logits(self, embeds: torch.Tensor) -> torch.Tensor:
        read = self._t3.tfmr(inputs_embeds=embeds, past_key_values=self._cache, use_cache=True)
        self._cache = read.past_key_values
        return self._t3.speech_head(read.last_hidden_state[:, -1])


def _turbo_processors(params: Any) -> LogitsProcessorList:
    shaping = LogitsProcessorList()
    if params["temperature"] != 1.0:
        shaping.append(TemperatureLogitsWarper(float(params["temperature"])))
    shaping.append(TopKLogitsWarper(int(params["top_k"])))
    if params["top_p"] < 1.0:
        shaping.append(TopPLogitsWarper(float(params["top_p"])))
    if params["repetition_penalty"] != 1.0:
        shaping.append(RepetitionPenaltyLogitsProcessor(float(params["repetition_penalty"])))
    return shaping
