"""Dialogs for tests, and how to wait for their end."""

from __future__ import annotations

import time
from collections.abc import Callable

from studio.dialog.model import Dialog, Speech
from studio.engine.job import Job, JobEvent
from studio.services.studio import Studio

OpenStudio = Callable[..., Studio]


def dialog_of(lines: int, *, speakers: tuple[str, ...] = ("Ida", "Bruno", "Tom")) -> Dialog:
    """A dialog whose every line says its own number."""
    return Dialog(
        tuple(
            Speech(speakers[idx % len(speakers)], f"This is line {idx}.", line_number=idx + 1)
            for idx in range(lines)
        )
    )


def finish(job: Job) -> list[JobEvent]:
    """Wait for a job's end; its events."""
    return list(job.events.follow())


def wait_until_idle(studio: Studio) -> None:
    """Wait until no line is in flight or waits: a line that is stopped says so just before."""
    renderer, until_s = studio.engine.renderer, time.monotonic() + 60
    while renderer.in_flight or renderer.queued:
        assert time.monotonic() < until_s, (renderer.in_flight, renderer.queued)
        time.sleep(0.005)
