"""Measures how fast a voice engine speaks on this machine as soon as somebody has loaded it."""

from __future__ import annotations

import threading

from studio.backends.base import Capabilities
from studio.dialog.model import Dialog, Speech
from studio.dialog.planning import plan
from studio.engine.engine import SpeechEngine, generate_job_id
from studio.engine.job import Job, JobSpec
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary

_MOST_LINES = 4
"""Enough to fill the cores of a plain machine, and over in seconds where speech is slow."""

_SENTENCE = "Nobody has been up here since the lamp went out."


class SpeedProbe:
    """Speaks a few lines that nobody hears, so that the renderer measures them. Thread-safe.

    They give way to any other line; those measure the speed as well.
    """

    def __init__(self, library: SpeakerLibrary, engine: SpeechEngine) -> None:
        self._library = library
        self._engine = engine
        self._lock = threading.Lock()  # guards the job
        self._job: Job | None = None

    def start(self, backend_name: str) -> None:
        """Begin to measure a loaded backend, and return at once.

        Does nothing where its speed is known, where lines are being spoken, or where it has no
        voice to speak in.
        """
        engine = self._engine
        if engine.speeds.get(backend_name) is not None or engine.renderer.in_flight:
            return
        capabilities = engine.models.get_manager(backend_name).backend.capabilities
        speaker = self._find_speaker(capabilities)
        if speaker is None:
            return
        n_lines = min(_MOST_LINES, capabilities.slots or engine.max_concurrency)
        lines = (Speech(speaker, _SENTENCE, None, line_number=1),) * n_lines
        cast = Cast(self._library, {})
        planned = plan(Dialog(lines), capabilities.limits(), seed=0)
        spec = JobSpec(planned, backend_name, cast, None, is_part=True, gives_way=True)
        job = Job(generate_job_id(), spec)
        with self._lock:
            self._job = job
            engine.submit(job, listen=False)

    def stop(self) -> None:
        """End a measurement, and wait until it uses its model no more."""
        with self._lock:
            job, self._job = self._job, None
        if job is not None:
            self._engine.cancel(job)
            for _ in job.events.follow():
                pass

    def _find_speaker(self, capabilities: Capabilities) -> str | None:
        if capabilities.builtin_voice or capabilities.presets:
            return "Voice"
        sampled = (one.name for one in self._library.list() if one.sample is not None)
        return next(sampled, None)
