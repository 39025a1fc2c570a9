"""A studio whose neural voice goes and comes back all day holds on to nothing."""

from __future__ import annotations

import gc
import threading

import psutil
import pytest
from scenes import OpenStudio, dialog_of, finish

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

from qwen3_checkpoint import GROUPS
from qwen3_speakers import made_backend

from studio.engine.model_manager import EvictionPolicy
from studio.services.studio import RenderOptions, Studio

pytestmark = pytest.mark.models


LONG = [pytest.mark.campaign, pytest.mark.timeout(3600)]
IDLE_AT_ONCE = EvictionPolicy(idle_timeout_s=0.01, check_interval_s=0.01)


def idle_cycle(studio: Studio, name: str, until_unloaded: threading.Event) -> None:
    until_unloaded.clear()
    finish(studio.render(dialog_of(1, speakers=("Ida",)), RenderOptions(seed=1)))
    assert until_unloaded.wait(60), studio.engine.models.get_status(name)


@pytest.mark.parametrize("cycles", [3, pytest.param(200, marks=LONG)])
def test_a_neural_voice_comes_back_after_every_idle_unload(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch, cycles: int
) -> None:
    backend, unloaded = made_backend("voice_design", groups=GROUPS), threading.Event()
    unload = backend.unload
    monkeypatch.setattr(backend, "unload", lambda: (unload(), unloaded.set()))
    studio = open_studio(backend, eviction=IDLE_AT_ONCE)
    studio.speakers.add("Ida", description="An old sailor, hoarse and kind.")
    for _ in range(2):
        idle_cycle(studio, "draft", unloaded)
    process = psutil.Process()
    gc.collect()
    gc.freeze()  # else most of the time goes into looking through what is there
    handles, threads, resident_bytes = figures(process)
    for _ in range(cycles):
        idle_cycle(studio, "draft", unloaded)
    after = figures(process)
    assert after[0] <= handles + 2
    assert after[1] <= threads + 3
    assert after[2] - resident_bytes < 30e6  # one small model is 21 MB
    assert studio.engine.models.get_status("draft").counters.loads == cycles + 2


def figures(process: psutil.Process) -> tuple[int, int, int]:
    """File handles, threads, resident bytes."""
    gc.collect()
    return process.num_fds(), threading.active_count(), process.memory_info().rss
