"""What a line's audio depends on besides its text: voices, backend, defaults and cast."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from studio.backends.base import (
    SPEED,
    Backend,
    Capabilities,
    canonical_name,
)
from studio.backends.registry import describe_engines
from studio.backends.voice_names import VoiceNames
from studio.dialog.directions import directed_mood
from studio.dialog.model import (
    Dialog,
    Notice,
    ParamValue,
    SpeechLimits,
    name_key,
    normalize_spoken_text,
    resolve_language,
)
from studio.dialog.planning import (
    AS_WRITTEN,
    LINE_ID,
    MOOD,
    NO_SETTINGS,
    VOICE,
    PlanCheck,
    SpeechSegment,
    split_plain_lines,
)
from studio.dialog.pronunciation import PronunciationRules, build_spoken_words, find_spoken_language
from studio.dialog.text_view import TextView
from studio.engine.engine import SpeechEngine
from studio.errors import NotFound, SettingError
from studio.hearing.word_check import CheckQueue, WordChecker
from studio.project.characters import PLAIN, Character, inherit_params
from studio.project.document import (
    Document,
    LineKind,
    ProjectLine,
    ProjectSettings,
)
from studio.project.draft import MAX_CAST_NAMES, DocumentDraft
from studio.project.word_timing import WordTimer
from studio.storage.disk import hash_file
from studio.storage.file_cache import FileCache
from studio.voices.automatic import choose_voice_names, list_about
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import EngineVoice, Speaker

_SINGLE_BUILTIN = ("built-in",)
"""The digest of a backend's only built-in voice, whatever its speaker's name."""


@dataclass(frozen=True, slots=True)
class VoiceFingerprint:
    """A digest of a speaker's voice.

    Attributes:
        label: Its name for people.
        kind: "sample", "preset", "described" or "built-in".
        title: What the voice itself is called: of the library, of the engine, or automatic.
        digest: Equal for voices that sound the same, and only for those.
        colour: Of the library's speaker; None if it isn't in the library.
        language: Of the library's speaker, if known.
        moods: Digests of further samples, by the key of their mood.
    """

    label: str
    kind: str
    digest: tuple[str, ...]
    colour: str | None = None
    language: str | None = None
    moods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    title: str = ""

    def select_digest(self, mood: ParamValue | None) -> tuple[str, ...]:
        """The digest of the sample that a mood chooses, as `Cast` chooses it."""
        return self.moods.get(name_key(str(mood or "").strip()), self.digest)


class VoiceFingerprints:
    """Computes the digests of a document's current voices."""

    def __init__(self, library: SpeakerLibrary) -> None:
        self._library = library
        self._hashes: FileCache[str] = FileCache()

    def compute(
        self, document: Document, can: Capabilities, engine_voices: Mapping[str, EngineVoice]
    ) -> dict[str, VoiceFingerprint]:
        """The voice of each name in a document, by the name's key; reads the library once.

        Args:
            document: Has the speakers and the cast.
            can: Of the backend.
            engine_voices: Its own voices that are chosen for names, by their keys.
        """
        by_name, instructed = can.builtin_by_name, can.instructions
        speakers = self._library.list()
        by_key = {name_key(speaker.name): speaker for speaker in speakers}
        by_id = {speaker.speaker_id: speaker for speaker in speakers}
        assigned = {name_key(name): one for name, one in document.cast.items() if one is not None}
        first_names = {name_key(name): first for name, first in document.first_names.items()}
        marks: dict[str, VoiceFingerprint] = {}
        for key, name in _list_names(document).items():
            speaker = by_id.get(assigned[key]) if key in assigned else by_key.get(key)
            own = engine_voices.get(key) if key not in assigned else None
            if own is not None:
                marks[key] = VoiceFingerprint(
                    name,
                    "preset",
                    ("engine's voice", own.preset_id),
                    language=own.language,
                    title=own.label,
                )
            elif speaker is not None:
                marks[key] = self._mark(speaker, by_name=by_name, instructed=instructed)
            elif key in assigned:
                marks[key] = VoiceFingerprint(name, "built-in", ("gone", assigned[key]))
            else:
                chosen = first_names.get(key, name)
                mark = _fingerprint_builtin(chosen, by_name=by_name)
                title = can.name_automatic(chosen, document.settings.language)
                marks[key] = VoiceFingerprint(name, "built-in", mark, title=title)
        return marks

    def _mark(self, speaker: Speaker, *, by_name: bool, instructed: bool) -> VoiceFingerprint:
        kind, mark = self._main(speaker, by_name=by_name)
        if instructed and kind == "preset" and speaker.description:
            mark = (*mark, speaker.description)
        moods = {
            name_key(one.mood): ("sample", self._hash(one.path), one.transcript or "")
            for one in speaker.moods
        }
        return VoiceFingerprint(
            speaker.name, kind, mark, speaker.colour, speaker.language, moods, speaker.name
        )

    def _main(self, speaker: Speaker, *, by_name: bool) -> tuple[str, tuple[str, ...]]:
        """The kind and the digest of the voice of lines without a mood."""
        if speaker.sample is not None:
            return "sample", ("sample", self._hash(speaker.sample), speaker.transcript or "")
        if speaker.preset is not None:
            return "preset", ("preset", speaker.preset)
        if speaker.description is not None:
            return "described", ("described", speaker.description)
        return "built-in", _fingerprint_builtin(speaker.builtin_name, by_name=by_name)

    def _hash(self, path: Path) -> str:
        """The digest of a sample's bytes, read once for each state of the file; "" if missing."""
        try:
            return self._hashes.get(path, hash_file)
        except OSError:
            return ""


