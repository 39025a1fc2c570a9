"""What a process that serves sets for itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_HEAPS_OF_MANY_THREADS = """
import ctypes, sys, threading
if {settled}:
    from studio.server.studio_server import tune_process
    tune_process()
    assert sys.getswitchinterval() == 0.0005
together = threading.Barrier(16)
def hold():
    held = [bytes(2_000) for _ in range(50)]
    together.wait()
threads = [threading.Thread(target=hold) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
ctypes.CDLL(None).malloc_stats()
"""


def _heaps(*, settled: bool) -> int:
    code = _HEAPS_OF_MANY_THREADS.format(settled=settled)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.count("Arena ")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="heaps are glibc's")
def test_threads_share_few_heaps():
    assert _heaps(settled=False) > 2
    assert _heaps(settled=True) <= 2


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_more_files_may_be_open_than_a_shell_allows(tmp_path) -> None:
    resource = pytest.importorskip("resource")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    script = (
        "import resource; from studio.server.studio_server import tune_process;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard})); tune_process();"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert int(done.stdout) > 256
