"""The two transformers of Qwen3-TTS with their weights packed for few, large multiplications.

The heads of each key-value group lie side by side as its query heads, its key and its value, so
that one multiplication makes all of them and attention reads them where they are. Any transformer
of the Llama family is packed like this.

Source: `Qwen3TTSTalkerModel` and `Qwen3TTSTalkerCodePredictorModel` of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from studio.backends.batched.parts import PLAIN, Parts
from studio.backends.batched.transformer import Attention, Turns, run
from studio.errors import ModelUnavailable

PREDICTOR_POSITIONS = 16
"""The state behind a frame's first code, that code, and 14 more; the last one is not read."""

_FEW_BLOCKS = 512  # positions that are turned for all layers at once; prompts have more


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One layer; every matrix is [out, in].

    Attributes:
        heads: [kv_heads * (group + 2) * head_dim, hidden].
        norms_heads: Whether queries and keys have a norm; its scale is in the stack's turns.
        out: Reads heads as attention leaves them: the first of every group, then the second.
        gate_up: [2 * feed_forward, hidden].
        eps: Of norms.
        shape: Of heads: kv_heads, group + 2, head_dim.
    """

    before: torch.Tensor
    heads: torch.Tensor
    norms_heads: bool
    out: torch.Tensor
    between: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor
    eps: float
    shape: tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The layers of one transformer.

    Attributes:
        group: Query heads to a key-value head.
        rope: What turns a head at a position, by the half that is made and the half that is read:
            [positions, 2, 2, head_dim / 2].
        scales: Norms of the queries and the key, and 1 for the value, by halves:
            [layers, group + 2, 2, head_dim / 2]; None where heads have no norm.
        parts: What a layer is made of.
    """

    layers: tuple[Layer, ...]
    norm: torch.Tensor
    rope: torch.Tensor
    scales: torch.Tensor | None
    kv_heads: int
    group: int
    head_dim: int
    parts: Parts = PLAIN

    def read(self, x: torch.Tensor, at: torch.Tensor, attend: Attention) -> torch.Tensor:
        """Pass rows at positions through all layers; see `Backbone`."""
        width = self.kv_heads * (self.group + 2) * self.head_dim
        return run(self, x, self.turns(at), attend, lambda _: x.new_empty(2, len(x), width))

    def turns(self, at: torch.Tensor) -> Turns:
        """What rotates heads at positions: int64 [blocks]; for all layers at once where few."""
        rope = self.rope[at][:, None, None, None]  # [blocks, 1, 1, 1, 2, 2, head_dim / 2]
        if self.scales is None:
            return [rope] * len(self.layers)
        scales = self.scales[:, None, None, None, :, None]
        if len(at) <= _FEW_BLOCKS:
            return (rope * scales).unbind()
        return _Turned(rope, scales)


