"""What the voices would make of single lines that may not be meant, told before they are spoken."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from studio.dialog.model import Dialog
from studio.dialog.names import name_key
from studio.dialog.paragraph import heard
from studio.dialog.planning import FailedSegment, Limits, Segment, SpeechSegment, plan
from studio.errors import BadInput, SettingError
from studio.project import folder as places
from studio.project.checks import file_name
from studio.project.document import Document, Line, LineKind
from studio.project.session import Session
from studio.service import Studio
from studio.speakers.cast import Cast


def line_hints(
    studio: Studio, session: Session, line_ids: Collection[str] | None = None
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
    assigned = {name: one for name, one in document.cast.items() if one is not None}
    reader = _Reader(_limits(studio, document), Cast(studio.speakers, {}, assigned))
    hints = {}
    for line in document:
        if line_ids is not None and line.line_id not in line_ids:
            continue
        if line.kind is LineKind.AUDIO:
            hints[line.line_id] = _missing(session, line)
        elif heard(line.text):
            hints[line.line_id] = reader.hints(line)
    return {line_id: messages for line_id, messages in hints.items() if messages}


def _limits(studio: Studio, document: Document) -> Limits:
    """What the voice can take that speaks a project."""
    models = studio.engine.models
    try:
        manager = models.manager(document.settings.backend or studio.backend_name)
    except SettingError:
        manager = models.manager(studio.backend_name)
    return manager.backend.capabilities.limits()


def _missing(session: Session, line: Line) -> list[str]:
    """Whether the file of an audio line still has to be brought in."""
    view = session.view(line.line_id)
    if view is None or view.take is not None:
        return []
    try:
        path = session.folder.root / places.AUDIO / file_name(line.path or "")
    except BadInput as error:
        return [str(error)]
    if path.is_file():
        return []
    return [f"“{line.path}” isn't in this project yet. Choose the file, or drop it on this line."]


@dataclass(slots=True)
class _Reader:
    """Plans lines one by one; what is asked of the library is asked once."""

    limits: Limits
    cast: Cast
    moods: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def hints(self, line: Line) -> list[str]:
        planned = plan(Dialog((line.spoken(),)), self.limits)
        failed = [one.message for one in planned.segments if isinstance(one, FailedSegment)]
        told = [notice.message for notice in planned.notices]
        return [*failed, *told, *self._mood_hints(planned.segments)]

    def _mood_hints(self, segments: Iterable[Segment]) -> list[str]:
        for segment in segments:
            if isinstance(segment, SpeechSegment) and segment.mood is not None:
                key = (name_key(segment.speaker), name_key(segment.mood))
                if key not in self.moods:
                    told = self.cast.notices((segment,))
                    self.moods[key] = [notice.message for notice in told]
                return self.moods[key]
        return []
