"""The cast of one dialog: which voice each name speaks with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock

from studio.dialog.model import Notice, name_key
from studio.dialog.planning import Segment, SpeechSegment
from studio.errors import NotFound, SampleRejected, StorageFailed
from studio.storage.file_cache import FileCache
from studio.voices.library import SpeakerLibrary, SpeakerSnapshot
from studio.voices.samples import load_sample
from studio.voices.speaker import (
    NEUTRAL,
    EngineVoice,
    Sample,
    Speaker,
    Voice,
    VoiceKinds,
    find_mood_sample,
)


class Cast:
    """Finds the voice of each name; safe to use from several threads.

    A voice or a sample given for this dialog outranks whoever is assigned to a name, and that one
    the library's speaker of the same name; a name that nobody knows has the backend's built-in
    voice.

    Attributes:
        evens_lines: Whether the silence at the ends of lines is cut to one length, and voices that
            nobody recorded are brought to one level: not in projects of earlier studios.
    """

    def __init__(
        self,
        library: SpeakerLibrary,
        overrides: Mapping[str, Path],
        assigned: Mapping[str, str | EngineVoice] | None = None,
        first_names: Mapping[str, str] | None = None,
        *,
        language: str | None = None,
        given: Mapping[str, Voice] | None = None,
    ) -> None:
        """Cast from a library.

        Args:
            library: Speakers by name.
            overrides: Recordings by name.
            assigned: By name who speaks for it: the id of a speaker of the library, or a voice of
                the backend's own.
            first_names: What speakers that nobody knows were called at first, by their names now.
            language: Of the script, where lines and voices don't say.
            given: Voices by name, of speakers whose language the library may know nevertheless.
        """
        self.evens_lines = True
        self._owner = library
        self._library: SpeakerLibrary | SpeakerSnapshot = library
        self._overrides = {name_key(name): path for name, path in overrides.items()}
        self._assigned = {name_key(name): one for name, one in (assigned or {}).items()}
        self._first_names = {name_key(name): one for name, one in (first_names or {}).items()}
        self._language = language
        self._given = {name_key(name): voice for name, voice in (given or {}).items()}
        # Guards `_loaded`, and lets one thread at a time decode, so none does it twice.
        self._lock = Lock()
        self._loaded: FileCache[Sample] = FileCache()

    def freeze(self) -> Cast:
        """The same with the library's present speakers, for looking up many names."""
        frozen = copy(self)
        frozen._library = SpeakerSnapshot(self._owner)
        return frozen

    def load_voice(self, name: str, mood: str | None = None) -> Voice:
        """The voice for a name as a script writes it.

        Args:
            name: Whatever its case.
            mood: One of the speaker's moods; for None, `NEUTRAL` and one that the speaker hasn't,
                it is the main sample.

        Raises:
            SampleRejected: The sample or the assigned speaker is missing or can't serve; this
                concerns `name` only.
        """
        given = self._given.get(name_key(name))
        if given is not None:
            return given
        override = self._overrides.get(name_key(name))
        if override is not None:
            return Voice(name, self._sample(override, name, None))
        if (own := self._find_engine_voice(name)) is not None:
            return own.to_voice(name)
        speaker = self._speaker_of(name)
        if speaker is None:
            return Voice(name, first_name=self._first_names.get(name_key(name)))
        chosen = find_mood_sample(speaker, mood) if mood is not None else None
        if chosen is not None:
            return Voice(speaker.name, self._sample(chosen.path, speaker.name, chosen.transcript))
        sample = None
        if speaker.sample is not None:
            sample = self._sample(speaker.sample, speaker.name, speaker.transcript)
        described = speaker.preset, speaker.description
        return Voice(speaker.name, sample, *described, speaker.first_name)

    def name_voice(self, name: str, name_automatic: Callable[[str], str]) -> str:
        """What the voice of a name is called; the automatic one is by the name that chooses it."""
        key = name_key(name)
        if (given := self._given.get(key)) is not None:
            return given.preset or given.speaker
        if key in self._overrides:
            return self._overrides[key].name
        if (own := self._find_engine_voice(name)) is not None:
            return own.label
        with suppress(SampleRejected, StorageFailed):  # which isn't what the name is asked for
            if (speaker := self._speaker_of(name)) is not None:
                return speaker.name
        return name_automatic(self._first_names.get(key, name))

    def list_languages(self, name: str) -> tuple[str, ...]:
        """The languages to try for a name's lines: its voice's, then the script's."""
        own = None
        if (chosen := self._find_engine_voice(name)) is not None:
            own = chosen.language
        elif name_key(name) not in self._overrides:
            with suppress(SampleRejected):  # its lines fail with that reason
                speaker = self._speaker_of(name)
                own = speaker.language if speaker is not None else None
        return tuple(filter(None, (own, self._language)))

    def list_moods(self, name: str) -> tuple[str, ...]:
        """The moods of which a name's voice has samples."""
        if name_key(name) in self._overrides or name_key(name) in self._given:
            return ()
        if self._find_engine_voice(name) is not None:
            return ()
        with suppress(SampleRejected):  # its lines fail with that reason
            speaker = self._speaker_of(name)
            return tuple(one.mood for one in speaker.moods) if speaker is not None else ()
        return ()

    def explain_missing_voice(self, name: str, mood: str | None, kinds: VoiceKinds) -> str | None:
        """Why a backend with these kinds of voices can't speak a name; None if it can."""
        key = name_key(name)
        if kinds.builtin and key not in self._assigned:  # as of most names in a long script
            return None
        if key in self._overrides or self._find_engine_voice(name) is not None:
            return None
        try:
            speaker = self._speaker_of(name)
        except SampleRejected as error:
            return str(error)
        if kinds.builtin or (speaker is not None and _can_voice(speaker, mood, kinds)):
            return None
        return f"{name} {_describe_remedy(kinds)}, or choose another voice engine."

    def find_notices(
        self, segments: Iterable[Segment], kinds: VoiceKinds | None = None
    ) -> tuple[Notice, ...]:
        """Find what a plan needs and the cast lacks, one notice each: moods, voices.

        Args:
            segments: Of a plan.
            kinds: Which voices the backend makes; None to leave that out.
        """
        # Each name and mood is looked up in the library once, at its first line.
        first: dict[tuple[str, str | None], SpeechSegment] = {}
        for one in segments:
            if isinstance(one, SpeechSegment):
                first.setdefault((one.speaker, one.mood), one)
        found: dict[tuple[str, ...], Notice] = {}
        for (name, mood), one in first.items():
            key: tuple[str, ...] = (name_key(name),)
            if kinds is not None and key not in found:
                lack = self.explain_missing_voice(name, mood, kinds)
                if lack is not None:
                    found[key] = Notice(lack, one.line_number)
            if mood is None:
                continue
            key = (*key, name_key(mood))
            if key not in found and not self._has_mood(name, mood):
                found[key] = Notice(
                    f"{name} has no sample for the mood “{mood}”; the main voice is used. Add one"
                    " under Voices.",
                    one.line_number,
                )
        return tuple(found.values())

    def _has_mood(self, name: str, mood: str) -> bool:
        if name_key(mood) == NEUTRAL:
            return True
        if name_key(name) in self._overrides or self._find_engine_voice(name) is not None:
            return False
        try:
            speaker = self._speaker_of(name)
        except SampleRejected:
            return True  # its lines fail with that reason
        return speaker is not None and find_mood_sample(speaker, mood) is not None

    def _find_engine_voice(self, name: str) -> EngineVoice | None:
        key = name_key(name)
        if key in self._given or key in self._overrides:
            return None
        found = self._assigned.get(key)
        return found if isinstance(found, EngineVoice) else None

    def _speaker_of(self, name: str) -> Speaker | None:
        speaker_id = self._assigned.get(name_key(name))
        if speaker_id is None or isinstance(speaker_id, EngineVoice):
            return self._library.find(name)
        try:
            return self._library.get_by_id(speaker_id)
        except NotFound as error:
            raise SampleRejected(
                f"The voice chosen for {name} was removed from the library. Choose another one."
            ) from error

    def _sample(self, path: Path, speaker: str, transcript: str | None) -> Sample:
        """Load a sample, once for each state of its file."""
        with self._lock:
            try:
                sample = self._loaded.get(path, partial(load_sample, speaker=speaker))
            except (OSError, ValueError) as error:
                raise SampleRejected(
                    f"The sample of {speaker} can't be found at {path}. Choose a recording again."
                ) from error
        return replace(sample, transcript=transcript)


def _can_voice(speaker: Speaker, mood: str | None, kinds: VoiceKinds) -> bool:
    """Whether one of these kinds of voices can be made for a speaker."""
    has_sample = speaker.sample is not None or (
        mood is not None and find_mood_sample(speaker, mood) is not None
    )
    return (
        (kinds.cloning and has_sample)
        or (kinds.described and bool(speaker.description))
        or speaker.preset in kinds.presets
    )


def _describe_remedy(kinds: VoiceKinds) -> str:
    if kinds.cloning:
        return "has no sample, and this voice engine speaks only with one. Add a recording"
    if kinds.described:
        return "has no description, of which this voice engine makes its voices. Describe the voice"
    return "has none of this voice engine's voices. Choose one for it"
