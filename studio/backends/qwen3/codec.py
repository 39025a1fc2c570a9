"""The codec's decoder with its state outside: the next frames of some lines to samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from studio.audio.clip import Samples

# The codec's state: one row of numbers per line, cut into slices.
#
# All of it lies in one tensor, so that a line is begun, put aside and taken up again by a single
# copy, and a captured step finds it where it was.


@dataclass(frozen=True, slots=True)
class StateSlice:
    """A slice of a row of state.

    Attributes:
        shape: Of what is kept for one line.
    """

    start: int
    shape: tuple[int, ...]

    def of(self, state: torch.Tensor) -> torch.Tensor:
        """This slice of each row: [rows, *shape], a view of `state`."""
        end = self.start + math.prod(self.shape)
        return state[:, self.start : end].view(len(state), *self.shape)


class StateLayout:
    """Assigns slices of a row, one behind the other."""

    def __init__(self) -> None:
        self.numbers = 0  # length of a row

    def place(self, *shape: int) -> StateSlice:
        """Assign one more slice."""
        place = StateSlice(self.numbers, shape)
        self.numbers += math.prod(shape)
        return place


# The codec's convolutions, each going on from the end of what it read before.
#
# A causal convolution pads its input with zeros at the start; here the zeros are what it remembers
# of a line that has not begun. A transposed one reaches beyond its last frame; what spills over is
# kept and added to the next frames. So nothing is computed twice, and chunks of any size joined are
# the whole line.
#
# Source: `Qwen3TTSTokenizerV2Decoder` and its blocks of qwen-tts-hf 0.1.1.post1.

CodecLayer = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Takes a wave [rows, channels, time] and the state; gives the next wave. May write over both."""


def codec_blocks(decoder: Any) -> list[Any]:
    """The package's layers between the transformer and the samples, in order."""
    return [*(block for stage in decoder.upsample for block in stage), *decoder.decoder]