@dataclass(frozen=True, slots=True)
class RenderContext:
    """A snapshot of what all lines depend on; equal contexts give equal keys.

    Attributes:
        voices: By the key of the speaker's name.
        backend: Name and revision.
        defaults: The backend's parameters, for lines that don't set them.
        limits: The backend's.
        pronouncing: How the project's lines are spoken.
        characters: Their settings, by the name's key.
    """

    voices: Mapping[str, VoiceFingerprint]
    backend: tuple[str, str]
    defaults: Mapping[str, ParamValue]
    cast: Mapping[str, str | None]
    first_names: Mapping[str, str]
    settings: ProjectSettings
    limits: SpeechLimits
    pronouncing: PronunciationRules
    characters: Mapping[str, Character]

    def is_current_for(self, document: Document) -> bool:
        """Whether it has the document's cast, settings and names."""
        return (
            self.cast == document.cast
            and self.first_names == document.first_names
            and self.settings == document.settings
            and self.characters == document.characters
            and self.pronouncing == read_pronouncing(document)
            and all(name_key(name) in self.voices for name in document.count_speakers())
        )

    def find_changed(self, other: RenderContext, lines: Iterable[ProjectLine]) -> Iterator[str]:
        """The ids of those lines that have another key in another context."""
        is_other = (self.backend, self.defaults) != (other.backend, other.defaults)
        is_respelled = self.pronouncing != other.pronouncing
        is_respelled |= self.settings.language != other.settings.language

        @cache
        def is_revoiced(name: str) -> bool:
            key = name_key(name)
            if self.voices.get(key) != other.voices.get(key):
                return True
            own, others = self.characters.get(key, PLAIN), other.characters.get(key, PLAIN)
            return own.params != others.params

        for line in lines:
            if (
                is_other
                or (line.speaker is not None and is_revoiced(line.speaker))
                or self.resolve_language(line) != other.resolve_language(line)
                or (is_respelled and self.build_spoken_text(line) != other.build_spoken_text(line))
            ):
                yield line.line_id

    def inherit(self, line: ProjectLine) -> ProjectLine:
        """A line with what it has of its character, as `inherit_params`."""
        if line.speaker is None or not self.characters:
            return line
        character = self.characters.get(name_key(line.speaker))
        if character is None or not character.params:
            return line
        voice = self.find_voice(line.speaker)
        moods = voice.moods if voice is not None else {}
        return replace(line, params=inherit_params(line.params, line.text, character, moods))

    def find_voice(self, name: str) -> VoiceFingerprint | None:
        """The voice of a name; None if no line has that name."""
        return self.voices.get(name_key(name))

    def voice_label(self, line: ProjectLine) -> str:
        """The name of a line's voice, for people."""
        voice = self.find_voice(line.speaker or "")
        return voice.label if voice is not None else ""

    def build_spoken_text(self, line: ProjectLine) -> str:
        """The spoken text of a line."""
        return self.pronounce(line, normalize_spoken_text(line.text))

    def build_spoken_words(self, line: ProjectLine, text: str) -> TextView:
        """What a voice says of a line's or its take's text: without stage directions."""
        return build_spoken_words(text, self.pronouncing, self.find_spoken_language(line))

    def pronounce(self, line: ProjectLine, text: str, _: str | None = None) -> str:
        """A text of a line as it is spoken, in the words of the line's language."""
        return self.pronouncing.spoken(text, self.find_spoken_language(line))

    def find_spoken_language(self, line: ProjectLine) -> str | None:
        """The language in whose words a line is said; None if it is said as it is written."""
        if not self.pronouncing.in_words or line.params.get(AS_WRITTEN):
            return None
        voice = self.find_voice(line.speaker or "")
        own = voice.language if voice is not None else None
        known = (line.language, own, self.settings.language)
        return find_spoken_language(line.text, known, self.limits)

    def find_changed_text(self, line: ProjectLine, *, most_chars: int) -> str | None:
        """The beginning of a line's spoken text, if pronunciations change the text; else None."""
        if not self.pronouncing:
            return None
        text = normalize_spoken_text(line.text)
        language = self.find_spoken_language(line)
        said = self.pronouncing.spoken(text, language, most_chars=most_chars)
        if said == text:
            return None
        said = said[:most_chars]
        if text.startswith(said):  # the difference may come later
            said = self.pronouncing.spoken(text, language)
            if said in (line.text, text):
                return None
        return said[:most_chars]

    def resolve_language(self, line: ProjectLine) -> str | None:
        """The language of a line that names none; None leaves the choice to the backend."""
        if line.kind is not LineKind.SPEECH or line.language is not None:
            return None
        if not self.limits.chooses_language:
            return None
        voice = self.find_voice(line.speaker or "")
        known_codes = (voice.language if voice is not None else None, self.settings.language)
        return resolve_language(line.text, filter(None, known_codes), self.limits)

    def compute_key(self, line: ProjectLine) -> str:
        """The digest of all that a line's audio depends on, except the seed."""
        if line.kind is not LineKind.SPEECH:
            return _hash_parts([line.kind, line.path, line.duration_s])
        line = self.inherit(line)
        return self._key(line, self._mark_of(line), self.backend[0])

    def compute_legacy_keys(self, line: ProjectLine, named: str, backend: str) -> list[str]:
        """Keys of a line in earlier versions of the studio, so that their takes still match.

        Args:
            line: The line.
            named: The name of its speaker then, by which an only built-in voice was keyed.
            backend: The backend's name then, which may be an alias now.
        """
        if line.kind is not LineKind.SPEECH or canonical_name(backend) != self.backend[0]:
            return []
        line = self.inherit(line)
        mark = self._mark_of(line)
        # Without the mood that a stage direction chooses, which was spoken then.
        marks = list(dict.fromkeys((mark, self._mark_of(line, is_directed=False))))
        if mark == _SINGLE_BUILTIN:
            marks.append(_fingerprint_builtin(named, by_name=True))
        counts_id = {False, LINE_ID in line.params}  # as it did then
        return [self._key(line, one, backend, has_id=has) for one in marks for has in counts_id]

    def _mark_of(self, line: ProjectLine, *, is_directed: bool = True) -> tuple[str | None, ...]:
        voice = self.find_voice(line.speaker or "")
        if voice is None:
            return ("unknown", line.speaker)
        mood = line.params.get(MOOD)
        if not mood and is_directed:
            mood = directed_mood(line.text, voice.moods)
        return voice.select_digest(mood)

    def _key(
        self, line: ProjectLine, mark: tuple[str | None, ...], backend: str, *, has_id: bool = False
    ) -> str:
        silent = NO_SETTINGS - {LINE_ID} if has_id else NO_SETTINGS  # a mood counts by its digest
        others = {name: value for name, value in line.params.items() if name not in silent}
        params = _normalize_numbers({**self.defaults, **others})
        if SPEED.name in others and SPEED.name not in self.defaults:
            # Outdates the takes of the time when such a voice ignored a speed.
            params["tempo"] = "studio"
        language = line.language or self.resolve_language(line)
        spoken = self.build_spoken_text(line)
        return _hash_parts([backend, self.backend[1], mark, spoken, language, params])


