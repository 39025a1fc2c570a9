"""Decoding of untrusted recordings in a child process with bounded memory and time.

The decoder is a large C library; `guarded_child` says what is bounded.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.decode import DEFAULT_LIMITS, AudioInfo, DecodeLimits, decode, probe
from studio.errors import AudioRejected
from studio.storage.disk import is_full_error, storage_errors
from studio.storage.guarded_child import (
    DEFAULT_PROCESS_LIMITS,
    ProcessLimits,
    apply_limits,
    run_guarded,
)

_RESULT_FILE = "answer.json"
_SAMPLES_FILE = "samples.f32"
_SPARE_MEMORY_BYTES = 16_000_000


def decode_guarded(
    path: Path,
    *,
    limits: DecodeLimits = DEFAULT_LIMITS,
    display_name: str | None = None,
    bounds: ProcessLimits = DEFAULT_PROCESS_LIMITS,
) -> tuple[AudioInfo, Clip]:
    """Probe and decode a recording to one channel at the studio's rate, in a child.

    Args:
        path: The file, whatever its suffix.
        limits: What its size, its header and its content are held to.
        display_name: What messages call the file.
        bounds: What the child may use.
    """
    name = display_name or path.name
    with tempfile.TemporaryDirectory(prefix="tableread-decode-") as folder:
        order = {
            "path": str(path.absolute()),
            "folder": folder,
            "name": name,
            "limits": asdict(limits),
            "bounds": asdict(bounds),
        }
        code = run_guarded(__name__, [json.dumps(order).encode()], 2 * bounds.cpu_s)
        return _read_result(Path(folder), name, code)


def _read_result(folder: Path, name: str, code: int | None) -> tuple[AudioInfo, Clip]:
    # A file that is too large is so by the bounds of its own process.
    if code and code > 1 and code != errno.EFBIG:
        failed = OSError(code, os.strerror(code))
        if is_full_error(failed):
            with storage_errors(Path(name)):
                raise failed
    try:
        answer = json.loads((folder / _RESULT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise _build_limit_error(name) from None
    if "rejected" in answer:
        raise AudioRejected(answer["rejected"])
    if code != 0:
        raise _build_limit_error(name)
    samples = np.fromfile(folder / _SAMPLES_FILE, dtype=np.float32)
    return AudioInfo(**answer["info"]), Clip(samples, STUDIO_RATE_HZ)


def _build_limit_error(name: str) -> AudioRejected:
    return AudioRejected(
        f"“{name}” can't be decoded within the memory and time a recording is given. Export it "
        "again as 16-bit WAV."
    )


def _run_child() -> None:
    """Read a request from standard input, and write the answer into its folder."""
    order = json.load(sys.stdin)
    apply_limits(ProcessLimits(**order["bounds"]))
    folder = Path(order["folder"])
    try:
        answer = _decode_to_folder(order, folder)
        (folder / _RESULT_FILE).write_text(json.dumps(answer), encoding="utf-8")
    except OSError as error:  # the disk of the folder has no room
        sys.exit(error.errno)


def _decode_to_folder(order: dict[str, Any], folder: Path) -> dict[str, Any]:
    path, name, limits = Path(order["path"]), order["name"], DecodeLimits(**order["limits"])
    try:
        info = probe(path, limits=limits, display_name=name)
        samples = decode(path, limits=limits, display_name=name).samples
        (folder / _SAMPLES_FILE).write_bytes(samples.data)
    except AudioRejected as error:
        return {"rejected": str(error if _has_spare_memory() else _build_limit_error(name))}
    except MemoryError:
        return {"rejected": str(_build_limit_error(name))}
    return {"info": asdict(info)}


def _has_spare_memory() -> bool:
    """Whether memory is left: a decoder that was refused some may call a sound file broken."""
    try:
        bytearray(_SPARE_MEMORY_BYTES)
    except MemoryError:
        return False
    return True


if __name__ == "__main__":
    _run_child()
