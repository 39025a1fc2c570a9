"""Installs one part of the requirements if it is missing: locked, and resumable."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from studio.errors import Cancelled, SetupFailed
from studio.setup.environment import forget_half_installed
from studio.setup.lock import Lock
from studio.setup.pip import (
    RAW_PROGRESS_SINCE,
    InstallProgress,
    Pip,
    PipProgress,
    Report,
    pip_version,
)
from studio.setup.requirements import MEGABYTE, Part, Pin, standing_pins


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file that marks a part as installed; it is in the environment, and is deleted with it.

    Attributes:
        locked: The digest of the part's lock.
    """

    root: Path
    part: Part
    locked: str = ""

    @property
    def path(self) -> Path:
        return self.root / f"tableread-{self.part.name}.json"

    def is_current(self) -> bool:
        """Whether exactly this part was installed here, for this Python and by this lock."""
        try:
            held = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        wanted = (self.part.fingerprint(), self.locked)
        return isinstance(held, dict) and (held.get("fingerprint"), held.get("lock", "")) == wanted

    def write(self) -> None:
        """Mark the part as installed; the file appears whole or not at all."""
        content = {
            "version": 1,
            "part": self.part.name,
            "fingerprint": self.part.fingerprint(),
            "lock": self.locked,
            "packages": [str(pin) for pin in (*self.part.pins, *self.part.no_deps)],
        }
        draft = self.path.with_suffix(".tmp")
        draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draft.replace(self.path)
        self._begun.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the mark, before packages change; that this was begun is kept until the end."""
        self._begun.touch()
        self.path.unlink(missing_ok=True)

    def is_outdated(self) -> bool:
        """Whether the part was installed here in another state, or not to the end."""
        return (self.path.exists() or self._begun.exists()) and not self.is_current()

    @property
    def _begun(self) -> Path:
        return self.path.with_suffix(".begun")


_POLL_S = 0.2


@contextmanager
def install_lock(
    path: Path, *, waiting: Callable[[], None], stop: threading.Event | None = None
) -> Iterator[int]:
    """Hold the lock on `path`; the system releases it when its last holder ends or crashes.

    Args:
        path: Lock file; created with its folder if absent, and never deleted.
        waiting: Called once if another process holds the lock.
        stop: Ends the wait.

    Yields:
        The file's descriptor, to be inherited by a child that must hold the lock if we die.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        _acquire(file, waiting, stop or threading.Event())
        try:
            yield file.fileno()
        finally:
            _release(file)


def _acquire(file: IO[bytes], waiting: Callable[[], None], stop: threading.Event) -> None:
    has_reported = False
    while not _try(file):
        if not has_reported:
            waiting()
            has_reported = True
        if stop.wait(_POLL_S):
            raise Cancelled("The installation was stopped while it waited for another one.")


