"""Trains the tests' recogniser: letters from the draft voice's speech, by CTC, on one core.

It is for tests: it understands the draft voice in English and nobody else. What it is for is to be
a real model of a family that sherpa-onnx loads (NeMo's CTC), small enough to lie in the repository.

    python -m benchmarks.train_recogniser --output tests/hearing/draft_ears

needs kaldi-native-fbank, by which sherpa-onnx computes its features, beside the tests' packages.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import soxr
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from benchmarks.draft_words import SpokenLine, WordSpeaker, plant_fault
from studio.audio.clip import STUDIO_RATE_HZ, Samples

RATE_HZ, N_MELS, SUBSAMPLING = 16_000, 80, 3
LETTERS = (" ", "'", *"abcdefghijklmnopqrstuvwxyz")
BLANK = len(LETTERS)

_WORDS_FILE = Path(__file__).with_name("recogniser_words.txt")
_COMMON_WORDS = (
    "the a and of to in it is was he she i you that they we on at for with his her my your but not"
    " be had have as by from this what there all one said so up out if no do when who then them me"
)
_PARTS = 12
_FAULTS = ("missing", "repeated", "repeated", "replaced")
SPEAKERS = ("Ida", "Tom", "Maud", "Captain Rhys", "Pip", "Aunt Vera")
"""Those whose voices it knows; another one's is understood as far as it is like them."""

_Features = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words that lines are made of: those of stories, and those of this repository's texts."""

    plain: tuple[str, ...]
    rare: tuple[str, ...]

    @classmethod
    def read(cls, file: Path) -> Vocabulary:
        """Read two paragraphs of words."""
        plain, rare = file.read_text("utf-8").split("\n\n")
        return cls(tuple(plain.split()), tuple(rare.split()))

    def draw_text(self, chance: random.Random) -> str:
        """A line without sense, so that nothing but sound says which word comes next."""
        kinds = (_COMMON_WORDS.split(), self.plain, self.rare)
        words = [
            chance.choice(chance.choices(kinds, (35, 50, 15))[0])
            for _ in range(chance.randint(2, 13))
        ]
        marks = [chance.choice(",,.?!") if chance.random() < 0.1 else "" for _ in words]
        text = " ".join(map("".join, zip(words, marks, strict=True)))
        return text.strip(",") + chance.choice(".?!")


def letters_of(line: SpokenLine) -> str:
    """What is said, in the recogniser's letters."""
    return re.sub(r"[^a-z' ]", "", " ".join(line.words).lower())


def compute_features(speech: Samples) -> _Features:
    """Log-mel energies as sherpa-onnx computes them for NeMo's models, normalised per feature.

    Args:
        speech: float32 [samples] at the studio's rate.

    Returns:
        float32 [frames, 80], a frame every 10 ms.

    Source: sherpa-onnx 2.0.1, offline-recognizer-ctc-impl.h and math.cc.
    """
    import kaldi_native_fbank  # type: ignore[import-not-found]

    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq = RATE_HZ
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = False
    options.frame_opts.remove_dc_offset = False
    options.frame_opts.window_type = "hann"
    options.mel_opts.num_bins = N_MELS
    options.mel_opts.low_freq = 0.0
    options.mel_opts.high_freq = 0.0
    options.mel_opts.is_librosa = True
    bank = kaldi_native_fbank.OnlineFbank(options)
    speech = soxr.resample(speech, STUDIO_RATE_HZ, RATE_HZ, quality="HQ")
    bank.accept_waveform(RATE_HZ, speech.tolist())
    bank.input_finished()
    frames = np.stack([bank.get_frame(at) for at in range(bank.num_frames_ready)])
    return (frames - frames.mean(0)) / (frames.std(0) + 1e-5)


_Line = tuple[str, _Features]


