"""Prompts of many lines of few voices: what a voice's lines share is laid out once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch

from studio.backends.batched.kept_parts import KeptParts
from studio.backends.batched.sending import sent
from studio.backends.qwen3.prompt import (
    LINE_END_TOKENS,
    ROLE_TOKENS,
    TRANSCRIPT_END_TOKENS,
    Prompt,
    PromptBuilder,
)
from studio.backends.qwen3.voice import Qwen3Voice

KEPT = 512
"""Parts; each is some kilobytes, a sample's up to a megabyte."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedPrompt(Prompt):
    """A prompt, and what of it is the voice's alone.

    Attributes:
        voice: Whose.
        shared: Positions at the start that all prompts of `part` have in common.
        part: What they are known by, as long as `voice` is held.
    """

    voice: Qwen3Voice
    shared: int
    part: Hashable


class SharedPrompts(PromptBuilder):
    """Lays out prompts and keeps the parts that come again.

    Kept are all before the line's own words, and the codes and transcript of a sample. Parts are
    known by the voice they were made from, which is held as long as they are.
    """

    def __init__(self, model: Any, kept: int = KEPT) -> None:
        """Begin with nothing.

        Args:
            model: The package's `Qwen3TTSForConditionalGeneration`.
            kept: Parts to keep; the one longest unused goes first.
        """
        super().__init__(model)
        self._parts = KeptParts(kept)

    @property
    def computed(self) -> int:
        """Parts that were made so far."""
        return self._parts.computed

    @property
    def kept(self) -> int:
        """Parts at hand."""
        return len(self._parts)

    def build(self, line: torch.Tensor, voice: Qwen3Voice, language: str | None) -> SharedPrompt:
        """Lay out one line; see `PromptBuilder.build`."""
        part = (id(voice), language)
        bos, eos, pad = self._parts.once("marks", None, self._marks).chunk(3, dim=1)
        # The role at a line's start is the same in every line.
        start = self._parts.once(
            ("start", *part),
            voice,
            lambda: self._start(line[:ROLE_TOKENS], voice, language, bos=bos, pad=pad),
        )
        words = line[ROLE_TOKENS:-LINE_END_TOKENS]
        if voice.ref_codes is not None:
            body, trailing = self._after_sample(words, voice, eos, pad)
        elif voice.embedding is not None:
            text = torch.cat([self._text(words), eos], dim=1)
            body, trailing = text[:, :1] + self._code([self._codec_ids.codec_bos_id]), text[:, 1:]
        else:
            body, trailing = self._whole_text(words, eos, pad), pad
        shared = start.shape[1] + min(len(_transcript(voice)), body.shape[1] - 1)
        return SharedPrompt(torch.cat([start, body], dim=1), trailing, pad, voice, shared, part)

    def _marks(self) -> torch.Tensor:
        ids = self._ids
        return self._text([ids.tts_bos_token_id, ids.tts_eos_token_id, ids.tts_pad_token_id])

    def _start(
        self,
        role: torch.Tensor,
        voice: Qwen3Voice,
        language: str | None,
        *,
        bos: torch.Tensor,
        pad: torch.Tensor,
    ) -> torch.Tensor:
        """Instruction, role, language and speaker: [1, positions, hidden]."""
        codec = self._codec_head(voice, language)
        over_codec = torch.cat([pad.expand(-1, codec.shape[1] - 2, -1), bos], dim=1)
        parts = [self._text(role), over_codec + codec[:, :-1]]
        if voice.instruction is not None:
            parts.insert(0, self._text(voice.instruction))
        return torch.cat(parts, dim=1)

    def _after_sample(
        self, words: torch.Tensor, voice: Qwen3Voice, eos: torch.Tensor, pad: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Transcript and line over the sample's codes, and what of them is left over."""
        said = self._parts.once(("said", id(voice)), voice, lambda: self._said(voice))
        codes = self._parts.once(("heard", id(voice)), voice, lambda: self._heard(voice))
        text = torch.cat([said, self._text(words), eos], dim=1)
        lacking = codes.shape[1] - text.shape[1]
        if lacking < 0:
            return text[:, :lacking] + codes, text[:, lacking:]
        return torch.cat([text, pad.expand(-1, lacking, -1)], dim=1) + codes, pad

    def _said(self, voice: Qwen3Voice) -> torch.Tensor:
        return self._text(_transcript(voice))

    def _heard(self, voice: Qwen3Voice) -> torch.Tensor:
        assert voice.ref_codes is not None
        start = self._code([self._codec_ids.codec_bos_id])
        return torch.cat([start, self._sample(voice.ref_codes)], dim=1)

    def _text(self, ids: list[int] | torch.Tensor) -> torch.Tensor:
        numbers = sent(torch.as_tensor(ids), self._talker.device)
        return self._talker.text_projection(self._talker.get_text_embeddings()(numbers))[None]

    def _code(self, ids: list[int]) -> torch.Tensor:
        return self._talker.get_input_embeddings()(sent(torch.tensor([ids]), self._talker.device))


def _transcript(voice: Qwen3Voice) -> torch.Tensor:
    """What the sample says, which lies over its codes before the line's own words: int64 [n]."""
    if voice.ref_codes is None:
        return torch.zeros(0, dtype=torch.long)
    assert voice.ref_tokens is not None
    return voice.ref_tokens[ROLE_TOKENS:-TRANSCRIPT_END_TOKENS]
