"""Options that the composition root passes to the backends; each reads its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

OWN_VOICES = "voices"
"""Of a workspace, the folder of small voices that somebody added."""


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Options of the remote backend, the same for all servers.

    Attributes:
        urls: Base URLs, with or without `/v1` at the end; they may hold a name and password.
        model: The model to ask for; None for what each server has.
        key: Sent as bearer token; None where none is needed.
        concurrency: Requests in flight on each server, from 1.
        timeout_s: For one try at one line, from the request to its last byte.
        retry_s: Pause before the second try at a line; later ones are longer.
        patience_s: How long lines wait while no server answers; a server with a large model takes
            minutes to start again.
    """

    urls: tuple[str, ...] = field(default=(), repr=False)
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    concurrency: int = 4
    timeout_s: float = 120.0
    retry_s: float = 0.2
    patience_s: float = 180.0


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Options of continuous batching.

    Attributes:
        enabled: Whether any are; not where the process may have no threads of its own.
        slots: Lines decoded together; None for as many as the memory holds.
        positions: Of a line's cache: its prompt and its frames; None for what a long line needs.
        max_wait_s: How long the first line waits for others before an idle engine begins.
        continuous: Whether a slot is refilled while other lines run, or only when all are done.
        float32: Whether matrices stay in 32 bits on an x86 processor instead of twice 8, and lines
            are made one by one: three times as slow.
    """

    enabled: bool = True
    slots: int | None = None
    positions: int | None = None
    max_wait_s: float = 0.05
    continuous: bool = True
    float32: bool = False


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """Options of a studio's backends.

    Attributes:
        chatterbox_model: Hub name or local folder; None for the package's own weights.
        chatterbox_turbo_model: The same for the turbo model alone.
        chatterbox_multilingual_model: The same for the multilingual model alone.
        qwen3_model: Hub name or local folder; None for the backend's own choice.
        package_ends: Whether Chatterbox Multilingual ends lines by its package's own rule, which
            may cut them short.
        amp_on_cuda: Whether to run in mixed precision on CUDA.
        tf32: Whether convolutions round to 10 bits before they multiply on CUDA.
        graphs: Whether frames are captured as graphs on CUDA.
        device: "cuda", "mps" or "cpu"; None for the best there is.
        reference_silence_s: Silence after a sample, which keeps its last word out of the line.
        own_voices: Folder of small voices that somebody added; None for none.
        batch: For models that can decode many lines together.
        remote: The speech servers there are.
    """

    chatterbox_model: str | None = None
    chatterbox_turbo_model: str | None = None
    chatterbox_multilingual_model: str | None = None
    qwen3_model: str | None = None
    package_ends: bool = False
    amp_on_cuda: bool = False
    tf32: bool = True
    graphs: bool = True
    device: str | None = None
    reference_silence_s: float = 0.5
    own_voices: Path | None = None
    batch: BatchOptions = field(default_factory=BatchOptions)
    remote: RemoteOptions = field(default_factory=RemoteOptions)
