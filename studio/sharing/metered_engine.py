"""The shared engine as one visitor of a shared studio has it."""

from __future__ import annotations

from collections.abc import Callable

from studio.audio.clip import Clip
from studio.backends.base import FetchesWeights
from studio.backends.registry import offer_of
from studio.engine.engine import Engine
from studio.engine.job import Job
from studio.engine.model_manager import ModelState
from studio.errors import NotAllowed
from studio.sharing.quota import RateLimits
from studio.voices.speaker import Voice

MOST_RESIDENT = 2
"""Models with weights that visitors' choices keep in memory together, as far as they are idle."""


class MeteredEngine(Engine):
    """What is spoken counts, and nothing is downloaded for it.

    It has all of the shared engine's parts and starts none of its own.
    """

    def __init__(self, shared: Engine, allowance: RateLimits) -> None:
        """Put a visitor before an engine."""
        self.__dict__.update(shared.__dict__)
        self._shared = shared
        self._allowance = allowance
        self._jobs: list[Job] = []

    @property
    def max_concurrency(self) -> int:
        """Segments in flight on a backend without slots, as the owner chose."""
        return self._shared.max_concurrency

    @max_concurrency.setter
    def max_concurrency(self, segments: int) -> None:
        self._shared.max_concurrency = segments

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
        name = job.order.backend_name
        self.check_ready(name)
        self._allowance.spend_job(job)
        self._make_room(name)
        # Replaced whole: others look at it meanwhile.
        self._jobs = [one for one in self._jobs if not one.events.closed] + [job]
        self._shared.submit(job, listen=listen)

    def convert(
        self, backend_name: str, recording: Clip, voice: Voice, stopped: Callable[[], bool]
    ) -> Clip:
        """As the shared engine does.

        Raises:
            NotAllowed: The model isn't here yet.
        """
        self.check_ready(backend_name)
        self._make_room(backend_name)
        return self._shared.convert(backend_name, recording, voice, stopped)

    def check_ready(self, name: str) -> None:
        """See that a backend can speak without a download.

        Raises:
            SettingError: There is no such backend.
            NotAllowed: It would have to be downloaded first.
        """
        manager = self.models.manager(name)
        if manager.state is ModelState.LOADED:
            return
        offer = offer_of(manager.backend)
        # One that can't run here at all says so itself.
        if offer.unavailable is None and offer.to_fetch is not None:
            raise NotAllowed(
                f"{offer.title} isn't on this studio yet, and only its owner can fetch it. Choose "
                "another voice engine."
            )

    def retire(self, name: str) -> None:
        """Leave the model to the others; the idle check unloads it."""

    def _make_room(self, name: str) -> None:
        """Before another model is loaded, unload those that were not used for the longest."""
        wanted = self.models.manager(name)
        if wanted.state is ModelState.LOADED or not isinstance(wanted.backend, FetchesWeights):
            return
        loaded = [
            manager
            for manager in (self.models.manager(one.name) for one in self.models.known())
            if manager.state is ModelState.LOADED and isinstance(manager.backend, FetchesWeights)
        ]
        idle = sorted((one for one in loaded if not one.active), key=lambda one: one.last_used_s)
        for manager in idle[: max(0, len(loaded) - MOST_RESIDENT + 1)]:
            self._shared.retire(manager.backend.name)
