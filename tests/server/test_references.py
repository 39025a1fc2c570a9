"""Recordings in requests are read apart from everything else."""

from __future__ import annotations

import asyncio
import threading

import pytest

from studio.errors import EngineBusy
from studio.server.v1.speech_bodies import References


async def test_slow_recordings_hold_no_thread_of_the_page_and_are_not_too_many() -> None:
    references, may_end = References(), threading.Event()
    held = [asyncio.ensure_future(references.run(may_end.wait)) for _ in range(10)]
    await asyncio.sleep(0)
    with pytest.raises(EngineBusy) as refused:
        await references.run(may_end.wait)
    assert refused.value.retry_after_s > 0
    # The loop's own threads, all of which ten of these would have held, are free.
    assert await asyncio.gather(*(asyncio.to_thread(lambda: True) for _ in range(40)))
    may_end.set()
    assert await asyncio.gather(*held) == [True] * 10
    assert await references.run(lambda: "read") == "read"


async def test_who_leaves_makes_no_room_before_the_work_ends() -> None:
    references, may_end = References(), threading.Event()
    held = [asyncio.ensure_future(references.run(may_end.wait)) for _ in range(10)]
    await asyncio.sleep(0)
    for one in held:
        one.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    with pytest.raises(EngineBusy):
        await references.run(may_end.wait)
    may_end.set()


async def test_what_went_wrong_is_told() -> None:
    def fail() -> None:
        raise ValueError("no recording")

    references = References()
    with pytest.raises(ValueError, match="no recording"):
        await references.run(fail)
