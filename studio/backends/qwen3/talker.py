"""Frames of one line, one after the other, with all state in the request.

The talker makes a frame's first code and then the code predictor the other 15. The package's own
`forward` of the talker keeps position offsets on the module (`rope_deltas`) and calls `generate`
on the predictor, which draws from the process's global chance: lines in flight at once would
change each other. So the modules below both are called here, with caches of the request's own.

Source: `Qwen3TTSTalkerForConditionalGeneration.forward` of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from transformers import DynamicCache

from studio.backends.qwen3.prompt import Prompt
from studio.backends.qwen3.request import FRAMES_PER_S
from studio.backends.qwen3.sampling import Sampler, first_code_rules
from studio.errors import SpeechFailed


class Steps(Protocol):
    """One way to run the two models; holds the state of one line."""

    def start(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read the prompt [1, positions, hidden]; returns the last hidden state [1, 1, hidden]."""
        ...

    def fill(self, hidden: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """The codes after a frame's first one.

        Args:
            hidden: The state that gave the first code: [1, 1, hidden].
            first: Its embedding: [1, 1, hidden].

        Returns:
            int64 [groups - 1].
        """
        ...

    def advance(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read one frame [1, 1, hidden]; returns the hidden state [1, 1, hidden]."""
        ...


class EagerSteps:
    """The package's modules as they are; any number of lines at once."""

    def __init__(self, talker: Any, sampler: Sampler) -> None:
        """Begin a line.

        Args:
            talker: The package's `Qwen3TTSTalkerForConditionalGeneration`; only read.
            sampler: The line's own.
        """
        self._talker = talker
        self._sampler = sampler
        self._cache = DynamicCache()

    def start(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read the prompt; see `Steps`."""
        return self.advance(embeds)

    def advance(self, embeds: torch.Tensor) -> torch.Tensor:
        """Read positions; see `Steps`. Without positions given, the talker counts the cache's."""
        out = self._talker.model(inputs_embeds=embeds, past_key_values=self._cache, use_cache=True)
        return out.last_hidden_state[:, -1:]

    def fill(self, hidden: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """Run the predictor; see `Steps`."""
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


class Line:
    """One line in the making."""

    def __init__(self, talker: Any, prompt: Prompt, sampler: Sampler, steps: Steps) -> None:
        """Begin with a prompt; nothing is computed yet."""
        self._talker = talker
        self._prompt = prompt
        self._sampler = sampler
        self._steps = steps
        self._rules = first_code_rules(talker.config, sampler.sampling, prompt.embeds.device)
        self._end = talker.config.codec_eos_token_id

    def frames(self, max_frames: int) -> Iterator[torch.Tensor]:
        """Make frames until the line ends by itself.

        Yields:
            int64 [groups].

        Raises:
            SpeechFailed: It didn't end within `max_frames`, all of which were yielded.
        """
        said = torch.zeros(1, 0, dtype=torch.long, device=self._prompt.embeds.device)
        hidden = self._begin()
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

    def _begin(self) -> torch.Tensor:
        with torch.inference_mode():
            return self._steps.start(self._prompt.embeds)

    def _first(self, hidden: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            logits = self._talker.codec_head(hidden[:, -1]).float()  # [1, vocabulary]
            return self._sampler.first(self._rules(said, logits))

    def _is_end(self, first: torch.Tensor) -> bool:
        """The one value that the host has to read in a frame: whether to go on."""
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
            heard = summed + self._prompt.text_of_frame(frame)
            return torch.cat([first, rest]), self._steps.advance(heard)
