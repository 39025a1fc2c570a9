"""Studio: the use cases that page, HTTP API and command line share."""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from studio.audio.encode import write_wav
from studio.backends.base import Backend
from studio.booth import Booth
from studio.dialog.model import Dialog
from studio.dialog.planning import plan
from studio.engine.engine import Engine
from studio.engine.job import Job, Order
from studio.engine.model_load import Listener
from studio.engine.model_manager import EvictionPolicy
from studio.engine.renderer import Save
from studio.errors import (
    AudioRejected,
    EngineBusy,
    ModelUnavailable,
    NotFound,
    StorageFailed,
)
from studio.project.projects import Projects
from studio.speakers.cast import Cast
from studio.speakers.library import SpeakerLibrary
from studio.speakers.sample import SampleReport, check_sample
from studio.speakers.speaker import Speaker
from studio.speakers.uploads import Uploads
from studio.voices import Voices

MAX_QUEUED_SEGMENTS = 50_000
KEPT_JOBS = 20
"""Finished jobs kept on disk and in memory; older ones make room."""


@dataclass(frozen=True, slots=True)
class StudioOptions:
    """Values the composition root read from settings and command line.

    Attributes:
        workspace: Folder of speakers and renders.
        backend_name: Who speaks when a render doesn't say.
        backend_names: All there are, the best first.
        backend_reason: Why `auto` chose this one and how to get a better one.
    """

    workspace: Path
    backend_name: str
    backend_names: tuple[str, ...] = ("draft",)
    backend_reason: str | None = None


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
    """

    backend_name: str | None = None
    seed: int | None = None
    voices: Mapping[str, Path] = field(default_factory=dict)
    assigned: Mapping[str, str] = field(default_factory=dict)
    audio_root: Path | None = None
    folder: Path | None = None
    listen: bool = False


class Studio:
    """One workspace on an engine. Methods may be called from any thread but the engine's own."""

    def __init__(self, options: StudioOptions, engine: Engine) -> None:
        """Open a workspace; `start` brings the engine to life.

        Raises:
            StorageFailed: The workspace can't be made or written.
        """
        self.options = options
        self.engine = engine
        self._renders = _writable(options.workspace / "renders")
        self.speakers = SpeakerLibrary(options.workspace / "speakers")
        self.voices = Voices(self.speakers, Uploads(options.workspace / "uploads"))
        self.booth = Booth(self.speakers, engine)
        self.projects = Projects(
            options.workspace / "projects", engine, self.speakers, lambda: self._backend_name
        )
        self._backend_name = options.backend_name
        self._backend_reason = options.backend_reason
        # Guards the table of jobs, which pages in several threads read and change.
        self._jobs_lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    @classmethod
    def open(
        cls,
        options: StudioOptions,
        create_backend: Callable[[str], Backend],
        *,
        eviction: EvictionPolicy | None = None,
        max_concurrency: int = 3,
        save: Save = write_wav,
    ) -> Studio:
        """A studio with an engine of its own.

        Args:
            options: The workspace and who speaks.
            create_backend: Makes a backend by name; raises `SettingError` for one unknown.
            eviction: When idle models are unloaded.
            max_concurrency: Segments in flight on a backend that has no slots of its own.
            save: Writes a clip to a file.

        Raises:
            StorageFailed: The workspace can't be made or written.
        """
        engine = Engine(
            create_backend,
            eviction or EvictionPolicy(),
            conditioning_folder=_writable(options.workspace) / "conditioning",
            max_concurrency=max_concurrency,
            save=save,
        )
        return cls(options, engine)

    def beside(self, workspace: Path) -> Studio:
        """Another workspace on the same engine, which sees nothing of this one.

        Raises:
            StorageFailed: The workspace can't be made or written.
        """
        return Studio(replace(self.options, workspace=workspace), self.engine)

    def start(self) -> None:
        """Start the engine."""
        self.engine.start()

    def close(self) -> None:
        """Close the projects, then the engine."""
        self.projects.close()
        self.engine.close()

    def __enter__(self) -> Studio:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    # What is spoken

    def render(self, dialog: Dialog, options: RenderOptions | None = None) -> Job:
        """Begin to render a dialog; the job goes on by itself.

        Raises:
            EngineBusy: Too much is waiting already.
            SettingError: There is no such backend.
        """
        options = options or RenderOptions()
        backend_name = options.backend_name or self.backend_name
        backend = self.engine.models.manager(backend_name).backend
        if self.engine.renderer.queued >= MAX_QUEUED_SEGMENTS:
            raise EngineBusy("The queue is full; try again in a minute.", retry_after_s=60)
        job_id = secrets.token_hex(8)
        cast = Cast(self.speakers, options.voices, options.assigned)
        planned = plan(dialog, backend.capabilities.limits(), seed=options.seed)
        order = Order(
            plan=replace(planned, notices=planned.notices + cast.notices(planned.segments)),
            backend_name=backend_name,
            cast=cast,
            folder=_writable(options.folder or self._renders / job_id),
            resolve_audio=_audio_resolver(options.audio_root),
        )
        job = Job(job_id, order)
        with self._jobs_lock:
            self._jobs[job_id] = job
        self._make_room()
        self.engine.submit(job, listen=options.listen)
        return job

    def job(self, job_id: str) -> Job:
        """A job by its id.

        Raises:
            NotFound: It never was, or made room for newer ones.
        """
        job = self._jobs.get(job_id)
        if job is None:
            raise NotFound("This render isn't there any more; start a new one.")
        return job

    def latest_job(self) -> Job | None:
        """The newest job."""
        with self._jobs_lock:
            return next(reversed(self._jobs.values()), None)

    def focus(self, job: Job, segment_idx: int) -> None:
        """Somebody listens to this job, here: it goes first from here on."""
        self.engine.focus(job, segment_idx)

    def cancel(self, job: Job) -> None:
        """Stop a job; returns when nothing more of it will start."""
        self.engine.cancel(job)

    # Who speaks

    def add_speaker(
        self, name: str, recording: Path | None = None, transcript: str | None = None
    ) -> tuple[Speaker, SampleReport | None]:
        """Put a speaker into the library, with a checked sample or without one.

        A speaker who is there already without a sample gets this one.

        Raises:
            NameRejected: The name can't be used.
            SpeakerExists: The library has the name, and with a sample or with nothing to add.
            AudioRejected: The recording can't be read.
            SampleRejected: It can be read but can't serve as a voice.
        """
        report = check_sample(recording) if recording is not None else None
        known = self.speakers.find(name)
        if report is None or known is None or known.sample is not None:
            speaker = self.speakers.add(name, sample=recording, transcript=transcript)
        else:
            speaker = self.speakers.set_sample(known.name, recording, transcript=transcript)
        return speaker, report

    # The models

    def backends(self) -> dict[str, Backend]:
        """All backends by name, the best first; some of them may not be able to run here."""
        return {
            name: self.engine.models.manager(name).backend for name in self.options.backend_names
        }

    @property
    def backend_name(self) -> str:
        """Who speaks when a render doesn't say."""
        return self._backend_name

    @property
    def backend_reason(self) -> str | None:
        """Why `auto` chose it and how to get a better one; None when a person chose it."""
        return self._backend_reason

    def choose_backend(self, name: str) -> None:
        """Let another backend speak from now on; the former's model is unloaded unless in use.

        Raises:
            SettingError: There is no such backend.
            ModelUnavailable: It can't run here.
        """
        reason = self.engine.models.manager(name).backend.unavailable()
        if reason is not None:
            raise ModelUnavailable(reason)
        former, self._backend_name, self._backend_reason = self._backend_name, name, None
        if former != name:
            self.engine.retire(former)

    def load_model(self, name: str | None = None) -> None:
        """Load a backend's model now.

        Raises:
            ModelUnavailable: It can't be loaded here.
            Cancelled: The load was stopped.
        """
        self.engine.load(name or self.backend_name)

    def cancel_load(self, name: str | None = None) -> bool:
        """Stop the load of a backend's model; whether there was one. What came is kept."""
        return self.engine.cancel_load(name or self.backend_name)

    def watch_load(self, listener: Listener) -> None:
        """Tell a listener how loads of the chosen model go, at most once a second."""
        self.engine.models.manager(self.backend_name).listeners.append(listener)

    def unload_model(self, name: str | None = None) -> None:
        """Unload a backend's model now.

        Raises:
            ModelInUse: It is speaking.
        """
        self.engine.unload(name or self.backend_name)

    def set_idle_timeout(self, idle_timeout_s: float) -> None:
        """Change after how many idle seconds models are unloaded; 0 keeps them."""
        self.engine.set_idle_timeout(idle_timeout_s)

    def _make_room(self) -> None:
        """Forget the oldest finished jobs, and remove folders that no job knows, all but a few."""
        # The folders under the lock, too: two threads would trip over what the other one removed.
        with self._jobs_lock:
            finished = [job for job in self._jobs.values() if job.events.closed]
            for job in finished[: max(0, len(self._jobs) - KEPT_JOBS)]:
                del self._jobs[job.job_id]
            folders = sorted(self._renders.iterdir(), key=lambda folder: folder.stat().st_mtime)
            for folder in folders[:-KEPT_JOBS]:
                if folder.name not in self._jobs:
                    shutil.rmtree(folder)


def _audio_resolver(root: Path | None) -> Callable[[str], Path]:
    def resolve(written: str) -> Path:
        if root is None:
            raise AudioRejected(f"The audio file “{written}” can't be used here.")
        return root / written

    return resolve


def _writable(folder: Path) -> Path:
    """Make a folder and see that files can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StorageFailed(
            f"The folder {folder} can't be written ({error.strerror}); choose another with "
            "--workspace or TABLEREAD_WORKSPACE."
        ) from error
    return folder
