from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.requests import Request

from studio.api.crowd import MAX_FAILED_LOGINS, Crowd, LoginLimit


def client_of(app) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://studio")


async def test_beyond_the_bound_everybody_is_told_at_once() -> None:
    app, gate, inside = FastAPI(), asyncio.Event(), asyncio.Semaphore(0)

    @app.post("/studio/script")
    async def slow(request: Request) -> int:
        await request.body()
        inside.release()
        await gate.wait()
        return 1

    async with client_of(Crowd(app, max_waiting=2)) as client:
        waiting = [
            asyncio.ensure_future(client.post("/studio/script", content=b"x")) for _ in range(2)
        ]
        for _ in waiting:
            await inside.acquire()
        refused = await client.post("/studio/script", content=b"x" * 5_000)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert (await client.get("/healthz")).status_code == 404  # asked in spite of the crowd
        gate.set()
        assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200, 200]
        assert (await client.post("/studio/script", content=b"x")).status_code == 200


async def test_who_fails_makes_room_too() -> None:
    app = FastAPI()

    @app.get("/studio/broken")
    async def broken() -> None:
        raise RuntimeError("the route broke")

    async with client_of(Crowd(app, max_waiting=1)) as client:
        for _ in range(3):
            with pytest.raises(RuntimeError, match="broke"):
                await client.get("/studio/broken")


async def test_after_some_wrong_passwords_signing_in_waits_and_then_goes_on() -> None:
    now_s = 0.0
    app = FastAPI()

    @app.post("/login")
    async def login(right: bool = False) -> JSONResponse:
        return JSONResponse({}, 200 if right else 400)

    async with client_of(LoginLimit(app, clock=lambda: now_s)) as client:
        for _ in range(3):
            assert (await client.post("/login?right=true")).status_code == 200
        for _ in range(MAX_FAILED_LOGINS):
            assert (await client.post("/login")).status_code == 400
        refused = await client.post("/login?right=true")
        assert refused.status_code == 429
        now_s += int(refused.headers["retry-after"])
        assert (await client.post("/login?right=true")).status_code == 200
