"""What the composition root tells the backends; each takes from it what it knows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """The same for all backends of a studio.

    Attributes:
        chatterbox_model: Hub name or local folder; None for the package's own weights.
        qwen3_model: Hub name or local folder; None for the backend's own choice.
        amp_on_cuda: Whether to run in mixed precision on CUDA.
        device: "cuda", "mps" or "cpu"; None for the best there is.
        reference_silence_s: Silence after a sample, which keeps its last word out of the line.
    """

    chatterbox_model: str | None = None
    qwen3_model: str | None = None
    amp_on_cuda: bool = False
    device: str | None = None
    reference_silence_s: float = 0.5
