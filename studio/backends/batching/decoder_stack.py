"""A transformer decoder with packed weights; the caller provides the attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch
import torch.nn.functional as F

from studio.backends.batching import sampling
from studio.backends.batching.int8_matrix import Int8Matrix

# Norms and rotation are rounded less often than in the reference, which in 16 bits brings the
# states nearer to those of float32, and in float32 changes none of the codes.
#
# Source: `Qwen3TTSTalkerDecoderLayer` of qwen-tts-hf 0.1.1.post1.

_MIN_CPU_ROWS = 4
"""Below it, a CPU's matrix library takes another way of adding, and a line alone would differ in
its last bits from the same line among others. Full-size weights are read from memory either way,
so that the rows added cost little.

Results are equal to the last bit on the CPUs tried. On CUDA the last bits may differ between
numbers of slots, and with them, now and then, a code. Rows times an `Int8Matrix` need none."""

Matrix: TypeAlias = "torch.Tensor | Int8Matrix"
"""A matrix, [out, in]."""

PackFn = Callable[[torch.Tensor], Matrix]
"""What becomes of a matrix: nothing, or `Int8Matrix.of`."""


def keep_matrix(weight: torch.Tensor) -> Matrix:
    """A matrix as it is."""
    return weight


class AttentionFn(Protocol):
    """Attention of one layer, with its keys and values."""

    def __call__(self, index: int, heads: torch.Tensor, /) -> torch.Tensor:
        """Keep a layer's keys and values, and mix what its queries see.

        Args:
            index: Of the layer.
            heads: After norm and rotation, and before: [2, rows, kv_heads, group + 2, head_dim].
                The queries and the key are of the first kind, the value of the second.

        Returns:
            [rows, group * kv_heads * head_dim], as attention leaves them.
        """


class DecoderBackbone(Protocol):
    """A transformer with packed layers, of any model."""

    @property
    def kv_heads(self) -> int:
        """Number of key-value heads."""

    @property
    def group(self) -> int:
        """Query heads per key-value head."""

    @property
    def head_dim(self) -> int:
        """Width of a head."""

    @property
    def layers(self) -> Sized:
        """Number of layers."""

    def forward(self, x: torch.Tensor, at: torch.Tensor, attend: AttentionFn) -> torch.Tensor:
        """Run rows through all layers and the final norm.

        Args:
            x: [rows, hidden]; may be overwritten.
            at: Position of each row: int64 [rows].
            attend: Called once a layer.

        Returns:
            [rows, hidden].
        """


def split_kv(heads: torch.Tensor) -> torch.Tensor:
    """[2, rows, ..., group + 2, head_dim] to keys and values: a view, [rows, 2, ..., head_dim]."""
    both = heads[..., -2:, :].diagonal(dim1=0, dim2=-2)  # [rows, ..., head_dim, 2]
    return both.movedim(-1, 1)


RopeTables = Sequence[torch.Tensor]
"""For each layer what rotates its heads, their norm's scale included: [blocks, 1, 1, group + 2 or
1, 2, 2, head_dim / 2], by the half that is made and the half that is read. Rows are so many equal
blocks, one after the other, and those of a block are at the same position."""


QkvBuffer = Callable[[int], torch.Tensor]
"""Of a layer's index, where its heads go: [2, rows, kv_heads * (group + 2) * head_dim]."""


def run_layers(
    stack: DecoderStack, x: torch.Tensor, turns: RopeTables, attend: AttentionFn, into: QkvBuffer
) -> torch.Tensor:
    """Run rows, which are overwritten, through all layers and the final norm: [rows, hidden]."""
    kernels, layers = stack.kernels, stack.layers
    to = QkvTarget(layers[0], turns[0], into(0))
    kernels.qkv_rope(x, to)
    for index, following in enumerate(layers[1:], start=1):
        mixed = attend(index - 1, to.into.unflatten(2, to.layer.shape))
        layer, to = to.layer, QkvTarget(following, turns[index], into(index))
        x = kernels.attn_out_mlp_qkv(x, mixed, layer, to)
    mixed = attend(len(layers) - 1, to.into.unflatten(2, to.layer.shape))
    return rms_norm(kernels.attn_out_mlp(x, mixed, to.layer), stack.norm, to.layer.eps)


