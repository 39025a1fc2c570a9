"""A folder of tiny packages, and a repository small enough to be set up in seconds."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from studio.setup.lock import locks_of

REPO = Path(__file__).resolve().parents[2]

# Stands for the studio: tells what it was given, and how the second part ended.
_APP = """
import importlib, json, sys

def main(argv, setup):
    if "--wait" in argv:
        setup.wait()
    imported = [importlib.import_module(name).VERSION for name in argv if name.startswith("tiny_")]
    print(json.dumps({"argv": argv, "prefix": sys.prefix, "imported": imported,
                      "setup": setup.snapshot()}))
    return 7 if "--seven" in argv else 0
"""

_PARSERS = {
    "benchmarks/bench_options.py": "add_bench_options = None",
    "studio/cli/arguments.py": """
import argparse

def check_script(arguments):
    pass

def build_parser(*_):
    parser = argparse.ArgumentParser()
    parser.parse_args = lambda argv: None
    return parser
""",
}
"""In place of the command line's own, which would refuse the arguments of these tests."""

# Builds a package by hand, after it said that it began and was told to go on.
_SLOW_BACKEND = """
import pathlib, time, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = pathlib.Path({folder!r})
    (folder / "began").touch()
    end = time.monotonic() + 30
    while not (folder / "go").exists() and time.monotonic() < end:
        time.sleep(0.02)
    name = "{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
        for path, text in {files!r}.items():
            wheel.writestr(path, text)
    return name
"""


def _wheel_files(name: str, version: str, requires: tuple[str, ...]) -> dict[str, str]:
    info = f"{name}-{version}.dist-info"
    wishes = "".join(f"Requires-Dist: {wish}\n" for wish in requires)
    return {
        f"{name}/__init__.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wishes}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }


@dataclass(frozen=True)
class TinyRepo:
    """A copy of the launcher with an index of its own."""

    root: Path
    index: Path

    @classmethod
    def make(cls, folder: Path) -> TinyRepo:
        root, index = folder / "repo", folder / "index"
        index.mkdir(parents=True)
        (root / "tests").mkdir(parents=True)
        (root / "studio").mkdir()
        shutil.copy(REPO / "launch.py", root)
        for name in ("__init__.py", "errors.py"):
            shutil.copy(REPO / "studio" / name, root / "studio")
        shutil.copytree(
            REPO / "studio" / "setup",
            root / "studio" / "setup",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        (root / "studio" / "app.py").write_text(_APP)
        for stub, text in _PARSERS.items():
            (root / stub).parent.mkdir(exist_ok=True)
            (root / stub).write_text(text)
        return cls(root, index)

    def add_wheel(
        self, name: str, version: str = "1.0", *, requires: tuple[str, ...] = (), main: str = ""
    ) -> None:
        """Add a package; `main` is what `python -m` runs of it."""
        path = self.index / f"{name}-{version}-py3-none-any.whl"
        files = {**_wheel_files(name, version, requires), f"{name}/__main__.py": main}
        with zipfile.ZipFile(path, "w") as wheel:
            for inner, text in files.items():
                wheel.writestr(inner, text)

    def add_slow(self, name: str) -> Path:
        """A package whose building waits; returns the folder of its `began` and `go` files."""
        signals = self.index.parent / f"{name}-signals"
        signals.mkdir()
        backend = _SLOW_BACKEND.format(
            folder=str(signals), name=name, files=_wheel_files(name, "1.0", ())
        )
        project = '[build-system]\nrequires = []\nbuild-backend = "slow"\nbackend-path = ["."]\n'
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        with tarfile.open(self.index / f"{name}-1.0.tar.gz", "w:gz") as archive:
            for inner, text in (
                ("slow.py", backend),
                ("pyproject.toml", project),
                ("PKG-INFO", about),
            ):
                entry = tarfile.TarInfo(f"{name}-1.0/{inner}")
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        return signals

    def require(self, studio: str, models: str = "", tests: str = "") -> None:
        """Write the requirements and their locks; the arguments hold lines."""
        text = f"# part: studio\n{studio}\n# part: models\n{models}\n"
        (self.root / "requirements.txt").write_text(text)
        (self.root / "tests" / "requirements.txt").write_text(f"# part: tests\n{tests}\n")
        shutil.rmtree(self.locks, ignore_errors=True)
        self.locks.mkdir(parents=True)
        before = self._lock("studio", studio, set())
        self._lock("models", models, before)
        self._lock("tests", tests, before)

    @property
    def locks(self) -> Path:
        return locks_of(self.root)

    def _lock(self, part: str, lines: str, before: set[str]) -> set[str]:
        """Write the locks of a part as `locks/refresh.py` would; returns its packages."""
        alone = set(re.findall(r"^# no-deps: (\S+)", lines, re.MULTILINE))
        waiting = re.findall(r"^[\w-]+==\S+", lines, re.MULTILINE)
        together: set[str] = set()
        while waiting:
            pin = waiting.pop()
            if pin in before | together:
                continue
            (together if self._file(pin).suffix == ".whl" else alone).add(pin)
            waiting += self._wanted_by(pin)
        for name, pins in ((part, together), (f"{part}-alone", alone)):
            if pins or name == part:
                entries = (f"{pin} --hash=sha256:{self._hash(pin)}\n" for pin in sorted(pins))
                (self.locks / f"{name}.txt").write_text("".join(entries))
        return together | alone

    def _file(self, pin: str) -> Path:
        """A package's file; the name of a wheel if there is none."""
        stem = pin.replace("==", "-")
        source = self.index / f"{stem}.tar.gz"
        return source if source.is_file() else self.index / f"{stem}-py3-none-any.whl"

    def _hash(self, pin: str) -> str:
        file = self._file(pin)
        return hashlib.sha256(file.read_bytes() if file.is_file() else b"absent").hexdigest()

    def _wanted_by(self, pin: str) -> list[str]:
        """The pins of a wheel's wishes, each at the lowest version that will do."""
        file = self._file(pin)
        if file.suffix != ".whl" or not file.is_file():
            return []
        with zipfile.ZipFile(file) as wheel:
            metadata = wheel.read(f"{pin.replace('==', '-')}.dist-info/METADATA").decode()
        wishes = re.findall(r"^Requires-Dist: (\w+)(?:>=(\d+))?", metadata, re.MULTILINE)
        return [self._lowest(name, int(least or 1)) for name, least in wishes]

    def _lowest(self, name: str, least: int) -> str:
        files = (file.name.split("-") for file in self.index.glob(f"{name}-*.whl"))
        versions = sorted(version for _, version, *_ in files)
        return next(f"{name}=={version}" for version in versions if float(version) >= least)

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def site(self) -> Path:
        (found,) = self.venv.glob("lib/python*/site-packages")
        return found

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(self.root / "launch.py"), *arguments]

    def environ(self, **more: str) -> dict[str, str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PIP_", "TABLEREAD_", "TTS_", "SPACE_ID"))
        }
        return {
            **kept,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.index),
            **more,
        }

    def launch(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run the launcher to its end, from another folder than its own."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.index,
            env=self.environ(**more),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
