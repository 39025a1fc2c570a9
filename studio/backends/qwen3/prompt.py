"""Prompts of Qwen3-TTS as embeddings; what all lines of a voice share is built once."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from studio.backends.batching.prefill import EmbeddingCache
from studio.backends.batching.slots import to_device


class Qwen3Tokenizer:
    """The checkpoint's tokenizer, safe from many threads."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._commands = tuple(tokenizer.get_added_vocab())
        # The tokenizer sets padding on itself at each call; two at once fail as "already borrowed".
        self._lock = threading.Lock()

    def line(self, text: str) -> torch.Tensor:
        """A line to speak: int64 [tokens]; the first 3 and the last 5 are its roles."""
        return self._numbers(
            f"<|im_start|>assistant\n{self._plain(text)}<|im_end|>\n<|im_start|>assistant\n"
        )

    def transcript(self, text: str) -> torch.Tensor:
        """A sample's transcript: int64 [tokens]; the first 3 and the last 2 are its role."""
        return self._numbers(f"<|im_start|>assistant\n{self._plain(text)}<|im_end|>\n")

    def instruction(self, text: str) -> torch.Tensor:
        """An instruction on how to speak: int64 [tokens]."""
        return self._numbers(f"<|im_start|>user\n{self._plain(text)}<|im_end|>\n")

    def _plain(self, text: str) -> str:
        """Break up control tokens of the model in a person's text, such as the end of a role."""
        for command in self._commands:
            text = text.replace(command, f"{command[0]} {command[1:]}")
        return text.strip()

    def _numbers(self, text: str) -> torch.Tensor:
        with self._lock:
            return torch.tensor(self._tokenizer(text)["input_ids"], dtype=torch.long)


_PRESET = "preset"


@dataclass(frozen=True, slots=True, eq=False)
class Qwen3Voice:
    """A speaker's voice as the model takes it; all on the CPU, a few kilobytes.

    Attributes:
        preset: One of the checkpoint's own voices.
        instruction: Words on the voice or the manner: int64 [tokens].
        embedding: The timbre of a sample: float32 [hidden].
        ref_codes: The sample in the codec's codes: int64 [frames, groups]; with it the model goes
            on from the sample rather than from its timbre alone.
        ref_tokens: The sample's transcript: int64 [tokens]; there when `ref_codes` is.
    """

    preset: str | None = None
    instruction: torch.Tensor | None = None
    embedding: torch.Tensor | None = None
    ref_codes: torch.Tensor | None = None
    ref_tokens: torch.Tensor | None = None

    @property
    def size_bytes(self) -> int:
        return 256 + sum(tensor.nbytes for tensor in self._tensors().values())

    def write(self, path: Path) -> None:
        """Write as safetensors."""
        save_file(self._tensors(), path, metadata={_PRESET: self.preset or ""})

    @classmethod
    def read(cls, path: Path) -> Qwen3Voice:
        """Read what `write` wrote."""
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return cls(preset=file.metadata()[_PRESET] or None, **tensors)

    def _tensors(self) -> dict[str, torch.Tensor]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.contiguous() for name, value in values.items() if torch.is_tensor(value)
        }


# The prompt of Qwen3-TTS: text and codes laid over each other, as embeddings.
#
# Every position is the sum of a text embedding and a codec embedding. What of the text doesn't fit
# into the prompt is added to the frames as they are made, one token a frame.
#
# Source: `Qwen3TTSForConditionalGeneration.generate` and `generate_icl_prompt` of qwen-tts-hf
# 0.1.1.post1, for a batch of one. Nothing here changes the model.

ROLE_TOKENS = 3
LINE_END_TOKENS = 5
TRANSCRIPT_END_TOKENS = 2


