"""One speech server: its streamed answers, and whether it takes lines."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx
import numpy as np
import soxr

from studio.audio.clip import STUDIO_RATE_HZ, Samples, from_pcm16
from studio.backends.options import RemoteOptions
from studio.backends.remote.discovery import (
    ServerCapabilities,
    discover_capabilities,
)
from studio.backends.remote.server_faults import (
    Garbled,
    Refused,
    ServerFault,
    Unreachable,
    check_audio,
    fault_of,
)
from studio.backends.remote.speech_request import Address, RemoteLine, speech_body

_PCM, _EXTENSIBLE = 1, 0xFFFE
_UNKNOWN_BYTES = (0, 0x7FFF_FFFF, 0xFFFF_FFFF)  # what streaming servers write for "don't know"
_LOWEST_HZ, _HIGHEST_HZ = 8_000, 192_000
_MAX_HEADER_BYTES = 65_536
_NOTHING = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class PcmFormat:
    """Layout of 16-bit samples in an answer; `data_bytes` is None when the server doesn't say."""

    rate_hz: int = STUDIO_RATE_HZ
    channels: int = 1
    data_bytes: int | None = None


class SpeechReader:
    """Takes an answer's bytes in any pieces, raw 16-bit samples or a WAV file.

    A WAV file is known by its first bytes, whatever was asked for: some servers send nothing else.
    """

    def __init__(self) -> None:
        self._pending = b""
        self._form: PcmFormat | None = None
        self._left_bytes: int | None = None
        self._resampler: soxr.ResampleStream | None = None
        self._samples = 0

    def feed(self, data: bytes) -> Samples:
        """Take more bytes; what is complete of them, float32 [samples] at the studio's rate.

        Raises:
            Garbled: It is a WAV file with something else than 16-bit samples.
        """
        self._pending += data
        if self._form is None and not self._begin():
            return _NOTHING
        assert self._form is not None
        frame_bytes = 2 * self._form.channels
        usable = len(self._pending) if self._left_bytes is None else self._left_bytes
        whole_bytes = min(len(self._pending), usable) // frame_bytes * frame_bytes
        frames, self._pending = self._pending[:whole_bytes], self._pending[whole_bytes:]
        if self._left_bytes is not None:
            self._left_bytes -= whole_bytes
        return self._at_studio_rate(_mono(frames, self._form.channels))

    def finish(self) -> Samples:
        """The last samples, once no more bytes come.

        Raises:
            Garbled: The audio isn't whole, or there is none.
        """
        missing = self._left_bytes if self._left_bytes is not None else len(self._pending)
        if self._form is None or missing:
            raise Garbled("sent audio that isn't whole")
        rest = self._at_studio_rate(_NOTHING, last=True)
        if not self._samples:
            raise Garbled("sent no audio")
        return rest

    def _begin(self) -> bool:
        """Read the format from the first bytes; whether there are enough of them."""
        if len(self._pending) < 4:
            return False
        if self._pending.startswith(b"RIFF"):
            found = _wav_form(self._pending)
            if found is None:
                return False
            self._form, start = found
            self._pending = self._pending[start:]
        else:
            self._form = PcmFormat()
        self._left_bytes = self._form.data_bytes
        if self._form.rate_hz != STUDIO_RATE_HZ:
            self._resampler = soxr.ResampleStream(
                self._form.rate_hz, STUDIO_RATE_HZ, 1, dtype="float32", quality="HQ"
            )
        return True

    def _at_studio_rate(self, samples: Samples, *, last: bool = False) -> Samples:
        self._samples += len(samples)
        if self._resampler is None:
            return samples
        fresh: Samples = self._resampler.resample_chunk(samples, last=last)
        return np.clip(fresh, -1.0, 1.0)


