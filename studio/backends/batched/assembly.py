"""A core, a thread for its sound and a scheduler put together into a running engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from studio.backends.batched.codec_thread import CodecThread
from studio.backends.batched.core import BatchedCore
from studio.backends.batched.graphs import settle
from studio.backends.batched.line import Line
from studio.backends.batched.memory import Room
from studio.backends.batched.scheduler import Scheduler
from studio.backends.batched.slot_core import SlotCore
from studio.backends.batched.sound_thread import SoundThread
from studio.backends.batched.thread import Engine
from studio.backends.options import BatchOptions
from studio.backends.qwen3.model import Qwen3Model


def assembled(
    model: Qwen3Model, core: BatchedCore, room: Room, batch: BatchOptions, *, title: str
) -> tuple[Engine, int]:
    """Start an engine of Qwen3-TTS.

    Args:
        model: Whose codec turns frames into audio.
        core: All its slots are free.
        room: What the core was made for.
        batch: How lines are gathered.
        title: The backend's name, for messages.

    Returns:
        As `started`.

    Raises:
        torch.OutOfMemoryError: There was none even for one slot.
    """

    def codec() -> CodecThread:
        decoder = model.codec_decoder
        return CodecThread(decoder, title=title, convolved_at_once=room.codec_frames)

    return started(core, codec, batch, title=title)


def started(
    core: SlotCore[Any],
    sound: Callable[[], SoundThread],
    batch: BatchOptions,
    *,
    title: str,
) -> tuple[Engine, int]:
    """Warm a core and start an engine on it.

    Args:
        core: All its slots are free.
        sound: Starts the thread that turns its frames into audio.
        batch: How lines are gathered.
        title: The backend's name, for messages.

    Returns:
        The engine, and the slots for which there was memory.

    Raises:
        torch.OutOfMemoryError: There was none even for one.
    """
    slots = _warmed(core)
    scheduler: Scheduler[Line] = Scheduler(
        slots, continuous=batch.continuous, max_wait_s=batch.max_wait_s
    )
    thread = sound()
    device = thread.device.type
    engine = Engine(core, thread, scheduler, title=title, device=device)
    return engine, slots


def _warmed(core: SlotCore[Any]) -> int:
    """Do what the first steps would wait for; the slots for which there is memory."""
    slots = 0
    for bucket in core.buckets:
        try:
            core.warm([bucket])
        except torch.OutOfMemoryError:
            if not slots:
                raise
            break
        slots = bucket
    settle(core.device)  # the engine has a stream of its own
    return slots
