"""The studio with the tests' recogniser, and a small denoiser of its own.

Run as `python listening_server.py WORKSPACE PORT`, with the repository and its tests on the path.
"""

import sys
from pathlib import Path

from draft_ears import catalogue
from gtcrn_model import write_gtcrn

from studio.app import main
from studio.services import studio

WORKSPACE, PORT = Path(sys.argv[1]), sys.argv[2]

if __name__ == "__main__":
    denoiser = write_gtcrn(WORKSPACE.parent / "model")
    studio.HEARING_MODELS = {**catalogue(), denoiser.name: denoiser}
    sys.exit(main(["serve", "--port", PORT, "--no-browser", "--workspace", str(WORKSPACE)]))
