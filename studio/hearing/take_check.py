"""The check of a take that is compared with the draft voice's reading of its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from studio.audio.clip import Clip
from studio.quality.checks import ExpectedSpeech, QualityReport, check_take

ReadText = Callable[[str, str | None], Clip | None]
"""Reads a text in a language, as `ReferenceReader.read`; None where it can't."""


@dataclass(frozen=True, slots=True)
class TakeCheck:
    """Checks takes; from any thread.

    Attributes:
        read: The draft voice's reading, with which pace and melody are compared.
        embed: A take's speaker embedding; None where there is no model of it.
    """

    read: ReadText
    embed: Callable[[Clip], str | None] = lambda clip: None

    def __call__(self, clip: Clip, said: ExpectedSpeech) -> QualityReport:
        """Check a take."""
        report = check_take(clip, said, self.read(said.text, said.language))
        if report.metrics.bands_db is None:  # it says too little of the voice
            return report
        return replace(report, metrics=replace(report.metrics, voiceprint=self.embed(clip)))
