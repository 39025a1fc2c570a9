"""Where a model is in its life, what happened to it, and when that ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ModelState(StrEnum):
    """Where a model is in its life."""

    UNLOADED = "unloaded"
    LOADING = "loading"
    LOADED = "loaded"
    UNLOADING = "unloading"
    FAILED = "failed"


@dataclass(slots=True)
class ModelCounters:
    """What happened to a model since the studio started."""

    loads: int = 0
    unloads: int = 0
    failed_loads: int = 0
    cancelled_loads: int = 0
    refused_unloads: int = 0
    resident_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EvictionPolicy:
    """When an idle model is unloaded; `idle_timeout_s` 0 means never."""

    enabled: bool = True
    idle_timeout_s: float = 900.0
    check_interval_s: float = 60.0

    @property
    def active(self) -> bool:
        """Whether idle models are unloaded at all."""
        return self.enabled and self.idle_timeout_s > 0
