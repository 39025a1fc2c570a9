"""A render of a project is told and counted as one, however many jobs the engine makes of it."""

from __future__ import annotations

import logging
import re

import pytest
from project_scenes import rendered, until
from prometheus_client.parser import text_string_to_metric_families
from scenes import OpenStudio, dialog_of, finish

from studio.backends.espeak.backend import DraftBackend
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import ModelUnavailable
from studio.server.routes.monitoring import Metrics
from studio.services.studio import Studio


def figures(metrics: Metrics) -> dict[str, float]:
    return {
        sample.name + "".join(f"/{value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


def told(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    """What was logged of jobs and renders at that level or above."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= level and record.getMessage().startswith(("job ", "project "))
    ]


def test_a_render_begins_and_ends_in_the_log_and_its_lines_are_details(
    studio: Studio, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "studio")
    script = "\n".join(f"Ida: This is line {idx}." for idx in range(7)) + "\nIda:"
    session = studio.projects.create("Scene", read_dialog_text(script).dialog)
    rendered(session)
    until(lambda: len(told(caplog)) == 2)
    begin, end = told(caplog)
    assert begin == f"project {session.project_id}: a render of 8 lines begins"
    assert end.startswith(f"project {session.project_id}: the render is done: 7 of 8 lines, ")
    assert f"{session.render_progress.audio_s:.1f} s of audio" in end
    assert re.search(r" s, device busy for \d+\.\d\d s, first after ", end)
    assert 0 < session.render_progress.busy.total_s <= session.render_progress.wall_s
    assert end.endswith("1 failed")
    details = told(caplog, logging.DEBUG)
    assert sum(" saved at " in line for line in details) == 7


def test_a_render_counts_as_one_and_its_lines_as_segments(studio: Studio) -> None:
    metrics = Metrics(studio)
    session = studio.projects.create("Scene", dialog_of(12))
    rendered(session)
    until(lambda: figures(metrics)["tableread_job_seconds_count"] == 1)
    after = figures(metrics)
    assert after["tableread_job_seconds_sum"] == pytest.approx(session.render_progress.wall_s)
    assert after["tableread_first_audio_seconds_count"] == 1
    assert after["tableread_segments_total/saved"] == 12
    assert after["tableread_audio_seconds_total"] == pytest.approx(session.render_progress.audio_s)
    finish(studio.render(dialog_of(3)))
    assert figures(metrics)["tableread_job_seconds_count"] == 2


def test_a_render_that_can_not_go_on_says_why(
    open_studio: OpenStudio, caplog: pytest.LogCaptureFixture
) -> None:
    class Missing(DraftBackend):
        def load(self, progress):
            raise ModelUnavailable("Its packages are missing; install them.")

    caplog.set_level(logging.INFO, "studio")
    session = open_studio(Missing()).projects.create("Scene", dialog_of(5))
    session.render(None)
    until(lambda: not session.busy)
    until(lambda: {view.state for view in session.list_views()} == {"failed"})
    until(lambda: told(caplog)[-1].endswith("(Its packages are missing; install them.)"))
    assert "the render was stopped: 0 of 5 lines" in told(caplog)[-1]
