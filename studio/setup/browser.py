"""Finds or installs a browser for the tests of the page."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

VARIABLE = "TABLEREAD_BROWSER"
"""Variable with the path of the browser that the tests use."""

_NAMES = (
    # The same engine without windows, so a third less processor time.
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
)
_MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
_WINDOWS = (
    r"Google\Chrome\Application\chrome.exe",
    r"Microsoft\Edge\Application\msedge.exe",
)
_APT_S = 300.0
_DOWNLOAD_S = 90.0
_ASK_PLAYWRIGHT = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as p: print(p.chromium.executable_path)"
)

Say = Callable[[str], None]


def find_browser(environ: Mapping[str, str]) -> str | None:
    """Path of an installed browser of the Chromium family; None if there is none."""
    for candidate in _candidates(environ):
        if candidate and Path(candidate).is_file():
            return candidate
    return None


def bring_browser(say: Say) -> str | None:
    """Install a browser, which may take minutes.

    Debian's package comes first where it can be installed: unlike playwright's download it brings
    the system libraries that a bare machine lacks.

    Args:
        say: Prints a sentence about the progress.

    Returns:
        Its path; None if it couldn't be installed.
    """
    if install_debian(("chromium-headless-shell", "chromium"), say):
        return find_browser({})
    say("Downloading a browser for the tests.")
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    if succeeds(command, _DOWNLOAD_S, say):
        return _playwright_browser()
    return None


def _candidates(environ: Mapping[str, str]) -> Iterator[str | None]:
    yield environ.get(VARIABLE)
    yield from (shutil.which(name) for name in _NAMES)
    if sys.platform == "darwin":
        yield from _MAC
    for variable in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
        folder = environ.get(variable)
        yield from (str(Path(folder) / name) for name in _WINDOWS if folder)
    yield _playwright_browser()


def _playwright_browser() -> str | None:
    command = [sys.executable, "-c", _ASK_PLAYWRIGHT]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    path = asked.stdout.strip()
    return path if path and Path(path).is_file() else None


def is_debian_root() -> bool:
    """Whether this process may install packages of Debian's."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    try:
        return platform.freedesktop_os_release().get("ID") == "debian"
    except OSError:
        return False


def install_debian(packages: Iterable[str], say: Say) -> bool:
    """Install the first of Debian's packages that can be had; whether there is one."""
    if not is_debian_root() or not succeeds(["apt-get", "update", "-q"], _APT_S, say):
        return False
    for package in packages:
        say(f"Installing Debian's {package} for the tests.")
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
        if succeeds(install, _APT_S, say):
            return True
    return False


def succeeds(command: list[str], limit_s: float, say: Say, *, folder: Path | None = None) -> bool:
    """Run a command without its output, and say why it failed if it did.

    Args:
        command: Programs and arguments.
        limit_s: After so many seconds it is ended.
        say: Prints a sentence.
        folder: Where it runs; None for the current one.
    """
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
            env=environ,
        )
    except subprocess.TimeoutExpired:
        say(f"`{' '.join(command)}` took longer than {limit_s:.0f} s and was given up.")
        return False
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        say(f"`{' '.join(command)}` failed: {' '.join(last)}")
    return done.returncode == 0
