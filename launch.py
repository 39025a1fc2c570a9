"""Start Tableread: make its environment on the first run, then hand over to the studio.

Standard library only. Any Python from 3.7 on can read this file, so that the wrong one gets a
sentence and not a syntax error; what it imports needs the right one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studio.setup.models_install import SetupReport

OLDEST = (3, 11)
NEWEST = (3, 14)


def wrong_python(version: tuple[int, ...], executable: str) -> str | None:
    """Say why a Python can't run Tableread; None when it can.

    Args:
        version: (major, minor, micro), as `sys.version_info` begins.
        executable: Path of the interpreter.
    """
    if OLDEST <= version[:2] <= NEWEST:
        return None
    found = ".".join(str(number) for number in version)
    return (
        f"Tableread needs Python 3.11, 3.12, 3.13 or 3.14, and this is Python {found} "
        f"({executable}). Start it with one of those, for example: python3.12 launch.py"
    )


def main(argv: list[str]) -> int:
    """Run a command line; returns the exit status."""
    problem = wrong_python(tuple(sys.version_info[:3]), sys.executable)
    if problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    from studio.setup.launcher import Launcher

    return Launcher.of_script(Path(__file__), _run_studio, _check).run(argv)


def _check(argv: list[str]) -> None:
    """Answer `--help` and refuse what can't be used, before anything is installed."""
    from benchmarks.bench_options import add_bench_options
    from studio.cli.arguments import build_parser, check_script
    from studio.setup.commands import program

    check_script(build_parser(program(), add_bench_options).parse_args(argv))


def _run_studio(argv: list[str], setup: SetupReport) -> int:
    """Import the studio only now: its packages stand at last."""
    from studio.app import main as run_studio

    return run_studio(argv, setup)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
