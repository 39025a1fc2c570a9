from __future__ import annotations

import os
from pathlib import Path
from shutil import which

import pytest

from studio.setup import browser
from studio.setup.browser import VARIABLE, find_browser


@pytest.fixture
def path_with(tmp_path, monkeypatch):
    """Makes programs and puts only their folder on PATH."""

    def make(*names: str) -> str:
        for name in names:
            program = tmp_path / name
            program.write_text("#!/bin/sh\nexit 1\n")
            program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return str(tmp_path)

    return make


@pytest.mark.skipif(os.name != "posix", reason="programs carry other names on Windows")
@pytest.mark.parametrize(
    ("installed", "found"),
    [
        (("google-chrome", "chromium"), "chromium"),
        (("chromium", "chromium-headless-shell"), "chromium-headless-shell"),
    ],
)
def test_a_system_browser_is_found_chromium_first(path_with, installed, found):
    folder = path_with(*installed)
    assert find_browser({}) == f"{folder}/{found}"


def test_who_names_a_browser_gets_it(path_with, tmp_path):
    path_with("chromium")
    mine = tmp_path / "mine"
    mine.write_text("")
    assert find_browser({VARIABLE: str(mine)}) == str(mine)


@pytest.mark.skipif(os.name != "posix", reason="programs carry other names on Windows")
def test_a_named_browser_that_is_absent_gives_way(path_with):
    folder = path_with("chrome")
    assert find_browser({VARIABLE: "/nowhere/chrome"}) == f"{folder}/chrome"


@pytest.mark.skipif(os.name != "posix", reason="the failing program is a shell script")
def test_a_browser_that_cannot_be_brought_is_told_and_none(path_with, monkeypatch):
    folder = path_with("python")
    monkeypatch.setattr(browser.sys, "executable", f"{folder}/python")
    monkeypatch.setattr(browser.platform, "freedesktop_os_release", lambda: {"ID": "other"})
    said = []
    assert browser.bring_browser(said.append) is None
    assert said[0] == "Downloading a browser for the tests."
    assert "failed" in said[1]


@pytest.mark.skipif(os.name != "posix", reason="the package manager is a shell script")
@pytest.mark.parametrize("package", ["chromium-headless-shell", "chromium"])
def test_debian_brings_the_shell_or_else_the_whole_browser(
    tmp_path, monkeypatch, path_with, package
):
    install = which("install")
    apt = Path(path_with("apt-get"), "apt-get")
    apt.write_text(
        f"""#!/bin/sh
        [ "$1" = update ] && exit 0
        for wanted; do :; done
        [ "$wanted" = {package} ] && {install} -m 755 /dev/null "{tmp_path}/$wanted"
        """
    )
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    monkeypatch.setattr(browser.platform, "freedesktop_os_release", lambda: {"ID": "debian"})
    assert browser.bring_browser(lambda _: None) == str(tmp_path / package)