if sys.platform == "win32":
    import msvcrt

    def _try(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


_LABELS = {
    "studio": "the studio's packages",
    "models": "the model packages",
    "tests": "the test tools",
}


@dataclass(frozen=True, slots=True)
class Home:
    """The folders of the running environment and of the launcher's own files.

    Attributes:
        root: The environment's folder, `sys.prefix`.
        state: The launcher's folder, for its lock file, logs and constraints.
        owned: Whether the launcher created the environment, and may repair it and upgrade its pip.
        locks: Folder with the hashes of all packages for the running Python.
    """

    root: Path
    state: Path
    owned: bool
    locks: Path

    def log(self, part: Part) -> Path:
        """The log of pip's output for a part."""
        return self.state / f"{part.name}.log"


class Installer:
    """One installation of one part; `stop` may come from another thread."""

    def __init__(self, home: Home, part: Part, *, keep: Sequence[Pin] = ()) -> None:
        """Prepare; nothing changes yet.

        Args:
            home: The environment.
            part: What to install.
            keep: Packages whose versions, and those of their dependencies, must not change.
        """
        self._home = home
        self._part = part
        self._keep = tuple(keep)
        self._lock = Lock(home.locks, part)
        self._stamp = Stamp(home.root, part, self._lock.digest())
        self._stop = threading.Event()
        self._pip: Pip | None = None

    @property
    def download_bytes(self) -> int | None:
        """About how much it downloads; None if unknown."""
        return self._part.download_bytes or None

    def is_ready(self) -> bool:
        """Whether the part is installed; takes milliseconds.

        In the launcher's own environment only the stamp counts, because an interrupted
        installation may lack dependencies. Any other environment has no stamp.
        """
        if self._stamp.is_current():
            return True
        return not self._home.owned and not self._part.missing()

    def is_outdated(self) -> bool:
        """Whether the part was installed here before, or its installation was interrupted."""
        return self._stamp.is_outdated()

    def run(self, report: Report) -> None:
        """Install the part unless it is installed.

        Raises:
            SetupFailed: pip failed; has the cause and the remedy.
            NoSpace: The disk has less space than the part needs.
            Cancelled: `stop` was called.
        """
        if self.is_ready():
            return
        try:
            self._run_alone(report)
        except OSError as error:
            raise SetupFailed(
                f"The environment can't be changed: {error}. Check who owns {self._home.root} and "
                f"{self._home.state}, then start again."
            ) from error
        importlib.invalidate_caches()

    def stop(self) -> None:
        """End the installation soon; the next one goes on where this one stopped."""
        self._stop.set()
        if self._pip is not None:
            self._pip.stop()

    def _run_alone(self, report: Report) -> None:
        waiting = InstallProgress("Waiting for another start of Tableread that is installing.")
        lock = self._home.state / "install.lock"
        with install_lock(lock, waiting=lambda: report(waiting), stop=self._stop) as descriptor:
            if not self.is_ready():
                self._install(report, descriptor)

    def _install(self, report: Report, descriptor: int) -> None:
        self._lock.check()
        check_space(self._home.root, self._part)
        log = self._home.log(self._part)
        log.unlink(missing_ok=True)
        # The child keeps the lock too: should we be killed, the next start waits for its end.
        self._pip = pip = Pip(log, keep_open=(descriptor,))
        if self._stop.is_set():
            pip.stop()
        self._stamp.remove()
        if self._home.owned:
            forget_half_installed(Path(sysconfig.get_path("purelib")))
            self._renew_pip(pip, report)
        progress = PipProgress(
            _LABELS.get(self._part.name, self._part.name), self._part.download_bytes
        )

        def watch(line: str) -> None:
            report(progress.feed(line))

        for arguments in self._lock.installs(whole=self._home.owned):
            pip.install(*self._held(), *arguments, watch=watch)
        self._stamp.write()

    def _renew_pip(self, pip: Pip, report: Report) -> None:
        """Upgrade pip to one that reports bytes, if the download is long enough to be worth it."""
        if self._part.name != "models" or pip_version() >= RAW_PROGRESS_SINCE:
            return
        report(InstallProgress("Renewing pip, so that it can show its progress."))
        # A failure does no harm: the old pip installs as well, and counts packages, not bytes.
        with suppress(SetupFailed):
            pip.install(*self._lock.pip_upgrade(), watch=lambda _: None)

    def _held(self) -> list[str]:
        if not self._keep:
            return []
        constraints = self._home.state / f"{self._part.name}-constraints.txt"
        lines = (f"{pin}\n" for pin in standing_pins(self._keep))
        constraints.write_text("".join(lines), encoding="utf-8")
        return ["--constraint", str(constraints)]


class NoSpace(SetupFailed):
    """The disk has less space than a part needs; nothing was changed."""


def check_space(root: Path, part: Part) -> None:
    """Refuse an installation that the disk has no space for.

    Raises:
        NoSpace: Names the space that is needed and that is free.
    """
    free_bytes = shutil.disk_usage(root).free
    if free_bytes < part.disk_bytes:
        label = _LABELS.get(part.name, part.name)
        raise NoSpace(
            f"Installing {label} needs about {part.disk_bytes // MEGABYTE:,} MB of disk space and "
            f"{free_bytes // MEGABYTE:,} MB are free at {root}. Free some space, then start again."
        )
