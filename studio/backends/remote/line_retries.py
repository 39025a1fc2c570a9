"""One line from its first try to its last sample."""

from __future__ import annotations

import logging

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    wait_exponential_jitter,
)

from studio.backends.options import RemoteOptions
from studio.backends.remote.server_faults import Busy, Declined, Garbled, Refused, ServerFault
from studio.backends.remote.server_pool import ServerPool
from studio.backends.remote.speech_body import RemoteLine
from studio.backends.remote.speech_server import Differs, OnChunk, SpeechServer, StreamResume
from studio.errors import SpeechFailed

log = logging.getLogger(__name__)

MAX_FAULTS = 4
BUSY_PATIENCE_S = 300.0
"""How long a line waits for servers that say they are full."""

_LONGEST_PAUSE_S = 5.0
_S_PER_LETTER = 0.02  # three times as fast as the fastest speaker


class LineTries:
    """The tries at one line, on whichever servers are free."""

    def __init__(
        self, line: RemoteLine, pool: ServerPool, options: RemoteOptions, hear: OnChunk
    ) -> None:
        """Get ready; `hear` takes each sample of the line once."""
        self._line = line
        self._pool = pool
        self._resume = StreamResume(hear)
        self._pauses = wait_exponential_jitter(
            multiplier=options.retry_s, max=_LONGEST_PAUSE_S, jitter=options.retry_s
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
        except Differs:
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
        """Whether another try makes sense; what one server declines, only on another."""
        if isinstance(error, Declined):
            return self._pool.has_other(self._line.voice, self._failed_on)
        return isinstance(error, ServerFault)

    def _pause_s(self, state: RetryCallState) -> float:
        """Between two tries; a server that is full rests on its own account."""
        assert state.outcome is not None
        is_elsewhere = isinstance(state.outcome.exception(), Busy | Declined)
        return 0.0 if is_elsewhere else self._pauses(state)

    def _enough(self, state: RetryCallState) -> bool:
        """Whether the line is given up: servers that are full are waited for, faults counted."""
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
    """No speech is that short: a stream of raw samples has no other sign that it was cut."""
    return _S_PER_LETTER * sum(map(str.isalnum, line.text)) / line.speed
