"""Prompts of T3: a voice's part is computed once, then the line's own words.

Source: `T3.prepare_input_embeds`, `T3.inference` and `T3.inference_turbo` of chatterbox-tts 0.1.7.
"""

from __future__ import annotations

from typing import Any

import torch

from studio.backends.batched.kept_parts import KeptParts
from studio.backends.batched.sending import sent
from studio.backends.batched_chatterbox.token_line import TokenPrompt
from studio.backends.chatterbox.conditioning import ClonedVoice

KEPT = 128
"""Voices, each with one exaggeration; a megabyte and a half at most."""


class TokenPrompts:
    """Lays out prompts for one loaded T3."""

    def __init__(self, t3: Any, dtype: torch.dtype) -> None:
        """Begin with nothing.

        Args:
            t3: The package's; its layers are not needed.
            dtype: Of the prompts.
        """
        self._t3 = t3
        self._dtype = dtype
        self._parts = KeptParts(KEPT)

    @property
    def computed(self) -> int:
        """Voices' parts that were made so far."""
        return self._parts.computed

    def build(self, text: torch.Tensor, voice: ClonedVoice, exaggeration: float) -> TokenPrompt:
        """Lay out one line.

        Args:
            text: int64 [1, n] on the host, as T3 reads it.
            voice: Whose.
            exaggeration: Of a model that has it.
        """
        t3, part = self._t3, (id(voice), exaggeration)
        device = t3.speech_emb.weight.device
        head = self._parts.once(
            part, voice, lambda: t3.prepare_conditioning(voice.to(device).for_t3(exaggeration))
        )
        ids = sent(text, device)
        words = t3.text_emb(ids)  # [1, n, hidden]
        starts = t3.speech_emb(sent(torch.tensor([[t3.hp.start_speech_token]]), device))
        if not t3.is_gpt:
            words = torch.cat([words, torch.zeros_like(words)]) + t3.text_pos_emb(ids)
            # The package reads the start of speech twice, at the same place of speech.
            starts = (starts + t3.speech_pos_emb.emb.weight[:1]).expand(-1, 2, -1)
        parts = [rows.expand(len(words), -1, -1) for rows in (head, words, starts)]
        embeds = torch.cat(parts, dim=1).to(self._dtype)
        return TokenPrompt(embeds, voice, head.shape[1], part, ids.shape[1])
