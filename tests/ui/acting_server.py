"""The studio with a voice engine that converts; it waits while a file `hold` is in the workspace.

Run as `python acting_server.py WORKSPACE PORT`, with the repository and its tests on the path.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from acting import ActingDraft

from studio.app import main
from studio.backends import registry
from studio.errors import Cancelled

WORKSPACE, PORT = Path(sys.argv[1]), sys.argv[2]


class HeldDraft(ActingDraft):
    @property
    def capabilities(self):
        return replace(super().capabilities, builtin_by_name=False)

    def convert(self, recording, conditioning, *, seed=None, cancelled=lambda: False):
        while (WORKSPACE / "hold").exists():
            if cancelled():
                raise Cancelled("The conversion was stopped.")
            time.sleep(0.01)
        return super().convert(recording, conditioning, seed=seed, cancelled=cancelled)


if __name__ == "__main__":
    registry.BACKENDS = {"acting": lambda _options: HeldDraft()}
    sys.exit(
        main(
            [
                *("serve", "--port", PORT, "--no-browser", "--backend", "acting"),
                *("--workspace", str(WORKSPACE)),
            ]
        )
    )
