"""All models of the process, one manager each, and the conditioning that they computed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic

from cachetools import LRUCache

from studio.backends.base import (
    Backend,
    Conditioning,
    Health,
    KeepsConditioning,
    LoadProgress,
    ReportsHealth,
    canonical_name,
)
from studio.dialog.model import name_key
from studio.engine.event_log import StateChange
from studio.engine.model_manager import (
    EvictionPolicy,
    MemoryChange,
    Model,
    ModelCounters,
    ModelManager,
    ModelState,
    Notify,
)
from studio.errors import OutOfMemory
from studio.storage.disk import measure_checksum
from studio.voices.speaker import Voice

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The status of a model, for the page.

    Attributes:
        unload_in_s: None if it won't be unloaded.
        resident_s: Seconds that it has been in memory until now, over all its loads.
        memory: Before and after the latest load or unload; None before the first.
    """

    name: str
    state: ModelState
    progress: LoadProgress | None
    active: int
    unload_in_s: float | None
    resident_s: float
    counters: ModelCounters
    memory: MemoryChange | None


class ModelPool(Generic[Model]):
    """One `ModelManager` for each backend, created on first use."""

    def __init__(
        self,
        create: Callable[[str], Model],
        policy: EvictionPolicy,
        *,
        forget: Callable[[str], None] = lambda _: None,
        notify: Notify = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Manage the backends that `create` makes by name.

        Args:
            create: Raises `SettingError` for an unknown name.
            policy: When idle models are unloaded; the timeout can be changed later.
            forget: Drops references to a backend's memory elsewhere; called before an unload.
            notify: Called at every change that the page shows.
            clock: Monotonic seconds.
        """
        self._create = create
        self._policy = policy
        self._forget = forget
        self.notify = notify
        self._clock = clock
        self._managers: dict[str, ModelManager[Model]] = {}
        # Guards the creation of managers, which the loop and the API's threads ask for.
        self._create_lock = threading.Lock()
        self._next_check_s = clock() + policy.check_interval_s

    @property
    def policy(self) -> EvictionPolicy:
        return self._policy

    def set_idle_timeout(self, idle_timeout_s: float) -> None:
        """Change the idle timeout from now on; 0 keeps models loaded."""
        self._policy = replace(self._policy, idle_timeout_s=idle_timeout_s)
        self.notify(StateChange.WORK)

    def get_manager(self, name: str) -> ModelManager[Model]:
        """The manager of a backend."""
        name = canonical_name(name)
        with self._create_lock:
            if name not in self._managers:
                self._managers[name] = ModelManager(
                    self._create(name),
                    forget=lambda: self._forget(name),
                    notify=self.notify,
                    clock=self._clock,
                )
            return self._managers[name]

    async def reap(self) -> int:
        """Unload every model that has been idle long enough; returns how many."""
        if not self._policy.active:
            log.debug("idle check: switched off")
            return 0
        expired = [await self._expire(manager) for manager in list(self._managers.values())]
        return sum(expired)

    async def run_reaper(self) -> None:
        """Unload idle models every `check_interval_s`, until cancelled."""
        while True:
            self._next_check_s = self._clock() + self._policy.check_interval_s
            await asyncio.sleep(self._policy.check_interval_s)
            await self.reap()

    async def unload_all(self) -> None:
        """Stop loads and unload the models that aren't in use, when the studio ends."""
        for manager in list(self._managers.values()):
            manager.cancel_load()
            if not manager.active:
                # Broad, as a failure of one must not keep the others in memory.
                with suppress(Exception):
                    await manager.unload()

    def check_health(self) -> dict[str, Health]:
        """The health of the loaded backends with threads of their own, by name."""
        loaded: dict[str, object] = {
            name: manager.backend
            for name, manager in list(self._managers.items())
            if manager.state is ModelState.LOADED
        }
        return {
            name: backend.health()
            for name, backend in loaded.items()
            if isinstance(backend, ReportsHealth)
        }

    def list_statuses(self) -> list[ModelStatus]:
        """The status of every model that has a manager."""
        return [self.get_status(name) for name in list(self._managers)]

    def get_status(self, name: str) -> ModelStatus:
        """The status of one model."""
        manager = self.get_manager(name)
        return ModelStatus(
            name=name,
            state=manager.state,
            progress=manager.progress,
            active=manager.active,
            unload_in_s=self._unload_in_s(manager),
            resident_s=manager.resident_s,
            counters=replace(manager.counters),
            memory=manager.memory,
        )

    async def _expire(self, manager: ModelManager[Model]) -> bool:
        try:
            return await manager.expire(self._policy.idle_timeout_s)
        # The model is marked as failed; the others and the next check go on.
        except Exception:
            log.exception("idle check of %s", manager.backend.name)
            return False

    def _unload_in_s(self, manager: ModelManager[Model]) -> float | None:
        """Seconds to the check that will unload the model: its expiry, rounded up to a check."""
        if not self._policy.active or manager.state is not ModelState.LOADED or manager.active:
            return None
        expiry_s = manager.last_used_s + self._policy.idle_timeout_s
        checks = math.ceil((expiry_s - self._next_check_s) / self._policy.check_interval_s)
        check_s = self._next_check_s + max(0, checks) * self._policy.check_interval_s
        return max(0.0, check_s - self._clock())


_CacheKey = tuple[str | None, ...]


class ConditioningCache:
    """LRU cache of conditioning by voice, backend and revision.

    Safe from any thread. Two that need the same voice at once share one computation.
    """

    def __init__(
        self, store: ConditioningStore | None = None, *, max_bytes: int = 256 * 1024 * 1024
    ) -> None:
        """Hold at most `max_bytes` of conditioning, as measured by the backends.

        Args:
            store: Stores the conditioning of samples on disk; None for memory only.
            max_bytes: Bound of the memory.
        """
        self._store = store
        # Guards both tables; never held while a backend computes.
        self._lock = threading.Lock()
        self._cache: LRUCache[_CacheKey, Conditioning] = LRUCache(
            max_bytes, getsizeof=lambda made: max(1, made.size_bytes)
        )
        self._pending: dict[_CacheKey, Future[Conditioning]] = {}
        self.n_computed = 0
        self.n_read = 0

    def get(self, backend: Backend, voice: Voice) -> Conditioning:
        """The conditioning of a voice; the loaded backend computes it if it isn't cached."""
        key = _build_cache_key(backend, voice)
        with self._lock:
            kept = self._cache.get(key)
            if kept is not None:
                return kept
            pending = self._pending.get(key)
            if pending is None:
                mine: Future[Conditioning] = Future()
                self._pending[key] = mine
        if pending is not None:
            return pending.result()
        return self._compute(key, mine, backend, voice)

    def forget(self, backend_name: str) -> None:
        """Evict all conditioning of a backend from memory; the files on disk stay."""
        with self._lock:
            for key in [key for key in self._cache if key[0] == backend_name]:
                del self._cache[key]

    def _compute(
        self, key: _CacheKey, mine: Future[Conditioning], backend: Backend, voice: Voice
    ) -> Conditioning:
        try:
            made = self._read_or_make(key, backend, voice)
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._pending[key]
            if made.size_bytes <= self._cache.maxsize:
                self._cache[key] = made
        mine.set_result(made)
        return made

    def _read_or_make(self, key: _CacheKey, backend: Backend, voice: Voice) -> Conditioning:
        # Conditioning without a sample is cheaper to compute than to read from disk.
        store = self._store if voice.sample is not None else None
        kept = store.read(backend, key) if store is not None else None
        if kept is not None:
            with self._lock:
                self.n_read += 1
            return kept
        made = backend.condition(voice)
        with self._lock:
            self.n_computed += 1
        if store is not None:
            store.write(backend, key, made)
        return made


def _build_cache_key(backend: Backend, voice: Voice) -> _CacheKey:
    sample = voice.sample
    # The name counts even with a preset, as a backend may vary a preset by name.
    named = sample is None and backend.capabilities.builtin_by_name
    return (
        backend.name,
        backend.revision,
        sample.sha256 if sample else None,
        sample.transcript if sample else None,
        voice.preset,
        voice.description,
        name_key(voice.builtin_name) if named else None,
    )


MAX_STORED_BYTES = 2_000_000_000
_STORE_VERSION = 1


class ConditioningStore:
    """LRU store of one safetensors file for each voice.

    Its name is `<backend>/<hash of the key>.<version>-<CRC-32>.safetensors`; the first studios
    wrote no version and checksum, and files of newer ones aren't touched. Only for backends that
    are `KeepsConditioning`. A full disk or a broken file costs a computation, but never fails a
    line.
    """

    def __init__(self, folder: Path, *, max_bytes: int = MAX_STORED_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        # Held while the folder is trimmed, so that one thread does it at a time.
        self._lock = threading.Lock()

    def read(self, backend: Backend, key: Sequence[str | None]) -> Conditioning | None:
        """The stored conditioning of a key; None if there is none, or the file is broken."""
        path = self._find(backend, key)
        if not isinstance(backend, KeepsConditioning) or path is None:
            return None
        try:
            _check_stored(path)
            kept = backend.read_conditioning(path)
            os.utime(path)
        except OutOfMemory:
            raise
        # Broad, as a broken file may raise anything; the conditioning is then computed again.
        except Exception:
            log.warning("conditioning %s can't be read and is thrown away", path, exc_info=True)
            path.unlink(missing_ok=True)
            return None
        return kept

    def write(self, backend: Backend, key: Sequence[str | None], made: Conditioning) -> None:
        """Store conditioning in a file that is whole or absent."""
        if not isinstance(backend, KeepsConditioning):
            return
        folder, digest = self._folder / backend.name, _hash_key(key)
        unfinished = folder / f".{secrets.token_hex(8)}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            backend.write_conditioning(made, unfinished)
            checksum = f"{measure_checksum(unfinished):08x}"
            unfinished.replace(folder / f"{digest}.{_STORE_VERSION}-{checksum}.safetensors")
            self._trim()
        # Broad, as a failure to store it must not fail the line.
        except Exception:
            log.warning("conditioning %s can't be kept", unfinished, exc_info=True)
            unfinished.unlink(missing_ok=True)

    def _find(self, backend: Backend, key: Sequence[str | None]) -> Path | None:
        folder, digest = self._folder / backend.name, _hash_key(key)
        names = (f"{digest}.{_STORE_VERSION}-*.safetensors", f"{digest}.safetensors")
        return next((path for name in names for path in folder.glob(name)), None)

    def _trim(self) -> None:
        """Delete the least recently used files beyond the bound, and unfinished ones."""
        with self._lock:
            files = [(path.stat(), path) for path in self._folder.rglob("*") if path.is_file()]
            total_bytes = sum(status.st_size for status, _ in files)
            for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
                if total_bytes <= self._max_bytes:
                    return
                path.unlink(missing_ok=True)
                total_bytes -= status.st_size


def _hash_key(key: Sequence[str | None]) -> str:
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()


def _check_stored(path: Path) -> None:
    """Check a file against the checksum in its name, if it has one.

    Raises:
        ValueError: It has changed since it was written.
    """
    _, found, checksum = path.stem.partition(f".{_STORE_VERSION}-")
    if found and checksum != f"{measure_checksum(path):08x}":
        raise ValueError("it doesn't fit its checksum")