def build_render_context(
    document: Document, book: VoiceFingerprints, backend: Backend
) -> RenderContext:
    """The context of a document's lines."""
    can = backend.capabilities
    return RenderContext(
        book.compute(document, can, find_engine_voices(document, backend)),
        (backend.name, backend.revision),
        {param.name: param.default for param in can.params},
        document.cast,
        document.first_names,
        document.settings,
        can.limits(),
        read_pronouncing(document),
        document.characters,
    )


def read_pronouncing(document: Document) -> PronunciationRules:
    """How the lines of a document are spoken."""
    entries = document.pronunciations.values()
    return PronunciationRules(entries, in_words=document.settings.says_words)


def find_engine_voices(document: Document, backend: Backend) -> dict[str, EngineVoice]:
    """The backend's own voices that characters have, by the keys of their names."""
    can = backend.capabilities
    found = {
        key: can.find_preset(one.voices.get(backend.name))
        for key, one in document.characters.items()
    }
    return {key: one for key, one in found.items() if one is not None}


def _assign(
    document: Document, engine_voices: Mapping[str, EngineVoice]
) -> dict[str, str | EngineVoice]:
    """Who speaks for names; a voice of the library that is cast goes before one of the engine."""
    cast = {name_key(name): one for name, one in document.cast.items() if one is not None}
    return {**engine_voices, **cast}


