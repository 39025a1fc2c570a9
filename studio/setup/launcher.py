"""Sets up the environment that a command needs, then runs the command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from studio.errors import BadInput, SetupFailed
from studio.setup.browser import VARIABLE, bring_browser, find_browser, install_debian
from studio.setup.commands import (
    DEVELOPER_COMMANDS,
    VERSION_TEXT,
    Request,
    asks_help,
    developer_help_text,
    help_text,
    is_fast,
    read_request,
)
from studio.setup.environment import ensure_venv, is_own, python_of, uses_running
from studio.setup.installer import Home, Installer
from studio.setup.lock import locks_of
from studio.setup.models_install import ModelsInstall
from studio.setup.nginx import bring_nginx, find_nginx
from studio.setup.pip import InstallProgress
from studio.setup.requirements import Part, read_parts

_EVERY_S = 5.0


class Console:
    """Prints the progress: each new message, and details a few times a minute."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._lock = threading.Lock()  # guards the fields below and keeps lines whole
        self._message = ""
        self._last = ""
        self._said_s = 0.0
        self._took: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Print a line."""
        with self._lock:
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def show(self, progress: InstallProgress) -> None:
        """Print a step, unless it repeats the last message too soon."""
        now_s = self._clock()
        if progress.message == self._message and now_s - self._said_s < _EVERY_S:
            return
        self._message, self._said_s = progress.message, now_s
        share = f" {progress.fraction:.0%}" if progress.fraction is not None else ""
        detail = f" ({progress.detail})" if progress.detail else ""
        text = f"{progress.message}{share}{detail}"
        if text != self._last:
            self._last = text
            self.say(text)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the seconds of a stage for `summary`."""
        began_s = self._clock()
        try:
            yield
        finally:
            self._took[name] = self._took.get(name, 0.0) + self._clock() - began_s

    def summary(self) -> None:
        """Print how many seconds each stage took, if there was one."""
        if self._took:
            stages = ", ".join(f"{name} {took_s:.1f} s" for name, took_s in self._took.items())
            self.say(f"Set up: {stages}.")


RunStudio = Callable[[list[str], ModelsInstall], int]
CheckArguments = Callable[[list[str]], None]

EXIT_BAD_INPUT = 2
EXIT_SETUP_FAILED = 3
EXIT_INTERRUPTED = 130

_MADE_VENV_S = "TABLEREAD_MADE_VENV_S"
"""Variable for the next process: how long creating its environment took, for the summary."""

# By file, so that the fixtures of a module are built once, in one worker.
WHOLE_SUITE = ("-n", "2", "--dist", "loadfile")
_NIGHTLY = "not campaign and not cost"
FAST_SUITE = (*WHOLE_SUITE, "-m", f"not browser and not models and not slow and {_NIGHTLY}")

LINT = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("lint-imports",),
    ("oxlint", "--deny-warnings", "assets"),
)
PAGE_TYPES = ("--yes", "--package=typescript@7.0.2", "tsc", "--project", "jsconfig.json")
"""Arguments of npx; it keeps what it has fetched."""


