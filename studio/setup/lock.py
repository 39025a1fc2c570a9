"""The locked packages of a part: every one with the hashes of the files that may be installed."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from studio.errors import SetupFailed
from studio.setup.requirements import Part, Pin, installed_version, package_key, wanted_by

_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)
_LOCKED_ONLY = ("--require-hashes", "--no-deps")

PIP_PIN = Pin("pip", "26.3")


def locks_of(repo: Path) -> Path:
    """The folder of the locks for the running Python."""
    return repo / "locks" / f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Lock:
    """The files of one part; `locks/refresh.py` writes them, and says what each one is for."""

    folder: Path
    part: Part

    def digest(self) -> str:
        """A digest of the files' content."""
        return hashlib.sha256("\0".join(self._texts()).encode()).hexdigest()

    def installs(self, *, whole: bool) -> Iterator[tuple[str, ...]]:
        """The arguments of each run of `pip install`, in their order.

        pip resolves nothing: a lock holds all that its packages need. A package without a wheel
        comes last and is built with what is installed, because pip checks no hash of what it would
        fetch to build it.

        Args:
            whole: Install dependencies even if every package of the requirements is there. False
                for an environment that somebody else resolved.
        """
        if whole or any(installed_version(pin.name) != pin.version for pin in self.part.pins):
            yield *_LOCKED_ONLY, "--only-binary", ":all:", *_from(self._together())
        if self._file("alone").is_file():
            yield *_LOCKED_ONLY, "--no-build-isolation", *_from([self._file("alone")])

    def pip_upgrade(self) -> tuple[str, ...]:
        """The arguments that bring the pip of `PIP_PIN`."""
        return *_LOCKED_ONLY, "--upgrade", "--requirement", str(self.folder.parent / "pip.txt")

    def check(self) -> None:
        """Compare with the requirements.

        Raises:
            SetupFailed: A file is missing, or a package is not locked at its version.
        """
        pairs = [pair for text in self._texts() for pair in _LOCKED.findall(text)]
        locked = {package_key(name): version for name, version in pairs}
        for pin in (*self.part.pins, *self.part.no_deps):
            if locked.get(package_key(pin.name)) != pin.version:
                raise SetupFailed(
                    f"The requirements name {pin}, and {self._file()} doesn't: write the locks "
                    "again with `python locks/refresh.py`, or clone the repository again."
                )

    def _together(self) -> list[Path]:
        if not self._file("torch").is_file() or self._has_other_torch():
            return [self._file()]
        return [self._file("torch"), self._file()]

    def _has_other_torch(self) -> bool:
        """Whether the wanted torch is there in a build that needs none of the locked CUDA."""
        wanted = {pin.name: pin.version for pin in self.part.pins}
        if installed_version("torch") != wanted.get("torch"):
            return False
        text = self._file("torch").read_text(encoding="utf-8")
        cuda = {package_key(name) for name, _ in _LOCKED.findall(text)}
        return not cuda.intersection(map(package_key, wanted_by("torch")))

    def _file(self, kind: str = "") -> Path:
        return self.folder / f"{'-'.join(filter(None, (self.part.name, kind)))}.txt"

    def _texts(self) -> list[str]:
        files = (self._file(), self._file("torch"), self._file("alone"))
        return [file.read_text(encoding="utf-8") for file in files if file.is_file()]


def _from(files: Iterable[Path]) -> list[str]:
    return [argument for file in files for argument in ("--requirement", str(file))]
