"""The studio with a draft voice that gives out half of a line, and the rest when it is let go on.

Each seed sounds different: each of its bits is the loudness of a stretch of the line. While a file
`hold` is in the workspace, lines wait in their middle; where there is a file `fail` then, they fail
there. Run as `python doled_server.py WORKSPACE PORT`, with the repository on the path.
"""

import sys
import time
from pathlib import Path

import numpy as np

from studio.app import main
from studio.backends import registry
from studio.backends.espeak.backend import DraftBackend
from studio.errors import Cancelled, SpeechFailed

WORKSPACE, PORT = Path(sys.argv[1]), sys.argv[2]
SEED_BITS = 64


class DoledDraft(DraftBackend):
    name = "doled"
    title = "Doled draft"

    def speak(self, request):
        samples = np.concatenate(list(super().speak(request)))
        stretches = np.array_split(samples, SEED_BITS)  # views: what follows changes the line
        for bit, stretch in enumerate(stretches):
            stretch *= 0.8 if request.seed >> bit & 1 else 0.5
        half = len(samples) // 2
        yield samples[:half]
        while (WORKSPACE / "hold").exists():
            if request.cancelled():
                raise Cancelled("The line was stopped.")
            time.sleep(0.01)
        if (WORKSPACE / "fail").exists():
            raise SpeechFailed("The voice broke off in the middle.")
        yield samples[half:]


if __name__ == "__main__":
    registry.BACKENDS = {"doled": lambda _options: DoledDraft()}
    sys.exit(
        main(
            [
                *("serve", "--port", PORT, "--no-browser", "--backend", "doled"),
                *("--workspace", str(WORKSPACE)),
            ]
        )
    )
