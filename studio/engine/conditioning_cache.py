"""The cache of voice conditioning, in memory and on disk."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from cachetools import LRUCache

from studio.backends.base import Backend, Conditioning, KeepsConditioning
from studio.dialog.names import name_key
from studio.errors import OutOfMemory
from studio.voices.speaker import Voice

_CacheKey = tuple[str | None, ...]


class ConditioningCache:
    """Conditioning by voice, backend and revision; the least recently used goes first.

    Safe from many threads. Two that ask for the same voice at once share one computation.
    """

    def __init__(
        self, store: ConditioningStore | None = None, *, max_bytes: int = 256 * 1024 * 1024
    ) -> None:
        """Hold at most `max_bytes`, counted by what the backends say.

        Args:
            store: Keeps the conditioning of samples over restarts; None for memory alone.
            max_bytes: Bound of what is held in memory.
        """
        self._store = store
        # Guards both tables; never held while a backend computes.
        self._lock = threading.Lock()
        self._kept: LRUCache[_CacheKey, Conditioning] = LRUCache(
            max_bytes, getsizeof=_measure_conditioning
        )
        self._pending: dict[_CacheKey, Future[Conditioning]] = {}
        self.computed = 0
        self.read = 0

    def get(self, backend: Backend, voice: Voice) -> Conditioning:
        """The conditioning of a voice, computed by the loaded backend when it isn't kept.

        Raises:
            SampleRejected: The backend can't use the sample. Nothing is kept of a failure.
        """
        key = _build_cache_key(backend, voice)
        with self._lock:
            kept = self._kept.get(key)
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
        """Drop all that a backend computed from memory; what is on disk stays."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == backend_name]:
                del self._kept[key]

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
            if made.size_bytes <= self._kept.maxsize:
                self._kept[key] = made
        mine.set_result(made)
        return made

    def _read_or_make(self, key: _CacheKey, backend: Backend, voice: Voice) -> Conditioning:
        # What isn't computed from a sample costs less to make than to read.
        store = self._store if voice.sample is not None else None
        kept = store.read(backend, key) if store is not None else None
        if kept is not None:
            with self._lock:
                self.read += 1
            return kept
        made = backend.condition(voice)
        with self._lock:
            self.computed += 1
        if store is not None:
            store.write(backend, key, made)
        return made


def _build_cache_key(backend: Backend, voice: Voice) -> _CacheKey:
    sample = voice.sample
    # With a preset, too: a backend that lets the name choose may let it shape a preset.
    named = sample is None and backend.capabilities.builtin_by_name
    return (
        backend.name,
        backend.revision,
        sample.sha256 if sample else None,
        sample.transcript if sample else None,
        voice.preset,
        voice.description,
        name_key(voice.chosen_by) if named else None,
    )


def _measure_conditioning(conditioning: Conditioning) -> int:
    return max(1, conditioning.size_bytes)


log = logging.getLogger(__name__)

MAX_STORED_BYTES = 2_000_000_000


class ConditioningStore:
    """One safetensors file a voice, `<backend>/<hash of the key>`; the longest unused goes first.

    Only for backends that are `KeepsConditioning`; for others it holds nothing. A full disk or a
    broken file costs a computation, never a line.
    """

    def __init__(self, folder: Path, *, max_bytes: int = MAX_STORED_BYTES) -> None:
        """Keep at most `max_bytes` in a folder, which is made when needed."""
        self._folder = folder
        self._max_bytes = max_bytes
        # Guards the look through the folder when it is trimmed.
        self._lock = threading.Lock()

    def read(self, backend: Backend, key: Sequence[str | None]) -> Conditioning | None:
        """What was kept under a key; None when there is nothing, or nothing of use."""
        path = self._path(backend, key)
        if not isinstance(backend, KeepsConditioning) or not path.is_file():
            return None
        try:
            kept = backend.read_conditioning(path)
            os.utime(path)
        except OutOfMemory:
            raise
        # Whatever a broken file makes a reader raise, the remedy is to compute it again.
        except Exception:
            log.warning("conditioning %s can't be read and is thrown away", path, exc_info=True)
            path.unlink(missing_ok=True)
            return None
        return kept

    def write(self, backend: Backend, key: Sequence[str | None], made: Conditioning) -> None:
        """Keep what was computed, whole or not at all."""
        if not isinstance(backend, KeepsConditioning):
            return
        path = self._path(backend, key)
        unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            backend.write_conditioning(made, unfinished)
            unfinished.replace(path)
            self._trim()
        # Whatever keeps it from being kept, the line it was computed for goes on.
        except Exception:
            log.warning("conditioning %s can't be kept", path, exc_info=True)
            unfinished.unlink(missing_ok=True)

    def _path(self, backend: Backend, key: Sequence[str | None]) -> Path:
        digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
        return self._folder / backend.name / f"{digest}.safetensors"

    def _trim(self) -> None:
        """Remove the longest unused files beyond the bound; also those an old run left half."""
        with self._lock:
            files = [(path.stat(), path) for path in self._folder.rglob("*") if path.is_file()]
            total_bytes = sum(status.st_size for status, _ in files)
            for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
                if total_bytes <= self._max_bytes:
                    return
                path.unlink(missing_ok=True)
                total_bytes -= status.st_size
