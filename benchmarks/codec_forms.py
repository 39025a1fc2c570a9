"""The codec alone on a CPU in several forms: processor time, and how far each is from float32."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.codec_trials import signal_to_noise_db
from benchmarks.metrics import EngineMetrics, track_memory
from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.qwen3.codec import CodecDecoder, WaveDecoder
from studio.backends.qwen3.packed_codec import ConvFn, PackedWaveDecoder
from studio.backends.qwen3.qwen3_memory import CODEC_FRAMES, CODEC_ROW_FRAMES
from studio.backends.qwen3.qwen3_model import load_model

_ROWS = CODEC_FRAMES["cpu"][1] // CODEC_ROW_FRAMES
_ROUNDS = 4
_RUNS = 3
_LEVELS = 127


class _LastConv(PackedWaveDecoder):
    """Channels last, with weights that are put in order at each call."""

    @staticmethod
    def make_conv(
        weight: torch.Tensor, bias: torch.Tensor | None, dilation: int, groups: int
    ) -> ConvFn:
        flat = weight.detach()[:, :, None].contiguous(memory_format=torch.channels_last)

        def convolve(wave: torch.Tensor) -> torch.Tensor:
            image = wave[:, None].permute(0, 3, 1, 2)
            made = torch.nn.functional.conv2d(
                image, flat, bias, dilation=(1, dilation), groups=groups
            )
            return made.permute(0, 2, 3, 1)[:, 0]

        return convolve


class _Bfloat16(PackedWaveDecoder):
    """What is multiplied has 8 bits of mantissa."""

    @staticmethod
    def make_conv(
        weight: torch.Tensor, bias: torch.Tensor | None, dilation: int, groups: int
    ) -> ConvFn:
        half = _LastConv.make_conv(
            weight.bfloat16(), None if bias is None else bias.bfloat16(), dilation, groups
        )
        return lambda wave: half(wave.bfloat16()).float()


class _Int8(PackedWaveDecoder):
    """8 bits, with a scale for each output channel and for each wave that is read."""

    @staticmethod
    def make_conv(
        weight: torch.Tensor, bias: torch.Tensor | None, dilation: int, groups: int
    ) -> ConvFn:
        weight = weight.detach().contiguous()
        scales = weight.abs().amax(dim=(1, 2)).clamp(min=1e-12).double() / _LEVELS
        zeros = torch.zeros(len(weight), dtype=torch.long)
        rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        bias = None if bias is None else bias.detach()
        shape = [1], [0], [dilation], groups  # stride, padding, dilation
        packed = torch.ops.quantized.conv1d_prepack(rounded, bias, *shape)
        dynamic = torch.ops.quantized.conv1d_dynamic
        return lambda wave: (
            dynamic(wave.transpose(1, 2), packed, False).transpose(1, 2).contiguous()
        )


_FORMS: dict[str, type[WaveDecoder]] = {
    "float32, channels first": WaveDecoder,
    "float32, channels last": _LastConv,
    "float32, packed": PackedWaveDecoder,
    "bfloat16": _Bfloat16,
    "8 bits": _Int8,
}


def measure_codec_forms(folder: Path) -> Iterator[EngineMetrics]:
    """Decode the same lines in each form, taking turns; each row is of the median run.

    The notes hold processor seconds as a share of the first form's, for a round of lines and for a
    single frame of one, and the ratio of signal to noise against the first.
    """
    with track_memory("cpu") as memory, torch.inference_mode():
        decoder = load_model(folder, "cpu", graphs=False).codec_decoder
        steps = {name: CodecDecoder(decoder, waves=form) for name, form in _FORMS.items()}
        chance = torch.Generator().manual_seed(_ROUNDS)
        shape = _ROUNDS, _ROWS, CODEC_ROW_FRAMES, decoder.config.num_quantizers
        codes = torch.randint(0, 2_048, shape, generator=chance)
        first = codes[:, :1, :1]
        waves = {name: _decode(step, codes)[0] for name, step in steps.items()}  # and warm it
        runs = [
            {
                name: (*_decode(step, codes)[1:], _decode(step, first)[2])
                for name, step in steps.items()
            }
            for _ in range(_RUNS)
        ]
    expected = next(iter(waves.values()))
    base = next(iter(_FORMS))
    for name, made in waves.items():
        wall_s, cpu_s, frame_s = (statistics.median(run[name][n] for run in runs) for n in range(3))
        shares = [statistics.median(run[name][n] / run[base][n] for run in runs) for n in (1, 2)]
        yield EngineMetrics(
            f"codec alone, {_ROWS} lines, {name}",
            sum(map(len, made)) / STUDIO_RATE_HZ,
            wall_s,
            (),
            memory(),
            frame_s=wall_s / (_ROUNDS * _ROWS * CODEC_ROW_FRAMES),
            lines=_ROWS,
            cpu_s=cpu_s,
            notes=f"{shares[0]:.2f} of the processor time, of single frames {shares[1]:.2f} "
            f"({1000 * frame_s / _ROUNDS:.0f} ms); SNR {signal_to_noise_db(expected, made):.1f} dB",
        )


def _decode(step: CodecDecoder, codes: torch.Tensor) -> tuple[list[Samples], float, float]:
    """Decode rounds, [rounds, rows, frames, groups]; their waves, wall and processor seconds."""
    state = step.new_state(codes.shape[1])
    began_s, cpu_s = time.perf_counter(), time.process_time()
    made = [step(one, state) for one in codes]
    taken = time.perf_counter() - began_s, time.process_time() - cpu_s
    return [*torch.cat(made, dim=1).numpy()], *taken