def choose_stable_seed(line: ProjectLine, settings_seed: int | None) -> int:
    """The seed of a line that is rendered without a request for a new one."""
    if line.seed is not None:
        return line.seed
    return settings_seed if settings_seed is not None else int(line.line_id, 16) % 2**31


class _Names(NamedTuple):
    new: list[str]
    old: list[str]


def _find_new_names(document: Document, before: Document) -> _Names:
    """The names that came with the changed lines, and if there are any those that stayed."""
    lines = before.lines
    changed = {
        line.speaker
        for line_id, line in document.lines.items()
        if (was := lines.get(line_id)) is not line
        and line.speaker is not None
        and (was is None or was.speaker != line.speaker)
    }
    if not changed:
        return _Names([], [])
    there = _list_names(before)
    if there.keys() >= set(map(name_key, changed)):
        return _Names([], [])
    now = _list_names(document)
    new = [name for key, name in now.items() if key not in there]
    return _Names(new, [name for key, name in there.items() if key in now])


def _list_names(document: Document) -> dict[str, str]:
    """Names as first written, by key."""
    names: dict[str, str] = {}
    for name in document.count_speakers():
        names.setdefault(name_key(name), name)
    return names


def _fingerprint_builtin(name: str, *, by_name: bool) -> tuple[str, ...]:
    return ("built-in", name_key(name)) if by_name else _SINGLE_BUILTIN