class _Turned(Sequence[torch.Tensor]):
    """The turns of many positions, a layer at a time: those of all would fill the memory."""

    def __init__(self, rope: torch.Tensor, scales: torch.Tensor) -> None:
        self._rope = rope
        self._scales = scales

    def __len__(self) -> int:
        return len(self._scales)

    def __getitem__(self, index: Any) -> Any:
        return self._rope * self._scales[index]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Everything a frame needs of a checkpoint.

    Attributes:
        head: Scores of a frame's first code: [vocabulary, hidden].
        banned: 0, and minus infinity for the commands that are no sounds: float32 [vocabulary].
        tables: Embeddings of all groups below each other: [vocabulary + rest, hidden].
        offsets: Where each group begins in `tables`: int64 [groups].
        rest_heads: One a group after the first: [codes, predictor hidden].
        rest_first: First codes as the predictor reads them: [vocabulary, predictor hidden].
        rest_tables: The other codes as it reads them, the last group left out.
        project: The talker's states as it reads them; None where both have the same size.
        end: The code that ends a line.
    """

    talker: Stack
    predictor: Stack
    head: torch.Tensor
    banned: torch.Tensor
    tables: torch.Tensor
    offsets: torch.Tensor
    rest_heads: tuple[torch.Tensor, ...]
    rest_first: torch.Tensor
    rest_tables: tuple[torch.Tensor, ...]
    project: tuple[torch.Tensor, torch.Tensor] | None
    end: int

    @property
    def groups(self) -> int:
        """Codes in a frame."""
        return len(self.rest_heads) + 1

    @property
    def hidden(self) -> int:
        """Width of the talker."""
        return self.head.shape[1]

    def made_of(self, parts: Parts) -> Weights:
        """The same weights for a step of other parts."""
        talker, predictor = (replace(one, parts=parts) for one in (self.talker, self.predictor))
        return replace(self, talker=talker, predictor=predictor)


_RESERVED = 1_024  # numbers at the vocabulary's end that are commands, not sounds


def pack(talker: Any, positions: int, *, release: bool = False) -> Weights:
    """Pack a talker and its predictor.

    Args:
        talker: The package's `Qwen3TTSTalkerForConditionalGeneration`.
        positions: How far its cache reaches.
        release: Take its layers away, layer by layer, so that they aren't held twice. It can't
            run by itself then; prompts can still be laid out with it.

    Raises:
        ModelUnavailable: The checkpoint has a part that this way of running it doesn't know.
    """
    config, predictor = talker.config, talker.code_predictor
    _check(config)
    with torch.no_grad():
        first = talker.model.codec_embedding.weight
        rest = [table.weight for table in predictor.model.codec_embedding]
        project = predictor.small_to_mtp_projection
        return Weights(
            talker=stack_of(talker.model, config, positions, release=release),
            predictor=stack_of(
                predictor.model, predictor.config, PREDICTOR_POSITIONS, release=release
            ),
            head=talker.codec_head.weight.detach(),
            banned=_banned(config, talker.device),
            tables=torch.cat([first, *rest]).detach(),
            offsets=_offsets(first, rest),
            rest_heads=tuple(head.weight.detach() for head in predictor.lm_head),
            rest_first=project(first).detach(),
            rest_tables=tuple(project(table).detach() for table in rest[:-1]),
            project=_projection(project),
            end=int(config.codec_eos_token_id),
        )


def _check(config: Any) -> None:
    """Refuse what none of the released checkpoints has, rather than speak it wrongly."""
    for part in (config, config.code_predictor_config):
        if part.attention_bias or part.sliding_window is not None or part.hidden_act != "silu":
            raise ModelUnavailable(
                "This Qwen3-TTS checkpoint has attention that the batched backend doesn't know. "
                "Set TTS_BACKEND=qwen3, which runs it one line at a time."
            )


def stack_of(model: Any, config: Any, positions: int, *, release: bool) -> Stack:
    """Pack the layers of a transformer of the Llama family.

    Args:
        model: With `layers`, `norm` and `rotary_emb`, as the transformers package names them.
        config: Its dimensions.
        positions: How far its cache reaches.
        release: Take each layer away when it is packed.
    """
    kv_heads, head_dim = config.num_key_value_heads, config.head_dim
    group = config.num_attention_heads // kv_heads
    layers, scales = [], []
    for index, module in enumerate(model.layers):
        layers.append(_layer(module, (kv_heads, group + 2, head_dim), config.rms_norm_eps))
        scales.append(_head_scale(module.self_attn, group))
        if release:
            model.layers[index] = torch.nn.Identity()
    rope = _rope(model, positions)
    norm = model.norm.weight.detach()
    return Stack(tuple(layers), norm, rope, _scales(scales), kv_heads, group, head_dim)


def _layer(module: Any, shape: tuple[int, int, int], eps: float) -> Layer:
    attention, feed = module.self_attn, module.mlp
    kv_heads, group, head_dim = shape[0], shape[1] - 2, shape[2]
    out = attention.o_proj.weight.detach()
    parts = [
        attention.q_proj.weight.view(kv_heads, group, head_dim, -1),
        attention.k_proj.weight.view(kv_heads, 1, head_dim, -1),
        attention.v_proj.weight.view(kv_heads, 1, head_dim, -1),
    ]
    return Layer(
        before=module.input_layernorm.weight.detach(),
        heads=torch.cat(parts, dim=1).flatten(0, 2),
        norms_heads=hasattr(attention, "q_norm"),
        out=out.unflatten(1, (kv_heads, group, -1)).transpose(1, 2).flatten(1).contiguous(),
        between=module.post_attention_layernorm.weight.detach(),
        gate_up=torch.cat([feed.gate_proj.weight, feed.up_proj.weight]),
        down=feed.down_proj.weight.detach(),
        eps=eps,
        shape=shape,
    )


def _head_scale(attention: Any, group: int) -> torch.Tensor | None:
    if not hasattr(attention, "q_norm"):
        return None
    queries, key = attention.q_norm.weight, attention.k_norm.weight
    return torch.stack([*[queries] * group, key, torch.ones_like(key)]).detach()


def _scales(scales: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
    known = [scale for scale in scales if scale is not None]
    return torch.stack(known).unflatten(2, (2, -1)) if known else None


def _rope(model: Any, positions: int) -> torch.Tensor:
    """The package's own tables; all three of the talker's axes count the same positions."""
    weight = model.norm.weight
    at = torch.arange(positions, device=weight.device)[None]
    axes = at.expand(3, 1, -1) if hasattr(model, "text_embedding") else at
    cos, sin = (table.view(-1, positions, table.shape[-1])[0] for table in _turns(model, axes))
    (low, high), (low_sin, high_sin) = cos.chunk(2, dim=1), sin.chunk(2, dim=1)
    made_low, made_high = torch.stack([low, -low_sin], 1), torch.stack([high_sin, high], 1)
    return torch.stack([made_low, made_high], dim=1)  # [positions, made, read, head_dim / 2]


def _turns(model: Any, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return model.rotary_emb(model.norm.weight, positions)


def _banned(config: Any, device: torch.device) -> torch.Tensor:
    banned = torch.zeros(config.vocab_size, device=device)
    banned[-_RESERVED:] = -torch.inf
    banned[config.codec_eos_token_id] = 0.0
    return banned


def _offsets(first: torch.Tensor, rest: list[torch.Tensor]) -> torch.Tensor:
    sizes = torch.tensor([0, len(first), *(len(table) for table in rest[:-1])])
    return sizes.cumsum(0).to(first.device)


def _projection(project: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    if isinstance(project, torch.nn.Identity):
        return None
    return project.weight.detach(), project.bias.detach()
