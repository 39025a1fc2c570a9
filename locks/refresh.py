"""Writes the locks: `python locks/refresh.py`, after a change of a requirements file; needs uv.

A folder for each Python, a file for each part: every package that the part installs, at one
version, with the hashes of its wheels. All parts are resolved together, so that a package which
two of them install has one version. Without a change it moves nothing; `--upgrade` takes the
newest versions that the requirements allow.

- `PART.txt`: wheels only, so that nothing is built with tools that no hash covers.
- `PART-torch.txt`: torch and what it alone needs for CUDA; not installed where a torch of that
  version from elsewhere is there.
- `PART-alone.txt`: what names other versions than are installed, and what has no wheel, which is
  built with what is installed.
- `audit.txt`, `build.txt`: what audits the locks and what builds the package; both stand apart
  from the studio.
- `../pip.txt`: the pip that shows its progress.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from studio.setup.environment import SUPPORTED_MINORS  # noqa: E402
from studio.setup.lock import PIP_PIN  # noqa: E402
from studio.setup.requirements import Part, Pin, read_parts  # noqa: E402

_LOCKS = ROOT / "locks"
_UV = (sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--no-annotate")
_APART = frozenset({"audit"})
"""Parts that are installed without the studio."""
_BUILD_TOOLS = ("hatchling",)
_FOR_CUDA = re.compile(r"torch|triton|nvidia-.+|cuda-.+")
_SYSTEMS = (
    ("linux", "Linux", "x86_64"),
    ("linux", "Linux", "aarch64"),
    ("darwin", "Darwin", "arm64"),
    ("win32", "Windows", "AMD64"),
)
"""Where every part can be installed: `sys_platform`, `platform_system`, `platform_machine`."""
_NOWHERE = "nowhere"
_NOT_HERE = re.compile(r"emscripten|pyodide|wasm|android|ios")


def main(argv: list[str]) -> int:
    """Resolve for every Python that the launcher takes, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions allowed")
    upgrade = parser.parse_args(argv).upgrade
    parts = [*read_parts(ROOT / "requirements.txt").values()]
    parts += read_parts(ROOT / "tests" / "requirements.txt").values()
    for minor in SUPPORTED_MINORS:
        _write_python(minor, parts, upgrade=upgrade)
    _write(_LOCKS / "pip.txt", "every Python", _Resolver(min(SUPPORTED_MINORS)).packages([PIP_PIN]))
    return 0


def _write_python(minor: int, parts: list[Part], *, upgrade: bool) -> None:
    folder = _LOCKS / f"3.{minor}"
    folder.mkdir(exist_ok=True)
    resolver = _Resolver(minor)
    held = [] if upgrade else [pin for file in folder.glob("*.txt") for pin in _pins_of(file)]
    versions = resolver.versions([pin for part in parts for pin in part.pins], held)
    files: dict[str, list[_Package]] = {}
    for part in parts:
        if part.name in _APART:
            files[part.name] = resolver.packages(part.pins, versions)
            continue
        closure = resolver.packages((*parts[0].pins, *part.pins), versions)
        # The studio's packages are there before those of any other part.
        before = files.get("studio", [])
        rest = [package for package in closure if package not in before]
        alone = [one for pin in part.no_deps for one in resolver.packages([pin], no_deps=True)]
        files |= _split(part, rest, alone)
    tools = [pin for part in parts for pin in part.pins if pin.name in _BUILD_TOOLS]
    files["build"] = resolver.packages(tools, versions)
    for file in folder.glob("*.txt"):
        file.unlink()
    for name, packages in files.items():
        _write(folder / f"{name}.txt", f"Python 3.{minor}", packages)


