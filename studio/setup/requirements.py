"""The parts of a requirements file, and whether they are there."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
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
        """As pip takes it."""
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True)
class Part:
    """A set of packages that is installed in one go.

    Attributes:
        pins: What pip installs with everything that they need.
        no_deps: What pip installs afterwards, alone.
        download_bytes: About how much comes over the network, for the progress; 0 unknown.
        disk_bytes: Free space that the installation wants.
    """

    name: str
    pins: tuple[Pin, ...] = ()
    no_deps: tuple[Pin, ...] = ()
    download_bytes: int = 0
    disk_bytes: int = 0

    def fingerprint(self) -> str:
        """Changes with the packages of this part and with Python's minor version."""
        lines = [f"python {sys.version_info.major}.{sys.version_info.minor}"]
        lines += sorted(str(pin) for pin in self.pins)
        lines += sorted(f"no-deps {pin}" for pin in self.no_deps)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def missing(self, installed: Callable[[str], str | None] | None = None) -> tuple[Pin, ...]:
        """Packages that are absent or of another version in the running environment.

        Args:
            installed: Gives a package's version, None when absent; for other environments.
        """
        look = installed or installed_version
        return tuple(pin for pin in (*self.pins, *self.no_deps) if look(pin.name) != pin.version)


def installed_version(name: str) -> str | None:
    """Version of a package here without its build label ("+cu130"), None when absent."""
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return None


def standing_pins(roots: Iterable[Pin]) -> tuple[Pin, ...]:
    """Exact versions of packages and all that they brought, as they are installed here.

    What a package wants on another platform only is followed too when it happens to be here:
    holding one more package in place is harmless.
    """
    found: dict[str, Pin] = {}
    waiting = [pin.name for pin in roots]
    while waiting:
        name = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        version = installed_version(name)
        if key in found or version is None:
            continue
        found[key] = Pin(key, version)
        waiting += _wanted_by(name)
    return tuple(found[key] for key in sorted(found))


def _wanted_by(name: str) -> Iterator[str]:
    for wish in metadata.requires(name) or ():
        match = _NAME.match(wish)
        if match and "extra ==" not in wish:
            yield match[0]


@dataclass(slots=True)
class _PartDraft:
    name: str
    pins: list[Pin] = field(default_factory=list)
    no_deps: list[Pin] = field(default_factory=list)
    size_bytes: dict[str, int] = field(default_factory=dict)

    def part(self) -> Part:
        return Part(
            self.name,
            tuple(self.pins),
            tuple(self.no_deps),
            self.size_bytes.get("download", 0),
            self.size_bytes.get("disk", 0),
        )


def read_parts(path: Path) -> dict[str, Part]:
    """Read a requirements file that is divided by `# part: name` comments.

    Raises:
        SetupFailed: The file is absent, or a line is no `name==version`; names file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SetupFailed(f"{path} can't be read ({error}). Get the repository anew.") from error
    drafts: list[_PartDraft] = []
    for number, line in enumerate(lines, start=1):
        try:
            _read_line(line.strip(), drafts)
        except ValueError as error:
            raise SetupFailed(f"{path}, line {number}: {error}") from error
    return {draft.name: draft.part() for draft in drafts}


def _read_line(line: str, drafts: list[_PartDraft]) -> None:
    mark = _MARK.fullmatch(line)
    if mark and mark["key"] == "part":
        drafts.append(_PartDraft(mark["value"].strip()))
    elif mark:
        _read_mark(mark["key"], mark["value"].strip(), _last(drafts, line))
    elif line and not line.startswith("#"):
        _last(drafts, line).pins.append(_pin(line))


def _read_mark(key: str, value: str, draft: _PartDraft) -> None:
    if key == "no-deps":
        draft.no_deps.append(_pin(value))
        return
    number, _, unit = value.partition(" ")
    if not number.isdecimal() or unit != "MB":
        raise ValueError(f"write '{key}: 600 MB' instead of '{key}: {value}'.")
    draft.size_bytes[key] = int(number) * MEGABYTE


def _last(drafts: list[_PartDraft], line: str) -> _PartDraft:
    if not drafts:
        raise ValueError(f"'{line}' stands before the first '# part: name' comment.")
    return drafts[-1]


def _pin(text: str) -> Pin:
    match = _PIN.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not written as name==version.")
    return Pin(match["name"], match["version"])
