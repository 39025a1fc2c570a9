"""Decoding of untrusted recordings in a child process with bounded memory and time.

The decoder is a large C library. Here a file that makes it crash, hang, or fill the memory or the
disk ends a child, and nothing else. The child ends when nobody waits for it any more.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.decode import DEFAULT_LIMITS, AudioInfo, DecodeLimits, decode, probe
from studio.errors import AudioRejected, Cancelled
from studio.storage.disk import is_full_error, storage_errors


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The resources that a child process may use.

    Attributes:
        address_bytes: Address space, of which libraries reserve far more than they use; resident
            memory stays below a fifth of it.
        cpu_s: Seconds of work, in twice as many by the clock.
        file_bytes: Of the largest file that it writes: ten minutes of sound take 58 MB.
    """

    address_bytes: int = 1_500_000_000
    cpu_s: int = 60
    file_bytes: int = 70_000_000


DEFAULT_PROCESS_LIMITS = ProcessLimits()

_RESULT_FILE = "answer.json"
_SAMPLES_FILE = "samples.f32"
_SPARE_MEMORY_BYTES = 16_000_000
_LOOK_S = 0.2

is_abandoned: ContextVar[Callable[[], bool]] = ContextVar("is_abandoned", default=lambda: False)
"""Whether nobody waits any more for what is decoded here; asked now and then, in that thread.

The server sets it for each request. Between the two lie the library, the cast and the projects,
which know no clients.
"""


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
        code = _run_guarded(json.dumps(order).encode(), 2 * bounds.cpu_s)
        return _read_result(Path(folder), name, code)


def _run_guarded(order: bytes, timeout_s: float) -> int | None:
    """Let a child do an order; returns its exit code, None if it took too long.

    Raises:
        Cancelled: Nobody waits for it any more.
    """
    ends_s, is_gone = time.monotonic() + timeout_s, is_abandoned.get()
    with subprocess.Popen(
        [sys.executable, "-m", "studio.audio.guarded_decode"],
        cwd=Path(__file__).parents[2],
        env=build_child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        try:
            assert child.stdin is not None
            with suppress(OSError), child.stdin:  # it may have ended already
                child.stdin.write(order)
            while child.poll() is None and time.monotonic() < ends_s:
                if is_gone():
                    raise Cancelled("Nobody waits for this recording any more.")
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_LOOK_S)
            return child.returncode
        finally:
            child.kill()


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


def build_child_environment() -> dict[str, str]:
    """The variables that Python needs, without keys or tokens; libraries get one thread each."""
    kept = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "HOME", "LANG", "LD_LIBRARY_PATH")
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    given = {name: os.environ[name] for name in kept if name in os.environ}
    return given | threads | {"PYTHONUTF8": "1"}


def _apply_limits(bounds: ProcessLimits) -> None:
    """Limit this process's resources, where the system can."""
    with suppress(ImportError):
        import resource  # noqa: PLC0415 - there is none on Windows

        for limit, most in (
            (resource.RLIMIT_AS, bounds.address_bytes),
            (resource.RLIMIT_CPU, bounds.cpu_s),
            (resource.RLIMIT_FSIZE, bounds.file_bytes),
            (resource.RLIMIT_CORE, 0),
        ):
            # Some systems know a limit but refuse to set it; the decoder's own limits hold there.
            with suppress(OSError, ValueError):
                resource.setrlimit(limit, (most, most))


def _run_child() -> None:
    """Read a request from standard input, and write the answer into its folder."""
    order = json.load(sys.stdin)
    _apply_limits(ProcessLimits(**order["bounds"]))
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