@dataclass(frozen=True, slots=True)
class _Package:
    """A resolved package, with the hashes of the files that a Python can install."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    is_source: bool

    @classmethod
    def of(cls, entry: Mapping[str, Any], minor: int) -> _Package:
        """Read an entry of a `pylock.toml`; its source is taken only if there is no wheel."""
        wheels = [one for one in entry.get("wheels", ()) if _fits(_file_of(one), minor)]
        files = wheels or [entry["sdist"]]
        hashes = tuple(sorted({one["hashes"]["sha256"] for one in files}))
        marker = _system_marker(entry.get("marker"), minor)
        name = canonicalize_name(entry["name"])
        return cls(name, entry["version"], marker, hashes, not wheels)

    def __str__(self) -> str:
        """The requirement as pip reads it from a file."""
        marker = f" ; {self.marker}" if self.marker else ""
        pins = [f"{self.name}=={self.version}{marker}"]
        return " \\\n    ".join(pins + [f"--hash=sha256:{one}" for one in self.hashes]) + "\n"


def _system_marker(marker: str | None, minor: int) -> str:
    """Uv's marker in short: where the package is wanted; empty if that is everywhere.

    A system that is not in `_SYSTEMS` gets what is wanted everywhere.
    """
    python = {"python_version": f"3.{minor}", "python_full_version": f"3.{minor}.9"}
    names = ("sys_platform", "platform_system", "platform_machine")
    wanted = [
        system
        for system in _SYSTEMS
        if not marker
        or Marker(marker).evaluate({**python, **dict(zip(names, system, strict=True))})
    ]
    if len(wanted) == len(_SYSTEMS):
        return ""
    if not wanted:
        return _NOWHERE
    platforms = dict.fromkeys(system[0] for system in wanted)
    return " or ".join(_platform_marker(platform, wanted) for platform in platforms)


def _platform_marker(platform: str, wanted: list[tuple[str, str, str]]) -> str:
    of_platform = [system for system in _SYSTEMS if system[0] == platform]
    kept = [system for system in of_platform if system in wanted]
    if kept == of_platform:
        return f"sys_platform == '{platform}'"
    (only,) = kept
    return f"(sys_platform == '{platform}' and platform_machine == '{only[2]}')"


def _file_of(file: Mapping[str, Any]) -> str:
    return str(file.get("name") or file["url"].rsplit("/", 1)[-1])


def _fits(file: str, minor: int) -> bool:
    *_, tags = parse_wheel_filename(file)
    return any(
        not _NOT_HERE.search(tag.platform) and _takes(minor, tag.interpreter, tag.abi)
        for tag in tags
    )


def _takes(minor: int, interpreter: str, abi: str) -> bool:
    if interpreter == "py3":
        return True
    found = re.fullmatch(r"(?:cp|py)3(\d+)", interpreter)
    if found is None:
        return False
    built = int(found[1])
    if abi in {"abi3", "none"}:
        return built <= minor
    return built == minor and abi == f"cp3{built}"


def _split(
    part: Part, packages: Iterable[_Package], alone: list[_Package]
) -> dict[str, list[_Package]]:
    """The files of a part: all together, for CUDA, and one by one."""
    has_torch = any(pin.name == "torch" for pin in part.pins)
    together, torch, single = [], [], list(alone)
    for package in packages:
        is_cuda = has_torch and _FOR_CUDA.fullmatch(package.name)
        (single if package.is_source else torch if is_cuda else together).append(package)
    files = {part.name: together, f"{part.name}-torch": torch, f"{part.name}-alone": single}
    return {name: held for name, held in files.items() if held}


class _Resolver:
    """Asks uv, for one Python and the systems of `_SYSTEMS`."""

    def __init__(self, minor: int) -> None:
        self._minor = minor

    def versions(self, pins: Iterable[Pin], held: Iterable[str]) -> list[str]:
        """All packages that some pins need, as constraints; `held` ones move only if they must."""
        out = self._run(pins, "versions.txt", before="\n".join(held))
        return [line for line in out.splitlines() if line and not line.startswith("#")]

    def packages(
        self, pins: Iterable[Pin], constraints: Iterable[str] = (), *, no_deps: bool = False
    ) -> list[_Package]:
        """What some pins need, with the hashes."""
        out = self._run(pins, "pylock.toml", constraints=constraints, no_deps=no_deps)
        made = [_Package.of(one, self._minor) for one in tomllib.loads(out)["packages"]]
        return sorted((one for one in made if one.marker != _NOWHERE), key=lambda one: one.name)

    def _run(
        self,
        pins: Iterable[Pin],
        name: str,
        *,
        constraints: Iterable[str] = (),
        before: str = "",
        no_deps: bool = False,
    ) -> str:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "asked.in").write_text("\n".join(map(str, pins)), encoding="utf-8")
            (folder / "kept.txt").write_text("\n".join(constraints), encoding="utf-8")
            # What stands in the output file is what uv prefers.
            if before:
                (folder / name).write_text(before, encoding="utf-8")
            options = ["--python-version", f"3.{self._minor}", "--output-file", name]
            options += ["--no-deps"] if no_deps else []
            command = [*_UV, *options, "--constraint", "kept.txt", "asked.in"]
            subprocess.run(command, check=True, cwd=folder)
            return (folder / name).read_text("utf-8")


def _pins_of(file: Path) -> list[str]:
    return re.findall(r"^[\w.-]+==[^\s;]+", file.read_text("utf-8"), re.MULTILINE)


def _write(path: Path, python: str, packages: Iterable[_Package]) -> None:
    head = f"# For {python}; written by locks/refresh.py, see CONTRIBUTING.md.\n"
    path.write_text(head + "".join(map(str, packages)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
