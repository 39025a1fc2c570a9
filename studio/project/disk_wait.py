"""A render on a full disk: it waits, keeps what was generated, and goes on once there is room.

A result for which there is no room waits in memory or in its job's folder, and no further line is
begun. The project's regular save, and each press of play, tries the first waiting write again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from studio.errors import DiskFull, StorageFailed
from studio.project.line_states import LineEvent, ProjectState, RenderEvent, StorageEvent
from studio.project.render_queue import LineJob

log = logging.getLogger(__name__)

_WAITS_MESSAGE = "The render goes on by itself when there is room; what was generated is kept."

_PROBE_FILE = ".room"
_PROBE_BYTES = 65_536
"""Size of a file that is written where no result waits; a line takes more than a second of it."""


class DiskWait:
    """Holds the results of a project's render that wait for room on the disk."""

    def __init__(
        self,
        core: ProjectState,
        *,
        save: Callable[[LineJob], None],
        drop: Callable[[str], None],
        submit: Callable[[], None],
    ) -> None:
        """Hold nothing yet.

        Args:
            core: The project.
            save: Saves a job's result, or has it held again; called without the lock.
            drop: Stops the job of a line, which stays queued; under the lock.
            submit: Submits waiting lines; under the lock.
        """
        self._state = core
        self._queue = core.render_queue
        self._save = save
        self._drop = drop
        self._submit = submit

    def hold(self, line_job: LineJob, error: DiskFull) -> None:
        """Have a job's result wait, and the lines that weren't begun yet."""
        core, queue = self._state, self._queue
        with core.lock:
            if core.closed or queue.line_jobs.get(line_job.line_id) is not line_job:
                line_job.remove_segments()
                return
            queue.unsaved.append(line_job)
            for one in list(queue.line_jobs.values()):
                if not one.is_begun:
                    self._drop(one.line_id)
            self.set_shortage(error)
            core.events.append(LineEvent(line_job.line_id))

    def set_shortage(self, error: DiskFull | None) -> None:
        """Begin or end the wait; under the lock."""
        core, queue = self._state, self._queue
        shortage = None if error is None else f"{error} {_WAITS_MESSAGE}"
        if (queue.shortage is None) != (shortage is None):
            state = "goes on" if error is None else f"waits for room on the disk: {error}"
            log.warning("project %s: the render %s", core.folder.root.name, state)
        if queue.shortage != shortage:
            queue.set_shortage(shortage)
            core.events.append(StorageEvent())
            core.events.append(RenderEvent())

    def save_waiting(self) -> None:
        """Save what waits, and go on with the render if all of it is saved; without the lock.

        Does nothing while nothing waits, and stops at the first write that fails again.
        """
        core, queue = self._state, self._queue
        with core.lock:
            if core.closed or queue.shortage is None:
                return
            waiting, queue.unsaved = queue.unsaved, []
        while waiting and not queue.unsaved:
            self._save(waiting.pop(0))
        with core.lock:
            for line_job in waiting:
                if line_job.is_dropped:  # meanwhile
                    line_job.remove_segments()
                else:
                    queue.unsaved.append(line_job)
            if not core.closed and not queue.unsaved and self._has_room():
                self.set_shortage(None)
                self._submit()

    def _has_room(self) -> bool:
        disk, probe = self._state.folder.disk, self._state.folder.root / _PROBE_FILE
        try:
            disk.write_whole(probe, bytes(_PROBE_BYTES), synced=False)
            disk.remove(probe)
        except StorageFailed:
            return False
        return True
