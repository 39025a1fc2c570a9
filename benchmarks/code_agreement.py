"""How often whole numbers make the codes that float32 makes, frame by frame, at full size."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from benchmarks.metrics import EngineMetrics, track_memory
from benchmarks.synthetic_qwen3 import SyntheticSize, build_random_model
from studio.backends.batching.decoder_stack import DecoderStack, keep_matrix, linear
from studio.backends.batching.int8_matrix import Int8Matrix
from studio.backends.qwen3.talker_weights import TalkerWeights, pack_talker

FRAMES = 250
_FRAMES_A_SECOND = 12.5
_DRAWS = 3


def measure_agreement(
    size: SyntheticSize, device: str, *, frames: int = FRAMES, draws: int = _DRAWS
) -> Iterator[EngineMetrics]:
    """Read frames of chance with both, each frame after the true ones before it; weights of chance.

    The best code of all groups counts, which is the hardest question: scores of weights of chance
    lie closer together than those of a trained model, so that less turns them round.

    Returns:
        A row for each draw of weights and frames; the notes hold the shares of frames and of codes
        that are the same.
    """
    for draw in range(1, draws + 1):
        began_s, cpu_s = time.perf_counter(), time.process_time()
        with track_memory(device) as memory, torch.inference_mode():
            same = _draw(size, frames, draw)
        yield EngineMetrics(
            f"{NAME}, draw {draw}",
            frames / _FRAMES_A_SECOND,
            time.perf_counter() - began_s,
            (),
            memory(),
            lines=1,
            cpu_s=time.process_time() - cpu_s,
            notes=f"{same.all(1).float().mean():.1%} of {frames} frames the same, "
            f"{same.float().mean():.2%} of codes",
        )


NAME = "codes, whole numbers against float32"


def _draw(size: SyntheticSize, frames: int, draw: int) -> torch.Tensor:
    """Which codes are the same: bool [frames, groups]."""
    # A checkpoint holds 16 bits, of which the matrices are made in 32.
    talker = build_random_model(size, seed=draw).to(torch.bfloat16).float().talker
    full, whole = (pack_talker(talker, frames, pack=pack) for pack in (keep_matrix, Int8Matrix.of))
    chance = torch.Generator().manual_seed(draw)
    codes = torch.randint(0, len(full.rest_heads[0]), (frames, full.groups), generator=chance)
    return _best(full, codes) == _best(whole, codes)


def _best(weights: TalkerWeights, codes: torch.Tensor) -> torch.Tensor:
    """The best code of each group, given all true ones before it: int64 [frames, groups]."""
    frames = F.embedding(codes + weights.offsets, weights.tables).sum(dim=1)
    hidden = _read(weights.talker, frames[None])[0]
    best = [(linear(hidden, weights.head) + weights.banned).argmax(dim=1)]
    seen = [hidden if weights.project is None else linear(hidden, *weights.project)]
    tables = (weights.rest_first, *weights.rest_tables)
    seen += [F.embedding(codes[:, group], table) for group, table in enumerate(tables)]
    states = _read(weights.predictor, torch.stack(seen, dim=1))
    for group, head in enumerate(weights.rest_heads, start=1):
        best.append(linear(states[:, group], head).argmax(dim=1))
    return torch.stack(best, dim=1)


def _read(stack: DecoderStack, x: torch.Tensor) -> torch.Tensor:
    """Read sequences with causal attention: [sequences, positions, hidden] to the same."""
    sequences, positions, _ = x.shape
    at = torch.arange(positions).repeat(sequences)

    def attend(_index: int, heads: torch.Tensor) -> torch.Tensor:
        each = heads.unflatten(1, (sequences, positions)).movedim(2, 4)
        turned, plain = each  # [sequences, kv_heads, group + 2, positions, head_dim]
        queries = turned[:, :, : stack.group]
        keys, values = turned[:, :, stack.group, None], plain[:, :, stack.group + 1, None]
        mixed = F.scaled_dot_product_attention(
            queries, keys.expand_as(queries), values.expand_as(queries), is_causal=True
        )
        return mixed.permute(0, 3, 2, 1, 4).flatten(0, 1).flatten(1)

    return stack.forward(x.flatten(0, 1), at, attend).unflatten(0, (sequences, positions))