@dataclass(frozen=True, slots=True, eq=False)
class TalkerPrompt:
    """The prompt before the first frame, and the text that goes with each frame.

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
    """Builds prompts for one loaded model; caches nothing."""

    def __init__(self, model: Any) -> None:
        self._talker = model.talker
        self._ids = model.config
        self._codec_ids = model.config.talker_config
        self._dialects = model.config.talker_config.spk_is_dialect or {}

    def build(self, line: torch.Tensor, voice: Qwen3Voice, language: str | None) -> TalkerPrompt:
        """Build the prompt of `Qwen3Tokenizer.line`; without a language the model detects it."""
        bos, eos, pad = self._marks().chunk(3, dim=1)
        start = self._start(line[:ROLE_TOKENS], voice, language, bos=bos, pad=pad)
        words = line[ROLE_TOKENS:-LINE_END_TOKENS]
        if voice.ref_codes is not None:
            body, trailing = self._after_sample(words, voice, eos, pad)
        elif voice.embedding is not None:
            body = self._text(words[:1]) + self._code([self._codec_ids.codec_bos_id])
            trailing = torch.cat([self._text(words[1:]), eos], dim=1)
        else:
            body, trailing = self._whole_text(words, eos, pad), pad
        return TalkerPrompt(torch.cat([start, body], dim=1), trailing, pad)

    def _marks(self) -> torch.Tensor:
        """The text's start, end and padding tokens: [1, 3, hidden]."""
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
        codec = self._codec_head(voice, language)  # [1, n, hidden], the last one is its start
        over_codec = torch.cat([pad.expand(-1, codec.shape[1] - 2, -1), bos], dim=1)
        parts = [self._text(role), over_codec + codec[:, :-1]]
        if voice.instruction is not None:
            parts.insert(0, self._text(voice.instruction))
        return torch.cat(parts, dim=1)

    def _codec_head(self, voice: Qwen3Voice, language: str | None) -> torch.Tensor:
        """Language, speaker, and the two codes that start the audio: [1, n, hidden]."""
        ids = self._codec_ids
        language_id = self._language_id(voice, language)
        if language_id is None:
            think = [ids.codec_nothink_id, ids.codec_think_bos_id, ids.codec_think_eos_id]
        else:
            begin, end = ids.codec_think_bos_id, ids.codec_think_eos_id
            think = [ids.codec_think_id, begin, language_id, end]
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
        """Transcript and line added to the sample's codes, and the text that is left over."""
        text = self._text(torch.cat([_transcript_tokens(voice), words]))
        return _lay_over(torch.cat([text, eos], dim=1), self._sample_embeds(voice), pad)

    def _whole_text(
        self, words: torch.Tensor, eos: torch.Tensor, pad: torch.Tensor
    ) -> torch.Tensor:
        """The whole text before the first frame."""
        ids = self._codec_ids
        text = torch.cat([self._text(words), eos], dim=1) + self._code([ids.codec_pad_id])
        return torch.cat([text, pad + self._code([ids.codec_bos_id])], dim=1)

    def _sample_embeds(self, voice: Qwen3Voice) -> torch.Tensor:
        """A start token and a sample's frames, summed over codebooks: [1, frames + 1, hidden]."""
        assert voice.ref_codes is not None
        groups = voice.ref_codes.to(self._talker.device).unbind(dim=1)
        first = self._talker.get_input_embeddings()(groups[0])
        tables = self._talker.code_predictor.get_input_embeddings()
        rest = [table(group) for table, group in zip(tables, groups[1:], strict=True)]
        frames = torch.stack([first, *rest]).sum(dim=0).unsqueeze(0)
        return torch.cat([self._code([self._codec_ids.codec_bos_id]), frames], dim=1)

    def _text(self, ids: list[int] | torch.Tensor) -> torch.Tensor:
        numbers = to_device(torch.as_tensor(ids), self._talker.device)
        return self._talker.text_projection(self._talker.get_text_embeddings()(numbers))[None]

    def _code(self, ids: list[int]) -> torch.Tensor:
        numbers = to_device(torch.tensor([ids]), self._talker.device)
        return self._talker.get_input_embeddings()(numbers)


def _transcript_tokens(voice: Qwen3Voice) -> torch.Tensor:
    """The sample's transcript, which lies over its codes before the line's own words: int64 [n]."""
    if voice.ref_codes is None:
        return torch.zeros(0, dtype=torch.long)
    assert voice.ref_tokens is not None
    return voice.ref_tokens[ROLE_TOKENS:-TRANSCRIPT_END_TOKENS]


def _lay_over(
    text: torch.Tensor, codes: torch.Tensor, pad: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Text added to a sample's codes, and the rest of the text, which goes with the frames."""
    lacking = codes.shape[1] - text.shape[1]
    if lacking < 0:
        return text[:, :lacking] + codes, text[:, lacking:]
    return torch.cat([text, pad.expand(-1, lacking, -1)], dim=1) + codes, pad


MAX_CACHED_PARTS = 512
"""Parts; each is some kilobytes, a sample's up to a megabyte."""


@dataclass(frozen=True, slots=True, eq=False)
class PrefixedPrompt(TalkerPrompt):
    """A prompt, and how much of its start depends on the voice alone.

    Attributes:
        shared: Positions at the start that all prompts of `part` have in common.
        part: What they are known by, as long as `voice` is held.
    """

    voice: Qwen3Voice
    shared: int
    part: Hashable


class CachingPromptBuilder(PromptBuilder):
    """Builds prompts and caches the parts that prompts of a voice share.

    Kept are all before the line's own words, and the codes and transcript of a sample. Parts are
    known by the voice they were made from, which is held as long as they are.
    """

    def __init__(self, model: Any, kept: int = MAX_CACHED_PARTS) -> None:
        super().__init__(model)
        self._parts = EmbeddingCache(kept)

    @property
    def computed(self) -> int:
        return self._parts.computed

    def build(self, line: torch.Tensor, voice: Qwen3Voice, language: str | None) -> PrefixedPrompt:
        """Lay out one line; see `PromptBuilder.build`."""
        part = (id(voice), language)
        bos, eos, pad = self._parts.get_or_compute("marks", None, self._marks).chunk(3, dim=1)
        # The role at a line's start is the same in every line.
        start = self._parts.get_or_compute(
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
        shared = start.shape[1] + min(len(_transcript_tokens(voice)), body.shape[1] - 1)
        return PrefixedPrompt(torch.cat([start, body], dim=1), trailing, pad, voice, shared, part)

    def _after_sample(
        self, words: torch.Tensor, voice: Qwen3Voice, eos: torch.Tensor, pad: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        spoken = self._parts.get_or_compute(
            ("transcript", id(voice)), voice, lambda: self._text(_transcript_tokens(voice))
        )
        codes = self._parts.get_or_compute(
            ("sample", id(voice)), voice, lambda: self._sample_embeds(voice)
        )
        return _lay_over(torch.cat([spoken, self._text(words), eos], dim=1), codes, pad)