class Launcher:
    """One start of `launch.py`."""

    def __init__(
        self,
        repo: Path,
        console: Console,
        run_studio: RunStudio,
        check: CheckArguments = lambda arguments: None,
    ) -> None:
        """Prepare.

        Args:
            repo: The repository's folder.
            console: Prints all messages.
            run_studio: Runs a command of the studio; called once its packages are installed.
            check: Checks a command line of the studio before anything is installed: answers
                `--help`, and raises `BadInput` or `SystemExit` for what can't be used.
        """
        self._check = check
        self._repo = repo
        self._run_studio = run_studio
        self._console = console
        self._home = Home(
            root=Path(sys.prefix),
            state=repo / ".tableread" / "setup",
            owned=is_own(repo, Path(sys.prefix)),
            locks=locks_of(repo),
        )

    @classmethod
    def of_script(
        cls, script: Path, run_studio: RunStudio, check: CheckArguments = lambda arguments: None
    ) -> Launcher:
        """The launcher of the repository that holds `script`."""
        return cls(script.resolve().parent, Console(sys.stderr), run_studio, check)

    def run(self, argv: Sequence[str]) -> int:
        """Set up and run a command.

        Returns:
            The command's exit status; 2 for a command line that can't be used, 3 when the
            environment can't be created.
        """
        try:
            request = read_request(argv, os.environ)
            if request.command == "help":
                sys.stdout.write(help_text() + "\n")
                return 0
            if request.command == "version":
                sys.stdout.write(VERSION_TEXT + "\n")
                return 0
            if request.command in DEVELOPER_COMMANDS and asks_help(request.arguments):
                sys.stdout.write(developer_help_text(request.command) + "\n")
                return 0
            if request.command not in DEVELOPER_COMMANDS:
                self._check([request.command, *request.arguments])
            return self._run(request, argv)
        except BadInput as error:
            self._console.say(error.full_message)
            return EXIT_BAD_INPUT
        except SetupFailed as error:
            self._console.say(error.full_message)
            return EXIT_SETUP_FAILED
        except KeyboardInterrupt:
            self._console.say("Stopped. The next start goes on from here.")
            return EXIT_INTERRUPTED

    def _run(self, request: Request, argv: Sequence[str]) -> int:
        parts = read_parts(self._repo / "requirements.txt")
        parts |= read_parts(self._repo / "tests" / "requirements.txt")
        studio = parts["studio"]
        if not uses_running(
            self._repo, self._home.root, os.environ, complete=lambda: not studio.missing()
        ):
            return self._enter_venv(argv)
        self._install(studio, keep=None)
        if request.command in DEVELOPER_COMMANDS:
            return self._develop(request, parts)
        return self._hand_over(request, parts)

    def _enter_venv(self, argv: Sequence[str]) -> int:
        """Start again with the environment's Python; on POSIX it replaces this process."""
        root = self._repo / ".venv"
        began_s = time.monotonic()
        if not python_of(root).exists():
            self._console.say(f"Making the environment {root}.")
        environ = dict(os.environ)
        if ensure_venv(root):
            environ[_MADE_VENV_S] = f"{time.monotonic() - began_s:.1f}"
        python = str(python_of(root))
        command = [python, str(self._repo / "launch.py"), *argv]
        if os.name == "posix":
            os.execve(python, command, environ)  # noqa: S606 - our own interpreter, no shell
        return run_out(command, env=environ)

    def _install(self, part: Part, *, keep: Part | None) -> None:
        installer = Installer(self._home, part, keep=keep.pins if keep else ())
        if installer.is_ready():
            return
        with self._console.stage(f"{part.name} part"):
            installer.run(self._console.show)

    def _models(self, request: Request, parts: dict[str, Part]) -> ModelsInstall:
        return ModelsInstall(
            lambda: Installer(self._home, parts["models"], keep=parts["studio"].pins),
            allowed=request.may_install_models,
            listener=self._console.show,
        )

    def _hand_over(self, request: Request, parts: dict[str, Part]) -> int:
        models = self._models(request, parts)
        try:
            if request.models == "first" and not self._models_first(models):
                return EXIT_SETUP_FAILED
            self._summary()
            if request.models == "beside" or (request.command == "serve" and models.is_outdated()):
                models.start()
            return self._run_studio([request.command, *request.arguments], models)
        finally:
            models.close()

    def _models_first(self, models: ModelsInstall) -> bool:
        if models.snapshot()["state"] == "ready":
            return True
        with self._console.stage("models part"):
            models.start()
            return models.wait()

    def _summary(self) -> None:
        made_s = os.environ.pop(_MADE_VENV_S, None)
        if made_s:
            self._console.say(f"Making the environment took {made_s} s.")
        self._console.summary()

    def _develop(self, request: Request, parts: dict[str, Part]) -> int:
        self._install(parts["tests"], keep=parts["studio"])
        if request.command == "lint":
            return self._lint()
        fast = is_fast(request.arguments)
        environ = dict(os.environ) if fast else self._whole_environment(request, parts)
        arguments = request.arguments or WHOLE_SUITE
        if fast:
            arguments = (*FAST_SUITE, *request.arguments[1:])
        if fast or not request.arguments:
            environ.setdefault("OMP_NUM_THREADS", "1")  # one for each worker
        self._summary()
        failed = self._lint() if request.command == "check" else 0
        command = [sys.executable, "-m", "pytest", *arguments]
        return run_out(command, cwd=self._repo, env=environ) or failed

    def _whole_environment(self, request: Request, parts: dict[str, Part]) -> dict[str, str]:
        """Install what the whole suite needs; returns the variables that it runs with."""
        models = self._models(request, parts)
        try:
            # Without them, the tests that need them are skipped with the reason.
            if request.models == "first":
                self._models_first(models)
        finally:
            models.close()
        with self._console.stage("browser"):
            browser = find_browser(os.environ) or bring_browser(self._console.say)
        with self._console.stage("nginx"):
            if find_nginx() is None and bring_nginx(self._console.say) is None:
                self._console.say("There is no nginx: the tests behind a proxy are skipped.")
        with self._console.stage("strace"):
            if not shutil.which("strace") and not install_debian(["strace"], self._console.say):
                self._console.say("There is no strace: the tests of system calls are skipped.")
        if browser:
            return {**os.environ, VARIABLE: browser}
        self._console.say(
            "There is no browser for the tests of the page: install Chromium or Chrome, or name "
            f"one in {VARIABLE}."
        )
        return dict(os.environ)

    def _lint(self) -> int:
        """Run every check, even after one fails, so that one run shows all faults."""
        tools = python_of(Path(sys.prefix)).parent
        codes = []
        for name, *arguments in LINT:
            self._console.say(f"$ {' '.join((name, *arguments))}")
            codes.append(subprocess.call([str(tools / name), *arguments], cwd=self._repo))
        return max(*codes, self._check_page_types())

    def _check_page_types(self) -> int:
        """Check the page's scripts against their JSDoc types, if node is installed."""
        npx = shutil.which("npx")
        if npx is None:
            self._console.say("The types of the page's scripts aren't checked: node isn't here.")
            return 0
        self._console.say(f"$ npx {' '.join(PAGE_TYPES)}")
        return subprocess.call([npx, *PAGE_TYPES], cwd=self._repo)


def run_out(command: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None) -> int:
    """Run a command until it ends by itself, even after Ctrl+C, which reaches it as well.

    `subprocess.call` would kill it a quarter of a second after Ctrl+C.
    """
    with subprocess.Popen(command, env=env, cwd=cwd) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                continue