def norm_rope(
    layer: DecoderLayer, plain: torch.Tensor, turn: torch.Tensor, into: torch.Tensor
) -> None:
    """Apply the norm of a layer's heads and the rotary embedding.

    Args:
        layer: Whose.
        plain: [rows, kv_heads * (group + 2) * head_dim]. The values among them are of no use.
        turn: One of `RopeTables`.
        into: As `plain`; is overwritten.
    """
    scaled = plain.unflatten(1, layer.shape)
    if layer.norms_heads:
        scaled = F.rms_norm(scaled, scaled.shape[-1:], None, layer.eps)
    halves = scaled.view(len(turn), -1, *layer.shape[:2], 1, 2, layer.shape[2] // 2)
    sum_into(into.view(*halves.shape[:4], 2, -1), halves * turn)


def silu_and_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """SwiGLU: SiLU of the gate times the other half, [rows, 2 * width] to [rows, width]."""
    gate, up = gate_up.chunk(2, dim=1)
    return F.silu(gate) * up


@dataclass(frozen=True, slots=True)
class PointwiseKernels:
    """The operations between two matrix multiplications, eager or fused into one kernel."""

    norm_rope: Callable[..., None] = norm_rope
    silu_and_mul: Callable[[torch.Tensor], torch.Tensor] = silu_and_mul


EAGER_POINTWISE = PointwiseKernels()


@dataclass(frozen=True, slots=True, eq=False)
class QkvTarget:
    """Where the queries, keys and values of a layer are written."""

    layer: DecoderLayer
    turn: torch.Tensor
    into: torch.Tensor


def qkv_rope(
    x: torch.Tensor, to: QkvTarget, *, pointwise: PointwiseKernels = EAGER_POINTWISE
) -> None:
    """Write a layer's heads to `to`, after norm and rotation and before, from x: [rows, hidden]."""
    turned, plain = to.into
    linear_into(plain, rms_norm(x, to.layer.input_norm, to.layer.eps), to.layer.qkv)
    pointwise.norm_rope(to.layer, plain, to.turn, turned)


def attn_out_mlp(
    x: torch.Tensor,
    mixed: torch.Tensor,
    layer: DecoderLayer,
    *,
    pointwise: PointwiseKernels = EAGER_POINTWISE,
) -> torch.Tensor:
    """Output projection and feed-forward block, each added to x, which may be overwritten."""
    x = add_linear(x, mixed, layer.attn_out)
    gate_up = linear(rms_norm(x, layer.post_attn_norm, layer.eps), layer.gate_up)
    return add_linear(x, pointwise.silu_and_mul(gate_up), layer.down)


def attn_out_mlp_qkv(
    x: torch.Tensor,
    mixed: torch.Tensor,
    layer: DecoderLayer,
    to: QkvTarget,
    *,
    pointwise: PointwiseKernels = EAGER_POINTWISE,
) -> torch.Tensor:
    """`attn_out_mlp` of a layer, and then `qkv_rope` of the one that follows."""
    x = attn_out_mlp(x, mixed, layer, pointwise=pointwise)
    qkv_rope(x, to, pointwise=pointwise)
    return x


def rms_norm(x: torch.Tensor, scale: torch.Tensor, eps: float) -> torch.Tensor:
    """Root-mean-square norm over the last dimension."""
    return F.rms_norm(x, x.shape[-1:], scale, eps)


def linear(x: torch.Tensor, weight: Matrix, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Multiply rows, [rows, in], by a matrix, [out, in]: [rows, out].

    Each row is bit-identical whatever other rows are in the batch.
    """
    if isinstance(weight, Int8Matrix):
        product, scales = weight.multiply(x)
        product = product.mul_(scales)
        return product if bias is None else product.add_(bias)
    return F.linear(_pad_rows(x), weight, bias)[: len(x)]


def linear_into(into: torch.Tensor, x: torch.Tensor, weight: Matrix) -> None:
    """`linear` without a copy where none is needed: [rows, out] is overwritten."""
    if isinstance(weight, Int8Matrix):
        torch.mul(*weight.multiply(x), out=into)
    elif len(_pad_rows(x)) > len(x):
        into.copy_(linear(x, weight))
    else:
        torch.mm(x, weight.t(), out=into)


def sum_into(into: torch.Tensor, parts: torch.Tensor) -> None:
    """Sum over the second-to-last dimension into a tensor, which is overwritten."""
    torch.sum(parts, dim=-2, out=into)


def add_linear(x: torch.Tensor, y: torch.Tensor, weight: Matrix) -> torch.Tensor:
    """Add `linear` of y to x in one operation; x is overwritten."""
    if isinstance(weight, Int8Matrix):
        return x.addcmul_(*weight.multiply(y))
    return _pad_rows(x).addmm_(_pad_rows(y), weight.t())[: len(x)]


def _pad_rows(x: torch.Tensor) -> torch.Tensor:
    """The rows, on a CPU padded with rows of zeros."""
    lacking = _MIN_CPU_ROWS - len(x)
    return x if lacking <= 0 or x.is_cuda else F.pad(x, (0, 0, 0, lacking))


@dataclass(frozen=True, slots=True, eq=False)
class KernelSet:
    """The functions of a step; each is documented where it is defined.

    Attributes:
        pack: What becomes of each matrix that rows are multiplied by.
        noise: What `sample` gets for a frame: `sampling.derive_frame_keys`, or `draw_frame_noise`.
        sample: `sampling.sample_codes`, or another that draws the same codes.
        samples_all: Whether `sample` costs the same whatever bounds it gets.
        attend: Attention of a step over each line's own positions, as `attend_triton`; None for
            torch's, over the window that all lines share.
    """

    qkv_rope: Callable[..., Any] = qkv_rope
    attn_out_mlp_qkv: Callable[..., Any] = attn_out_mlp_qkv
    attn_out_mlp: Callable[..., Any] = attn_out_mlp
    pack: PackFn = keep_matrix
    noise: Callable[..., torch.Tensor] = sampling.derive_frame_keys
    sample: Callable[..., torch.Tensor] = sampling.sample_codes
    samples_all: bool = False
    attend: Callable[..., torch.Tensor] | None = None


EAGER_KERNELS = KernelSet()


_MAX_ROPE_BLOCKS = 512  # positions that are turned for all layers at once; prompts have more


@dataclass(frozen=True, slots=True, eq=False)
class DecoderLayer:
    """One layer; every matrix is [out, in].

    Attributes:
        qkv: [kv_heads * (group + 2) * head_dim, hidden].
        norms_heads: Whether queries and keys have a norm; its scale is in the stack's turns.
        attn_out: Reads heads as attention leaves them: the first of every group, then the second.
        gate_up: [2 * feed_forward, hidden].
        shape: Of heads: kv_heads, group + 2, head_dim.
    """

    input_norm: torch.Tensor
    qkv: Matrix
    norms_heads: bool
    attn_out: Matrix
    post_attn_norm: torch.Tensor
    gate_up: Matrix
    down: Matrix
    eps: float
    shape: tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class DecoderStack:
    """The packed layers of one transformer.

    Attributes:
        group: Query heads to a key-value head.
        rope: What turns a head at a position, by the half that is made and the half that is read:
            [positions, 2, 2, head_dim / 2].
        scales: Norms of the queries and the key, and 1 for the value, by halves:
            [layers, group + 2, 2, head_dim / 2]; None where heads have no norm.
    """

    layers: tuple[DecoderLayer, ...]
    norm: torch.Tensor
    rope: torch.Tensor
    scales: torch.Tensor | None
    kv_heads: int
    group: int
    head_dim: int
    kernels: KernelSet = EAGER_KERNELS

    def forward(self, x: torch.Tensor, at: torch.Tensor, attend: AttentionFn) -> torch.Tensor:
        """Pass rows at positions through all layers; see `DecoderBackbone`."""
        width = self.kv_heads * (self.group + 2) * self.head_dim
        return run_layers(self, x, self.turns(at), attend, lambda _: x.new_empty(2, len(x), width))

    def turns(self, at: torch.Tensor) -> RopeTables:
        """Rotary tables for positions, int64 [blocks]; for all layers at once if they are few."""
        rope = self.rope[at][:, None, None, None]  # [blocks, 1, 1, 1, 2, 2, head_dim / 2]
        if self.scales is None:
            return [rope] * len(self.layers)
        scales = self.scales[:, None, None, None, :, None]
        if len(at) <= _MAX_ROPE_BLOCKS:
            return (rope * scales).unbind()
        return _LazyRopeTables(rope, scales)


class _LazyRopeTables(Sequence[torch.Tensor]):
    """Rotary tables of many positions, one layer at a time to save memory."""

    def __init__(self, rope: torch.Tensor, scales: torch.Tensor) -> None:
        self._rope = rope
        self._scales = scales

    def __len__(self) -> int:
        return len(self._scales)

    def __getitem__(self, index: Any) -> Any:
        return self._rope * self._scales[index]


def pack_stack(
    model: Any,
    config: Any,
    positions: int,
    *,
    release: bool,
    rope_axes: int = 1,
    pack: PackFn = keep_matrix,
) -> DecoderStack:
    """Pack the layers of a transformer of the Llama family.

    Args:
        model: With `layers`, `norm` and `rotary_emb`, as the transformers package names them.
        config: Its dimensions.
        positions: How far its cache reaches.
        release: Take each layer away when it is packed.
        rope_axes: Of positions, as `rotary_emb` takes them; all count the same positions here.
        pack: For each matrix.
    """
    kv_heads, head_dim = config.num_key_value_heads, config.head_dim
    group = config.num_attention_heads // kv_heads
    layers, scales = [], []
    for index, module in enumerate(model.layers):
        shape = (kv_heads, group + 2, head_dim)
        layers.append(_pack_layer(module, shape, config.rms_norm_eps, pack))
        scales.append(_qk_norm_scale(module.self_attn, group))
        if release:
            model.layers[index] = torch.nn.Identity()
    rope = _rope_table(model, positions, rope_axes)
    norm = model.norm.weight.detach()
    known = [scale for scale in scales if scale is not None]
    halves = torch.stack(known).unflatten(2, (2, -1)) if known else None
    return DecoderStack(tuple(layers), norm, rope, halves, kv_heads, group, head_dim)


def _pack_layer(module: Any, shape: tuple[int, int, int], eps: float, pack: PackFn) -> DecoderLayer:
    attention, feed = module.self_attn, module.mlp
    kv_heads, group, head_dim = shape[0], shape[1] - 2, shape[2]
    out = attention.o_proj.weight.detach()
    parts = [
        attention.q_proj.weight.view(kv_heads, group, head_dim, -1),
        attention.k_proj.weight.view(kv_heads, 1, head_dim, -1),
        attention.v_proj.weight.view(kv_heads, 1, head_dim, -1),
    ]
    out = out.unflatten(1, (kv_heads, group, -1)).transpose(1, 2).flatten(1).contiguous()
    return DecoderLayer(
        input_norm=module.input_layernorm.weight.detach(),
        qkv=pack(torch.cat(parts, dim=1).flatten(0, 2)),
        norms_heads=hasattr(attention, "q_norm"),
        attn_out=pack(out),
        post_attn_norm=module.post_attention_layernorm.weight.detach(),
        gate_up=pack(torch.cat([feed.gate_proj.weight, feed.up_proj.weight])),
        down=pack(feed.down_proj.weight.detach()),
        eps=eps,
        shape=shape,
    )


def _qk_norm_scale(attention: Any, group: int) -> torch.Tensor | None:
    if not hasattr(attention, "q_norm"):
        return None
    queries, key = attention.q_norm.weight, attention.k_norm.weight
    return torch.stack([*[queries] * group, key, torch.ones_like(key)]).detach()


def _rope_table(model: Any, positions: int, axes: int) -> torch.Tensor:
    """The rotary tables as the transformers package computes them."""
    weight = model.norm.weight
    at = torch.arange(positions, device=weight.device)[None]
    at = at if axes == 1 else at.expand(axes, 1, -1)
    tables = model.rotary_emb(weight, at)
    cos, sin = (table.view(-1, positions, table.shape[-1])[0] for table in tables)
    (low, high), (low_sin, high_sin) = cos.chunk(2, dim=1), sin.chunk(2, dim=1)
    made_low, made_high = torch.stack([low, -low_sin], 1), torch.stack([high_sin, high], 1)
    return torch.stack([made_low, made_high], dim=1)  # [positions, made, read, head_dim / 2]
