from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from shared_studio import app_of_front, front_of
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.server.middleware.login_limit import KeyLimit, LoginLimit
from studio.server.policies import Access, RoutePolicy, keep_policy
from studio.services.studio import Studio

pytestmark = pytest.mark.slow

KEY = "sk-owner"


def client_at(address: str, app: ASGIApp) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(address, 50_000))
    return httpx.AsyncClient(transport=transport, base_url="http://testserver")


class Login(FastAPI):
    """A form that takes a password."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.slept_s: list[float] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.limit = LoginLimit(self, clock=lambda: self.now_s, sleep=self.sleep)
        self.post("/login")(self.login)

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        await self.may_go_on.wait()

    async def login(self, right: bool = False) -> JSONResponse:
        return JSONResponse({}, 200 if right else 400)

    async def sign_in(self, address: str, *, right: bool) -> httpx.Response:
        async with client_at(address, self.limit) as client:
            return await client.post("/login", params={"right": right})


async def test_after_ten_wrong_passwords_an_address_waits_300_s() -> None:
    form = Login()
    for _ in range(3):
        assert (await form.sign_in("127.0.0.1", right=True)).status_code == 200
    for _ in range(10):
        assert (await form.sign_in("127.0.0.1", right=False)).status_code == 400
    refused = await form.sign_in("127.0.0.1", right=True)
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "300"
    form.now_s = 299.0
    assert (await form.sign_in("127.0.0.1", right=True)).status_code == 429
    form.now_s = 300.0
    assert (await form.sign_in("127.0.0.1", right=True)).status_code == 200


async def test_wrong_passwords_of_one_address_lock_nobody_else_out() -> None:
    form = Login()
    for last in range(20):  # all of one network
        await form.sign_in(f"2001:db8:0:1::{last}", right=False)
    assert (await form.sign_in("2001:db8:0:1::99", right=True)).status_code == 429
    for other in ("2001:db8:0:2::1", "203.0.113.7", "127.0.0.1"):
        assert (await form.sign_in(other, right=True)).status_code == 200


async def test_twenty_wrong_passwords_of_the_networks_of_a_48_make_it_wait() -> None:
    form = Login()
    codes = [
        (await form.sign_in(f"2001:db8:7:{network:x}::1", right=False)).status_code
        for network in range(30)
    ]
    assert codes == [400] * 20 + [429] * 10
    assert (await form.sign_in("2001:db8:8::1", right=True)).status_code == 200


async def guess(form: Login, times: int) -> list[int]:
    """Wrong passwords, each from an address of its own."""
    return [
        (await form.sign_in(f"198.51.{one // 250}.{one % 250}", right=False)).status_code
        for one in range(times)
    ]


async def test_hundreds_of_wrong_passwords_in_a_minute_make_every_sign_in_slow() -> None:
    form = Login()
    assert await guess(form, 300) == [400] * 300
    assert form.slept_s == []
    assert (await form.sign_in("203.0.113.7", right=False)).status_code == 400
    assert (await form.sign_in("203.0.113.8", right=True)).status_code == 200
    assert form.slept_s == [5.0, 5.0]
    form.now_s = 60.0
    assert (await form.sign_in("203.0.113.9", right=True)).status_code == 200
    assert form.slept_s == [5.0, 5.0]


async def test_so_many_wait_at_once_and_nobody_without_a_wrong_one_is_refused() -> None:
    form = Login()
    await guess(form, 300)
    form.may_go_on.clear()
    async with asyncio.TaskGroup() as waiting:
        for one in range(70):  # which tried before
            waiting.create_task(form.sign_in(f"198.51.0.{one}", right=False))
        for _ in range(500):
            await asyncio.sleep(0)
        assert len(form.slept_s) == 48  # a quarter of 64 is kept for this machine
        owner = waiting.create_task(form.sign_in("203.0.113.8", right=True))
        for _ in range(500):
            await asyncio.sleep(0)
        assert len(form.slept_s) == 49
        form.may_go_on.set()
    assert owner.result().status_code == 200


async def test_right_passwords_that_arrive_slowly_count_as_no_wrong_ones() -> None:
    form, rest_may_come = Login(), asyncio.Event()
    begun = asyncio.Semaphore(0)

    async def send_slowly() -> AsyncIterator[bytes]:
        yield b"begun"
        begun.release()
        await rest_may_come.wait()

    async with client_at("127.0.0.1", form.limit) as client:
        held = [
            asyncio.ensure_future(
                client.post("/login", params={"right": True}, content=send_slowly())
            )
            for _ in range(12)
        ]
        for _ in held:
            await begun.acquire()
        assert (await client.post("/login", params={"right": True})).status_code == 200
        rest_may_come.set()
        assert {answer.status_code for answer in await asyncio.gather(*held)} == {200}


class Keyed(FastAPI):
    """A route that needs the key, one that the page has too, and one for everybody."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.limit = KeyLimit(self, holds_right_key, clock=lambda: self.now_s)
        for path in ("/v1/models", "/studio/state", "/healthz"):
            self.get(path)(self.answer)

    async def answer(self, request: Request) -> JSONResponse:
        if request.url.path == "/v1/models" and not holds_right_key(request):
            return JSONResponse({}, 401)
        return JSONResponse({"key": request.headers.get("authorization")})

    async def outermost(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["path"] == "/healthz"
        keep_policy(scope, RoutePolicy(Access.ANYBODY if is_open else Access.GUEST))
        await self.limit(scope, receive, send)

    async def ask(self, address: str, key: str | None, path: str = "/v1/models") -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with client_at(address, self.outermost) as client:
            return await client.get(path, headers=headers)

    async def guess(self, address: str, times: int, path: str = "/v1/models") -> None:
        for number in range(times):
            await self.ask(address, f"guess-{number}", path)


def holds_right_key(asks: HTTPConnection) -> bool:
    return asks.headers.get("authorization") == f"Bearer {KEY}"


@pytest.mark.parametrize("path", ["/v1/models", "/studio/state"])
async def test_after_ten_wrong_keys_an_address_waits_300_s(path: str) -> None:
    studio = Keyed()
    await studio.guess("203.0.113.7", 9, path)
    assert (await studio.ask("203.0.113.7", "guess-9")).status_code == 401
    for key in ("guess-10", KEY):
        refused = await studio.ask("203.0.113.7", key)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "300")
        assert refused.json()["error"]["code"] == "rate_limit_exceeded"
        assert "300 s" in refused.json()["error"]["message"]
    assert (await studio.ask("203.0.113.7", None)).status_code == 401
    studio.now_s = 300.0
    assert (await studio.ask("203.0.113.7", KEY)).status_code == 200


