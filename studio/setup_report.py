"""How the installation of the large model packages is going, for the page."""

from __future__ import annotations

from typing import Any, Protocol


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
