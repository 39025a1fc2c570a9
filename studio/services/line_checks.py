"""What the voices would make of single lines that may not be meant, told before they are spoken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from studio.backends.base import Backend, Capabilities, TellsLanguages
from studio.dialog.language import is_read_as_english
from studio.dialog.limits import SpeechLimits
from studio.dialog.line_text import Pronounce, normalize_spoken_text
from studio.dialog.model import Dialog
from studio.dialog.names import name_key
from studio.dialog.planning import FailedSegment, Segment, SpeechSegment, plan
from studio.errors import BadInput, SettingError
from studio.project import folder as layout
from studio.project.document import Document, LineKind, ProjectLine, check_audio_name
from studio.project.session import ProjectSession
from studio.services.studio import Studio
from studio.voices.cast import Cast


def check_lines(
    studio: Studio, session: ProjectSession, line_ids: Collection[str] | None = None
) -> dict[str, list[str]]:
    """What each line would meet: tags read aloud, settings and moods that the voice hasn't.

    Args:
        studio: Whose voices speak.
        session: The project.
        line_ids: The lines that are asked about; None for all.

    Returns:
        Sentences by line; a line that has none is left out.

    Raises:
        StorageFailed: The library of voices can't be read.
    """
    document = session.document
    cast = project_cast(studio, document)
    backend = speaking(studio, document)
    can = backend.capabilities
    lacking = backend.lacks if isinstance(backend, TellsLanguages) else None
    spoken = session.ground.pronouncing.spoken
    reader = _LineReader(can, can.limits(), cast, _first_lines(document), spoken, lacking)
    hints = {}
    for line in document:
        if line_ids is not None and line.line_id not in line_ids:
            continue
        if line.kind is LineKind.AUDIO:
            hints[line.line_id] = _missing(session, line)
        elif normalize_spoken_text(line.text):
            hints[line.line_id] = reader.hints(line)
    return {line_id: messages for line_id, messages in hints.items() if messages}


def project_cast(studio: Studio, document: Document) -> Cast:
    """Who speaks a project with which voice."""
    assigned = {name: one for name, one in document.cast.items() if one is not None}
    language = document.settings.language
    return Cast(studio.speakers, {}, assigned, document.first_names, language=language)


def speaking(studio: Studio, document: Document) -> Backend:
    """The backend that speaks a project."""
    models = studio.engine.models
    try:
        manager = models.manager(document.settings.backend or studio.backend_name)
    except SettingError:
        manager = models.manager(studio.backend_name)
    return manager.backend


def _first_lines(document: Document) -> frozenset[str]:
    """The first line of each speaker in each language, and the first that names none."""
    first: dict[tuple[str, str | None], str] = {}
    for line in document:
        if line.speaker is not None and normalize_spoken_text(line.text):
            first.setdefault((name_key(line.speaker), line.language), line.line_id)
    return frozenset(first.values())


def _missing(session: ProjectSession, line: ProjectLine) -> list[str]:
    """Whether the file of an audio line still has to be brought in."""
    view = session.view(line.line_id)
    if view is None or view.take is not None:
        return []
    try:
        path = session.folder.root / layout.AUDIO_FOLDER / check_audio_name(line.path or "")
    except BadInput as error:
        return [str(error)]
    if path.is_file():
        return []
    return [f"“{line.path}” isn't in this project yet. Choose the file, or drop it on this line."]


@dataclass(slots=True)
class _LineReader:
    """Plans lines one by one; what is asked of the library is asked once."""

    can: Capabilities
    limits: SpeechLimits
    cast: Cast
    first_lines: Collection[str]
    pronounce: Pronounce
    lacking: Callable[[str], str | None] | None = None
    moods: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    languages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lacks: dict[tuple[str, str | None], str | None] = field(default_factory=dict)

    def hints(self, line: ProjectLine) -> list[str]:
        planned = plan(
            Dialog((line.spoken(),)),
            self.limits,
            languages_of=self._languages,
            pronounce=self.pronounce,
        )
        failed = [one.message for one in planned.segments if isinstance(one, FailedSegment)]
        told = [notice.message for notice in planned.notices]
        return [
            *failed,
            *told,
            *self._voice_hints(planned.segments),
            *self._mood_hints(planned.segments),
            *self._language_hints(line),
            *self._lacking_hints(line),
        ]

    def _languages(self, name: str) -> tuple[str, ...]:
        if name not in self.languages:
            self.languages[name] = self.cast.languages_of(name)
        return self.languages[name]

    def _language_hints(self, line: ProjectLine) -> list[str]:
        """Once a speaker: a person who writes English need not say it line by line."""
        is_first = line.language is None and line.line_id in self.first_lines
        if not self.can.asks_language or not is_first:
            return []
        told = self._languages(line.speaker or "")
        if not is_read_as_english(line.text, told, self.limits):
            return []
        return [
            "Nobody says which language this speaker's lines are in, so they are read as English."
            " Choose the language of the script above the cast, or that of the voice or the line."
        ]

    def _lacking_hints(self, line: ProjectLine) -> list[str]:
        """What the voice lacks for a language; once a speaker."""
        if self.lacking is None or line.line_id not in self.first_lines:
            return []
        languages = (line.language, *self._languages(line.speaker or ""))
        language = next(filter(None, languages), None)
        lack = self.lacking(language) if language else None
        return [] if lack is None else [lack]

    def _voice_hints(self, segments: Iterable[Segment]) -> list[str]:
        """Why the speaker has no voice on this backend."""
        for segment in segments:
            if isinstance(segment, SpeechSegment):
                key = (name_key(segment.speaker), segment.mood)
                if key not in self.lacks:
                    kinds = self.can.voice_kinds()
                    self.lacks[key] = self.cast.lack(segment.speaker, segment.mood, kinds)
                lack = self.lacks[key]
                return [] if lack is None else [lack]
        return []

    def _mood_hints(self, segments: Iterable[Segment]) -> list[str]:
        for segment in segments:
            if isinstance(segment, SpeechSegment) and segment.mood is not None:
                key = (name_key(segment.speaker), name_key(segment.mood))
                if key not in self.moods:
                    told = self.cast.notices((segment,))
                    self.moods[key] = [notice.message for notice in told]
                return self.moods[key]
        return []
