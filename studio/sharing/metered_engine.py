"""The shared engine as one visitor of a shared studio has it."""

from __future__ import annotations

from collections.abc import Callable

from studio.audio.clip import Clip
from studio.backends.base import FetchesWeights
from studio.backends.registry import offer_of
from studio.engine.engine import ManagedEngine
from studio.engine.job import Job
from studio.engine.model_manager import ModelState
from studio.engine.model_pool import ModelPool
from studio.engine.renderer import Renderer
from studio.errors import NotAllowed
from studio.sharing.quota import RateLimits
from studio.voices.speaker import Voice

OWNERS_ONLY = "Only the owner of this studio may do that."

MOST_RESIDENT = 2
"""Models with weights that visitors' choices keep in memory together, as far as they are idle."""


class MeteredEngine:
    """A `ManagedEngine` on which what is spoken counts, and nothing is downloaded for it.

    Models are the owner's to load and to unload; the engine is the owner's to start and to close.
    """

    def __init__(self, shared: ManagedEngine, rate_limits: RateLimits) -> None:
        """Put a visitor before an engine."""
        self._shared = shared
        self._rate_limits = rate_limits
        self._jobs: list[Job] = []

    @property
    def models(self) -> ModelPool:
        """The shared engine's."""
        return self._shared.models

    @property
    def renderer(self) -> Renderer:
        """The shared engine's."""
        return self._shared.renderer

    @property
    def max_concurrency(self) -> int:
        """Segments in flight on a backend without slots, as the owner chose."""
        return self._shared.max_concurrency

    @property
    def is_at_work(self) -> bool:
        """Whether anything of this visitor's is being spoken or waits to be."""
        return any(not job.events.closed for job in list(self._jobs))

    def submit(self, job: Job, *, listen: bool) -> None:
        """Let a job begin, if the visitor has that much left.

        Raises:
            LimitReached: Not now.
            NotAllowed: Its model isn't here yet.
        """
        name = job.spec.backend_name
        self._check_fetched(name)
        self._rate_limits.spend_job(job)
        self._make_room(name)
        # Replaced whole: others look at it meanwhile.
        self._jobs = [one for one in self._jobs if not one.events.closed] + [job]
        self._shared.submit(job, listen=listen)

    def convert(
        self, backend_name: str, recording: Clip, voice: Voice, is_stopped: Callable[[], bool]
    ) -> Clip:
        """As the shared engine does.

        Raises:
            NotAllowed: The model isn't here yet.
        """
        self._check_fetched(backend_name)
        self._make_room(backend_name)
        return self._shared.convert(backend_name, recording, voice, is_stopped)

    def focus(self, job: Job, segment_idx: int) -> None:
        """As the shared engine does."""
        self._shared.focus(job, segment_idx)

    def cancel(self, job: Job) -> None:
        """As the shared engine does."""
        self._shared.cancel(job)

    def report_render(self, wall_s: float, first_audio_s: float | None) -> None:
        """As the shared engine does."""
        self._shared.report_render(wall_s, first_audio_s)

    def drain(self) -> None:
        """As the shared engine does."""
        self._shared.drain()

    def check_choice(self, name: str) -> None:
        """See that a backend may be chosen.

        Raises:
            SettingError: There is no such backend.
            NotAllowed: It would have to be downloaded first.
            ModelUnavailable: It can't run here.
        """
        self._check_fetched(name)
        self._shared.check_choice(name)

    def retire(self, name: str) -> None:
        """Leave the model to the others; the idle check unloads it."""

    def start(self) -> None:
        """Do nothing: the owner's studio has started the engine."""

    def close(self) -> None:
        """Do nothing: others use the engine."""

    def load(self, name: str) -> None:
        """Refuse.

        Raises:
            NotAllowed: Always.
        """
        raise NotAllowed(OWNERS_ONLY)

    def cancel_load(self, name: str) -> bool:
        """Refuse, as `load`."""
        raise NotAllowed(OWNERS_ONLY)

    def unload(self, name: str) -> None:
        """Refuse, as `load`."""
        raise NotAllowed(OWNERS_ONLY)

    def set_idle_timeout(self, idle_timeout_s: float) -> None:
        """Refuse, as `load`."""
        raise NotAllowed(OWNERS_ONLY)

    def set_max_concurrency(self, max_concurrency: int) -> None:
        """Refuse, as `load`."""
        raise NotAllowed(OWNERS_ONLY)

    def _check_fetched(self, name: str) -> None:
        """See that a backend can speak without a download.

        Raises:
            SettingError: There is no such backend.
            NotAllowed: It would have to be downloaded first.
        """
        manager = self.models.get_manager(name)
        if manager.state is ModelState.LOADED:
            return
        offer = offer_of(manager.backend)
        # One that can't run here at all says so itself.
        if offer.unavailable is None and offer.to_fetch is not None:
            raise NotAllowed(
                f"{offer.title} isn't on this studio yet, and only its owner can fetch it. Choose "
                "another voice engine."
            )

    def _make_room(self, name: str) -> None:
        """Before another model is loaded, unload those that were not used for the longest."""
        wanted = self.models.get_manager(name)
        if wanted.state is ModelState.LOADED or not isinstance(wanted.backend, FetchesWeights):
            return
        loaded = [
            manager
            for manager in (
                self.models.get_manager(one.name) for one in self.models.list_statuses()
            )
            if manager.state is ModelState.LOADED and isinstance(manager.backend, FetchesWeights)
        ]
        idle = sorted((one for one in loaded if not one.active), key=lambda one: one.last_used_s)
        for manager in idle[: max(0, len(loaded) - MOST_RESIDENT + 1)]:
            self._shared.retire(manager.backend.name)
