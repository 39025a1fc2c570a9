"""The check of a take's words: what was recognised, and its quality issues; one take at a time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from studio.audio.clip import Clip
from studio.dialog.text_view import TextView
from studio.errors import AudioRejected
from studio.hearing.hearing_models import HearingModels
from studio.hearing.recognition import lower_priority
from studio.hearing.transcript_diff import MarkKind, WordMark, compare_transcript
from studio.hearing.word_sounds import EspeakSounds
from studio.hearing.word_spelling import has_words
from studio.quality.checks import ExpectedSpeech, IssueKind, QualityIssue

log = logging.getLogger(__name__)

_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True)
class WordCheck:
    """What was recognised in a take; kept in its record.

    Attributes:
        text: What was said, as the recogniser writes it; empty where nothing was recognised.
        by: The recogniser's name; empty where none was asked.
        issues: Where it differs from the text, with places in that.
        note: Why the words couldn't be checked; None where they were.
    """

    text: str
    by: str
    issues: tuple[QualityIssue, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ExpectedText:
    """What is to be said in a take.

    Attributes:
        text: As it is written, with its tags.
        language: Its BCP-47 code; None goes by its script.
        pronounce: Gives it as it is spoken.
    """

    text: str
    language: str | None
    pronounce: Callable[[str], TextView] = TextView


class WordChecker:
    """Checks takes with the recognisers of this machine; from any thread."""

    def __init__(self, recognisers: HearingModels) -> None:
        self._recognisers = recognisers
        self._sounds = EspeakSounds()

    @property
    def is_able(self) -> bool:
        return self._recognisers.find(None) is not None

    def can_check(self, spoken: ExpectedText) -> bool:
        """Whether a take of a text would be heard, as its language is known here. Cheap."""
        return has_words(spoken.text) and self._recognisers.find(spoken.language) is not None

    def check(
        self, clip: Clip, spoken: ExpectedText, cancelled: Callable[[], bool] = lambda: False
    ) -> WordCheck:
        """Recognise a take and compare it with its text."""
        if not has_words(spoken.text):
            return WordCheck("", "", note="Its text has no words that could be checked.")
        model = self._recognisers.find(spoken.language)
        if model is None:
            return WordCheck("", "", note=f"No recogniser here knows “{spoken.language}”.")
        try:
            transcript = self._recognisers.transcribe(clip, spoken.language, cancelled=cancelled)
        except AudioRejected as error:
            return WordCheck("", model.name, note=str(error))
        marks = compare_transcript(
            spoken.text,
            transcript,
            language=spoken.language,
            read_sounds=self._sounds,
            pronounce=spoken.pronounce,
        )
        return WordCheck(transcript.text, model.name, tuple(map(build_issue, marks)))

    def find_issues(self, clip: Clip, said: ExpectedSpeech) -> tuple[QualityIssue, ...]:
        """The quality issues of a take's words; none where nobody can recognise them."""
        if not self.is_able:
            return ()
        return self.check(clip, ExpectedText(said.text, said.language)).issues

    def close(self) -> None:
        """End eSpeak NG's process, and the recognisers."""
        self._recognisers.close()
        self._sounds.close()


def build_issue(mark: WordMark) -> QualityIssue:
    """A difference as a quality issue; its figure is the number of words."""
    written, recognised = _shorten(mark.written), _shorten(mark.recognised)
    match mark.kind:
        case MarkKind.MISSING:
            kind, message = IssueKind.MISSING, f"“{written}” is missing."
        case MarkKind.REPEATED:
            kind, message = IssueKind.REPEATED, f"“{recognised}” is said once more."
        case MarkKind.EXTRA:
            kind, message = IssueKind.EXTRA, f"“{recognised}” is said, but not written."
        case MarkKind.REPLACED:
            kind, message = IssueKind.REPLACED, f"“{recognised}” is said instead of “{written}”."
        case _:
            kind, message = IssueKind.UNLIKE, f"Something else is said: “{recognised}”."
            if not recognised:
                message = "No words were understood in it."
    words = (mark.written or mark.recognised).split()
    return QualityIssue(kind, float(len(words)), message, mark.start, mark.end)


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


class CheckSource(Protocol):
    """Somebody who has takes to check: a project."""

    @property
    def is_waiting(self) -> bool:
        """Whether there is anything to check, now or later."""

    def pick(self) -> Callable[[], None] | None:
        """Take the next check out of the source's list; None while nothing is to be checked yet."""


_LOOK_S = 0.1
"""How often sources are asked whether what they wait for is over."""


class CheckQueue:
    """Runs the checks of all sources, one at a time, in a thread of low priority."""

    def __init__(self) -> None:
        self._changed = threading.Condition()  # guards the fields below
        self._sources: list[CheckSource] = []
        self._is_closed = False
        self._thread: threading.Thread | None = None

    @property
    def is_closed(self) -> bool:
        """Whether it takes no more checks."""
        return self._is_closed

    def wake(self, source: CheckSource) -> None:
        """Look at a source, which has something to check."""
        with self._changed:
            if self._is_closed:
                return
            if source not in self._sources:
                self._sources.append(source)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="word checks", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Start no more checks, and wait for the one that runs."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        lower_priority()
        for check in self._iterate():
            try:
                check()
            # Broad, as nobody joins this thread: the other takes are to be checked nevertheless.
            except Exception:
                log.exception("the words of a take weren't checked")

    def _iterate(self) -> Iterator[Callable[[], None]]:
        while True:
            with self._changed:
                self._sources = [source for source in self._sources if source.is_waiting]
                if self._is_closed:
                    return
                sources = self._sources[:]
            picked = next((check for one in sources if (check := one.pick())), None)
            if picked is not None:
                yield picked
                continue
            with self._changed:
                if not self._is_closed:
                    self._changed.wait(_LOOK_S if sources else None)
