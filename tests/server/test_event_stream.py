"""Streams of events on the wire, and that nothing of one is left when its reader goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from studio.server import event_stream
from studio.server.event_stream import PING, EventStream, encode_event, is_woken


async def sent_by(events: AsyncGenerator[bytes, None], *, until: bytes) -> list[dict[str, Any]]:
    """What a reader gets who goes after having read some bytes."""
    sent: list[dict[str, Any]] = []
    has_read = asyncio.Event()

    async def send(message: Any) -> None:
        sent.append(message)
        if message.get("body") == until:
            has_read.set()

    async def receive() -> dict[str, str]:
        await has_read.wait()
        return {"type": "http.disconnect"}

    await asyncio.wait_for(EventStream(events)({"type": "http"}, receive, send), 60)
    return sent


def test_events_are_sent_as_browsers_read_them() -> None:
    assert encode_event({"a": 1}, 7) == b'data: {"a": 1}\nid: 7\n\n'
    assert encode_event("é") == b'data: "\\u00e9"\n\n'


def test_a_stream_says_what_it_is_and_ends_with_its_reader() -> None:
    ended: list[str] = []

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            yield encode_event(1, 1)
            yield encode_event(2, 2)
            await asyncio.Event().wait()
        finally:
            ended.append("now")

    begin, *bodies = asyncio.run(sent_by(events(), until=encode_event(2, 2)))
    headers = dict(begin["headers"])
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert headers[b"cache-control"] == b"no-cache"
    assert [one["body"] for one in bodies[:2]] == [encode_event(1, 1), encode_event(2, 2)]
    assert ended == ["now"]


def test_a_silent_stream_pings_and_loses_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "_PING_S", 0.01)

    async def read() -> list[dict[str, Any]]:
        woken, pings = asyncio.Event(), 0

        async def events() -> AsyncGenerator[bytes, None]:
            nonlocal pings
            while not await is_woken(woken):
                pings += 1
                if pings == 3:
                    woken.set()
                yield PING
            assert not woken.is_set()
            yield encode_event(1, 1)
            await asyncio.Event().wait()

        return await sent_by(events(), until=encode_event(1, 1))

    bodies = [one["body"] for one in asyncio.run(read())[1:]]
    assert bodies[:4] == [PING, PING, PING, encode_event(1, 1)]
