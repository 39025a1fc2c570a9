"""One thread at a time on Apple's graphics: all models of the process share a turn.

Metal's command queue in torch 2.11 takes one thread at a time; two that submit at once end the
process (pytorch issue 197805). Whatever a backend does there, it does in its turn: reading a
prompt, a step, conditioning, turning codes into sound, loading, giving memory back. On other
devices a turn costs nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, TypeVar

ItemT = TypeVar("ItemT")

ONE_AT_A_TIME = {"mps": threading.RLock()}
"""Guards each device that takes one thread at a time; reentrant, as models call each other."""


def turn(device: Any) -> AbstractContextManager[Any]:
    """A context in which this thread alone uses a device.

    Args:
        device: A torch device or its name.
    """
    return ONE_AT_A_TIME.get(str(device).partition(":")[0]) or nullcontext()


def in_turns(items: Iterable[ItemT], device: Any) -> Iterator[ItemT]:
    """Items that a generator makes on a device, each made in a turn of its own.

    Between them, while whoever takes them does something else, others have the device.
    """
    making = iter(items)
    try:
        while True:
            with turn(device):
                try:
                    item = next(making)
                except StopIteration:
                    return
            yield item
    finally:
        if isinstance(making, Generator):
            making.close()


def taking_turns(method: Callable[[Any], None]) -> Callable[[Any], None]:
    """Let a method of something that has a `_device` run in its turn there."""

    @wraps(method)
    def in_turn(itself: Any) -> None:
        with turn(itself._device):
            method(itself)

    return in_turn
