"""Asking the engine for a line: as chunks in a thread, or as a whole on an event loop."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Generator

import numpy as np

from studio.audio.clip import Samples
from studio.backends.batched.line import Deliver, End, Line, Task

Submit = Callable[[Line], None]


def chunks(submit: Submit, task: Task) -> Generator[Samples]:
    """Speak a line; blocks between chunks.

    Args:
        submit: `Engine.submit`.
        task: The line.

    Yields:
        As `Backend.speak`; closing it early frees the slot within one frame.

    Raises:
        StudioError: Why the line isn't whole.
    """
    feed: queue.SimpleQueue[Samples | End] = queue.SimpleQueue()
    line = Line(task, feed.put)
    submit(line)
    try:
        while not isinstance(given := feed.get(), End):
            yield given
    finally:
        line.close()
    if given.error is not None:
        raise given.error


async def infer(submit: Submit, task: Task) -> Samples:
    """Speak a line without a thread of its own; cancelling it frees the slot within one frame.

    Args:
        submit: `Engine.submit`.
        task: The line.

    Returns:
        float32 [samples], the whole line.

    Raises:
        StudioError: Why there is no whole line.
    """
    feed: asyncio.Queue[Samples | End] = asyncio.Queue()
    line = Line(task, _from_any_thread(feed))
    submit(line)
    made = [np.zeros(0, np.float32)]
    try:
        while not isinstance(given := await feed.get(), End):
            made.append(given)
    finally:
        line.close()
    if given.error is not None:
        raise given.error
    return np.concatenate(made)


def _from_any_thread(feed: asyncio.Queue[Samples | End]) -> Deliver:
    loop = asyncio.get_running_loop()

    def deliver(given: Samples | End) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(feed.put_nowait, given)

    return deliver
