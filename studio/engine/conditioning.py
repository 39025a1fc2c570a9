"""What backends compute from voices, computed once and kept within bounds, also on disk."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from cachetools import LRUCache

from studio.backends.base import Backend, Conditioning
from studio.dialog.names import name_key
from studio.engine.conditioning_store import ConditioningStore
from studio.speakers.speaker import Voice

_Key = tuple[str | None, ...]


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
        self._kept: LRUCache[_Key, Conditioning] = LRUCache(max_bytes, getsizeof=_size_bytes)
        self._pending: dict[_Key, Future[Conditioning]] = {}
        self.computed = 0
        self.read = 0

    def get(self, backend: Backend, voice: Voice) -> Conditioning:
        """The conditioning of a voice, computed by the loaded backend when it isn't kept.

        Raises:
            SampleRejected: The backend can't use the sample. Nothing is kept of a failure.
        """
        key = _key(backend, voice)
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
        self, key: _Key, mine: Future[Conditioning], backend: Backend, voice: Voice
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

    def _read_or_make(self, key: _Key, backend: Backend, voice: Voice) -> Conditioning:
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


def _key(backend: Backend, voice: Voice) -> _Key:
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


def _size_bytes(conditioning: Conditioning) -> int:
    return max(1, conditioning.size_bytes)
