"""A studio that loads, renders and unloads all day holds on to nothing."""

from __future__ import annotations

import threading

import psutil
import pytest
from scenes import OpenStudio, dialog_of, finish

from studio.engine.model_manager import EvictionPolicy, ModelState
from studio.services.studio import Studio

pytestmark = pytest.mark.slow


def cycle(studio: Studio) -> None:
    finish(studio.render(dialog_of(2)))
    studio.engine.unload(studio.backend_name)
    assert studio.engine.models.get_status("draft").state is ModelState.UNLOADED


@pytest.mark.parametrize(
    "cycles", [pytest.param(12), pytest.param(200, marks=pytest.mark.campaign)]
)
def test_threads_handles_and_memory_do_not_grow(open_studio: OpenStudio, cycles: int) -> None:
    studio = open_studio(eviction=EvictionPolicy(enabled=False))
    for _ in range(4):
        cycle(studio)
    process = psutil.Process()
    handles, threads = process.num_fds(), threading.active_count()
    resident_bytes = process.memory_info().rss
    for _ in range(cycles):
        cycle(studio)
    assert process.num_fds() <= handles + 2
    # The pool of speaking threads fills up to what was ever in flight.
    assert threading.active_count() <= threads + 3
    assert process.memory_info().rss - resident_bytes < 20e6
    counters = studio.engine.models.get_status("draft").counters
    assert counters.loads == counters.unloads == cycles + 4
