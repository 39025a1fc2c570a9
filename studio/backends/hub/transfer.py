"""A download's progress, its retries with backoff, and its faults with their remedies."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RevisionNotFoundError,
)
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from studio.backends.base import LoadProgress
from studio.errors import ModelUnavailable

_REPORT_EVERY_S = 0.2


class DownloadMeter:
    """Counts bytes and tells them, at most five times a second.

    The report is also where a download is cancelled: it may raise.
    """

    def __init__(
        self,
        report: Callable[[LoadProgress], None],
        *,
        total_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start at zero of `total_bytes`."""
        self._report = report
        self._total_bytes = total_bytes
        self._clock = clock
        self._done_bytes = 0
        self._came_bytes = 0
        self._began_s = clock()
        self._reported_s = self._began_s
        self._file = ""

    def skip(self, size_bytes: int) -> None:
        """Count a file that is there already."""
        self._done_bytes += size_bytes

    def begin(self, file: str, *, have_bytes: int) -> None:
        """Turn to a file, of which a part may be there."""
        self._file = file
        self._done_bytes += have_bytes
        self._tell()

    def rewind(self, lost_bytes: int) -> None:
        """Take back bytes of the file that have to come again."""
        self._done_bytes -= lost_bytes

    def add(self, size_bytes: int) -> None:
        """Count bytes that came."""
        self._done_bytes += size_bytes
        self._came_bytes += size_bytes
        if self._clock() - self._reported_s >= _REPORT_EVERY_S:
            self._tell()

    def say(self, message: str) -> None:
        """Tell why nothing comes at the moment."""
        self._report(LoadProgress(message, self._fraction))

    @property
    def _fraction(self) -> float | None:
        return min(1.0, self._done_bytes / self._total_bytes) if self._total_bytes else None

    def _tell(self) -> None:
        self._reported_s = self._clock()
        elapsed_s = self._reported_s - self._began_s
        speed = f", {self._came_bytes / elapsed_s / 1e6:.1f} MB/s" if elapsed_s > 0 else ""
        done_mb, total_mb = self._done_bytes / 1e6, self._total_bytes / 1e6
        self._report(
            LoadProgress(
                f"Downloading {self._file}: {done_mb:,.0f} of {total_mb:,.0f} MB{speed}",
                self._fraction,
            )
        )


_ELSEWHERE = (
    "or copy the model from another machine and give its folder in the model's setting "
    "(CHATTERBOX_MODEL, QWEN3_TTS_MODEL)"
)


@contextmanager
def hub_faults(name: str) -> Iterator[None]:
    """Turn the faults of a download of the model `name` into `ModelUnavailable`."""
    try:
        yield
    except (HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, httpx.TransportError) as error:
        raise ModelUnavailable(_hub_message(name, error)) from error
    except OSError as error:
        raise ModelUnavailable(_disk_message(name, error)) from error


def _hub_message(name: str, error: Exception) -> str:
    match error:
        case HFValidationError():
            return f"“{name}” is neither a folder nor a model's name on the hub (owner/model)."
        case OfflineModeIsEnabled():
            return (
                f"The model {name} isn't on this machine and HF_HUB_OFFLINE forbids downloads; "
                f"unset it, {_ELSEWHERE}."
            )
        case GatedRepoError():
            return (
                f"The hub gives the model {name} only to who has accepted its terms; accept them "
                "on its page, sign in with `hf auth login`, and load again."
            )
        case RevisionNotFoundError():
            return f"The model {name} on the hub has no such revision; correct it."
        case HfHubHTTPError() if error.response.status_code in (401, 403, 404):
            return (
                f"The hub has no model {name}, or it is private; correct the name, or sign in "
                "with `hf auth login`, and load again."
            )
        case HfHubHTTPError():
            return (
                f"The hub answered {error.response.status_code} for the model {name}; load again "
                f"in a few minutes, {_ELSEWHERE}."
            )
        case _:
            return (
                f"The hub at {constants.ENDPOINT} can't be reached for the model {name}, or the "
                f"connection broke; check the network and load again (what has come is kept), "
                f"{_ELSEWHERE}."
            )


def _disk_message(name: str, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"The disk is full: the model {name} couldn't be stored in {constants.HF_HUB_CACHE}; "
            "make room, or set HF_HOME to a folder on a larger disk, and load again."
        )
    reason = error.strerror or error
    return (
        f"The model {name} couldn't be stored in {constants.HF_HUB_CACHE} ({reason}); "
        "make the folder writable, or set HF_HOME to another, and load again."
    )


TRIES = 6
LONGEST_WAIT_S = 60.0
_FIRST_WAIT_S = 1.0
_STEP_S = 0.5  # how late a cancelled download is noticed


def with_retries(work: Callable[[], None], tell: Callable[[str], None]) -> None:
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
        retry=retry_if_exception(_is_transient),
        stop=stop_after_attempt(TRIES),
        wait=_backoff_s,
        sleep=sleep,
        reraise=True,
    )(work)


def _is_transient(error: BaseException) -> bool:
    if not isinstance(error, HfHubHTTPError):
        return False
    status = error.response.status_code
    return status in (408, 429) or status >= 500


def _backoff_s(state: RetryCallState) -> float:
    """As long as the hub says; else a second, doubled each time."""
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, HfHubHTTPError)
    wished = error.response.headers.get("retry-after", "")
    wait_s = (
        float(wished) if wished.isdecimal() else _FIRST_WAIT_S * 2 ** (state.attempt_number - 1)
    )
    return min(wait_s, LONGEST_WAIT_S)
