"""A home of the tests' own, empty: what is installed or set on this machine decides no test.

Imported before all else, as the hub's client reads its variables once.
"""

import os
import shutil
import tempfile

HOME = tempfile.mkdtemp(prefix="tableread-tests-")
for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH"):
    os.environ.pop(name, None)
os.environ |= dict.fromkeys(("HF_HOME", "XDG_CONFIG_HOME", "APPDATA"), HOME)


def remove() -> None:
    """Delete it."""
    shutil.rmtree(HOME, ignore_errors=True)
