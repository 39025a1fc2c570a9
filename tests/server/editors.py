"""People at the page: each has a project, listens to its events, edits it and hears it read."""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np

LINES = 40
SCRIPT = "\n".join(
    f"{('Ida', 'Tom', 'Maud')[line % 3]}: This is line {line}, and it says what it has to say."
    for line in range(LINES)
)


@dataclass
class Seen:
    """What the editors saw.

    Attributes:
        took_s: Seconds until the answer was there, by what was done.
        statuses: How often each status came.
        broken: What happened to requests that had no answer, or the wrong one.
        changes: How many edits and undos were done.
        events: Steps that were told of.
        anew: How often a page had to look anew, since its stream ended.
    """

    took_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[int] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    events: int = 0
    anew: int = 0

    def p95_ms(self, *kinds: str) -> float:
        """Of some kinds of actions; of what a person waits for when none is named."""
        wanted = kinds or ("edit", "undo", "render")
        took_s = [one for kind in wanted for one in self.took_s[kind]]
        return float(np.percentile(took_s, 95) * 1000)

    def told(self) -> str:
        """In one line."""
        kinds = ", ".join(f"{kind} {self.p95_ms(kind):.0f}" for kind in sorted(self.took_s))
        return (
            f"p95 {self.p95_ms():.0f} ms ({kinds}), {dict(self.statuses)}, {self.events} events, "
            f"{self.anew} times anew, broken: {dict(self.broken)}"
        )


