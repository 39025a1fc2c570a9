"""Bodies of the page's own routes. Inside, the studio uses its own types."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from studio.backends.base import Capabilities
from studio.dialog.model import Notice


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TimeoutBody(_Body):
    """After how many idle seconds models are unloaded; 0 keeps them."""

    seconds: float = Field(ge=0, le=7 * 24 * 3600, allow_inf_nan=False)


class ConcurrencyBody(_Body):
    """How many segments are spoken at once on a backend without slots of its own."""

    segments: int = Field(ge=1, le=256)


class BackendBody(_Body):
    """Who speaks from now on."""

    name: str = Field(max_length=100)


def notice_body(notice: Notice) -> dict[str, Any]:
    """A notice for the page."""
    return {"line_number": notice.line_number, "message": notice.message}


def capabilities_body(capabilities: Capabilities) -> dict[str, Any]:
    """What a backend can do, for the page's controls."""
    return {
        "params": [
            {
                "name": param.name,
                "label": param.label,
                "minimum": param.minimum,
                "maximum": param.maximum,
                "default": param.default,
                "step": param.step,
                "help": param.help,
            }
            for param in capabilities.params
        ],
        "languages": dict(capabilities.languages),
        "tags": sorted(capabilities.tags),
        "instructions": capabilities.instructions,
    }
