"""What `launch.py test` runs, with and without --fast."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from tiny_index import REPO

from studio.setup import launcher
from studio.setup.installer import Installer
from studio.setup.launcher import Console, Launcher


@pytest.fixture
def runs(monkeypatch):
    """Commands that would have been run; every part counts as installed."""
    commands = []
    monkeypatch.setattr(Installer, "is_ready", lambda _: True)
    monkeypatch.setattr(launcher, "uses_running", lambda *_, **__: True)
    monkeypatch.setattr(launcher, "run_out", lambda command, **_: commands.append(command[1:]) or 0)
    return commands


def _run(*argv: str) -> int:
    return Launcher(REPO, Console(io.StringIO()), lambda *_: 1).run(argv)


def test_fast_needs_no_browser_and_no_models(runs, monkeypatch):
    monkeypatch.setattr(launcher, "find_browser", lambda _: pytest.fail("it looked for one"))
    monkeypatch.setattr(launcher, "find_nginx", lambda: pytest.fail("it looked for one"))
    monkeypatch.setattr(launcher, "install_debian", lambda *_: pytest.fail("it installed one"))
    assert _run("test", "--fast", "tests/dialog") == 0
    marks = "not browser and not models and not slow and not campaign and not cost"
    suite = ["-m", "pytest", "-n", "2", "--dist", "loadfile", "-m", marks]
    assert runs == [[*suite, "tests/dialog"]]


def test_without_it_the_whole_suite_runs_or_what_is_named(runs, monkeypatch):
    monkeypatch.setattr(launcher, "find_browser", lambda _: "/usr/bin/chromium")
    monkeypatch.setattr(launcher, "find_nginx", lambda: "/usr/sbin/nginx")
    installed = []
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(launcher, "install_debian", lambda names, _: installed.append(names))
    assert _run("test") == 0
    assert _run("test", "tests/dialog", "-k", "chat") == 0
    assert installed == [["strace"], ["strace"]]
    whole = ["-m", "pytest", "-n", "2", "--dist", "loadfile"]
    assert runs == [whole, ["-m", "pytest", "tests/dialog", "-k", "chat"]]


@pytest.mark.slow
def test_the_marks_that_fast_leaves_out_exist():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--markers", "-p", "no:cacheprovider"],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    for mark in ("browser", "models", "slow", "cost", "campaign"):
        assert f"@pytest.mark.{mark}:" in done.stdout


def test_what_is_left_to_the_night_is_there() -> None:
    lines = (REPO / "tests/nightly.txt").read_text("utf-8").splitlines()
    for node in (line for line in lines if line and not line.startswith("#")):
        path, *_, name = node.partition("[")[0].split("::")
        assert f"def {name}(" in (REPO / path).read_text("utf-8"), node
