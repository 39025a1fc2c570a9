"""The studio with a draft voice that goes on after some lines.

Run as `python wandering_server.py WORKSPACE PORT`, with the repository and its tests on the path.
"""

import sys

from wandering import WanderingDraft

from studio.app import main
from studio.backends import registry


class Wandering(WanderingDraft):
    name = "wandering"
    title = "Wandering draft"


if __name__ == "__main__":
    registry.BACKENDS = {"wandering": lambda _options: Wandering()}
    workspace, port = sys.argv[1:]
    sys.exit(
        main(
            [
                *("serve", "--port", port, "--no-browser", "--backend", "wandering"),
                *("--workspace", workspace),
            ]
        )
    )
