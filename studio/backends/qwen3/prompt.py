"""The prompt of Qwen3-TTS: text and codes laid over each other, as embeddings.

Every position is the sum of a text embedding and a codec embedding. What of the text doesn't fit
into the prompt is added to the frames as they are made, one token a frame.

Source: `Qwen3TTSForConditionalGeneration.generate` and `generate_icl_prompt` of qwen-tts-hf
0.1.1.post1, for a batch of one. Nothing here changes the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from studio.backends.qwen3.voice import Qwen3Voice

ROLE_TOKENS = 3
LINE_END_TOKENS = 5
TRANSCRIPT_END_TOKENS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """What the talker is given before the first frame, and with each frame.

    Attributes:
        embeds: [1, positions, hidden].
        trailing: Text for the first frames: [1, frames, hidden].
        pad: Text for all frames after those: [1, 1, hidden].
    """

    embeds: torch.Tensor
    trailing: torch.Tensor
    pad: torch.Tensor

    def text_of_frame(self, frame: int) -> torch.Tensor:
        """The text embedding that goes with a frame, from 0: [1, 1, hidden]."""
        if frame < self.trailing.shape[1]:
            return self.trailing[:, frame : frame + 1]
        return self.pad


class PromptBuilder:
    """Lays out prompts for one loaded model; keeps nothing of them."""

    def __init__(self, model: Any) -> None:
        """Take the package's `Qwen3TTSForConditionalGeneration`."""
        self._talker = model.talker
        self._ids = model.config
        self._codec_ids = model.config.talker_config
        self._dialects = model.config.talker_config.spk_is_dialect or {}

    def build(self, line: torch.Tensor, voice: Qwen3Voice, language: str | None) -> Prompt:
        """Lay out one line.

        Args:
            line: int64 [tokens], from `Tokens.line`.
            voice: Whose.
            language: The model's own name; None lets it find out.
        """
        bos, eos, pad = self._text(
            [self._ids.tts_bos_token_id, self._ids.tts_eos_token_id, self._ids.tts_pad_token_id]
        ).chunk(3, dim=1)
        words = line[ROLE_TOKENS:-LINE_END_TOKENS]
        codec = self._codec_head(voice, language)  # [1, n, hidden], the last one is its start
        over_codec = torch.cat([pad.expand(-1, codec.shape[1] - 2, -1), bos], dim=1)
        parts = [self._text(line[:ROLE_TOKENS]), over_codec + codec[:, :-1]]
        if voice.instruction is not None:
            parts.insert(0, self._text(voice.instruction))
        if voice.ref_codes is not None:
            body, trailing = self._after_sample(words, voice, eos, pad)
        elif voice.embedding is not None:
            body = self._text(words[:1]) + codec[:, -1:]
            trailing = torch.cat([self._text(words[1:]), eos], dim=1)
        else:
            body, trailing = self._whole_text(words, eos, pad), pad
        return Prompt(torch.cat([*parts, body], dim=1), trailing, pad)

    def _codec_head(self, voice: Qwen3Voice, language: str | None) -> torch.Tensor:
        """Language, speaker, and the two codes with which codes begin: [1, n, hidden]."""
        ids = self._codec_ids
        language_id = self._language_id(voice, language)
        if language_id is None:
            think = [ids.codec_nothink_id, ids.codec_think_bos_id, ids.codec_think_eos_id]
        else:
            think = [
                ids.codec_think_id,
                ids.codec_think_bos_id,
                language_id,
                ids.codec_think_eos_id,
            ]
        parts = [self._code(think), self._code([ids.codec_pad_id, ids.codec_bos_id])]
        if voice.embedding is not None:
            timbre = voice.embedding.to(self._talker.device, self._talker.dtype)
            parts.insert(1, timbre.view(1, 1, -1))
        elif voice.preset is not None:
            number = ids.spk_id[voice.preset]  # a fine-tune's may be a list
            parts.insert(1, self._code(list(number) if isinstance(number, list) else [number]))
        return torch.cat(parts, dim=1)

    def _language_id(self, voice: Qwen3Voice, language: str | None) -> int | None:
        """The number of a language; a speaker of a dialect speaks Chinese in it."""
        dialect = self._dialects.get(voice.preset) if voice.preset else None
        if dialect and language in (None, "chinese"):
            language = dialect
        return None if language is None else int(self._codec_ids.codec_language_id[language])

    def _after_sample(
        self, words: torch.Tensor, voice: Qwen3Voice, eos: torch.Tensor, pad: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Transcript and line over the sample's codes, and what of them is left over."""
        assert voice.ref_codes is not None
        assert voice.ref_tokens is not None
        said = voice.ref_tokens[ROLE_TOKENS:-TRANSCRIPT_END_TOKENS]
        text = torch.cat([self._text(torch.cat([said, words])), eos], dim=1)
        start = self._code([self._codec_ids.codec_bos_id])
        codes = torch.cat([start, self._sample(voice.ref_codes)], dim=1)
        lacking = codes.shape[1] - text.shape[1]
        if lacking < 0:
            return text[:, :lacking] + codes, text[:, lacking:]
        return torch.cat([text, pad.expand(-1, lacking, -1)], dim=1) + codes, pad

    def _whole_text(
        self, words: torch.Tensor, eos: torch.Tensor, pad: torch.Tensor
    ) -> torch.Tensor:
        """All of the text before the first frame."""
        text = torch.cat([self._text(words), eos], dim=1) + self._code(
            [self._codec_ids.codec_pad_id]
        )
        return torch.cat([text, pad + self._code([self._codec_ids.codec_bos_id])], dim=1)

    def _sample(self, codes: torch.Tensor) -> torch.Tensor:
        """Frames as embeddings, summed over the codebooks: [1, frames, hidden]."""
        groups = codes.to(self._talker.device).unbind(dim=1)
        first = self._talker.get_input_embeddings()(groups[0])
        tables = self._talker.code_predictor.get_input_embeddings()
        rest = [table(group) for table, group in zip(tables, groups[1:], strict=True)]
        return torch.stack([first, *rest]).sum(dim=0).unsqueeze(0)

    def _text(self, ids: list[int] | torch.Tensor) -> torch.Tensor:
        numbers = torch.as_tensor(ids, device=self._talker.device)
        return self._talker.text_projection(self._talker.get_text_embeddings()(numbers))[None]

    def _code(self, ids: list[int]) -> torch.Tensor:
        numbers = torch.tensor([ids], device=self._talker.device)
        return self._talker.get_input_embeddings()(numbers)
