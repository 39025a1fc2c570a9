"""One speech server: what it is asked, and how it stands."""

from __future__ import annotations

import asyncio
import base64
from http import HTTPStatus
from typing import Any

import httpx

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.remote.abilities import Abilities
from studio.backends.remote.address import Address
from studio.backends.remote.answers import check_audio, fault_of, request_fault
from studio.backends.remote.asking import abilities_of
from studio.backends.remote.body import Line, speech_body
from studio.backends.remote.faults import Garbled, Refused, Unreachable
from studio.backends.remote.heard import Hear
from studio.backends.remote.options import RemoteOptions
from studio.backends.remote.sound import SpeechReader

MAX_LINE_S = 300.0
"""Audio of one line, after which it counts as one that never stops."""

_CONNECT_S = 5.0
_ASK_S = 10.0
_MAX_PAGE_BYTES = 4 * 1024 * 1024
_MAX_ERROR_BYTES = 8_192
# Servers close idle connections after 5 s; one closed under a request would look like a crash.
_KEPT_ALIVE_S = 2.0
_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)


class Server:
    """A server and its connections; belongs to the event loop it is used on.

    The pool changes its standing.

    Attributes:
        abilities: What it can do; None while it hasn't been asked.
        in_flight: Lines it speaks now.
        busy_until_s: On the loop's clock; until then it wants no more lines.
        busy_in_a_row: How often it said so since it last took a line.
        faults_in_a_row: How many lines went wrong on it since it last spoke one.
        down_since_s: On the loop's clock; None while it answers.
        trouble: What was wrong when it last failed.
    """

    def __init__(self, address: Address, options: RemoteOptions) -> None:
        """Open nothing yet."""
        self.address = address
        self.abilities: Abilities | None = None
        self.in_flight = 0
        self.busy_until_s = 0.0
        self.busy_in_a_row = 0
        self.faults_in_a_row = 0
        self.down_since_s: float | None = None
        self.trouble = ""
        self._options = options
        authorization = _authorization(address, options)
        self._secrets = tuple(filter(None, (options.key, authorization.rpartition(" ")[2])))
        connect_s = min(_CONNECT_S, options.timeout_s)
        self._client = httpx.AsyncClient(
            headers={"Authorization": authorization} if authorization else {},
            timeout=httpx.Timeout(options.timeout_s, connect=connect_s),
            limits=httpx.Limits(
                max_connections=options.concurrency + 1, keepalive_expiry=_KEPT_ALIVE_S
            ),
        )

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.address.shown

    async def ask(self) -> Abilities:
        """Find out what it can do.

        Raises:
            ServerFault: It doesn't answer, or not now.
            Refused: It isn't a speech server, or lacks the model or the key.
        """
        return await abilities_of(
            self._page,
            base=self.address.url,
            documents=self.address.documents(),
            wanted=self._options.model,
        )

    async def speak(self, line: Line, hear: Hear) -> None:
        """Speak a line once; `hear` takes its samples as they arrive.

        Raises:
            ServerFault: It didn't work this time; what was heard may not be whole.
            Refused: It never will.
        """
        assert self.abilities is not None, "a server speaks after it was asked"
        body = speech_body(line, self.abilities)
        try:
            async with asyncio.timeout(self._options.timeout_s):
                await self._spoken(body, hear)
        except TimeoutError:
            raise Unreachable(f"took more than {self._options.timeout_s:g} s for a line") from None
        except httpx.RequestError as error:
            raise request_fault(error) from None

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def _spoken(self, body: dict[str, Any], hear: Hear) -> None:
        url, reader, samples = self.address.at("audio/speech"), SpeechReader(), 0
        async with self._client.stream("POST", url, json=body) as response:
            if response.status_code != HTTPStatus.OK:
                raise await self._fault(response)
            check_audio(response.headers)
            async for data in response.aiter_bytes():
                fresh = reader.feed(data)
                samples += len(fresh)
                if samples > MAX_LINE_S * STUDIO_RATE_HZ:
                    raise Refused(f"sent more than {MAX_LINE_S:g} s for one line")
                if len(fresh):
                    hear(fresh)
        rest = reader.finish()
        if len(rest):
            hear(rest)

    async def _page(self, url: str) -> bytes | None:
        try:
            async with asyncio.timeout(_ASK_S), self._client.stream("GET", url) as response:
                if response.status_code in _ABSENT:
                    return None
                if response.status_code != HTTPStatus.OK:
                    raise await self._fault(response)
                return await _beginning(response, _MAX_PAGE_BYTES)
        except TimeoutError:
            raise Unreachable(f"didn't answer within {_ASK_S:g} s") from None
        except httpx.RequestError as error:
            raise request_fault(error) from None

    async def _fault(self, response: httpx.Response) -> Exception:
        body = await _beginning(response, _MAX_ERROR_BYTES)
        return fault_of(response.status_code, response.headers, body, self._secrets)


def _authorization(address: Address, options: RemoteOptions) -> str:
    """The header's value; a key goes before a name and password. Empty when there is neither."""
    if options.key:
        return f"Bearer {options.key}"
    if address.credentials is None:
        return ""
    return f"Basic {base64.b64encode(':'.join(address.credentials).encode()).decode()}"


async def _beginning(response: httpx.Response, most_bytes: int) -> bytes:
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > most_bytes:
            if response.is_success:
                raise Garbled("answered with a page that is too long")
            break
    return body[:most_bytes]
