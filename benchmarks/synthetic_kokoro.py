"""Kokoro's graph at full size with random weights, as the small voices' backend loads it.

Layers and sizes are those of Kokoro 0.9.4 (`kokoro/model.py`, `modules.py`, `istftnet.py` and the
`config.json` of Kokoro-82M): 82 million parameters, three quarters of the time in the vocoder.
It differs where random weights would say nothing: each token lasts `FRAMES_PER_TOKEN` frames
instead of what its duration predictor, which is computed all the same, says; weight
normalisation is folded, as exports fold it; and the source draws no noise.
"""
# ruff: noqa: D102 -- each class says what its layers do

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

FRAMES_PER_TOKEN = 3
"""Of 25 ms: about 13 phonemes a second."""

TOKENS, STYLE, STYLE_ROWS, VOICES = 178, 128, 510, 53
_HARMONICS, _N_FFT, _HOP = 9, 20, 5
_UP, _UP_KERNELS, _KERNELS, _DILATIONS = (10, 6), (20, 12), (3, 7, 11), (1, 3, 5)


def write_kokoro(folder: Path, symbols: str) -> None:
    """Write model, voices and a table of phonemes as the catalogue names them.

    Args:
        folder: An existing one; gets 355 MB.
        symbols: The phonemes, in the order of their numbers.
    """
    torch.manual_seed(0)
    torch.onnx.export(
        Kokoro().eval(),
        (torch.arange(1, 41)[None], torch.randn(1, 2 * STYLE), torch.ones(1)),
        str(folder / "model.onnx"),
        input_names=["tokens", "style", "speed"],
        output_names=["audio"],
        dynamic_axes={"tokens": {1: "tokens"}, "audio": {0: "samples"}},
        opset_version=17,
        dynamo=False,
    )
    styles = np.random.default_rng(0).standard_normal((VOICES * STYLE_ROWS, 2 * STYLE))
    (0.1 * styles).astype(np.float32).tofile(folder / "voices.bin")
    rows = [f"{symbol} {number}" for number, symbol in enumerate(symbols)]
    (folder / "tokens.txt").write_text("\n".join(rows) + "\n", "utf-8")


class Kokoro(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Tokens [1, n], style [1, 256] and speed [1] to sound [1, samples]."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = Albert()
        self.words = TextEncoder()
        self.durations = nn.ModuleList(_lstm(640) for _ in range(4))
        self.duration = nn.Linear(512, 50)
        self.melody = _lstm(640)
        self.pitch, self.energy = Curve(), Curve()
        self.decoder = Decoder()

    def forward(self, tokens: Tensor, style: Tensor, speed: Tensor) -> Tensor:
        tone, manner = style[:, :STYLE], style[:, STYLE:]
        read = self.bert(tokens)  # [1, n, 512]
        for lstm in self.durations:
            told = torch.cat([read, manner[:, None].expand(-1, read.shape[1], -1)], -1)
            read = lstm(told)[0]
        lasting = torch.sigmoid(self.duration(read)).sum(-1, keepdim=True) / speed
        frames = _spread(told + 1e-6 * lasting)
        melody = self.melody(frames)[0].transpose(1, 2)
        spoken = _spread(self.words(tokens)).transpose(1, 2)
        sound: Tensor = self.decoder(
            spoken, self.pitch(melody, manner), self.energy(melody, manner), tone
        )
        return sound.flatten()


class Albert(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Twelve passes through one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 128)
        self.positions = nn.Embedding(512, 128)
        self.wider = nn.Linear(128, 768)
        self.projections = nn.ModuleList(nn.Linear(768, 768) for _ in range(4))
        self.up, self.down = nn.Linear(768, 2048), nn.Linear(2048, 768)
        self.norms = nn.ModuleList(nn.LayerNorm(768) for _ in range(2))
        self.out = nn.Linear(768, 512)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.wider(self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1])))
        for _ in range(12):
            query, key, value = (
                project(x).view(1, -1, 12, 64).transpose(1, 2) for project in self.projections[:3]
            )
            seen = torch.softmax(query @ key.transpose(-1, -2) / 8, -1) @ value
            x = self.norms[0](x + self.projections[3](seen.transpose(1, 2).reshape(1, -1, 768)))
            x = self.norms[1](x + self.down(F.gelu(self.up(x))))
        return torch.as_tensor(self.out(x))


class TextEncoder(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Three convolutions and a recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 512)
        self.convolutions = nn.ModuleList(nn.Conv1d(512, 512, 5, padding=2) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(512) for _ in range(3))
        self.lstm = _lstm(512)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = F.leaky_relu(norm(convolution(x.transpose(1, 2)).transpose(1, 2)), 0.2)
        return torch.as_tensor(self.lstm(x)[0])


