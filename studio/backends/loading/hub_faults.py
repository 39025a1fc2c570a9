"""What can go wrong with a download, each as one message with its remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
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

from studio.errors import ModelUnavailable

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
