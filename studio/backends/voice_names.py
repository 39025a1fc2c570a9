"""Voices by the names that people write for them: `Heart`, `af_heart`, `kokoro/Heart`, `Maria`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from operator import attrgetter

from studio.backends.base import Backend, Preset, canonical_name
from studio.backends.registry import list_naming_backends
from studio.dialog.model import Line, Notice, Speech, name_key
from studio.dialog.planning import VOICE
from studio.errors import BadInput, NotFound
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import EngineVoice

_SPELLINGS = tuple(map(attrgetter, ("preset_id", "label", "name")))


class VoiceNames:
    """Finds voices for the scenes of one engine, and says who else has a name that it hasn't."""

    def __init__(self, library: SpeakerLibrary, backend: Backend) -> None:
        self._library, self._backend = library, backend

    def find(self, written: str) -> tuple[Backend, Preset] | str | None:
        """The id of the library's speaker of a name, or else an engine's voice; None for neither.

        Args:
            written: A voice's id, label, or label without who it is, in any case; with the engine
                and a slash before it, or else of the scene's engine rather than of another.
        """
        if (speaker := self._library.find(written)) is not None:
            return speaker.speaker_id
        engine, slash, name = written.partition("/")
        wanted = canonical_name(name_key(engine.strip()))
        for one in (self._backend, *list_naming_backends()):
            is_asked = not slash or wanted in (one.name, name_key(one.title))
            preset = _find_preset(one, name if slash else written) if is_asked else None
            if preset is not None:
                return one, preset
        return None

    def get(self, written: str, advice: str | None = None) -> str | EngineVoice:
        """Whom a name means, as a cast has it; the advice is what to do if it means nobody.

        Raises:
            BadInput: It is a voice of another engine.
            NotFound: Nobody has it; the message has the nearest names.
        """
        found, own = self.find(written), self._backend
        if found is None:
            advice = advice or f"The command “voices list {own.name}” prints those of {own.title}."
            if near := self._list_near(written):
                raise NotFound(f"There is no voice “{written}”; there is {near}. {advice}")
            raise NotFound(f"There is no voice “{written}”. {advice}")
        if isinstance(found, str):
            return found
        engine, preset = found
        if engine.name != own.name:
            raise BadInput(
                f"“{preset.label}” is a voice of {engine.title}, and one engine speaks all of a "
                f"scene, here {own.title}. Choose {engine.title}, or another voice."
            )
        return EngineVoice(preset.preset_id, preset.label, preset.only_language)

    def cast(self, lines: Iterable[Line]) -> tuple[dict[str, str | EngineVoice], list[Notice]]:
        """The voices that lines name for their speakers, such as `[Zed | voice:Heart]`.

        Returns:
            By the key of the speaker's name, of whom the first that can be had counts; and notices
            of those that can't.
        """
        found: dict[str, str | EngineVoice] = {}
        notices: dict[tuple[str, object], Notice | None] = {}
        for line in lines:
            if not isinstance(line, Speech) or VOICE not in line.params:
                continue
            key, written, fault = name_key(line.speaker), line.params[VOICE], ""
            if (key, written) in notices:
                continue
            try:
                voice = self.get(str(written), f"{line.speaker} keeps the voice that is there.")
                if found.setdefault(key, voice) != voice:
                    fault = f"“{written}” is left out, as one voice speaks all of {line.speaker}."
            except (BadInput, NotFound) as error:
                fault = str(error)
            notices[key, written] = Notice(fault, line.line_number) if fault else None
        return found, list(filter(None, notices.values()))

    def _list_near(self, written: str) -> str:
        known = {name_key(one.name): one.name for one in self._library.list()}
        for one in self._backend.capabilities.presets:
            known |= {name_key(spell(one)): one.label for spell in _SPELLINGS}
        near = get_close_matches(name_key(written.rpartition("/")[2]), known)
        return " and ".join(f"“{label}”" for label in dict.fromkeys(known[one] for one in near))


def _find_preset(backend: Backend, written: str) -> Preset | None:
    wanted, presets = name_key(written.strip()), backend.capabilities.presets
    said = ((spell(one), one) for spell in _SPELLINGS for one in presets)
    return next((one for name, one in said if name_key(name) == wanted), None)
