"""The whole check of a take: its sound, compared with a reading of its text, and its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from studio.audio.clip import Clip
from studio.quality.checks import ExpectedSpeech, QualityIssue, QualityReport, check_take

ReadText = Callable[[str, str | None], Clip | None]
"""Reads a text in a language, as `ReferenceReader.read`; None where it can't."""

FindWordIssues = Callable[[Clip, ExpectedSpeech], tuple[QualityIssue, ...]]
"""Holds what a recogniser makes of a take against its text."""


@dataclass(frozen=True, slots=True)
class TakeCheck:
    """Checks takes; from any thread.

    Attributes:
        read: The draft voice's reading, with which pace and melody are compared; None without.
        find_word_issues: What a recogniser finds; None without one.
    """

    read: ReadText | None = None
    find_word_issues: FindWordIssues | None = None

    def __call__(self, clip: Clip, said: ExpectedSpeech) -> QualityReport:
        """Check a take with all there is."""
        reading = None if self.read is None else self.read(said.text, said.language)
        report = check_take(clip, said, reading)
        if self.find_word_issues is None:
            return report
        return replace(report, issues=report.issues + self.find_word_issues(clip, said))