def _wav_form(head: bytes) -> tuple[PcmFormat, int] | None:
    """The format and where the samples start; None when that hasn't arrived yet."""
    form, place = None, 12
    while len(head) >= place + 8:
        name, size = struct.unpack_from("<4sI", head, place)
        place += 8
        if name == b"data":
            if form is None:
                raise Garbled("sent a WAV file without a format")
            known = None if size in _UNKNOWN_BYTES else size
            return PcmFormat(form.rate_hz, form.channels, known), place
        if name == b"fmt " and len(head) >= place + 16:
            form = _format_chunk(head[place : place + 16])
        place += size + size % 2
    if place > _MAX_HEADER_BYTES:
        raise Garbled("sent a WAV file without samples")
    return None


def _format_chunk(chunk: bytes) -> PcmFormat:
    kind, channels, rate_hz, _, _, bits = struct.unpack("<HHIIHH", chunk)
    if kind not in (_PCM, _EXTENSIBLE) or bits != 16 or not (channels and rate_hz):
        raise Garbled(f"sent a WAV file of a kind that can't be read ({bits} bits, format {kind})")
    if not _LOWEST_HZ <= rate_hz <= _HIGHEST_HZ:
        raise Garbled(f"sent a WAV file with {rate_hz} samples a second")
    return PcmFormat(rate_hz, channels)


def _mono(frames: bytes, channels: int) -> Samples:
    samples = from_pcm16(np.frombuffer(frames, dtype="<i2"))
    if channels == 1:
        return samples
    return samples.reshape(-1, channels).mean(axis=1, dtype=np.float32)


OnChunk = Callable[[Samples], None]
"""Takes float32 [samples] at the studio's rate, never empty, each only once."""

MAX_LINE_S = 300.0
"""Audio of one line, after which it counts as one that never stops."""

_CONNECT_S = 5.0
_ASK_S = 10.0
_MAX_PAGE_BYTES = 4 * 1024 * 1024
_MAX_ERROR_BYTES = 8_192
# Servers close idle connections after 5 s; one closed under a request would look like a crash.
_KEPT_ALIVE_S = 2.0
_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)


class SpeechServer:
    """A server and its connections; belongs to the event loop it is used on.

    The pool changes its standing.

    Attributes:
        name: Its name in messages.
        abilities: What it can do; None while it hasn't been asked.
        in_flight: Lines it speaks now.
        busy_until_s: On the loop's clock; until then it wants no more lines.
        busy_in_a_row: How often it said so since it last took a line.
        faults_in_a_row: How many lines went wrong on it since it last spoke one.
        down_since_s: On the loop's clock; None while it answers.
        trouble: What was wrong when it last failed.
    """

    def __init__(self, address: Address, options: RemoteOptions) -> None:
        self.address = address
        self.name = address.display_name
        self.abilities: ServerCapabilities | None = None
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

    async def ask(self) -> ServerCapabilities:
        """Ask the server for its capabilities."""
        return await discover_capabilities(
            self._page,
            base=self.address.url,
            documents=self.address.documents(),
            wanted=self._options.model,
        )

    async def speak(self, line: RemoteLine, deliver: OnChunk) -> None:
        """Speak a line once; `deliver` takes its samples as they arrive.

        Raises:
            ServerFault: It didn't work this time; what was delivered may not be whole.
            Refused: It never will.
        """
        assert self.abilities is not None, "a server speaks after it was asked"
        body = speech_body(line, self.abilities)
        try:
            async with asyncio.timeout(self._options.timeout_s):
                await self._request_speech(body, deliver)
        except TimeoutError:
            raise Unreachable(f"took more than {self._options.timeout_s:g} s for a line") from None
        except httpx.RequestError as error:
            raise request_fault(error) from None

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def _request_speech(self, body: dict[str, Any], deliver: OnChunk) -> None:
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
                    deliver(fresh)
        rest = reader.finish()
        if len(rest):
            deliver(rest)

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


def request_fault(error: httpx.RequestError) -> ServerFault:
    """The fault behind a broken connection or answer; the error's own text may hold a URL."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Unreachable("can't be reached")
    if not isinstance(error, httpx.TransportError):  # such as an answer that can't be unpacked
        return Garbled(f"sent an answer that can't be read ({type(error).__name__})")
    return Unreachable(f"broke off ({type(error).__name__})")
