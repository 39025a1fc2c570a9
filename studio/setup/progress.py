"""How far pip is, read from its own output."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_COLLECT = re.compile(r"(?:Collecting|Processing) (?P<what>\S+)")
_DOWNLOAD = re.compile(
    r"\s*(?:Downloading|Using cached) (?P<file>\S+)"
    r"(?: \((?P<size>[\d.]+) (?P<unit>bytes|[kMG]B)\))?"
)
_RAW = re.compile(r"Progress (?P<done>\d+) of (?P<total>\d+)")
_UNPACK = re.compile(r"Installing collected packages: (?P<names>.+)")
_NAME = re.compile(r"[A-Za-z0-9._]+(?:-[A-Za-z]\w*)*")
_UNIT_BYTES = {"bytes": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
_DOWNLOAD_SHARE = 0.7
"""Part of the bar that downloading takes; unpacking gives no sign until it ends."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One state of an installation; `fraction` in [0, 1], None while it can't be told."""

    message: str
    fraction: float | None = None
    detail: str = ""


Report = Callable[[Progress], None]


class PipProgress:
    """Follows one run of pip line by line."""

    def __init__(self, label: str, download_bytes: int) -> None:
        """Start at nothing.

        Args:
            label: What is installed, in plain words, such as "the model packages".
            download_bytes: About how much will be downloaded; 0 when unknown.
        """
        self._label = label
        self._expected_bytes = download_bytes
        self._finished_bytes = 0
        self._current_bytes = 0
        self._file_bytes = 0
        self._packages = 0
        self._unpacking = 0
        self._name = ""

    def feed(self, line: str) -> Progress:
        """Take one line of pip's output and tell the state after it."""
        if match := _RAW.match(line):
            self._current_bytes = int(match["done"])
        elif match := _DOWNLOAD.match(line):
            self._begin_file(match)
        elif match := _COLLECT.match(line):
            self._packages += 1
            self._name = match["what"].rsplit("/", 1)[-1]
        elif match := _UNPACK.match(line):
            self._begin_file(None)
            self._unpacking = match["names"].count(",") + 1
        return self.state()

    def state(self) -> Progress:
        """Where it stands."""
        if self._unpacking:
            detail = f"unpacking {self._unpacking} packages, which shows no steps"
            return Progress(f"Installing {self._label}.", _DOWNLOAD_SHARE, detail)
        return Progress(f"Downloading {self._label}.", self._fraction(), self._detail())

    def _begin_file(self, match: re.Match[str] | None) -> None:
        self._finished_bytes += self._file_bytes
        self._current_bytes = self._file_bytes = 0
        if match and not match["file"].endswith(".metadata"):
            self._name = match["file"].rsplit("/", 1)[-1]
            self._file_bytes = round(float(match["size"] or 0) * _UNIT_BYTES[match["unit"] or "kB"])

    def _fraction(self) -> float | None:
        if not self._expected_bytes:
            return None
        share = (self._finished_bytes + self._current_bytes) / self._expected_bytes
        return _DOWNLOAD_SHARE * min(1.0, share)

    def _detail(self) -> str:
        name = _NAME.match(self._name)
        done_mb = (self._finished_bytes + self._current_bytes) // 1_000_000
        return f"{name[0]}, package {self._packages}, {done_mb} MB" if name else ""