class Editor:
    """Somebody with a page open, who does something every `pace_s` seconds."""

    def __init__(
        self, client: httpx.AsyncClient, number: int, seen: Seen, *, pace_s: float, at: int
    ) -> None:
        """Nothing is open yet; `at` is the action to begin with."""
        self._pace_s = pace_s
        self._at_first = at
        self._client = client
        self._number = number
        self._seen = seen
        self._project: dict[str, Any] = {}
        self._mark = f"page-{number}"
        self._rev = 0
        self._hearing: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Make a project and look at it."""
        body = {"name": f"Scene {self._number}", "text": SCRIPT}
        made = await self._client.post("/studio/projects", json=body)
        while made.status_code == 429:
            await asyncio.sleep(float(made.headers["retry-after"]))
            made = await self._client.post("/studio/projects", json=body)
        self._project = made.raise_for_status().json()
        self._rev = self._project["rev"]

    async def work(self, actions: int) -> None:
        """Do one thing after the other, while the page listens."""
        await asyncio.sleep(
            self._number % 50 / 50 * self._pace_s
        )  # people don't begin in the same moment
        beside = [
            asyncio.create_task(self._listen()),
        ]
        try:
            for action in range(self._at_first, self._at_first + actions):
                began_s = time.monotonic()
                await self._act(action)
                await asyncio.sleep(max(0.0, self._pace_s - (time.monotonic() - began_s)))
            await asyncio.gather(*self._hearing)
        finally:
            for task in beside:
                task.cancel()
            for one in await asyncio.gather(*beside, return_exceptions=True):
                if isinstance(one, Exception):
                    self._seen.broken[f"beside: {type(one).__name__}"] += 1

    @property
    def _at(self) -> str:
        return f"/studio/projects/{self._project['project_id']}"

    async def _act(self, action: int) -> None:
        line_id = self._project["lines"][(action // 10) % LINES]["line_id"]
        match action % 10:
            case 6:
                line = {"line_id": secrets.token_hex(6), "speaker": "Ida", "text": "And then?"}
                await self._edit({"op": "insert", "after": line_id, "lines": [line]})
            case 7:
                await self._post("undo", "undo", self._author())
            case 8:
                if await self._post("render", "render", {"line_ids": [line_id]}):
                    hearing = asyncio.create_task(self._hear(line_id))
                    self._hearing.add(hearing)
                    hearing.add_done_callback(self._hearing.discard)
            case 9:
                await self._ask("look", self._at)
            case typed:
                text = f"Editor {self._number} says at {action}: so be it." + "." * typed
                fields = {"line_ids": [line_id], "fields": {"text": text}}
                await self._edit({"op": "set", **fields}, group=f"text:{line_id}")

    async def _edit(self, op: dict[str, Any], group: str | None = None) -> None:
        await self._post("edit", "edits", {**self._author(), "ops": [op], "group": group})

    def _author(self) -> dict[str, Any]:
        return {"base_rev": self._rev, "client": self._mark, "edit_id": secrets.token_hex(6)}

    async def _post(self, kind: str, path: str, body: dict[str, Any]) -> bool:
        """Ask for a change; whether it was done."""
        answer = await self._timed(kind, self._client.post(f"{self._at}/{path}", json=body))
        if answer is None or answer.status_code != 200:
            return False
        self._rev = max(self._rev, (answer.json() or {}).get("rev", 0))
        self._seen.changes += kind in {"edit", "undo"}
        return True

    async def _ask(self, kind: str, path: str) -> httpx.Response | None:
        return await self._timed(kind, self._client.get(path))

    async def _timed(self, kind: str, asking: Any) -> httpx.Response | None:
        began_s = time.monotonic()
        try:
            answer = await asking
        except httpx.TransportError as error:
            self._seen.broken[f"{kind}: {type(error).__name__}"] += 1
            return None
        finally:
            self._seen.took_s[kind].append(time.monotonic() - began_s)
        self._seen.statuses[answer.status_code] += 1
        if answer.status_code not in (200, 429):
            self._seen.broken[f"{kind}: {answer.status_code} {answer.text[:300]}"] += 1
        return answer

    async def _hear(self, line_id: str) -> None:
        """As the player does: the answer begins when the line is made."""
        answer = await self._ask("sound", f"{self._at}/lines/{line_id}/audio")
        if answer is not None and answer.status_code == 200 and len(answer.content) < 10_000:
            self._seen.broken["sound: too short"] += 1

    async def _listen(self) -> None:
        """Where the stream ends, look anew and go on from there, as the page does."""
        while True:
            url = f"{self._at}/events?since={self._project['seq']}"
            async with self._client.stream("GET", url, timeout=None) as answer:
                self._seen.statuses[answer.status_code] += 1
                async for line in answer.aiter_lines():
                    if line.startswith("data:"):
                        self._take(json.loads(line[5:]))
            await self._look_anew()

    async def _look_anew(self) -> None:
        self._seen.anew += 1
        answer = await self._client.get(self._at)
        while answer.status_code == 429:
            self._seen.statuses[429] += 1
            await asyncio.sleep(1.0)
            answer = await self._client.get(self._at)
        self._project = answer.raise_for_status().json()

    def _take(self, event: dict[str, Any]) -> None:
        if event["type"] == "state":  # of the studio, not of the project
            return
        self._seen.events += 1
        self._rev = max(self._rev, event.get("rev", 0))


@asynccontextmanager
async def clients(address: str, editors: int, *, apart: bool) -> AsyncIterator[list[Any]]:
    """A client for each editor, as one visitor all together or each as one of their own."""
    # One context for all: each takes a while to make. And a client for each, since the time a
    # client takes for a request grows with its connections.
    tls = ssl.create_default_context()
    # Let go of before the server does, which would be seen as a broken request.
    limits = httpx.Limits(max_connections=None, keepalive_expiry=2.0)
    options = {"base_url": address, "timeout": 60, "verify": tls, "limits": limits}
    async with AsyncExitStack() as stack:
        made = [
            await stack.enter_async_context(httpx.AsyncClient(**options)) for _ in range(editors)
        ]
        for one in made if apart else ():
            await _sit_down(one)
        yield made


async def _sit_down(client: httpx.AsyncClient) -> None:
    """Keep a visitor's cookie, which browsers would send over the platform's HTTPS only."""
    welcome = (await client.get("/")).raise_for_status()
    client.headers["Cookie"] = welcome.headers["set-cookie"].partition(";")[0]


async def work(
    address: str,
    editors: int,
    actions: int,
    *,
    apart: bool = False,
    pace_s: float = 1.0,
    in_step: bool = False,
) -> Seen:
    """Let people work beside each other, and say what they saw.

    Each is at another point of the work, or, `in_step`, all do the same in the same second.
    """
    seen = Seen()
    async with clients(address, editors, apart=apart) as found:
        people = [
            # Everybody begins with an edit: a new project has nothing to undo, render or look at.
            Editor(client, number, seen, pace_s=pace_s, at=0 if in_step else number % 7)
            for number, client in enumerate(found)
        ]
        for one in people:
            await one.open()
        await asyncio.gather(*(one.work(actions) for one in people))
    return seen
