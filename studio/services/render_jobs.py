"""Renders of whole dialogs, for the command line and other programs."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from studio.backends.base import canonical_name
from studio.backends.registry import describe_engines
from studio.backends.voice_names import VoiceNames
from studio.dialog.gaps import Gaps
from studio.dialog.model import Dialog, Notice, Speech, name_key
from studio.dialog.planning import plan
from studio.dialog.pronunciation import IN_WORDS, PronunciationRules
from studio.engine.engine import QueueLimit, Render, SpeechEngine, generate_job_id
from studio.engine.job import Job, JobSpec, refuse_audio
from studio.project.characters import Character, gaps_before, inherit_in_dialog
from studio.services.misread_text import find_misread_text
from studio.storage.file_cache import stat_or_none
from studio.storage.workspace import ensure_writable
from studio.voices.automatic import name_voices
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary

QUEUE_LIMIT = QueueLimit(50_000, "The queue is full; try again in a minute.", retry_after_s=60)
LOCK_FILE = ".lock"
KEPT_JOBS = 20
"""How many renders' folders stay on disk; the oldest finished ones are deleted."""


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How one dialog is rendered.

    Attributes:
        backend_name: None for the studio's own choice.
        seed: For lines without a seed of their own.
        voices: Samples, or the names of voices, to use instead of the library's, by speaker name.
        audio_root: Folder that paths of audio lines are relative to; None refuses audio lines.
        folder: Folder of the segments only; None for one in the workspace.
        listen: Whether somebody is waiting to hear it, so that it goes before other jobs.
        tries: As in `JobSpec`.
        characters: Settings of characters by the name's key, as in a project.
        rules: By which texts are spoken.
        gap_s: The usual gap between lines.
    """

    backend_name: str | None = None
    seed: int | None = None
    voices: Mapping[str, Path | str] = field(default_factory=dict)
    audio_root: Path | None = None
    folder: Path | None = None
    listen: bool = False
    tries: int = 1
    rules: PronunciationRules = IN_WORDS
    characters: Mapping[str, Character] = field(default_factory=dict)
    gap_s: float = 0.0


class RenderJobs:
    """The renders of one workspace; safe from any thread but the engine's own."""

    def __init__(self, root: Path, engine: SpeechEngine, library: SpeakerLibrary) -> None:
        self._root = ensure_writable(root)
        self._engine = engine
        self._library = library
        # Guards the running renders and the folders, or two threads would delete the same one.
        self._lock = threading.Lock()
        self._running: dict[Render, FileLock] = {}

    def begin(self, dialog: Dialog, options: RenderOptions, backend_name: str) -> Job:
        """Start to render a dialog; the job runs on the engine.

        Args:
            dialog: The lines.
            options: How to render them.
            backend_name: The backend, if the options don't name one.
        """
        name = canonical_name(options.backend_name or backend_name)
        backend = self._engine.models.get_manager(name).backend
        capabilities = backend.capabilities
        QUEUE_LIMIT.check(self._engine)
        names = VoiceNames(self._library, backend)
        samples = {key: one for key, one in options.voices.items() if isinstance(one, Path)}
        assigned, named_notices = names.cast(dialog)
        assigned |= {
            name_key(key): names.get(one)
            for key, one in options.voices.items()
            if isinstance(one, str)
        }
        engines = describe_engines(backend)
        first_names = name_voices(dialog, engines, self._library, {*samples, *assigned})
        cast = Cast(self._library, samples, assigned, first_names)
        dialog = inherit_in_dialog(dialog, options.characters, cast)
        planned = plan(
            dialog,
            capabilities.limits(),
            seed=options.seed,
            languages_of=cast.list_languages,
            moods_of=cast.list_moods,
            pronounce=options.rules.spoken,
        ).with_gaps(Gaps(options.gap_s, gaps_before(options.characters)), dialog)
        voice_notices = cast.find_notices(planned.segments, capabilities.voice_kinds())
        lines = ((one.speaker, one.text, one.language) for one in dialog if isinstance(one, Speech))
        if misread := find_misread_text(lines, cast.list_languages, backend):
            voice_notices = (Notice(misread.describe(backend.title)), *voice_notices)
        job_id = generate_job_id()
        folder = ensure_writable(options.folder or self._root / job_id)
        spec = JobSpec(
            plan=replace(planned, notices=(*named_notices, *planned.notices, *voice_notices)),
            backend_name=name,
            cast=cast,
            folder=folder,
            resolve_audio=options.audio_root.joinpath if options.audio_root else refuse_audio,
            tries=options.tries,
            levels_db={key: one.level_db for key, one in options.characters.items()},
            pans={key: one.pan for key, one in options.characters.items()},
            name_automatic=partial(capabilities.name_automatic, language=None),
        )
        # Held while it runs, so that no process takes the folder for an old one.
        lock = FileLock(folder / LOCK_FILE, timeout=0, thread_local=False)
        if options.folder is None:
            lock.acquire()
        render = Render(self._engine, spec, job_id=job_id)
        try:
            render.start(listen=options.listen)
        except BaseException:
            lock.release()
            raise
        self._make_room(render, lock)
        return render.job

    def _make_room(self, begun: Render, lock: FileLock) -> None:
        """Delete all but the latest folders, except those of running renders of any process."""
        with self._lock:
            for one in [one for one in self._running if one.is_over]:
                self._running.pop(one).release()
            self._running[begun] = lock
            for folder in _list_by_time(self._root)[:-KEPT_JOBS]:
                with suppress(Timeout, OSError), FileLock(folder / LOCK_FILE, timeout=0):
                    shutil.rmtree(folder)


def _list_by_time(root: Path) -> list[Path]:
    """The folders in a folder, the latest last; others may be deleting some."""
    found = ((stat_or_none(path), path) for path in root.iterdir())
    times = [(status.st_mtime, path) for status, path in found if status is not None]
    return [path for _, path in sorted(times)]