def make_lines(count: int, seed: int, others: bool = False) -> list[_Line]:
    """Lines of the six voices, half of them with a fault in it, a fifth in noise.

    Args:
        count: How many.
        seed: Of words, faults and noise.
        others: Every second line has a voice that no other line has.
    """
    vocabulary = Vocabulary.read(_WORDS_FILE)
    chance, speaker = random.Random(seed), WordSpeaker()  # noqa: S311
    noise = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        params = {
            "speed": chance.uniform(0.9, 1.15),
            "pitch": chance.uniform(-1, 1),
            "expressiveness": chance.uniform(0.7, 1.3),
        }
        voice = SPEAKERS[number // 2 % len(SPEAKERS)]
        if others and number % 2:
            voice = f"Voice {seed} {number}"
        line, other = (
            speaker.speak(vocabulary.draw_text(chance), voice, params=params) for _ in range(2)
        )
        if chance.random() < 0.5 and len(line.words) > 2:
            line, _, _ = plant_fault(line, other, chance.choice(_FAULTS), chance)
        speech = line.render()
        if chance.random() < 0.2:
            level = 10 ** (-chance.uniform(15, 40) / 20) * speech.std()
            speech = speech + noise.normal(0, level, len(speech)).astype(np.float32)
        lines.append((letters_of(line), compute_features(speech).astype(np.float16)))
    return lines


class Block(nn.Module):  # type: ignore[misc]
    """A convolution over time of each channel, then over channels of each frame, with a bypass."""

    def __init__(self, width: int, kernel: int) -> None:
        """Make it with random weights."""
        super().__init__()
        self.over_time = nn.Conv2d(
            width, width, (1, kernel), padding=(0, kernel // 2), groups=width, bias=False
        )
        self.over_channels = nn.Conv2d(width, width, 1, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, width, 1, frames] to the same."""
        return x + torch.relu(self.norm(self.over_channels(self.over_time(x))))


class LetterModel(nn.Module):  # type: ignore[misc]
    """Log-mel frames to letters: three frames become one, then blocks, as QuartzNet has them.

    Its convolutions have two dimensions because PyTorch's are then three times as fast on a CPU.
    """

    def __init__(self, width: int = 256, blocks: int = 10, kernel: int = 11) -> None:
        """Make it with random weights."""
        super().__init__()
        self.begin = nn.Conv2d(
            N_MELS, width, (1, 9), stride=(1, SUBSAMPLING), padding=(0, 3), bias=False
        )
        self.norm = nn.BatchNorm2d(width)
        self.blocks = nn.ModuleList(Block(width, kernel) for _ in range(blocks))
        self.end = nn.Conv2d(width, len(LETTERS) + 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, mels, frames] to logits [batch, letters, frames // 3]."""
        x = x.unsqueeze(2).contiguous(memory_format=torch.channels_last)
        x = torch.relu(self.norm(self.begin(x)))
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.end(x).squeeze(2)
        return out


@dataclass(frozen=True, slots=True)
class Plan:
    """How it is trained."""

    lines: int
    steps: int
    seed: int
    peak_rate: float = 3e-3
    batch_frames: int = 16_000


def train(lines: Sequence[_Line], plan: Plan) -> LetterModel:
    """Train for so many steps; the rate rises to its peak and falls to nothing."""
    torch.manual_seed(plan.seed)
    chance = random.Random(plan.seed)  # noqa: S311
    model = LetterModel().to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=plan.peak_rate, weight_decay=1e-2)
    lose = nn.CTCLoss(blank=BLANK, zero_infinity=True)
    losses: list[float] = []
    batches: list[list[_Line]] = []
    for step in range(plan.steps):
        batches = batches or make_batches(lines, plan.batch_frames, chance)
        done = step / plan.steps
        for group in optimizer.param_groups:
            group["lr"] = plan.peak_rate * min(done / 0.05, 1, max((1 - done) / 0.7, 1e-3))
        x, frames, targets, counts = collate(batches.pop(), chance)
        scores = model(x).permute(2, 0, 1).log_softmax(-1)
        loss = lose(scores, targets, frames // SUBSAMPLING, counts)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        losses.append(loss.item())
        if step % 50 == 49:
            spent_s = time.process_time()
            print(f"step {step + 1}: {np.mean(losses[-50:]):.3f}, {spent_s:.0f} s", flush=True)
    return model


def make_batches(
    lines: Sequence[_Line], batch_frames: int, chance: random.Random
) -> list[list[_Line]]:
    """Lines of about one length together, the batches in any order."""
    order = sorted(lines, key=lambda line: len(line[1]) + chance.uniform(0, 60))
    batches: list[list[_Line]] = [[]]
    for line in order:
        if batches[-1] and (len(batches[-1]) + 1) * len(line[1]) > batch_frames:
            batches.append([])
        batches[-1].append(line)
    chance.shuffle(batches)
    return batches


def collate(batch: Sequence[_Line], chance: random.Random) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pad lines to one length, and hide a few bands and moments of each (SpecAugment)."""
    longest = max(len(features) for _, features in batch)
    x = torch.zeros(len(batch), N_MELS, longest)
    for row, (_, features) in enumerate(batch):
        x[row, :, : len(features)] = torch.from_numpy(features.astype(np.float32)).T
        band, width = chance.randrange(N_MELS), chance.randrange(1, 14)
        x[row, band : band + width] = 0
        at, length = chance.randrange(longest), chance.randrange(1, 8)
        x[row, :, at : at + length] = 0
    frames = torch.tensor([len(features) for _, features in batch])
    targets = torch.tensor([LETTERS.index(letter) for text, _ in batch for letter in text])
    return x, frames, targets, torch.tensor([len(text) for text, _ in batch])


def fold_norm(weight: Tensor, norm: nn.BatchNorm2d) -> tuple[npt.NDArray[np.float32], ...]:
    """A convolution's weight, over time, and bias, with the normalisation behind it in them."""
    assert norm.running_var is not None
    assert norm.running_mean is not None
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    bias = norm.bias - norm.running_mean * scale
    return (weight.squeeze(2) * scale[:, None, None]).detach().numpy(), bias.detach().numpy()


class OnnxBuilder:
    """Nodes and weights of an ONNX graph; weights are kept as 8-bit integers, a scale a row."""

    def __init__(self) -> None:
        """Start with an empty graph."""
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node with one output; its name."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, values: npt.NDArray[Any]) -> str:
        """Add values as they are; their name."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def quantized(self, values: npt.NDArray[np.float32]) -> str:
        """Add weights [rows, ...] as integers; the name of the floats they become again."""
        scale = np.abs(values).reshape(len(values), -1).max(1) / 127 + 1e-12
        rounded = np.round(values / scale[:, None, None]).astype(np.int8)
        names = [self.constant(rounded), self.constant(scale.astype(np.float32))]
        return self.add("DequantizeLinear", names, axis=0)

    def convolve(
        self,
        x: str,
        weight: npt.NDArray[np.float32],
        bias: npt.NDArray[np.float32] | None,
        **attributes: Any,
    ) -> str:
        """Add a convolution; its output's name."""
        inputs = [x, self.quantized(weight)]
        if bias is not None:
            inputs.append(self.constant(bias))
        return self.add("Conv", inputs, **attributes)


def export(model: LetterModel, file: Path) -> None:
    """Write the model as sherpa-onnx loads those of NeMo."""
    graph = OnnxBuilder()
    weight, bias = fold_norm(model.begin.weight, model.norm)
    x = graph.convolve("audio_signal", weight, bias, strides=[SUBSAMPLING], pads=[3, 3])
    x = graph.add("Relu", [x])
    for block in model.blocks:
        assert isinstance(block, Block)
        over_time = block.over_time.weight.squeeze(2).detach().numpy()
        pad = over_time.shape[2] // 2
        y = graph.convolve(x, over_time, None, pads=[pad, pad], group=len(over_time))
        weight, bias = fold_norm(block.over_channels.weight, block.norm)
        y = graph.add("Relu", [graph.convolve(y, weight, bias)])
        x = graph.add("Add", [x, y])
    assert model.end.bias is not None
    x = graph.convolve(
        x, model.end.weight.squeeze(2).detach().numpy(), model.end.bias.detach().numpy()
    )
    x = graph.add("Transpose", [x], perm=[0, 2, 1])
    graph.nodes.append(helper.make_node("LogSoftmax", [x], ["logprobs"], axis=-1))
    floats, whole = TensorProto.FLOAT, TensorProto.INT64
    made = helper.make_graph(
        graph.nodes,
        "draft-ears",
        [
            helper.make_tensor_value_info("audio_signal", floats, ["N", N_MELS, "T"]),
            helper.make_tensor_value_info("length", whole, ["N"]),
        ],
        [helper.make_tensor_value_info("logprobs", floats, ["N", "t", len(LETTERS) + 1])],
        graph.weights,
    )
    out = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    about = {
        "model_type": "EncDecCTCModel",
        "vocab_size": len(LETTERS),
        "subsampling_factor": SUBSAMPLING,
        "normalize_type": "per_feature",
        "comment": "for Tableread's tests: understands the draft voice in English only",
    }
    helper.set_model_props(out, {key: str(value) for key, value in about.items()})
    onnx.checker.check_model(out)
    onnx.save(out, file)


def write_tokens(file: Path) -> None:
    """Write the table of letters; a space is written as sentencepiece does."""
    names = ["▁" if letter == " " else letter for letter in LETTERS] + ["<blk>"]
    file.write_text("".join(f"{name} {at}\n" for at, name in enumerate(names)), "utf-8")


def decode(model: LetterModel, features: _Features) -> str:
    """The letters that a model reads, each frame's best."""
    with torch.no_grad():
        best = model(torch.from_numpy(features.astype(np.float32)).T[None])[0].argmax(0).tolist()
    kept = [one for at, one in enumerate(best) if one != BLANK and (at == 0 or best[at - 1] != one)]
    return "".join(LETTERS[one] for one in kept).strip()


def count_edits(said: Sequence[str], read: Sequence[str]) -> int:
    """Insertions, deletions and exchanges that make one of the other (Levenshtein)."""
    row = list(range(len(read) + 1))
    for at, one in enumerate(said, start=1):
        before, row[0] = row[0], at
        for to, other in enumerate(read, start=1):
            before, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, before + (one != other))
    return row[-1]


def measure(model: LetterModel, lines: Sequence[_Line]) -> dict[str, float]:
    """The share of letters and of words that are read wrongly."""
    model.eval()
    pairs = [(text, decode(model, features)) for text, features in lines]
    for text, read in pairs[:5]:
        print(f"  {text}\n  {read}\n")
    letters = sum(count_edits(text, read) for text, read in pairs)
    words = sum(count_edits(text.split(), read.split()) for text, read in pairs)
    return {
        "letter_error_rate": round(letters / sum(len(text) for text, _ in pairs), 4),
        "word_error_rate": round(words / sum(len(text.split()) for text, _ in pairs), 4),
    }


def main() -> None:
    """Make the speech, train, measure on lines that weren't trained on, and export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=12_000)
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    plan = Plan(arguments.lines, arguments.steps, arguments.seed)
    parts = range(100 * plan.seed, 100 * plan.seed + _PARTS)
    with ProcessPoolExecutor(2) as processes:  # each with an eSpeak NG of its own
        made = list(
            processes.map(make_lines, [plan.lines // _PARTS] * _PARTS, parts, [True] * _PARTS)
        )
    lines = [line for part in made for line in part]
    hours = sum(len(features) for _, features in lines) / 360_000
    print(f"{plan.lines} lines, {hours:.1f} h, {time.process_time():.0f} s", flush=True)
    model = train(lines, plan)
    errors = measure(model, make_lines(300, 1_000))
    arguments.output.mkdir(parents=True, exist_ok=True)
    file = arguments.output / "model.onnx"
    export(model, file)
    write_tokens(arguments.output / "tokens.txt")
    about = {
        "seed": plan.seed,
        "lines": plan.lines,
        "hours": round(hours, 1),
        "steps": plan.steps,
        "held_out_lines": 300,
        **errors,
        "bytes": file.stat().st_size,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    (arguments.output / "about.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    print(json.dumps(about))


if __name__ == "__main__":
    main()