def _hash_parts(parts: list[object]) -> str:
    written = json.dumps(parts, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(written.encode("ascii")).hexdigest()[:32]


def _normalize_numbers(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """1 and 1.0 are the same setting."""
    return {
        name: float(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in params.items()
    }


@dataclass(frozen=True, slots=True)
class ProjectDeps:
    """What all sessions of a workspace share.

    Attributes:
        backend_name: The backend of a project that doesn't name one.
        threads: Threads in which takes are saved, off the engine's loop.
        now_s: The current time in seconds since 1970.
        word_timer: Times the words of takes; None times none.
        checker: Checks the words of takes; None where nobody does.
        checks: In which it does so.
    """

    engine: SpeechEngine
    library: SpeakerLibrary
    backend_name: Callable[[], str]
    threads: Executor
    now_s: Callable[[], float] = time.time
    word_timer: WordTimer | None = None
    checker: WordChecker | None = None
    checks: CheckQueue | None = None


class VoiceResolver:
    """Resolves voices and backends, and caches the render context. Under the session's lock."""

    def __init__(self, tools: ProjectDeps, *, evens_lines: bool = True) -> None:
        self._deps = tools
        self._evens_lines = evens_lines
        self._voices = VoiceFingerprints(tools.library)
        self._context: RenderContext | None = None
        self._cast: tuple[tuple[object, ...], Cast] | None = None
        self.refreshed_at_s = 0.0

    def get_context(self, document: Document) -> RenderContext:
        """The cached context."""
        return self._context or self.refresh(document)[1]

    def is_current_for(self, document: Document) -> bool:
        """Whether the cached context is valid for a document."""
        return self._context is not None and self._context.is_current_for(document)

    def refresh(self, document: Document) -> tuple[RenderContext | None, RenderContext]:
        """Build the context again.

        Returns:
            The context before and now; the same object if nothing changed.
        """
        previous, context = (
            self._context,
            build_render_context(document, self._voices, self.find_backend(document)),
        )
        self.refreshed_at_s = time.monotonic()
        if previous == context:
            return previous, previous
        self._context = context
        return previous, context

    def check_backend(self, name: str | None) -> None:
        """Check that a backend exists; None is the studio's choice."""
        if name is not None:
            self._deps.engine.models.get_manager(name)

    def look_up_speakers(self) -> Callable[[str], str | None]:
        """A look-up of the ids of the library's speakers by name; None if there is none.

        It reads the library once, when it is first asked; it may raise `StorageFailed`.
        """

        @cache
        def read_ids() -> dict[str, str]:
            speakers = reversed(self._deps.library.list())  # of two of the same name the first
            return {name_key(one.name): one.speaker_id for one in speakers}

        return lambda name: read_ids().get(name_key(name))

    def build_cast(self, document: Document) -> Cast:
        """Build the cast; cached, with its samples, until the document's cast changes."""
        first_names, language = document.first_names, document.settings.language
        backend = self.find_backend(document)
        made_of = (document.cast, first_names, language, document.characters, backend)
        if self._cast is None or any(
            one is not other for one, other in zip(self._cast[0], made_of, strict=True)
        ):
            cast = Cast(
                self._deps.library,
                {},
                _assign(document, find_engine_voices(document, backend)),
                first_names,
                language=language,
            )
            cast.evens_lines = self._evens_lines
            self._cast = (made_of, cast)
        return self._cast[1]

    def build_audition_cast(
        self,
        document: Document,
        name: str,
        engine: str | None,
        speaker_id: str | None,
        preset_id: str | None,
    ) -> Cast:
        """A cast in which a name has another voice; with neither of both its automatic one.

        Args:
            document: Has the names by which characters choose.
            name: Who is cast.
            engine: The backend; None for the document's own.
            speaker_id: A speaker of the library.
            preset_id: A voice of the backend's own.

        Raises:
            SettingError: There is no such backend.
            NotFound: There is no such voice.
        """
        models = self._deps.engine.models
        backend = models.get_manager(engine).backend if engine else self.find_backend(document)
        own = backend.capabilities.find_preset(preset_id)
        if preset_id is not None and own is None:
            raise NotFound("This engine has no such voice any more. Choose another one.")
        assigned: dict[str, str | EngineVoice] = {name: own} if own is not None else {}
        if speaker_id is not None:
            assigned[name] = self._deps.library.get_by_id(speaker_id).speaker_id
        language = document.settings.language
        cast = Cast(self._deps.library, {}, assigned, document.first_names, language=language)
        cast.evens_lines = self._evens_lines
        return cast

    def name_automatic(self, document: Document, name: str) -> str:
        """What the automatic voice of a name is called."""
        chosen = {name_key(one): first for one, first in document.first_names.items()}
        can = self.find_backend(document).capabilities
        return can.name_automatic(chosen.get(name_key(name), name), document.settings.language)

    def cast_new_names(self, document: Document, before: Document) -> Document:
        """A document in which the automatic voices of new characters are unlike the others'.

        Those who were there before keep theirs. Where the project knows as many names as it may,
        new characters choose by their own.
        """
        document = self._cast_by_lines(document, before)
        known = _find_new_names(document, before)
        room = MAX_CAST_NAMES - len(document.first_names)
        if not known.new or room <= 0:
            return document
        has_voice = self.look_up_speakers()
        chosen = {name_key(name): one for name, one in document.first_names.items()}
        cast = {name_key(name) for name, one in document.cast.items() if one is not None}
        backend = self.find_backend(document)
        cast |= set(find_engine_voices(document, backend))

        def is_automatic(name: str) -> bool:
            return name_key(name) not in cast and has_voice(name) is None

        kept = {name: chosen.get(name_key(name), name) for name in known.old if is_automatic(name)}
        new = [name for name in known.new if name_key(name) not in chosen and is_automatic(name)]
        language = document.settings.language
        engines = describe_engines(backend, language)
        about = list_about((line.speaker or "", line.params) for line in document)
        named = choose_voice_names(new, kept, engines, language, about)
        first_names = {**document.first_names, **dict(islice(named.items(), room))}
        return replace(document, first_names=first_names)

    def _cast_by_lines(self, document: Document, before: Document) -> Document:
        """Give characters the voices that new lines name for them; these name them no more.

        A voice of another engine is kept for its scenes, and its lines go on naming it.
        """
        lines = [line for line in document if VOICE in line.params]
        naming = [line for line in lines if before.lines.get(line.line_id) is not line]
        if not naming:
            return document
        backend, draft = self.find_backend(document), DocumentDraft(document)
        names = VoiceNames(self._deps.library, backend)
        for line in reversed(naming):  # so that a character's first one has the last word
            found, speaker = names.find(str(line.params[VOICE])), line.speaker or ""
            if found is None:
                continue
            draft.cast_voice(speaker, found if isinstance(found, str) else None)
            if not isinstance(found, str):
                had = document.find_character(speaker).voices
                voices = {**had, found[0].name: found[1].preset_id}
                draft.change_character(speaker, {"voices": voices})
            if isinstance(found, str) or found[0].name == backend.name:
                params = {name: one for name, one in line.params.items() if name != VOICE}
                draft.update_line(line.line_id, params=params)
        return draft.finish()

    def find_notices(self, document: Document, dialog: Dialog) -> tuple[Notice, ...]:
        """Notices about how the voices would speak a dialog, with line numbers."""
        can, whole = self.find_backend(document).capabilities, dialog
        cast = self.build_cast(document).freeze()
        spoken = read_pronouncing(document).spoken
        plain: list[SpeechSegment] = []
        if not document.pronunciations:  # with some, any line may become too long, or silent
            dialog, plain = split_plain_lines(dialog, can.limits())
        planned = PlanCheck().plan(
            dialog,
            can.limits(),
            languages_of=cast.list_languages,
            moods_of=cast.list_moods,
            pronounce=spoken,
        )
        segments = sorted((*plain, *planned.segments), key=attrgetter("line_number"))
        named = VoiceNames(self._deps.library, self.find_backend(document)).cast(whole)[1]
        return (*named, *planned.notices, *cast.find_notices(segments, can.voice_kinds()))

    def find_backend(self, document: Document) -> Backend:
        """The project's backend, or the studio's own if the project names an unknown one."""
        models = self._deps.engine.models
        try:
            return models.get_manager(
                document.settings.backend or self._deps.backend_name()
            ).backend
        except SettingError:
            return models.get_manager(self._deps.backend_name()).backend