class WaveDecoder:
    """Everything between the transformer and the samples."""

    @staticmethod
    def pack_linear(module: Any) -> LinearFn:
        """What multiplies in place of a linear layer of those before it: itself."""
        return module

    @staticmethod
    def pack_books(conv: Any) -> LinearFn:
        """The same for a codebook's projection: [rows, frames, in] to [rows, frames, out]."""
        return lambda found: conv(found.transpose(1, 2)).transpose(1, 2)

    @staticmethod
    def pack_first(block: Any, ledger: StateLayout) -> CodecLayer:
        """The same for the convolution behind the codebooks, but [rows, frames, channels]."""
        conv = CausalConv(block, ledger)
        return lambda hidden, state: conv(hidden.transpose(1, 2), state).transpose(1, 2)

    def __init__(self, decoder: Any, ledger: StateLayout) -> None:
        self._parts = [build_layer(block, ledger) for block in codec_blocks(decoder)]

    def __call__(self, latents: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Decode the next frames: [rows, frames, width] to [rows, samples]."""
        return apply_layers(self._parts, latents.transpose(1, 2), state)[:, 0]


def layer_kind(block: Any) -> str:
    """The name of the package's layer, without the package's prefix."""
    return type(block).__name__.removeprefix("Qwen3TTSTokenizerV2")


def build_layer(block: Any, ledger: StateLayout) -> CodecLayer:
    """One of the package's layers, its state placed."""
    kinds: dict[str, Callable[[Any, StateLayout], CodecLayer]] = {
        "CausalConvNet": CausalConv,
        "CausalTransConvNet": _TransposedConv,
        "ConvNeXtBlock": _ConvNeXtBlock,
        "DecoderDecoderBlock": _UpsampleBlock,
        "DecoderDecoderResidualUnit": _ResidualUnit,
        "SnakeBeta": _SnakeBeta,
    }
    return kinds[layer_kind(block)](block, ledger)


class CausalConv:
    """A causal convolution that keeps the end of its input for the next call."""

    def __init__(self, block: Any, ledger: StateLayout) -> None:
        assert block.stride == 1, "a stride would make what is remembered depend on the place"
        self._conv = block.conv
        channels, self._length = block.conv.in_channels, block.padding
        self._before = ledger.place(channels, self._length) if self._length else None

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """See `CodecLayer`."""
        if self._before is not None:
            before = self._before.of(state)
            wave = torch.cat([before, wave], dim=-1)
            before.copy_(wave[..., -self._length :])
        return self._conv(wave)


class _TransposedConv:
    """A transposed convolution that keeps what reaches beyond its output for the next call."""

    def __init__(self, block: Any, ledger: StateLayout) -> None:
        self._conv = block.conv
        self._length = block.right_pad
        self._bias = block.conv.bias.detach()[:, None]
        channels = block.conv.out_channels
        self._spilled = ledger.place(channels, self._length) if self._length else None

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        out = self._conv(wave)
        if self._spilled is None:
            return out
        spilled = self._spilled.of(state)
        out[..., : self._length] += spilled
        # Each call adds the bias, so the kept overlap must not hold it too.
        spilled.copy_(out[..., -self._length :] - self._bias)
        return out[..., : -self._length]


class _ConvNeXtBlock:
    """A ConvNeXt block."""

    def __init__(self, block: Any, ledger: StateLayout) -> None:
        self._block = block
        self._depthwise = CausalConv(block.dwconv, ledger)

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        block = self._block
        mixed = block.norm(self._depthwise(wave, state).transpose(1, 2))
        mixed = block.pwconv2(block.act(block.pwconv1(mixed)))
        return wave + (block.gamma * mixed).transpose(1, 2)


class _SnakeBeta:
    """The activation x + sin(ax)² / b, with one pass of memory for each of its four steps."""

    def __init__(self, block: Any, _ledger: StateLayout) -> None:
        self._rate, self._depth = (one[:, None] for one in read_snake(block))

    def __call__(self, wave: torch.Tensor, _state: torch.Tensor) -> torch.Tensor:
        bent = (wave * self._rate).sin_().square_()
        return torch.addcmul(wave, bent, self._depth)


def read_snake(block: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Rate and depth of the package's `SnakeBeta`: each [channels]."""
    return block.alpha.detach().exp(), 1 / (block.beta.detach().exp() + block.no_div_by_zero)


class _ResidualUnit:
    """A residual unit."""

    def __init__(self, block: Any, ledger: StateLayout) -> None:
        parts = block.act1, block.conv1, block.act2, block.conv2
        self._parts = [build_layer(part, ledger) for part in parts]

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return apply_layers(self._parts, wave, state).add_(wave)


class _UpsampleBlock:
    """An upsampling convolution and the layers that follow at its rate."""

    def __init__(self, block: Any, ledger: StateLayout) -> None:
        self._parts = [build_layer(part, ledger) for part in block.block]

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return apply_layers(self._parts, wave, state)


def apply_layers(
    parts: Iterable[CodecLayer], wave: torch.Tensor, state: torch.Tensor
) -> torch.Tensor:
    """Apply layers to a wave, one after the other."""
    for part in parts:
        wave = part(wave, state)
    return wave


# The codec's transformer, going on from the keys and values of the frames before.
#
# Each layer looks back on one window of frames, so that many are kept, oldest first; fresh ones are
# put behind them and the oldest fall off. Which of them a line has read yet follows from its count
# of frames, on the device.
#
# Source: `Qwen3TTSTokenizerV2DecoderTransformerModel` of qwen-tts-hf 0.1.1.post1.


@dataclass(frozen=True, slots=True, eq=False)
class _AttentionView:
    """Rotary embedding and mask, which all layers of a pass share.

    Attributes:
        cos: [rows, 1, frames, head_dim].
        sin: The same.
        mask: Whom a frame may see: bool [rows, 1, frames, before + frames].
    """

    cos: torch.Tensor
    sin: torch.Tensor
    mask: torch.Tensor


LinearFn = Callable[[torch.Tensor], torch.Tensor]
PackLinearFn = Callable[[Any], LinearFn]
"""Of a linear layer, itself or another that multiplies alike: [rows, frames, in] to [..., out]."""


@dataclass(frozen=True, slots=True, eq=False)
class _LayerLinears:
    """The multiplications of a layer."""

    query: LinearFn
    key: LinearFn
    value: LinearFn
    out: LinearFn
    gate: LinearFn
    up: LinearFn
    down: LinearFn

    @classmethod
    def of(cls, layer: Any, linear: PackLinearFn) -> _LayerLinears:
        """Of the package's layer."""
        attention, feed = layer.self_attn, layer.mlp
        modules = attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj
        return cls(*map(linear, (*modules, feed.gate_proj, feed.up_proj, feed.down_proj)))


class CodecTransformer:
    """The codec's transformer with a cache: reads frames that follow those already read."""

    def __init__(self, model: Any, ledger: StateLayout, linear: PackLinearFn) -> None:
        config, attention = model.config, model.layers[0].self_attn
        self._model = model
        self._input, self._output = linear(model.input_proj), linear(model.output_proj)
        self._linears = [_LayerLinears.of(layer, linear) for layer in model.layers]
        self._head_dim = int(attention.head_dim)
        self._grouped = attention.num_key_value_groups > 1
        self._window = int(config.sliding_window)
        rates = model.rotary_emb.inv_freq.float()
        self._rates = torch.cat([rates, rates])
        self._scale = float(model.rotary_emb.attention_scaling)
        self._frames_read = ledger.place(1)
        self._kept = ledger.place(
            *(len(model.layers), 2, config.num_key_value_heads, self._window - 1, self._head_dim)
        )

    def __call__(self, hidden: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Read the next frames of some lines: [rows, frames, width]; updates their state.

        Returns:
            [rows, frames, width].
        """
        model, frames_read = self._model, self._frames_read.of(state)
        kept = self._kept.of(state)  # [rows, layers, 2, heads, before, head_dim]
        x = self._input(hidden)
        view = self._view(frames_read, hidden.shape[1])
        for index, (layer, linears) in enumerate(zip(model.layers, self._linears, strict=True)):
            mixed = self._attend(linears, _rms_norm(layer.input_layernorm, x), view, kept[:, index])
            x = x + layer.self_attn_layer_scale(mixed)
            fed = _rms_norm(layer.post_attention_layernorm, x)
            fed = linears.down(layer.mlp.act_fn(linears.gate(fed)) * linears.up(fed))
            x = x + layer.mlp_layer_scale(fed)
        frames_read.add_(hidden.shape[1])
        return self._output(_rms_norm(model.norm, x))

    def _view(self, frames_read: torch.Tensor, frames: int) -> _AttentionView:
        """Rotary embedding and mask of the next frames; `frames_read` is float [rows, 1]."""
        fresh = torch.arange(frames, device=frames_read.device)
        angles = (frames_read + fresh)[:, None, :, None] * self._rates
        before = self._window - 1
        key = torch.arange(before + frames, device=frames_read.device)
        near = (key >= fresh[:, None]) & (key <= fresh[:, None] + before)  # [frames, keys]
        begun = key >= before - frames_read  # [rows, keys]
        return _AttentionView(
            angles.cos() * self._scale, angles.sin() * self._scale, (near & begun[:, None])[:, None]
        )

    def _attend(
        self, linears: _LayerLinears, x: torch.Tensor, view: _AttentionView, kept: torch.Tensor
    ) -> torch.Tensor:
        """One layer's attention; updates `kept`, its cache [rows, 2, heads, before, head_dim]."""
        rows, frames, _ = x.shape

        def heads(projection: Any) -> torch.Tensor:
            return projection(x).view(rows, frames, -1, self._head_dim).transpose(1, 2)

        query = _rotate_by_position(heads(linears.query), view)
        fresh = torch.stack(
            [_rotate_by_position(heads(linears.key), view), heads(linears.value)], 1
        )
        seen = torch.cat([kept, fresh], dim=3)
        kept.copy_(seen[:, :, :, frames:])
        keys, values = seen.unbind(1)
        mixed = F.scaled_dot_product_attention(
            query, keys, values, attn_mask=view.mask, enable_gqa=self._grouped
        )
        return linears.out(mixed.transpose(1, 2).reshape(rows, frames, -1))


def _rotate_by_position(heads: torch.Tensor, view: _AttentionView) -> torch.Tensor:
    """Apply the rotary embedding."""
    left, right = heads.chunk(2, dim=-1)
    return heads * view.cos + torch.cat([-right, left], dim=-1) * view.sin


def _rms_norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, x.shape[-1:], norm.weight, norm.variance_epsilon)


# The codec's decoder as a step: decodes the next frames of some lines and updates their state.
#
# Nothing here reads a tensor's value on the host, and no shape depends on one: the same code runs
# at once on a CPU and is captured as a graph on CUDA.
#
# Source: `Qwen3TTSTokenizerV2Decoder` of qwen-tts-hf 0.1.1.post1.


def count_lookback_frames(decoder: Any) -> int:
    """Frames of the transformer's output that reach into the audio of a later frame."""
    frames, rate = 0.0, 1
    for block in codec_blocks(decoder):
        for module in block.modules():
            name = type(module).__name__
            if name.endswith("CausalConvNet"):
                frames += module.padding / rate
            elif name.endswith("CausalTransConvNet"):
                frames += module.right_pad / module.conv.stride[0] / rate
                rate *= module.conv.stride[0]
    return math.ceil(frames)


class CodecDecoder:
    """Decodes the next frames of lines whose state is in the rows of a tensor.

    Attributes:
        samples_per_frame: Made of each frame.
        numbers: Length of a line's state.
        tables: The codebooks, which it holds besides the weights.
    """

    def __init__(self, decoder: Any, *, waves: type[WaveDecoder] = WaveDecoder) -> None:
        ledger = StateLayout()
        self.groups = int(decoder.config.num_quantizers)
        self.samples_per_frame = int(decoder.total_upsample)
        self.device: torch.device = decoder.device
        self._looked_back = count_lookback_frames(decoder)
        with torch.no_grad():
            self._books = _Codebooks(decoder.quantizer, waves.pack_books)
            self.tables = self._books.first.table, self._books.rest.table
            self._before = waves.pack_first(decoder.pre_conv, ledger)
            model = decoder.pre_transformer
            self._transformer = CodecTransformer(model, ledger, waves.pack_linear)
            self._waves = waves(decoder, ledger)
        self.numbers = ledger.numbers

    def new_state(self, rows: int) -> torch.Tensor:
        """The state of lines that have not begun: float32 [rows, numbers], all zeros."""
        return torch.zeros(rows, self.numbers, device=self.device)

    def __call__(self, codes: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Decode the next frames of each row's line.

        Args:
            codes: int64 [rows, frames, groups].
            state: float32 [rows, numbers]; is moved on.

        Returns:
            float32 [rows, frames * samples per frame], within [-1, 1].
        """
        return self._waves(self._read(codes, state), state).clamp(-1, 1)

    def advance(self, codes: torch.Tensor, state: torch.Tensor) -> None:
        """Read frames without making audio of them; the next ones go on from them.

        The convolutions read only those that reach into a later frame's audio.
        """
        self._waves(self._read(codes, state)[:, -self._looked_back :], state)

    def _read(self, codes: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """The transformer's output for codes: [rows, frames, width]."""
        return self._transformer(self._before(self._books(codes), state), state)


class _Codebooks:
    """The codebooks, normalised once; the package does that for every frame."""

    def __init__(self, quantizer: Any, pack: PackLinearFn) -> None:
        self._semantic = int(quantizer.n_q_semantic)
        self.first = _QuantizerCodebooks(quantizer.rvq_first, pack)
        self.rest = _QuantizerCodebooks(quantizer.rvq_rest, pack)

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        """Latents of codes: [rows, frames, dim]."""
        first, rest = codes[..., : self._semantic], codes[..., self._semantic :]
        return self.first(first) + self.rest(rest)


class _QuantizerCodebooks:
    """The codebooks of one quantizer, concatenated along the rows."""

    def __init__(self, quantizer: Any, pack: PackLinearFn) -> None:
        tables = []
        for layer in quantizer.vq.layers:
            book = layer._codebook
            usage = book.cluster_usage.clamp(min=book.epsilon)[:, None]
            tables.append(layer.project_out(book.embedding_sum / usage))
        self.table = torch.cat(tables)
        starts = itertools.accumulate(map(len, tables[:-1]), initial=0)
        self._offsets = torch.tensor([*starts], device=self.table.device)
        self._project = pack(quantizer.output_proj)

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        found = F.embedding(codes + self._offsets, self.table).sum(dim=2)
        return self._project(found)


class CodecStream:
    """Decodes the frames of one line in order; holds all state of it.

    The package decodes with 25 frames of context in place of state, which costs more and changes
    the audio.
    """

    def __init__(self, decoder: Any) -> None:
        with torch.inference_mode():
            self._step = CodecDecoder(decoder)
            self._state = self._step.new_state(1)

    def skip(self, codes: torch.Tensor) -> None:
        """Read frames that come before the line, such as the sample's: int64 [frames, groups]."""
        with torch.inference_mode():
            self._step.advance(codes[None].to(self._step.device), self._state)

    def decode(self, codes: torch.Tensor) -> Samples:
        """Decode the next frames: int64 [frames, groups], at least one.

        Returns:
            float32 [frames * samples per frame].
        """
        with torch.inference_mode():
            made = self._step(codes[None].to(self._step.device), self._state)
            samples: Samples = made[0].float().cpu().numpy()
        return samples
