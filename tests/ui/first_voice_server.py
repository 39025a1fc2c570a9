"""A first start: nothing downloaded, `auto`, and a hub of the tests' own with a small Kitten."""

import sys
from pathlib import Path

import pytest
import sherpa_models
from tiny_hub import TinyHub

from studio.app import main
from studio.settings import Settings

workspace, port = sys.argv[1:]
hub = TinyHub(sherpa_models.FILES["kitten"]())
patch = pytest.MonkeyPatch()
patch.setenv("TTS_BACKEND", "auto")
with hub.serving(patch, Path(workspace).parent / "cache"):
    assert Settings.from_environment().backend == "auto"
    sys.exit(main(["serve", "--port", port, "--no-browser", "--workspace", workspace]))
