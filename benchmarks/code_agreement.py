"""How often whole numbers make the codes that float32 makes, frame by frame, at full size."""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.nn.functional as F

from benchmarks.metrics import EngineMetrics, track_memory
from studio.backends.batching.decoder_stack import DecoderStack, keep_matrix, linear
from studio.backends.batching.int8_matrix import Int8Matrix
from studio.backends.qwen3.qwen3_model import load_model
from studio.backends.qwen3.talker_weights import TalkerWeights, pack_talker

FRAMES = 250
_FRAMES_A_SECOND = 12.5


def measure_agreement(folder: Path, device: str, frames: int = FRAMES) -> EngineMetrics:
    """Read the same frames of chance with both, each frame after the true ones before it.

    The best code of all groups counts, which is the hardest question: scores of weights of chance
    lie closer together than those of a trained model, so that less turns them round.

    Returns:
        The notes hold the shares of frames and of codes that are the same.
    """
    talker = load_model(folder, device, graphs=False).package.talker
    began_s, cpu_s = time.perf_counter(), time.process_time()
    with track_memory(device) as memory, torch.inference_mode():
        full, whole = (
            pack_talker(talker, FRAMES, pack=pack) for pack in (keep_matrix, Int8Matrix.of)
        )
        chance = torch.Generator().manual_seed(frames)
        codes = torch.randint(0, len(full.rest_heads[0]), (frames, full.groups), generator=chance)
        same = torch.stack([_best(full, codes) == _best(whole, codes)])[0]  # [frames, groups]
    return EngineMetrics(
        "codes, whole numbers against float32",
        frames / _FRAMES_A_SECOND,
        time.perf_counter() - began_s,
        (),
        memory(),
        lines=1,
        cpu_s=time.process_time() - cpu_s,
        notes=f"{same.all(1).float().mean():.1%} of {frames} frames the same, "
        f"{same.float().mean():.2%} of codes",
    )


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
