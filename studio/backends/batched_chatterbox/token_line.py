"""A Chatterbox line: as it is asked for, and as the core takes it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import torch

from studio.backends.chatterbox.conditioning import ClonedVoice


@dataclass(frozen=True, slots=True)
class TokenSampling:
    """How a token is chosen; a model leaves aside what it doesn't know.

    Attributes:
        top_k: Turbo's.
        min_p: Of models with guidance.
        cfg_weight: Of guidance.
    """

    temperature: float = 0.8
    top_p: float = 1.0
    repetition_penalty: float = 1.2
    top_k: int = 1_000
    min_p: float = 0.0
    cfg_weight: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class TokenPrompt:
    """What T3 reads before the first token.

    Attributes:
        embeds: [rows, positions, hidden]; the second row of guidance sees no text.
        voice: Whose.
        shared: Positions at the start that all prompts of `part` have in common.
        part: What they are known by, as long as `voice` is held.
        text_tokens: Positions of text, which come next.
    """

    embeds: torch.Tensor
    voice: ClonedVoice
    shared: int
    part: Hashable
    text_tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenAdmission:
    """One line for one slot.

    Attributes:
        slot: A free one.
        prompt: From the core's `prompt`.
        sampling: Of its tokens.
        seed: Any integer; the same gives the same noise in any company.
        max_frames: The line's own bound in tokens.
    """

    slot: int
    prompt: TokenPrompt
    sampling: TokenSampling
    seed: int
    max_frames: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenTask:
    """What is to be made; see `studio.backends.batched.line.Task`.

    Attributes:
        text: int64 [1, n], from `ChatterboxModel.text_tokens`.
        voice: Whose; the same object for all lines of a speaker, since its prompt is kept by it.
        exaggeration: Of models with guidance.
        sampling: Of its tokens.
        seed: Of its tokens and of its sound.
        max_frames: Tokens after which a line that doesn't end is cut.
        expected_frames: How long it will probably become.
        cancelled: Polled before every token and at every step of the sound.
        urgency: See `SpeechRequest`.
    """

    text: torch.Tensor
    voice: ClonedVoice
    exaggeration: float
    sampling: TokenSampling
    seed: int
    max_frames: int
    expected_frames: int
    cancelled: Callable[[], bool] = field(default=lambda: False)
    urgency: Callable[[], int | None] = field(default=lambda: None)

    def admission(self, core: Any, slot: int) -> TokenAdmission:
        """The line as `TokenCore` takes it."""
        return TokenAdmission(
            slot=slot,
            prompt=core.prompt(self.text, self.voice, self.exaggeration),
            sampling=self.sampling,
            seed=self.seed,
            max_frames=min(self.max_frames, core.layout.max_frames),
        )
