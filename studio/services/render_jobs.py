"""Dialogs that are rendered as a whole, for other programs and the command line."""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from studio.backends.aliases import canonical_name
from studio.dialog.line_text import Pronounce
from studio.dialog.model import Dialog
from studio.dialog.planning import plan
from studio.engine.engine import Engine
from studio.engine.job import Job, JobSpec
from studio.errors import AudioRejected, EngineBusy, NotFound
from studio.storage.workspace import ensure_writable
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary

MAX_QUEUED_SEGMENTS = 50_000
KEPT_JOBS = 20
"""Finished jobs kept on disk and in memory; older ones make room."""


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How one dialog is rendered.

    Attributes:
        backend_name: None for the studio's own choice.
        seed: For lines without a seed of their own.
        voices: Samples that stand in for the library's, by speaker name.
        assigned: Ids of the library's speakers by the name they speak for.
        audio_root: Where paths of audio lines start; None refuses audio lines.
        folder: Where segments go; None for a folder of the workspace.
        listen: Somebody is waiting to hear it: it goes before other jobs.
        tries: As in `JobSpec`.
        pronounce: What a voice hears of a text; None for the text itself.
    """

    backend_name: str | None = None
    seed: int | None = None
    voices: Mapping[str, Path] = field(default_factory=dict)
    assigned: Mapping[str, str] = field(default_factory=dict)
    audio_root: Path | None = None
    folder: Path | None = None
    listen: bool = False
    tries: int = 1
    pronounce: Pronounce | None = None


class RenderJobs:
    """The renders of one workspace; methods may be called from any thread but the engine's own."""

    def __init__(self, root: Path, engine: Engine, library: SpeakerLibrary) -> None:
        """Keep renders in a folder.

        Raises:
            StorageFailed: It can't be made or written.
        """
        self._root = ensure_writable(root)
        self._engine = engine
        self._library = library
        # Guards the table, which pages in several threads read and change.
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    def begin(self, dialog: Dialog, options: RenderOptions, backend_name: str) -> Job:
        """Begin to render a dialog; the job goes on by itself.

        Args:
            dialog: What is spoken.
            options: How.
            backend_name: Who speaks where the options don't say.

        Raises:
            EngineBusy: Too much is waiting already.
            SettingError: There is no such backend.
        """
        name = canonical_name(options.backend_name or backend_name)
        backend = self._engine.models.manager(name).backend
        if self._engine.renderer.queued >= MAX_QUEUED_SEGMENTS:
            raise EngineBusy("The queue is full; try again in a minute.", retry_after_s=60)
        job_id = secrets.token_hex(8)
        cast = Cast(self._library, options.voices, options.assigned)
        planned = plan(
            dialog,
            backend.capabilities.limits(),
            seed=options.seed,
            languages_of=cast.languages_of,
            pronounce=options.pronounce,
        )
        told = cast.notices(planned.segments, backend.capabilities.voice_kinds())
        order = JobSpec(
            plan=replace(planned, notices=planned.notices + told),
            backend_name=name,
            cast=cast,
            folder=ensure_writable(options.folder or self._root / job_id),
            resolve_audio=_audio_resolver(options.audio_root),
            tries=options.tries,
        )
        job = Job(job_id, order)
        with self._lock:
            self._jobs[job_id] = job
        self._make_room()
        self._engine.submit(job, listen=options.listen)
        return job

    def find(self, job_id: str) -> Job:
        """A job by its id.

        Raises:
            NotFound: It never was, or made room for newer ones.
        """
        job = self._jobs.get(job_id)
        if job is None:
            raise NotFound("This render isn't there any more; start a new one.")
        return job

    def _make_room(self) -> None:
        """Forget the oldest finished jobs, and remove folders that no job knows, all but a few."""
        # The folders under the lock, too: two threads would trip over what the other one removed.
        with self._lock:
            finished = [job for job in self._jobs.values() if job.events.closed]
            for job in finished[: max(0, len(self._jobs) - KEPT_JOBS)]:
                del self._jobs[job.job_id]
            folders = sorted(self._root.iterdir(), key=lambda folder: folder.stat().st_mtime)
            for folder in folders[:-KEPT_JOBS]:
                if folder.name not in self._jobs:
                    shutil.rmtree(folder)


def _audio_resolver(root: Path | None) -> Callable[[str], Path]:
    def resolve(written: str) -> Path:
        if root is None:
            raise AudioRejected(f"The audio file “{written}” can't be used here.")
        return root / written

    return resolve
