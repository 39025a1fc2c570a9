"""Casting by ear: every voice that a character could have, and a line of it by any of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from studio.audio.clip import Clip
from studio.backends.base import Backend, Preset
from studio.backends.registry import offer_of
from studio.dialog.model import name_key
from studio.errors import BadInput
from studio.project.render_context import read_pronouncing
from studio.project.session import ProjectSession
from studio.services.previews import Sentence, VoicePreviews
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import Speaker

AUTOMATIC = "automatic"

_GENDERS = {
    "woman": {"woman", "female", "girl", "lady"},
    "man": {"man", "male", "boy", "gentleman"},
    "child": {"child", "kid", "children"},
}
_AGES = {
    "young": {"young", "child", "kid", "boy", "girl", "teen", "teenager"},
    "old": {"old", "elderly", "aged", "senior"},
}
"""What tags of the library's voices say, as an engine says it of its own."""


@dataclass(frozen=True, slots=True)
class VoiceCandidate:
    """A voice that a character could have.

    Attributes:
        key: "automatic", "library/ID" or "engine/NAME/ID".
        name: As it is called everywhere.
        kind: "automatic", "sample", "described", "preset" or "none", of a speaker without a voice.
        engine: Whose voice it is; None for a voice that any engine may speak.
        languages: Codes; empty for all that its engine speaks.
        tags: Of the library.
        sound: As in `Preset`.
    """

    key: str
    name: str
    kind: str
    engine: str | None = None
    languages: tuple[str, ...] = ()
    gender: str = ""
    age: str = ""
    tags: tuple[str, ...] = ()
    sound: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditionEngine:
    """An engine whose voices can be cast.

    Attributes:
        to_fetch: What has to be downloaded first; None if it can speak now.
        cloning: Whether it speaks in the voice of a recording.
        instead_of_sample: What a speaker with a recording gets where it can't.
    """

    name: str
    title: str
    languages: tuple[str, ...]
    to_fetch: str | None
    cloning: bool
    instead_of_sample: str


class Auditions:
    """Lists the voices and says lines by them; nothing of it is kept."""

    def __init__(self, library: SpeakerLibrary, previews: VoicePreviews) -> None:
        self._library = library
        self._previews = previews

    def list_engines(self, backends: Iterable[Backend]) -> list[AuditionEngine]:
        """The engines that can run here, or could after a download."""
        return [
            AuditionEngine(
                one.name,
                one.title,
                tuple(sorted(one.capabilities.languages)),
                offer_of(one).to_fetch,
                one.capabilities.cloning,
                one.capabilities.instead_of_sample,
            )
            for one in backends
            if offer_of(one).unavailable is None
        ]

    def list_voices(
        self, project: ProjectSession, speaker: str, backends: Iterable[Backend]
    ) -> list[VoiceCandidate]:
        """Every voice for a character: automatic, the library's, those of its engine, of others."""
        backend = project.backend
        speakers = self._library.list()
        found = []
        if not any(name_key(one.name) == name_key(speaker) for one in speakers):
            found.append(VoiceCandidate(AUTOMATIC, project.name_automatic(speaker), AUTOMATIC))
        found += map(_describe_speaker, speakers)
        for one in (backend, *(other for other in backends if other.name != backend.name)):
            if offer_of(one).unavailable is None:
                found += _describe_presets(one)
        return found

    async def say(
        self, project: ProjectSession, speaker: str, key: str, sentence: Sentence
    ) -> Clip:
        """Say a sentence as a character would say it with another voice; nothing is kept.

        Args:
            project: Whose cast it is.
            speaker: The character, with its settings.
            key: Of the voice, as `VoiceCandidate.key`.
            sentence: What is said.

        Raises:
            BadInput: The sentence is empty or too long, or the key is malformed.
        """
        engine, speaker_id, preset_id = _read_key(key)
        cast = project.build_audition_cast(speaker, engine, speaker_id, preset_id)
        params = {**project.document.find_character(speaker).params, **sentence.params}
        heard = Sentence(sentence.text, sentence.mood, sentence.language, params)
        name = engine or project.backend.name
        spoken = read_pronouncing(project.document).spoken
        return await self._previews.speak_sentence(cast, speaker, heard, name, spoken)


def _read_key(key: str) -> tuple[str | None, str | None, str | None]:
    """The engine, the library's speaker and the engine's voice that a key names."""
    kind, _, rest = key.partition("/")
    if kind == "library" and rest:
        return None, rest, None
    engine, _, preset_id = rest.partition("/")
    if kind == "engine" and engine and preset_id:
        return engine, None, preset_id
    if key != AUTOMATIC:
        raise BadInput(f"“{key[:80]}” is no voice. Choose one of the list.")
    return None, None, None


def _describe_presets(backend: Backend) -> Iterator[VoiceCandidate]:
    for one in backend.capabilities.presets:
        yield _describe_preset(one, backend.name)


def _describe_preset(preset: Preset, engine: str) -> VoiceCandidate:
    key = f"engine/{engine}/{preset.preset_id}"
    return VoiceCandidate(
        key,
        preset.label,
        "preset",
        engine,
        preset.languages,
        preset.gender,
        preset.age,
        sound=preset.sound,
    )


def _describe_speaker(speaker: Speaker) -> VoiceCandidate:
    kind = "none"
    if speaker.sample is not None or speaker.moods:
        kind = "sample"
    elif speaker.preset is not None:
        kind = "preset"
    elif speaker.description is not None:
        kind = "described"
    words = {word for tag in speaker.tags for word in name_key(tag).split()}
    return VoiceCandidate(
        f"library/{speaker.speaker_id}",
        speaker.name,
        kind,
        None,
        (speaker.language,) if speaker.language else (),
        _find_said(_GENDERS, words),
        _find_said(_AGES, words),
        speaker.tags,
    )


def _find_said(known: Mapping[str, set[str]], words: set[str]) -> str:
    return next((one for one, said in known.items() if said & words), "")
