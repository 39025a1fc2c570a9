"""Conditioning on disk, so that a restart computes nothing again."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import threading
from collections.abc import Sequence
from pathlib import Path

from studio.backends.abilities import KeepsConditioning
from studio.backends.base import Backend, Conditioning
from studio.errors import OutOfMemory

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
