"""The studio with trained Kokoro, as `auto` takes it; notes in a file what is spoken, and when.

Run as `python natural_server.py WORKSPACE PORT`, with the repository on the path.
"""

import os
import sys
from pathlib import Path

from huggingface_hub import constants

from studio.app import main
from studio.backends import registry

WORKSPACE, PORT = Path(sys.argv[1]), sys.argv[2]
constants.HF_HUB_CACHE = os.environ["HF_HUB_CACHE"]  # what it is forked from has read another
MAKE = registry.BACKENDS["kokoro"]


def note(what):
    with (WORKSPACE / "spoken").open("a", encoding="utf-8") as notes:
        print(what, file=notes)


def noted(options):
    backend = MAKE(options)
    speak = backend.speak

    def spoken(request):
        note("line")
        for chunk in speak(request):
            note("sound")
            yield chunk

    backend.speak = spoken
    return backend


if __name__ == "__main__":
    registry.BACKENDS = {"kokoro": noted, "draft": registry.BACKENDS["draft"]}
    sys.exit(
        main(
            [
                *("serve", "--port", PORT, "--no-browser", "--backend", "auto"),
                *("--workspace", str(WORKSPACE)),
            ]
        )
    )
