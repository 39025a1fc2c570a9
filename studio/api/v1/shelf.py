"""Where rendered dialogs wait for the program that asked for them."""

from __future__ import annotations

import threading
from typing import Annotated
from weakref import WeakKeyDictionary

from fastapi import Depends, Request

from studio.api.desk import Desk
from studio.engine.job import Job
from studio.errors import NotFound
from studio.service import Studio
from studio.speech import Reading

KEPT_DIALOGS = 20
"""Finished renders kept for each studio; older ones make room."""


class Shelf:
    """The dialogs that programs had rendered in one studio; any thread may ask."""

    def __init__(self) -> None:
        """Start empty."""
        # Guards the table, which requests in several threads read and change.
        self._lock = threading.Lock()
        self._readings: dict[str, Reading] = {}

    def put(self, reading: Reading) -> None:
        """Keep a render; the oldest finished one makes room."""
        with self._lock:
            self._readings[reading.job.job_id] = reading
            finished = [one for one in self._readings.values() if one.job.events.closed]
            gone = finished[: max(0, len(self._readings) - KEPT_DIALOGS)]
            for one in gone:
                del self._readings[one.job.job_id]
        for one in gone:
            one.close()

    def job(self, dialog_id: str) -> Job:
        """The job of a render, as `reading`."""
        return self.reading(dialog_id).job

    def reading(self, dialog_id: str) -> Reading:
        """A render by its id.

        Raises:
            NotFound: It never was, was deleted, or made room.
        """
        with self._lock:
            reading = self._readings.get(dialog_id)
        if reading is None:
            raise NotFound("This dialog isn't there any more; render it again.")
        return reading

    def remove(self, dialog_id: str) -> None:
        """Stop and forget a render.

        Raises:
            NotFound: It isn't there.
        """
        with self._lock:
            reading = self._readings.pop(dialog_id, None)
        if reading is None:
            raise NotFound("This dialog isn't there any more.")
        reading.close()


class Shelves:
    """One shelf for each studio, so that nobody finds what another one ordered."""

    def __init__(self) -> None:
        """Start with none."""
        self._shelves: WeakKeyDictionary[Studio, Shelf] = WeakKeyDictionary()

    def of(self, studio: Studio) -> Shelf:
        """The shelf of a studio."""
        return self._shelves.setdefault(studio, Shelf())


async def _shelf_of(request: Request, studio: Desk) -> Shelf:
    shelves = request.app.state.shelves
    assert isinstance(shelves, Shelves)
    return shelves.of(studio)


ShelfDesk = Annotated[Shelf, Depends(_shelf_of)]
"""The type of a handler's `shelf`: the one of the visitor who asks."""
