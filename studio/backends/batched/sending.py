"""Numbers of the host on their way to the device."""

from __future__ import annotations

import torch


def sent(numbers: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the host on the device, without waiting for what the device still does.

    A copy from ordinary memory would wait for all frames that are queued.
    """
    if device.type == "cuda":
        return numbers.pin_memory().to(device, non_blocking=True)
    return numbers.to(device)
