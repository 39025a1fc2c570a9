"""What a project's lines depend on outside of it: backend, voices and their cast."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from studio.backends.base import Backend
from studio.dialog.model import Dialog, Notice
from studio.dialog.planning import plan
from studio.dialog.pronouncing import Pronouncing
from studio.engine.engine import Engine
from studio.errors import SettingError
from studio.project.document import Document
from studio.project.voices import Ground, VoiceBook, ground_of
from studio.speakers.cast import Cast
from studio.speakers.library import SpeakerLibrary


@dataclass(frozen=True, slots=True)
class Tools:
    """What all sessions share.

    Attributes:
        backend_name: Who speaks where a project doesn't say.
        threads: Where takes are finished, away from the engine's loop.
        now_s: The time of day in seconds since 1970.
    """

    engine: Engine
    library: SpeakerLibrary
    backend_name: Callable[[], str]
    threads: Executor
    now_s: Callable[[], float] = time.time


class Surroundings:
    """Looks around when asked, and remembers what it saw. Under the session's lock."""

    def __init__(self, tools: Tools) -> None:
        """Nothing was seen yet."""
        self._tools = tools
        self._voices = VoiceBook(tools.library)
        self._ground: Ground | None = None
        self._cast: tuple[tuple[object, ...], Cast] | None = None
        self.seen_s = 0.0

    def ground(self, document: Document) -> Ground:
        """What was seen last."""
        return self._ground or self.look(document)[1]

    def covers(self, document: Document) -> bool:
        """Whether what was seen last is enough for a document."""
        return self._ground is not None and self._ground.covers(document)

    def look(self, document: Document) -> tuple[Ground | None, Ground]:
        """See what there is now.

        Returns:
            What was seen before, and now; the same object where nothing changed.

        Raises:
            StorageFailed: The library can't be read.
        """
        former, ground = self._ground, ground_of(document, self._voices, self._backend(document))
        self.seen_s = time.monotonic()
        if former == ground:
            return former, former
        self._ground = ground
        return former, ground

    def check_backend(self, name: str | None) -> None:
        """See that there is such a backend; None is the studio's choice.

        Raises:
            SettingError: There isn't.
        """
        if name is not None:
            self._tools.engine.models.manager(name)

    def speaker_of(self, name: str) -> str | None:
        """The id of the library's speaker of a name, None when there is none.

        Raises:
            StorageFailed: The library can't be read.
        """
        speaker = self._tools.library.find(name)
        return speaker.speaker_id if speaker is not None else None

    def cast(self, document: Document) -> Cast:
        """Who speaks with which voice; kept as long as the document's cast, with its samples."""
        first_names, language = document.first_names, document.settings.language
        made_of = (document.cast, first_names, language)
        if self._cast is None or any(
            one is not other for one, other in zip(self._cast[0], made_of, strict=True)
        ):
            assigned = {name: one for name, one in document.cast.items() if one is not None}
            cast = Cast(self._tools.library, {}, assigned, first_names, language=language)
            self._cast = (made_of, cast)
        return self._cast[1]

    def notices(self, document: Document, dialog: Dialog) -> tuple[Notice, ...]:
        """What the voices would make of a dialog that may not be meant, by the lines' numbers.

        Raises:
            StorageFailed: The library can't be read.
        """
        can, cast = self._backend(document).capabilities, self.cast(document)
        spoken = Pronouncing(document.pronunciations.values()).spoken
        planned = plan(dialog, can.limits(), languages_of=cast.languages_of, pronounce=spoken)
        return planned.notices + cast.notices(planned.segments, can.voice_kinds())

    def _backend(self, document: Document) -> Backend:
        """Who speaks; where a project names a backend that isn't there, the studio's own."""
        models = self._tools.engine.models
        try:
            return models.manager(document.settings.backend or self._tools.backend_name()).backend
        except SettingError:
            return models.manager(self._tools.backend_name()).backend
