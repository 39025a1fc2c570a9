"""The server fetches nothing because a request names it, through no route."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CANARY = "5.6.7.8"
"""A public address, which is this machine's own within a network of its own: Gradio's downloads
refuse the private ones."""

DRIVER = Path(__file__).with_name("canary_driver.py")
_IN_OWN_NETWORK = ["unshare", "--map-root-user", "--net", "sh", "-c"]
_ADDRESS = f'ip link set lo up && ip address add {CANARY}/32 dev lo && exec "$@"'


def _can_have_own_network() -> bool:
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    tried = subprocess.run([*_IN_OWN_NETWORK, _ADDRESS, "sh", "true"], capture_output=True)
    return tried.returncode == 0


@pytest.mark.skipif(not _can_have_own_network(), reason="no network namespace can be made here")
def test_no_address_of_a_request_is_asked(tmp_path) -> None:
    driver = [sys.executable, str(DRIVER), CANARY, str(tmp_path / "workspace")]
    done = subprocess.run(
        [*_IN_OWN_NETWORK, _ADDRESS, "sh", *driver],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, DRIVER.parents[:3]))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["self_test"] == 1, "the canary isn't reached at all"
    assert seen["sent"] > 400
    assert seen["asked"] == []
    assert seen["copied"] == []
    assert seen["speak"] == [400] * len(seen["speak"])
    assert seen["speak"]
