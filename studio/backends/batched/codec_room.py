"""How much the codec decodes at once, and the memory that takes."""

from __future__ import annotations

CODEC_FRAMES = {"cuda": (64, 512), "mps": (64, 512), "cpu": (64, 128)}
"""Of finished lines through the codec at once, at least and at most. More are no faster, and who
listens waits for them."""

CODEC_ROW_FRAMES = 8
"""Of one line at once. Half of it is padded on average, at the line's end."""

STREAM_FRAMES = (1, 2, 4, 8, 16)
"""Of a line that is heard while it is made; any chunk is a sum of these."""

HEARD_TOGETHER = 2
"""Lines that are heard while they are made and decoded in one go: at the play-head, and after."""

KEPT_SAMPLES = 16
"""Voices of which the codec keeps what their sample comes to."""

CODEC_FRAME_BYTES = 4_000_000  # 3.4 MB of tensors live at once, and a library's workspace
_CODEC_STATE_BYTES = 5_300_000  # a row's, and its codes and samples
_CODEC_TABLES_BYTES = 34_000_000


def codec_bytes(frames: int) -> int:
    """What the codec takes for so many frames at once.

    That is its state, what its graphs compute with (those of finished lines take turns, so the
    largest counts, and those of chunks too), its tables, and what it keeps of samples.
    """
    rows = frames // CODEC_ROW_FRAMES + HEARD_TOGETHER
    kept = (rows + KEPT_SAMPLES) * _CODEC_STATE_BYTES
    heard = HEARD_TOGETHER * max(STREAM_FRAMES)
    return (frames + heard) * CODEC_FRAME_BYTES + kept + _CODEC_TABLES_BYTES
