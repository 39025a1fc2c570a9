"""`tableread …` or `python -m studio …`: the commands of `launch.py`, which install nothing."""

from __future__ import annotations

import sys

from studio.app import main


def run() -> int:
    """Run the command line of this process; the entry point of the package."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
