"""A model that somebody loads is measured by a few lines that nobody hears."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from gated import GatedDraft
from scenes import OpenStudio, dialog_of, finish
from voice_like import voice_like

from studio.backends.base import Capabilities
from studio.backends.espeak.backend import DraftBackend
from studio.engine.model_manager import ModelState
from studio.services.studio import Studio

WITHIN_S = 60


class Cloner(DraftBackend):
    """Has no voice of its own."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, builtin_voice=False, presets=(), cloning=True)


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def state(studio: Studio) -> ModelState:
    return studio.engine.models.get_status("draft").state


def test_a_loaded_model_is_measured_and_leaves_nothing(open_studio: OpenStudio) -> None:
    studio = open_studio()
    studio.load_model()
    until(lambda: studio.engine.speeds.get("draft") is not None)
    assert studio.engine.speeds.get("draft") > 1
    until(lambda: not studio.engine.renderer.in_flight)
    assert list((studio.options.workspace / "renders").iterdir()) == []


def test_a_known_speed_is_not_measured_again(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    studio = open_studio(backend)
    backend.let_through(3)
    finish(studio.render(dialog_of(3)))
    known = studio.engine.speeds.get("draft")
    assert known is not None
    studio.load_model()
    assert studio.engine.renderer.in_flight == 0
    studio.unload_model()
    assert studio.engine.speeds.get("draft") == known


def test_unloading_ends_the_measurement(open_studio: OpenStudio) -> None:
    studio = open_studio(GatedDraft())
    studio.load_model()
    until(lambda: studio.engine.renderer.in_flight > 0)
    studio.unload_model()
    assert state(studio) is ModelState.UNLOADED
    assert studio.engine.speeds.get("draft") is None


def test_one_that_only_clones_borrows_a_voice_of_the_library(open_studio: OpenStudio) -> None:
    studio = open_studio(Cloner())
    studio.load_model()
    assert studio.engine.renderer.in_flight == 0
    studio.speakers.add("Ida", sample=voice_like(4.0, pitch_hz=110))
    studio.load_model()
    until(lambda: studio.engine.speeds.get("draft") is not None)


def test_a_measurement_gives_way_to_whoever_wants_to_hear_something(
    open_studio: OpenStudio,
) -> None:
    backend = GatedDraft()
    studio = open_studio(backend)
    studio.load_model()
    until(lambda: studio.engine.renderer.in_flight == 3)
    job = studio.render(dialog_of(2))
    until(lambda: job.in_flight == 2)
    until(lambda: studio.engine.renderer.in_flight == 2)  # one that gives way may be let through
    backend.let_through(2)
    assert finish(job)[-1].state == "done"
    until(lambda: studio.engine.renderer.in_flight == 0)
