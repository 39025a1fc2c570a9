"""Finds or unpacks nginx for the tests of a studio behind a reverse proxy."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from studio.setup.browser import Say, is_debian_root, succeeds

_SBIN = Path("/usr/sbin/nginx")  # in no user's PATH on Debian
_FOLDER = "nginx"
_LIMIT_S = 120.0


def find_nginx() -> str | None:
    """Path of an installed or unpacked nginx; None if there is none."""
    for candidate in (shutil.which("nginx"), _SBIN, _unpacked(_own_folder())):
        if candidate and Path(candidate).is_file():
            return str(candidate)
    return None


def bring_nginx(say: Say) -> str | None:
    """Unpack Debian's nginx into the environment.

    It isn't installed, because Debian's package would start a web server on this machine.

    Args:
        say: Prints a sentence about the progress.

    Returns:
        Its path; None if there is none for this machine.
    """
    if not is_debian_root():
        return None
    say("Fetching Debian's nginx for the tests.")
    folder = _own_folder()
    folder.mkdir(exist_ok=True)
    for command in (["apt-get", "update", "-q"], ["apt-get", "download", "-q", "nginx"]):
        if not succeeds(command, _LIMIT_S, say, folder=folder):
            return None
    for package in folder.glob("*.deb"):
        if not succeeds(["dpkg-deb", "-x", str(package), str(folder)], _LIMIT_S, say):
            return None
        package.unlink()
    nginx = str(_unpacked(folder))
    return nginx if succeeds([nginx, "-v"], _LIMIT_S, say) else None


def _own_folder() -> Path:
    return Path(sys.prefix) / _FOLDER


def _unpacked(folder: Path) -> Path:
    return folder / "usr" / "sbin" / "nginx"
