"""The engine of a shared studio as one visitor may use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from studio.audio.clip import Clip
from studio.backends.base import FetchesWeights
from studio.backends.registry import offer_of
from studio.engine.engine import ManagedEngine
from studio.engine.job import Job
from studio.engine.model_manager import ModelState
from studio.errors import NotAllowed
from studio.sharing.quota import RateLimits
from studio.voices.speaker import Voice

OWNERS_ONLY = "Only the owner of this studio may do that."

MOST_RESIDENT = 2
"""Models with weights that stay in memory when visitors load others; more only while in use."""


class MeteredEngine:
    """A `ManagedEngine` that charges what it speaks to a visitor's limits, and downloads nothing.

    Only the owner may load and unload models, change the engine's settings, start it and close it.
    """

    def __init__(self, shared: ManagedEngine, rate_limits: RateLimits) -> None:
        self._shared = shared
        self._rate_limits = rate_limits
        self._jobs: list[Job] = []
        # What costs nothing is the shared engine's own.
        self.models, self.renderer, self.changes = shared.models, shared.renderer, shared.changes
        self.speeds, self.downloads = shared.speeds, shared.downloads
        self.focus, self.cancel, self.drain = shared.focus, shared.cancel, shared.drain
        self.report_render = shared.report_render

    @property
    def max_concurrency(self) -> int:
        return self._shared.max_concurrency

    @property
    def is_at_work(self) -> bool:
        """Whether a job of this visitor is running or queued."""
        return any(not job.events.closed for job in list(self._jobs))

    def submit(self, job: Job, *, listen: bool) -> None:
        """Submit a job, if the visitor's limits allow it.

        Raises:
            NotAllowed: Its model would have to be downloaded.
        """
        name = job.spec.backend_name
        self._check_fetched(name)
        self._rate_limits.spend_job(job)
        self._make_room(name)
        # A new list, because other threads read it.
        self._jobs = [one for one in self._jobs if not one.events.closed] + [job]
        self._shared.submit(job, listen=listen)

    def convert(
        self, backend_name: str, recording: Clip, voice: Voice, is_stopped: Callable[[], bool]
    ) -> Clip:
        """Convert a recording as the shared engine does."""
        self._check_fetched(backend_name)
        self._make_room(backend_name)
        return self._shared.convert(backend_name, recording, voice, is_stopped)

    def check_choice(self, name: str) -> None:
        """Check that the visitor may choose a backend."""
        self._check_fetched(name)
        self._shared.check_choice(name)

    def retire(self, name: str) -> None:
        """Do nothing: others may be using the model, and the idle check unloads it."""

    def start(self) -> None:
        """Do nothing: the owner's studio has started the engine."""

    def close(self) -> None:
        """Do nothing: others use the engine."""

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Leave it to the owner.

        Raises:
            NotAllowed: Always.
        """
        raise NotAllowed(OWNERS_ONLY)

    load = unload = cancel_load = set_idle_timeout = set_max_concurrency = remove_weights = refuse

    def _check_fetched(self, name: str) -> None:
        """Check that a backend can speak without a download.

        Raises:
            NotAllowed: It would have to be downloaded first.
        """
        manager = self.models.get_manager(name)
        if manager.state is ModelState.LOADED:
            return
        offer = offer_of(manager.backend)
        # A backend that can't run here at all says so when it is used.
        if offer.unavailable is None and offer.to_fetch is not None:
            raise NotAllowed(
                f"{offer.title} isn't on this studio yet, and only its owner can fetch it. Choose "
                "another voice engine."
            )

    def _make_room(self, name: str) -> None:
        """Before another model is loaded, unload those that have been idle for the longest."""
        wanted = self.models.get_manager(name)
        if wanted.state is ModelState.LOADED or not isinstance(wanted.backend, FetchesWeights):
            return
        known = [self.models.get_manager(one.name) for one in self.models.list_statuses()]
        loaded = [
            manager
            for manager in known
            if manager.state is ModelState.LOADED and isinstance(manager.backend, FetchesWeights)
        ]
        idle = sorted((one for one in loaded if not one.active), key=lambda one: one.last_used_s)
        for manager in idle[: max(0, len(loaded) - MOST_RESIDENT + 1)]:
            self._shared.retire(manager.backend.name)
