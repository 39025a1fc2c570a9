"""Waiting out what passes by itself: a hub that is busy or restarts."""

from __future__ import annotations

import time
from collections.abc import Callable

from huggingface_hub.errors import HfHubHTTPError
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

TRIES = 6
LONGEST_WAIT_S = 60.0
_FIRST_WAIT_S = 1.0
_STEP_S = 0.5  # how late a cancelled download is noticed


def patiently(work: Callable[[], None], tell: Callable[[str], None]) -> None:
    """Do something again while the hub answers that it is busy or broken for now.

    Args:
        work: Asks the hub; goes on where it stopped when it is called again.
        tell: Told why nothing comes, while it waits; what it raises ends the waiting.

    Raises:
        HfHubHTTPError: The hub still answered so after `TRIES`, or something else.
    """

    def sleep(seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            tell(f"The hub is busy; trying again in {left_s:.0f} s")
            time.sleep(min(left_s, _STEP_S))

    Retrying(
        retry=retry_if_exception(_passes),
        stop=stop_after_attempt(TRIES),
        wait=_wait_s,
        sleep=sleep,
        reraise=True,
    )(work)


def _passes(error: BaseException) -> bool:
    if not isinstance(error, HfHubHTTPError):
        return False
    status = error.response.status_code
    return status in (408, 429) or status >= 500


def _wait_s(state: RetryCallState) -> float:
    """As long as the hub says; else a second, doubled each time."""
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, HfHubHTTPError)
    wished = error.response.headers.get("retry-after", "")
    wait_s = (
        float(wished) if wished.isdecimal() else _FIRST_WAIT_S * 2 ** (state.attempt_number - 1)
    )
    return min(wait_s, LONGEST_WAIT_S)
