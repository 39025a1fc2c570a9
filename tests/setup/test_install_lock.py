from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from tiny_index import REPO

from studio.errors import Cancelled
from studio.setup.installer import install_lock

_HOLDER = """
import pathlib, sys
sys.path.insert(0, sys.argv[2])
from studio.setup.installer import install_lock
with install_lock(pathlib.Path(sys.argv[1]), waiting=lambda: None):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path):
    """A lock file that another process holds, and that process."""
    path = tmp_path / "made" / "install.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path), str(REPO)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    yield path, holder
    holder.kill()
    holder.communicate()


def test_a_free_lock_is_taken_without_a_word_and_again(tmp_path):
    told = []
    for _ in range(2):
        with install_lock(tmp_path / "lock", waiting=lambda: told.append(1)) as descriptor:
            assert descriptor > 2
    assert told == []


def test_waits_with_one_message_until_the_holder_dies(held):
    path, holder = held
    told = []

    def waiting() -> None:
        told.append("waiting")
        holder.kill()

    with install_lock(path, waiting=waiting):
        assert told == ["waiting"]


def test_a_stopped_wait_ends(held):
    path, _ = held
    stop = threading.Event()
    with pytest.raises(Cancelled), install_lock(path, waiting=stop.set, stop=stop):
        pytest.fail("the lock was not free")
