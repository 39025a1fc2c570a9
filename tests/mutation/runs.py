"""Runs of pytest in forked children: which tests reach which lines, and what a mutant changes.

A child is forked from a process that has imported the libraries but nothing of the studio, and
imports that from a copy of the repository: the imports are most of what a run would cost.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

LIBRARIES = (
    *("av", "cachetools", "charset_normalizer", "coverage", "fastapi", "filelock", "gradio"),
    *("httpx", "huggingface_hub", "hypothesis", "hypothesis.extra.numpy", "numpy", "openai"),
    *("prometheus_client", "psutil", "pydantic_settings", "pytest_asyncio.plugin"),
    *("pytest_timeout", "regex", "sentencex", "soundfile", "soxr", "tenacity", "uvicorn"),
)
ANY = "not gpu and not campaign and not cost"
QUICK = f"not browser and not models and {ANY}"
_ARGUMENTS = ("-q", "-pno:cacheprovider", "-pno:xdist", "--no-header", "--timeout=120")
SURVIVED, KILLED, TIMED_OUT = "survived", "killed", "timed out"
NO_TESTS = int(pytest.ExitCode.NO_TESTS_COLLECTED)


def preload() -> None:
    """Import what every child would import again, and hide this folder from the tests."""
    here = str(Path(__file__).parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            import_module(name)


def copy_repository(root: Path, target: Path) -> None:
    """Copy what tests read; bytecode that stands there may be of another source."""
    left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(root, target, ignore=left_out, dirs_exist_ok=True)


@dataclass(eq=False)
class Report:
    """Pytest's plugin in a child: chooses tests, notes what they took and which one failed."""

    chosen: Sequence[str] | None = None
    on_test: Callable[[str], object] = lambda _: None
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.chosen is None:
            return
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in self.chosen if name in by_name]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.on_test(item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)


def run_tests(
    folder: Path,
    arguments: Sequence[str],
    report: Report,
    *,
    cpu_s: int,
    wall_s: float,
    marks: str = QUICK,
) -> tuple[int | None, dict]:
    """Run pytest in a child, in a copy of the repository.

    Args:
        folder: The copy.
        arguments: Options and test modules, relative to the copy.
        report: The plugin; what it noted is in the answer.
        cpu_s: Processor time that a process of it may use.
        wall_s: How long it may take at all, for what waits for ever and uses none.
        marks: Which marked tests run.

    Returns:
        Pytest's exit status, None when a limit ended it; what it noted.
    """
    notes = folder / "notes.json"
    notes.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            status = _be_child(folder, ["-m", marks, *arguments], report, cpu_s)
        finally:
            notes.write_text(json.dumps([report.seconds, report.failed]), "utf-8")
            os._exit(status)
    status = _wait(pid, wall_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # servers that it started
    seconds, failed = json.loads(notes.read_text("utf-8")) if notes.exists() else ({}, [])
    return status, {"seconds": seconds, "failed": failed}


def _be_child(folder: Path, arguments: Sequence[str], report: Report, cpu_s: int) -> int:
    os.setsid()
    sys.modules["__main__"] = ModuleType("__main__")  # or a forked server would import this one
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    temporary = folder / "temporary"
    shutil.rmtree(temporary, ignore_errors=True)
    return int(pytest.main([*_ARGUMENTS, f"--basetemp={temporary}", *arguments], plugins=[report]))


def _wait(pid: int, wall_s: float) -> int | None:
    until_s = time.monotonic() + wall_s
    while time.monotonic() < until_s:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


@contextlib.contextmanager
def changed(path: Path, code: str) -> Iterator[None]:
    """A file with other content, until the block ends; no bytecode of either stays."""
    before = path.read_text("utf-8")
    try:
        _write(path, code)
        yield
    finally:
        _write(path, before)


def _write(path: Path, code: str) -> None:
    path.write_text(code, "utf-8")
    for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        cached.unlink()
