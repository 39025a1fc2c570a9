"""Measures faster-qwen3-tts-batch, from a Python environment of its own.

Run as a program: a JSON object with `folder` and `lines` on standard input, one with figures as the
last line of standard output. It imports nothing of the studio, whose packages aren't there.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BATCH = 8
POSITIONS = 1_024


def measure(folder: str, lines: list[tuple[str, int]]) -> dict[str, Any]:
    """Speak the lines in batches of about the same length, and time it.

    Args:
        folder: Of the checkpoint.
        lines: Text and frames; a batch runs to the longest of its lines, and only what was asked
            for is counted.
    """
    import torch

    package = importlib.import_module("faster_qwen3_tts_batch")
    model = package.BatchedFasterQwen3TTS.from_pretrained(
        folder, max_batch_size=BATCH, max_seq_len=POSITIONS
    )
    model.warmup(prefill_len=100)
    ordered = sorted(lines, key=lambda line: line[1])
    with tempfile.TemporaryDirectory() as place:
        sample = _write_sample(Path(place) / "sample.wav")
        _speak(model, ordered[:BATCH], sample)
        torch.cuda.reset_peak_memory_stats()
        took_s, cpu_s = [], time.process_time()
        for start in range(0, len(ordered), BATCH):
            began_s = time.perf_counter()
            _speak(model, ordered[start : start + BATCH], sample)
            took_s.append(time.perf_counter() - began_s)
        cpu_s = time.process_time() - cpu_s
    return {
        "cpu_s": cpu_s,
        "audio_s": sum(frames for _, frames in lines) / 12.5,
        "wall_s": sum(took_s),
        "first_s": took_s,
        "memory_bytes": torch.cuda.max_memory_allocated(),
    }


def _speak(model: Any, lines: list[tuple[str, int]], sample: str) -> None:
    asked = [
        {"text": text, "language": "English", "ref_audio": sample, "ref_text": ""}
        for text, _ in lines
    ]
    model.generate_voice_clone_batch(asked, max_new_tokens=max(frames for _, frames in lines))


def _write_sample(path: Path) -> str:
    """Two seconds of noise, as the other engines have it."""
    import numpy as np
    import soundfile

    noise = np.random.default_rng(0).normal(0, 0.1, 48_000).astype(np.float32)
    soundfile.write(path, noise, 24_000)
    return str(path)


if __name__ == "__main__":
    request = json.load(sys.stdin)
    figures = measure(request["folder"], request["lines"])
    sys.stdout.write(f"\n{json.dumps(figures)}\n")
