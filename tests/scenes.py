"""Dialogs for tests, and how to wait for their end."""

from __future__ import annotations

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
