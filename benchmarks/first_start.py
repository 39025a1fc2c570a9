"""From nothing to the first sound, beside a bare installation of the same packages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from studio.setup.environment import python_of
from studio.setup.requirements import read_parts

LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv", ".tableread", "workspace", "__pycache__", ".*_cache", ".hypothesis"
)
"""What a working copy has that a fresh clone hasn't."""


@dataclass(frozen=True, slots=True)
class SetupTimes:
    """Seconds of a bare `python -m venv` and `pip install`, and of ours to the first sound."""

    bare_s: float
    first_sound_s: float


def measure_setup(repo: Path) -> SetupTimes:
    """Install into empty folders: bare, and by rendering the short sample dialog.

    A first, uncounted installation fills pip's download cache, so that neither of the counted two
    finds it emptier than the other.
    """
    with tempfile.TemporaryDirectory(prefix="tableread-setup-") as folder:
        copy = Path(folder) / "clone"
        shutil.copytree(repo, copy, ignore=LEFT_BEHIND)
        _bare_install(copy, Path(folder) / "warm-up")
        bare_s = _bare_install(copy, Path(folder) / "bare")
        first_sound_s = _first_sound(copy, Path(folder) / "scene.wav")
    return SetupTimes(bare_s, first_sound_s)


def setup_rows(repo: Path) -> list[dict[str, object]]:
    """The table's row."""
    times = measure_setup(repo)
    return [
        {
            "bare install s": f"{times.bare_s:.1f}",
            "first command to first sound s": f"{times.first_sound_s:.1f}",
            "difference s": f"{times.first_sound_s - times.bare_s:+.1f}",
        }
    ]


def _bare_install(copy: Path, root: Path) -> float:
    pins = [str(pin) for pin in read_parts(copy / "requirements.txt")["studio"].pins]
    began_s = time.perf_counter()
    _run([base_python(), "-m", "venv", str(root)], copy)
    _run([str(python_of(root)), "-m", "pip", "install", "--quiet", *pins], copy)
    return time.perf_counter() - began_s


def _first_sound(copy: Path, out: Path) -> float:
    script = copy / "assets" / "dialogs" / "lighthouse.txt"
    command = [base_python(), "launch.py", "render", str(script), "-o", str(out)]
    began_s = time.perf_counter()
    printed = _run([*command, "--backend", "draft", "--json"], copy)
    whole_s = time.perf_counter() - began_s
    report = json.loads(printed.splitlines()[-1])
    return whole_s - float(report["wall_s"]) + float(report["first_audio_s"])


def base_python() -> str:
    """The Python that environments are made from, which has none of our packages."""
    return str(Path(sys.base_prefix) / ("python.exe" if os.name == "nt" else "bin/python3"))


def _run(command: Sequence[str], folder: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=True
    )
    return done.stdout
