from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from studio.server.middleware.admission import (
    ConcurrencyLimitMiddleware,
    RequestBuffer,
    RequestQueue,
)
from studio.server.policies import (
    UNDECLARED,
    Access,
    RequestClass,
    RoutePolicies,
    RoutePolicy,
    keep_policy,
)

pytestmark = pytest.mark.slow


def client_of(app) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://studio")


def limited(app: FastAPI, at_once: int, **limits: float) -> httpx.AsyncClient:
    queues = {RequestClass.SHORT: RequestQueue(at_once, **limits)}
    limit, policies = ConcurrencyLimitMiddleware(app, queues), RoutePolicies(app.routes)

    async def outermost(scope: Scope, receive: Receive, send: Send) -> None:
        keep_policy(scope, policies.find(scope["method"], scope["path"]) or UNDECLARED)
        await limit(scope, receive, send)

    return client_of(outermost)


@RoutePolicy(request_class=RequestClass.UNCOUNTED)
async def uncounted() -> None:
    pass


class Slow(FastAPI):
    """A route whose answers wait until they may come, and one that is in no queue."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.let_go = asyncio.Semaphore(0), asyncio.Event()
        self.post("/studio/projects")(self.slow)
        self.get("/healthz")(uncounted)

    async def slow(self, request: Request) -> int:
        await request.body()
        self.inside.release()
        await self.let_go.wait()
        return 1


async def test_beyond_the_bound_everybody_is_told_at_once() -> None:
    app = Slow()
    async with limited(app, 2, patience_s=600, most_waiting=0) as client:
        waiting = [
            asyncio.ensure_future(client.post("/studio/projects", content=b"x")) for _ in range(2)
        ]
        for _ in waiting:
            await app.inside.acquire()
        refused = await client.post("/studio/projects", content=b"x" * 5_000)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert (await client.get("/healthz")).status_code == 200  # in spite of the others
        app.let_go.set()
        assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200, 200]
        assert (await client.post("/studio/projects", content=b"x")).status_code == 200


async def test_some_wait_for_their_turn_and_are_answered() -> None:
    app = Slow()
    async with limited(app, 2, patience_s=600) as client:
        asked = [asyncio.ensure_future(client.post("/studio/projects")) for _ in range(20)]
        for _ in range(2):
            await app.inside.acquire()
        assert app.inside.locked()  # two at once and no more
        app.let_go.set()
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}


async def test_eight_short_requests_run_at_once() -> None:
    app = Slow()
    asked: list[asyncio.Future] = []

    async def outermost(scope: Scope, receive: Receive, send: Send) -> None:
        keep_policy(scope, RoutePolicy(request_class=RequestClass.SHORT))
        await limit(scope, receive, send)

    limit = ConcurrencyLimitMiddleware(app)
    async with client_of(outermost) as client:
        asked += [asyncio.ensure_future(client.post("/studio/projects")) for _ in range(20)]
        for _ in range(8):
            await app.inside.acquire()
        for _ in range(200):  # whoever could come in would have by now
            await asyncio.sleep(0)
        assert app.inside.locked()
        app.let_go.set()
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}


async def test_nobody_waits_longer_than_the_patience() -> None:
    app = Slow()
    async with limited(app, 1, patience_s=0.01) as client:
        held = asyncio.ensure_future(client.post("/studio/projects"))
        await app.inside.acquire()
        assert (await client.post("/studio/projects")).status_code == 429
        app.let_go.set()
        assert (await held).status_code == 200
        assert (await client.post("/studio/projects")).status_code == 200


async def test_who_fails_makes_room_too() -> None:
    app = FastAPI()

    @app.get("/studio/broken")
    async def broken() -> None:
        raise RuntimeError("the route broke")

    async with limited(app, 1, patience_s=600, most_waiting=0) as client:
        for _ in range(3):
            with pytest.raises(RuntimeError, match="broke"):
                await client.get("/studio/broken")


async def test_eight_requests_run_at_once_and_the_ninth_waits() -> None:
    app = Slow()
    policies = RoutePolicies(app.routes)
    limit = ConcurrencyLimitMiddleware(app)

    async def outermost(scope: Scope, receive: Receive, send: Send) -> None:
        keep_policy(scope, policies.find(scope["method"], scope["path"]) or UNDECLARED)
        await limit(scope, receive, send)

    async with client_of(outermost) as client:
        asked = [asyncio.ensure_future(client.post("/studio/projects")) for _ in range(9)]
        for _ in range(8):
            await app.inside.acquire()
        for _ in range(100):
            await asyncio.sleep(0)
        assert app.inside.locked()
        app.let_go.set()
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}


class Sending:
    """A body that comes when a test says so."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.begun = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"begun"
        self.begun.set()
        while (piece := await self.pieces.get()) is not None:
            yield piece


async def test_bodies_that_do_not_come_keep_nobody_out() -> None:
    app = Slow()
    app.let_go.set()
    arrivals = RequestBuffer(at_once=3, of_one=3, silent_s=600, clock=lambda: 0.0)
    queues = {RequestClass.SHORT: RequestQueue(1, patience_s=600, most_waiting=0)}
    async with client_of(ConcurrencyLimitMiddleware(app, queues, arrivals)) as client:
        stalled = [Sending() for _ in range(3)]
        held = [
            asyncio.ensure_future(client.post("/studio/projects", content=aiter(one)))
            for one in stalled
        ]
        for one in stalled:
            await one.begun.wait()
        # A place is there for whoever has sent all, and only for bodies there is none left.
        assert (await client.get("/studio/projects")).status_code == 405
        assert (await client.post("/studio/projects", content=b"")).status_code == 200
        refused = await client.post("/studio/projects", content=b"x")
        assert refused.status_code == 429
        assert refused.json()["error"]["kind"] == "EngineBusy"
        assert int(refused.headers["retry-after"]) > 0
        for one in stalled:
            one.pieces.put_nowait(None)
        assert [answer.status_code for answer in await asyncio.gather(*held)] == [200] * 3
        assert arrivals.active_count == 0


