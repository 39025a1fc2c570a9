"""Write a full-size checkpoint with random weights, for the benchmarks.

    python tests/backends/random_weights.py BACKEND FOLDER

BACKEND is qwen3, chatterbox, chatterbox-multilingual or chatterbox-turbo. Dimensions decide speed,
so random weights measure it as well as trained ones. FOLDER is made; it takes about 3 GB. Turbo's
lines don't end by themselves: each runs to its bound, 3 s and 0.2 s a character, and counts as cut.
"""

from __future__ import annotations

import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]


def main(name: str, folder: Path) -> None:
    """Build the checkpoint of a backend."""
    sys.path.insert(0, str(HOME))
    if name == "qwen3":
        import qwen3_checkpoint

        qwen3_checkpoint.build_checkpoint(folder, full_size=True)
    else:
        import chatterbox_checkpoint

        # A small turbo ends at a position that the prompt of a large one lies beyond.
        ends = name != "chatterbox-turbo"
        chatterbox_checkpoint.build_checkpoint(name, folder, ends=ends, full_size=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
