"""Phonemes of text for models that speak from phonemes: eSpeak NG reads, another voice speaks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from studio.backends.espeak.espeak_voices import Languages, find_package
from studio.backends.espeak.worker_pool import EspeakWorker, Reading, WorkerPool
from studio.errors import SpeechFailed

_PATIENCE_S = 10.0
_SAME_MARK = {"…": ".", "...": ".", "—": ",", "–": ","} | dict(
    zip("।॥。۔！？؟，、،；؛：", "....!??,,,;;:", strict=True)
)
_MARKS = ",;:!?…—–।॥。۔！？؟，、،；؛："
_MARK_AT_END = re.compile(rf"([.{_MARKS}])[^\w.{_MARKS}]*\Z")
_MARK_BEFORE_NEXT = re.compile(rf"(\.\.\.|\.(?=[\"”’»)])|[{_MARKS}])[^\w{_MARKS}]*\w?\Z")
_OTHER_LANGUAGE = re.compile(
    r"\(\W?[a-z](?:\W?[a-z])*\)"
)  # eSpeak NG says where it changes the language


@dataclass(frozen=True, slots=True)
class Clause:
    """Phonemes up to a punctuation mark.

    Attributes:
        ipa: IPA with stress marks, words divided by spaces; not empty.
        mark: The mark behind it, one of ". , ; : ! ?"; empty for none.
    """

    ipa: str
    mark: str


class Phonemizer:
    """Reads text with eSpeak NG, in processes of its own; any number of threads at once."""

    def __init__(self, *, workers: int) -> None:
        package = find_package()
        self._languages = Languages(package.folder / "espeak-ng-data")
        self._pool = WorkerPool(lambda: EspeakWorker(package), size=workers)

    def read(self, sentences: Sequence[str], language: str, *, tie: str = "") -> list[list[Clause]]:
        """The clauses of each sentence; none where there is nothing to pronounce.

        Args:
            sentences: Without control characters.
            language: A BCP-47 code.
            tie: Joins the letters of one phoneme, as in "d^ʒ"; empty for none.

        Raises:
            SpeechFailed: eSpeak NG doesn't know the language, or stopped.
        """
        found = self._languages.find(language)
        if found is None:
            raise SpeechFailed(f"eSpeak NG can't read the language “{language}”; choose another.")
        reading = Reading(tuple(sentences), found.voice_file, tie)
        read = self._pool.run(lambda worker: worker.read(reading, timeout_s=_PATIENCE_S))
        return [_clauses(pieces) for pieces in read]

    def close(self) -> None:
        """End the processes."""
        self._pool.close()


def _clauses(pieces: Sequence[tuple[str, str]]) -> list[Clause]:
    said = [(_OTHER_LANGUAGE.sub("", ipa).strip(), text) for ipa, text in pieces]
    spoken = [(ipa, text) for ipa, text in said if _has_letters(ipa)]
    return [
        Clause(ipa, _mark(text, is_last=number == len(spoken)))
        for number, (ipa, text) in enumerate(spoken, start=1)
    ]


def _has_letters(ipa: str) -> bool:
    return any(unicodedata.category(char).startswith("L") for char in ipa)


def _mark(text: str, *, is_last: bool) -> str:
    # A full stop within a sentence, but at the end of a quotation, is an abbreviation's.
    found = (_MARK_AT_END if is_last else _MARK_BEFORE_NEXT).search(text)
    return _SAME_MARK.get(found[1], found[1]) if found else ""
