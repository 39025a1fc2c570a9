"""What a line's audio depends on beside its text: whose voice, on which backend."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from studio.backends.base import Backend
from studio.dialog.language import told_language
from studio.dialog.limits import Limits
from studio.dialog.model import ParamValue
from studio.dialog.names import name_key
from studio.dialog.paragraph import heard
from studio.dialog.planning import MOOD
from studio.dialog.pronouncing import Pronouncing
from studio.project.document import Document, Line, LineKind, ProjectSettings
from studio.speakers.library import SpeakerLibrary
from studio.speakers.speaker import Speaker

_Stamp = tuple[int, int, int]

_ONE_FOR_ALL = ("built-in",)
"""The mark of a backend's only built-in voice, whatever its speaker is called."""


@dataclass(frozen=True, slots=True)
class VoiceMark:
    """A speaker's voice in brief.

    Attributes:
        label: For people.
        kind: "sample", "preset", "described" or "built-in".
        mark: The same for voices that sound the same, and for no others.
        colour: Of the library's speaker, None for one that isn't in it.
        language: Of the library's speaker, when known.
        moods: Marks of further samples, by the key of their mood.
    """

    label: str
    kind: str
    mark: tuple[str, ...]
    colour: str | None = None
    language: str | None = None
    moods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def mark_of(self, mood: ParamValue | None) -> tuple[str, ...]:
        """The mark of the sample that a mood chooses; as `Cast.voice_of` chooses it."""
        return self.moods.get(name_key(str(mood or "").strip()), self.mark)


class VoiceBook:
    """The voices of a document as they are now."""

    def __init__(self, library: SpeakerLibrary) -> None:
        """Look voices up in a library."""
        self._library = library
        self._hashes: dict[Path, tuple[_Stamp, str]] = {}

    def of_document(
        self, document: Document, *, by_name: bool, instructed: bool = False
    ) -> dict[str, VoiceMark]:
        """The voice of each name in a document, by its key; reads the library once.

        Args:
            document: Who speaks, and for whom.
            by_name: Whether a built-in voice is chosen by its speaker's name.
            instructed: Whether words beside a backend's own voice change how it speaks.

        Raises:
            StorageFailed: The library can't be read.
        """
        speakers = self._library.list()
        by_key = {name_key(speaker.name): speaker for speaker in speakers}
        by_id = {speaker.speaker_id: speaker for speaker in speakers}
        assigned = {name_key(name): one for name, one in document.cast.items() if one is not None}
        first_names = {name_key(name): first for name, first in document.first_names.items()}
        marks: dict[str, VoiceMark] = {}
        for key, name in _names(document).items():
            speaker = by_id.get(assigned[key]) if key in assigned else by_key.get(key)
            if speaker is not None:
                marks[key] = self._mark(speaker, by_name=by_name, instructed=instructed)
            elif key in assigned:
                marks[key] = VoiceMark(name, "built-in", ("gone", assigned[key]))
            else:
                mark = _built_in(first_names.get(key, name), by_name=by_name)
                marks[key] = VoiceMark(name, "built-in", mark)
        return marks

    def _mark(self, speaker: Speaker, *, by_name: bool, instructed: bool) -> VoiceMark:
        kind, mark = self._main(speaker, by_name=by_name)
        if instructed and kind == "preset" and speaker.description:
            mark = (*mark, speaker.description)
        moods = {
            name_key(one.mood): ("sample", self._hash(one.path), one.transcript or "")
            for one in speaker.moods
        }
        return VoiceMark(speaker.name, kind, mark, speaker.colour, speaker.language, moods)

    def _main(self, speaker: Speaker, *, by_name: bool) -> tuple[str, tuple[str, ...]]:
        """The kind and the mark of the voice that lines without a mood have."""
        if speaker.sample is not None:
            return "sample", ("sample", self._hash(speaker.sample), speaker.transcript or "")
        if speaker.preset is not None:
            return "preset", ("preset", speaker.preset)
        if speaker.description is not None:
            return "described", ("described", speaker.description)
        return "built-in", _built_in(speaker.chosen_by, by_name=by_name)

    def _hash(self, path: Path) -> str:
        """Of a sample's bytes, read once for each state of the file; "" when it is missing."""
        try:
            status = path.stat()
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            known = self._hashes.get(path)
            if known is None or known[0] != stamp:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                known = self._hashes[path] = (stamp, digest)
            return known[1]
        except OSError:
            return ""


