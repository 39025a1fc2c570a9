"""The parts of a requirements file, and whether their packages are installed."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from studio.errors import SetupFailed

MEGABYTE = 1_000_000

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9._!-]+)")
_MARK = re.compile(r"#\s*(?P<key>part|download|disk|no-deps):\s*(?P<value>.+)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Pin:
    """One package at one version."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True)
class Part:
    """A set of packages that is installed together.

    Attributes:
        pins: Packages that pip installs with their dependencies.
        no_deps: Packages that pip installs afterwards, without dependencies.
        download_bytes: Approximate size of the download, for the progress; 0 if unknown.
        disk_bytes: Free disk space that the installation needs.
    """

    name: str
    pins: tuple[Pin, ...] = ()
    no_deps: tuple[Pin, ...] = ()
    download_bytes: int = 0
    disk_bytes: int = 0

    def fingerprint(self) -> str:
        """A digest of the part's packages and of Python's minor version."""
        lines = [f"python {sys.version_info.major}.{sys.version_info.minor}"]
        lines += sorted(str(pin) for pin in self.pins)
        lines += sorted(f"no-deps {pin}" for pin in self.no_deps)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def missing(self, installed: Callable[[str], str | None] | None = None) -> tuple[Pin, ...]:
        """The packages that are absent or of another version in the running environment.

        Args:
            installed: Returns a package's version, None if absent; for another environment.
        """
        look = installed or installed_version
        return tuple(pin for pin in (*self.pins, *self.no_deps) if look(pin.name) != pin.version)


def installed_version(name: str) -> str | None:
    """Version of an installed package without its build label ("+cu130"); None if absent."""
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return None


def standing_pins(roots: Iterable[Pin]) -> tuple[Pin, ...]:
    """The installed versions of packages and of all their dependencies.

    Dependencies for other platforms count, too, if they happen to be installed: it does no harm to
    keep the version of one more package.
    """
    found: dict[str, Pin] = {}
    waiting = [pin.name for pin in roots]
    while waiting:
        name = waiting.pop()
        key = package_key(name)
        version = installed_version(name)
        if key in found or version is None:
            continue
        found[key] = Pin(key, version)
        waiting += wanted_by(name)
    return tuple(found[key] for key in sorted(found))


def package_key(name: str) -> str:
    """A package's name in the one spelling that indexes compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted_by(name: str) -> Iterator[str]:
    """Names of what an installed package needs on some system, as it spells them."""
    for wish in metadata.requires(name) or ():
        match = _NAME.match(wish)
        if match and "extra ==" not in wish:
            yield match[0]


def read_parts(path: Path) -> dict[str, Part]:
    """Read a requirements file that `# part: name` comments divide into parts.

    Raises:
        SetupFailed: The file is missing, or a line isn't `name==version`; names file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SetupFailed(f"{path} can't be read ({error}). Clone the repository again.") from error
    parts: list[Part] = []
    for number, line in enumerate(lines, start=1):
        try:
            _read_line(line.strip(), parts)
        except ValueError as error:
            raise SetupFailed(f"{path}, line {number}: {error}") from error
    return {part.name: part for part in parts}


def _read_line(line: str, parts: list[Part]) -> None:
    mark = _MARK.fullmatch(line)
    if mark and mark["key"] == "part":
        parts.append(Part(mark["value"].strip()))
    elif mark or (line and not line.startswith("#")):
        if not parts:
            raise ValueError(f"'{line}' stands before the first '# part: name' comment.")
        part = parts[-1]
        if mark:
            parts[-1] = _with_mark(part, mark["key"], mark["value"].strip())
        else:
            parts[-1] = replace(part, pins=(*part.pins, _pin(line)))


def _with_mark(part: Part, key: str, value: str) -> Part:
    if key == "no-deps":
        return replace(part, no_deps=(*part.no_deps, _pin(value)))
    number, _, unit = value.partition(" ")
    if not number.isdecimal() or unit != "MB":
        raise ValueError(f"write '{key}: 600 MB' instead of '{key}: {value}'.")
    size_bytes = int(number) * MEGABYTE
    if key == "download":
        return replace(part, download_bytes=size_bytes)
    return replace(part, disk_bytes=size_bytes)


def _pin(text: str) -> Pin:
    match = _PIN.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not written as name==version.")
    return Pin(match["name"], match["version"])
