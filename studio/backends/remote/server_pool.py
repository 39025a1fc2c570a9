"""The pool of speech servers, and the tries at one line.

A server takes `concurrency` lines at once. One that is full rests as long as it says; one that
doesn't answer is asked again and again in the background, and takes lines when it does. While
there are others, one that answers with errors rests, too, and one that declines every line counts
as one that doesn't answer: since it is done so quickly with each, it would be given nearly all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    retry_if_exception_type,
    wait_exponential,
    wait_exponential_jitter,
)

from studio.audio.stream_resume import StreamResume
from studio.backends.options import RemoteOptions
from studio.backends.remote.discovery import RemoteVoice, ServerCapabilities
from studio.backends.remote.server_faults import (
    Busy,
    Declined,
    Garbled,
    Refused,
    RemoteError,
    ServerFault,
    Unreachable,
)
from studio.backends.remote.speech_request import RemoteLine
from studio.backends.remote.speech_server import OnChunk, SpeechServer
from studio.errors import ModelUnavailable, ReadingChanged, SpeechFailed

log = logging.getLogger(__name__)

LONGEST_REST_S = 60.0
_SHORTEST_REST_S = 0.1
_FIRST_REST_S = 0.5
_LONGEST_PAUSE_S = 15.0
_WORTH_WAITING_S = 5.0


class ServerPool:
    """All servers; belongs to the event loop it is used on."""

    def __init__(self, servers: Sequence[SpeechServer], options: RemoteOptions) -> None:
        self._servers = tuple(servers)
        self._options = options
        self._changed = asyncio.Event()
        self._asking: set[asyncio.Task[None]] = set()

    @property
    def abilities(self) -> tuple[ServerCapabilities, ...]:
        """Abilities of the servers that have answered so far; may be read from any thread."""
        return tuple(one.abilities for one in self._servers if one.abilities is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The servers that answer now; may be read from any thread."""
        return tuple(one.name for one in self._servers if one.down_since_s is None)

    async def open(self) -> None:
        """Ask all servers what they can do; those that don't answer may come later.

        Raises:
            ModelUnavailable: None of them can speak; says of each why.
        """
        asked = await asyncio.gather(*(one.ask() for one in self._servers), return_exceptions=True)
        for server, answer in zip(self._servers, asked, strict=True):
            if isinstance(answer, ServerCapabilities):
                server.abilities = answer
            elif isinstance(answer, RemoteError):
                server.trouble = str(answer)
            else:
                raise answer
        if not self.abilities:
            raise ModelUnavailable(
                f"No speech server can be used. {self._troubles()} Correct TTS_REMOTE_URLS, or "
                "start the server and load again."
            )
        for server in self._servers:
            if server.abilities is None:
                self._lose(server, server.trouble)

    async def close(self) -> None:
        """Close every connection."""
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        await asyncio.gather(*(one.close() for one in self._servers))

    @asynccontextmanager
    async def lease(
        self, voice: RemoteVoice, avoid: Collection[SpeechServer]
    ) -> AsyncIterator[SpeechServer]:
        """Reserve one request on a server that has the voice; waits until one is free.

        Servers in `avoid` failed on this line and are taken only when no other will be free.

        Raises:
            SpeechFailed: No server can speak in this voice any more, or none that can answers.
            ModelUnavailable: None at all has answered for longer than the patience.
        """
        server = await self._free(voice, avoid)
        server.in_flight += 1
        try:
            yield server
            server.busy_in_a_row = server.faults_in_a_row = 0
        except Unreachable as error:
            self._lose(server, str(error))
            raise
        except Busy as error:
            self._rest(server, error)
            raise
        except (Garbled, Declined) as error:
            self._distrust(server, voice, error)
            raise
        finally:
            server.in_flight -= 1
            self._tell()

    def has_other(self, voice: RemoteVoice, avoid: Collection[SpeechServer]) -> bool:
        """Whether a server that isn't to be avoided answers and can speak in a voice."""
        return any(one not in avoid and one.down_since_s is None for one in self._able(voice))

    async def _free(self, voice: RemoteVoice, avoid: Collection[SpeechServer]) -> SpeechServer:
        while True:
            able = self._able(voice)
            now_s = asyncio.get_running_loop().time()
            free = [one for one in able if self._has_room(one, now_s)]
            others = [one for one in free if one not in avoid]
            if others or (free and not _soon_free(able, avoid, now_s)):
                return min(others or free, key=lambda one: one.in_flight)
            wait_s = self._wait_s(able, now_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), wait_s)

    def _able(self, voice: RemoteVoice) -> list[SpeechServer]:
        refusals: list[str] = []
        able: list[SpeechServer] = []
        for server in self._servers:
            if server.abilities is None:
                continue
            refusal = server.abilities.refusal(voice)
            if refusal is None:
                able.append(server)
            else:
                refusals.append(refusal)
        if not able:  # a server came back with another model
            raise SpeechFailed(refusals[0])
        return able

    def _has_room(self, server: SpeechServer, now_s: float) -> bool:
        return (
            server.down_since_s is None
            and server.busy_until_s <= now_s
            and server.in_flight < self._options.concurrency
        )

    def _wait_s(self, able: Sequence[SpeechServer], now_s: float) -> float | None:
        """How long to wait for a change at most; None for no limit.

        Raises:
            ModelUnavailable: All servers were down for longer than the patience.
            SpeechFailed: All of these were, but not those that lack the voice.
        """
        down = [one.down_since_s for one in able if one.down_since_s is not None]
        if len(down) == len(able):
            left_s = max(down) + self._options.patience_s - now_s
            if left_s <= 0:
                raise self._none_answers()
            return left_s
        resting = [one.busy_until_s - now_s for one in able if one.busy_until_s > now_s]
        return min(resting, default=None)

    def _none_answers(self) -> ModelUnavailable | SpeechFailed:
        if self.names:
            return SpeechFailed(
                f"No speech server with this voice answers. {self._troubles()} Start one and "
                "render this line again."
            )
        return ModelUnavailable(
            f"No speech server answers. {self._troubles()} Start one and render again."
        )

    def _lose(self, server: SpeechServer, trouble: str) -> None:
        """Mark a server as down, and begin to poll it."""
        server.trouble = trouble
        if server.down_since_s is not None:
            return
        log.warning("speech server %s %s; it is asked until it answers", server.name, trouble)
        server.down_since_s = asyncio.get_running_loop().time()
        task = asyncio.create_task(self._regain(server))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _regain(self, server: SpeechServer) -> None:
        """Poll a server until it answers; it may have come back with another model."""
        pauses = wait_exponential(multiplier=self._options.retry_s, max=_LONGEST_PAUSE_S)
        async for attempt in AsyncRetrying(retry=retry_if_exception_type(RemoteError), wait=pauses):
            with attempt:
                server.abilities = await server.ask()
        log.info("speech server %s answers", server.name)
        server.down_since_s = None
        if not server.faults_in_a_row:
            server.busy_until_s = 0.0
        self._tell()

    def _rest(self, server: SpeechServer, busy: Busy) -> None:
        wished_s = busy.retry_after_s
        if wished_s is None:
            wished_s = _FIRST_REST_S * 2**server.busy_in_a_row
        server.busy_in_a_row = min(server.busy_in_a_row + 1, 10)
        rest_s = min(max(wished_s, _SHORTEST_REST_S), LONGEST_REST_S)
        server.busy_until_s = asyncio.get_running_loop().time() + rest_s
        log.info("speech server %s is full; it rests for %.1f s", server.name, rest_s)

    def _distrust(
        self, server: SpeechServer, voice: RemoteVoice, error: Garbled | Declined
    ) -> None:
        """Send no lines to a server for a while, where there are others."""
        is_the_lines_fault = isinstance(error, Declined) and not error.always
        if is_the_lines_fault or not self.has_other(voice, (server,)):
            return
        now_s = asyncio.get_running_loop().time()
        if server.busy_until_s <= now_s:  # else another line has let it rest already
            rest_s = min(_FIRST_REST_S * 2**server.faults_in_a_row, LONGEST_REST_S)
            server.faults_in_a_row = min(server.faults_in_a_row + 1, 10)
            server.busy_until_s = now_s + rest_s
            log.warning("speech server %s %s; it rests for %.1f s", server.name, error, rest_s)
        if isinstance(error, Declined):
            self._lose(server, str(error))

    def _tell(self) -> None:
        """Wake the lines that wait for a server."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _troubles(self) -> str:
        """Why each server that is down can't be reached."""
        down = [one for one in self._servers if one.down_since_s is not None or not one.abilities]
        return " ".join(f"{one.name} {one.trouble}." for one in down)