@dataclass(frozen=True, slots=True)
class Ground:
    """What holds for all lines at one moment; equal grounds give equal keys.

    Attributes:
        voices: By the key of a name.
        backend: Name and revision.
        defaults: The backend's parameters, for lines that don't name them.
        limits: What the backend can take.
        pronouncing: What a voice hears of a text.
    """

    voices: Mapping[str, VoiceMark]
    backend: tuple[str, str]
    defaults: Mapping[str, ParamValue]
    cast: Mapping[str, str | None]
    first_names: Mapping[str, str]
    settings: ProjectSettings
    limits: Limits
    pronouncing: Pronouncing

    def covers(self, document: Document) -> bool:
        """Whether it was made of this cast and these settings, and knows every name."""
        return (
            self.cast == document.cast
            and self.first_names == document.first_names
            and self.settings == document.settings
            and self.pronouncing == Pronouncing(document.pronunciations.values())
            and all(
                line.speaker is None or name_key(line.speaker) in self.voices
                for line in document.lines.values()
            )
        )

    def agrees(self, other: Ground, line: Line) -> bool:
        """Whether a line has the same key on both."""
        if (self.backend, self.defaults) != (other.backend, other.defaults):
            return False
        if self.language(line) != other.language(line):
            return False
        if self.pronouncing != other.pronouncing and self.said(line) != other.said(line):
            return False
        return line.speaker is None or self.voice(line.speaker) == other.voice(line.speaker)

    def voice(self, name: str) -> VoiceMark | None:
        """The voice of a name; None when no line has that name."""
        return self.voices.get(name_key(name))

    def voice_label(self, line: Line) -> str:
        """Who speaks a line, in words."""
        voice = self.voice(line.speaker or "")
        return voice.label if voice is not None else ""

    def said(self, line: Line) -> str:
        """What a voice hears of a line's text."""
        return self.pronouncing.spoken(heard(line.text))

    def said_otherwise(self, line: Line) -> str | None:
        """The same where it isn't what is written; None where it is."""
        said = self.said(line) if self.pronouncing else line.text
        return None if said in (line.text, heard(line.text)) else said

    def language(self, line: Line) -> str | None:
        """What a line is spoken in that doesn't say; None where the backend chooses that itself."""
        if line.kind is not LineKind.SPEECH or line.language is not None:
            return None
        voice = self.voice(line.speaker or "")
        told = (voice.language if voice is not None else None, self.settings.language)
        return told_language(line.text, filter(None, told), self.limits)

    def key(self, line: Line) -> str:
        """The digest of all that a line's audio depends on, but for the seed."""
        if line.kind is not LineKind.SPEECH:
            return _digest([line.kind, line.path, line.duration_s])
        return self._key(line, self._mark_of(line))

    def former_key(self, line: Line, named: str) -> str | None:
        """The key of a line by that name while a backend's only built-in voice went by it.

        Takes of that time keep fitting. None where no key was ever made so.
        """
        if line.kind is not LineKind.SPEECH or self._mark_of(line) != _ONE_FOR_ALL:
            return None
        return self._key(line, _built_in(named, by_name=True))

    def _mark_of(self, line: Line) -> tuple[str | None, ...]:
        voice = self.voice(line.speaker or "")
        return voice.mark_of(line.params.get(MOOD)) if voice else ("unknown", line.speaker)

    def _key(self, line: Line, mark: tuple[str | None, ...]) -> str:
        # The mood has its say in the mark alone, so that one without a sample changes nothing.
        others = {name: value for name, value in line.params.items() if name != MOOD}
        params = _numbers({**self.defaults, **others})
        language = line.language or self.language(line)
        return _digest([*self.backend, mark, self.said(line), language, params])


def ground_of(document: Document, book: VoiceBook, backend: Backend) -> Ground:
    """The ground of a document's lines.

    Raises:
        StorageFailed: The library can't be read.
    """
    can = backend.capabilities
    return Ground(
        book.of_document(document, by_name=can.builtin_by_name, instructed=can.instructions),
        (backend.name, backend.revision),
        {param.name: param.default for param in can.params},
        document.cast,
        document.first_names,
        document.settings,
        can.limits(),
        Pronouncing(document.pronunciations.values()),
    )


def stable_seed(line: Line, settings_seed: int | None) -> int:
    """The seed of a line that is rendered without being asked for a new one."""
    if line.seed is not None:
        return line.seed
    return settings_seed if settings_seed is not None else int(line.line_id, 16) % 2**31


def _names(document: Document) -> dict[str, str]:
    """Names as they are written first, by key."""
    names: dict[str, str] = {}
    for line in document:
        if line.speaker is not None:
            names.setdefault(name_key(line.speaker), line.speaker)
    return names


def _built_in(name: str, *, by_name: bool) -> tuple[str, ...]:
    return ("built-in", name_key(name)) if by_name else _ONE_FOR_ALL


def _digest(parts: list[object]) -> str:
    written = json.dumps(parts, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(written.encode("ascii")).hexdigest()[:32]


def _numbers(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """1 and 1.0 are the same setting."""
    return {
        name: float(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in params.items()
    }
