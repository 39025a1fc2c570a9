"""The studio with a draft voice that says something else in some lines, and a recogniser.

Run as `python slipping_server.py WORKSPACE PORT`, with the repository and its tests on the path.
"""

import sys

from draft_ears import catalogue
from slipping import SlippingDraft

from studio.app import main
from studio.backends import registry
from studio.services import studio


class Slipping(SlippingDraft):
    name = "slipping"
    title = "Slipping draft"


if __name__ == "__main__":
    registry.BACKENDS = {"slipping": lambda _options: Slipping()}
    studio.HEARING_MODELS = catalogue()
    workspace, port = sys.argv[1:]
    sys.exit(
        main(
            [
                *("serve", "--port", port, "--no-browser", "--backend", "slipping"),
                *("--workspace", workspace),
            ]
        )
    )
