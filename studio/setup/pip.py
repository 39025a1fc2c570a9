"""Runs pip in the environment: follows its progress, and explains its failures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from studio.errors import Cancelled, SetupFailed

_COLLECT = re.compile(r"(?:Collecting|Processing) (?P<what>\S+)")
_DOWNLOAD = re.compile(
    r"\s*(?:Downloading|Using cached) (?P<file>\S+)"
    r"(?: \((?P<size>[\d.]+) (?P<unit>bytes|[kMG]B)\))?"
)
_RAW = re.compile(r"Progress (?P<done>\d+) of (?P<total>\d+)")
_UNPACK = re.compile(r"Installing collected packages: (?P<names>.+)")
_NAME = re.compile(r"[A-Za-z0-9._]+(?:-[A-Za-z]\w*)*")
_UNIT_BYTES = {"bytes": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
_DOWNLOAD_SHARE = 0.7
"""Share of the progress for the download; unpacking reports nothing until it ends."""


@dataclass(frozen=True, slots=True)
class InstallProgress:
    """The state of an installation; `fraction` in [0, 1], None if unknown."""

    message: str
    fraction: float | None = None
    detail: str = ""


Report = Callable[[InstallProgress], None]


class PipProgress:
    """Follows the output of one run of pip."""

    def __init__(self, label: str, download_bytes: int) -> None:
        """Start with no output.

        Args:
            label: What is installed, such as "the model packages".
            download_bytes: Approximate size of the download; 0 if unknown.
        """
        self._label = label
        self._expected_bytes = download_bytes
        self._finished_bytes = 0
        self._current_bytes = 0
        self._file_bytes = 0
        self._packages = 0
        self._unpacking = 0
        self._name = ""

    def feed(self, line: str) -> InstallProgress:
        """Read a line of pip's output; returns the state after it."""
        if match := _RAW.match(line):
            self._current_bytes = int(match["done"])
        elif match := _DOWNLOAD.match(line):
            self._begin_file(match)
        elif match := _COLLECT.match(line):
            self._packages += 1
            self._name = match["what"].rsplit("/", 1)[-1]
        elif match := _UNPACK.match(line):
            self._begin_file(None)
            self._unpacking = match["names"].count(",") + 1
        return self.state()

    def state(self) -> InstallProgress:
        """The current state."""
        if self._unpacking:
            detail = f"unpacking {self._unpacking} packages, which shows no steps"
            return InstallProgress(f"Installing {self._label}.", _DOWNLOAD_SHARE, detail)
        return InstallProgress(f"Downloading {self._label}.", self._fraction(), self._detail())

    def _begin_file(self, match: re.Match[str] | None) -> None:
        self._finished_bytes += self._file_bytes
        self._current_bytes = self._file_bytes = 0
        if match and not match["file"].endswith(".metadata"):
            self._name = match["file"].rsplit("/", 1)[-1]
            self._file_bytes = round(float(match["size"] or 0) * _UNIT_BYTES[match["unit"] or "kB"])

    def _fraction(self) -> float | None:
        if not self._expected_bytes:
            return None
        share = (self._finished_bytes + self._current_bytes) / self._expected_bytes
        return _DOWNLOAD_SHARE * min(1.0, share)

    def _detail(self) -> str:
        name = _NAME.match(self._name)
        done_mb = (self._finished_bytes + self._current_bytes) // 1_000_000
        return f"{name[0]}, package {self._packages}, {done_mb} MB" if name else ""


RAW_PROGRESS_SINCE = (24, 1)
"""The first version of pip that reports bytes during a download (`--progress-bar raw`)."""

_TAIL_LINES = 8
_TAIL_CHARS = 160
_END_S = 10.0