async def test_the_slowest_body_gives_way_to_a_new_one() -> None:
    app, now_s = Slow(), 0.0
    app.let_go.set()
    arrivals = RequestBuffer(at_once=2, of_one=2, silent_s=600, clock=lambda: now_s)
    async with client_of(ConcurrencyLimitMiddleware(app, bodies=arrivals)) as client:
        fast, slow = Sending(), Sending()
        held = [
            asyncio.ensure_future(client.post("/studio/projects", content=aiter(one)))
            for one in (fast, slow)
        ]
        fast.pieces.put_nowait(bytes(1_000_000))
        await fast.begun.wait()
        await slow.begun.wait()
        assert (await client.post("/studio/projects", content=b"x")).status_code == 429
        now_s = 5.0
        assert (await client.post("/studio/projects", content=b"x")).status_code == 200
        assert (await held[1]).status_code == 408
        fast.pieces.put_nowait(None)
        assert (await held[0]).status_code == 200
        assert arrivals.active_count == 0


async def test_one_sender_cannot_take_all() -> None:
    app = Slow()
    app.let_go.set()
    arrivals = RequestBuffer(at_once=10, of_one=1, silent_s=600, clock=lambda: 0.0)
    async with client_of(ConcurrencyLimitMiddleware(app, bodies=arrivals)) as client:
        stalled = Sending()
        mine = {"Cookie": "tableread_visitor=me"}
        held = asyncio.ensure_future(
            client.post("/studio/projects", content=aiter(stalled), headers=mine)
        )
        await stalled.begun.wait()
        codes = [
            (await client.post("/studio/projects", content=b"x", headers=who)).status_code
            for who in (mine, {"Cookie": "tableread_visitor=you"}, {})
        ]
        assert codes == [429, 200, 200]
        stalled.pieces.put_nowait(None)
        assert (await held).status_code == 200


async def test_programs_without_the_key_keep_no_program_with_it_out() -> None:
    app = Slow()
    app.let_go.set()
    arrivals = RequestBuffer(at_once=10, of_one=1, silent_s=600, clock=lambda: 0.0)
    async with client_of(ConcurrencyLimitMiddleware(app, bodies=arrivals)) as client:
        stalled = Sending()
        held = asyncio.ensure_future(client.post("/studio/projects", content=aiter(stalled)))
        await stalled.begun.wait()
        key = {"Authorization": "Bearer sk-owner"}
        codes = [
            (await client.post("/studio/projects", content=b"x", headers=who)).status_code
            for who in ({}, key)
        ]
        assert codes == [429, 200]
        stalled.pieces.put_nowait(None)
        assert (await held).status_code == 200


async def test_one_address_cannot_take_all_by_other_cookies() -> None:
    app = Slow()
    app.let_go.set()
    arrivals = RequestBuffer(at_once=8, of_one=8, silent_s=600, clock=lambda: 0.0)
    limit = ConcurrencyLimitMiddleware(app, bodies=arrivals)

    def sender(address: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(limit, client=(address, 50_000))
        return httpx.AsyncClient(transport=transport, base_url="http://studio")

    async with sender("203.0.113.7") as greedy, sender("203.0.113.8") as other:
        stalled = [Sending() for _ in range(4)]
        held = [
            asyncio.ensure_future(
                greedy.post(
                    "/studio/projects", content=aiter(one), headers={"Cookie": f"a={place}"}
                )
            )
            for place, one in enumerate(stalled)
        ]
        for one in stalled:
            await one.begun.wait()
        refused = await greedy.post("/studio/projects", content=b"x", headers={"Cookie": "a=new"})
        assert refused.status_code == 429
        assert (await other.post("/studio/projects", content=b"x")).status_code == 200
        for one in stalled:
            one.pieces.put_nowait(None)
        assert [answer.status_code for answer in await asyncio.gather(*held)] == [200] * 4
        again = await greedy.post("/studio/projects", content=b"x", headers={"Cookie": "a=new"})
        assert again.status_code == 200


async def test_streams_are_bounded_but_for_the_owner() -> None:
    app = Slow()
    stream = RoutePolicy(Access.GUEST, request_class=RequestClass.UNCOUNTED)
    limit = ConcurrencyLimitMiddleware(
        app, most_streams=4, is_owner=lambda asks: "owner" in asks.cookies
    )

    async def outermost(scope: Scope, receive: Receive, send: Send) -> None:
        keep_policy(scope, stream)
        await limit(scope, receive, send)

    async with client_of(outermost) as client:
        held = [asyncio.ensure_future(client.post("/studio/projects")) for _ in range(4)]
        for _ in held:
            await app.inside.acquire()
        refused = await client.post("/studio/projects")
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "10"
        cookie = {"Cookie": "owner=1"}
        held.append(asyncio.ensure_future(client.post("/studio/projects", headers=cookie)))
        await app.inside.acquire()
        app.let_go.set()
        assert {answer.status_code for answer in await asyncio.gather(*held)} == {200}
        assert (await client.post("/studio/projects")).status_code == 200


async def test_a_body_that_falls_silent_is_given_up() -> None:
    arrivals = RequestBuffer(silent_s=0.01)
    async with client_of(ConcurrencyLimitMiddleware(Slow(), bodies=arrivals)) as client:
        answer = await client.post("/studio/projects", content=aiter(Sending()))
        assert answer.status_code == 408
        assert arrivals.active_count == 0
