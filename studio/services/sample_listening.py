"""What is said in a recording that becomes a sample: its words and its language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from studio.audio.clip import Clip
from studio.errors import AudioRejected, ModelUnavailable
from studio.hearing.hearing_models import HearingModels

_NONE_INSTALLED = (
    "No recogniser is installed, so write yourself what is said. One comes with: tableread voices"
    " install parakeet."
)
_UNKNOWN_LANGUAGE = "No recogniser that is installed knows “{}”. Write what is said."


@dataclass(frozen=True, slots=True)
class SampleWords:
    """What a recogniser understood in a recording.

    Attributes:
        transcript: What is said; None where nobody could tell.
        language: A BCP-47 code; None where nobody could tell.
        note: Why something is missing, and what to do; None where nothing is.
    """

    transcript: str | None = None
    language: str | None = None
    note: str | None = None


class SampleListener:
    """Transcribes samples and names their language; safe from any thread."""

    def __init__(self, recognisers: HearingModels | None) -> None:
        """Listen with recognisers; None, as for visitors, understands nothing."""
        self._recognisers = recognisers

    def listen(
        self,
        clip: Clip,
        language: str | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> SampleWords:
        """Transcribe a recording, and name its language unless that is known.

        Args:
            clip: The part that becomes a sample.
            language: Its BCP-47 code, if somebody has said it.
            cancelled: As `HearingModels.transcribe` takes it.
        """
        if self._recognisers is None or self._recognisers.find(None) is None:
            return SampleWords(language=language, note=_NONE_INSTALLED)
        try:
            named = language or self._recognisers.identify_language(clip)
            if self._recognisers.find(named) is None:
                return SampleWords(language=named, note=_UNKNOWN_LANGUAGE.format(named))
            found = self._recognisers.transcribe(clip, named, cancelled=cancelled)
        except (AudioRejected, ModelUnavailable) as error:
            return SampleWords(language=language, note=str(error))
        named = named or found.language
        if not found.text:
            return SampleWords(language=named, note="No words were understood in it.")
        note = None if named else "The recogniser doesn't say which language this is."
        return SampleWords(found.text, named, note)
