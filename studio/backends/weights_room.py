"""Whether a model's weights fit into the machine's memory, asked before they are read."""

from __future__ import annotations

import psutil

from studio.errors import ModelUnavailable

_MARGIN = 1.1
"""What reading the files takes beside the weights themselves, as a factor."""


def check_room(title: str, weights_bytes: int, device: str) -> None:
    """Refuse a load that the machine's memory can't hold: the system would end the whole studio.

    Args:
        title: The backend's name for people.
        weights_bytes: What the weights take on the device.
        device: Where to; a card of its own tells itself when it is full.

    Raises:
        ModelUnavailable: Too little is free; names what is needed and what is there.
    """
    if device == "cuda":
        return
    needed_bytes, free_bytes = weights_bytes * _MARGIN, psutil.virtual_memory().available
    if free_bytes < needed_bytes:
        raise ModelUnavailable(
            f"{title} needs about {needed_bytes / 1e9:.1f} GB of memory, and "
            f"{free_bytes / 1e9:.1f} GB are free. Close other programs or unload other models and "
            "load again, or choose a smaller voice engine."
        )