async def test_wrong_keys_of_one_address_lock_nobody_else_out() -> None:
    studio = Keyed()
    for last in range(10):  # all of one network
        await studio.ask(f"2001:db8:0:1::{last}", f"guess-{last}")
    assert (await studio.ask("2001:db8:0:1::99", KEY)).status_code == 429
    for other in ("2001:db8:0:2::1", "203.0.113.7", "127.0.0.1"):
        assert (await studio.ask(other, KEY)).status_code == 200


async def test_whoever_had_the_right_key_is_never_kept_out() -> None:
    studio = Keyed()
    assert (await studio.ask("127.0.0.1", KEY)).status_code == 200
    await studio.guess("127.0.0.1", 30)
    assert (await studio.ask("127.0.0.1", "guess-30")).status_code == 429
    assert (await studio.ask("127.0.0.1", KEY)).status_code == 200


async def test_a_program_with_an_old_key_keeps_nobody_out() -> None:
    studio = Keyed()
    for _ in range(30):
        assert (await studio.ask("127.0.0.1", "sk-of-last-year")).status_code == 401
    assert (await studio.ask("127.0.0.1", KEY)).status_code == 200


async def test_a_page_behind_a_proxy_with_tokens_of_its_own_goes_on() -> None:
    studio = Keyed()
    await studio.guess("203.0.113.7", 30, "/studio/state")
    page = await studio.ask("203.0.113.7", "token-of-a-proxy", "/studio/state")
    assert (page.status_code, page.json()) == (200, {"key": None})
    # No guess either, as nobody looks at it there.
    await studio.guess("203.0.113.8", 30, "/healthz")
    assert (await studio.ask("203.0.113.8", KEY)).status_code == 200


async def test_a_shared_studio_slows_wrong_keys(studio: Studio) -> None:
    app = app_of_front(front_of(studio, key=KEY))
    async with client_at("203.0.113.7", app) as client:
        for number in range(10):
            guess = {"Authorization": f"Bearer guess-{number}"}
            assert (await client.get("/metrics", headers=guess)).status_code == 403
        right = {"Authorization": f"Bearer {KEY}"}
        assert (await client.get("/metrics", headers=right)).status_code == 429
    async with client_at("203.0.113.8", app) as client:
        assert (await client.get("/metrics", headers=right)).status_code == 200
