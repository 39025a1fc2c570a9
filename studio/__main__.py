"""`python -m studio …`: the commands of `launch.py` in an environment that is there already."""

from __future__ import annotations

import sys

from studio.app import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
