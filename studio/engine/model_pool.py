"""All models of the process, one manager each, and the reaper that unloads the idle ones."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from studio.backends.aliases import canonical_name
from studio.backends.base import Backend, Health, LoadProgress, TellsHealth
from studio.engine.model_manager import (
    EvictionPolicy,
    MemoryChange,
    ModelCounters,
    ModelManager,
    ModelState,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A model as the page shows it.

    Attributes:
        unload_in_s: None while nothing will unload it.
        memory: Before and after the latest load or unload; None before the first.
    """

    name: str
    state: ModelState
    progress: LoadProgress | None
    active: int
    unload_in_s: float | None
    counters: ModelCounters
    memory: MemoryChange | None


class ModelPool:
    """One `ModelManager` a backend, made when first asked for."""

    def __init__(
        self,
        create: Callable[[str], Backend],
        policy: EvictionPolicy,
        *,
        forget: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Manage the backends that `create` makes by name.

        Args:
            create: Raises `SettingError` for a name it doesn't know.
            policy: When idle models are unloaded; the timeout can be changed later.
            forget: Drops what others keep of a backend's memory; called before it is unloaded.
            clock: Monotonic seconds.
        """
        self._create = create
        self._policy = policy
        self._forget = forget
        self._clock = clock
        self._managers: dict[str, ModelManager] = {}
        # Guards the making of a manager: threads of the API ask for one as the loop does.
        self._making = threading.Lock()
        self._next_check_s = clock() + policy.check_interval_s

    @property
    def policy(self) -> EvictionPolicy:
        """The policy in force."""
        return self._policy

    def set_idle_timeout(self, idle_timeout_s: float) -> None:
        """Change the idle timeout from now on; 0 keeps models loaded."""
        self._policy = replace(self._policy, idle_timeout_s=idle_timeout_s)

    def manager(self, name: str) -> ModelManager:
        """The manager of a backend.

        Raises:
            SettingError: There is no such backend.
        """
        name = canonical_name(name)
        with self._making:
            if name not in self._managers:
                self._managers[name] = ModelManager(
                    self._create(name), forget=lambda: self._forget(name), clock=self._clock
                )
            return self._managers[name]

    async def reap(self) -> int:
        """Unload every model that has been idle long enough; returns how many."""
        if not self._policy.active:
            return 0
        expired = [await self._expire(manager) for manager in list(self._managers.values())]
        return sum(expired)

    async def run_reaper(self) -> None:
        """Reap every `check_interval_s`, until cancelled."""
        while True:
            self._next_check_s = self._clock() + self._policy.check_interval_s
            await asyncio.sleep(self._policy.check_interval_s)
            await self.reap()

    async def unload_all(self) -> None:
        """Stop loads and unload what isn't in use, at the studio's end."""
        for manager in list(self._managers.values()):
            manager.cancel_load()
            if not manager.active:
                # Whatever one of them raises, the others' memory is to be given back.
                with suppress(Exception):
                    await manager.unload()

    def health(self) -> dict[str, Health]:
        """How the threads of loaded backends are that have threads of their own, by name."""
        return {
            name: manager.backend.health()
            for name, manager in list(self._managers.items())
            if manager.state is ModelState.LOADED and isinstance(manager.backend, TellsHealth)
        }

    def known(self) -> list[ModelStatus]:
        """A snapshot of every model that was asked for so far."""
        return [self.status(name) for name in list(self._managers)]

    def status(self, name: str) -> ModelStatus:
        """A snapshot of one model."""
        manager = self.manager(name)
        return ModelStatus(
            name=name,
            state=manager.state,
            progress=manager.progress,
            active=manager.active,
            unload_in_s=self._unload_in_s(manager),
            counters=replace(manager.counters),
            memory=manager.memory,
        )

    async def _expire(self, manager: ModelManager) -> bool:
        try:
            return await manager.expire(self._policy.idle_timeout_s)
        # The model counts as failed; the other ones and the next check go on.
        except Exception:
            log.exception("idle check of %s", manager.backend.name)
            return False

    def _unload_in_s(self, manager: ModelManager) -> float | None:
        """Seconds to the check that will find the model idle: expiry, rounded up to a check."""
        if not self._policy.active or manager.state is not ModelState.LOADED or manager.active:
            return None
        expiry_s = manager.last_used_s + self._policy.idle_timeout_s
        checks = math.ceil((expiry_s - self._next_check_s) / self._policy.check_interval_s)
        check_s = self._next_check_s + max(0, checks) * self._policy.check_interval_s
        return max(0.0, check_s - self._clock())