class StyledNorm(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Instance norm whose scale and shift come from the style (AdaIN)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm1d(channels, affine=True)
        self.fc = nn.Linear(STYLE, 2 * channels)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        scale, shift = self.fc(style)[..., None].chunk(2, 1)
        return torch.as_tensor((1 + scale) * self.norm(x) + shift)


class StyledBlock(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Two convolutions of 3, beside which the input passes; may double the rate."""

    def __init__(self, wide: int, out: int, *, doubles: bool = False) -> None:
        super().__init__()
        self.doubles = doubles
        self.first, self.second = (
            nn.Conv1d(wide, out, 3, padding=1),
            nn.Conv1d(out, out, 3, padding=1),
        )
        self.norms = nn.ModuleList([StyledNorm(wide), StyledNorm(out)])
        self.short = nn.Conv1d(wide, out, 1, bias=False) if wide != out else nn.Identity()
        self.pool = nn.ConvTranspose1d(
            wide, wide, 3, stride=2, groups=wide, padding=1, output_padding=1
        )

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        y = F.leaky_relu(self.norms[0](x, style), 0.2)
        if self.doubles:
            x, y = F.interpolate(x, scale_factor=2.0), self.pool(y)
        y = self.second(F.leaky_relu(self.norms[1](self.first(y), style), 0.2))
        return torch.as_tensor((y + self.short(x)) * 0.7071)


class Curve(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Pitch or energy at twice the frame rate."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            [StyledBlock(512, 512), StyledBlock(512, 256, doubles=True), StyledBlock(256, 256)]
        )
        self.out = nn.Conv1d(256, 1, 1)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, style)
        return torch.as_tensor(self.out(x))


class Decoder(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Five styled blocks, then the vocoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = StyledBlock(514, 1024)
        wide = 1024 + 2 + 64
        self.blocks = nn.ModuleList(
            [*(StyledBlock(wide, 1024) for _ in range(3)), StyledBlock(wide, 512, doubles=True)]
        )
        self.curves = nn.ModuleList(nn.Conv1d(1, 1, 3, stride=2, padding=1) for _ in range(2))
        self.narrow = nn.Conv1d(512, 64, 1)
        self.vocoder = Vocoder()

    def forward(self, spoken: Tensor, pitch: Tensor, energy: Tensor, style: Tensor) -> Tensor:
        curves = [curve(one) for curve, one in zip(self.curves, (pitch, energy), strict=True)]
        x = self.encode(torch.cat([spoken, *curves], 1), style)
        beside = torch.cat([self.narrow(spoken), *curves], 1)
        for block in self.blocks:
            x = block(torch.cat([x, beside], 1), style)
        return torch.as_tensor(self.vocoder(x, style, pitch))


class Vocoder(nn.Module):  # type: ignore[misc] # torch is untyped here
    """The generator of iSTFTNet: two upsamplings of 10 and 6, then an inverse transform."""

    def __init__(self) -> None:
        super().__init__()
        self.source = nn.Linear(_HARMONICS, 1)
        self.transform = nn.Conv1d(1, _N_FFT + 2, _N_FFT, stride=_HOP, padding=_N_FFT // 2)
        self.ups, self.sides = nn.ModuleList(), nn.ModuleList()
        self.side_blocks, self.blocks = nn.ModuleList(), nn.ModuleList()
        for level, (up, kernel) in enumerate(zip(_UP, _UP_KERNELS, strict=True)):
            wide = 512 >> (level + 1)
            self.ups.append(
                nn.ConvTranspose1d(2 * wide, wide, kernel, up, padding=(kernel - up) // 2)
            )
            left = 6 if level == 0 else 1
            side = 2 * left if level == 0 else 1
            pad = (left + 1) // 2 if level == 0 else 0
            self.sides.append(nn.Conv1d(_N_FFT + 2, wide, side, stride=left, padding=pad))
            self.side_blocks.append(SnakeBlock(wide, 7 if level == 0 else 11))
            self.blocks.append(nn.ModuleList(SnakeBlock(wide, one) for one in _KERNELS))
        self.out = nn.Conv1d(128, _N_FFT + 2, 7, padding=3)
        self.inverse = nn.ConvTranspose1d(_N_FFT + 2, 1, _N_FFT, _HOP, padding=_N_FFT // 2)

    def forward(self, x: Tensor, style: Tensor, pitch: Tensor) -> Tensor:
        waves = F.interpolate(pitch, scale_factor=300.0).transpose(1, 2)  # [1, samples, 1]
        turns = torch.cumsum(waves * torch.arange(1, _HARMONICS + 1) / 24_000, 1)
        source = torch.tanh(self.source(torch.sin(turns))).transpose(1, 2)
        spectrum = self.transform(source)
        for up, side, side_block, blocks in zip(
            self.ups, self.sides, self.side_blocks, self.blocks, strict=True
        ):
            beside = side_block(side(spectrum), style)
            x = up(F.leaky_relu(x, 0.1))
            if up is self.ups[-1]:
                x = F.pad(x, (1, 0), mode="reflect")
            x = x + beside
            x = sum(block(x, style) for block in blocks) / len(blocks)
        return torch.as_tensor(torch.tanh(self.inverse(torch.sin(self.out(F.leaky_relu(x))))))


class SnakeBlock(nn.Module):  # type: ignore[misc] # torch is untyped here
    """Three pairs of styled convolutions with the snake activation."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, dilation=one, padding=(kernel - 1) * one // 2)
            for dilation in _DILATIONS
            for one in (dilation, 1)
        )
        self.norms = nn.ModuleList(StyledNorm(channels) for _ in self.convolutions)
        self.alphas = nn.ParameterList(torch.ones(1, channels, 1) for _ in self.convolutions)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        y = x
        parts = zip(self.convolutions, self.norms, self.alphas, strict=True)
        for number, (convolution, norm, alpha) in enumerate(parts):
            y = norm(y, style)
            y = convolution(y + torch.sin(alpha * y) ** 2 / alpha)
            if number % 2:
                x = y = x + y
        return x


def _lstm(wide: int) -> nn.LSTM:
    return nn.LSTM(wide, 256, batch_first=True, bidirectional=True)


def _spread(x: Tensor) -> Tensor:
    """Each token for as many frames as it lasts: [1, n, c] to [1, frames, c]."""
    return x.repeat_interleave(FRAMES_PER_TOKEN, 1)