_CAUSES = (
    (r"No space left on device|\[Errno 28\]|WinError 112", "The disk is full: free some space"),
    (
        r"NewConnectionError|NameResolutionError|Failed to establish a new connection"
        r"|Temporary failure in name resolution|ConnectTimeout|ReadTimeout|Max retries exceeded"
        r"|ConnectionResetError|ProxyError",
        "The package index can't be reached: check the network",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "A package isn't the one that was locked, and was not installed: try again, and without "
        "the index or proxy that served it; see docs/operate/install.md",
    ),
    (
        r"--require-hashes mode",
        "A package that the others need has no hash: get the newest repository",
    ),
    (
        r"ResolutionImpossible|conflicting dependencies",
        "The packages contradict each other or what is installed: get the newest requirements.txt",
    ),
    (
        r"No matching distribution found|Could not find a version",
        "A package is not offered for this system and Python: try Python 3.12 on a 64-bit system",
    ),
    (r"Permission denied|\[Errno 13\]", "The environment can't be written: check who owns it"),
)


def pip_version() -> tuple[int, ...]:
    """Version of the environment's pip, (0,) if it has none."""
    try:
        version = metadata.version("pip")
    except metadata.PackageNotFoundError:
        return (0,)
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


class Pip:
    """Runs pip for the running Python; `stop` may come from another thread."""

    def __init__(self, log: Path, *, keep_open: Sequence[int] = ()) -> None:
        """Prepare to run.

        Args:
            log: File for all of pip's output.
            keep_open: File descriptors that pip inherits, on systems that can do that.
        """
        self._log = log
        self._keep_open = tuple(keep_open)
        self._lock = threading.Lock()  # guards the two fields below
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def install(self, *arguments: str, watch: Callable[[str], object]) -> None:
        """Run `pip install`.

        Args:
            arguments: As on pip's command line.
            watch: Called with each line of output, without its line end.

        Raises:
            SetupFailed: pip failed; has the cause, pip's last lines and the path of the log.
            Cancelled: `stop` was called.
        """
        bar = "raw" if pip_version() >= RAW_PROGRESS_SINCE else "off"
        command = [sys.executable, "-m", "pip", "install", "--no-input", "--progress-bar", bar]
        command += ["--disable-pip-version-check", *arguments]
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        with self._log.open("a", encoding="utf-8") as log, self._begin(command) as process:
            began = log.tell()
            assert process.stdout is not None
            for line in process.stdout:
                text = line.rstrip()
                watch(text)
                if not text.startswith("Progress "):
                    log.write(text + "\n")
                    tail.append(text)
        if self._stopped:
            raise Cancelled("The installation was stopped; the next start resumes it.")
        if process.returncode:
            raise SetupFailed(self._explain(began, tail))

    def stop(self) -> None:
        """End the run, and refuse any further one."""
        with self._lock:
            self._stopped = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()

    def _begin(self, command: list[str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._stopped:
                raise Cancelled("The installation was stopped; the next start resumes it.")
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
                pass_fds=self._keep_open if os.name == "posix" else (),
            )
            return self._process

    def _explain(self, began: int, tail: Sequence[str]) -> str:
        with self._log.open(encoding="utf-8", errors="replace") as log:
            log.seek(began)
            cause = likely_cause(log.read())
        last = "\n".join(f"    {line[:_TAIL_CHARS]}" for line in tail if line.strip())
        return (
            f"{cause}, then start again; what is done is kept.\n"
            f"pip's last lines were:\n{last}\nAll of its output is in {self._log}."
        )


# pip's own index included, which no other command tells.
_ASK_WHERE = """
import json
from pip._internal.commands import create_command
given, _ = create_command("install").parse_args([])
pages = [] if given.no_index else [given.index_url, *given.extra_index_urls]
print(json.dumps([pages, given.find_links, given.cert]))
"""


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """Where pip gets packages as it is configured here: indexes, then folders and lists of files.

    Attributes:
        cert: File of certificates besides the usual ones.
    """

    pages: list[str]
    links: list[str]
    cert: str | None

    @classmethod
    def of_pip(cls) -> PackageIndex:
        """Ask the environment's pip.

        Raises:
            SetupFailed: There is none, or it can't read its configuration.
        """
        command = [sys.executable, "-c", _ASK_WHERE]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        if asked.returncode:
            raise SetupFailed("pip doesn't say where it is")
        return cls(*json.loads(asked.stdout))


def likely_cause(output: str) -> str:
    """A clause with the cause of a failure and the remedy, found in pip's output."""
    for pattern, remedy in _CAUSES:
        if re.search(pattern, output):
            return remedy
    return "pip could not install the packages: read its output"
