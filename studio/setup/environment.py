"""Chooses the Python environment that the studio runs in, and creates it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from studio.errors import SetupFailed

SUPPORTED_MINORS = range(11, 15)

_HALF_MADE = "INSTALLER"
"""The file of a package's record that pip writes last but one: without it the package is broken."""


def uses_running(
    repo: Path, prefix: Path, environ: Mapping[str, str], *, complete: Callable[[], bool]
) -> bool:
    """Whether to use the running environment rather than the `.venv` next to launch.py.

    Args:
        repo: Folder of launch.py.
        prefix: `sys.prefix`.
        environ: The process environment.
        complete: Returns whether the running environment has all of the studio's packages.
    """
    return is_own(repo, prefix) or bool(environ.get("SPACE_ID")) or complete()


def is_own(repo: Path, prefix: Path) -> bool:
    """Whether `prefix` is the environment that the launcher created."""
    return prefix.resolve() == (repo / ".venv").resolve()


def python_of(root: Path) -> Path:
    """The interpreter inside an environment."""
    return root / "Scripts" / "python.exe" if os.name == "nt" else root / "bin" / "python"


def ensure_venv(root: Path) -> bool:
    """Create the environment, or repair an incomplete one.

    Returns:
        Whether there was anything to do.

    Raises:
        SetupFailed: It can't be created; names the remedy.
    """
    if _is_whole(root):
        return False
    clear = ["--clear"] if root.exists() and not _has_python(root) else []
    command = [sys.executable, "-m", "venv", *clear, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupFailed(_venv_problem(root, (done.stdout + done.stderr).strip()))
    return True


def forget_half_installed(site: Path) -> list[str]:
    """Delete the records of packages whose installation was interrupted; pip installs them again.

    Args:
        site: The environment's site-packages folder.

    Returns:
        Names of the deleted records.
    """
    broken = [record for record in site.glob("*.dist-info") if not (record / _HALF_MADE).is_file()]
    for record in broken:
        shutil.rmtree(record)
    return [record.name for record in broken]


def _is_whole(root: Path) -> bool:
    pips = ("lib/python*/site-packages", "Lib/site-packages")
    return _has_python(root) and any(
        any(root.glob(f"{place}/pip-*.dist-info/{_HALF_MADE}")) for place in pips
    )


def _has_python(root: Path) -> bool:
    """Whether the environment has a supported interpreter, not a link to one that was removed."""
    try:
        configuration = (root / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return False
    minor = re.search(r"^version(?:_info)?\s*=\s*3\.(\d+)", configuration, re.MULTILINE)
    return python_of(root).exists() and minor is not None and int(minor[1]) in SUPPORTED_MINORS


def _venv_problem(root: Path, output: str) -> str:
    if "ensurepip" in output:
        remedy = "On Debian and Ubuntu install the package python3-venv, then start again."
    else:
        remedy = "Check that its folder can be written and that the disk has space."
    last = output.splitlines()[-1] if output else "no output"
    return f"The environment {root} can't be made ({last}). {remedy}"