def _soon_free(able: Sequence[SpeechServer], avoid: Collection[SpeechServer], now_s: float) -> bool:
    """Whether a server that isn't to be avoided will take lines when one of its own is done."""
    until_s = now_s + _WORTH_WAITING_S
    return any(
        one not in avoid and one.down_since_s is None and one.busy_until_s <= until_s
        for one in able
    )


MAX_FAULTS = 4
BUSY_PATIENCE_S = 300.0
"""How long a line waits for servers that say they are full."""

_LONGEST_TRY_PAUSE_S = 5.0
_S_PER_LETTER = 0.02  # three times as fast as the fastest speaker


class LineTries:
    """The tries at one line, on whichever servers are free."""

    def __init__(
        self, line: RemoteLine, pool: ServerPool, options: RemoteOptions, deliver: OnChunk
    ) -> None:
        self._line = line
        self._pool = pool
        self._resume = StreamResume(deliver)
        self._pauses = wait_exponential_jitter(
            multiplier=options.retry_s, max=_LONGEST_TRY_PAUSE_S, jitter=options.retry_s
        )
        self._faults = 0
        self._server: SpeechServer | None = None
        self._failed_on: set[SpeechServer] = set()

    async def run(self) -> None:
        """Speak the line.

        Raises:
            SpeechFailed: No server could, or none will.
            ModelUnavailable: No server answers any more.
        """
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception(self._may_go_on),
                stop=self._enough,
                wait=self._pause_s,
                reraise=True,
            ):
                with attempt:
                    await self._try()
        except ServerFault as error:
            raise SpeechFailed(
                f"{self._who} {error}. Check the server, then render this line again."
            ) from None
        except Refused as error:
            raise SpeechFailed(f"{self._who} {error}.") from None
        except ReadingChanged:
            raise SpeechFailed(
                f"{self._who} broke off after {self._resume.delivered_s:.1f} s, and a second try "
                "sounded different. Render this line again."
            ) from None

    @property
    def _who(self) -> str:
        return self._server.name if self._server else "The speech server"

    async def _try(self) -> None:
        async with self._pool.lease(self._line.voice, self._failed_on) as self._server:
            try:
                await self._speak(self._server)
            except (ServerFault, Declined):
                self._failed_on.add(self._server)
                raise

    async def _speak(self, server: SpeechServer) -> None:
        self._resume.begin()
        await server.speak(self._line, self._resume.take)
        self._resume.end()
        if self._resume.delivered_s < _shortest_s(self._line):
            raise Garbled(f"sent only {self._resume.delivered_s:.1f} s for the line")

    def _may_go_on(self, error: BaseException) -> bool:
        """Whether another try makes sense; what a server declined is tried on others only."""
        if isinstance(error, Declined):
            return self._pool.has_other(self._line.voice, self._failed_on)
        return isinstance(error, ServerFault)

    def _pause_s(self, state: RetryCallState) -> float:
        """Seconds between two tries; for a server that is full the pool waits."""
        assert state.outcome is not None
        is_elsewhere = isinstance(state.outcome.exception(), Busy | Declined)
        return 0.0 if is_elsewhere else self._pauses(state)

    def _enough(self, state: RetryCallState) -> bool:
        """Whether to stop trying: after too many faults, or too long a wait for full servers."""
        assert state.outcome is not None
        error = state.outcome.exception()
        if isinstance(error, Busy):
            return (state.seconds_since_start or 0.0) > BUSY_PATIENCE_S
        if isinstance(error, Declined):
            log.warning("%s %s; the line goes to another server", self._who, error)
            return False
        self._faults += 1
        log.warning("%s %s, fault %d of a line", self._who, error, self._faults)
        return self._faults >= MAX_FAULTS


def _shortest_s(line: RemoteLine) -> float:
    """The shortest plausible speech: a cut stream of raw samples shows only by its length."""
    return _S_PER_LETTER * sum(map(str.isalnum, line.text)) / line.speed
