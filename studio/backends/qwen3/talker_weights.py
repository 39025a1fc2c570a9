"""Talker and code predictor of Qwen3-TTS with packed weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from studio.backends.batching.decoder_stack import (
    DecoderStack,
    KernelSet,
    Matrix,
    PackFn,
    keep_matrix,
    pack_stack,
)
from studio.backends.batching.runner_contract import BatchingUnavailable
from studio.backends.qwen3.checkpoint import COMMAND_CODES

# The two transformers of Qwen3-TTS with their weights packed for few, large multiplications.
#
# The heads of each key-value group lie side by side as its query heads, its key and its value, so
# that one multiplication makes all of them and attention reads them where they are. Any transformer
# of the Llama family is packed like this.
#
# Source: `Qwen3TTSTalkerModel` and `Qwen3TTSTalkerCodePredictorModel` of qwen-tts-hf 0.1.1.post1.

PREDICTOR_POSITIONS = 16
"""The state behind a frame's first code, that code, and 14 more; the last one is not read."""


@dataclass(frozen=True, slots=True, eq=False)
class TalkerWeights:
    """A checkpoint's weights, packed as a frame needs them.

    Attributes:
        head: Scores of a frame's first code: [vocabulary, hidden].
        banned: 0, and minus infinity for the commands that are no sounds: float32 [vocabulary].
        tables: Embeddings of all groups below each other: [vocabulary + rest, hidden].
        offsets: Where each group begins in `tables`: int64 [groups].
        rest_heads: One a group after the first: [codes, predictor hidden].
        rest_first: First codes as the predictor reads them: [vocabulary, predictor hidden].
        rest_tables: The other codes as it reads them, the last group left out.
        project: The talker's states as it reads them; None where both have the same size.
    """

    talker: DecoderStack
    predictor: DecoderStack
    head: Matrix
    banned: torch.Tensor
    tables: torch.Tensor
    offsets: torch.Tensor
    rest_heads: tuple[Matrix, ...]
    rest_first: torch.Tensor
    rest_tables: tuple[torch.Tensor, ...]
    project: tuple[Matrix, torch.Tensor] | None
    end: int

    @property
    def groups(self) -> int:
        return len(self.rest_heads) + 1

    @property
    def hidden(self) -> int:
        return self.tables.shape[1]

    def with_kernels(self, kernels: KernelSet) -> TalkerWeights:
        """The same weights with other kernels."""
        talker, predictor = (replace(one, kernels=kernels) for one in (self.talker, self.predictor))
        return replace(self, talker=talker, predictor=predictor)


_ROPE_AXES = 3  # of the talker's positions; the predictor's have one


def pack_talker(
    talker: Any, positions: int, *, release: bool = False, pack: PackFn = keep_matrix
) -> TalkerWeights:
    """Pack a talker and its predictor.

    `release` takes its layers away one by one, so that they aren't held twice; prompts can still be
    laid out with it. `pack` is for each matrix; embeddings stay as they are.
    """
    config, predictor = talker.config, talker.code_predictor
    _check_supported(config)
    with torch.no_grad():
        first = talker.model.codec_embedding.weight
        rest = [table.weight for table in predictor.model.codec_embedding]
        project = predictor.small_to_mtp_projection
        sizes = torch.tensor([0, len(first), *map(len, rest[:-1])])
        return TalkerWeights(
            talker=pack_stack(
                talker.model,
                config,
                positions,
                release=release,
                rope_axes=_ROPE_AXES,
                pack=pack,
            ),
            predictor=pack_stack(
                predictor.model,
                predictor.config,
                PREDICTOR_POSITIONS,
                release=release,
                pack=pack,
            ),
            head=pack(talker.codec_head.weight.detach()),
            banned=_banned_codes(config, talker.device),
            tables=torch.cat([first, *rest]).detach(),
            offsets=sizes.cumsum(0).to(first.device),
            rest_heads=tuple(pack(head.weight.detach()) for head in predictor.lm_head),
            rest_first=project(first).detach(),
            rest_tables=tuple(project(table).detach() for table in rest[:-1]),
            project=_pack_projection(project, pack),
            end=int(config.codec_eos_token_id),
        )


def _check_supported(config: Any) -> None:
    """Refuse what none of the released checkpoints has, rather than speak it wrongly.

    The line-by-line runner takes over, which is the package's own.
    """
    for part in (config, config.code_predictor_config):
        if part.attention_bias or part.sliding_window is not None or part.hidden_act != "silu":
            raise BatchingUnavailable(
                "This Qwen3-TTS checkpoint has attention that the batched talker doesn't know."
            )


def _banned_codes(config: Any, device: torch.device) -> torch.Tensor:
    banned = torch.zeros(config.vocab_size, device=device)
    banned[-COMMAND_CODES:] = -torch.inf
    banned[config.codec_eos_token_id] = 0.0
    return banned


def _pack_projection(project: Any, pack: PackFn) -> tuple[Matrix, torch.Tensor] | None:
    if isinstance(project, torch.nn.Identity):
        return None
    return pack(project.weight.detach()), project.bias.detach()
