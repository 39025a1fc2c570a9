"""What tells weights apart: by content, without reading gigabytes each time."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path

_NOTE = ".tableread-identity.json"
_PROBES, _PROBE_BYTES = 16, 65_536
_DIGITS = 16

log = logging.getLogger(__name__)


def identify_weights(folder: Path, needs: Sequence[str]) -> str:
    """16 hexadecimal digits that stay while the files' content does.

    Once they were made of the files' times, and takes know them so. The first time they still are,
    and a note beside the files keeps them for this content; a copy of the folder, or a backup that
    touches its files, changes nothing then. Where no note can be written, times count.

    Args:
        folder: Holds the files.
        needs: Their names, as glob patterns.
    """
    paths = sorted(path.resolve() for need in needs for path in folder.glob(need))
    stats = [path.stat() for path in paths]
    marks = tuple(
        (path, stat.st_size, stat.st_mtime_ns) for path, stat in zip(paths, stats, strict=True)
    )
    return _identify(folder / _NOTE, marks)


@functools.lru_cache(maxsize=16)
def _identify(note: Path, marks: tuple[tuple[Path, int, int], ...]) -> str:
    content = _content_digest(marks)
    known = _read_note(note)
    if known.get("content") == content:
        return str(known["identity"])
    identity = _time_digest(marks)
    try:
        note.write_text(json.dumps({"content": content, "identity": identity}), "utf-8")
    except OSError:
        log.info("%s can't be written; the weights count as changed when they are touched", note)
    return identity


def _read_note(note: Path) -> dict[str, object]:
    try:
        known = json.loads(note.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) and "identity" in known else {}


def _time_digest(marks: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, size_bytes, mtime_ns in marks:
        digest.update(f"{path.name} {size_bytes} {mtime_ns}\n".encode())
    return digest.hexdigest()[:_DIGITS]


def _content_digest(marks: tuple[tuple[Path, int, int], ...]) -> str:
    """Of samples at fixed places of each file, whatever the files are called."""
    return hashlib.sha256("".join(sorted(map(_sample_digest, marks))).encode()).hexdigest()


def _sample_digest(mark: tuple[Path, int, int]) -> str:
    path, size_bytes, _ = mark
    digest = hashlib.sha256(str(size_bytes).encode())
    with path.open("rb") as file:
        for probe in range(_PROBES):
            file.seek(size_bytes * probe // _PROBES)
            digest.update(file.read(_PROBE_BYTES))
    return digest.hexdigest()
