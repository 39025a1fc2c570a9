"""How long the device worked for a job: lines at once count once, by its own clock on CUDA."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest
from gated import GatedDraft
from scenes import OpenStudio, dialog_of, finish

from studio.audio.clip import Samples
from studio.backends.base import Health, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.engine.busy_time import BusyTime
from studio.engine.job import SegmentState


def test_what_is_spoken_at_once_counts_once() -> None:
    now_s, busy = [10.0], BusyTime()
    first, second = (busy.span(lambda: now_s[0]) for _ in range(2))
    first.__enter__()
    now_s[0] = 12.0
    second.__enter__()
    now_s[0] = 13.0
    first.__exit__(None, None, None)
    assert busy.total_s == 3.0
    now_s[0] = 15.0
    second.__exit__(None, None, None)
    now_s[0] = 90.0
    with busy.span(lambda: now_s[0]):
        now_s[0] = 90.5
    assert busy.total_s == 5.5


def test_a_line_that_fails_counts_until_then() -> None:
    now_s, busy = [0.0], BusyTime()

    def fail() -> None:
        with busy.span(lambda: now_s[0]):
            now_s[0] = 2.0
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert busy.total_s == 2.0


def test_it_is_the_union_of_the_times_in_which_lines_were_spoken(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    job = open_studio(backend, max_concurrency=3).render(dialog_of(6))
    while backend.in_speak < 3:  # else one might end before the next begins
        time.sleep(0.005)
    backend.let_through(6)
    finish(job)
    spans_s = sorted(
        (record.began_s, record.at_s[SegmentState.GENERATED]) for record in job.records
    )
    union_s, until_s = 0.0, 0.0
    for began_s, ended_s in spans_s:
        union_s += max(0.0, ended_s - max(began_s, until_s))
        until_s = max(until_s, ended_s)
    summary = job.summarize()
    assert 0 < summary.device_busy_s <= union_s <= summary.wall_s
    assert summary.device_busy_s < sum(ended_s - began_s for began_s, ended_s in spans_s)


class CardDraft(DraftBackend):
    """Its device works 2 s for each line, whatever the wall's clock says."""

    worked_s = 100.0

    def health(self) -> Health:
        return Health(busy_s=self.worked_s)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        self.worked_s += 2.0
        yield from super().speak(request)


def test_a_device_with_a_clock_of_its_own_is_asked(
    open_studio: OpenStudio, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "studio")
    studio = open_studio(CardDraft(), max_concurrency=1)
    job = studio.render(dialog_of(5))
    finish(job)
    studio.engine.drain()
    assert job.summarize().device_busy_s == pytest.approx(10.0)
    assert "device busy for 10.00 s, first after" in caplog.text
