"""Studio: the use cases that page, HTTP API and command line share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from studio.audio.encode import write_wav
from studio.backends.aliases import canonical_name
from studio.backends.base import Backend
from studio.dialog.model import Dialog
from studio.engine.engine import Engine
from studio.engine.job import Job
from studio.engine.model_manager import EvictionPolicy, LoadListener
from studio.engine.segment_synthesis import SaveClip
from studio.errors import ModelUnavailable
from studio.project.projects import Projects
from studio.services.previews import VoicePreviews
from studio.services.render_jobs import RenderJobs, RenderOptions
from studio.services.voice_library import VoiceLibrary
from studio.storage.workspace import DiskQuota, ensure_writable
from studio.voices.library import SpeakerLibrary
from studio.voices.sample_uploads import SampleUploads

__all__ = ["RenderOptions", "Studio", "StudioOptions"]


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


class Studio:
    """One workspace on an engine. Methods may be called from any thread but the engine's own."""

    def __init__(
        self, options: StudioOptions, engine: Engine, room: DiskQuota | None = None
    ) -> None:
        """Open a workspace; `start` brings the engine to life.

        Args:
            options: The workspace and who speaks.
            engine: Speaks.
            room: What it may take of the disk; None for all there is.

        Raises:
            StorageFailed: The workspace can't be made or written.
        """
        self.options = options
        self.engine = engine
        self.room = room or DiskQuota(options.workspace, None)
        self.speakers = SpeakerLibrary(options.workspace / "speakers")
        self._jobs = RenderJobs(options.workspace / "renders", engine, self.speakers)
        self.voices = VoiceLibrary(self.speakers, SampleUploads(options.workspace / "uploads"))
        self.booth = VoicePreviews(self.speakers, engine)
        self.projects = Projects(
            options.workspace / "projects", engine, self.speakers, lambda: self._backend_name
        )
        self._backend_name = options.backend_name
        self._backend_reason = options.backend_reason

    @classmethod
    def open(
        cls,
        options: StudioOptions,
        create_backend: Callable[[str], Backend],
        *,
        eviction: EvictionPolicy | None = None,
        max_concurrency: int = 3,
        save: SaveClip = write_wav,
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
            conditioning_folder=ensure_writable(options.workspace) / "conditioning",
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
        """Begin to render a dialog, as `RenderJobs.begin`."""
        return self._jobs.begin(dialog, options or RenderOptions(), self.backend_name)

    def job(self, job_id: str) -> Job:
        """A job by its id, as `RenderJobs.find`."""
        return self._jobs.find(job_id)

    def focus(self, job: Job, segment_idx: int) -> None:
        """Somebody listens to this job, here: it goes first from here on."""
        self.engine.focus(job, segment_idx)

    def cancel(self, job: Job) -> None:
        """Stop a job; returns when nothing more of it will start."""
        self.engine.cancel(job)

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
        name = canonical_name(name)
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

    def watch_load(self, listener: LoadListener) -> None:
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
