"""The options of `bench`."""

from __future__ import annotations

import argparse
from pathlib import Path

from studio.errors import SettingError

# The catalogue's, which takes longer to import than all the rest of a start.
_SMALL_VOICES = ("kokoro", "supertonic", "kitten", "piper", "pocket", "zipvoice")
_BENCHES = (
    *("overhead", "start", "setup", "cold", "concurrency", "engines", "gpu-day", "remote", "page"),
)
_ENGINES = (
    *("reference", "list", "faster", "batch", "ours", "waiting", "transcripts", "steps"),
    *("float32", "codes", "codec", "mixed", "leak", "soak"),
)


def parse_counts(text: str) -> tuple[int, ...]:
    """Read whole numbers from 1 on, with commas between them.

    Raises:
        SettingError: One of them isn't such a number.
    """
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) for part in parts):
        raise SettingError(f"{text} can't be used: write whole numbers from 1 on, as in 200,20.")
    return tuple(map(int, parts))


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `bench` to its parser."""
    parser.add_argument(
        "what",
        nargs="?",
        default="overhead",
        choices=_BENCHES,
        help="which one (default: overhead)",
    )
    parser.add_argument(
        "--lines",
        metavar="N[,N]",
        type=parse_counts,
        help="lines of the dialog (default: 200, 16, 40 or 500); for engines several numbers",
    )
    parser.add_argument(
        "--backend",
        metavar="B",
        help="for cold, concurrency and remote (default: all that can speak now; remote: draft)",
    )
    parser.add_argument(
        "--runs", metavar="N", type=int, help="counted runs (default: by the bench)"
    )
    parser.add_argument(
        "--model",
        default="qwen3",
        choices=("qwen3", "turbo", "chatterbox", "multilingual", *_SMALL_VOICES),
        help="for engines (default: qwen3); small voices as they are installed, Kokoro also "
        "with random weights",
    )
    parser.add_argument(
        "--size",
        metavar="S",
        help="for engines: tiny, mid, 0.6B or 1.7B (default: 0.6B where the memory allows it); of "
        "Chatterbox tiny, mid or full (default: by the device)",
    )
    parser.add_argument(
        "--engines",
        metavar="E[,E]",
        type=lambda text: tuple(text.split(",")),
        help=f"for engines: which of {', '.join(_ENGINES)} (of Chatterbox reference and ours), in "
        "this order (default: by the device)",
    )
    parser.add_argument(
        "--slots",
        metavar="N[,N]",
        type=parse_counts,
        help="for engines: lines decoded together (default: by the device)",
    )
    parser.add_argument(
        "--batch-python",
        metavar="PYTHON",
        help="for engines: a Python that has faster-qwen3-tts-batch, to measure it too",
    )
    parser.add_argument(
        "--line-frames",
        metavar="N",
        type=int,
        help="for engines: the most frames of a line, 12.5 a second (default: as its text takes)",
    )
    parser.add_argument(
        "--checkpoints",
        metavar="DIR",
        type=Path,
        help="for engines: where random weights are kept for the next time (default: nowhere)",
    )
    parser.add_argument(
        "--rehearse",
        action="store_true",
        help="for gpu-day: on the CPU, with a tiny model",
    )
    parser.add_argument(
        "--report",
        metavar="DIR",
        type=Path,
        default=Path("gpu-day"),
        help="for gpu-day: where the report is written (default: gpu-day)",
    )
